import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from caw.agreement import agreement_weights, folds_of, midpoint, out_of_fold_scores
from caw.data import PROBLEMS, corrupt, sample
from caw.ridge import fit_ridge


@pytest.mark.parametrize("name", sorted(PROBLEMS))
def test_sample_shapes(name):
    x, y = sample(name, 50, np.random.default_rng(0))
    assert x.shape == (50, 4)
    assert set(np.unique(y)) <= {-1.0, 1.0}


def test_asymmetric_noise_leaves_the_negative_class_alone():
    labels = np.array([-1.0] * 100 + [1.0] * 100)
    noisy = corrupt(labels, 0.5, "asymmetric", np.random.default_rng(1))
    assert (noisy[:100] == -1).all()
    assert (noisy[100:] == -1).any()


def test_folds_are_balanced():
    counts = np.bincount(folds_of(101, 5, np.random.default_rng(0)))
    assert counts.max() - counts.min() <= 1


def test_downdated_folds_equal_explicit_refits():
    rng = np.random.default_rng(2)
    x, y, w = rng.standard_normal((60, 7)), rng.standard_normal(60), rng.random(60)
    scores = out_of_fold_scores(x, y, w, 0.1, 4, np.random.default_rng(5))
    folds = folds_of(60, 4, np.random.default_rng(5))
    for fold in range(4):
        out = folds == fold
        beta = fit_ridge(x[~out], y[~out], 0.1, w[~out])
        np.testing.assert_allclose(scores[out], x[out] @ beta)


def test_weights_grow_with_the_margin():
    assert (np.diff(agreement_weights(np.linspace(-2, 2, 9), 0.5)) > 0).all()


def test_midpoint_of_a_symmetric_sample_is_zero():
    assert abs(midpoint(np.linspace(-1, 1, 101), 0.1)) < 1e-12
