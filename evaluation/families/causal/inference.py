"""The statistics of the bench: Mann-Whitney U with Holm's correction, Cliff's delta, sign-flip permutation.

Mann and Whitney (1947), Holm (1979), Cliff (1993); used as in petri-bench 3.2, 3.3 and 5. Everything works on whole
arrays of samples at once, because the difficulty rating repeats a decision thousands of times.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

__all__ = ["ALPHA", "PERMUTATIONS", "cliffs_delta", "holm", "mann_whitney", "relative_change", "sign_flip"]

ALPHA: Final = 0.05
PERMUTATIONS: Final = 5000
"""petri-bench 3.2."""


def mann_whitney(first: ArrayLike, second: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two-sided Mann-Whitney U test along the last axis (normal approximation with ties and continuity).

    Args:
        first: shape (..., n).
        second: shape (..., m).

    Returns:
        U of `first` and p, both of shape (...). Samples that are all one value give p = 1.
    """
    one, other = np.asarray(first, np.float64), np.asarray(second, np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        result = stats.mannwhitneyu(one, other, axis=-1, method="asymptotic")
    flat = (one.min(-1) == one.max(-1)) & (other.min(-1) == other.max(-1)) & (one.min(-1) == other.min(-1))
    return np.asarray(result.statistic), np.where(flat, 1.0, np.nan_to_num(result.pvalue, nan=1.0))


def holm(p_values: ArrayLike, axis: int = -1) -> NDArray[np.float64]:
    """Holm's step-down adjusted p values along an axis: max over the smaller ones of (m - rank) p, at most 1."""
    p = np.moveaxis(np.asarray(p_values, np.float64), axis, -1)
    order = np.argsort(p, axis=-1, kind="stable")
    factors = np.arange(p.shape[-1], 0, -1, dtype=np.float64)
    stepped = np.minimum(np.maximum.accumulate(np.take_along_axis(p, order, -1) * factors, axis=-1), 1.0)
    adjusted = np.empty_like(p)
    np.put_along_axis(adjusted, order, stepped, -1)
    return np.moveaxis(adjusted, -1, axis)


def cliffs_delta(first: ArrayLike, second: ArrayLike) -> float:
    """P(second > first) - P(second < first) over all pairs, in [-1, 1]; positive: `second` is larger."""
    one, other = np.asarray(first, np.float64)[:, None], np.asarray(second, np.float64)[None, :]
    return float((np.sign(other - one)).mean())


def relative_change(before: float, after: float) -> float:
    """(after - before) / |before|; from 0 it is infinite in the direction of the change, and 0 for no change."""
    if before == after:
        return 0.0
    return (after - before) / abs(before) if before else float(np.copysign(np.inf, after - before))


def sign_flip(contrasts: ArrayLike, seed: int, permutations: int = PERMUTATIONS) -> float:
    """Two-sided p of the mean of paired contrasts under random flips of their signs (petri-bench 3.2).

    Args:
        contrasts: one per replicate, shape (n,).
        seed: of the flips; equal seeds give equal p.
        permutations: the identity is counted as one more, so p is never 0.
    """
    values = np.asarray(contrasts, np.float64)
    rng = np.random.Generator(np.random.PCG64(seed))
    signs = np.where(rng.random((permutations, values.size)) < 0.5, -1.0, 1.0)
    means = np.abs((signs * values).mean(axis=1))
    reached = int((means >= abs(values.mean()) - 1e-12 * max(1.0, abs(values.mean()))).sum())
    return (reached + 1) / (permutations + 1)
