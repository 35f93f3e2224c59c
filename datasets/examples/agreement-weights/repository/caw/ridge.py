"""Weighted ridge regression on fixed features."""

import numpy as np


def fit_ridge(features, targets, ridge, weights=None):
    """Minimise sum_i w_i (targets_i - features_i . beta)^2 / sum_i w_i + ridge |beta|^2."""
    n, dim = features.shape
    if weights is None:
        weights = np.ones(n)
    total = weights.sum()
    weighted = features * weights[:, None]
    gram = features.T @ weighted / total + ridge * np.eye(dim)
    return np.linalg.solve(gram, weighted.T @ targets / total)
