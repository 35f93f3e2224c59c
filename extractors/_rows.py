"""From words to visual rows and, within a row, to chunks: the pieces between column gaps.

Non-goal: columns and cells (see `extractors._grid`).
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

from extractors._layer import Word
from extractors._quantity import looks_numeric
from pipeline.paper import Box

__all__ = ["Chunk", "Row", "cluster_rows", "join_chunks", "row_pitch", "split_at_gutters", "split_chunks"]

_COLUMN_GAP: Final = 0.46
"""Of the font size: word spaces in tables measure 0.22-0.36, the narrowest column gap 0.50 (tabcolsep 3 pt at 8 pt)."""
_PROSE_GAP: Final = 0.85
"""Between two lower-case words: justified text cells stretch their word spaces up to this."""
_LOWER: Final = re.compile(r"^[a-z]+[,.;]?$")
_SPREAD_GAP: Final = 1.9
"""On either side of a plus-minus: columns aligned at it leave up to 1.7 sizes to the shorter number."""
_SIGN_PAIRS: Final = ({"+", "\u2212"}, {"+", "-"}, {"+", "\u2013"})
_ALIGNED: Final = 0.8
"""Points by which the left edges of one column differ (side bearings of letters)."""
_SIGNS: Final = ("+", "-", "\u2212", "\u2013")
_PLAIN: Final = re.compile(r"^\d+(?:\.\d+)?$")


@dataclass(slots=True)
class Chunk:
    """Consecutive words of a row without a column gap."""

    words: list[Word]
    baseline: float

    @property
    def x0(self) -> float:
        return min(word.x0 for word in self.words)

    @property
    def x1(self) -> float:
        return max(word.x1 for word in self.words)

    @property
    def middle(self) -> float:
        return (self.x0 + self.x1) / 2

    @property
    def size(self) -> float:
        return self.words[0].size

    @property
    def box(self) -> Box:
        return Box(self.x0, min(w.y0 for w in self.words), self.x1, max(w.y1 for w in self.words))

    @property
    def text(self) -> str:
        words = _unstacked(self.words)
        parts = [words[0].text]
        for left, right in pairwise(words):
            tight = right.glued or right.x0 - left.x1 < 0.12 * right.size
            parts.append(right.text if tight else f" {right.text}")
        return "".join(parts)

    @property
    def numeric(self) -> bool:
        return looks_numeric(self.text)


def _above(one: Word, other: Word) -> bool:
    """Does `one` stand on top of `other`, as the two parts of an asymmetric uncertainty do?"""
    overlap = min(one.x1, other.x1) - max(one.x0, other.x0)
    return overlap > 0.6 * min(one.x1 - one.x0, other.x1 - other.x0) and one.baseline < other.baseline - 1


def _unstacked(words: list[Word]) -> list[Word]:
    """Words with stacked uncertainties one after the other: `9.6 + - 11.1 9.6` becomes `9.6 +11.1 -9.6`.

    TeX sets both signs at one place and both numbers at the next; read in order, the signs would lose their numbers.
    """
    result = list(words)
    for index in range(len(words) - 3):
        signs, numbers = words[index : index + 2], words[index + 2 : index + 4]
        if {word.text for word in signs} not in _SIGN_PAIRS or not all(_PLAIN.match(word.text) for word in numbers):
            continue
        level = sorted(numbers, key=lambda word: word.baseline)
        if abs(signs[0].x0 - signs[1].x0) < 2 and _above(*level):
            plus = next(word for word in signs if word.text == "+")
            minus = next(word for word in signs if word.text != "+")
            result[index : index + 4] = [
                replace(plus, text=f"+{level[0].text}", x1=level[0].x1, glued=False),
                replace(minus, text=f"{minus.text}{level[1].text}", x0=plus.x1 + 1.0, x1=level[1].x1, glued=False),
            ]
            return _unstacked(result)
    return result


@dataclass(slots=True)
class Row:
    """A visual row."""

    baseline: float
    words: list[Word]
    chunks: list[Chunk] = field(default_factory=list)
    band: int = 0
    """Number of full rules above it."""


def cluster_rows(words: Sequence[Word]) -> list[Row]:
    """Cluster words by baseline; small raised or lowered words join the row they touch."""
    if not words:
        return []
    typical = statistics.median(word.size for word in words)
    large = [word for word in words if word.size > 0.8 * typical]
    rows: list[Row] = []
    for word in sorted(large or words, key=lambda word: (word.baseline, word.x0)):
        near = next((row for row in rows[-4:][::-1] if abs(row.baseline - word.baseline) < 0.28 * typical), None)
        if near is None:
            rows.append(Row(word.baseline, [word]))
        else:
            near.words.append(word)
    placed = {id(word) for row in rows for word in row.words}
    for word in words:
        if id(word) not in placed:
            _attach_script(word, rows, typical)
    for row in rows:
        row.words.sort(key=lambda word: (round(word.x0 / 1.5), word.baseline, word.x0))
    return sorted(rows, key=lambda row: row.baseline)


def _attach_script(word: Word, rows: list[Row], typical: float) -> None:
    close = [row for row in rows if abs(row.baseline - word.baseline) < 0.62 * typical]
    touching = [
        row for row in close
        if any(-1 <= word.x0 - other.x1 < 2.5 or -1 <= other.x0 - word.x1 < 2.5 for other in row.words)
    ] or close  # fmt: skip
    if touching:
        min(touching, key=lambda row: abs(row.baseline - word.baseline)).words.append(word)
    else:
        rows.append(Row(word.baseline, [word]))


def split_chunks(words: Sequence[Word], baseline: float, *, gap: float = _COLUMN_GAP) -> list[Chunk]:
    """Split the sorted words of a row at gaps of at least `gap` font sizes."""
    chunks: list[Chunk] = []
    for word in words:
        if chunks:
            last = chunks[-1].words[-1]
            both_prose = gap < _PROSE_GAP and _LOWER.match(word.text) and _LOWER.match(last.text)
            limit = (_PROSE_GAP if both_prose else gap) * max(word.size, last.size)
            if _is_spread(chunks[-1].words, word):
                limit = max(limit, _SPREAD_GAP * word.size)
            if word.x0 - chunks[-1].x1 < limit:
                chunks[-1].words.append(word)
                continue
        chunks.append(Chunk([word], baseline))
    return chunks


def _is_spread(before: Sequence[Word], word: Word) -> bool:
    """Does a plus-minus stand between a number and `word`, or is `word` one after a number?"""
    last = before[-1].text
    if last in _SIGNS and any(abs(before[-1].baseline - other.baseline) > 1 for other in before[:-1]):
        return bool(_PLAIN.match(word.text))  # a raised or lowered sign: one half of an asymmetric uncertainty
    if word.text in ("±", "+/-") or last in ("±", "+/-"):
        number = word if last in ("±", "+/-") else before[-1]
        return bool(re.match(r"^[(\[]?[<>~]?[+\-\u2212]?\d", number.text))
    return False


def split_at_gutters(rows: Sequence[Row]) -> None:
    """Split chunks where most rows begin a column: there the gap of a long cell can be as narrow as a word space.

    A place counts when two rows and more begin a chunk there after a real column gap, seven rows of ten that reach so
    far begin a word there, and no word lies across it. Words after an equal beginning (`BERT base`, `BERT large`) are
    aligned as well, but without a column gap.
    """
    fullest = max((len(row.chunks) for row in rows), default=0)
    rows = [row for row in rows if len(row.chunks) >= 0.6 * fullest]  # a text over several columns crosses them all
    starts = sorted({chunk.x0 for row in rows for chunk in row.chunks[1:]})
    for x in starts:
        begun = [row for row in rows if any(abs(chunk.x0 - x) < _ALIGNED for chunk in row.chunks[1:])]
        over = [row for row in rows if row.words and min(w.x0 for w in row.words) < x < max(w.x1 for w in row.words)]
        at_place = [row for row in over if any(abs(word.x0 - x) < _ALIGNED for word in row.words)]
        crossed = any(word.x0 < x - _ALIGNED and word.x1 > x + 0.2 for row in rows for word in row.words)
        if len(begun) < 2 or len(at_place) < max(4, 0.7 * len(over)) or crossed:
            continue
        for row in at_place:
            row.chunks = [part for chunk in row.chunks for part in _halves(chunk, x)]


def _halves(chunk: Chunk, x: float) -> list[Chunk]:
    place = next((i for i, word in enumerate(chunk.words) if abs(word.x0 - x) < _ALIGNED), 0)
    if place == 0 or chunk.words[place].glued or chunk.words[place].x0 - chunk.words[place - 1].x1 < 0.5:
        return [chunk]
    return [Chunk(chunk.words[:place], chunk.baseline), Chunk(chunk.words[place:], chunk.baseline)]


def join_chunks(chunks: Sequence[Chunk]) -> str:
    """The text of a cell: its chunks from top to bottom."""
    return " ".join(chunk.text for chunk in sorted(chunks, key=lambda chunk: (round(chunk.baseline), chunk.x0)))


def row_pitch(rows: Sequence[Row], fullest: int) -> float:
    """The usual distance of two full rows within one band, in points."""
    dense = [row for row in rows if len(row.chunks) > 0.5 * fullest]
    steps = [b.baseline - a.baseline for a, b in pairwise(dense) if a.band == b.band]
    return statistics.median(steps) if steps else 12.0
