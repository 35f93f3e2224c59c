"""What work will cost before it is begun: planned calls, times what calls are expected to take and may take at worst.

Where earlier runs left ledgers, their means per call of a stage take the place of the plan's assumptions. A forecast is
an expectation; the budget is what holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Literal

from pydantic import Field

from pipeline.llm.config import ModelConfig
from pipeline.llm.ledger import CallRecord
from pipeline.llm.prices import Price, PriceList
from pipeline.llm.types import Usage
from pipeline.schema import Record

__all__ = ["Forecast", "PlannedCalls", "StepForecast", "forecast"]

_REPAIRS = 2
"""What `ModelClient.structured` allows by default; the worst case takes them all."""


class PlannedCalls(Record):
    """Calls of one kind that a stage is going to make."""

    stage: str
    what: str
    """In words, with what the numbers are taken from."""
    calls: int = Field(ge=0)
    input_tokens: int = Field(ge=0)
    """Of one call, expected, without images."""
    images: int = Field(default=0, ge=0)
    """In one call."""
    output_tokens: int = Field(ge=0)
    """Of one call, expected."""
    structured: bool = True
    """May answers have to be repaired?"""


class StepForecast(Record):
    """What the calls of one kind will take altogether."""

    stage: str
    what: str
    basis: Literal["assumed", "measured"]
    calls: int
    input_tokens: int
    output_tokens: int
    usd: Decimal | None
    """None: the price is unknown."""
    worst_usd: Decimal | None
    """With every answer at its limit and every repair made."""


class Forecast(Record):
    """What all of it will take."""

    model: str
    endpoint: str
    prices_as_of: str
    price_known: bool
    steps: tuple[StepForecast, ...]
    calls: int
    input_tokens: int
    output_tokens: int
    usd: Decimal | None
    worst_usd: Decimal | None


def forecast(
    config: ModelConfig, prices: PriceList, planned: Sequence[PlannedCalls], measured: Iterable[CallRecord] = ()
) -> Forecast:
    """Forecast planned calls.

    Args:
        measured: ledger lines of earlier runs with the same model; stages that occur in them are taken from them.
    """
    means = _means(record for record in measured if record.model == config.model)
    price, image_tokens = prices.find(config), prices.image_tokens(config)
    steps = tuple(_step(config, plan, means.get(plan.stage), price, image_tokens) for plan in planned)
    return Forecast(
        model=config.model,
        endpoint=config.url,
        prices_as_of=prices.as_of,
        price_known=price is not None,
        steps=steps,
        calls=sum(step.calls for step in steps),
        input_tokens=sum(step.input_tokens for step in steps),
        output_tokens=sum(step.output_tokens for step in steps),
        usd=_sum([step.usd for step in steps]),
        worst_usd=_sum([step.worst_usd for step in steps]),
    )


def _step(
    config: ModelConfig, plan: PlannedCalls, mean: tuple[int, int] | None, price: Price | None, image_tokens: int
) -> StepForecast:
    assumed = (plan.input_tokens + plan.images * min(1000, image_tokens), plan.output_tokens)
    one_in, one_out = mean or assumed
    rounds = 1 + _REPAIRS if plan.structured else 1
    limit = config.parameters.max_output_tokens
    worst_in = max(one_in, plan.input_tokens + plan.images * image_tokens)
    # each repair sends the question again, with all answers so far
    worst_input = sum(worst_in + repair * limit for repair in range(rounds))
    usd = worst = None
    if price is not None:
        one = price.cost(Usage(input_tokens=one_in, output_tokens=one_out))
        usd = None if one is None else one * plan.calls
        most = price.worst(worst_input, rounds * limit)
        worst = None if most is None else most * plan.calls
    return StepForecast(
        stage=plan.stage,
        what=plan.what,
        basis="assumed" if mean is None else "measured",
        calls=plan.calls,
        input_tokens=one_in * plan.calls,
        output_tokens=one_out * plan.calls,
        usd=usd,
        worst_usd=worst,
    )


def _means(records: Iterable[CallRecord]) -> dict[str, tuple[int, int]]:
    """Mean input and output tokens per answered call of a stage."""
    groups: dict[str, list[Usage]] = {}
    for record in records:
        if record.sent and record.stage is not None and record.outcome == "done" and record.usage is not None:
            groups.setdefault(record.stage, []).append(record.usage)
    return {
        stage: (
            round(sum(usage.input_tokens for usage in usages) / len(usages)),
            round(sum(usage.output_tokens for usage in usages) / len(usages)),
        )
        for stage, usages in groups.items()
    }


def _sum(amounts: Sequence[Decimal | None]) -> Decimal | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known, Decimal(0)) if len(known) == len(amounts) else None
