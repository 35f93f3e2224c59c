"""From words and rules to a grid of cells: columns, header levels with spanners, wrapped cells, vertical spans.

Vertical lines are not needed. The columns are the union of what the fullest body rows occupy; a header cell over
several columns takes the rule under it (cmidrule) or, without one, the column range over which it is best centred; a
label between rows takes the group of rows over which it is centred. Non-goal: finding tables (see `extractors.tables`).
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from extractors._layer import Word
from extractors._quantity import parse_quantity
from extractors._rows import Chunk, Row, cluster_rows, join_chunks, row_pitch, split_chunks
from extractors._rules import Rule

__all__ = ["Grid", "GridCell", "build_grid"]

_FULL_ROW: Final = 0.85
"""A body row with this share of the chunks of a full one takes part in finding the columns."""
_WIDER: Final = 0.6
"""Points of off-centre that one more column under a spanner is worth: without it every spanner would cover one."""


_Choice = tuple[float, tuple[tuple[int, int], ...]]
"""Total off-centre in points, and the chosen (first, last) columns."""


@dataclass(slots=True)
class GridCell:
    """A cell with the chunks it is made of."""

    row: int
    column: int
    chunks: list[Chunk]
    row_span: int = 1
    column_span: int = 1

    @property
    def text(self) -> str:
        return join_chunks(self.chunks)


@dataclass(slots=True)
class Grid:
    """Cells by position."""

    rows: int
    columns: int
    cells: list[GridCell]
    header_rows: int

    def texts(self) -> list[list[str]]:
        """The rectangular grid of strings; a spanning cell occurs once, top left."""
        table = [[""] * self.columns for _ in range(self.rows)]
        for cell in self.cells:
            old = table[cell.row][cell.column]
            table[cell.row][cell.column] = f"{old} {cell.text}" if old else cell.text
        return table


@dataclass(slots=True)
class _Span:
    chunk: Chunk
    first: int
    last: int


def build_grid(words: Sequence[Word], full: Sequence[Rule], partial: Sequence[Rule]) -> Grid | None:
    """The grid inside a frame of rules.

    Args:
        words: all words of the page (upright frame); those inside the frame are used.
        full: rules over the whole width from top to bottom; at least the top and the bottom one.
        partial: shorter rules inside the frame.

    Returns:
        None when there is no text inside.
    """
    left, right, top, bottom = full[0].x0, full[0].x1, full[0].y, full[-1].y
    inside = [w for w in words if top < w.baseline < bottom + 1 and left - 4 < w.middle < right + 4]
    rows = cluster_rows(inside)
    if not rows:
        return None
    separators = list(full[1:])
    if len(full) == 2:
        wide = [rule for rule in partial if rule.x1 > right - 4 and rule.width > 0.5 * (right - left)]
        separators = wide[:1] + separators
    for row in rows:
        row.chunks = split_chunks(row.words, row.baseline)
        row.band = sum(rule.y < row.baseline - 0.5 for rule in separators)
    if len({row.band for row in rows}) == 1:
        _band_by_content(rows)
    inner = [rule for rule in partial if rule not in separators]
    return _Builder(rows, inner, left, right).build()


def _band_by_content(rows: list[Row]) -> None:
    """No rule under the header: it ends before the first row that is mostly numbers."""
    numeric = [sum(chunk.numeric for chunk in row.chunks) >= 0.5 * len(row.chunks) > 0 for row in rows]
    first = next((index for index, value in enumerate(numeric) if value), 0)
    if 0 < first <= 3:
        for row in rows[first:]:
            row.band += 1


class _Builder:
    """Builds one grid; the state is what all steps share: rows, columns, rules."""

    def __init__(self, rows: list[Row], partial: list[Rule], left: float, right: float) -> None:
        self._rows = rows
        self._partial = partial
        self._left, self._right = left, right
        body = [row for row in rows if row.band > rows[0].band] or rows
        counts = sorted(len(row.chunks) for row in body)
        self._fullest = counts[int(0.85 * (len(counts) - 1) + 0.5)]
        self._columns = self._find_columns(body)
        self._pitch = row_pitch(rows, self._fullest)
        self._table: list[dict[int, GridCell]] = []

    # --- columns

    def _find_columns(self, body: list[Row]) -> list[list[float]]:
        pieces = sorted(
            [chunk.x0, chunk.x1]
            for row in body
            if self._fullest <= 1 or len(row.chunks) >= max(2, _FULL_ROW * self._fullest)
            for chunk in row.chunks
        )
        columns: list[list[float]] = []
        for x0, x1 in pieces:
            if columns and x0 < columns[-1][1] + 0.3:
                columns[-1][1] = max(columns[-1][1], x1)
            else:
                columns.append([x0, x1])
        for row in self._rows:
            for chunk in row.chunks:
                self._fit_column(columns, chunk, alone=len(row.chunks) == 1)
        return columns

    @staticmethod
    def _fit_column(columns: list[list[float]], chunk: Chunk, *, alone: bool) -> None:
        """A sparse row may open a column that no full row uses, or widen one up to its neighbours."""
        touched = [i for i, (x0, x1) in enumerate(columns) if chunk.x1 > x0 - 1 and chunk.x0 < x1 + 1]
        if not touched:
            columns.append([chunk.x0, chunk.x1])
            columns.sort()
        elif len(touched) == 1 and not alone:
            index = touched[0]
            column = columns[index]
            low = columns[index - 1][1] + 0.5 if index else float("-inf")
            high = columns[index + 1][0] - 0.5 if index + 1 < len(columns) else float("inf")
            column[0] = min(column[0], max(chunk.x0, low))
            column[1] = max(column[1], min(chunk.x1, high))

    def _under(self, chunk: Chunk) -> list[int]:
        """Columns that the chunk overlaps; the nearest one when it overlaps none."""
        over = [i for i, (x0, x1) in enumerate(self._columns) if min(chunk.x1, x1) - max(chunk.x0, x0) > 0.8]
        return over or [min(range(len(self._columns)), key=lambda i: abs(sum(self._columns[i]) / 2 - chunk.middle))]

    # --- one row

    def _place(self, row: Row, *, header: bool) -> tuple[dict[int, list[Chunk]], list[_Span]]:
        """Chunks of a row by column, and those that span several."""
        cells: dict[int, list[Chunk]] = {}
        spans: list[_Span] = []
        loose: list[Chunk] = []
        for chunk in row.chunks:
            under = self._under(chunk)
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
        """A lone centred line in a band of its own: the title of the rows below."""
        if under[0] == 0 or len(self._columns) <= 2 or sum(other.band == row.band for other in self._rows) > 1:
            return False
        middle = (self._columns[0][0] + self._columns[-1][1]) / 2
        return abs(chunk.middle - middle) < 0.04 * (self._right - self._left)

    def _by_rule(self, row: Row, chunk: Chunk) -> _Span | None:
        for rule in self._partial:
            if not 0 < rule.y - row.baseline < 1.1 * self._pitch:
                continue
            if abs(rule.x0 + rule.x1 - 2 * chunk.middle) >= 0.3 * rule.width:
                continue
            if min(rule.x1, chunk.x1) - max(rule.x0, chunk.x0) <= 0.8 * (chunk.x1 - chunk.x0):
                continue
            covered = [
                i for i, (x0, x1) in enumerate(self._columns) if min(x1, rule.x1) - max(x0, rule.x0) > 0.5 * (x1 - x0)
            ]
            sharing = sum(min(rule.x1, other.x1) - max(rule.x0, other.x0) > 5 for other in row.chunks)
            if len(covered) > 1 and sharing == 1:
                return _Span(chunk, covered[0], covered[-1])
            return None
        return None

    def _by_centre(
        self, row: Row, loose: list[Chunk], cells: dict[int, list[Chunk]], spans: list[_Span]
    ) -> list[_Span]:
        direct = [_Span(chunk, self._under(chunk)[0], self._under(chunk)[-1]) for chunk in loose]
        if len(row.chunks) >= 0.6 * len(self._columns):
            return direct
        used = set(cells) | {i for span in spans for i in range(span.first, span.last + 1)}
        return self._centre(loose, [i for i in range(len(self._columns)) if i not in used]) or direct

    def _centre(self, chunks: list[Chunk], free: list[int]) -> list[_Span]:
        """Disjoint contiguous ranges of the free columns, from left to right, with the least total off-centre."""
        columns = self._columns

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
        return [_Span(chunk, *pair) for chunk, pair in zip(chunks, ranges, strict=False)]

    # --- bands

    def build(self) -> Grid:
        """Header band first, then every band of the body."""
        bands = sorted({row.band for row in self._rows})
        header_rows = 0
        ruled = self._is_ruled(bands)
        for band in bands:
            rows = [row for row in self._rows if row.band == band]
            if band == bands[0] and len(bands) > 1:
                self._header(rows)
                header_rows = len(self._table)
            elif ruled:
                self._one_row(rows)
            else:
                self._body(rows)
        cells = [cell for line in self._table for _, cell in sorted(line.items())]
        return Grid(len(self._table), len(self._columns), cells, header_rows)

    def _header(self, rows: list[Row]) -> None:
        """Wrapped lines of one header merge; spanners make levels."""
        count = len(self._columns)
        placed = [self._place(row, header=True) for row in rows]
        leaves: list[list[Chunk]] = [[] for _ in range(count)]
        spans: list[_Span] = []
        for cells, found in placed:
            spans.extend(found)
            for column, chunks in cells.items():
                leaves[column].extend(chunks)
        lowest = rows[-1].baseline
        for row, (cells, _) in zip(rows[:-1], placed[:-1], strict=True):
            spans.extend(self._implied_spanners(row, cells, leaves, lowest))
        levels = sorted({round(span.chunk.baseline) for span in spans})
        lines: list[dict[int, GridCell]] = [{} for _ in range(len(levels) + 1)]
        for span in spans:
            level = levels.index(round(span.chunk.baseline))
            _add(lines[level], GridCell(0, span.first, [span.chunk], 1, span.last - span.first + 1))
        for column in range(count):
            self._header_column(column, leaves[column], spans, levels, lines, lowest)
        for line in lines:
            if line:
                self._append(line)

    def _implied_spanners(
        self, row: Row, cells: dict[int, list[Chunk]], leaves: list[list[Chunk]], lowest: float
    ) -> list[_Span]:
        """A spanner without a rule: columns beside it have a leaf on the lowest line and nothing above."""
        candidates = [
            chunks[0] for column, chunks in sorted(cells.items())
            if any(chunk.baseline > row.baseline + 2 for chunk in leaves[column])
        ]  # fmt: skip
        known = {id(chunk) for chunk in candidates}
        free = [
            column for column, chunks in enumerate(leaves)
            if any(abs(chunk.baseline - lowest) < 2 for chunk in chunks)
            and (all(chunk.baseline >= row.baseline + 2 for chunk in chunks) or any(id(c) in known for c in chunks))
        ]  # fmt: skip
        if not candidates or len(free) <= len(candidates):
            return []
        spans = []
        for span in self._centre(candidates, free):
            if span.last > span.first and any(chunk is not span.chunk for chunk in leaves[span.first]):
                spans.append(span)
                for chunks in leaves:
                    chunks[:] = [chunk for chunk in chunks if chunk is not span.chunk]
        return spans

    @staticmethod
    def _header_column(
        column: int, chunks: list[Chunk], spans: list[_Span], levels: list[int],
        lines: list[dict[int, GridCell]], lowest: float,
    ) -> None:  # fmt: skip
        parts: dict[int, list[Chunk]] = {}
        for chunk in chunks:
            above = sum(
                level < chunk.baseline - 1
                and any(round(s.chunk.baseline) == level and s.first <= column <= s.last for s in spans)
                for level in levels
            )
            parts.setdefault(above, []).append(chunk)
        for level, members in parts.items():
            at_bottom = all(abs(chunk.baseline - lowest) < 2 for chunk in members)
            target = len(levels) if len(parts) == 1 and (level or at_bottom) else level
            span = 1 if target else (len(levels) + 1 if len(parts) == 1 else 1)
            _add(lines[target], GridCell(0, column, members, span))

    def _is_ruled(self, bands: list[int]) -> bool:
        """A rule after every row: three bands or more in the body, none with two lines that hold values."""
        body = [[row for row in self._rows if row.band == band] for band in bands[1:]]
        if len(body) < 3 or all(len(rows) == 1 for rows in body):
            return False
        return all(len(rows) <= 6 and sum(self._has_value(row) for row in rows) <= 1 for rows in body)

    def _has_value(self, row: Row) -> bool:
        return any(chunk.numeric and self._under(chunk)[0] > 0 for chunk in row.chunks)

    def _one_row(self, rows: list[Row]) -> None:
        line: dict[int, GridCell] = {}
        for row in rows:
            cells, spans = self._place(row, header=False)
            for column, chunks in cells.items():
                _add(line, GridCell(0, column, chunks))
            for span in spans:
                _add(line, GridCell(0, span.first, [span.chunk], 1, span.last - span.first + 1))
        self._append(line)

    def _append(self, line: dict[int, GridCell]) -> None:
        for cell in line.values():
            cell.row = len(self._table)
        self._table.append(line)

    def _body(self, rows: list[Row]) -> None:
        lines: list[dict[int, GridCell]] = []
        floating: list[tuple[float, dict[int, list[Chunk]]]] = []
        for index, row in enumerate(rows):
            cells, spans = self._place(row, header=False)
            line = {column: GridCell(0, column, chunks) for column, chunks in cells.items()}
            for span in spans:
                _add(line, GridCell(0, span.first, [span.chunk], 1, span.last - span.first + 1))
            if lines and not spans and self._continues(lines[-1], line, row):
                for cell in line.values():
                    _add(lines[-1], cell)
            elif self._floats(rows, index):
                floating.append((len(lines) - 0.5, cells))
            else:
                lines.append(line)
        for column in range(len(self._columns)):
            self._vertical_spans(column, lines, floating)
        for line in lines:
            self._append(line)

    def _continues(self, above: dict[int, GridCell], line: dict[int, GridCell], row: Row) -> bool:
        """Is the row the rest of wrapped cells: text whose first word would not have fitted on the line above?"""
        last = max(chunk.baseline for cell in above.values() for chunk in cell.chunks)
        # Wrapped lines measured 1.15-1.65 sizes apart; rows of wrapped cells 1.9 and more.
        if row.baseline - last >= 1.75 * max(chunk.size for chunk in row.chunks):
            return False
        for column, cell in line.items():
            if column not in above:
                return False
            if all(chunk.numeric for chunk in cell.chunks) and any(chunk.numeric for chunk in above[column].chunks):
                return False
            end = max(above[column].chunks, key=lambda chunk: (chunk.baseline, chunk.x1))
            first = cell.chunks[0].words[0]
            needs = end.x1 + 0.28 * first.size + first.x1 - first.x0
            if needs <= self._columns[column][1] - 1 and end.text[-1] not in "-/":
                return False
        lower = any(cell.text[:1].islower() for column, cell in line.items() if column > 0)
        return 0 not in line or lower

    def _floats(self, rows: list[Row], index: int) -> bool:
        """Does the row hang between two others: a label centred on a group of an even number of rows?"""
        around = [k for k in (index - 1, index + 1) if 0 <= k < len(rows)]
        if not around:
            return False
        distances = [abs(rows[index].baseline - rows[k].baseline) for k in around]
        filled = [len({self._under(chunk)[0] for chunk in rows[k].chunks}) for k in (index, *around)]
        fewer = filled[0] <= 0.5 * max(filled[1:])
        close = 0.78 * self._pitch
        if min(distances) >= close or not fewer:
            return False
        return max(distances) < close or len(distances) == 1 or filled[0] == 1

    def _vertical_spans(
        self, column: int, lines: list[dict[int, GridCell]], floating: list[tuple[float, dict[int, list[Chunk]]]]
    ) -> None:
        """Give each label of a column the contiguous group of rows that centres it, if such a partition exists."""
        if not lines:
            return
        fixed = [(float(i), line[column].chunks) for i, line in enumerate(lines) if column in line]
        hanging = [(place, cells[column]) for place, cells in floating if column in cells]
        full = all(lines)
        texts = (
            fixed
            and len(fixed) < len(lines) > 2
            and not any(_is_value(chunk) for _, chunks in fixed for chunk in chunks)
        )
        if not hanging and not (texts and full and any(len(line) > 1 for line in lines)):
            return
        starts: list[int] = []
        start = 0.0
        labels = sorted(fixed + hanging, key=lambda label: label[0])
        for place, _ in labels:
            starts.append(int(start))
            start = 2 * place - start + 1
        if start == len(lines) and starts == sorted(set(starts)) and all(0 <= s < len(lines) for s in starts):
            for line in lines:
                line.pop(column, None)
            ends = [*starts[1:], len(lines)]
            for first, end, (_, chunks) in zip(starts, ends, labels, strict=True):
                lines[first][column] = GridCell(0, column, chunks, end - first)
            return
        for _, chunks in hanging:
            near = min(lines, key=lambda line: abs(_baseline(line) - chunks[0].baseline))
            _add(near, GridCell(0, column, chunks))


def _add(line: dict[int, GridCell], cell: GridCell) -> None:
    if cell.column in line:
        line[cell.column].chunks.extend(cell.chunks)
    else:
        line[cell.column] = cell


def _baseline(line: dict[int, GridCell]) -> float:
    values = [chunk.baseline for cell in line.values() for chunk in cell.chunks]
    return statistics.median(values) if values else 0.0


def _is_value(chunk: Chunk) -> bool:
    return parse_quantity(chunk.text) is not None
