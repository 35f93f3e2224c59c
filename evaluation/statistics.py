"""Uncertainty of means, and paired comparisons of two agents (DESIGN 9).

Tasks of one paper share a repository and stand or fall together, so intervals come from a bootstrap that draws *papers*
with all their episodes. Comparisons are paired by task, with Wilcoxon's signed-rank test and Holm's correction over the
metrics that are compared together. Fewer than two clusters or pairs give no interval and no p-value. The seed is fixed:
the same records give the same figures.

Percentile intervals from few papers are too narrow; how many there were is therefore shown beside each interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics import Convention, Estimate, Metric, estimate, mark, population
from evaluation.scores import EpisodeScores
from pipeline.schema import Record

__all__ = [
    "RESAMPLES", "SEED", "Comparison", "clustered_interval", "compare_metric", "compare_metrics", "holm",
    "signed_rank",
]  # fmt: skip

Floats = NDArray[np.float64]

RESAMPLES: Final = 2000
"""With 2,000 the ends of a 95 % interval move by about .2 points between seeds at 461 tasks; 10,000 halve that."""
SEED: Final = 20250531
_LEVEL: Final = 0.95
_BLOCK: Final = 4_000_000
"""Cells of the table of draws made at once: 32 MB, whatever the number of papers."""


class Comparison(Record):
    """Two sets of episodes on the tasks they share, in one metric. Differences are `b - a`."""

    metric: Metric
    tasks: int
    """Shared tasks with a known mark on both sides."""
    left_out: int
    """Shared tasks without: unknown on one side or both."""
    papers: int
    mean_a: float | None
    mean_b: float | None
    all_a: Estimate
    """Over all episodes of the shared tasks, whatever is known of them, with bounds."""
    all_b: Estimate
    difference: float | None
    interval: tuple[float, float] | None
    """95 % interval of the difference, bootstrapped over papers; None with fewer than two."""
    better: int
    """Tasks on which b is above a."""
    worse: int
    equal: int
    p: float | None
    """Wilcoxon signed-rank, two-sided; None with fewer than two tasks."""
    p_holm: float | None = None
    """Corrected over the metrics compared together."""


def clustered_interval(
    values: Sequence[float] | Floats,
    clusters: Sequence[str],
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    level: float = _LEVEL,
) -> tuple[float, float] | None:
    """Percentile interval of a mean, from drawing clusters with replacement.

    Args:
        values: shape (n,), without NaN.
        clusters: the cluster of each value.
        resamples: how often all clusters are drawn.
        level: share of the resampled means inside the interval.

    Returns:
        (low, high), or None with fewer than two clusters, or when all values are equal: drawing equal values again
        says nothing about how far the mean could be from what was seen.

    Raises:
        ValueError: lengths differ, or a value is not a number.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (len(clusters),):
        raise ValueError(f"{array.shape} values for {len(clusters)} clusters")
    if np.isnan(array).any():
        raise ValueError("unknown values have no place in an interval: leave them out first")
    names, codes = np.unique(np.asarray(clusters, dtype=object).astype(str), return_inverse=True)
    if len(names) < 2 or array.min() == array.max():
        return None
    order = np.lexsort((array, codes))  # sums of floats depend on the order, and a permutation must change nothing
    sums = np.bincount(codes[order], weights=array[order], minlength=len(names)).astype(np.float64)
    sizes = np.bincount(codes, minlength=len(names)).astype(np.float64)
    means = _resampled_means(sums, sizes, resamples, seed)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _resampled_means(sums: Floats, sizes: Floats, resamples: int, seed: int) -> Floats:
    """Mean of each resample: how often each cluster is drawn is multinomial."""
    generator = np.random.default_rng(seed)
    count = len(sums)
    chances = np.full(count, 1.0 / count)
    block = max(1, _BLOCK // count)
    parts = []
    for start in range(0, resamples, block):
        drawn = generator.multinomial(count, chances, size=min(block, resamples - start)).astype(np.float64)
        parts.append((drawn @ sums) / (drawn @ sizes))
    return np.concatenate(parts)


def signed_rank(differences: Sequence[float] | Floats) -> float | None:
    """Two-sided p-value of Wilcoxon's signed-rank test; zero differences are dropped, as Wilcoxon did.

    Returns:
        None with fewer than two differences; 1.0 when all of them are zero.
    """
    array = np.asarray(differences, dtype=np.float64)
    if len(array) < 2:
        return None
    moved = np.sort(array[array != 0])
    if not len(moved):
        return 1.0
    from scipy.stats import wilcoxon  # a second to import, and reports need none of it

    # SciPy picks the exact distribution where it can have it (few pairs), else the normal approximation with ties.
    return float(wilcoxon(moved).pvalue)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction; a None is not a test and stays None."""
    tested = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    running = 0.0
    for rank, (p, index) in enumerate(tested):
        running = max(running, min(1.0, p * (len(tested) - rank)))
        corrected[index] = running
    return corrected


def compare_metrics(
    a: Sequence[EpisodeScores],
    b: Sequence[EpisodeScores],
    metrics: Iterable[Metric],
    convention: Convention = Convention.STRICT,
    *,
    seed: int = SEED,
) -> tuple[Comparison, ...]:
    """Paired comparison in several metrics, p-values corrected over them (Holm)."""
    found = [compare_metric(a, b, metric, convention, seed=seed) for metric in metrics]
    corrected = holm([item.p for item in found])
    return tuple(item.evolve(p_holm=p) for item, p in zip(found, corrected, strict=True))


def compare_metric(
    a: Sequence[EpisodeScores],
    b: Sequence[EpisodeScores],
    metric: Metric,
    convention: Convention = Convention.STRICT,
    *,
    seed: int = SEED,
) -> Comparison:
    """Paired comparison in one metric: per task the mean of its known repeats on each side."""
    sides = [_task_means(episodes, metric, convention) for episodes in (a, b)]
    shared = sorted(sides[0].keys() & sides[1].keys())
    pairs = [
        (paper, left, right)
        for (paper, left), (_, right) in ((sides[0][task], sides[1][task]) for task in shared)
        if left is not None and right is not None
    ]
    papers = [paper for paper, _, _ in pairs]
    left = np.array([item[1] for item in pairs], dtype=np.float64)
    right = np.array([item[2] for item in pairs], dtype=np.float64)
    moved = right - left
    return Comparison(
        metric=metric,
        tasks=len(pairs),
        left_out=len(shared) - len(pairs),
        papers=len(set(papers)),
        mean_a=float(left.mean()) if pairs else None,
        mean_b=float(right.mean()) if pairs else None,
        all_a=estimate([scores for scores in a if scores.task in sides[1]], metric, convention),
        all_b=estimate([scores for scores in b if scores.task in sides[0]], metric, convention),
        difference=float(moved.mean()) if pairs else None,
        interval=clustered_interval(moved, papers, seed=seed) if pairs else None,
        better=int(np.sum(moved > 0)),
        worse=int(np.sum(moved < 0)),
        equal=int(np.sum(moved == 0)),
        p=signed_rank(moved),
    )


def _task_means(
    episodes: Sequence[EpisodeScores], metric: Metric, convention: Convention
) -> dict[str, tuple[str, float | None]]:
    """Task -> (paper, mean of the known marks of its repeats, None where there are none)."""
    counted = {id(scores) for scores in population(episodes, metric, convention)}
    known: dict[str, list[float]] = {}
    papers: dict[str, str] = {}
    for scores in episodes:
        papers[scores.task] = scores.paper
        values = known.setdefault(scores.task, [])
        value = mark(scores, metric, convention).value if id(scores) in counted else None
        if value is not None:
            values.append(value)
    return {task: (papers[task], float(np.mean(np.sort(values))) if values else None) for task, values in known.items()}
