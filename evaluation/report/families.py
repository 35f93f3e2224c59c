"""Sections of a report for the families that have metrics of their own: histogram, table, causal.

A run may hold tasks of several families. Design, implementation, execution and conclusion say nothing of a histogram or
a recovered law, so those episodes stay out of the leaderboard of EXP-Bench and each family gets a table with its own
columns: what its paper ranks by comes first. A metric that is not declared here is shown after the declared ones, under
its own name. Non-goal: computing a metric of an episode (`evaluation.families`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

import numpy as np

from evaluation.scores import EpisodeScores, EpisodeStatus
from pipeline.schema import Record
from pipeline.task import Family

__all__ = ["FamilyColumn", "FamilyEstimate", "FamilyRow", "FamilySection", "columns_of", "family_sections", "headline"]

Interval = Callable[[Sequence[float], Sequence[str]], tuple[float, float] | None]
Better = Literal["higher", "lower"]


class FamilyColumn(Record):
    """A metric of a family, as a report shows it."""

    name: str
    """Key of `EpisodeScores.metrics`."""
    title: str
    better: Better | None = "higher"
    """None: neither; it describes."""
    share: bool = True
    """Between 0 and 1, shown in per cent."""
    meaning: str = ""


def _column(
    name: str, title: str, meaning: str, *, better: Better | None = "higher", share: bool = True
) -> FamilyColumn:
    return FamilyColumn(name=name, title=title, better=better, share=share, meaning=meaning)


_TITLES: Final[dict[Family, str]] = {
    Family.HISTOGRAM: "Histograms (Collider-Bench)",
    Family.TABLE: "Tables (PRBench)",
    Family.CAUSAL: "Causal structure (petri-bench)",
}
_COLUMNS: Final[dict[Family, tuple[FamilyColumn, ...]]] = {
    # Collider-Bench 3.3: the distance of the task, then what it is made of; C.2: where the values come from
    Family.HISTOGRAM: (
        _column("distance", "d", "distance of the task: relative L2 of the yields, or of the shape", better="lower",
                share=False),
        _column("acc_tau", "Acc@τ", "share of episodes with d below τ"),
        _column("relative_l2", "rel. L2", "relative L2 distance of the yields", better="lower", share=False),
        _column("delta_norm", "norm. error", "relative error of the total", better="lower", share=False),
        _column("shape_l2", "shape error", "relative L2 distance of the unit-area distributions", better="lower",
                share=False),
        _column("provenance_passed", "passed", "share with provenance PASSED"),
        _column("provenance_failed", "failed", "share with provenance FAILED", better="lower"),
        _column("provenance_fabricated", "fabricated", "share with provenance FABRICATED, which leave the means",
                better="lower"),
    ),
    # PRBench 4.1: the weighted score, the share of tasks with every dimension above .9, the dimensions
    Family.TABLE: (
        _column("overall", "score", "weighted mean of the rubric's dimensions"),
        _column("end_to_end_callback", "callback", "End-to-End Callback: every dimension above 0.9"),
        _column("methodology_understanding", "methodology", ""),
        _column("code_correctness", "code", ""),
        _column("data_accuracy", "data", "share of the values within their tolerance"),
        _column("completeness", "complete", ""),
        _column("fabricated", "fabricated", "share of episodes with fabricated values", better="lower"),
        _column("banned_libraries", "banned", "share that used a banned library", better="lower"),
    ),
    # petri-bench 5 and 6: points, right answers, and whether the process held up
    Family.CAUSAL: (
        _column("score", "score", "points, 0 to 100", share=False),
        _column("solved", "accuracy", "share of worlds whose mechanism was named rightly"),
        _column("claim_validity", "claims", "share of the claims that hold"),
        _column("p_hacking", "p-hacking", "audit: share of episodes with it", better="lower"),
        _column("unbacked", "unbacked", "audit: share whose answer no experiment backs", better="lower"),
        _column("probe_only", "probe only", "audit: share backed by probes alone", better="lower"),
        _column("over_testing", "over-testing", "audit: share with it", better="lower"),
        _column("bench_calls", "calls", "experiments asked for", better=None, share=False),
    ),
}  # fmt: skip


class FamilyEstimate(Record):
    """A mean over the episodes of one agent."""

    name: str
    n: int
    """Scored episodes."""
    known: int
    """Of them, those that say it."""
    mean: float | None
    interval: tuple[float, float] | None = None
    """95 % interval of the mean, bootstrapped over papers."""


class FamilyRow(Record):
    """An agent on the tasks of a family."""

    rank: int
    label: str
    episodes: int
    tasks: int
    blocked: int
    unknown: int
    estimates: tuple[FamilyEstimate, ...]
    """In the order of the section's columns."""
    cost_usd: float | None
    """Mean over the episodes that say it."""
    wall_s: float | None


