import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from nsc.conformal import quantile, weighted_quantiles
from nsc.data import PROBLEMS, sample, tilted_uniform
from nsc.krr import KernelRidge
from nsc.metrics import coverage, interval_score
from nsc.scale import NeighbourScale


def test_quantile_is_the_right_order_statistic():
    assert quantile(np.arange(1, 100), 0.9) == 90
    assert quantile(np.arange(3.0), 0.9) == np.inf


def test_equal_weights_give_nearly_the_plain_quantile():
    scores = np.random.default_rng(0).random(199)
    weighted = weighted_quantiles(scores, np.ones(199), np.ones(3), 0.9)
    assert weighted == pytest.approx([quantile(scores, 0.9)] * 3)


@pytest.mark.parametrize("name", sorted(PROBLEMS))
def test_noise_levels_are_positive(name):
    assert (sample(name, 500, np.random.default_rng(1))[2] > 0).all()


def test_tilt_moves_mass_to_the_right():
    rng = np.random.default_rng(2)
    assert tilted_uniform(4000, 1.0, rng).mean() > 0.2
    assert abs(tilted_uniform(4000, 0.0, rng).mean()) < 0.05


def test_kernel_ridge_interpolates_without_noise():
    x = np.linspace(-1, 1, 30)[:, None]
    model = KernelRidge(0.4, 1e-8).fit(x, np.sin(2 * x[:, 0]))
    assert np.abs(model.predict(x) - np.sin(2 * x[:, 0])).max() < 1e-3


def test_full_shrinkage_is_a_constant():
    x = np.random.default_rng(3).random((50, 2))
    assert np.ptp(NeighbourScale(x, x[:, 0], 5, 1.0)(x)) == pytest.approx(0.0)


def test_score_of_a_covering_interval_is_its_width():
    y = np.zeros(4)
    assert interval_score(y, y, np.ones(4), 0.9) == 2.0
    assert coverage(y, y, np.ones(4)) == 100.0
