"""What a judging model answers: one verdict a criterion, with a quote."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["ItemAnswer", "JudgeAnswer"]


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
