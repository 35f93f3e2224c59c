"""From words and rules to a grid of cells: columns, header levels with spanners, wrapped cells, vertical spans.

Vertical lines are not needed. The columns are the union of what the fullest body rows occupy; a header cell over
several columns takes the rule under it (cmidrule) or, without one, the column range over which it is best centred; a
label between rows takes the group of rows over which it is centred. Non-goal: finding tables (see `extractors.tables`).
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from extractors._bands import band_by_content, header_rules
from extractors._columns import ColumnPlacer, Span
from extractors._layer import Word
from extractors._quantity import parse_quantity
from extractors._rows import Chunk, Row, cluster_rows, join_chunks, split_at_gutters, split_chunks
from extractors._rules import Rule

__all__ = ["Grid", "GridCell", "build_grid"]


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
    for row in rows:
        row.chunks = split_chunks(row.words, row.baseline)
    separators = list(full[1:])
    used: list[Rule] = []
    if len(full) == 2:
        used = header_rules(rows, partial, left, right)
        separators = used[:1] + separators
    for row in rows:
        row.band = sum(rule.y < row.baseline - 0.5 for rule in separators)
    split_at_gutters([row for row in rows if row.band > rows[0].band])
    if len({row.band for row in rows}) == 1:
        band_by_content(rows)
    inner = [rule for rule in partial if rule not in used]
    return _Builder(rows, inner, left, right).build()


class _Builder:
    """Builds one grid; the state is what all steps share: rows, columns, rules."""

    def __init__(self, rows: list[Row], partial: list[Rule], left: float, right: float) -> None:
        self._rows = rows
        self._partial = partial
        self._placer = ColumnPlacer(rows, partial, left, right)
        self._columns = self._placer.columns
        self._pitch = self._placer.pitch
        self._table: list[dict[int, GridCell]] = []

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
        placed = [self._placer.place(row, header=True) for row in rows]
        leaves: list[list[Chunk]] = [[] for _ in range(count)]
        spans: list[Span] = []
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
            self._header_column(column, leaves[column], spans, levels, lines, lowest, self._columns[column][1])
        for line in lines:
            if line:
                self._append(line)

    def _implied_spanners(
        self, row: Row, cells: dict[int, list[Chunk]], leaves: list[list[Chunk]], lowest: float
    ) -> list[Span]:
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
        for span in self._placer.centre(candidates, free):
            if span.last > span.first and any(chunk is not span.chunk for chunk in leaves[span.first]):
                spans.append(span)
                for chunks in leaves:
                    chunks[:] = [chunk for chunk in chunks if chunk is not span.chunk]
        return spans

    @staticmethod
    def _header_column(
        column: int, chunks: list[Chunk], spans: list[Span], levels: list[int],
        lines: list[dict[int, GridCell]], lowest: float, edge: float,
    ) -> None:  # fmt: skip
        parts: dict[int, list[Chunk]] = {}
        heights = [*levels, round(lowest)]
        if len(chunks) > 1 and levels and _are_levels(chunks, heights, edge):
            for chunk in chunks:
                at = min(range(len(heights)), key=lambda i: abs(heights[i] - chunk.baseline))
                _add(lines[at], GridCell(0, column, [chunk]))
            return
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
        return any(chunk.numeric and self._placer.under(chunk)[0] > 0 for chunk in row.chunks)

    def _one_row(self, rows: list[Row]) -> None:
        line: dict[int, GridCell] = {}
        for row in rows:
            cells, spans = self._placer.place(row, header=False)
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
            cells, spans = self._placer.place(row, header=False)
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
        if not lines:  # every row hangs between two others: nothing to hang from
            lines = [{column: GridCell(0, column, chunks) for column, chunks in cells.items()} for _, cells in floating]
            floating = []
        for column in range(len(self._columns)):
            if not self._ruled_groups(column, lines, floating):
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
        filled = [len({self._placer.under(chunk)[0] for chunk in rows[k].chunks}) for k in (index, *around)]
        own, *others = [{self._placer.under(chunk)[0] for chunk in rows[k].chunks} for k in (index, *around)]
        # Labels of two columns over four rows (`\\multirow`) share no column with the rows that they hang between.
        labels = not any(_is_value(chunk) for chunk in rows[index].chunks)
        apart = labels and all(own.isdisjoint(other) and len(own) <= len(other) for other in others)
        fewer = filled[0] <= 0.5 * max(filled[1:]) or apart
        close = 0.78 * self._pitch
        if min(distances) >= close or not fewer:
            return False
        return max(distances) < close or len(distances) == 1 or filled[0] == 1

    def _ruled_groups(
        self, column: int, lines: list[dict[int, GridCell]], floating: list[tuple[float, dict[int, list[Chunk]]]]
    ) -> bool:
        """One label in each group of rows between rules that cross the column: it holds for its whole group.

        Also where there is one group and its label stands at half height. True when the column was settled.
        """
        labels = sorted(
            [(_baseline({0: line[column]}), line[column].chunks) for line in lines if column in line]
            + [(cells[column][0].baseline, cells[column]) for _, cells in floating if column in cells],
            key=lambda label: label[0],
        )
        if len(lines) < 3 or not labels or len(labels) == len(lines):
            return False
        if column >= self._first_value(lines) or any(_is_value(chunk) for _, chunks in labels for chunk in chunks):
            return False
        middle = sum(self._columns[column]) / 2
        heights = [_baseline(line) for line in lines]
        edges = sorted(
            rule.y for rule in self._partial if rule.x0 <= middle <= rule.x1 and heights[0] < rule.y < heights[-1]
        )
        groups = [
            [i for i, y in enumerate(heights) if sum(edge < y for edge in edges) == n] for n in range(len(edges) + 1)
        ]
        owned = [[label for label in labels if sum(edge < label[0] for edge in edges) == n] for n in range(len(groups))]
        if any(not group for group in groups) or any(len(found) != 1 for found in owned):
            return False
        for group, ((y, _),) in zip(groups, owned, strict=True):
            centre = (heights[group[0]] + heights[group[-1]]) / 2
            if abs(y - centre) > 1.3 * self._pitch or any(len(lines[i]) < 2 for i in group):
                return False
        for line in lines:
            line.pop(column, None)
        for _, cells in floating:
            cells.pop(column, None)
        for group, ((_, chunks),) in zip(groups, owned, strict=True):
            lines[group[0]][column] = GridCell(0, column, chunks, len(group))
        return True

    def _first_value(self, lines: list[dict[int, GridCell]]) -> int:
        """The first column that holds numbers in most of its rows."""
        for column in range(len(self._columns)):
            held = [line[column] for line in lines if column in line]
            if held and sum(any(chunk.numeric for chunk in cell.chunks) for cell in held) > 0.5 * len(lines):
                return column
        return len(self._columns)

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


def _are_levels(chunks: list[Chunk], heights: list[int], edge: float) -> bool:
    """Texts of one column at the heights of header levels, none of which is the rest of a wrapped line above it."""
    ordered = sorted(chunks, key=lambda chunk: chunk.baseline)
    if len({round(chunk.baseline / 2) for chunk in ordered}) < len(ordered):
        return False
    if any(min(abs(chunk.baseline - height) for height in heights) > 2 for chunk in ordered):
        return False
    return all(
        upper.x1 + 0.28 * lower.size + lower.words[0].x1 - lower.words[0].x0 < edge - 1
        for upper, lower in pairwise(ordered)
    )


def _add(line: dict[int, GridCell], cell: GridCell) -> None:
    if cell.column in line:
        line[cell.column].chunks.extend(cell.chunks)
    else:
        line[cell.column] = cell


def _baseline(line: dict[int, GridCell]) -> float:
    values = [chunk.baseline for cell in line.values() for chunk in cell.chunks]
    return statistics.median(values) if values else 0.0


def _is_value(chunk: Chunk) -> bool:
    """A number, or a sign that stands for one: labels of groups are words."""
    return parse_quantity(chunk.text) is not None or not any(map(str.isalnum, chunk.text))
