"""Kernel ridge regression with a Gaussian kernel."""

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist


def gaussian(a, b, bandwidth):
    return np.exp(-cdist(a, b, "sqeuclidean") / (2.0 * bandwidth**2))


class KernelRidge:
    """Minimises the mean squared error plus `ridge` times the squared norm; the mean response is left free."""

    def __init__(self, bandwidth, ridge):
        self.bandwidth = bandwidth
        self.ridge = ridge

    def fit(self, x, y):
        gram = gaussian(x, x, self.bandwidth)
        gram[np.diag_indices_from(gram)] += self.ridge * len(y)
        self.offset = y.mean()
        self.points = x
        self.dual = cho_solve(cho_factor(gram, lower=True), y - self.offset)
        return self

    def predict(self, x):
        return self.offset + gaussian(x, self.points, self.bandwidth) @ self.dual


def out_of_fold_residuals(x, y, make_model, folds, rng):
    """Residuals of every point under a model that was fitted without the point's fold."""
    assignment = rng.permutation(np.arange(len(y)) % folds)
    residuals = np.empty(len(y))
    for fold in range(folds):
        out = assignment == fold
        residuals[out] = y[out] - make_model().fit(x[~out], y[~out]).predict(x[out])
    return residuals
