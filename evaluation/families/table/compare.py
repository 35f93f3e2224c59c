"""How far a handed-in table agrees with its truth (PRBench 4.1: "not only pointwise agreement but also ... trend").

A cell is right when its value is within the tolerance. A file's score is `0.8 * pointwise + 0.2 * trend`, where
pointwise is the share of the truth's values that are right, and trend the mean over the value columns of Spearman's
rank correlation with the truth (negative ones count 0), times the share of the column that is there. Values within the
tolerance count as equal to the truth before ranks are taken: noise on a plateau is no trend, and a table that is
within the tolerance everywhere scores exactly 1. Columns of fewer than three values, or of one value, have no trend; a
table without such columns is scored by its points alone.

A value that the truth has and the submission lacks is wrong; what the truth lacks is not asked about.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from evaluation.families.table.alignment import infer_keys, match_columns, match_rows
from evaluation.families.table.csvfile import CsvTable, is_missing, number_of
from evaluation.families.table.records import FileRule, Tolerance
from pipeline.schema import Record

__all__ = ["POINTS_SHARE", "FileScore", "Mismatch", "absent", "compare_tables", "row_keys", "within"]

POINTS_SHARE: Final = 0.8
"""The published scorer gives 0.8 to the values and 0.2 to existence, columns and rows; here those 0.2 are earned by the
values' trend, so that an empty shell earns nothing."""
_ZERO_ABSOLUTE: Final = 1e-8
"""Of a column's largest magnitude: what a computed zero may be off by in double precision after some 1e7 operations."""
_SHOWN: Final = 10
_LEAST: Final = 3

Floats = NDArray[np.float64]


class Mismatch(Record):
    """A cell that is wrong."""

    row: int
    """Of the truth, from 1."""
    column: str
    expected: str
    found: str
    """Empty: there is none."""


class FileScore(Record):
    """One table against its truth."""

    path: str
    score: float = Field(ge=0, le=1)
    pointwise: float = Field(ge=0, le=1)
    trend: float | None = Field(default=None, ge=0, le=1)
    """None: the table has no trend."""
    values: int = 0
    """Values of the truth that are graded."""
    right: int = 0
    missing: int = 0
    """Of the graded values, those that the submission lacks."""
    rows: int = 0
    matched_rows: int = 0
    extra_rows: int = 0
    keys: tuple[str, ...] = ()
    missing_columns: tuple[str, ...] = ()
    extra_columns: tuple[str, ...] = ()
    tolerance: Tolerance
    mismatches: tuple[Mismatch, ...] = ()
    """The first ones."""
    problem: str = ""
    """Why it could not be compared, or not wholly."""


@dataclass(frozen=True, slots=True)
class _Column:
    """One value column: what is asked, what is there."""

    name: str
    rows: tuple[int, ...]
    expected: tuple[str, ...]
    found: tuple[str, ...]
    right: tuple[bool, ...]


def absent(rule: FileRule, truth: CsvTable, problem: str) -> FileScore:
    """The score of a table that is not there or cannot be read: 0 of all its values."""
    keys = row_keys(rule, truth)
    graded = [name for name in truth.columns if name not in keys]
    asked = [cell for name in graded for cell in truth.column(name) if not is_missing(cell)]
    return FileScore(
        path=rule.path, score=0.0, pointwise=0.0, values=len(asked), missing=len(asked), rows=len(truth.rows),
        keys=keys, tolerance=rule.tolerance, problem=problem,
    )  # fmt: skip


def compare_tables(truth: CsvTable, given: CsvTable, rule: FileRule) -> FileScore:
    """Score a table against its truth.

    Args:
        truth: has at least one value (the reader of tasks sees to it).
        given: what was handed in.
        rule: tolerances, keys, alignment.
    """
    keys = row_keys(rule, truth)
    columns = match_columns(truth.columns, given.columns)
    missing = tuple(name for name in truth.columns if name not in columns)
    lost = [name for name in keys if name in missing]
    if lost:
        return absent(rule, truth, f"its key column {lost[0]!r} is missing, rows cannot be told apart").evolve(
            missing_columns=missing
        )
    if rule.alignment == "interpolate":
        given, problem = _resampled(truth, given, keys, columns)
        columns = {name: name for name in given.columns}
    else:
        problem = ""
    pairs = match_rows(truth, given, keys, columns, rule.tolerance.relative)
    graded = [_graded(name, truth, given, pairs, columns, rule) for name in truth.columns if name not in keys]
    values = sum(len(column.right) for column in graded)
    right = sum(sum(column.right) for column in graded)
    points = right / values if values else 0.0
    trends = [_trend(column) for column in graded] if rule.trend else []
    known = [value for value in trends if value is not None]
    trend = sum(known) / len(known) if known else None
    wrong = [item for column in graded for item in _mismatches(column)]
    ragged = f"{len(given.ragged)} line(s) have another number of cells than the header" if given.ragged else ""
    return FileScore(
        path=rule.path,
        score=1.0 if right == values and values else _file_score(points, trend),
        pointwise=points,
        trend=trend,
        values=values,
        right=right,
        missing=sum(is_missing(cell) for column in graded for cell in column.found),
        rows=len(truth.rows),
        matched_rows=len(pairs),
        extra_rows=max(len(given.rows) - len(pairs), 0),
        keys=keys,
        missing_columns=missing,
        extra_columns=tuple(name for name in given.columns if name not in columns.values()),
        tolerance=rule.tolerance,
        mismatches=tuple(sorted(wrong, key=lambda item: (item.row, truth.columns.index(item.column)))[:_SHOWN]),
        problem=problem or ragged,
    )


