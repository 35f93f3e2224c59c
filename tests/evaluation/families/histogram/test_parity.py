"""Our metrics against plain formulas, and, where a checkout of it is at hand, against the published scorer itself.

`EXPBENCH_COLLIDER_BENCH` names a checkout of the published repository; `benchmarks/histogram/parity.py` does the same for
every published task and prints the largest differences.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from benchmarks.histogram.parity import METRICS, compare, published_metrics
from evaluation.families.histogram.metrics import (
    baker_cousins_p_value,
    bin_disagreement,
    jensen_shannon,
    lambda_norm,
    lambda_shape,
    mean_bin_error,
    rmsle,
    unit_area,
)

CHECKOUT = os.environ.get("EXPBENCH_COLLIDER_BENCH", "")
counts = st.lists(st.floats(0, 1e5) | st.just(0.0), min_size=4, max_size=4)


@given(counts, counts)
def test_plain_formulas(predicted: list[float], reference: list[float]) -> None:
    assume(sum(reference) > 1e-3)
    assume(sum(predicted) > 1e-3)
    p, q = np.array(predicted) / sum(predicted), np.array(reference) / sum(reference)
    m = (p + q) / 2

    def kl(a: np.ndarray, b: np.ndarray) -> float:
        return float(sum(x * math.log2(x / y) for x, y in zip(a, b, strict=True) if x > 0))

    assert jensen_shannon(predicted, reference) == pytest.approx((kl(p, m) + kl(q, m)) / 2, abs=1e-9)
    assert bin_disagreement(predicted, reference) == pytest.approx((abs(p - q).sum() / 2, abs(p - q).max()), abs=1e-9)
    logs = np.log(np.array(predicted) + 1) - np.log(np.array(reference) + 1)
    assert rmsle(predicted, reference) == pytest.approx(float(np.sqrt((logs**2).mean())), abs=1e-9)


def test_values_worked_out_by_hand() -> None:
    assert jensen_shannon([1, 0], [0, 1]) == 1.0
    assert jensen_shannon([2, 4], [1, 2]) == pytest.approx(0.0, abs=1e-15)
    assert jensen_shannon([1, 1], [1, 0]) == pytest.approx(0.5 * (0.5 * math.log2(2 / 3) + 0.5 + math.log2(4 / 3)))
    assert jensen_shannon([0, 0], [1, 2]) is None
    assert bin_disagreement([1, 1], [1, 3]) == pytest.approx((0.25, 0.25))
    assert mean_bin_error([2, 1, 9], [1, 2, 0]) == pytest.approx(75.0)
    assert mean_bin_error([1.0], [0.0]) is None
    assert rmsle([math.e - 1, 0], [0, 0]) == pytest.approx(1 / math.sqrt(2))
    assert unit_area([0, 0]) is None
    observed, expected = np.array([4.0, 0.0]), np.array([2.0, 2.0])
    assert float(lambda_shape(observed, expected)) == pytest.approx(8 * math.log(2))
    assert float(lambda_norm(observed, expected)) == 0.0
    assert float(lambda_norm(np.array([8.0, 0.0]), expected)) == pytest.approx(2 * (8 * math.log(2) - 4))


def test_a_p_value_is_a_share_of_toys() -> None:
    reference = [40.0, 30.0, 20.0, 10.0]
    near = baker_cousins_p_value([41, 29, 20, 10], reference, toys=2000)
    far = baker_cousins_p_value([10, 20, 30, 40], reference, toys=2000)
    scaled = baker_cousins_p_value([80, 60, 40, 20], reference, toys=2000)
    norm = baker_cousins_p_value([80, 60, 40, 20], reference, kind="normalization", toys=2000)
    assert near is not None
    assert near > 0.9
    assert far == norm == 1 / 2001
    assert scaled == 1.0
    assert near == baker_cousins_p_value([41, 29, 20, 10], reference, toys=2000)
    wide = baker_cousins_p_value([80, 60, 40, 20], reference, kind="normalization", systematic=1.0, toys=2000)
    assert wide is not None
    assert wide > 0.05
    assert baker_cousins_p_value([0, 0, 0, 0], reference) is None
    assert baker_cousins_p_value([1, 1], [1e20, 1.0]) is None


@settings(max_examples=25)
@given(st.lists(st.floats(1, 1e4), min_size=2, max_size=6), st.floats(0.1, 10))
def test_a_p_value_of_the_shape_knows_no_scale(reference: list[float], factor: float) -> None:
    p_value = baker_cousins_p_value([factor * value for value in reference], reference, toys=50)
    assert p_value is not None
    assert p_value > 0.5  # a toy may have the reference's very shape


@pytest.mark.skipif(not CHECKOUT, reason="EXPBENCH_COLLIDER_BENCH names no checkout of the published repository")
def test_the_published_scorer_says_the_same() -> None:
    result = compare(Path(CHECKOUT), draws=200)
    assert result.tasks >= 60
    assert set(result.largest) == set(METRICS)
    assert all(difference <= 1e-9 for difference in result.largest.values()), result.largest
    assert result.disagreements == []
    assert set(published_metrics(Path(CHECKOUT))) == set(METRICS)
