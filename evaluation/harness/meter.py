"""The account of an episode's model calls, and whether the next one is within the limits."""

from __future__ import annotations

import threading
from decimal import Decimal
from typing import Literal, NamedTuple

from evaluation.episode import EpisodeLimits
from evaluation.trajectory import TokenUsage
from pipeline.errors import FailureKind
from pipeline.llm.types import Usage
from pipeline.schema import Record

__all__ = ["GatewayTotals", "Meter", "OverLimit"]

LimitName = Literal["model_calls", "tokens", "money", "wall_time"]


class GatewayTotals(Record):
    """What an episode's model calls came to."""

    calls: int = 0
    """Calls that the endpoint answered with success; others cost nothing."""
    failed: int = 0
    failed_at_end: int = 0
    """Failures of the endpoint since its last success."""
    usage: TokenUsage | None = None
    """None: no call, or one of unknown usage."""
    cost_usd: float | None = None
    """None: a call of unknown price or usage."""
    limits: tuple[str, ...] = ()
    last_failure: FailureKind | None = None
    last_detail: str = ""


class OverLimit(NamedTuple):
    """Why a call is refused."""

    limit: LimitName
    detail: str
    first: bool
    """Is it the first refusal for this limit?"""


class Meter:
    """Counts calls, tokens and money; used from the gateway's thread, read from others.

    A limit of tokens or money needs to know what was used: after an answer that does not say, and for a model without a
    price, further calls are refused rather than waved through. (An answer that broke off is no such case: its endpoint
    states counts, and refusing would turn a dropped connection into the end of the episode.)

    Args:
        limits: of the episode.
    """

    def __init__(self, limits: EpisodeLimits) -> None:
        self._limits = limits
        self._guard = threading.Lock()
        self._deadline = float("inf")
        self._admitted = 0
        self._calls = 0
        self._input = self._output = self._cached = 0
        self._money = Decimal(0)
        self._usage_unknown = self._cost_unknown = self._silent = False
        self._failed = self._failed_at_end = 0
        self._last: tuple[FailureKind, str] | None = None
        self._hit: list[LimitName] = []

    def start(self, now: float) -> None:
        """The episode begins (monotonic seconds)."""
        self._deadline = now + self._limits.wall_s

    def admit(self, now: float, *, model: str, priced: bool) -> OverLimit | None:
        """Count a call that is to be made; or say which limit forbids it."""
        with self._guard:
            found = self._over(now, model, priced)
            if found is None:
                self._admitted += 1
                return None
            first = found[0] not in self._hit
            if first:
                self._hit.append(found[0])
            return OverLimit(*found, first)

    def _over(self, now: float, model: str, priced: bool) -> tuple[LimitName, str] | None:
        limits = self._limits
        if now >= self._deadline:
            return "wall_time", f"{limits.wall_s:g} s"
        if limits.model_calls is not None and self._calls + self._admitted >= limits.model_calls:
            return "model_calls", f"{limits.model_calls} calls"
        tokens, money = self._over_tokens(), self._over_money(model, priced)
        return ("tokens", tokens) if tokens else ("money", money) if money else None

    def _over_tokens(self) -> str:
        most, used = self._limits.tokens, self._input + self._output
        if most is None:
            return ""
        if used >= most:
            return f"{most} tokens ({used} used)"
        return "the endpoint does not state what it uses, so no limit of tokens can be kept" if self._silent else ""

    def _over_money(self, model: str, priced: bool) -> str:
        most = self._limits.money_usd
        if most is None:
            return ""
        if self._money >= Decimal(str(most)):
            return f"{most:g} USD ({self._money:.4f} spent)"
        if not priced:
            return f"the price of {model} is unknown, so no limit of money can be kept"
        return "the endpoint does not state what it uses, so no limit of money can be kept" if self._silent else ""

    def succeeded(self, usage: Usage | None, cost: Decimal | None, *, whole: bool) -> None:
        """An admitted call was answered; `whole`: to its end."""
        with self._guard:
            self._admitted -= 1
            self._calls += 1
            self._failed_at_end = 0
            self._cost_unknown = self._cost_unknown or cost is None
            self._money += cost or Decimal(0)
            if usage is None:
                self._usage_unknown = True
                self._silent = self._silent or whole
                return
            self._input += usage.input_tokens
            self._output += usage.output_tokens
            self._cached += usage.cached_input_tokens

    def failed(self, kind: FailureKind, detail: str, *, admitted: bool) -> None:
        """The endpoint failed on a call."""
        with self._guard:
            self._admitted -= admitted
            self._failed += 1
            self._failed_at_end += 1
            self._last = (kind, detail)

    def rejected(self) -> None:
        """The endpoint found an admitted request wrong: that is the agent's doing and costs nothing."""
        with self._guard:
            self._admitted -= 1

    def totals(self) -> GatewayTotals:
        """What was counted so far."""
        with self._guard:
            known = self._calls > 0 and not self._usage_unknown
            usage = TokenUsage(input_tokens=self._input, output_tokens=self._output, cached_input_tokens=self._cached)
            return GatewayTotals(
                calls=self._calls,
                failed=self._failed,
                failed_at_end=self._failed_at_end,
                usage=usage if known else None,
                cost_usd=None if self._cost_unknown else float(self._money),
                limits=tuple(self._hit),
                last_failure=self._last[0] if self._last else None,
                last_detail=self._last[1] if self._last else "",
            )
