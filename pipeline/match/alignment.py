"""Which line of a table is which field of a source, and which of its other labels which record.

Every cell votes for the numbers that equal it at printed precision; votes that agree with each other in both directions
reinforce each other, until each line has its field and each key its record. Then the whole is weighed: what agrees,
what does not, and how many other ways of reading there were.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from pipeline.match.chance import LEAST, agreement_chances, code_length, find_spacing, round_chances, tail_bound
from pipeline.match.printed import PrintedNumber, significant_digits
from pipeline.match.views import Holding, View, plain
from pipeline.validation.numbers import half_unit

__all__ = [
    "FACTORS", "Alignment", "Edges", "Grid", "Pool", "align", "enough", "find_edges", "make_pool", "read_grid",
    "weigh_edges",
]  # fmt: skip

Array = np.ndarray[Any, Any]

FACTORS: Final = (1.0, 100.0, 0.01, 1000.0, 0.001, -1.0)
"""A number of a source times one of these is the printed one: percent and fraction, thousands, a sign turned."""
_ROUNDS: Final = 4
_FAINT: Final = 1e-3
"""Votes with less support than this, in relation to the best, are given up."""
_MOST_EDGES: Final = 8_000
_CROWDED: Final = 2000
"""A cell that equals more numbers than this tells nothing of the alignment."""
_COARSER: Final = 10.01
"""A source may show one digit less than the paper, not more."""
_WHOLE: Final = 0.3
"""Whole numbers (half a unit is 0.5) are exact, not rounded."""


class Pool(NamedTuple):
    """The numbers of all sources, and how to find them by value."""

    values: Array
    halves: Array
    order: Array
    ordered: Array
    coarse: Array
    coarse_ordered: Array


def make_pool(holdings: Sequence[Holding]) -> Pool:
    """All numbers in one."""
    values = np.concatenate([holding.values for holding in holdings])
    halves = np.concatenate([holding.halves for holding in holdings])
    order = np.argsort(values, kind="stable")
    coarse = order[(halves[order] > 1e-7) & (halves[order] < _WHOLE)]
    return Pool(values, halves, order, values[order], coarse, values[coarse])


class Grid(NamedTuple):
    """A table's numbers, with the axis whose members are to be fields (`lines`) and the other (`keys`)."""

    numbers: tuple[PrintedNumber, ...]
    values: Array
    halves: Array
    rounds: Array
    digits: Array
    """The most that an agreement can be worth."""
    distinct: Array
    """Equal for equal printed numbers."""
    lines: Array
    keys: Array
    line_names: tuple[tuple[str, ...], ...]
    key_names: tuple[tuple[str, ...], ...]

    def turned(self) -> Grid:
        """Rows for columns."""
        return self._replace(
            lines=self.keys, keys=self.lines, line_names=self.key_names, key_names=self.line_names
        )  # fmt: skip

    def unrolled(self) -> Grid:
        """All numbers as one line, in order."""
        texts = tuple(
            (*self.line_names[line], *self.key_names[key]) for line, key in zip(self.lines, self.keys, strict=True)
        )  # fmt: skip
        return self._replace(
            lines=np.zeros_like(self.lines), keys=np.arange(len(self.keys)), line_names=((),), key_names=texts
        )  # fmt: skip


class Edges(NamedTuple):
    """Pairs of a cell and a number that equals it, with the factor's index."""

    cells: Array
    numbers: Array
    factors: Array
    digits: Array
    """The most that the agreement can be worth, from the crowd of the source's numbers around it."""


class Alignment(NamedTuple):
    """A table laid over a view of a source."""

    lines: dict[int, tuple[int, int]]
    """Line of the table -> (line of the view, factor's index)."""
    cells: Array
    numbers: Array
    """Position in the holding, for each of `cells`."""
    factors: Array
    hits: Array
    chance: float
    """log10, before the number of sources and views is counted."""


