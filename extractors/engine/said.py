"""What a reader answers in each pass, before anything of it is believed.

Everything points at what it rests on by ids: blocks and tables of the paper (`extractors.engine.listing`), lines of
the repository's files (`src/train.py:10-24`). Words are quoted only where the words themselves matter.
`extractors.engine.gates` decides what is kept.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pipeline.reader.gate import ChosenCommand
from pipeline.schema import Record

__all__ = [
    "Experiment", "Experiments", "SaidCells", "SaidCondition", "SaidFile", "SaidMending", "SaidNumber",
    "SaidRequirement", "SaidResult", "SaidSetting", "SaidStep", "SaidTask", "SaidVariable",
]  # fmt: skip

_Id = Annotated[str, Field(max_length=200)]
_Ids = Annotated[tuple[_Id, ...], Field(max_length=6)]
_Name = Annotated[str, Field(max_length=160)]
_Text = Annotated[str, Field(max_length=800)]


class Experiment(Record):
    """One experiment of the paper, as pass 1 lists it."""

    title: str = Field(max_length=100, description="a few words: what is compared on what; no result")
    claims: tuple[_Id, ...] = Field(
        max_length=20, description="where its result numbers stand: `T3.r1-4c2-5`, or `p12: 0.953` for a sentence's"
    )
    files: tuple[_Id, ...] = Field(
        default=(), max_length=8, description="files of the repository that carry it out, what is started first"
    )
    command: str = Field(default="", max_length=400, description="as it is typed; empty where none is known yet")
    runs_here: bool = Field(description="can it, or a part of it with at least three numbers, be run here?")
    why: str = Field(max_length=300, description="what shows that it runs here, or what is missing")


class Experiments(Record):
    """Pass 1: everything that the paper measured itself."""

    experiments: tuple[Experiment, ...] = Field(max_length=40)


class SaidCondition(Record):
    """One coordinate of a number: `data set` = `Moons`."""

    name: _Name
    value: _Name


class SaidCells(Record):
    """A block of result cells of one table that share a metric."""

    cells: _Id = Field(description="`T3.r1-4c2-5`; result cells only, no headers and no labels")
    first: _Name = Field(description="what its first cell prints (first row, first column): proves the count")
    last: _Name = Field(description="what its last cell prints")
    metric: _Name = Field(description="as the paper calls it, written out")
    metric_from: _Id = Field(description="where that name stands: `T3` (caption, headers), `p12`, or `run.py:40-41`")
    direction: Literal["higher is better", "lower is better", "neither"]
    unit: _Name = Field(default="", description="`%`, `s`; empty where there is none")
    row_names: tuple[_Name, ...] = Field(
        default=(), max_length=6,
        description="what each label column on the left names (`method`), outermost first; empty text: no condition",
    )  # fmt: skip
    column_names: tuple[_Name, ...] = Field(
        default=(), max_length=6,
        description="what each header row names (`data set`), outermost first; empty text: it names the metric",
    )  # fmt: skip
    conditions: tuple[SaidCondition, ...] = Field(default=(), max_length=6, description="those that all cells share")
    output: str = Field(
        default="", max_length=300, description="file and column or key (or line of output) in which a run gives it"
    )


class SaidNumber(Record):
    """One result number that only a sentence states."""

    block: _Id
    printed: _Name = Field(description="the number as the sentence prints it")
    metric: _Name
    direction: Literal["higher is better", "lower is better", "neither"]
    conditions: tuple[SaidCondition, ...] = Field(default=(), max_length=6)
    output: str = Field(default="", max_length=300)


class SaidResult(Record):
    """A sentence of the paper that states the outcome in words."""

    block: _Id
    quote: _Text = Field(description="the sentence, word for word")
    holds: bool = Field(description="do the claimed numbers bear it out?")
    why_not: _Text = ""


class SaidStep(Record):
    """A step of the method."""

    text: _Text
    evidence: _Ids


class SaidVariable(Record):
    """A variable of the design with its levels."""

    name: _Name
    values: tuple[_Name, ...] = Field(default=(), max_length=40)
    evidence: _Ids


class SaidSetting(Record):
    """A setting with the value that the claimed numbers were made with."""

    name: _Name
    value: _Name
    evidence: _Ids


class SaidFile(Record):
    """A file of the chain."""

    path: _Id
    role: Literal["entry", "config", "wrapper", "library"]
    why: str = Field(max_length=300)


class SaidRequirement(Record):
    """One step that an implementation has to take, with the lines that take it."""

    text: _Text
    spans: tuple[_Id, ...] = Field(min_length=1, max_length=6, description="`path:first-last`")


class SaidTask(Record):
    """Pass 2: one experiment as a task."""

    question: str = Field(max_length=1200)
    method: tuple[SaidStep, ...] = Field(max_length=16)
    instructions: str = Field(default="", max_length=1200)
    cells: tuple[SaidCells, ...] = Field(default=(), max_length=20)
    numbers: tuple[SaidNumber, ...] = Field(default=(), max_length=20)
    left_out: str = Field(default="", max_length=600, description="which of its numbers are no claims, and why")
    results: tuple[SaidResult, ...] = Field(default=(), max_length=5)
    constant: tuple[SaidVariable, ...] = Field(default=(), max_length=12)
    independent: tuple[SaidVariable, ...] = Field(default=(), max_length=6)
    dependent: tuple[SaidVariable, ...] = Field(default=(), max_length=6)
    settings: tuple[SaidSetting, ...] = Field(default=(), max_length=16)
    files: tuple[SaidFile, ...] = Field(default=(), max_length=20)
    commands: tuple[ChosenCommand, ...] = Field(default=(), max_length=6)
    requirements: tuple[SaidRequirement, ...] = Field(default=(), max_length=12)
    not_found: str = Field(
        default="", max_length=600, description="why no file of the repository carries it out; empty with files"
    )


class SaidMending(Record):
    """Pass 3: what is changed of a task that its run did not bear out."""

    why: str = Field(max_length=600, description="what went wrong, and why this mends it")
    commands: tuple[ChosenCommand, ...] = Field(default=(), max_length=6, description="empty: as they were")
    files: tuple[SaidFile, ...] = Field(default=(), max_length=20, description="empty: as they were")
    keep: tuple[_Id, ...] = Field(default=(), max_length=100, description="ids of the claims that are kept; empty: all")
    give_up: str = Field(default="", max_length=600, description="why nothing helps; empty with a change")
