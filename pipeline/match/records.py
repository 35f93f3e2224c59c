"""Sources of numbers, and what of a paper was found in them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pipeline.schema import Record

__all__ = ["CellMatch", "ProseMatch", "Source", "TableMatch"]


class Source(Record):
    """A committed file, or a stream or file of a run."""

    name: str
    """Path of the file, or the stream's name."""
    origin: Literal["committed", "run"]
    command: str = ""
    """Of a run: what was run, as the caller names it."""


class CellMatch(Record):
    """A cell of a table beside the number of a source that stands at its place there."""

    row: int
    column: int
    part: int = 0
    """Which number of its cell (`PrintedNumber.part`)."""
    text: str
    """As printed."""
    value: float
    decimals: int = Field(ge=0)
    uncertainty: float | None = None
    source: str
    place: str
    """`pipeline.validation.places`: names the number in any run of the same program."""
    where: str
    observed: float
    """As the source holds it; `observed * factor` is in the paper's scale."""
    factor: float = 1.0


class TableMatch(Record):
    """One table and one source (or files of one kind) that holds numbers of it."""

    table: int = 0
    """Index into the document's tables."""
    label: str
    page: int
    source: str
    """The source of most cells; each cell names its own."""
    origin: Literal["committed", "run"]
    command: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    """(column or row of the paper, name in the source), of the lines that were identified."""
    cells: tuple[CellMatch, ...] = ()
    missed: tuple[CellMatch, ...] = ()
    """Aligned with a number of the source whose value differs."""
    compared: int = Field(ge=0)
    """`cells` and `missed` together."""
    chance: float
    """log10 of a bound of the probability that so much agrees by accident, corrected for all that was tried."""

    @property
    def places(self) -> frozenset[tuple[int, int, int]]:
        """(row, column, part) of its cells."""
        return frozenset((cell.row, cell.column, cell.part) for cell in self.cells)


class ProseMatch(Record):
    """A number of a sentence and the number of a source that it states."""

    printed: str
    """`PrintedNumber.id`"""
    text: str
    value: float
    decimals: int
    unit: str | None = None
    page: int
    sentence: str
    source: str
    origin: Literal["committed", "run"]
    command: str = ""
    place: str
    where: str
    observed: float
    factor: float = 1.0
    chance: float
