"""From lines in reading order to passages: paragraphs, lists, footnotes, equations, references.

Paragraphs are joined across lines, columns and pages. Non-goal: finding floats and furniture; their lines must have
been taken out before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from extractors._layer import TextLine
from extractors._layout import PageLayout
from extractors._text import Vocabulary, squeeze
from pipeline.paper import Box, Passage, PassageKind, SectionKind

__all__ = ["Flow", "build_passages", "find_footnotes"]

_BULLET: Final = re.compile(r"^(?:[•·◦▪■●‣∙⋄⋆▶►–—*✓]|\(?[a-z]\)|\(?[ivx]{1,4}\)|\(?\d{1,2}[.)])\s+\S")
_ENTRY: Final = re.compile(r"^(\[\d{1,3}\]|\[[A-Z][\w+ ,&.-]{1,24}\]|\d{1,3}\.\s)")
_END: Final = re.compile(r"[.?!:;][\"”’')\]]*$")
_NOTE_MARK: Final = re.compile(r"^(\d{1,2}|[*†‡§¶∗]+|[a-z](?=[A-Z]))\s*\S")
_FUNCTIONS: Final = frozenset(
    ("log", "exp", "min", "max", "arg", "argmin", "argmax", "sin", "cos", "tan", "tanh", "var", "cov", "det", "sup",
     "inf", "lim", "softmax", "sigmoid", "relu", "sgn", "sign", "diag")
)  # fmt: skip
_PROSE: Final = re.compile(r"\b[a-z]{4,}\b")
_SYMBOLS: Final = frozenset("=<>≤≥≈≡∼±×·⋅∑∏∫√∂∈∞∥∇→←⊤⊥∪∩⊂⊆∀∃≪≫∝⊗⊕†\ufffd")
_EQUATION_NUMBER: Final = re.compile(r"\(\s*[A-Z]?\.?\d+(?:\.\d+)?[a-z]?\s*\)$")


@dataclass(slots=True)
class Flow:
    """A line of running text with the section it stands in."""

    line: TextLine
    section: int | None
    section_kind: SectionKind | None
    column: int
    footnote: bool = False


@dataclass(slots=True)
class _Open:
    kind: PassageKind
    section: int | None
    lines: list[Flow] = field(default_factory=list)


def find_footnotes(lines: Sequence[TextLine], layout: PageLayout, body: float) -> set[int]:
    """Ids of footnote lines: the last lines of a column, smaller than the body, the first one with a mark."""
    found: set[int] = set()
    for index in range(len(layout.columns)):
        column = sorted(
            (line for line in lines if layout.column_of(line) == index), key=lambda line: line.baseline
        )  # fmt: skip
        small: list[TextLine] = []
        while column and column[-1].size <= body - 0.7:
            small.insert(0, column.pop())
        while small and not _starts_note(small[0]):
            small.pop(0)
        if small and column:
            found.update(map(id, small))
    return found


def _starts_note(line: TextLine) -> bool:
    first = line.words[0]
    raised = first.size < line.size - 0.5 or first.baseline < line.baseline - 1
    return bool(_NOTE_MARK.match(line.text)) and (raised or not first.text[0].isdigit())


def _is_equation(line: TextLine, layout: PageLayout, column: int) -> bool:
    """A displayed formula or a piece of one: set in from the margin, without words but function names."""
    edges = layout.columns[min(column, len(layout.columns) - 1)]
    text = line.text
    words = [word for word in re.findall(r"[^\W\d_]{3,}", text) if word.lower() not in _FUNCTIONS and word.isascii()]
    if re.fullmatch(_EQUATION_NUMBER, text):
        return True
    indented = line.x0 > edges.left + 1.2 * line.size
    symbols = sum(character in _SYMBOLS or "\u0370" <= character <= "\u03ff" for character in text)
    if line.math >= 0.5:
        return indented or not words
    if not indented or len(words) > 2:
        return False
    numbered = bool(_EQUATION_NUMBER.search(text)) and line.x1 > edges.right - 6
    if line.math >= 0.3 or (numbered and (line.math > 0.1 or symbols)):
        return True
    return not words and symbols >= 1 and line.width < 0.9 * (edges.right - edges.left)


class _Assembler:
    """Decides line by line whether the open passage goes on."""

    def __init__(self, layouts: Mapping[int, PageLayout], vocabulary: Vocabulary, body: float) -> None:
        self._layouts = layouts
        self._vocabulary = vocabulary
        self._body = body
        self._pieces: set[int] = set()
        self._hanging = False

    def mark_pieces(self, flows: Sequence[Flow]) -> None:
        """Limits, numerators, equation numbers: short lines without words at the height of a formula next to them."""
        formulas = {
            index for index, flow in enumerate(flows)
            if not flow.footnote and _is_equation(flow.line, self._layouts[flow.line.page], flow.column)
        }  # fmt: skip
        for index, flow in enumerate(flows):
            if index in formulas or len(flow.line.text) > 24 or re.search(r"[A-Za-z]{4}", flow.line.text):
                continue
            box = flow.line.box
            for other in range(max(0, index - 4), min(len(flows), index + 5)):
                near = flows[other]
                if other in formulas and near.line.page == flow.line.page and near.column == flow.column:
                    overlap = min(box.y1, near.line.box.y1) - max(box.y0, near.line.box.y0)
                    if overlap > 0.2 * (box.y1 - box.y0) and near.section == flow.section:
                        self._pieces.add(id(flow.line))
        for before, flow in pairwise(flows):
            beside = before.column == flow.column and abs(before.line.baseline - flow.line.baseline) < self._body
            if beside and re.fullmatch(_EQUATION_NUMBER, flow.line.text) and len(_PROSE.findall(before.line.text)) <= 2:
                self._pieces.add(id(before.line))
        cited = [flow for flow in flows if flow.section_kind is SectionKind.REFERENCES and not flow.footnote]
        inner = sum(flow.line.x0 > self._edges(flow).left + 4 for flow in cited)
        self._hanging = inner > 0.25 * len(cited)

    def kind_of(self, flow: Flow) -> PassageKind:
        if flow.footnote:
            return PassageKind.FOOTNOTE
        if flow.section_kind is SectionKind.REFERENCES:
            return PassageKind.REFERENCE
        if id(flow.line) in self._pieces or _is_equation(flow.line, self._layouts[flow.line.page], flow.column):
            return PassageKind.EQUATION
        if _BULLET.match(flow.line.text):
            return PassageKind.LIST_ITEM
        return PassageKind.PARAGRAPH

    def goes_on(self, passage: _Open, flow: Flow, kind: PassageKind) -> bool:
        """Does the line belong to the open passage?"""
        last = passage.lines[-1]
        if passage.section != flow.section or (kind is PassageKind.LIST_ITEM and not self._is_number(last, flow)):
            return False
        if any((passage.kind is single) != (kind is single) for single in (PassageKind.EQUATION, PassageKind.FOOTNOTE)):
            return False
        same_run = last.line.page == flow.line.page and last.column == flow.column
        step = flow.line.baseline - last.line.baseline
        if kind is PassageKind.EQUATION:
            return same_run and abs(step) < 2.5 * self._body
        if kind is PassageKind.REFERENCE:
            return self._same_entry(passage, flow, same_run, step)
        if (kind is PassageKind.FOOTNOTE and _starts_note(flow.line)) or abs(last.line.size - flow.line.size) > 1.0:
            return False
        close = same_run and -0.5 * self._body < step < 1.38 * self._leading(last, flow)
        return not self._new_paragraph(passage, last, flow) if close else self._resumes(last, flow)

    def _is_number(self, last: Flow, flow: Flow) -> bool:
        """A line of a paragraph that happens to begin with a number (`... in Fig.` / `5. The results`): not a list."""
        edges = self._edges(flow)
        full = last.line.x1 > edges.right - 2 * flow.line.size and last.line.x0 < edges.left + 2 * flow.line.size
        at_margin = abs(flow.line.x0 - edges.left) < 2
        follows = 0 < flow.line.baseline - last.line.baseline < 1.3 * self._leading(last, flow)
        return full and at_margin and follows and flow.line.text[:1].isdigit()

    def _leading(self, last: Flow, flow: Flow) -> float:
        leading = self._layouts[flow.line.page].leading
        return leading * min(1.0, max(last.line.size, flow.line.size) / self._body)

    def _same_entry(self, passage: _Open, flow: Flow, same_run: bool, step: float) -> bool:
        if _ENTRY.match(flow.line.text):
            return False
        first, last = passage.lines[0].line, passage.lines[-1].line
        if _ENTRY.match(first.text):
            return True
        if self._hanging:
            return flow.line.x0 > self._edges(flow).left + 4
        if same_run:
            return step < 1.12 * self._leading(passage.lines[-1], flow)
        return not re.search(r"[.?!][\"”)]*$", last.text)

    def _edges(self, flow: Flow) -> _Edges:
        columns = self._layouts[flow.line.page].columns
        column = columns[min(flow.column, len(columns) - 1)]
        return _Edges(column.left, column.right)

    def _new_paragraph(self, passage: _Open, last: Flow, flow: Flow) -> bool:
        edges, size = self._edges(flow), flow.line.size
        if abs(flow.line.baseline - last.line.baseline) < 0.5 * size:
            return False
        indented = 0.7 * size < flow.line.x0 - last.line.x0 < 5 * size
        ended = bool(_END.search(last.line.text.rstrip()))
        if passage.kind is PassageKind.LIST_ITEM:
            first = passage.lines[0]
            outdent = (flow.line.x0 - edges.left) - (first.line.x0 - self._edges(first).left)
            return outdent < -2 or (outdent < 2 and ended and len(passage.lines) > 1)
        if indented and ended and flow.line.x0 - edges.left > 0.5 * size:
            return True
        if flow.line.words[0].bold and not last.line.words[-1].bold and ended:
            return True
        justified = self._layouts[flow.line.page].justified
        room = edges.right - last.line.x1 - 0.3 * size
        word = flow.line.words[0]
        if flow.line.text[:1].islower():
            return False
        return justified and ended and room > max(word.x1 - word.x0, 2 * size)

    def _resumes(self, last: Flow, flow: Flow) -> bool:
        """After a jump (column, page, float, displayed formula taken out) a sentence that was cut goes on."""
        text = last.line.text.rstrip()
        if re.search(r"[.?!][\"”’)\]]*$", text):
            return False
        return flow.line.text[:1].islower() or text.endswith("-") or not flow.line.words[0].bold

    def finish(self, passage: _Open, number: int, to_page: Callable[[int, Box], Box]) -> Passage | None:
        text = ""
        for flow in passage.lines:
            text = self._vocabulary.join(text, squeeze(flow.line.text))
        text = squeeze(text)
        if not text:
            return None
        boxes: list[tuple[int, int, Box]] = []
        for flow in passage.lines:
            page, column, box = flow.line.page, flow.column, flow.line.box
            if boxes and boxes[-1][:2] == (page, column):
                boxes[-1] = (page, column, boxes[-1][2].union(box))
            else:
                boxes.append((page, column, box))
        return Passage(
            id=f"p{number:04d}",
            section=passage.section,
            kind=passage.kind,
            text=text,
            boxes=tuple((page, to_page(page, box)) for page, _, box in boxes),
        )


@dataclass(frozen=True, slots=True)
class _Edges:
    left: float
    right: float


def build_passages(
    flows: Sequence[Flow], layouts: Mapping[int, PageLayout], vocabulary: Vocabulary, body: float,
    to_page: Callable[[int, Box], Box],
) -> list[Passage]:  # fmt: skip
    """Passages in reading order; a paragraph that a footnote interrupts goes on after it.

    Args:
        flows: running lines in reading order.
        layouts: geometry by page number.
        vocabulary: decides about hyphens.
        body: font size of the running text.
        to_page: maps (page, box in the upright frame) to the page's own frame.
    """
    assembler = _Assembler(layouts, vocabulary, body)
    assembler.mark_pieces(flows)
    passages: list[_Open] = []
    current: dict[bool, _Open] = {}
    for flow in flows:
        kind = assembler.kind_of(flow)
        is_open = current.get(flow.footnote)
        if is_open is not None and assembler.goes_on(is_open, flow, kind):
            is_open.lines.append(flow)
            continue
        fresh = _Open(kind, flow.section, [flow])
        passages.append(fresh)
        current[flow.footnote] = fresh
    finished = (assembler.finish(passage, index + 1, to_page) for index, passage in enumerate(passages))
    return [passage for passage in finished if passage is not None]
