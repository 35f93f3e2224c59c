"""The paper as its reader sees it: whole, in the order of print, each block of text, cell and caption with an id.

Blocks are `p12`, tables `T3` (by the label that is printed, `TA.1`), their cells `T3.r4c2` and ranges of them
`T3.r1-4c2,5`, figures and algorithms `F2`, `A1`. Rows and columns count from 0 as in the grid. References and text that
nobody sees are in no listing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from extractors._reading import Reading, label_key
from pipeline.paper import Caption, Document, FloatKind, Passage, PassageKind, SectionKind, Table
from pipeline.task import Evidence, TableEvidence, TextEvidence

__all__ = ["Cells", "Listing"]

_CELLS: Final = re.compile(r"(?P<table>T\S*?)\.r(?P<rows>\d[\d,–-]*)\.?c(?P<columns>\d[\d,–-]*)")
_LETTER: Final = {FloatKind.TABLE: "T", FloatKind.FIGURE: "F", FloatKind.ALGORITHM: "A"}
_WIDEST: Final = 200
"""Rows or columns of one range; no table of a paper has more."""


class Cells(NamedTuple):
    """Cells of one table, row by row."""

    table: Table
    rows: tuple[int, ...]
    columns: tuple[int, ...]


class Listing:
    """A document with ids, and what stands behind each.

    Args:
        document: the structured reading of a PDF.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self.reading = Reading(document)
        self.passages: dict[str, Passage] = {
            _block_id(passage.id): passage for passage in document.passages if not _is_reference(document, passage)
        }
        self.tables: dict[str, Table] = {}
        self.captions: dict[str, Caption] = {}
        for table in document.tables:
            self.tables[_free(_float_id(table.label, FloatKind.TABLE), self.tables)] = table
        for caption in document.captions:
            if caption.kind is not FloatKind.TABLE:
                self.captions[_free(_float_id(caption.label, caption.kind), self.captions)] = caption

    # --- what is shown ---

    def shown(self, without: Collection[str] = ()) -> str:
        """The whole paper.

        Args:
            without: ids of blocks that are left out, for a context window that does not hold all; the gaps are marked.
        """
        lines = [f"# {self.document.title}"]
        path: tuple[str, ...] = ()
        gap: list[str] = []
        for name, passage in self.passages.items():
            titles = tuple(
                f"{section.number} {section.title}" if section.number else section.title
                for section in self.document.section_path(passage)
            )
            if titles != path:
                path = titles
                lines.append(f"\n## {' > '.join(titles) or '(no heading)'} (page {passage.page})")
            if name in without:
                gap.append(name)
                continue
            lines += [f"[{gap[0]} to {gap[-1]} are not shown: the tool `paper` finds them]"] if gap else []
            gap = []
            kind = "" if passage.kind in {PassageKind.PARAGRAPH, PassageKind.LIST_ITEM} else f" ({passage.kind.value})"
            lines.append(f"[{name}]{kind} {passage.text}")
        lines += [f"[{gap[0]} to {gap[-1]} are not shown: the tool `paper` finds them]"] if gap else []
        lines += ["\n## Tables", *(self._table(name, table) for name, table in self.tables.items())]
        if self.captions:
            lines += ["\n## Figures and algorithms"]
            texts = {label_key(figure.label): "; ".join(figure.texts) for figure in self.document.figures}
            for name, caption in self.captions.items():
                printed = texts.get(label_key(caption.label), "")
                lines.append(f"[{name}] (page {caption.page}) {caption.text}" + (f" In it: {printed}" * bool(printed)))
        return "\n".join(lines)

    def _table(self, name: str, table: Table) -> str:
        width = max(map(len, table.grid), default=0)
        body = f"columns c0 to c{width - 1}, of which {table.stub_columns} on the left hold labels"
        lines = [f"[{name}] (page {table.page}) {table.caption or table.label}", f"{body}:"]
        lines.append(" | ".join(["row", *(f"c{column}" for column in range(width))]))
        for number, row in enumerate(table.grid):
            kind = " (header)" if number < table.header_rows else ""
            lines.append(" | ".join([f"r{number}{kind}", *row]))
        return "\n".join(lines) + "\n"

    # --- what an id stands for ---

    def evidence(self, name: str) -> Evidence | None:
        """A block, a table or a single cell as evidence; None where there is no such id."""
        name = name.strip().strip("[]")
        passage = self.passages.get(_block_id(name))
        if passage is not None:
            section = self.document.section_of(passage)
            page, box = passage.boxes[0]
            return TextEvidence(page=page, box=box, quote=passage.text, section=section.title if section else None)
        caption = self.captions.get(name)
        if caption is not None:
            return TextEvidence(page=caption.page, box=caption.box, quote=caption.text, section=caption.label)
        if name in self.tables:
            return self.reading.caption_evidence(self.tables[name])
        cells = self.cells(name)
        if cells is None:
            return None
        single = len(cells.rows) == len(cells.columns) == 1
        return self.cell(cells.table, cells.rows[0], cells.columns[0]) if single else self.reading.caption_evidence(
            cells.table
        )  # fmt: skip

    def text(self, name: str) -> str:
        """All that is printed behind an id: of a table its caption and cells; empty where there is no such id."""
        name = name.strip().strip("[]")
        table = self.tables.get(name)
        if table is not None:
            return "\n".join([table.caption, *(" | ".join(row) for row in table.grid)])
        cells = self.cells(name)
        if cells is not None:
            found = [cell for row in cells.rows for column in cells.columns if (cell := self._line(cells, row, column))]
            return "\n".join(found)
        evidence = self.evidence(name)
        return evidence.quote if evidence is not None else ""

    def _line(self, cells: Cells, row: int, column: int) -> str:
        """A cell with the labels of its row and column."""
        found = self.cell(cells.table, row, column)
        return "" if found is None else " | ".join([*found.row_labels, *found.column_headers, found.quote])

    def cells(self, name: str) -> Cells | None:
        """The cells of `T3.r1-4c2,5`; None where there is no such table, or one of them lies outside it."""
        match = _CELLS.fullmatch(name.strip().strip("[]").replace(" ", ""))
        table = self.tables.get(match["table"]) if match else None
        if match is None or table is None:
            return None
        rows, columns = _numbers(match["rows"]), _numbers(match["columns"])
        width = max(map(len, table.grid), default=0)
        if not rows or not columns or max(rows) >= len(table.grid) or max(columns) >= width:
            return None
        return Cells(table, rows, columns)

    def cell(self, table: Table, row: int, column: int) -> TableEvidence | None:
        """A cell as evidence, or None when it is empty."""
        if not (0 <= row < len(table.grid) and 0 <= column < len(table.grid[row])) or not table.grid[row][column]:
            return None
        page, box = table.place_of(row, column)
        return TableEvidence(
            label=table.label, page=page, box=box, row=row, column=column, quote=table.grid[row][column],
            row_labels=table.row_labels(row), column_headers=table.column_headers(column),
        )  # fmt: skip

    def name_of(self, table: Table) -> str:
        """The id of a table of this document."""
        return next(name for name, other in self.tables.items() if other is table)

    @property
    def ids(self) -> str:
        """Which ids there are, in words."""
        last = next(reversed(self.passages), "none")
        floats = ", ".join([*self.tables, *self.captions]) or "no tables or figures"
        return f"blocks up to {last}; {floats}"


