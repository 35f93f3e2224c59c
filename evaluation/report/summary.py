"""What a report says, as values: leaderboard, categories, strictness ladder, stability, cost and time, repeats.

Every form of a report (terminal, Markdown, CSV, HTML, JSON) shows this one summary, so that they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

import numpy as np

from evaluation.metrics import (
    LADDER,
    RANKED_BY,
    TABLE_1,
    Convention,
    Estimate,
    Metric,
    PassRate,
    RepeatSpread,
    Spread,
    estimate,
    execution_checked,
    pass_rates,
    rank_key,
    repeat_spread,
    stability,
)
from evaluation.report.families import FamilySection, family_sections
from evaluation.report.measured import Measurement, load_measurement
from evaluation.report.results import Configuration, Results, configuration_of
from evaluation.report.scatter import front
from evaluation.scores import EpisodeScores, EpisodeStatus
from evaluation.statistics import RESAMPLES, SEED, clustered_interval
from pipeline.schema import Record, StoredRecord
from pipeline.task import Family

__all__ = [
    "CATEGORY_METRICS", "LEADERBOARD", "PAPER_METRICS", "STABLE", "Amount", "CategoryRow", "Entry", "Summary", "pareto",
    "summarise",
]  # fmt: skip

LEADERBOARD: Final = (RANKED_BY, Metric.M, *TABLE_1[:5], Metric.C_D, *TABLE_1[5:])
"""What ranks, then the paper's Table 1 with the monitor and C·D beside it."""
STABLE: Final = (Metric.D, Metric.I, Metric.E, Metric.C, Metric.I_E, Metric.C_D, Metric.ALL, Metric.ALL_E)
"""Metrics of Fig. 5: the single ones, then the conjunctions."""
_REPEATED: Final = (Metric.C, Metric.E, Metric.ALL, RANKED_BY)
CATEGORY_METRICS: Final = (*TABLE_1, RANKED_BY)
PAPER_METRICS: Final = (*TABLE_1, *LADDER)
"""Table 1 and Fig. 6b."""

Interval = Callable[..., tuple[float, float] | None]


class Amount(Record):
    """A mean amount per episode (cost, time, tokens, calls) over the episodes that say it."""

    name: str
    unit: str
    n: int
    known: int
    mean: float | None
    total: float | None


class Entry(Record):
    """One line of the leaderboard: an agent with a model in one run."""

    rank: int
    """By `rank_key`: the lower, then the upper bound of M·D·I·C·E over all episodes; equal where both are equal."""
    label: str
    agent: str
    model: str
    run: str
    episodes: int
    tasks: int
    papers: int
    repeats: int
    scored: int
    blocked: int
    unknown: int
    """Episodes that the machinery lost."""
    checked: int
    """#E, those that were caught included."""
    restated: int = 0
    """Episodes whose D is a restatement."""
    estimates: tuple[Estimate, ...]
    """Of `LEADERBOARD`, with intervals."""
    ladder: tuple[Estimate, ...]
    """Of `LADDER`."""
    paper: tuple[Estimate, ...]
    """Of `PAPER_METRICS`, in EXP-Bench's own convention."""
    stability: tuple[Spread, ...]
    amounts: tuple[Amount, ...]
    repeat_spread: tuple[RepeatSpread, ...] = ()
    """Only with repeats."""
    pass_rates: tuple[PassRate, ...] = ()
    graders: tuple[str, ...] = ()
    """Who graded: `judge: keyless`, `integrity: model gpt-x`, ..."""

    def estimate(self, metric: Metric) -> Estimate:
        """The leaderboard's estimate of a metric."""
        return next(item for item in self.estimates if item.metric is metric)

    def amount(self, name: str) -> Amount:
        """Cost, time, tokens or calls."""
        return next(item for item in self.amounts if item.name == name)


class CategoryRow(Record):
    """A category and an agent (Tables 3 and 6)."""

    category: str
    label: str
    episodes: int
    checked: int
    estimates: tuple[Estimate, ...]
    """Of `CATEGORY_METRICS`, without intervals: most categories have few papers."""


class Summary(StoredRecord):
    """A whole report."""

    SCHEMA_VERSION: ClassVar[int] = 1

    runs: tuple[str, ...]
    episodes: int
    unfinished: int
    entries: tuple[Entry, ...]
    """Agents on the tasks of the family `experiment`; none where a report holds other families only."""
    categories: tuple[CategoryRow, ...]
    families: tuple[FamilySection, ...] = ()
    """The other families, each with columns of its own."""
    graders: tuple[str, ...] = ()
    """Who graded, over all families."""
    measurement: Measurement
    """Of the keyless graders, on strangers' agents."""
    resamples: int = RESAMPLES
    seed: int = SEED


