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

__all__ = ["CellSummary", "summarise"]


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
    shape_l2: float | None = None
    delta_norm: float | None = None
    accuracy: float | None = None
    """Share of the counted runs with distance < tau."""
    best: float | None = None
    """Smallest distance of a counted run (Figures 8 and 9)."""

    @property
    def text(self) -> str:
        """As the tables print it: mean and spread, the bare value of one run, a dash of none."""
        if self.distance is None:
            return "-"
        return f"{self.distance:.2f}" + (f"±{self.distance_spread:.2f}" if self.distance_spread is not None else "")


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
        distance=_mean(distances),
        distance_spread=statistics.stdev(distances)
        if len(distances) > 1 and all(map(math.isfinite, distances))
        else None,
        relative_l2=_mean([run.relative_l2 for run in counted]),
        shape_l2=_mean([run.shape_l2 for run in counted]),
        delta_norm=_mean([run.delta_norm for run in counted]),
        accuracy=_mean([float(run.accurate) for run in counted]),
        best=min(distances, default=None),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    found = [value for value in values if value is not None]
    return math.fsum(found) / len(found) if found and len(found) == len(values) else None
