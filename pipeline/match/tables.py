"""Tables of a paper against the numbers of files and runs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from pipeline.match.alignment import (
    FACTORS,
    Alignment,
    Edges,
    Grid,
    align,
    enough,
    find_edges,
    make_pool,
    read_grid,
    weigh_edges,
)
from pipeline.match.printed import PrintedNumber, list_table_cells
from pipeline.match.records import CellMatch, Source, TableMatch
from pipeline.match.views import Holding, View, bundle
from pipeline.paper import Document
from pipeline.validation.observation import Observation

__all__ = ["ACCEPTED", "PrintedTable", "match_printed", "match_tables"]

ACCEPTED: Final = -3.0
"""log10 of the chance: at most one table in a thousand is matched by accident (measured in the tests)."""
_NEARLY: Final = 0.7
"""A match with this share of its cells in a larger one from the same files is a part of that."""
_READINGS: Final = 30
"""At most about as many views does a source have, each in two directions; all are tried."""


class PrintedTable(NamedTuple):
    """Numbers that stand in rows and columns, of a paper's table or of claims laid as one."""

    label: str
    page: int
    numbers: tuple[PrintedNumber, ...]


def match_tables(document: Document, sources: Sequence[tuple[Source, Sequence[Observation]]]) -> tuple[TableMatch, ...]:
    """What of the paper's tables the sources hold, beyond chance.

    Args:
        document: the paper.
        sources: files and streams, each with its numbers in reading order.

    Returns:
        For each table, in order, its matches, the one with most cells first. Files of one kind (a folder of results,
        one file per run) can match together. The paper's own sources match like any other file: leave them out.
    """
    tables = [
        PrintedTable(table.label, table.page, list_table_cells(document, index))
        for index, table in enumerate(document.tables)
    ]
    return match_printed(tables, sources)


def match_printed(
    tables: Sequence[PrintedTable], sources: Sequence[tuple[Source, Sequence[Observation]]]
) -> tuple[TableMatch, ...]:
    """What of some tables' numbers the sources hold, beyond chance; `TableMatch.table` counts the tables.

    Args:
        tables: each number with its row and column.
        sources: files and streams, each with its numbers in reading order.
    """
    holdings = bundle(sources)
    if not holdings:
        return ()
    single = [holding for holding in holdings if len(holding.indices) == 1]
    pool = make_pool(single)
    bounds = np.cumsum([0, *(len(holding.values) for holding in single)])
    position = {holding.indices[0]: index for index, holding in enumerate(single)}
    result: list[TableMatch] = []
    for index, table in enumerate(tables):
        if len({number.value for number in table.numbers}) >= 2:
            grid = read_grid(table.numbers)
            edges = find_edges(grid, pool)
            cuts = np.searchsorted(edges.numbers, bounds)
            parts = [
                Edges(edges.cells[a:b], edges.numbers[a:b] - bounds[i], edges.factors[a:b], edges.digits[a:b])
                for i, (a, b) in enumerate(pairwise(cuts))
            ]
            chosen = [_joined(holding, [parts[position[i]] for i in holding.indices]) for holding in holdings]
            result += [match.evolve(table=index) for match in _match_table(table, grid, holdings, chosen)]
    return tuple(result)