def _block_id(name: str) -> str:
    return re.sub(r"^p0+(?=\d)", "p", name.strip().strip("[]"))


def _is_reference(document: Document, passage: Passage) -> bool:
    section = document.section_of(passage)
    return passage.kind is PassageKind.REFERENCE or (section is not None and section.kind is SectionKind.REFERENCES)


def _float_id(label: str, kind: FloatKind) -> str:
    """`Table 3` and `TABLE III` are `T3`, `Table A.1` is `TA.1`; a table without a number is `T`."""
    _, _, number = label_key(label).rpartition(" ")
    known = number if any(character.isdigit() for character in number) else ""
    return _LETTER[kind] + re.sub(r"[^A-Z0-9.]", "", known.upper()).strip(".")


def _free(name: str, taken: Collection[str]) -> str:
    """The id, with a letter where another float has it: parts of a table on two pages are `T3` and `T3b`."""
    others: Iterator[str] = (f"{name}{letter}" for letter in "bcdefghijklmnopqrstuvwxyz")
    return name if name not in taken else next((other for other in others if other not in taken), f"{name}{len(taken)}")


def _numbers(text: str) -> tuple[int, ...]:
    """`1-3,5` as 1, 2, 3, 5; empty where it is no such list."""
    found: list[int] = []
    for part in text.replace("–", "-").split(","):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            return ()
        end = int(last) if dash else int(first)
        if not int(first) <= end < int(first) + _WIDEST:
            return ()
        found += range(int(first), end + 1)
    return tuple(dict.fromkeys(found))
