from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.match.chance import agreement_chances, code_length, find_spacing, round_chances, tail_bound

CHANCES = st.lists(st.floats(0.001, 0.9), min_size=1, max_size=8)


@given(CHANCES, st.integers(0, 2**8 - 1))
def test_the_bound_is_one(chances: list[float], mask: int) -> None:
    """Against all outcomes, counted: the probability that the surprise is as large."""
    p = np.array(chances)
    hits = np.array([bool(mask >> i & 1) for i in range(len(p))])
    weights = -np.log(p)
    exact = 0.0
    for outcome in range(2 ** len(p)):
        drawn = np.array([bool(outcome >> i & 1) for i in range(len(p))])
        if weights[drawn].sum() >= weights[hits].sum() - 1e-9:
            exact += float(np.where(drawn, p, 1 - p).prod())

    assert tail_bound(p, hits) >= math.log10(exact) - 1e-9


@pytest.mark.parametrize(
    ("values", "spacing"),
    [
        ([29 / 30, 28 / 30, 25 / 30, 1.0], 1 / 30),
        ([0.725, 0.75, 0.625, 0.775], 1 / 40),
        ([3, 8, 12, 31], 1.0),
        ([100, 300, 1200, 2500], 100.0),
        ([0.8123, 0.7719, 0.9034, 0.8881], 0.0),
        ([0.5], 0.0),
    ],
)
def test_spacing(values: list[float], spacing: float) -> None:
    assert find_spacing(np.array(values), 5e-5) == pytest.approx(spacing)


def test_crowded_numbers_agree_easily() -> None:
    crowd = np.sort(np.random.default_rng(0).uniform(0.8, 0.9, 10_000))
    printed = np.array([0.8512, 0.9512])
    found = agreement_chances(printed, np.full(2, 5e-5), crowd, np.ones(2), round_chances(printed))

    assert found[0] == pytest.approx(0.001, rel=0.5)  # 1e-4 wide in a range of 0.1
    assert found[1] < found[0]


def test_round_numbers_have_few_digits() -> None:
    assert round_chances(np.array([400, 0.1, 0.725, 12.0, 0.0])) == pytest.approx(
        [math.log10(1 + 1 / 4), math.log10(2), math.log10(1 + 1 / 725), math.log10(1 + 1 / 12), 1.0]
    )


def test_code_length() -> None:
    assert code_length([5, 0]) == pytest.approx(math.log10(6))
    assert code_length([1, 1, 1]) > code_length([3, 0, 0])