def summarise(results: Results, *, resamples: int = RESAMPLES, seed: int = SEED) -> Summary:
    """Everything that the reports show of some runs.

    Args:
        results: rows of scores.
        resamples: of the bootstrap over papers.
        seed: of the same.
    """
    groups: dict[Configuration, list[EpisodeScores]] = {item: [] for item in results.configurations}
    for scores in results.scores:
        groups[configuration_of(scores)].append(scores)

    def interval(values: Sequence[float], papers: Sequence[str]) -> tuple[float, float] | None:
        return clustered_interval(values, papers, resamples=resamples, seed=seed)

    labels = results.labels()
    experiments = {
        item: own
        for item, rows in groups.items()
        if (own := [scores for scores in rows if scores.family is Family.EXPERIMENT])
    }
    entries = [_entry(item, labels[item], rows, interval) for item, rows in experiments.items()]
    return Summary(
        runs=tuple(sorted({item.run for item in groups})),
        episodes=len(results.episodes),
        unfinished=len(results.unfinished),
        entries=_ranked(entries),
        categories=_categories({labels[item]: rows for item, rows in experiments.items()}),
        families=family_sections({labels[item]: rows for item, rows in groups.items()}, interval),
        graders=_graders(results.scores),
        measurement=load_measurement(),
        resamples=resamples,
        seed=seed,
    )


def pareto(entries: Sequence[Entry], amount: str, metric: Metric) -> tuple[str, ...]:
    """Labels of the entries that no other beats in both: costs less (or the same) and scores higher (or the same)."""
    points = [
        (entry.label, cost, score)
        for entry in entries
        if (cost := entry.amount(amount).mean) is not None and (score := entry.estimate(metric).mean) is not None
    ]
    return front(points)


def _entry(configuration: Configuration, label: str, rows: list[EpisodeScores], interval: Interval) -> Entry:
    repeats = len({scores.repeat for scores in rows})
    statuses = [scores.status for scores in rows]
    return Entry(
        rank=1,
        label=label,
        agent=configuration.agent,
        model=configuration.model,
        run=configuration.run,
        episodes=len(rows),
        tasks=len({scores.task for scores in rows}),
        papers=len({scores.paper for scores in rows}),
        repeats=repeats,
        scored=statuses.count(EpisodeStatus.SCORED),
        blocked=statuses.count(EpisodeStatus.BLOCKED),
        unknown=statuses.count(EpisodeStatus.UNKNOWN),
        checked=sum(execution_checked(scores) for scores in rows),
        restated=sum(scores.design_restated for scores in rows),
        estimates=tuple(estimate(rows, metric, interval=interval) for metric in LEADERBOARD),
        ladder=tuple(estimate(rows, metric) for metric in LADDER),
        paper=tuple(estimate(rows, metric, Convention.PAPER) for metric in PAPER_METRICS),
        stability=tuple(stability(rows, metric) for metric in STABLE),
        amounts=_amounts(rows),
        repeat_spread=tuple(repeat_spread(rows, metric) for metric in LEADERBOARD) if repeats > 1 else (),
        pass_rates=tuple(pass_rates(rows, metric, k) for metric in _REPEATED for k in range(1, repeats + 1))
        if repeats > 1
        else (),
        graders=_graders(rows),
    )


def _amounts(rows: Sequence[EpisodeScores]) -> tuple[Amount, ...]:
    columns: list[tuple[str, str, list[float | int | None]]] = [
        ("cost", "USD", [scores.cost_usd for scores in rows]),
        ("time", "s", [scores.wall_s for scores in rows]),
        ("input tokens", "", [scores.input_tokens for scores in rows]),
        ("output tokens", "", [scores.output_tokens for scores in rows]),
        ("model calls", "", [scores.model_calls for scores in rows]),
    ]
    found = []
    for name, unit, values in columns:
        known = np.sort(np.array([value for value in values if value is not None], dtype=np.float64))
        mean, total = (float(known.mean()), float(known.sum())) if len(known) else (None, None)
        found.append(Amount(name=name, unit=unit, n=len(values), known=len(known), mean=mean, total=total))
    return tuple(found)


def _graders(rows: Sequence[EpisodeScores]) -> tuple[str, ...]:
    who = {(role, grader.engine, grader.model or "") for scores in rows for role, grader in scores.graders}
    return tuple(f"{role}: {engine} {model}".rstrip() for role, engine, model in sorted(who))


def _ranked(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    ordered = sorted(entries, key=lambda entry: (*rank_key(entry.estimate(RANKED_BY)), entry.label))
    ranks: dict[tuple[float, float], int] = {}
    for place, entry in enumerate(ordered, 1):
        ranks.setdefault(rank_key(entry.estimate(RANKED_BY)), place)
    return tuple(entry.evolve(rank=ranks[rank_key(entry.estimate(RANKED_BY))]) for entry in ordered)


def _categories(groups: dict[str, list[EpisodeScores]]) -> tuple[CategoryRow, ...]:
    parts: dict[tuple[str, str], list[EpisodeScores]] = {}
    for label, rows in groups.items():
        for scores in rows:
            parts.setdefault((scores.category, label), []).append(scores)
    return tuple(
        CategoryRow(
            category=category,
            label=label,
            episodes=len(rows),
            checked=sum(execution_checked(scores) for scores in rows),
            estimates=tuple(estimate(rows, metric) for metric in CATEGORY_METRICS),
        )
        for (category, label), rows in sorted(parts.items())
    )
