"""Tables across pages: what goes on at the top of the next page is joined to the table that it continues.

Two signs: a caption that says `continued` under the same label, or a frame without any caption that stands first on the
next page, as wide as the table above and with as many columns. Repeated headers are dropped. Non-goal: tables whose
parts differ in columns; they stay apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pipeline.paper import Cell, Table

__all__ = ["cells_on", "fits_on", "join_labelled", "join_parts"]

_SAME_EDGE: Final = 12.0
"""Points by which the edges of two parts may differ: margins of left and right pages measured up to 9."""


def fits_on(table: Table, part: Table) -> bool:
    """Can `part` be the rest of `table`: on the next page, with as many columns and of the same width?"""
    if not table.grid or not part.grid or len(table.grid[0]) != len(part.grid[0]):
        return False
    last = table.continued[-1][0] if table.continued else table.page
    width, other = table.box.x1 - table.box.x0, part.box.x1 - part.box.x0
    return part.page == last + 1 and abs(width - other) <= _SAME_EDGE


def join_parts(table: Table, part: Table) -> Table:
    """One table of both; the header of the further part is dropped where it repeats the first one's."""
    head = table.grid[: table.header_rows]
    repeated = 0
    while repeated < min(len(head), len(part.grid)) and part.grid[repeated] == head[repeated]:
        repeated += 1
    if repeated < len(head):
        repeated = 0
    offset = len(table.grid) - repeated
    cells = tuple(
        cell.evolve(row=cell.row + offset, page=part.page) for cell in part.cells if cell.row >= repeated
    )  # fmt: skip
    return table.evolve(
        grid=(*table.grid, *part.grid[repeated:]), cells=(*table.cells, *cells),
        continued=(*table.continued, (part.page, part.box), *part.continued),
        confidence=min(table.confidence, part.confidence),
    )  # fmt: skip


def join_labelled(tables: Sequence[Table], says_continued: Mapping[tuple[str, int], bool]) -> list[Table]:
    """Join parts whose captions carry one label and, from the second on, say that they continue it."""
    joined: list[Table] = []
    for table in tables:
        last = next((index for index in range(len(joined) - 1, -1, -1) if joined[index].label == table.label), None)
        if last is not None and says_continued.get((table.label, table.page)) and fits_on(joined[last], table):
            joined[last] = join_parts(joined[last], table)
        else:
            joined.append(table)
    return joined


def cells_on(table: Table, page: int) -> list[Cell]:
    """The cells of a table that stand on one page."""
    return [cell for cell in table.cells if (cell.page or table.page) == page]
