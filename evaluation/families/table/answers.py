"""What a judging model answers on a table task."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["DimensionAnswer", "RubricAnswer"]


class DimensionAnswer(BaseModel):
    """The grade of one dimension."""

    model_config = ConfigDict(extra="forbid")

    dimension: str
    justification: str
    quote: str = Field(max_length=2000)
    score: float = Field(ge=0, le=1)


class RubricAnswer(BaseModel):
    """All grades that were asked for, and whether the data were made up."""

    model_config = ConfigDict(extra="forbid")

    grades: list[DimensionAnswer]
    fabricated: bool
    fabrication_reason: str
    fabrication_quote: str = Field(max_length=2000)
