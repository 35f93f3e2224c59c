"""Metrics of an evaluation, from per-episode scores alone (DESIGN 9; EXP-Bench 4.1 and 4.2).

Every metric of an episode is three-valued: a `Mark` holds its value, or None with the lowest and highest value that is
still possible. A conjunction asks for *full* marks in each part and is an indicator, never a product (EXP-Bench,
Table 6: Probabilistic Methods with I 49.3 and E 100 has I·E 0.0). It is settled as soon as one part is known to miss.

How an episode counts that the monitor failed is a `Convention`. In EXP-Bench's, such an episode is not re-executed and
so leaves the denominators of E, I·E and AllX·E: being caught raised an agent's AllX·E, and its rank with it. In ours it
is a 0 everywhere and leaves no denominator.

Means are published twice: over the episodes whose mark is known, and as the lower and upper bound of the mean over all
of them. Confidence intervals are in `evaluation.statistics`; tables that put both together in `evaluation.report`.
Non-goals: reading files, deciding verdicts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from math import comb
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from evaluation.scores import EpisodeScores
from pipeline.schema import Record
from pipeline.task import Family

__all__ = [
    "CHECKED_ONLY", "FULL_MARKS", "LADDER", "RANKED_BY", "TABLE_1", "Convention", "Estimate", "Mark", "Metric",
    "PassRate", "RepeatSpread", "Spread", "caught", "estimate", "execution_checked", "mark", "marks", "pass_at_k",
    "pass_hat_k", "pass_rates", "population", "rank_key", "repeat_spread", "stability",
]  # fmt: skip

Floats = NDArray[np.float64]
KeyT = TypeVar("KeyT", str, int)


class Metric(StrEnum):
    """Single metrics, conjunctions of full marks, and the rungs of the strictness ladder."""

    M = "M"
    D = "D"
    I = "I"  # noqa: E741 - the paper's name
    E = "E"
    C = "C"
    I_E = "I·E"
    C_D = "C·D"
    ALL = "AllX"
    ALL_E = "AllX·E"
    M_D_C = "M·D·C"
    M_D_I_C = "M·D·I·C"
    M_D_I_C_E = "M·D·I·C·E"


class Convention(StrEnum):
    """How an episode counts that the monitor failed, and over which episodes a mean is taken."""

    STRICT = "expbench"
    """Caught is 0 in every metric; every mean is over all episodes; a restated design is no part of a conjunction."""
    PAPER = "EXP-Bench"
    """EXP-Bench's Table 1: the monitor counts in the ladder alone, E over the execution-checked episodes."""


FULL_MARKS: Final[dict[Metric, tuple[Metric, ...]]] = {
    Metric.I_E: (Metric.I, Metric.E),
    Metric.C_D: (Metric.C, Metric.D),
    Metric.ALL: (Metric.D, Metric.I, Metric.C),
    Metric.ALL_E: (Metric.D, Metric.I, Metric.C, Metric.E),
    Metric.M_D_C: (Metric.M, Metric.D, Metric.C),
    Metric.M_D_I_C: (Metric.M, Metric.D, Metric.I, Metric.C),
    Metric.M_D_I_C_E: (Metric.M, Metric.D, Metric.I, Metric.C, Metric.E),
}
"""Conjunction -> the parts that must all be full."""

TABLE_1: Final = (Metric.D, Metric.I, Metric.E, Metric.I_E, Metric.C, Metric.ALL, Metric.ALL_E)
"""Columns of the paper's Tables 1, 3 and 6, in their order (#E follows)."""

LADDER: Final = (Metric.M, Metric.M_D_C, Metric.M_D_I_C, Metric.M_D_I_C_E)
"""Fig. 6b: each rung asks for all that the one before it asks for, and more."""

RANKED_BY: Final = Metric.M_D_I_C_E
"""What orders agents: all that is asked for at once."""

CHECKED_ONLY: Final = frozenset({Metric.E, Metric.I_E, Metric.ALL_E, *LADDER})
"""Metrics whose mean EXP-Bench takes over execution-checked episodes. Seen in Table 1: I·E 14.9 of #E 235 is 35
episodes, 2.9 of 420 is 12; of all 461 tasks neither gives a whole number that rounds to what is printed. Fig. 6b is
over the 1,414 checked traces of all agents."""

_SINGLE: Final = frozenset({Metric.M, Metric.D, Metric.I, Metric.E, Metric.C})
_FULL: Final = 1.0


class Mark(NamedTuple):
    """A metric of one episode, from 0 to 1. Known: `low == value == high`. Unknown: None within the bounds."""

    value: float | None
    low: float
    high: float


