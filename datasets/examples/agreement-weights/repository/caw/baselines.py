"""Baselines that CAW is compared with. All share the features and the ridge solver."""

import numpy as np

from caw.ridge import fit_ridge


def fit_plain(features, labels, settings):
    """Ridge on all labels as they are."""
    return fit_ridge(features, labels, settings["ridge"])


def fit_trimmed(features, labels, settings):
    """Small-loss trimming: drop the points with the largest training loss, refit, repeat."""
    keep = np.ones(labels.shape[0], dtype=bool)
    beta = fit_ridge(features, labels, settings["ridge"])
    for _ in range(settings["trim_rounds"]):
        loss = (labels - features @ beta) ** 2
        keep = loss <= np.quantile(loss, 1.0 - settings["trim_fraction"])
        beta = fit_ridge(features[keep], labels[keep], settings["ridge"])
    return beta


def fit_huber(features, labels, settings):
    """Huber regression by iteratively reweighted least squares."""
    beta = fit_ridge(features, labels, settings["ridge"])
    for _ in range(settings["huber_rounds"]):
        residual = np.abs(labels - features @ beta)
        weights = np.minimum(1.0, settings["huber_delta"] / np.maximum(residual, 1e-12))
        beta = fit_ridge(features, labels, settings["ridge"], weights)
    return beta


def knn_agrees(points, labels, neighbours):
    """Does a point's label agree with the majority of its nearest neighbours?"""
    squares = (points**2).sum(axis=1)
    distance = squares[:, None] + squares[None, :] - 2.0 * points @ points.T
    np.fill_diagonal(distance, np.inf)
    nearest = np.argpartition(distance, neighbours, axis=1)[:, :neighbours]
    return labels * labels[nearest].sum(axis=1) > 0


def fit_filtered(features, labels, settings, points):
    """Edited nearest neighbours (Wilson, 1972), then ridge on what is left."""
    keep = knn_agrees(points, labels, settings["neighbours"])
    return fit_ridge(features[keep], labels[keep], settings["ridge"])
