"""Typed series and recovered rows: what holds for any numbers."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evaluation.families.histogram.hardcoded import (
    TypedSeries,
    decimals_of,
    explains,
    numbers_in,
    significant,
)

yields = st.lists(st.floats(0.01, 1e5).map(lambda value: round(value, 4)), min_size=3, max_size=12)


def series(values: list[float]) -> TypedSeries:
    return TypedSeries(tuple(values), "here", "line", None)


@given(yields, st.floats(1e-3, 1e3), st.integers(0, 11))
def test_a_series_explains_itself_and_its_multiples_and_nothing_else(
    values: list[float], factor: float, changed: int
) -> None:
    assume(len(set(values)) > 1)
    digits = [4] * len(values)
    assert explains(series([1.0, *values, 2.0]), values, digits)
    assert explains(series(values), [factor * value for value in values], [12] * len(values))
    other = list(values)
    other[changed % len(values)] *= 1.5
    assert explains(series(other), values, digits) == ()
    assert explains(series(values[:-1]), values, digits) == ()


@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=8))
def test_numbers_are_read_as_they_are_written(values: list[float]) -> None:
    for text in (" ".join(map(repr, values)), ",".join(map(repr, values)), f"[{', '.join(map(repr, values))}]"):
        assert [value for value, _ in numbers_in(text)] == values


@pytest.mark.parametrize(
    ("text", "decimals", "digits"),
    [("1.50", 2, 3), ("12", 0, 2), ("1.5e3", -2, 2), ("0.0042", 4, 2), ("4e-3", 3, 1), (".5", 1, 1)],
)
def test_digits(text: str, decimals: int, digits: int) -> None:
    assert decimals_of(text) == decimals
    assert significant(float(text), decimals) == digits


def test_words_and_versions_are_no_numbers() -> None:
    assert numbers_in("v1.2 x3 numpy==1.26.4 a_5 9th") == []