def _joined(holding: Holding, parts: Sequence[Edges]) -> Edges:
    numbers = [part.numbers + start for part, start in zip(parts, holding.starts, strict=True)]
    joined = Edges(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    return joined._replace(numbers=np.concatenate(numbers))


def _match_table(
    table: PrintedTable, grid: Grid, holdings: Sequence[Holding], edges: Sequence[Edges]
) -> list[TableMatch]:
    tried = math.log10(len(holdings) * _READINGS)
    promise = ACCEPTED - tried
    worth = [_worth(grid, part) for part in edges]
    found: list[TableMatch] = []
    for index in sorted(range(len(holdings)), key=lambda i: -worth[i][1]):
        holding = holdings[index]
        if worth[index][0] < -promise or _covered(grid, edges[index], holding, found):
            continue
        best = _best_alignment(grid, holding, edges[index], promise)
        if best is not None:
            found.append(_write_match(table, *best, holding, tried))
    found.sort(key=lambda match: (-len(match.cells), match.chance))
    return _undominated(found)


def _worth(grid: Grid, edges: Edges) -> tuple[float, float]:
    """The most that agreements with a source can be worth; and that with its number of candidates taken off."""
    cells, counts = np.unique(edges.cells, return_counts=True)
    digits = grid.digits[cells]
    return float(digits.sum()), float(np.maximum(digits - np.log10(counts), 0.0).sum())


def _covered(grid: Grid, edges: Edges, holding: Holding, found: Sequence[TableMatch]) -> bool:
    """Can a source show nothing that a match of the same origin does not show with more cells?"""
    numbers = [grid.numbers[cell] for cell in np.unique(edges.cells)]
    possible = {(number.row, number.column, number.part) for number in numbers}
    source = holding.sources[0]
    alike = [match for match in found if (match.origin, match.command) == (source.origin, source.command)]
    return any(len(match.cells) > len(possible) and possible <= match.places for match in alike)


def _best_alignment(grid: Grid, holding: Holding, edges: Edges, promise: float) -> tuple[Grid, Alignment, View] | None:
    """The alignment with most cells; of equals one with columns as fields, then the first view's."""
    best: tuple[Grid, Alignment, View] | None = None
    possible = len(np.unique(edges.cells))
    edges = weigh_edges(grid, holding, edges)
    for view in holding.views:
        flat = view.line_names == ("",)
        if flat and best is not None:
            break  # without structure only what no structure explains
        for turned in (grid, grid.turned(), *((grid.unrolled(),) if flat else ())):
            found = align(turned, holding, view, edges, promise)
            if found is None or found.chance > promise or not enough(turned, found):
                continue
            better = best is None or _rank(turned, found, grid) > _rank(best[0], best[1], grid)
            best = (turned, found, view) if better else best
        if best is not None and best[0] is grid and best[1].hits.sum() == possible:
            break
    return best


def _rank(turned: Grid, found: Alignment, grid: Grid) -> tuple[int, bool]:
    return int(found.hits.sum()), turned is grid


def _write_match(
    table: PrintedTable, grid: Grid, found: Alignment, view: View, holding: Holding, tried: float
) -> TableMatch:  # fmt: skip
    cells: list[CellMatch] = []
    missed: list[CellMatch] = []
    for cell, number, factor, hit in zip(found.cells, found.numbers, found.factors, found.hits, strict=True):
        printed, observation = grid.numbers[cell], holding.observations[number]
        match = CellMatch(
            row=printed.row or 0, column=printed.column or 0, part=printed.part, text=printed.text,
            value=printed.value, decimals=printed.decimals, uncertainty=printed.uncertainty,
            source=holding.sources[holding.owner[number]].name, place=holding.places[number], where=observation.where,
            observed=observation.value, factor=FACTORS[factor],
        )  # fmt: skip
        (cells if hit else missed).append(match)
    names = [
        (" ".join(grid.line_names[line]), view.line_names[field])
        for line, (field, _) in sorted(found.lines.items())
        if view.line_names[field]
    ]
    return TableMatch(
        label=table.label, page=table.page, source=Counter(match.source for match in cells).most_common(1)[0][0],
        origin=holding.sources[0].origin, command=holding.sources[0].command, fields=tuple(names),
        cells=tuple(cells), missed=tuple(missed), compared=len(found.cells), chance=round(found.chance + tried, 2),
    )  # fmt: skip


def _undominated(found: Sequence[TableMatch]) -> list[TableMatch]:
    """Matches that show something which no larger one of the same origin and command shows; equals stay."""
    kept: list[TableMatch] = []
    for match in found:
        larger = [other for other in kept if (other.origin, other.command) == (match.origin, match.command)]
        if not any(_shows(other, match) for other in larger):
            kept.append(match)
    return kept


def _shows(larger: TableMatch, match: TableMatch) -> bool:
    """Is a match part of a larger one: the same numbers, fewer of the cells, or nearly those from the same files?"""
    if {cell.place for cell in larger.cells} == {cell.place for cell in match.cells}:
        return True
    if len(larger.cells) <= len(match.cells):
        return False
    own = match.places
    files = {cell.source for cell in match.cells} <= {cell.source for cell in larger.cells}
    return len(own & larger.places) >= (_NEARLY if files else 1.0) * len(own)
