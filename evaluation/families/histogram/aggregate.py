"""Means over the runs of one agent on one task, as the tables of Collider-Bench have them (C.2, D).

FABRICATED runs leave the means; FAILED ones stay, with the distance of an empty submission. A cell of which all runs
are fabricated has no mean. The spread is that of the runs (n - 1); one run has none.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence

from evaluation.families.histogram.scoring import HistogramScore, Provenance
from pipeline.schema import Record

__all__ = ["CellSummary", "mean", "mean_text", "spread", "summarise"]


class CellSummary(Record):
    """One cell of a table."""

    task: str
    runs: int
    counted: int
    """Runs that enter the means."""
    provenance: dict[str, int]
    distance: float | None = None
    """Mean; None: no run counts."""
    distance_spread: float | None = None
    """Standard deviation of the runs; None with fewer than two."""
    relative_l2: float | None = None
    relative_l2_spread: float | None = None
    shape_l2: float | None = None
    shape_l2_spread: float | None = None
    delta_norm: float | None = None
    delta_norm_spread: float | None = None
    accuracy: float | None = None
    """Share of the counted runs with distance < tau."""
    best: float | None = None
    """Smallest distance of a counted run (Figures 8 and 9)."""

    @property
    def text(self) -> str:
        """The task's own distance, as the tables print it."""
        return mean_text(self.distance, self.distance_spread)


def summarise(scores: Sequence[HistogramScore]) -> tuple[CellSummary, ...]:
    """One summary a task, sorted by task."""
    tasks: dict[str, list[HistogramScore]] = {}
    for score in scores:
        tasks.setdefault(score.task, []).append(score)
    return tuple(_cell(task, tasks[task]) for task in sorted(tasks))


def _cell(task: str, runs: list[HistogramScore]) -> CellSummary:
    counted = [run for run in runs if run.counted]
    labels = Counter(run.provenance.value for run in runs)
    distances = [run.distance for run in counted]
    return CellSummary(
        task=task,
        runs=len(runs),
        counted=len(counted),
        provenance={label.value: labels[label.value] for label in Provenance},
        distance=mean(distances),
        distance_spread=spread(distances),
        relative_l2=mean([run.relative_l2 for run in counted]),
        relative_l2_spread=spread([run.relative_l2 for run in counted]),
        shape_l2=mean([run.shape_l2 for run in counted]),
        shape_l2_spread=spread([run.shape_l2 for run in counted]),
        delta_norm=mean([run.delta_norm for run in counted]),
        delta_norm_spread=spread([run.delta_norm for run in counted]),
        accuracy=mean([float(run.accurate) for run in counted]),
        best=min(distances, default=None),
    )


def mean_text(value: float | None, deviation: float | None) -> str:
    """As the tables print it: mean and spread, the bare value of one run, a dash of none."""
    if value is None:
        return "-"
    return f"{value:.2f}" + (f"±{deviation:.2f}" if deviation is not None else "")


def spread(values: Sequence[float | None]) -> float | None:
    """Standard deviation (n - 1); None with fewer than two values, or where one is unknown or not finite."""
    found = [value for value in values if value is not None and math.isfinite(value)]
    return statistics.stdev(found) if len(found) > 1 and len(found) == len(values) else None


def mean(values: Sequence[float | None]) -> float | None:
    """Arithmetic mean; None of nothing, and where a value is unknown."""
    found = [value for value in values if value is not None]
    return math.fsum(found) / len(found) if found and len(found) == len(values) else None
