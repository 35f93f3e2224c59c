"""Play many episodes: tasks x solver x repeats, crash-safe, one self-contained file an episode (petri-bench 7.5).

An episode is finished when its file is there; a pass that was cut off, or that met a failure of the infrastructure, is
taken up by the next one and never scored.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from evaluation.families.causal.bench import EpisodeLog
from evaluation.families.causal.store import CausalEpisode, finished_episode, write_episode
from evaluation.families.causal.task import CausalTask
from evaluation.families.causal.taxonomy import Flag
from pipeline.progress import Reporter
from pipeline.schema import Record

__all__ = ["SolverRow", "sweep", "table"]


class SolverRow(Record):
    """One line of the paper's table: means over episodes, by tier and overall (mean of the tiers' means)."""

    solver: str
    model: str | None
    episodes: int
    by_tier: dict[str, float]
    overall: float
    solve_rate: float
    calls: float
    p_hacking: int
    probe_only: int
    over_testing: int


def sweep(
    tasks: Sequence[CausalTask],
    play: Callable[[CausalTask, int], EpisodeLog],
    run: Path,
    *,
    solver: str,
    repeats: int,
    reporter: Reporter,
    first: int = 0,
    model: str | None = None,
) -> list[CausalEpisode]:
    """Play every task `repeats` times; episodes that are there already are kept.

    Args:
        tasks: mystery worlds.
        play: (task, number of the repeat) -> log.
        run: directory of the run.
        solver: name under which the episodes are stored.
        repeats: episodes per task.
        reporter: progress.
        first: number of the first repeat; solvers that draw, draw by it.
        model: recorded with the episodes.

    Raises:
        ExpbenchError: whatever `play` could not do; the episodes before it are kept.
    """
    reporter.start("causal", len(tasks) * repeats)
    episodes = []
    for task in tasks:
        for repeat in range(first, first + repeats):
            episode = finished_episode(run, task, solver, repeat, model)
            if episode is None:
                episode = write_episode(run, task, solver, repeat, play(task, repeat), model)
            episodes.append(episode)
            reporter.step("causal", f"{task.id} #{repeat}: {episode.score.total:g}")
    reporter.end("causal", f"{len(episodes)} episodes")
    return episodes


def table(episodes: Iterable[CausalEpisode]) -> list[SolverRow]:
    """The table of petri-bench 7.2 from stored episodes; best overall first."""
    groups: dict[tuple[str, str | None], list[CausalEpisode]] = defaultdict(list)
    for episode in episodes:
        groups[episode.solver, episode.model].append(episode)
    rows = []
    for (solver, model), members in groups.items():
        tiers: dict[str, list[float]] = defaultdict(list)
        for episode in members:
            tiers[episode.task.split("-")[1].upper()].append(episode.score.total)
        means = {tier: sum(values) / len(values) for tier, values in sorted(tiers.items())}
        rows.append(
            SolverRow(
                solver=solver,
                model=model,
                episodes=len(members),
                by_tier={tier: round(value, 2) for tier, value in means.items()},
                overall=round(sum(means.values()) / len(means), 2),
                solve_rate=sum(episode.score.solved for episode in members) / len(members),
                calls=sum(episode.score.calls for episode in members) / len(members),
                p_hacking=sum(Flag.P_HACKING in episode.flags for episode in members),
                probe_only=sum(Flag.PROBE_ONLY in episode.flags for episode in members),
                over_testing=sum(Flag.OVER_TESTING in episode.flags for episode in members),
            )
        )
    return sorted(rows, key=lambda row: (-row.overall, row.solver))