def read_grid(numbers: Sequence[PrintedNumber]) -> Grid:
    """Columns as lines, rows as keys."""
    values = np.array([number.value for number in numbers])
    rounds = round_chances(values)
    decimals = np.array([number.decimals for number in numbers])
    most = 1 + max(number.part for number in numbers)
    columns, lines = np.unique([(number.column or 0) * most + number.part for number in numbers], return_inverse=True)
    rows, keys = np.unique([number.row for number in numbers], return_inverse=True)
    by_column = {(number.column or 0) * most + number.part: number.column_labels for number in numbers}
    by_row = {number.row: number.row_labels for number in numbers}
    halves = np.array([half_unit(int(d)) for d in decimals])
    within = np.maximum(rounds, 2 * halves / np.maximum(np.abs(values), halves))
    return Grid(
        numbers=tuple(numbers), values=values, halves=halves, rounds=rounds,
        digits=-np.log10(np.clip(within, LEAST, 1.0)), distinct=np.unique(values, return_inverse=True)[1],
        lines=lines, keys=keys,
        line_names=tuple(by_column[column] for column in columns),
        key_names=tuple(by_row[row] for row in rows),
    )  # fmt: skip


def find_edges(grid: Grid, pool: Pool) -> Edges:
    """All pairs of a cell and a number of the pool that agree at printed precision under some factor."""
    found = []
    for index, factor in enumerate(FACTORS):
        for order, ordered, widen in ((pool.order, pool.ordered, 1.0), (pool.coarse, pool.coarse_ordered, _COARSER)):
            targets, reach = grid.values / factor, grid.halves * widen / abs(factor)
            slack = reach * 1e-6 + np.abs(targets) * 1e-12
            low = np.searchsorted(ordered, targets - reach - slack, "left")
            count = np.searchsorted(ordered, targets + reach + slack, "right") - low
            count[count > _CROWDED] = 0
            cell = np.repeat(np.arange(len(targets)), count)
            offset = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
            number = order[low[cell] + offset]
            if widen > 1:  # those that agree without it were found above
                apart = np.abs(pool.values[number] * factor - grid.values[cell])
                kept = apart > (grid.halves * (1 + 1e-6) + np.abs(grid.values) * 1e-12)[cell]
                cell, number = cell[kept], number[kept]
            hit = _agree(grid, pool.values[number], pool.halves[number], cell, np.full(len(cell), index))
            found.append(np.stack([cell[hit], number[hit], np.full(hit.sum(), index)]))
    edges = np.concatenate(found, axis=1)
    edges = edges[:, np.argsort(edges[1], kind="stable")]
    return Edges(edges[0], edges[1], edges[2], grid.digits[edges[0]])


def weigh_edges(grid: Grid, holding: Holding, edges: Edges) -> Edges:
    """Edges with what they are worth in this source; where there are too many, without the most frequent cells."""
    counts = np.bincount(edges.cells, minlength=len(grid.values))
    order = np.argsort(counts, kind="stable")
    rare = np.zeros(len(counts), bool)
    rare[order[np.cumsum(counts[order]) <= _MOST_EDGES]] = True
    edges = Edges(*(array[rare[edges.cells]] for array in edges))
    digits = edges.digits.copy()
    for index in np.unique(edges.factors):
        own = edges.factors == index
        cells, at = np.unique(edges.cells[own], return_inverse=True)
        ones = np.ones(len(cells))
        chances = _crowding(grid, holding, cells, grid.halves[cells], FACTORS[index], ones)
        digits[own] = -np.log10(np.maximum(chances, LEAST))[at]
    apart = np.abs(holding.values[edges.numbers] * np.array(FACTORS)[edges.factors] - grid.values[edges.cells])
    # of two fields that round to the same number, the one that holds it exactly
    return edges._replace(digits=digits - 0.05 * np.minimum(apart / grid.halves[edges.cells], 1.0))


def _crowding(grid: Grid, holding: Holding, cells: Array, halves: Array, factor: float, others: Array) -> Array:
    """For cells the chance that one number like any of the source agrees."""
    everything = holding.sorted * factor if factor > 0 else holding.sorted[::-1] * factor
    return agreement_chances(grid.values[cells], halves, everything, others, grid.rounds[cells])


def _agree(grid: Grid, values: Array, halves: Array, cells: Array, factors: Array) -> Array:
    """Are they equal at the precision of the coarser one, which is the source's by one digit at most?"""
    scale = np.array(FACTORS)[factors]
    shown, own = halves * np.abs(scale), grid.halves[cells]
    coarse = (shown > own * 1.001) & (shown <= own * _COARSER) & (halves < _WHOLE)
    tolerance = np.where(coarse, shown, own) * (1 + 1e-6) + 1e-12 * np.abs(grid.values[cells])
    return np.asarray(np.abs(values * scale - grid.values[cells]) <= tolerance)


