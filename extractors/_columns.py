"""Where the chunks of a row belong: the columns of a table, and the chunks that span several of them.

Non-goal: merging rows into cells and headers (see `extractors._grid`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from extractors._rows import Chunk, Row, row_pitch
from extractors._rules import Rule

__all__ = ["ColumnPlacer", "Span"]

_FULL_ROW: Final = 0.85
"""A body row with this share of the chunks of a full one takes part in finding the columns."""
_WIDER: Final = 0.6
"""Points of off-centre that one more column under a spanner is worth: without it every spanner would cover one."""


_Choice = tuple[float, tuple[tuple[int, int], ...]]
"""Total off-centre in points, and the chosen (first, last) columns."""


@dataclass(slots=True)
class Span:
    """A chunk over the columns `first` to `last`."""

    chunk: Chunk
    first: int
    last: int


class ColumnPlacer:
    """The columns of one table; answers where a chunk stands.

    Args:
        rows: all rows with their chunks and bands.
        partial: rules shorter than the table.
        left: left edge of the table.
        right: right edge of the table.
    """

    def __init__(self, rows: list[Row], partial: list[Rule], left: float, right: float) -> None:
        self._rows = rows
        self._partial = partial
        self._left, self._right = left, right
        body = [row for row in rows if row.band > rows[0].band] or rows
        counts = sorted(len(row.chunks) for row in body)
        self.fullest = counts[int(0.8 * (len(counts) - 1) + 0.5)]
        self.columns = self._find_columns(body)
        self.pitch = row_pitch(rows, self.fullest)

    # --- columns

    def _find_columns(self, body: list[Row]) -> list[list[float]]:
        pieces = sorted(
            [chunk.x0, chunk.x1]
            for row in body
            if self.fullest <= 1 or len(row.chunks) >= max(2, _FULL_ROW * self.fullest)
            for chunk in row.chunks
        )
        columns: list[list[float]] = []
        for x0, x1 in pieces:
            if columns and x0 < columns[-1][1] + 0.3:
                columns[-1][1] = max(columns[-1][1], x1)
            else:
                columns.append([x0, x1])
        # Full rows first: a spanner or the title of a group would otherwise widen the column that its text happens to
        # touch. The header opens no column between those of the body.
        first = self._rows[0].band if self._rows[-1].band > self._rows[0].band else -1
        order = sorted(
            self._rows,
            key=lambda row: (len(row.chunks) < 0.6 * self.fullest, row.band == first,
                             -len(row.chunks) if row.band == first else 0),
        )  # fmt: skip
        again = [row for row in order if row.band == first and len(row.chunks) >= 0.6 * self.fullest]
        for row in order + again:  # once more: labels of groups hang between rows and open their columns late
            for chunk in row.chunks:
                self._fit_column(
                    columns, chunk, alone=len(row.chunks) == 1, opens=row.band != first and not self._is_centred(row)
                )
        return columns

    def _is_centred(self, row: Row) -> bool:
        """A lone text in the middle of the table: the title of the rows below it, in no column."""
        off = row.chunks[0].middle - (self._left + self._right) / 2
        return len(row.chunks) == 1 and not row.chunks[0].numeric and abs(off) < 0.02 * (self._right - self._left)

    @staticmethod
    def _fit_column(columns: list[list[float]], chunk: Chunk, *, alone: bool, opens: bool) -> None:
        """A sparse row may open a column that no full row uses, or widen one up to its neighbours."""
        touched = [i for i, (x0, x1) in enumerate(columns) if chunk.x1 > x0 - 1 and chunk.x0 < x1 + 1]
        if not touched and (opens or not columns or not columns[0][0] < chunk.x0 < columns[-1][1]):
            columns.append([chunk.x0, chunk.x1])
            columns.sort()
        elif len(touched) == 1 and not alone:
            index = touched[0]
            column = columns[index]
            low = columns[index - 1][1] + 0.5 if index else float("-inf")
            high = columns[index + 1][0] - 0.5 if index + 1 < len(columns) else float("inf")
            column[0] = min(column[0], max(chunk.x0, low))
            column[1] = max(column[1], min(chunk.x1, high))

    def under(self, chunk: Chunk) -> list[int]:
        """Columns that the chunk overlaps; the nearest one when it overlaps none."""
        over = [i for i, (x0, x1) in enumerate(self.columns) if min(chunk.x1, x1) - max(chunk.x0, x0) > 0.8]
        return over or [min(range(len(self.columns)), key=lambda i: abs(sum(self.columns[i]) / 2 - chunk.middle))]

    # --- one row

    def place(self, row: Row, *, header: bool) -> tuple[dict[int, list[Chunk]], list[Span]]:
        """Chunks of a row by column, and those that span several."""
        cells: dict[int, list[Chunk]] = {}
        spans: list[Span] = []
        loose: list[Chunk] = []
        for chunk in row.chunks:
            under = self.under(chunk)
            ruled = self._by_rule(row, chunk) if header or len(under) > 1 else None
            if ruled is not None:
                spans.append(ruled)
                continue
            if len(row.chunks) == 1 and not header and self._is_group_title(row, chunk, under):
                under = [0]
            if len(under) > 1:
                loose.append(chunk)
            else:
                cells.setdefault(under[0], []).append(chunk)
        if not loose:
            return cells, spans
        if len(row.chunks) == 1 and not header:
            cells.setdefault(0, []).append(loose[0])
            return cells, spans
        return cells, spans + self._by_centre(row, loose, cells, spans)

    def _is_group_title(self, row: Row, chunk: Chunk, under: list[int]) -> bool:
        """A lone centred line in a band of its own, or between the columns: the title of the rows below."""
        if self._is_centred(row) and not any(min(chunk.x1, x1) - max(chunk.x0, x0) > 0.8 for x0, x1 in self.columns):
            return True
        if under[0] == 0 or len(self.columns) <= 2 or sum(other.band == row.band for other in self._rows) > 1:
            return False
        middle = (self.columns[0][0] + self.columns[-1][1]) / 2
        return abs(chunk.middle - middle) < 0.04 * (self._right - self._left)

    def _by_rule(self, row: Row, chunk: Chunk) -> Span | None:
        for rule in self._partial:
            if not 0 < rule.y - row.baseline < 1.1 * self.pitch:
                continue
            if abs(rule.x0 + rule.x1 - 2 * chunk.middle) >= 0.3 * rule.width:
                continue
            if min(rule.x1, chunk.x1) - max(rule.x0, chunk.x0) <= 0.8 * (chunk.x1 - chunk.x0):
                continue
            covered = [
                i for i, (x0, x1) in enumerate(self.columns) if min(x1, rule.x1) - max(x0, rule.x0) > 0.5 * (x1 - x0)
            ]
            sharing = sum(min(rule.x1, other.x1) - max(rule.x0, other.x0) > 5 for other in row.chunks)
            if len(covered) > 1 and sharing == 1:
                return Span(chunk, covered[0], covered[-1])
            return None
        return None

    def _by_centre(self, row: Row, loose: list[Chunk], cells: dict[int, list[Chunk]], spans: list[Span]) -> list[Span]:
        direct = [Span(chunk, self.under(chunk)[0], self.under(chunk)[-1]) for chunk in loose]
        if len(row.chunks) >= 0.6 * len(self.columns):
            return direct
        used = set(cells) | {i for span in spans for i in range(span.first, span.last + 1)}
        return self.centre(loose, [i for i in range(len(self.columns)) if i not in used]) or direct

    def centre(self, chunks: list[Chunk], free: list[int]) -> list[Span]:
        """Disjoint contiguous ranges of the free columns, from left to right, with the least total off-centre."""
        columns = self.columns

        @cache
        def best(index: int, start: int) -> _Choice:
            if index == len(chunks):
                return 0.0, ()
            chunk = chunks[index]
            winner: _Choice = (float("inf"), ())
            for first in range(start, len(free)):
                for last in range(first, len(free)):
                    if free[last] - free[first] != last - first:
                        break
                    x0, x1 = columns[free[first]][0], columns[free[last]][1]
                    cost = abs((x0 + x1) / 2 - chunk.middle) - _WIDER * (last - first)
                    if chunk.x0 < x0 - 6 or chunk.x1 > x1 + 6:
                        cost += 40
                    rest, tail = best(index + 1, last + 1)
                    if cost + rest < winner[0]:
                        winner = (cost + rest, ((free[first], free[last]), *tail))
            return winner

        _, ranges = best(0, 0)
        return [Span(chunk, *pair) for chunk, pair in zip(chunks, ranges, strict=False)]
