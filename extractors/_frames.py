"""Frames of tables: runs of equally wide horizontal rules, and what belongs to them though it stands outside.

Non-goal: which caption owns a frame, and the grid inside it (see `extractors.tables` and `extractors._grid`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from extractors._captions import FoundCaption
from extractors._page_text import PageText, Word
from extractors._rows import Chunk, Row, cluster_rows, split_chunks
from extractors._rules import Rule
from pipeline.paper import Box

__all__ = [
    "NARROWEST", "REACH", "Frame", "TablePage", "find_frames", "grown", "inner_rules", "is_beside", "nearest_frame",
    "rows_of", "split_underlines",
]  # fmt: skip

REACH: Final = 45.0
"""Points between a caption and its frame; measured on 25 + 20 tables: at most 31."""
NARROWEST: Final = 45.0
"""Points; shorter lines belong to single cells."""


@dataclass(slots=True)
class TablePage:
    """What is needed of one page."""

    text: PageText
    rules: Sequence[Rule]
    captions: Sequence[FoundCaption]
    reader: str = "layer"
    """`layer` or `ocr`: tables from OCR are less certain."""


@dataclass(slots=True)
class Frame:
    """Equally wide rules with text between the first and the last."""

    rules: list[Rule]

    @property
    def box(self) -> Box:
        """From the first rule to the last."""
        return Box(self.rules[0].x0, self.rules[0].y, self.rules[0].x1, self.rules[-1].y)


def rows_of(page: PageText) -> list[Row]:
    """The lines of a page, each with its words gathered into chunks as wide gaps part them."""
    rows = cluster_rows(page.words())
    for row in rows:
        row.chunks = split_chunks(row.words, row.baseline, gap=1.2)
    return rows


def find_frames(page: TablePage, rows: Sequence[Row]) -> list[Frame]:
    """Runs of rules with equal ends, not interrupted by a caption or by three full lines of prose."""
    frames: list[Frame] = []
    for rule in page.rules:
        if rule.width < NARROWEST:
            continue
        for frame in reversed(frames):
            first, last = frame.rules[0], frame.rules[-1]
            if abs(first.x0 - rule.x0) > 5 or abs(first.x1 - rule.x1) > 5 or rule.y <= last.y + 1:
                continue
            if not _interrupted(page, rows, last, rule):
                frame.rules.append(rule)
                break
        else:
            frames.append(Frame([rule]))
    return [
        frame for frame in frames
        if len(frame.rules) > 1 and any(
            frame.box.y0 < row.baseline < frame.box.y1 and any(
                frame.box.x0 - 4 < chunk.middle < frame.box.x1 + 4 for chunk in row.chunks)
            for row in rows)
    ]  # fmt: skip


def _interrupted(page: TablePage, rows: Sequence[Row], upper: Rule, lower: Rule) -> bool:
    for caption in page.captions:
        top = caption.lines[0].box.y0 + 5
        if upper.y - 2 < top < lower.y and caption.box.x0 < upper.x1 and caption.box.x1 > upper.x0:
            return True
    prose = 0
    for row in rows:
        if upper.y < row.baseline < lower.y:
            prose += sum(
                upper.x0 - 3 <= chunk.x0 and chunk.x1 <= upper.x1 + 3 and chunk.x1 - chunk.x0 > 0.93 * upper.width
                for chunk in row.chunks
            )
    return prose >= 3


def _gap(caption: FoundCaption, frame: Frame, *, below: bool) -> float | None:
    """Distance from the caption to a frame below (or above) it; None when they do not face each other."""
    box = frame.box
    overlap = min(box.x1, caption.box.x1) - max(box.x0, caption.box.x0)
    if overlap < 0.4 * min(box.x1 - box.x0, caption.box.x1 - caption.box.x0):
        return None
    gap = box.y0 - caption.box.y1 if below else caption.box.y0 - box.y1
    return gap if -6 < gap < REACH else None


def nearest_frame(caption: FoundCaption, frames: Sequence[Frame], *, below: bool) -> Frame | None:
    """The frame next to a caption, below it or above it; None where none is within reach."""
    gaps = [
        (gap, index) for index, frame in enumerate(frames) if (gap := _gap(caption, frame, below=below)) is not None
    ]
    return frames[min(gaps)[1]] if gaps else None


def inner_rules(page: TablePage, box: Box) -> list[Rule]:
    """Rules inside a frame that do not cross all of it."""
    return [
        rule for rule in page.rules
        if box.y0 < rule.y < box.y1 and rule.x0 > box.x0 - 3 and rule.x1 < box.x1 + 3
        and rule.width < 0.97 * (box.x1 - box.x0)
    ]  # fmt: skip


def grown(frame: Frame, rows: Sequence[Row], page: TablePage, caption: FoundCaption) -> Frame:
    """A frame with the header above its first rule and the rows under its last one, where those rules are missing.

    Physics journals set neither a top nor a bottom rule: then the first band holds values instead of headers. Word's
    tables have one rule under the header and one at the end: then the header stands between caption and frame.
    """
    box = frame.box
    taken = {id(word) for caption in page.captions for line in caption.lines for word in line.words}
    inside = [(row.baseline, chunks) for row in rows if (chunks := _cells_between(row, box.x0, box.x1, taken))]
    first = [chunks for baseline, chunks in inside if box.y0 < baseline < frame.rules[1].y]
    numeric = [sum(chunk.numeric for chunk in chunks) >= 0.5 * len(chunks) for chunks in first]
    rules = list(frame.rules)
    between = len(frame.rules) == 2 and 0 < box.y0 - caption.box.y1 < REACH
    if (len(first) >= 2 and sum(numeric) > 0.5 * len(numeric)) or between:
        edge = box.y0
        for baseline, chunks in reversed(inside):
            if baseline < edge and edge - baseline < 1.9 * chunks[0].size and len(chunks) >= 2:
                edge = baseline - chunks[0].size
        if edge < box.y0:
            rules.insert(0, Rule(box.x0, box.x1, edge))
    edge = box.y1
    for baseline, chunks in inside:
        values = sum(chunk.numeric for chunk in chunks)
        if baseline > edge and baseline - edge < 1.9 * chunks[0].size and values >= max(2, 0.5 * len(chunks)):
            edge = baseline + 0.4 * chunks[0].size
    return Frame([*rules, Rule(box.x0, box.x1, edge)] if edge > box.y1 else rules)


def _cells_between(row: Row, left: float, right: float, taken: set[int]) -> list[Chunk]:
    """Pieces of a row between two edges; none when the row goes on beyond them or belongs to a caption."""
    words = [word for word in row.words if left - 4 < word.middle < right + 4 and id(word) not in taken]
    return split_chunks(words, row.baseline)


def is_beside(caption: FoundCaption, first: Frame, other: Frame) -> bool:
    """A sub-table at the same height under the same caption."""
    a, b = first.box, other.box
    if abs(a.y0 - b.y0) > 8 or not (b.x0 > a.x1 + 3 or b.x1 < a.x0 - 3):
        return False
    return b.x0 > caption.box.x0 - 30 and b.x1 < caption.box.x1 + 30


def split_underlines(rules: Sequence[Rule], words: Sequence[Word]) -> tuple[list[Rule], list[Rule]]:
    """(underlines of cell values, rules of the table): an underline hugs a word and is as wide as it."""
    underlines: list[Rule] = []
    others: list[Rule] = []
    for rule in rules:
        hugged = [
            word for word in words
            if 0 < rule.y - word.baseline < 0.3 * word.size and min(rule.x1, word.x1) - max(rule.x0, word.x0) > 1
        ]  # fmt: skip
        wide = max((w.x1 for w in hugged), default=0) - min((w.x0 for w in hugged), default=0)
        (underlines if hugged and abs(wide - rule.width) < 3 else others).append(rule)
    return underlines, others
