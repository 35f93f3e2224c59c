"""Tables and figures over runs, as Collider-Bench has them: Tables 2 to 4, Figures 2, 6 and 8, the cost-accuracy front.

A cell is one agent on one task, over its repeats; a column one agent, with its model and what was left out of its
workspace. Blocked episodes, and those that the machinery lost, are not runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from evaluation.families.histogram.aggregate import CellSummary, mean, spread, summarise
from evaluation.families.histogram.grading import GradedHistogram, read_graded
from evaluation.families.histogram.overlay import OverlaySeries
from evaluation.families.histogram.scoring import TAU, HistogramScore, Provenance
from evaluation.harness.episode_runner import episode_folder
from evaluation.harness.run import read_run, states
from evaluation.scores import EpisodeScores, EpisodeStatus
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import Record
from pipeline.task import Family

__all__ = ["AgentSummary", "HistogramTables", "best_of_runs", "histogram_tables", "read_rows"]


class Consumption(Record):
    """Mean and standard deviation over runs (Table 4)."""

    mean: float | None
    spread: float | None
    known: int
    """Runs of which it is known."""


class AgentSummary(Record):
    """One agent over all its tasks."""

    agent: str
    tasks: int
    runs: int
    accuracy: float | None
    """Acc_tau: mean over the tasks of the share of counted runs with distance < tau."""
    provenance: dict[str, int]
    """Runs by label (Figure 6)."""
    tokens_millions: Consumption
    cost_usd: Consumption
    hours: Consumption
    on_front: bool = False
    """No other agent is at least as accurate and cheaper, or as cheap and more accurate (Figure 2b)."""


class AgentCell(Record):
    """One agent on one task."""

    agent: str
    summary: CellSummary


class HistogramTables(Record):
    """Everything, for `--json`."""

    tau: float
    agents: tuple[AgentSummary, ...]
    cells: tuple[AgentCell, ...]


class Row(NamedTuple):
    """One episode."""

    agent: str
    scores: EpisodeScores
    graded: GradedHistogram


def read_rows(runs: Sequence[Path]) -> list[Row]:
    """The scored episodes of the histogram family in some runs.

    Raises:
        ExpbenchError: `RECORD_INVALID`: one is no run, or none holds such an episode.
    """
    found = []
    for root in runs:
        record = read_run(root)
        for task, repeat, state in states(root, record):
            folder = episode_folder(root, task, repeat)
            graded = read_graded(folder)
            if state is None or graded is None or not folder.scores.is_file():
                continue
            scores = EpisodeScores.model_validate_json(folder.scores.read_bytes())
            if scores.family is Family.HISTOGRAM and scores.status is EpisodeStatus.SCORED:
                parts = [scores.agent, scores.model or "", f"[{record.ablation}]" if record.ablation else ""]
                found.append(Row(" ".join(part for part in parts if part), scores, graded))
    if not found:
        raise ExpbenchError(
            FailureKind.RECORD_INVALID, ", ".join(map(str, runs)), "holds no scored episode of the histogram family",
            consequence="There are no tables", next_step="Name runs of `expbench evaluate` on Collider-Bench tasks",
        )  # fmt: skip
    return found


def histogram_tables(rows: Sequence[Row], *, tau: float = TAU) -> HistogramTables:
    """The tables.

    Args:
        rows: of `read_rows`.
        tau: threshold of Acc.
    """
    agents, cells = [], []
    for agent in sorted({row.agent for row in rows}):
        mine = [row for row in rows if row.agent == agent]
        summaries = summarise([_at(row.graded.score, tau) for row in mine])
        cells += [AgentCell(agent=agent, summary=summary) for summary in summaries]
        agents.append(_agent(agent, mine, summaries))
    front = _front(agents)
    marked = tuple(item.evolve(on_front=item.agent in front) for item in agents)
    return HistogramTables(tau=tau, agents=marked, cells=tuple(cells))


def best_of_runs(rows: Sequence[Row], task: str) -> list[OverlaySeries]:
    """The best counted run of each agent on a task, for the overlay (Figures 8 and 9)."""
    found = []
    for agent in sorted({row.agent for row in rows}):
        mine = [row for row in rows if row.agent == agent and row.scores.task == task]
        usable = [row for row in mine if row.graded.values is not None and row.graded.score.counted]
        best = min(usable, key=lambda row: (row.graded.score.distance, row.scores.repeat), default=None)
        if best is not None and best.graded.values is not None:
            found.append(OverlaySeries(label=agent, values=best.graded.values))
    return found


def _at(score: HistogramScore, tau: float) -> HistogramScore:
    return score.evolve(tau=tau, accurate=score.distance < tau and (score.valid or score.recovered))


def _agent(agent: str, rows: Sequence[Row], cells: Sequence[CellSummary]) -> AgentSummary:
    labels = Counter(row.graded.score.provenance.value for row in rows)
    tokens = [
        None if row.scores.input_tokens is None else (row.scores.input_tokens + (row.scores.output_tokens or 0)) / 1e6
        for row in rows
    ]
    hours = [None if row.scores.wall_s is None else row.scores.wall_s / 3600 for row in rows]
    accuracies = [cell.accuracy for cell in cells if cell.accuracy is not None]
    return AgentSummary(
        agent=agent,
        tasks=len(cells),
        runs=len(rows),
        accuracy=mean(accuracies),
        provenance={label.value: labels[label.value] for label in Provenance},
        tokens_millions=_consumption(tokens),
        cost_usd=_consumption([row.scores.cost_usd for row in rows]),
        hours=_consumption(hours),
    )


def _consumption(values: Sequence[float | None]) -> Consumption:
    known = [value for value in values if value is not None]
    return Consumption(mean=mean(known), spread=spread(known), known=len(known))


def _front(agents: Sequence[AgentSummary]) -> set[str]:
    """Agents that none other beats in accuracy and cost; those of unknown cost or accuracy are on no front."""
    points = [
        (item.agent, item.accuracy, item.cost_usd.mean)
        for item in agents
        if item.accuracy is not None and item.cost_usd.mean is not None
    ]
    return {
        name
        for name, accuracy, cost in points
        if not any(
            other_accuracy >= accuracy and other_cost <= cost and (other_accuracy > accuracy or other_cost < cost)
            for _, other_accuracy, other_cost in points
        )
    }
