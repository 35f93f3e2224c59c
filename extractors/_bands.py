"""Where a table's header ends when no single rule crosses the table there.

Non-goal: the cells (see `extractors._grid`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from extractors._rows import Row
from extractors._rules import Rule

__all__ = ["band_by_content", "header_rules"]

_COVERED: Final = 0.8
"""Of the table's width: rules of column groups leave 3 to 12 % white, those of spanners alone cover less."""


def header_rules(rows: Sequence[Row], partial: Sequence[Rule], left: float, right: float) -> list[Rule]:
    """The rules that together end the header where no single one crosses the table: the last one above the values.

    Groups of columns have rules of their own then, with white between (`cmidrule` over each); those further up end
    spanners.
    """
    values = [
        row.baseline for row in rows if sum(chunk.numeric for chunk in row.chunks) >= max(2, 0.5 * len(row.chunks))
    ]
    lines: list[list[Rule]] = []
    for rule in partial:
        if lines and abs(lines[-1][0].y - rule.y) < 1.5:
            lines[-1].append(rule)
        else:
            lines.append([rule])
    full = [line for line in lines if sum(rule.width for rule in line) > _COVERED * (right - left)]
    above = [line for line in full if values and line[0].y < values[0]]
    if above:
        return above[-1]
    return [rule for rule in partial if rule.x1 > right - 4 and rule.width > 0.5 * (right - left)][:1]


def band_by_content(rows: list[Row]) -> None:
    """No rule under the header: it ends before the first row that is mostly numbers."""
    numeric = [sum(chunk.numeric for chunk in row.chunks) >= 0.5 * len(row.chunks) > 0 for row in rows]
    first = next((index for index, value in enumerate(numeric) if value), 0)
    if 0 < first <= 3:
        for row in rows[first:]:
            row.band += 1
