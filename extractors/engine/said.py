"""What a model answers in each pass, before anything of it is believed.

These are the output schemas of the prompts in `extractors/prompts`. Field order is the order of generation: quotes
and places come before what is concluded from them where that helps. `extractors.engine.checking` decides what is
kept.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pipeline.schema import Record

__all__ = [
    "FigureAnswer",
    "QuestionAnswer",
    "RefinementAnswer",
    "SaidCells",
    "SaidClaim",
    "SaidCondition",
    "SaidContext",
    "SaidSetting",
    "SaidStep",
    "SaidTakeaway",
    "SaidTask",
    "SaidVariable",
    "SubsectionAnswer",
    "TableAnswer",
    "TakeawaysAnswer",
]


class SaidTakeaway(Record):
    """A high-level finding, with the sentences it was stitched together from."""

    statement: str
    quotes: tuple[str, ...]
    floats: tuple[str, ...] = Field(default=(), description="labels of tables and figures, e.g. `Table 2`")


class TakeawaysAnswer(Record):
    """Pass a: one retrieval query."""

    takeaways: tuple[SaidTakeaway, ...]


class SaidCondition(Record):
    """One coordinate of a number."""

    name: str
    value: str


class SaidClaim(Record):
    """One number that a sentence states, or one cell of a table."""

    metric: str
    value: str = Field(description="as printed, with its unit and plus-minus part")
    conditions: tuple[SaidCondition, ...] = ()
    quote: str | None = Field(default=None, description="the sentence that states it, word for word; null for a cell")
    table: str | None = Field(default=None, description="label of the table; null for a sentence")
    row: int | None = None
    column: int | None = None


class SaidCells(Record):
    """A block of result cells of one table that share a metric."""

    table: str
    metric: str
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    first_value: str = Field(description="the text of the cell in the first row and first column listed, as printed")
    last_value: str = Field(description="the text of the cell in the last row and last column listed, as printed")
    row_conditions: tuple[str, ...] = Field(
        default=(), description="what each label column on the left names, outermost first; empty text: no condition"
    )
    column_conditions: tuple[str, ...] = Field(
        default=(), description="what each header row names, outermost first; empty text: the metric, or no condition"
    )
    conditions: tuple[SaidCondition, ...] = Field(default=(), description="those that all cells share")


class SaidStep(Record):
    """A step of the method, in words, with the sentence that says so."""

    quote: str
    text: str


class SaidVariable(Record):
    """A variable of the experimental design."""

    name: str
    values: tuple[str, ...] = ()
    quote: str | None = None
    table: str | None = Field(default=None, description="label of the table whose headers or labels list the values")


class SaidSetting(Record):
    """A hyper-parameter with its value."""

    name: str
    value: str
    quote: str | None = None
    table: str | None = None


class SaidContext(Record):
    """A sentence that later subsections need in order to be understood."""

    quote: str
    topic: str


class SaidTask(Record):
    """A candidate task."""

    title: str
    question: str
    takeaways: tuple[str, ...] = Field(default=(), description="ids of the takeaways that it answers, e.g. `t3`")
    results: tuple[str, ...] = Field(default=(), description="sentences that state the outcome, word for word")
    cells: tuple[SaidCells, ...] = ()
    claims: tuple[SaidClaim, ...] = ()
    method: tuple[SaidStep, ...] = ()
    constant: tuple[SaidVariable, ...] = ()
    independent: tuple[SaidVariable, ...] = ()
    dependent: tuple[SaidVariable, ...] = ()
    settings: tuple[SaidSetting, ...] = ()


class SubsectionAnswer(Record):
    """Pass b: one subsection."""

    role: Literal["implementation_context", "candidate_question", "neither"]
    context: tuple[SaidContext, ...] = ()
    tasks: tuple[SaidTask, ...] = ()


class RefinementAnswer(Record):
    """Pass c: what the rest of the paper adds to a task."""

    method: tuple[SaidStep, ...] = Field(default=(), description="further steps only")
    settings: tuple[SaidSetting, ...] = ()
    constant: tuple[SaidVariable, ...] = ()
    question: str | None = Field(default=None, description="a more precise question; null to leave it as it is")
    answerable: bool = Field(description="false when the paper's own experiments do not answer the question")
    reason: str = ""


class QuestionAnswer(Record):
    """A question worded again so that it does not state its answer."""

    question: str


class TableAnswer(Record):
    """A table as read from its picture."""

    rows: tuple[tuple[str, ...], ...] = Field(
        description="all rows from top to bottom, header rows included; a spanning cell in its first place, then empty"
    )
    header_rows: int
    notes: str = ""


class FigureAnswer(Record):
    """A figure as read from its picture."""

    kind: str
    x_axis: str = ""
    y_axis: str = ""
    series: tuple[str, ...] = ()
    description: str