class Estimate(Record):
    """A mean over episodes, with and without the unknown ones."""

    metric: Metric
    n: int
    """Episodes of the metric's population."""
    known: int
    mean: float | None
    """Over the known marks; None when there are none."""
    low: float | None
    """Mean over all `n`, every unknown mark at its lowest; None when `n` is 0."""
    high: float | None
    """The same at their highest. `mean` may lie outside where unknown marks are bounded more narrowly than by 0 and 1:
    it is an estimate from the known part, these bound the whole."""
    interval: tuple[float, float] | None = None
    """95 % interval of `mean`, bootstrapped over papers; None with fewer than two of them."""

    @property
    def unknown(self) -> int:
        """Episodes whose mark is unknown."""
        return self.n - self.known


class Spread(Record):
    """How much a metric varies between episodes, and between the repeats of one task (Fig. 5)."""

    metric: Metric
    n: int
    """Known marks."""
    mean: float | None
    variance: float | None
    """Of the marks, with n - 1; None with fewer than two."""
    within_task: float | None
    """Mean over tasks of the variance between the repeats of a task; None where no task has two known repeats."""

    @property
    def deviation(self) -> float | None:
        """Standard deviation of the marks."""
        return None if self.variance is None else float(np.sqrt(self.variance))


class RepeatSpread(Record):
    """Means of a metric per repeat, and how they differ."""

    metric: Metric
    means: tuple[tuple[int, float], ...]
    """(repeat, mean over its known marks)."""
    mean: float | None
    deviation: float | None
    """Standard deviation of the means with n - 1; None with fewer than two repeats."""


class PassRate(Record):
    """pass@k and pass^k: at least one of k attempts, and all of k attempts, have full marks."""

    metric: Metric
    k: int
    tasks: int
    """Tasks with at least k known marks: the others say nothing about k."""
    left_out: int
    at_least_one: float | None
    """pass@k."""
    every: float | None
    """pass^k."""


# --- one episode -----------------------------------------------------------------------------------------------------


def caught(scores: EpisodeScores) -> bool:
    """Is it known that the monitor failed? A suspicion (unknown) is not."""
    return scores.monitor is not None and scores.monitor < _FULL


def mark(scores: EpisodeScores, metric: Metric, convention: Convention = Convention.STRICT) -> Mark:
    """A metric of one episode.

    Args:
        scores: of an episode, whatever its status: what is unknown stays unknown.
        metric: single, or a conjunction of full marks.
        convention: does being caught by the monitor count beyond M?
    """
    strict = convention is Convention.STRICT
    if strict and metric is not Metric.M and caught(scores):
        return Mark(0.0, 0.0, 0.0)
    if metric in _SINGLE:
        return _single(scores, metric)
    left_out = Metric.D if strict and scores.design_restated else None
    parts = [_single(scores, part) for part in FULL_MARKS[metric] if part is not left_out]
    if any(part.high < _FULL for part in parts):
        return Mark(0.0, 0.0, 0.0)
    if all(part.low >= _FULL for part in parts):
        return Mark(1.0, 1.0, 1.0)
    return Mark(None, 0.0, 1.0)


def _single(scores: EpisodeScores, metric: Metric) -> Mark:
    low, high = 0.0, 1.0
    match metric:
        case Metric.M:
            value = scores.monitor
        case Metric.D:
            value, (low, high) = scores.design, scores.design_bounds
        case Metric.I:
            value, (low, high) = scores.implementation, scores.implementation_bounds
        case Metric.E:
            value = scores.execution
        case _:
            value = scores.conclusion
    return Mark(None, low, high) if value is None else Mark(value, value, value)


def execution_checked(scores: EpisodeScores, convention: Convention = Convention.STRICT) -> bool:
    """Does the episode count in #E? Ours counts a caught one too: it was discarded before the check, and its E is 0."""
    strict = convention is Convention.STRICT
    return scores.execution_checked or scores.execution is not None or (strict and caught(scores))


def population(
    episodes: Iterable[EpisodeScores], metric: Metric, convention: Convention = Convention.STRICT
) -> list[EpisodeScores]:
    """The episodes over which the mean of a metric is taken: all, in EXP-Bench's convention those of `CHECKED_ONLY`.

    Episodes of other families have no D, I, E, C.
    """
    own = [scores for scores in episodes if metric is Metric.M or scores.family is Family.EXPERIMENT]
    if convention is Convention.STRICT or metric not in CHECKED_ONLY:
        return own
    return [scores for scores in own if execution_checked(scores, convention)]


# --- means -----------------------------------------------------------------------------------------------------------


def marks(episodes: Sequence[EpisodeScores], metric: Metric, convention: Convention = Convention.STRICT) -> Floats:
    """Marks of episodes as an array of shape (episodes, 3): value (NaN where unknown), low, high."""
    rows = [mark(scores, metric, convention) for scores in episodes]
    table = [(np.nan if value is None else value, low, high) for value, low, high in rows]
    return np.array(table, dtype=np.float64).reshape(-1, 3)


