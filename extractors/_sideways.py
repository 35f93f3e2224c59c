"""Labels set sideways inside an upright table, turned by 90 degrees: names of row groups, heads of narrow columns.

They are not part of the rows, so the grid is built without them and they are given their cells afterwards: above the
body, to the column under them; beside it, to the run of rows over which they are centred, in a column of their own
where none is free. Non-goal: tables that lie on their side as a whole (the page is turned upright before).
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from extractors._grid import Grid, GridCell
from extractors._page_text import TextLine, Word
from extractors._rows import Chunk
from pipeline.paper import Box

__all__ = ["add_sideways"]


class _Label(NamedTuple):
    box: Box
    chunk: Chunk

    @property
    def x(self) -> float:
        return (self.box.x0 + self.box.x1) / 2

    @property
    def y(self) -> float:
        return (self.box.y0 + self.box.y1) / 2


def add_sideways(grid: Grid, lines: Sequence[TextLine], frame: Box) -> None:
    """Give the sideways lines inside a table's frame their cells; the grid is changed in place."""
    labels = _labels([line for line in lines if _inside(line.box, frame) and any(map(str.isalnum, line.text))])
    if not labels or not grid.cells:
        return
    body = [cell for cell in grid.cells if cell.row >= grid.header_rows] or grid.cells
    top = min(word.baseline - word.size for cell in body for chunk in cell.chunks for word in chunk.words)
    heads = [label for label in labels if label.y < top]
    columns: list[list[_Label]] = []
    for label in sorted((label for label in labels if label.y >= top), key=lambda label: label.x):
        if columns and label.x - columns[-1][-1].x < 2:
            columns[-1].append(label)
        else:
            columns.append([label])
    for members in columns:
        _add_row_labels(grid, sorted(members, key=lambda label: label.y))
    if heads:
        _add_heads(grid, heads)


def _inside(box: Box, frame: Box) -> bool:
    x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    return frame.x0 - 6 < x < frame.x1 + 6 and frame.y0 < y < frame.y1


def _labels(lines: Sequence[TextLine]) -> list[_Label]:
    """Lines side by side over the same height are one label of several lines; text that runs up begins at the left."""
    groups: list[list[TextLine]] = []
    for line in sorted(lines, key=lambda line: (round(line.box.y0 + line.box.y1), line.box.x0)):
        last = groups[-1][-1] if groups else None
        near = last is not None and 0 < line.box.x0 - last.box.x0 < 1.6 * line.size
        if last is not None and near and abs(line.box.y0 + line.box.y1 - last.box.y0 - last.box.y1) < line.size:
            groups[-1].append(line)
        else:
            groups.append([line])
    found = []
    for group in groups:
        box = group[0].box
        for line in group[1:]:
            box = box.union(line.box)
        text = " ".join(line.text for line in group)
        whole = Word(*box, box.y1, group[0].size, text, all(line.bold for line in group))
        found.append(_Label(box, Chunk([whole], box.y1)))
    return found


def _extents(grid: Grid) -> list[tuple[float, float] | None]:
    """Left and right edge of what stands in each column; None for an empty one."""
    edges: list[tuple[float, float] | None] = [None] * grid.columns
    for cell in grid.cells:
        if cell.column_span == 1:
            left, right = min(chunk.x0 for chunk in cell.chunks), max(chunk.x1 for chunk in cell.chunks)
            known = edges[cell.column] or (left, right)
            edges[cell.column] = (min(known[0], left), max(known[1], right))
    return edges


def _insert_column(grid: Grid, at: int) -> None:
    for cell in grid.cells:
        if cell.column >= at:
            cell.column += 1
        elif cell.column + cell.column_span > at:
            cell.column_span += 1
    grid.columns += 1


def _add_row_labels(grid: Grid, labels: Sequence[_Label]) -> None:
    """Labels of one column, from top to bottom, each to the rows over which it is centred."""
    x = statistics.fmean(label.x for label in labels)
    edges = _extents(grid)
    owner = next((i for i, edge in enumerate(edges) if edge is not None and edge[0] - 2 < x < edge[1] + 2), None)
    if owner is None:
        owner = sum(edge is not None and (edge[0] + edge[1]) / 2 < x for edge in edges)
        _insert_column(grid, owner)
    taken = {row for cell in grid.cells if cell.column == owner for row in range(cell.row, cell.row + cell.row_span)}
    middles = _row_middles(grid)
    rows = [row for row in range(grid.header_rows, grid.rows) if row in middles and row not in taken]
    for label, (first, last) in zip(labels, _groups([middles[row] for row in rows], labels), strict=True):
        if first <= last:
            span = rows[last] - rows[first] + 1
            grid.cells.append(GridCell(rows[first], owner, [label.chunk], span))
    grid.cells.sort(key=lambda cell: (cell.row, cell.column))


def _row_middles(grid: Grid) -> dict[int, float]:
    """Where each row stands, by its single-row cells."""
    found: dict[int, list[float]] = {}
    for cell in grid.cells:
        if cell.row_span == 1:
            found.setdefault(cell.row, []).extend(chunk.baseline - 0.35 * chunk.size for chunk in cell.chunks)
    return {row: statistics.fmean(places) for row, places in found.items()}


def _groups(middles: Sequence[float], labels: Sequence[_Label]) -> list[tuple[int, int]]:
    """First and last row (index) of each label; last below first where no row is left for it.

    Runs without gaps of their own that are centred best on the labels. A row without a label costs a third of a row's
    height: less than being off centre by half a row on either side, more than nothing.
    """
    count = len(middles)
    pitch = statistics.median([b - a for a, b in pairwise(middles)] or [12.0])
    best: list[tuple[float, list[tuple[int, int]]]] = [(row * pitch / 3, []) for row in range(count + 1)]
    for label in labels:
        following: list[tuple[float, list[tuple[int, int]]]] = [(best[0][0] + 1e6, [*best[0][1], (0, -1)])]
        for end in range(1, count + 1):
            choices = [(following[end - 1][0] + pitch / 3, following[end - 1][1])]
            for start in range(end):
                away = abs((middles[start] + middles[end - 1]) / 2 - label.y)
                choices.append((best[start][0] + away, [*best[start][1], (start, end - 1)]))
            following.append(min(choices, key=lambda choice: choice[0]))
        best = following
    return best[-1][1]


def _add_heads(grid: Grid, heads: Sequence[_Label]) -> None:
    """Heads of columns into the lowest header row, which is added where there is none."""
    if grid.header_rows == 0:
        for cell in grid.cells:
            cell.row += 1
        grid.rows += 1
        grid.header_rows = 1
    edges = _extents(grid)
    row = grid.header_rows - 1
    for head in heads:
        known = [(i, edge) for i, edge in enumerate(edges) if edge is not None]
        column = min(known, key=lambda item: max(item[1][0] - head.x, head.x - item[1][1], 0.0))[0]
        own = next((cell for cell in grid.cells if cell.row == row and cell.column == column), None)
        if own is None:
            grid.cells.append(GridCell(row, column, [head.chunk]))
        else:
            own.chunks.append(head.chunk)
    grid.cells.sort(key=lambda cell: (cell.row, cell.column))
