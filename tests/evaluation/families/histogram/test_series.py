"""Numbers in texts: what holds for any of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.families.histogram.recovery import decimals_of, numbers_in


@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=8))
def test_numbers_are_read_as_they_are_written(values: list[float]) -> None:
    for text in (" ".join(map(repr, values)), ",".join(map(repr, values)), f"[{', '.join(map(repr, values))}]"):
        assert [value for value, _ in numbers_in(text)] == values


@pytest.mark.parametrize(
    ("text", "decimals"), [("1.50", 2), ("12", 0), ("1.5e3", -2), ("0.0042", 4), ("4e-3", 3), (".5", 1)]
)
def test_digits(text: str, decimals: int) -> None:
    assert decimals_of(text) == decimals


def test_words_and_versions_are_no_numbers() -> None:
    assert numbers_in("v1.2 x3 numpy==1.26.4 a_5 9th") == []