def estimate(
    episodes: Sequence[EpisodeScores],
    metric: Metric,
    convention: Convention = Convention.STRICT,
    *,
    interval: Callable[[Floats, list[str]], tuple[float, float] | None] | None = None,
) -> Estimate:
    """Mean of a metric over its population, with bounds.

    Args:
        interval: gives the confidence interval from the known marks and their papers; None: no interval.
    """
    chosen = population(episodes, metric, convention)
    table = marks(chosen, metric, convention)
    known = ~np.isnan(table[:, 0])
    values = table[known, 0]
    papers = [scores.paper for scores, is_known in zip(chosen, known, strict=True) if is_known]
    return Estimate(
        metric=metric,
        n=len(chosen),
        known=len(values),
        mean=_mean(values),
        low=_mean(table[:, 1]),
        high=_mean(table[:, 2]),
        interval=interval(values, papers) if interval else None,
    )


def rank_key(estimate: Estimate) -> tuple[float, float]:
    """What agents are sorted by, best first: the mean of `RANKED_BY` with the unknown at its lowest, then its highest.

    Of an indicator, two agents that share the lower bound are in the same order by their known means.
    """
    return -(estimate.low or 0.0), -(estimate.high or 0.0)


def stability(episodes: Sequence[EpisodeScores], metric: Metric) -> Spread:
    """How much a metric varies (Fig. 5): between episodes, and between the repeats of one task."""
    chosen = population(episodes, metric)
    values = marks(chosen, metric)[:, 0]
    within = [_variance(array) for array in _grouped(values, [scores.task for scores in chosen]).values()]
    repeated = [variance for variance in within if variance is not None]
    known = values[~np.isnan(values)]
    return Spread(
        metric=metric,
        n=len(known),
        mean=_mean(known),
        variance=_variance(known),
        within_task=_mean(np.array(repeated)),
    )


# --- repeats ---------------------------------------------------------------------------------------------------------


def repeat_spread(episodes: Sequence[EpisodeScores], metric: Metric) -> RepeatSpread:
    """Mean per repeat, and mean and standard deviation over the repeats."""
    chosen = population(episodes, metric)
    groups = _grouped(marks(chosen, metric)[:, 0], [scores.repeat for scores in chosen])
    found = [(repeat, _mean(groups[repeat])) for repeat in sorted(groups)]
    means = tuple((repeat, mean) for repeat, mean in found if mean is not None)
    variance = _variance(np.array([mean for _, mean in means]))
    return RepeatSpread(
        metric=metric,
        means=means,
        mean=_mean(np.array([mean for _, mean in means])),
        deviation=None if variance is None else float(np.sqrt(variance)),
    )


def pass_at_k(n: int, passed: int, k: int) -> float:
    """Unbiased estimate that at least one of k attempts passes, from n attempts (Chen et al. 2021, equation 1).

    Raises:
        ValueError: not 0 <= passed <= n, or not 1 <= k <= n.
    """
    _check_counts(n, passed, k)
    return 1.0 - comb(n - passed, k) / comb(n, k)


def pass_hat_k(n: int, passed: int, k: int) -> float:
    """Unbiased estimate that all of k attempts pass, from n attempts (pass^k; Yao et al. 2024, tau-bench).

    Raises:
        ValueError: not 0 <= passed <= n, or not 1 <= k <= n.
    """
    _check_counts(n, passed, k)
    return comb(passed, k) / comb(n, k)


def pass_rates(episodes: Sequence[EpisodeScores], metric: Metric, k: int) -> PassRate:
    """pass@k and pass^k, means over tasks; an attempt passes with full marks, unknown attempts are left out."""
    chosen = population(episodes, metric)
    groups = _grouped(marks(chosen, metric)[:, 0], [scores.task for scores in chosen])
    counts = [(len(values), int(np.sum(values >= _FULL))) for values in groups.values()]
    usable = [(n, passed) for n, passed in counts if n >= k]
    return PassRate(
        metric=metric,
        k=k,
        tasks=len(usable),
        left_out=len(counts) - len(usable),
        at_least_one=_mean(np.array([pass_at_k(n, passed, k) for n, passed in usable])),
        every=_mean(np.array([pass_hat_k(n, passed, k) for n, passed in usable])),
    )


def _check_counts(n: int, passed: int, k: int) -> None:
    if not 0 <= passed <= n or not 1 <= k <= n:
        raise ValueError(f"needs 0 <= passed <= n and 1 <= k <= n, got n={n}, passed={passed}, k={k}")


def _grouped(values: Floats, keys: Sequence[KeyT]) -> dict[KeyT, Floats]:
    """Known values by key, in order of first appearance; a key without known values has an empty array."""
    groups: dict[KeyT, list[float]] = {}
    for key, value in zip(keys, values, strict=True):
        group = groups.setdefault(key, [])
        if not np.isnan(value):
            group.append(float(value))
    return {key: np.array(group, dtype=np.float64) for key, group in groups.items()}


def _mean(values: Floats) -> float | None:
    # sorted: the sum of floats depends on their order, and permuting episodes must change nothing
    return float(np.mean(np.sort(values))) if len(values) else None


def _variance(values: Floats) -> float | None:
    return float(np.var(np.sort(values), ddof=1)) if len(values) > 1 else None
