"""Cross-fitted agreement weights (CAW).

A label is trusted as far as models that have not seen it agree with it: the weight of a training point is a logistic
function of its out-of-fold margin, and weights and models are refined in turn.
"""

import numpy as np

from caw.ridge import fit_ridge


def folds_of(n, folds, rng):
    """A random assignment of `n` points to `folds` folds of (nearly) equal size."""
    return rng.permutation(np.arange(n) % folds)


def out_of_fold_scores(features, labels, weights, ridge, folds, rng):
    """Scores f(x_i) with f fitted without the fold that holds i.

    The normal equations are summed per fold and the held-out part is subtracted, so that all folds together cost
    little more than a single fit.
    """
    dim = features.shape[1]
    assignment = folds_of(labels.shape[0], folds, rng)
    members = [np.flatnonzero(assignment == fold) for fold in range(folds)]
    grams, rights = [], []
    for index in members:
        weighted = features[index] * weights[index, None]
        grams.append(features[index].T @ weighted)
        rights.append(weighted.T @ labels[index])
    gram, right, total = sum(grams), sum(rights), weights.sum()
    scores = np.empty(labels.shape[0])
    for index, own_gram, own_right in zip(members, grams, rights):
        rest = total - weights[index].sum()
        beta = np.linalg.solve((gram - own_gram) / rest + ridge * np.eye(dim), (right - own_right) / rest)
        scores[index] = features[index] @ beta
    return scores


def in_sample_scores(features, labels, weights, ridge):
    """Scores of a model that was fitted to the same points (used by the ablation)."""
    return features @ fit_ridge(features, labels, ridge, weights)


def midpoint(scores, tail):
    """Half way between the lower and the upper tail quantile: where the two classes meet under unequal noise."""
    low, high = np.quantile(scores, [tail, 1.0 - tail])
    return 0.5 * (low + high)


def agreement_weights(margins, temperature, hard=False):
    """Logistic weights of the margins, or their sign when `hard`."""
    if hard:
        return np.where(margins > 0, 1.0, 1e-3)
    return 1.0 / (1.0 + np.exp(-margins / temperature))


def fit_caw(features, labels, settings, rng, cross_fit=True, centre=True, hard=False, rounds=None):
    """Alternate between weights and models for `rounds` rounds; returns the final coefficients and weights."""
    weights = np.ones(labels.shape[0])
    for _ in range(settings["rounds"] if rounds is None else rounds):
        if cross_fit:
            scores = out_of_fold_scores(features, labels, weights, settings["ridge"], settings["folds"], rng)
        else:
            scores = in_sample_scores(features, labels, weights, settings["ridge"])
        offset = midpoint(scores, settings["tail"]) if centre else 0.0
        weights = agreement_weights(labels * (scores - offset), settings["temperature"], hard)
    return fit_ridge(features, labels, settings["ridge"], weights), weights
