"""When a reported number occurs in what a run printed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.reported_numbers import occurs, reported_digits, trace_numbers
from pipeline.task import Verdict
from pipeline.validation.observation import Observation
from pipeline.validation.text_output import observe_text


def seen(text: str) -> list[Observation]:
    return list(observe_text(text, "stdout"))


@pytest.mark.parametrize(
    ("value", "printed", "name", "found"),
    [
        (0.87, "accuracy: 0.8731", "accuracy", True),
        (0.8731, "accuracy: 0.87", "accuracy", False),  # digits that nobody printed
        (0.88, "accuracy: 0.8731", "accuracy", False),
        (87.3, "accuracy: 0.87312", "accuracy", True),  # three digits agree
        (87.0, "accuracy: 0.8702", "accuracy", False),  # two agree by chance too often
        (87.0, "accuracy: 0.8702", "accuracy (%)", True),
        (0.873, "accuracy: 87.3%", "accuracy", True),
        (-1.5, "gain: -1.5", "gain", True),
        (1.5, "gain: -1.5", "gain", False),
        (3.0, "3 rules", "rules", True),
        (3.0, "score: 3.2", "score", False),  # one digit: equal or not at all
        (1e-05, "p = 0.00001", "p", True),
        (0.29, "x = 0.285", "x", True),  # half a unit of the last digit, whatever the float says
        (float("nan"), "nan", "x", False),
        (float("inf"), "inf", "x", False),
    ],
)
def test_what_occurs(value: float, printed: str, name: str, found: bool) -> None:
    assert any(occurs(name, value, item) for item in seen(printed)) is found


@given(st.floats(-1e6, 1e6, allow_nan=False).map(lambda x: round(x, 4)), st.integers(0, 3))
def test_rounding_what_was_printed_keeps_it(value: float, digits: int) -> None:
    rounded = round(value, digits)
    _, significant = reported_digits(rounded)
    if significant >= 2:
        printed = Observation(value=value, text=f"{value:.4f}", decimals=4, where="stdout:1")
        assert occurs("x", rounded, printed)


@given(st.floats(-1e9, 1e9, allow_nan=False))
def test_a_number_occurs_where_it_is_printed_whole(value: float) -> None:
    places, _ = reported_digits(value)
    assert occurs("x", value, Observation(value=value, text=repr(value), decimals=places, where="stdout:1"))


def test_places_that_share_words_with_the_name_come_first() -> None:
    observations = seen("loss: 0.912\naccuracy of rule A: 0.912\n")
    trace = trace_numbers({"accuracy, rule A": 0.912}, observations, complete=True)[0]
    assert trace.verdict is Verdict.PASS
    assert trace.files[0].startswith("stdout:2")


def test_what_was_not_read_whole_leaves_a_missing_number_unknown() -> None:
    assert trace_numbers({"x": 0.5}, [], complete=True)[0].verdict is Verdict.FAIL
    assert trace_numbers({"x": 0.5}, [], complete=False)[0].verdict is Verdict.UNKNOWN
