"""The paper and its structured reading. Coordinates are PDF points, origin at the top left of the unrotated page.

`Document` is what stage 2.1 (EXP-Bench 3.2) hands on: sections, passages, captions, tables as grids, figures; each with
page and box, so that every later statement can be shown on the page it came from. Pages are numbered from 1.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, NamedTuple

from pydantic import Field

from pipeline.schema import Problem, Record, StoredRecord

__all__ = [
    "Box", "Caption", "Cell", "Document", "Figure", "FloatKind", "HiddenText", "Link", "OcrRun", "Page", "Paper",
    "Passage", "PassageKind", "Quantity", "Section", "SectionKind", "Table",
]  # fmt: skip


class Box(NamedTuple):
    """A rectangle on a page in points: left, top, right, bottom."""

    x0: float
    y0: float
    x1: float
    y1: float

    def union(self, other: Box) -> Box:
        """The smallest box that holds both."""
        return Box(min(self.x0, other.x0), min(self.y0, other.y0), max(self.x1, other.x1), max(self.y1, other.y1))


class Paper(Record):
    """Bibliographic identity. `id` is a file-name-safe slug, unique within a workspace."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,79}$")
    title: str
    venue: str | None = None
    year: int | None = None
    url: str | None = None
    sha256: str | None = None
    """Digest of the PDF file."""


class OcrRun(Record):
    """What OCR did to one page, and why."""

    engine: str
    version: str
    dpi: int
    rotation: int = 0
    mean_confidence: float
    """0 to 100, Tesseract's word confidences weighted by length."""
    reason: str
    """The measured property of the text layer that made OCR necessary."""


class Page(Record):
    """One page: its size in points, how it was read and what is wrong with it."""

    number: int = Field(ge=1)
    width: float
    height: float
    columns: int = Field(ge=0)
    text_quality: float = Field(ge=0, le=1)
    """1 = a clean text layer, 0 = none; see `extractors.ocr.text_quality`."""
    ocr: OcrRun | None = None
    warnings: tuple[str, ...] = ()


class SectionKind(StrEnum):
    """What part of the paper a section belongs to."""

    ABSTRACT = "abstract"
    BODY = "body"
    APPENDIX = "appendix"
    REFERENCES = "references"


class Section(Record):
    """A heading and, by order, what follows it."""

    number: str | None
    title: str
    level: int = Field(ge=1)
    page: int
    box: Box
    kind: SectionKind = SectionKind.BODY


class PassageKind(StrEnum):
    """The typographic role of a passage."""

    PARAGRAPH = "paragraph"
    LIST_ITEM = "list_item"
    FOOTNOTE = "footnote"
    EQUATION = "equation"
    REFERENCE = "reference"


class Passage(Record):
    """Running text in reading order. `boxes` has one entry per page or column the passage touches."""

    id: str
    section: int | None
    """Index into `Document.sections`; None before the first heading."""
    kind: PassageKind
    text: str
    boxes: tuple[tuple[int, Box], ...]
    """(page, box) pairs in reading order; at least one."""

    @property
    def page(self) -> int:
        """The page on which the passage begins."""
        return self.boxes[0][0]


class FloatKind(StrEnum):
    """What a caption belongs to."""

    TABLE = "table"
    FIGURE = "figure"
    ALGORITHM = "algorithm"


class Caption(Record):
    """A caption with its normalised label (`Table 2`, `Figure A.1`)."""

    label: str
    kind: FloatKind
    text: str
    """The whole caption, label included."""
    page: int
    box: Box


class Quantity(Record):
    """A number as printed in a cell or sentence."""

    text: str
    value: float
    uncertainty: float | None = None
    """The part behind a plus-minus sign."""
    unit: str | None = None
    """`%`, `s`, `ms`, `x`, ... as printed; None when there is none."""
    decimals: int = Field(ge=0)
    """Digits printed after the decimal point: half a unit of the last one is the rounding error."""


class Cell(Record):
    """One cell of a table grid; spanning cells occur once, at their top left position."""

    row: int
    column: int
    row_span: int = 1
    column_span: int = 1
    text: str
    box: Box | None = None
    bold: bool = False
    underlined: bool = False
    quantity: Quantity | None = None
    page: int | None = None
    """Where it differs from the table's: a table across pages."""


class Table(Record):
    """A table as a rectangular grid of strings; `cells` carries spans, boxes and styles for the same positions."""

    label: str
    caption: str
    page: int
    box: Box
    grid: tuple[tuple[str, ...], ...]
    header_rows: int
    stub_columns: int = 1
    """Leading columns that hold row labels."""
    cells: tuple[Cell, ...] = ()
    confidence: float = Field(ge=0, le=1)
    continued: tuple[tuple[int, Box], ...] = ()
    """(page, box) of the parts on further pages."""

    def place_of(self, row: int, column: int) -> tuple[int, Box]:
        """Page and box of a cell; those of the table where the cell has none of its own (empty, or under a span)."""
        for cell in self.cells:
            if (cell.row, cell.column) == (row, column) and cell.box is not None:
                return cell.page or self.page, cell.box
        return self.page, self.box

    def column_headers(self, column: int) -> tuple[str, ...]:
        """Header texts above `column`, outermost first, spanning headers included."""
        return tuple(
            cell.text
            for cell in sorted(self.cells, key=lambda cell: cell.row)
            if cell.row < self.header_rows and cell.text and cell.column <= column < cell.column + cell.column_span
        )

    def row_labels(self, row: int) -> tuple[str, ...]:
        """Stub texts left of `row`, outermost first, vertically spanning labels included."""
        return tuple(
            cell.text
            for cell in sorted(self.cells, key=lambda cell: cell.column)
            if cell.column < self.stub_columns and cell.text and cell.row <= row < cell.row + cell.row_span
            and cell.row >= self.header_rows
        )  # fmt: skip


class Figure(Record):
    """A figure's region with its caption; `texts` are axis labels and legends of a vector figure."""

    label: str
    caption: str
    page: int
    box: Box
    texts: tuple[str, ...] = ()


class Link(Record):
    """A hyper-link of the PDF."""

    page: int
    box: Box
    url: str


class HiddenText(Record):
    """Text that a reader does not see. It is reported and never reaches a draft or a prompt."""

    page: int
    box: Box
    reason: str
    text: str


class Document(StoredRecord):
    """The structured reading of one PDF."""

    SCHEMA_VERSION: ClassVar[int] = 1

    sha256: str
    """Digest of the PDF file."""
    title: str
    pages: tuple[Page, ...]
    sections: tuple[Section, ...] = ()
    passages: tuple[Passage, ...] = ()
    captions: tuple[Caption, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    links: tuple[Link, ...] = ()
    hidden: tuple[HiddenText, ...] = ()
    problems: tuple[Problem, ...] = ()
    extractor: str
    """Name and version of what read it, e.g. `pymupdf 1.26.7`."""

    def section_of(self, passage: Passage) -> Section | None:
        """The section that a passage belongs to."""
        return None if passage.section is None else self.sections[passage.section]

    def section_path(self, passage: Passage) -> tuple[Section, ...]:
        """The section of a passage with its ancestors, outermost first."""
        if passage.section is None:
            return ()
        path = [self.sections[passage.section]]
        for section in reversed(self.sections[: passage.section]):
            if section.level < path[0].level:
                path.insert(0, section)
        return tuple(path)
