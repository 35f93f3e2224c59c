"""A document read as blocks and sentences, each with the role that its heading gives it.

A *block* is what a person would call a subsection: the text under a numbered heading, or under a bold phrase that opens
a paragraph (`Overall performance. We first ...`). Roles: `evaluation`, `setup`, `method`, `framing` (abstract,
introduction, conclusion: results are repeated there, not made), `skip` (related work, references).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from extractors._sentences import run_in_heading, split_sentences
from extractors._vocabulary import ROLE_TITLES
from extractors.claims import normalize
from pipeline.paper import Box, Document, Passage, PassageKind, Section, SectionKind, Table
from pipeline.task import Evidence, TableEvidence, TextEvidence

__all__ = ["Block", "Line", "Reading", "label_key", "references_in", "role_of_title"]


class Line(NamedTuple):
    """One sentence with where it stands. `order` is its place in the paper."""

    order: int
    block: int
    passage: int
    page: int
    box: Box
    text: str


class Block(NamedTuple):
    """A subsection or a paragraph with a run-in heading."""

    order: int
    section: int | None
    title: str
    role: str
    path: tuple[int, ...]
    """Indices of the section and its ancestors, outermost first."""


_ROMAN: Final = {"i": 1, "v": 5, "x": 10, "l": 50}
_REFERENCE: Final = re.compile(
    r"\b(?P<kind>Tables?|Tab\.|TABLES?|Figures?|Figs?\.|FIGURES?)\s*(?P<first>[A-Z]?\.?\d+(?:\.\d+)?|[IVXL]+\b)"
    r"(?:[a-h]\b|\([a-h]\))?(?P<more>(?:\s?(?:,|and|&|–|-)\s?(?:[A-Z]?\.?\d+(?:\.\d+)?[a-h]?|[IVXL]+)\b)*)"
)


_CHECKLIST: Final = re.compile(r"\b[Tt]he answer (?:is )?\[?N/?A\]? means\b")


def role_of_title(title: str) -> str | None:
    """What a heading says its section is for; None when it does not say."""
    for role, pattern in ROLE_TITLES:
        if pattern.search(title):
            return role
    return None


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
        kind = "Table" if match["kind"].lower().startswith("tab") else "Figure"
        for number in [match["first"], *re.findall(r"[A-Z]?\.?\d+(?:\.\d+)?|[IVXL]+", match["more"])]:
            keys.add(label_key(f"{kind} {number}"))
    return frozenset(keys)


class Reading:
    """The blocks and sentences of a document, and evidence made from them.

    Args:
        document: stage 2.1's structured reading of one PDF.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self._roles = [self._section_role(index) for index in range(len(document.sections))]
        self.blocks: list[Block] = []
        self.lines: list[Line] = []
        self.passage_block: list[int] = []
        for number, passage in enumerate(document.passages):
            self.passage_block.append(self._enter(passage))
            if passage.kind in (PassageKind.PARAGRAPH, PassageKind.LIST_ITEM, PassageKind.FOOTNOTE):
                for sentence in split_sentences(passage.text):
                    page, box = _place(passage, sentence.start)
                    self.lines.append(
                        Line(len(self.lines), self.passage_block[-1], number, page, box, sentence.text)
                    )  # fmt: skip
        self._skip_checklist()
        self._page_text = dict(self._texts_by_page())

    def _skip_checklist(self) -> None:
        """Skip a conference's checklist: it stands behind the paper and instructs its authors."""
        first = next((line.block for line in self.lines if _CHECKLIST.search(line.text)), None)
        if first is not None:
            self.blocks = [b._replace(role="skip") if b.order >= first else b for b in self.blocks]

    def _section_path(self, index: int) -> tuple[int, ...]:
        sections = self.document.sections
        path = [index]
        for earlier in range(index - 1, -1, -1):
            if sections[earlier].level < sections[path[0]].level:
                path.insert(0, earlier)
        return tuple(path)

    def _section_role(self, index: int) -> str:
        sections = self.document.sections
        own = sections[index]
        if own.kind is SectionKind.REFERENCES:
            return "skip"
        if own.kind is SectionKind.ABSTRACT:
            return "framing"
        for step in reversed(self._section_path(index)):
            section: Section = sections[step]
            if normalize(section.title).lower() == normalize(self.document.title).lower():
                continue
            role = role_of_title(section.title)
            if role is not None:
                return role
        return "method"

    def _enter(self, passage: Passage) -> int:
        """The block that `passage` belongs to; a new one where its section or its run-in heading begins one."""
        section = passage.section
        heading = run_in_heading(passage.text) if passage.kind is PassageKind.PARAGRAPH else None
        current = self.blocks[-1] if self.blocks else None
        if current is not None and current.section == section and heading is None:
            return current.order
        role = "framing" if section is None else self._roles[section]
        title = "" if section is None else self.document.sections[section].title
        if heading is not None:
            title = heading
            role = (role_of_title(heading) or role) if role not in ("skip", "framing") else role
            if re.match(r"limitations?\b|contributions?\b|discussion\b", heading, re.IGNORECASE):
                role = "framing"
        elif section is not None and re.match(r"appendix\b|[A-Z]?\s?appendix", title, re.IGNORECASE):
            role = "method"
        path = () if section is None else self._section_path(section)
        self.blocks.append(Block(len(self.blocks), section, title, role, path))
        return len(self.blocks) - 1

    def role(self, line: Line) -> str:
        """The role of the block a sentence stands in."""
        return self.blocks[line.block].role

    def block_lines(self, block: int) -> list[Line]:
        """The sentences of a block, in order."""
        return [line for line in self.lines if line.block == block]

    def section_title(self, block: int) -> str | None:
        """The title of the numbered section around a block."""
        section = self.blocks[block].section
        return None if section is None else self.document.sections[section].title

    def quote(self, line: Line) -> TextEvidence:
        """A sentence as evidence."""
        return TextEvidence(page=line.page, box=line.box, quote=line.text, section=self.section_title(line.block))

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
