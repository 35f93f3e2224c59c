"""What a judging model answers: one verdict a criterion, with a quote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["ItemAnswer", "JudgeAnswer", "refuse_other_items"]


class ItemAnswer(BaseModel):
    """The verdict on one criterion."""

    model_config = ConfigDict(extra="forbid")

    item: str
    reason: str
    quote: str = Field(max_length=2000)
    verdict: Literal["met", "not_met", "unknown"]


class JudgeAnswer(BaseModel):
    """The verdicts on all criteria that were asked about."""

    model_config = ConfigDict(extra="forbid")

    items: list[ItemAnswer]


def refuse_other_items(given: Iterable[str], wanted: frozenset[str], what: str) -> None:
    """Refuse an answer that leaves out what was asked, or answers something else, or twice.

    Args:
        given: what the answer is about.
        wanted: what was asked.
        what: its name in the message, in the plural.

    Raises:
        ValueError: with what is wrong, for the model.
    """
    counts = Counter(given)
    missing, unknown = sorted(wanted - set(counts)), sorted(set(counts) - wanted)
    double = sorted(name for name, count in counts.items() if count > 1)
    if missing or unknown or double:
        raise ValueError(
            f"missing {what}: {missing}; {what} that were not asked for: {unknown}; {what} given twice: {double}"
        )
