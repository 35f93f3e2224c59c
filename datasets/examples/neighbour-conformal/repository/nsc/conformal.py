"""Split conformal prediction with a scale function, optionally weighted for covariate shift."""

import numpy as np


def quantile(scores, level):
    """The ceil(level (n + 1))-th smallest score: the finite-sample conformal quantile."""
    n = len(scores)
    rank = int(np.ceil(level * (n + 1)))
    return np.inf if rank > n else np.sort(scores)[rank - 1]


def weighted_quantiles(scores, weights, test_weights, level):
    """Weighted conformal quantiles, one per test point (Tibshirani et al., 2019)."""
    order = np.argsort(scores)
    ordered, cumulated = scores[order], np.cumsum(weights[order])
    total = cumulated[-1] + test_weights
    position = np.searchsorted(cumulated, level * total)
    # Where even the largest score does not reach the level, the interval would be infinite; it is cut there.
    return ordered[np.minimum(position, len(ordered) - 1)]


def half_widths(model, scale, x_cal, y_cal, x_test, level, weights=None, test_weights=None):
    """Half of the interval's width at every test point."""
    scores = np.abs(y_cal - model.predict(x_cal)) / scale(x_cal)
    if weights is None:
        return quantile(scores, level) * scale(x_test)
    return weighted_quantiles(scores, weights, test_weights, level) * scale(x_test)


def mondrian_half_widths(model, x_cal, y_cal, x_test, level, groups):
    """Separate quantiles for groups of equal size by predicted value."""
    predicted, residuals = model.predict(x_cal), np.abs(y_cal - model.predict(x_cal))
    edges = np.quantile(predicted, np.linspace(0, 1, groups + 1)[1:-1])
    cal_group, test_group = np.searchsorted(edges, predicted), np.searchsorted(edges, model.predict(x_test))
    half = np.array([quantile(residuals[cal_group == group], level) for group in range(groups)])
    return half[test_group]
