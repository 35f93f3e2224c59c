"""From words to visual rows and, within a row, to chunks: the pieces between column gaps.

Non-goal: columns and cells (see `extractors._grid`).
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from extractors._layer import Word
from extractors._quantity import looks_numeric
from pipeline.paper import Box

__all__ = ["Chunk", "Row", "cluster_rows", "join_chunks", "row_pitch", "split_chunks"]

_COLUMN_GAP: Final = 0.46
"""Of the font size: word spaces in tables measure 0.22-0.36, the narrowest column gap 0.50 (tabcolsep 3 pt at 8 pt)."""
_PROSE_GAP: Final = 0.85
"""Between two lower-case words: justified text cells stretch their word spaces up to this."""
_LOWER: Final = re.compile(r"^[a-z]+[,.;]?$")


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
        parts = [self.words[0].text]
        for left, right in zip(self.words, self.words[1:], strict=False):
            tight = right.glued or right.x0 - left.x1 < 0.12 * right.size
            parts.append(right.text if tight else f" {right.text}")
        return "".join(parts)

    @property
    def numeric(self) -> bool:
        return looks_numeric(self.text)


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
            if word.x0 - chunks[-1].x1 < limit:
                chunks[-1].words.append(word)
                continue
        chunks.append(Chunk([word], baseline))
    return chunks


def join_chunks(chunks: Sequence[Chunk]) -> str:
    """The text of a cell: its chunks from top to bottom."""
    return " ".join(chunk.text for chunk in sorted(chunks, key=lambda chunk: (round(chunk.baseline), chunk.x0)))


def row_pitch(rows: Sequence[Row], fullest: int) -> float:
    """The usual distance of two full rows within one band, in points."""
    dense = [row for row in rows if len(row.chunks) > 0.5 * fullest]
    steps = [b.baseline - a.baseline for a, b in pairwise(dense) if a.band == b.band]
    return statistics.median(steps) if steps else 12.0
