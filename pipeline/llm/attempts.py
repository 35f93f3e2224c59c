"""One call: reserve its worst case, try, settle, write the ledger's lines, and try again where that makes sense.

The ledger says that an attempt begins before anything is sent. Whatever ends it - an answer, a typed failure, Ctrl-C, a
defect - its reservation is settled once and its end is written once; of an attempt that SIGKILL ends, the line before
remains.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Generic, Literal, TypeVar

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm.budget import Budget, Reservation, Spent
from pipeline.llm.cancel import CancelToken, Clock
from pipeline.llm.config import Api, ModelConfig
from pipeline.llm.errors_map import CallFailure, ModelError, classify, provider_errors
from pipeline.llm.ledger import STARTED, CallLedger, CallRecord
from pipeline.llm.loop import run
from pipeline.llm.prices import Price
from pipeline.llm.types import Parameters, PromptRef, Usage

__all__ = ["Call", "Caller"]

T = TypeVar("T")


@dataclass(frozen=True)
class Call(Generic[T]):
    """What is asked, and how to ask once."""

    kind: Literal["chat", "stream", "embeddings"]
    key: str
    parameters: Parameters
    worst_input_tokens: int
    worst_output_tokens: int
    once: Callable[[int, float], Coroutine[Any, Any, T]]
    """Makes one attempt, given its number and its deadline in seconds."""
    usage_of: Callable[[T], Usage | None]
    api: Api | None = None
    prompt: PromptRef | None = None
    repair: int = 0
    left_out_characters: int = 0
    id: str = field(default_factory=lambda: uuid.uuid4().hex)


@dataclass(frozen=True)
class _Attempt(Generic[T]):
    """How an attempt ended; `billing`: known (from `usage`), nothing, or unknown."""

    outcome: str
    billing: Literal["known", "nothing", "unknown"]
    value: T | None = None
    usage: Usage | None = None
    failure: CallFailure | None = None


class Caller:
    """Makes calls to one endpoint."""

    def __init__(
        self, config: ModelConfig, price: Price | None, ledger: CallLedger | None, clock: Clock, rng: random.Random
    ) -> None:
        self.config, self.price, self.ledger = config, price, ledger
        self._clock, self._rng = clock, rng

    @property
    def what(self) -> str:
        """The object of errors."""
        return f"{self.config.model} at {self.config.url}"

    def run(self, call: Call[T], budget: Budget, cancel: CancelToken) -> T:
        """Make the call.

        Raises:
            ModelError: it ended without an answer.
            BudgetError: a budget does not allow it (or the next attempt).
            ExpbenchError: `INTERRUPTED` when cancelled.
        """
        worst = self._worst(call)
        number, waited = 0, 0.0
        while True:
            number += 1
            cancel.check(self.what)
            reservation = budget.reserve(worst, cancel)
            ended = self._attempt(call, number, waited, budget, reservation, cancel)
            if ended.failure is None:
                assert ended.value is not None
                return ended.value
            waited = self._pause(ended.failure, number, budget, cancel)

    def record_cached(self, call: Call[T], usage: Usage | None, budget: Budget) -> None:
        """Write the line of a call that was answered from the store."""
        self._write(call, 0, _Attempt[T]("cached", "nothing", usage=usage), budget, sent=False)

    # --- one attempt ---

    def _attempt(
        self,
        call: Call[T],
        number: int,
        waited: float,
        budget: Budget,
        reservation: Reservation,
        cancel: CancelToken,
    ) -> _Attempt[T]:
        started_at, begin = _now(), self._clock.monotonic()
        self._announce(call, number, waited, budget, reservation, started_at)
        ended: _Attempt[T] = _Attempt("defect", "unknown")
        try:
            ended = self._try(call, number, budget, cancel)
        except ExpbenchError as error:  # cancelled, or refused before anything was sent
            sent = error.kind is FailureKind.INTERRUPTED
            ended = _Attempt(error.kind.value, "unknown" if sent else "nothing")
            raise
        except BaseException as error:
            ended = _Attempt(type(error).__name__, "unknown")
            raise
        finally:
            reservation.settle(self._charge(ended))
            self._write(
                call,
                number,
                ended,
                budget,
                sent=ended.failure is not None or ended.billing != "nothing",
                started_at=started_at,
                duration_s=self._clock.monotonic() - begin,
                wait_s=waited,
                bound=reservation.worst,
            )
        return ended

    def _try(self, call: Call[T], number: int, budget: Budget, cancel: CancelToken) -> _Attempt[T]:
        left = budget.remaining_s()
        deadline = self.config.timeout_s if left is None else max(0.0, min(self.config.timeout_s, left))
        try:
            value = run(call.once(number, deadline), cancel, self.what)
            usage = call.usage_of(value)
        except provider_errors() as error:
            failure = classify(error)  # the exception itself is dropped here: it holds the request and its headers
        else:
            return _Attempt("done", "known" if usage is not None else "unknown", value=value, usage=usage)
        billing: Literal["nothing", "unknown"] = "unknown" if failure.maybe_billed else "nothing"
        return _Attempt(failure.kind.value, billing, failure=failure)

    def _pause(self, failure: CallFailure, number: int, budget: Budget, cancel: CancelToken) -> float:
        """Wait before the next attempt, or end the call."""
        if failure.kind is FailureKind.MODEL_TIMEOUT:
            budget.check_wall()  # it was the scope's time that ran out, not the endpoint's
        delay = self.config.retry.delay(failure.kind, number, failure.retry_after_s, self._rng)
        if delay is None:
            raise ModelError(
                failure.kind,
                self.what,
                failure.cause + (f" (after {number} attempts)" if number > 1 else ""),
                attempts=number,
                retry_after_s=failure.retry_after_s,
            )
        budget.check_wall(delay)
        self._clock.sleep(delay, cancel)
        return delay

    # --- money ---

    def _worst(self, call: Call[T]) -> Spent:
        usd = self.price.worst(call.worst_input_tokens, call.worst_output_tokens) if self.price else None
        return Spent(usd=usd, tokens=call.worst_input_tokens + call.worst_output_tokens, calls=1)

    def _charge(self, ended: _Attempt[T]) -> Spent | None:
        if ended.billing == "unknown":
            return None
        if ended.usage is None:
            return Spent(calls=int(ended.failure is not None))
        return Spent(usd=self._cost(ended.usage), tokens=ended.usage.total, calls=1)

    def _cost(self, usage: Usage) -> Decimal | None:
        return self.price.cost(usage) if self.price else None

    # --- the ledger ---

    def _announce(
        self,
        call: Call[T],
        number: int,
        waited: float,
        budget: Budget,
        reservation: Reservation,
        started_at: str,
    ) -> None:
        """Write that the attempt begins, with its worst case; without that line nothing is sent."""
        begun = _Attempt[T](STARTED, "unknown")
        try:
            self._write(
                call, number, begun, budget, sent=True, started_at=started_at, wait_s=waited, bound=reservation.worst
            )
        except BaseException:
            reservation.settle(Spent())
            raise

    def _write(
        self,
        call: Call[T],
        number: int,
        ended: _Attempt[T],
        budget: Budget,
        *,
        sent: bool,
        started_at: str | None = None,
        duration_s: float = 0.0,
        wait_s: float = 0.0,
        bound: Spent | None = None,
    ) -> None:
        if self.ledger is None:
            return
        failure = ended.failure
        usage = ended.usage
        if ended.billing == "nothing" and usage is None:
            usage = Usage(input_tokens=0, output_tokens=0)  # known: the endpoint turned it away
        cost = (self._cost(usage) if usage.total else Decimal(0)) if usage is not None else None
        self.ledger.append(
            CallRecord(
                call=call.id,
                attempt=number,
                repair=call.repair,
                kind=call.kind,
                api=call.api,
                outcome=ended.outcome,
                provider=self.config.provider,
                model=self.config.model,
                endpoint=self.config.url,
                key=call.key,
                run=budget.label("run"),
                stage=budget.label("stage"),
                task=budget.label("task"),
                prompt=call.prompt,
                temperature=call.parameters.temperature,
                seed=call.parameters.seed,
                sample=call.parameters.sample,
                usage=usage,
                cost_usd=cost if sent else None,
                bound_usd=bound.usd if bound is not None and sent and cost is None else None,
                bound_tokens=bound.tokens if bound is not None and sent and usage is None else None,
                sent=sent,
                started_at=started_at or _now(),
                duration_s=round(duration_s, 4),
                wait_s=round(wait_s, 3),
                status=failure.status if failure else None,
                retry_after_s=failure.retry_after_s if failure else None,
                request_id=failure.request_id if failure else None,
                error=failure.cause if failure else None,
                left_out_characters=call.left_out_characters,
            )
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
