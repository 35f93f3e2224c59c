"""Which row of a handed-in table belongs to which row of the truth.

Rows are matched by their keys, in whatever order they come; the sampling may be finer than the truth's, so that further
rows do no harm. A key that a table holds twice says two things about one point: neither counts.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from typing import Final

import numpy as np

from evaluation.families.table.csvfile import CsvTable, is_missing, number_of

__all__ = ["infer_keys", "match_columns", "match_rows"]

_KEY_RELATIVE: Final = 1e-5
"""Six significant digits, the fewest that PRBench A.2 allows, are off by at most 5e-6."""


def match_columns(truth: Sequence[str], given: Sequence[str]) -> dict[str, str]:
    """Truth's column -> the given one: the same name, else the same but for case, blanks and underscores."""
    exact = {name: name for name in truth if name in given}
    loose: dict[str, list[str]] = {}
    for name in given:
        if name not in exact:
            loose.setdefault(_folded(name), []).append(name)
    for name in truth:
        candidates = loose.get(_folded(name), [])
        if name not in exact and len(candidates) == 1:
            exact[name] = candidates[0]
    return {name: exact[name] for name in truth if name in exact}


def _folded(name: str) -> str:
    return "".join(name.lower().replace("_", " ").split())


def infer_keys(table: CsvTable) -> tuple[str, ...]:
    """The columns that say which row is which; none where rows are known by their position only.

    Columns of text are keys. Without them, or where they do not tell all rows apart, leading columns of numbers are
    added as long as they look like a grid (integers, or strictly monotonic) until every row has a key of its own. At
    least one column is left to be graded.
    """
    if len(table.rows) < 2 or len(table.columns) < 2:
        return ()
    texts = [name for name in table.columns if _is_text(table.column(name))]
    keys = texts if len(texts) < len(table.columns) else texts[:-1]
    if keys and _tells_apart(table, keys):
        return tuple(keys)
    for name in table.columns[:-1]:
        if name in keys:
            continue
        if len(keys) + 1 >= len(table.columns) or not _is_grid(table.column(name)):
            break
        keys = [*keys, name]
        if _tells_apart(table, keys):
            return tuple(name for name in table.columns if name in keys)
    return ()


def _is_text(cells: Sequence[str]) -> bool:
    return any(number_of(cell) is None and not is_missing(cell) for cell in cells)


def _is_grid(cells: Sequence[str]) -> bool:
    values = [number_of(cell) for cell in cells]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return False
    if all(value.is_integer() for value in known):
        return True
    steps = np.diff(np.array(list(dict.fromkeys(known))))
    return bool(np.all(steps > 0) or np.all(steps < 0))


def _tells_apart(table: CsvTable, keys: Sequence[str]) -> bool:
    columns = [table.column(name) for name in keys]
    if any(is_missing(cell) for cells in columns for cell in cells):
        return False
    rows = [tuple(_key_part(cell) for cell in row) for row in zip(*columns, strict=True)]
    return len(set(rows)) == len(rows)


def _key_part(cell: str) -> str | float:
    value = number_of(cell)
    return cell.strip().lower() if value is None else value


def match_rows(
    truth: CsvTable, given: CsvTable, keys: Sequence[str], columns: dict[str, str], relative: float
) -> dict[int, int]:
    """Truth's row -> given row, one to one.

    Args:
        truth: the truth.
        given: what was handed in.
        keys: columns of the truth; none: by position.
        columns: see `match_columns`; holds all keys.
        relative: tolerance of the table, within which a single computed key may be off as well.
    """
    if not keys:
        return {row: row for row in range(min(len(truth.rows), len(given.rows)))}
    wanted = list(zip(*(map(_key_part, truth.column(name)) for name in keys), strict=True))
    offered = list(zip(*(map(_key_part, given.column(columns[name])) for name in keys), strict=True))
    found, twice = _same_keys(wanted, offered)
    if len(keys) == 1 and len(found) + len(twice) < len(wanted):
        found |= _near_keys(wanted, offered, found, twice, relative)
    return dict(sorted(found.items()))


def _same_keys(
    wanted: Sequence[tuple[str | float, ...]], offered: Sequence[tuple[str | float, ...]]
) -> tuple[dict[int, int], set[int]]:
    """Matches by equal texts and numbers equal to six digits, and the rows of the truth whose key is there twice."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for index, key in enumerate(offered):
        groups.setdefault(tuple(_bucket(part) for part in key), []).append(index)
    found, twice = {}, set()
    for row, key in enumerate(wanted):
        places = {place for place in itertools.product(*map(_buckets, key)) if place in groups}
        hits = [index for place in sorted(places) for index in groups[place] if _equal(key, offered[index])]
        if len(hits) == 1:
            found[row] = hits[0]
        elif hits:
            twice.add(row)
    return found, twice


def _bucket(part: str | float) -> str:
    return part if isinstance(part, str) else f"#{part:.4e}"


def _buckets(part: str | float) -> set[str]:
    """Where an equal part may lie: numbers that differ by 1e-5 may round to neighbouring buckets."""
    if isinstance(part, str):
        return {part}
    return {_bucket(part * (1 + step * _KEY_RELATIVE)) for step in (-1, 0, 1)}


def _equal(left: tuple[str | float, ...], right: tuple[str | float, ...]) -> bool:
    for one, other in zip(left, right, strict=True):
        if isinstance(one, str) or isinstance(other, str):
            if one != other:
                return False
        elif abs(one - other) > _KEY_RELATIVE * max(abs(one), abs(other)):
            return False
    return True


def _near_keys(
    wanted: Sequence[tuple[str | float, ...]], offered: Sequence[tuple[str | float, ...]], found: dict[int, int],
    twice: set[int], relative: float,
) -> dict[int, int]:  # fmt: skip
    """A key that is itself a computed value: the nearest row that is left, within the tolerance and half a step."""
    taken = set(found.values())
    left = sorted(
        (part, index) for index, (part,) in enumerate(offered) if isinstance(part, float) and index not in taken
    )
    values = [value for value, _ in left]
    grid = sorted(part for (part,) in wanted if isinstance(part, float))
    near: dict[int, int] = {}
    for row, (part,) in enumerate(wanted):
        if row in found or row in twice or isinstance(part, str) or not values:
            continue
        position = bisect.bisect_left(values, part)
        candidates = [at for at in (position - 1, position) if 0 <= at < len(values)]
        best = min(candidates, key=lambda at: (abs(values[at] - part), at))
        reach = min(relative * abs(part), _half_step(grid, part))
        if abs(values[best] - part) <= reach and left[best][1] not in near.values():
            near[row] = left[best][1]
    return near


def _half_step(grid: Sequence[float], value: float) -> float:
    position = bisect.bisect_left(grid, value)
    steps = [abs(grid[at] - value) for at in (position - 1, position + 1) if 0 <= at < len(grid)]
    return min((step for step in steps if step > 0), default=float("inf")) / 2 * (1 - 1e-9)