def _file_score(points: float, trend: float | None) -> float:
    return points if trend is None else POINTS_SHARE * points + (1 - POINTS_SHARE) * trend


def row_keys(rule: FileRule, truth: CsvTable) -> tuple[str, ...]:
    """Columns that say which row of a table is which; none where rows are matched by position."""
    if rule.alignment == "position":
        return ()
    return rule.keys if rule.keys is not None else infer_keys(truth)


# --- cells -----------------------------------------------------------------------------------------------------------


def within(expected: float, found: float, tolerance: Tolerance, scale: float = 0.0) -> bool:
    """Is a value within the tolerance of its truth?

    Args:
        expected: the truth.
        found: the value.
        tolerance: of the column.
        scale: largest magnitude of the truth's column, for a truth of 0.
    """
    if math.isinf(expected) or math.isinf(found):
        return expected == found
    error = abs(found - expected)
    absolute = tolerance.absolute
    if absolute is None:
        absolute = _ZERO_ABSOLUTE * scale if expected == 0 else 0.0
    # the bound itself is inside, whatever the last bit of its product with the truth says
    return error <= max(tolerance.relative * abs(expected), absolute) * (1 + 1e-12)


def _graded(
    name: str, truth: CsvTable, given: CsvTable, pairs: dict[int, int], columns: dict[str, str], rule: FileRule
) -> _Column:
    tolerance = rule.columns.get(name, rule.tolerance)
    expected = truth.column(name)
    there = given.column(columns[name]) if name in columns else ()
    numbers = [abs(value) for value in map(number_of, expected) if value is not None and not math.isinf(value)]
    scale = max(numbers, default=0.0)
    rows = tuple(row for row, cell in enumerate(expected) if not is_missing(cell))
    found = tuple(there[pairs[row]] if there and row in pairs else "" for row in rows)
    right = tuple(_right(expected[row], cell, tolerance, scale) for row, cell in zip(rows, found, strict=True))
    return _Column(name, rows, tuple(expected[row] for row in rows), found, right)


def _right(expected: str, found: str, tolerance: Tolerance, scale: float) -> bool:
    wanted, value = number_of(expected), number_of(found)
    if wanted is None:
        return expected.strip().lower() == found.strip().lower()
    return value is not None and within(wanted, value, tolerance, scale)


def _mismatches(column: _Column) -> list[Mismatch]:
    return [
        Mismatch(row=row + 1, column=column.name, expected=expected, found="" if is_missing(found) else found)
        for row, expected, found, right in zip(column.rows, column.expected, column.found, column.right, strict=True)
        if not right
    ]


# --- trend -----------------------------------------------------------------------------------------------------------


def _trend(column: _Column) -> float | None:
    """Rank correlation of a column with its truth, times the share that is there; None: it has no trend."""
    truth = [number_of(cell) for cell in column.expected]
    if len(truth) < _LEAST or any(value is None for value in truth) or len(set(truth)) < 2:
        return None
    pairs = []
    for expected, cell, right in zip(truth, column.found, column.right, strict=True):
        value = expected if right else number_of(cell)
        if expected is not None and value is not None:
            pairs.append((expected, value))
    if len(pairs) < _LEAST:
        return 0.0
    left, found = (np.array(side, dtype=np.float64) for side in zip(*pairs, strict=True))
    return max(_spearman(left, found), 0.0) * len(pairs) / len(truth)


def _spearman(left: Floats, right: Floats) -> float:
    """Spearman's rho with mean ranks for ties; 0 where one side is constant."""
    from scipy.stats import rankdata

    ranks = [rankdata(side) for side in (left, right)]
    centred = [rank - rank.mean() for rank in ranks]
    norm = float(np.sqrt((centred[0] ** 2).sum() * (centred[1] ** 2).sum()))
    if norm == 0:
        return 0.0
    return min(max(float((centred[0] * centred[1]).sum()) / norm, -1.0), 1.0)


# --- another sampling ------------------------------------------------------------------------------------------------


def _resampled(
    truth: CsvTable, given: CsvTable, keys: Sequence[str], columns: dict[str, str]
) -> tuple[CsvTable, str]:  # fmt: skip
    """The given table at the truth's points, linearly between neighbours; nothing outside of its range."""
    if len(keys) != 1:
        return given, "it has no single key to interpolate over: compared row by row"
    key = keys[0]
    places = [number_of(cell) for cell in given.column(columns[key])]
    wanted = truth.column(key)
    names = [name for name in truth.columns if name in columns]
    series: dict[str, tuple[str, ...]] = {}
    for name in names:
        cells = [number_of(cell) for cell in given.column(columns[name])]
        points = sorted({p: v for p, v in zip(places, cells, strict=True) if p is not None and v is not None}.items())
        series[name] = wanted if name == key else tuple(_at(points, number_of(cell)) for cell in wanted)
    rows = tuple(zip(*(series[name] for name in names), strict=True))
    return CsvTable(columns=tuple(names), rows=rows, ragged=given.ragged), ""


def _at(points: Sequence[tuple[float, float]], place: float | None) -> str:
    if place is None or not points or not points[0][0] <= place <= points[-1][0]:
        return ""
    return repr(float(np.interp(place, [p for p, _ in points], [v for _, v in points])))