class FamilySection(Record):
    """One family: its columns, the first of which ranks, and a row for each agent."""

    family: Family
    title: str
    columns: tuple[FamilyColumn, ...]
    rows: tuple[FamilyRow, ...]
    others: tuple[tuple[str, FamilyEstimate], ...] = ()
    """(agent, mean) of the metrics that have no column."""


def columns_of(family: Family, names: Sequence[str]) -> tuple[FamilyColumn, ...]:
    """The columns of a family's table for these metrics: the declared ones in their order, else all by name."""
    declared = tuple(column for column in _COLUMNS.get(family, ()) if column.name in names)
    return declared or tuple(_described(name) for name in sorted(set(names)))


def _described(name: str) -> FamilyColumn:
    return _column(name, name, "", better=None, share=False)


def headline(scores: EpisodeScores) -> tuple[FamilyColumn, float | None] | None:
    """The metric that ranks the episode's family, and its value; None for `experiment` and rows without metrics."""
    if scores.family is Family.EXPERIMENT or not scores.metrics:
        return None
    column = columns_of(scores.family, list(scores.metrics))[0]
    return column, scores.metrics[column.name]


def family_sections(groups: Mapping[str, Sequence[EpisodeScores]], interval: Interval) -> tuple[FamilySection, ...]:
    """A section for each family other than `experiment` that occurs.

    Args:
        groups: label of an agent -> its rows, of all families.
        interval: of a mean, from values and the paper of each.
    """
    found = sorted(
        {scores.family for rows in groups.values() for scores in rows if scores.family is not Family.EXPERIMENT}
    )
    return tuple(_section(family, groups, interval) for family in found)


def _section(family: Family, groups: Mapping[str, Sequence[EpisodeScores]], interval: Interval) -> FamilySection:
    own = {label: [row for row in rows if row.family is family] for label, rows in groups.items()}
    own = {label: rows for label, rows in own.items() if rows}
    names = sorted({name for rows in own.values() for row in rows for name in row.metrics})
    columns = columns_of(family, names)
    left = [name for name in names if name not in {column.name for column in columns}]
    rows = [_row(label, rows, columns, interval) for label, rows in own.items()]
    return FamilySection(
        family=family,
        title=_TITLES.get(family, family.value),
        columns=columns,
        rows=_ranked(rows, columns),
        others=tuple(
            (label, _estimate([row for row in rows if row.status is EpisodeStatus.SCORED], name, interval))
            for label, rows in own.items()
            for name in left
        ),
    )


def _row(label: str, rows: Sequence[EpisodeScores], columns: Sequence[FamilyColumn], interval: Interval) -> FamilyRow:
    scored = [row for row in rows if row.status is EpisodeStatus.SCORED]
    return FamilyRow(
        rank=1,
        label=label,
        episodes=len(rows),
        tasks=len({row.task for row in rows}),
        blocked=sum(row.status is EpisodeStatus.BLOCKED for row in rows),
        unknown=sum(row.status is EpisodeStatus.UNKNOWN for row in rows),
        estimates=tuple(_estimate(scored, column.name, interval) for column in columns),
        cost_usd=_mean([row.cost_usd for row in rows]),
        wall_s=_mean([row.wall_s for row in rows]),
    )


def _estimate(scored: Sequence[EpisodeScores], name: str, interval: Interval) -> FamilyEstimate:
    pairs = [(value, row.paper) for row in scored if (value := row.metrics.get(name)) is not None]
    return FamilyEstimate(
        name=name,
        n=len(scored),
        known=len(pairs),
        mean=_mean([value for value, _ in pairs]),
        interval=interval([value for value, _ in pairs], [paper for _, paper in pairs]) if pairs else None,
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """Of the known values, sorted first: the same sum whatever order episodes were read in."""
    known = np.sort(np.array([value for value in values if value is not None], dtype=np.float64))
    return float(known.mean()) if len(known) else None


def _ranked(rows: Sequence[FamilyRow], columns: Sequence[FamilyColumn]) -> tuple[FamilyRow, ...]:
    """By the first column; equal where it is equal, unknown last."""
    sign = -1.0 if columns and columns[0].better == "lower" else 1.0

    def key(row: FamilyRow) -> float:
        mean = row.estimates[0].mean if row.estimates else None
        return float("inf") if mean is None else -sign * mean

    ordered = sorted(rows, key=lambda row: (key(row), row.label))
    ranks: dict[float, int] = {}
    for place, row in enumerate(ordered, 1):
        ranks.setdefault(key(row), place)
    return tuple(row.evolve(rank=ranks[key(row)]) for row in ordered)
