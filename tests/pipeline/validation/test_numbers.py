from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from pipeline.validation.numbers import find_numbers, half_unit, parse_number


def test_numbers_of_a_line() -> None:
    line = "n= 5,000 RMSE=0.03714, bias=-0.01053, x=\u22121.5e-5, acc 87.3% (±0.4)"
    assert [number.value for number in find_numbers(line)] == [5000, 0.03714, -0.01053, -1.5e-5, 87.3]
    last = list(find_numbers(line))[-1]
    assert last.percent
    assert last.uncertainty == 0.4


def test_numbers_inside_names_versions_dates_and_paths_are_left_out() -> None:
    line = "exp1 R2 v1.2.3 numpy-1.26.4 2024-01-02 12:30:05,123 runs/3/out 0x1f h_2"
    assert list(find_numbers(line)) == []


def test_a_fraction_of_steps_counts_the_first_number_only() -> None:
    assert [number.value for number in find_numbers("Epoch 3/10")] == [3]


def test_cells() -> None:
    assert parse_number(r"\textbf{87.3}").value == 87.3
    assert parse_number("**0.91 ± 0.02**").uncertainty == 0.02
    assert parse_number("(0.5)").value == 0.5
    assert parse_number("CAW 3") is None
    assert parse_number("") is None
    assert parse_number("nan") is None


def test_decimals_say_how_exact_a_number_is() -> None:
    assert parse_number("0.910").decimals == 3
    assert parse_number("1.50e-3").decimals == 5
    assert half_unit(parse_number("1.5e3").decimals) == 50.0


@given(st.floats(allow_nan=False, allow_infinity=False, width=64, min_value=-1e12, max_value=1e12), st.integers(0, 9))
def test_every_printed_float_is_read_back(value: float, decimals: int) -> None:
    text = f"{value:.{decimals}f}"
    (number,) = find_numbers(f"accuracy = {text}")
    assert number.value == float(text) or (number.value == 0 and float(text) == 0)
    assert number.decimals == decimals


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e30, max_value=1e30))
def test_exponents_are_read_back(value: float) -> None:
    number = parse_number(f"{value:.6e}")
    assert number is not None
    assert math.isclose(number.value, value, rel_tol=1e-6, abs_tol=1e-300)


@given(st.integers(0, 10**12))
def test_thousands_separators(value: int) -> None:
    assert [number.value for number in find_numbers(f"n = {value:,} samples")] == [value]


@given(st.text(max_size=200))
def test_any_text_is_survived(text: str) -> None:
    for number in find_numbers(text):
        assert 0 <= number.start < number.end <= len(text)
        assert math.isfinite(number.value)
