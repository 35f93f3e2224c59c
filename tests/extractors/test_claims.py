from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.claims import bound_or_range, find_numbers, parse_cell, printed_band, symbols_in


@pytest.mark.parametrize(
    ("text", "value", "decimals", "uncertainty", "unit"),
    [
        ("111.21", 111.21, 2, None, None),
        ("0.9999998 ± 0.0000002", 0.9999998, 7, 2e-07, None),
        ("0.057±0.004", 0.057, 3, 0.004, None),
        ("−7.05", -7.05, 2, None, None),
        ("130, 831", 130831.0, 0, None, None),
        ("50,000", 50000.0, 0, None, None),
        ("93.3*", 93.3, 1, None, None),
        ("12.3 s", 12.3, 1, None, "s"),
        ("87.5%", 87.5, 1, None, "%"),
        ("5e − 5", 5e-05, 5, None, None),
        ("1.2×10−3", 0.0012, 4, None, None),
        ("0.91 (0.02)", 0.91, 2, None, None),
        ("88.1 ↑", 88.1, 1, None, None),
    ],
)
def test_cells(text: str, value: float, decimals: int, uncertainty: float | None, unit: str | None) -> None:
    quantity = parse_cell(text)
    assert quantity is not None
    assert (quantity.value, quantity.decimals, quantity.uncertainty, quantity.unit) == (
        value,
        decimals,
        uncertainty,
        unit,
    )


@pytest.mark.parametrize(
    "text", ["18 / 18 / 18", "250–350", "< 0.1", "—", "", "3a", "BC5CDR", "28.9M (35.6%)", "5 of 7"]
)
def test_cells_that_are_not_one_number(text: str) -> None:
    assert parse_cell(text) is None


@given(st.decimals(min_value=-10000, max_value=10000, places=3), st.integers(min_value=0, max_value=3))
def test_every_printed_number_is_read_back(number: Decimal, places: int) -> None:
    printed = f"{number:.{places}f}"
    quantity = parse_cell(printed)
    assert quantity is not None
    assert quantity.value == float(printed)
    assert quantity.decimals == places


@given(st.decimals(min_value=-1000, max_value=1000, places=5), st.integers(min_value=0, max_value=4))
def test_a_band_holds_exactly_what_prints_as_its_value(number: Decimal, places: int) -> None:
    step = Decimal(10) ** -places
    printed = number.quantize(step)
    band = printed_band(float(printed), float(step))
    assert band.holds(float(number))
    assert not band.holds(float(printed + step))
    assert not band.holds(float(printed - step))
    assert band.source == "printed precision"


def test_a_stated_uncertainty_widens_the_band_and_is_named() -> None:
    band = printed_band(0.91, 0.01, 0.02)
    assert (band.low, band.high) == (0.885, 0.935)
    assert band.source == "printed precision, widened by the stated ± 0.02"


def test_assignments_of_symbols() -> None:
    assert [(name, value) for name, value, _, _ in symbols_in("n ∈ {5,000; 20,000}, k = 3")] == [
        ("n", "{5,000; 20,000}"),
        ("k", "3"),
    ]


def test_bounds_and_approximations_are_told_apart() -> None:
    numbers = find_numbers("about 3.5, at most 7, over 0.999 and exactly 2")
    assert [n.relation for n in numbers] == ["~", "<", ">", "="]
    assert [bound_or_range(n) for n in numbers] == ["an approximate value", "a bound", "a bound", None]


@given(st.text(alphabet="aF1 .,0123456789%±−()=<>×e-", max_size=80))
def test_numbers_are_slices_without_overlap(text: str) -> None:
    numbers = find_numbers(text)
    assert all(text[n.start : n.end] == n.text for n in numbers)
    assert all(a.end <= b.start for a, b in pairwise(numbers))
    parse_cell(text)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a slope of −0.31 was seen", [-0.31]),
        ("it drops to -2.5%", [-2.5]),
        ("from 3–5 points", [3.0, 5.0]),
        ("between 0.2-0.4", [0.2, 0.4]),
    ],
)
def test_minus_after_a_word_is_a_sign_and_between_numbers_a_dash(text: str, values: list[float]) -> None:
    """The first two record a bug: a negative number of running text was read as positive."""
    assert [number.value for number in find_numbers(text)] == values