def align(grid: Grid, holding: Holding, view: View, edges: Edges, promise: float) -> Alignment | None:
    """The best way to lay a table over a view; None when nothing would come of it.

    Args:
        grid: the table.
        holding: the source.
        view: how its numbers are read.
        edges: which cells equal which of its numbers, by position in the holding.
        promise: log10 of the chance that the result must stay below.
    """
    votes = _take_part(grid, view, edges, len(holding.values))
    # what it costs at least to say which line and key is which
    needed = _least_cost(len(grid.line_names)) + _least_cost(len(grid.key_names)) - promise
    if _worth(grid, votes) < needed:
        return None
    many, more = len(view.line_names) * len(FACTORS), view.keys_count
    votes = _agree_on(votes, many, more)
    fields, field_at = np.unique(votes.fields, return_inverse=True)
    records, record_at = np.unique(votes.records, return_inverse=True)
    bonus = np.ones(len(records))
    by_field = np.bincount(field_at, votes.weights)
    names = _Names(np.zeros((0, 0)), np.zeros((0, 0)))
    for again in (False, True):  # once by the values alone
        if again:
            names = _find_names(grid, holding, view)
            # labels that agree decide between equal values; they are no evidence of their own
            bonus = np.where(names.keys[records // more, records % more], 1.5, 1.0)
        chosen = _choose(by_field, fields, many, len(FACTORS))
        kept = np.isin(fields, [line * many + field for line, field in chosen.items()])
        by_record = np.bincount(record_at, votes.weights * kept[field_at]) * bonus
        keys = _choose(by_record, records, more, 1)
        fixed = np.isin(records, [key * more + record for key, record in keys.items()])
        by_field = np.bincount(field_at, votes.weights * fixed[record_at])
        if _worth(grid, votes.only(kept[field_at] & fixed[record_at])) < needed - (0 if again else 1):
            return None
    _complete(keys, names.keys)
    lines = {line: divmod(field, len(FACTORS)) for line, field in chosen.items()}
    return _weigh(grid, holding, view, names, lines, keys)


def _least_cost(count: int) -> float:
    return math.log10(math.comb(count + 3, 3))


class _Names(NamedTuple):
    """Which labels of the table name which lines and keys of the view."""

    lines: Array
    keys: Array


def _find_names(grid: Grid, holding: Holding, view: View) -> _Names:
    def agree(labels: Sequence[tuple[str, ...]], codes: Array, count: int) -> Array:
        sizes = np.bincount(codes, minlength=count)
        result = np.zeros((len(labels), count), bool)
        for index, texts in enumerate(labels):
            for text in texts:
                named = holding.mentions(plain(text))
                if named is not None:  # all its numbers, not one of them
                    result[index] |= np.bincount(codes, named[view.numbers], minlength=count) == sizes
            if result[index].all():
                result[index] = False
        return result

    return _Names(
        agree(grid.line_names, view.lines, len(view.line_names)), agree(grid.key_names, view.keys, view.keys_count)
    )


class _Votes(NamedTuple):
    cells: Array
    fields: Array
    """Line of the table with line of the view and factor."""
    records: Array
    """Key of the table with key of the view."""
    weights: Array
    digits: Array

    def only(self, kept: Array) -> _Votes:
        return _Votes(*(array[kept] for array in self))


def _worth(grid: Grid, votes: _Votes) -> float:
    """The most that agreements of these cells can be worth: equal ones of a line count once."""
    codes = grid.lines[votes.cells] * len(grid.values) + grid.distinct[votes.cells]
    most = np.zeros(len(grid.line_names) * len(grid.values))
    np.maximum.at(most, codes, votes.digits)
    return float(most.sum())


def _take_part(grid: Grid, view: View, edges: Edges, size: int) -> _Votes:
    at = np.full(size, -1)
    at[view.numbers] = np.arange(len(view.numbers))
    kept = at[edges.numbers] >= 0
    cells, numbers, factors = edges.cells[kept], at[edges.numbers[kept]], edges.factors[kept]
    lines = (grid.lines[cells] * len(view.line_names) + view.lines[numbers]) * len(FACTORS) + factors
    weights = (edges.digits[kept] + 0.1) / np.bincount(cells, minlength=len(grid.values))[cells]
    weights *= np.where(factors == 0, 1.0, 0.8)  # of two readings that fit alike, the one as it stands
    records = grid.keys[cells] * view.keys_count + view.keys[numbers]
    return _Votes(cells, lines, records, weights, edges.digits[kept])


def _agree_on(votes: _Votes, many: int, more: int) -> _Votes:
    """The votes whose line and key are borne out by the others."""
    fields, field_at = np.unique(votes.fields, return_inverse=True)
    records, record_at = np.unique(votes.records, return_inverse=True)
    by_record: Array = np.ones(len(records))
    for _ in range(_ROUNDS):
        by_field = _sharpen(np.bincount(field_at, votes.weights * by_record[record_at]), fields // many)
        by_record = _sharpen(np.bincount(record_at, votes.weights * by_field[field_at]), records // more)
    support = by_field[field_at] * by_record[record_at]
    return votes.only(support > _FAINT)._replace(weights=(votes.weights * support)[support > _FAINT])


def _sharpen(votes: Array, groups: Array) -> Array:
    """Votes in relation to the best of their group, squared: what agrees with the rest wins in a few rounds."""
    top = np.zeros(int(groups[-1]) + 1)
    np.maximum.at(top, groups, votes)
    return np.asarray((votes / np.maximum(top[groups], 1e-300)) ** 2)


def _choose(votes: Array, pairs: Array, width: int, kinds: int) -> dict[int, int]:
    """For each left member the right one with most votes; each right one once, under one of its kinds."""
    result: dict[int, int] = {}
    taken: set[int] = set()
    order = np.argsort(-votes, kind="stable")
    for pair in pairs[order[: np.count_nonzero(votes > 0)]].tolist():
        left, right = divmod(pair, width)
        if left not in result and right // kinds not in taken:
            result[left] = right
            taken.add(right // kinds)
    return result


def _complete(keys: dict[int, int], names: Array) -> None:
    """Keys without an equal number that name one record alone: their cells are compared, too."""
    for key in range(len(names)):
        named = np.flatnonzero(names[key])
        if key not in keys and len(named) == 1 and named[0] not in keys.values():
            keys[key] = int(named[0])


def _weigh(
    grid: Grid,
    holding: Holding,
    view: View,
    names: _Names,
    lines: dict[int, tuple[int, int]],
    keys: dict[int, int],
) -> Alignment | None:
    """Drop lines and keys that explain less than they cost, and bound the chance of the rest."""
    field = np.array([lines.get(line, (-1, 0)) for line in range(len(grid.line_names))])
    record = np.array([keys.get(key, -1) for key in range(len(grid.key_names))])
    cells = np.flatnonzero((field[grid.lines, 0] >= 0) & (record[grid.keys] >= 0))
    numbers = view.find(field[grid.lines[cells], 0], record[grid.keys[cells]])
    cells, numbers = cells[numbers >= 0], numbers[numbers >= 0]
    factors = field[grid.lines[cells], 1]
    hits = _agree(grid, holding.values[numbers], holding.halves[numbers], cells, factors)
    found = Alignment(lines, cells, numbers, factors, hits, 0.0)
    chances = _chances(grid, holding, view, found)
    alive = _prune(grid, names, found, chances, keys)
    if not (alive & hits).any():
        return None
    found = Alignment(lines, cells[alive], numbers[alive], factors[alive], hits[alive], 0.0)
    chances = np.maximum(chances[alive], _nearness(grid, holding, found))
    return found._replace(chance=_bound(grid, found, chances) + _cost(names, lines, keys))


def _chances(grid: Grid, holding: Holding, view: View, found: Alignment) -> Array:
    """For each aligned cell the chance that a number like its partner agrees with it."""
    result = np.ones(len(found.cells))
    lines = grid.lines[found.cells]
    for line in np.unique(lines):
        own = np.flatnonzero(lines == line)
        field, index = found.lines[int(line)]
        factor, cells = FACTORS[index], found.cells[own]
        values = holding.values[view.numbers[view.lines == field]]
        exact = float(holding.halves[found.numbers[own]].max())
        name = (id(view), field)
        if name not in holding.spacings:
            holding.spacings[name] = find_spacing(values, exact)
        halves = np.maximum(grid.halves[cells], abs(factor) * max(exact if exact < _WHOLE else 0.0, 0.0))
        halves = np.maximum(halves, holding.spacings[name] * abs(factor) / 2)
        alike = np.sort(np.concatenate([values * factor, grid.values[grid.lines == line]]))
        printed, hits, rounds = grid.values[cells], found.hits[own], grid.rounds[cells]
        result[own] = np.maximum(
            agreement_chances(printed, halves, alike, 1 + hits, rounds),
            _crowding(grid, holding, cells, halves, factor, 0 + hits),
        )
    return result


def _nearness(grid: Grid, holding: Holding, found: Alignment) -> float:
    """Where the rest is near without being equal, it is another run of the same: a near number agrees easily."""
    scale = np.array(FACTORS)[found.factors]
    apart = np.abs(holding.values[found.numbers] * scale - grid.values[found.cells])[~found.hits]
    widths = apart / grid.halves[found.cells[~found.hits]]
    return max(np.count_nonzero(widths <= width) / len(found.cells) / width for width in (3.0, 10.0, 30.0, 100.0))


def _prune(grid: Grid, names: _Names, found: Alignment, chances: Array, keys: dict[int, int]) -> Array:
    """Take lines and keys out that explain less than they cost and bear no name of their partner; the cells left."""
    alive = np.ones(len(found.cells), bool)
    fields = {line: field for line, (field, _) in found.lines.items()}
    axes: list[tuple[dict[int, Any], Array, Array]] = [
        (found.lines, grid.lines[found.cells], _prices(fields, names.lines)),
        (keys, grid.keys[found.cells], _prices(keys, names.keys)),
    ]
    for _ in range(_ROUNDS):
        before = alive.sum()
        for members, codes, prices in axes:
            for member in list(members):
                own = alive & (codes == member)
                price = prices[member]
                if found.hits[own].all() and own.sum() > 1:
                    price = 0.3 if price > 0.3 else 0.0  # nothing speaks against it
                if -tail_bound(chances[own], found.hits[own]) < price:
                    del members[member]
                    alive &= ~own
        if alive.sum() == before:
            break
    return alive


def _prices(members: dict[int, int], names: Array) -> Array:
    """What each member must explain: nothing where a name agrees, little where it follows its neighbour."""
    prices = np.full(len(names), math.log10(names.shape[1]) + 0.3)
    for member, partner in members.items():
        if names[member, partner]:
            prices[member] = 0.0
        elif members.get(member - 1) == partner - 1:
            prices[member] = 0.3
    return prices


def _bound(grid: Grid, found: Alignment, chances: Array) -> float:
    """Weigh the agreements. Equal numbers of one line, or of one key in several lines, are no further evidence."""
    cells = found.cells
    first = np.unique(grid.keys[cells] * len(grid.values) + grid.distinct[cells], return_index=True)[1]
    at = np.unique(grid.lines[cells[first]] * len(grid.values) + grid.distinct[cells[first]], return_inverse=True)[1]
    hits, counts = np.bincount(at, found.hits[first]), np.bincount(at)
    most = np.zeros(len(counts))
    np.maximum.at(most, at, chances[first])
    # all of them agree, which is no more probable than that one does; or some of them do
    together = np.where(hits == counts, most, np.minimum(np.bincount(at, chances[first]), 1.0))
    return tail_bound(together, hits > 0)


def _cost(names: _Names, lines: dict[int, tuple[int, int]], keys: dict[int, int]) -> float:
    """Decimal digits that it takes to say which line is which field and which key is which record."""
    factors = [factor for _, factor in lines.values()]
    cost = 0.3 * len(set(factors)) + math.log10(len(FACTORS)) * len(set(factors) - {0})
    cost += sum(0.3 for before, after in pairwise(factors) if before != after)
    fields = {line: field for line, (field, _) in lines.items()}
    for members, named in ((fields, names.lines), (keys, names.keys)):
        kinds = [len(named) - len(members), 0, 0, 0]
        for member, partner in members.items():
            if members.get(member - 1) == partner - 1:
                kinds[1] += 1
            elif named[member, partner]:
                kinds[2] += 1
                cost += math.log10(named[member].sum())
            else:
                kinds[3] += 1
                cost += math.log10(named.shape[1])
        cost += code_length(kinds)
    return cost


def enough(grid: Grid, found: Alignment) -> bool:
    """Three different numbers, or two of three digits."""
    numbers = {grid.numbers[cell].value: grid.numbers[cell].text for cell in found.cells[found.hits]}
    return len(numbers) >= 3 or (len(numbers) == 2 and all(significant_digits(t) >= 3 for t in numbers.values()))
