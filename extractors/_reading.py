"""A document read as sentences with their places, and evidence made from them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from extractors._babel import FIGURE, TABLE
from extractors._sentences import split_sentences
from extractors.claims import normalize
from pipeline.paper import Box, Document, Passage, PassageKind, Section, Table
from pipeline.task import Evidence, TableEvidence, TextEvidence

__all__ = ["Line", "Reading", "label_key", "references_in"]


class Line(NamedTuple):
    """One sentence with where it stands. `order` is its place in the paper."""

    order: int
    passage: int
    page: int
    box: Box
    text: str


_ROMAN: Final = {"i": 1, "v": 5, "x": 10, "l": 50}
_REFERENCE: Final = re.compile(
    rf"\b(?:(?P<table>Tables|TABLES|{TABLE})|Figures|FIGURES|Figs\.|{FIGURE})\s*"
    r"(?P<first>[A-Z]?\.?\d+(?:\.\d+)?|[IVXL]+\b)"
    r"(?:[a-h]\b|\([a-h]\))?(?P<more>(?:\s?(?:,|and|&|–|-)\s?(?:[A-Z]?\.?\d+(?:\.\d+)?[a-h]?|[IVXL]+)\b)*)"
)


def label_key(label: str) -> str:
    """`TABLE II`, `Table 2` and `Tab. 2` are the same table: `table 2`."""
    match = re.match(r"\s*(tab|fig|alg)\w*\.?\s*(\S+?)[.:]?$", label.strip(), re.IGNORECASE)
    if match is None:
        return normalize(label).lower()
    number = match[2]
    if re.fullmatch(r"[IVXL]+", number):
        digits = [_ROMAN[c] for c in number.lower()]
        number = str(sum(-d if d < max([*digits[i + 1 :], 0]) else d for i, d in enumerate(digits)))
    kind = {"tab": "table", "fig": "figure", "alg": "algorithm"}[match[1].lower()]
    return f"{kind} {number.lower()}"


def references_in(text: str) -> frozenset[str]:
    """Keys (see `label_key`) of the tables and figures that a sentence refers to."""
    keys: set[str] = set()
    for match in _REFERENCE.finditer(text):
        kind = "Table" if match["table"] else "Figure"
        for number in [match["first"], *re.findall(r"[A-Z]?\.?\d+(?:\.\d+)?|[IVXL]+", match["more"])]:
            keys.add(label_key(f"{kind} {number}"))
    return frozenset(keys)


class Reading:
    """The sentences of a document, and evidence made from them.

    Args:
        document: stage 2.1's structured reading of one PDF.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self.lines: list[Line] = []
        for number, passage in enumerate(document.passages):
            if passage.kind in (PassageKind.PARAGRAPH, PassageKind.LIST_ITEM, PassageKind.FOOTNOTE):
                for sentence in split_sentences(passage.text):
                    page, box = _place(passage, sentence.start)
                    self.lines.append(Line(len(self.lines), number, page, box, sentence.text))
        self._page_text = dict(self._texts_by_page())

    def section(self, line: Line) -> Section | None:
        """The section that a sentence stands in."""
        return self.document.section_of(self.document.passages[line.passage])

    def section_title(self, line: Line) -> str | None:
        """The title of the section that a sentence stands in."""
        section = self.section(line)
        return None if section is None else section.title

    def quote(self, line: Line) -> TextEvidence:
        """A sentence as evidence."""
        return TextEvidence(page=line.page, box=line.box, quote=line.text, section=self.section_title(line))

    def caption_evidence(self, table: Table) -> TableEvidence:
        """A table as a whole as evidence, quoted by its caption."""
        return TableEvidence(label=table.label, page=table.page, box=table.box, quote=table.caption or table.label)

    def _texts_by_page(self) -> Iterator[tuple[int, list[str]]]:
        pages: dict[int, list[str]] = {page.number: [] for page in self.document.pages}
        for passage in self.document.passages:
            for page in {page for page, _ in passage.boxes}:
                pages.setdefault(page, []).append(passage.text)
        for caption in self.document.captions:
            pages.setdefault(caption.page, []).append(caption.text)
        for table in self.document.tables:
            pages.setdefault(table.page, []).append(table.caption)
        yield from sorted(pages.items())

    def supports(self, evidence: Evidence) -> bool:
        """Does the quote really stand where the evidence says? Drafts are refused where it does not."""
        if isinstance(evidence, TextEvidence):
            return any(evidence.quote in text for text in self._page_text.get(evidence.page, ()))
        if not isinstance(evidence, TableEvidence):
            return False
        for table in self.document.tables:
            if table.label != evidence.label or table.page != evidence.page:
                continue
            if evidence.row is None or evidence.column is None:
                found = evidence.quote in (table.caption, table.label)
            else:
                found = evidence.quote in _cell_text(table, evidence.row, evidence.column)
            if found:
                return True
        return False


def _cell_text(table: Table, row: int, column: int) -> str:
    if row >= len(table.grid) or column >= len(table.grid[row]):
        return ""
    return table.grid[row][column]


def _place(passage: Passage, offset: int) -> tuple[int, Box]:
    """Page and box of a character of a passage that may run over columns and pages: by share of the boxes' area."""
    areas = [max((box.x1 - box.x0) * (box.y1 - box.y0), 1.0) for _, box in passage.boxes]
    point = offset / max(len(passage.text), 1) * sum(areas)
    for (page, box), area in zip(passage.boxes, areas, strict=True):
        if point <= area:
            return page, box
        point -= area
    return passage.boxes[-1]
