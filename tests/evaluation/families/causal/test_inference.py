import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from evaluation.families.causal.inference import cliffs_delta, holm, mann_whitney, relative_change, sign_flip

values = st.lists(st.floats(-100, 100).map(lambda value: round(value, 2)), min_size=5, max_size=15)
p_values = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@given(p_values)
def test_holm_is_monotone_bounded_and_no_smaller_than_p(p: list[float]) -> None:
    adjusted = holm(p)
    assert (adjusted >= np.array(p) - 1e-15).all()
    assert (adjusted <= 1).all()
    order = np.argsort(p, kind="stable")
    assert (np.diff(adjusted[order]) >= 0).all()


def test_holm_known_example() -> None:
    assert np.allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])


@given(values, values)
@settings(max_examples=50)
def test_mann_whitney_is_scipys_and_symmetric(one: list[float], other: list[float]) -> None:
    u, p = mann_whitney(one, other)
    back, p_back = mann_whitney(other, one)
    assert np.isclose(p, p_back)
    assert np.isclose(u + back, len(one) * len(other))
    if len({*one, *other}) > 1:
        assert np.isclose(p, stats.mannwhitneyu(one, other, method="asymptotic").pvalue)
    else:
        assert p == 1.0


@given(values, values)
def test_cliffs_delta_is_antisymmetric(one: list[float], other: list[float]) -> None:
    assert np.isclose(cliffs_delta(one, other), -cliffs_delta(other, one))
    assert -1 <= cliffs_delta(one, other) <= 1


def test_cliffs_delta_of_separated_samples() -> None:
    assert cliffs_delta([1, 2, 3], [4, 5, 6]) == 1.0
    assert cliffs_delta([1, 2], [1, 2]) == 0.0


def test_relative_change() -> None:
    assert relative_change(2.0, 3.0) == 0.5
    assert relative_change(-2.0, -3.0) == -0.5
    assert relative_change(0.0, 0.0) == 0.0
    assert relative_change(0.0, -1.0) == -np.inf


def test_sign_flip_sees_an_effect_and_no_effect() -> None:
    assert sign_flip([1.0, 1.2, 0.9, 1.1, 1.0, 0.8, 1.3, 1.0], seed=1) < 0.02
    assert sign_flip([1.0, -1.2, 0.9, -1.1, 1.0, -0.8, 1.3, -1.0], seed=1) > 0.5
    assert sign_flip([0.0] * 6, seed=1) == 1.0
