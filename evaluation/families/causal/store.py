"""Frozen tasks and finished episodes on disk."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pydantic import Field, ValidationError

from evaluation.families.causal.bench import EpisodeLog
from evaluation.families.causal.generate import to_json
from evaluation.families.causal.scoring import Audit, CausalScore, audit, score
from evaluation.families.causal.task import CausalTask
from evaluation.families.causal.taxonomy import Flag, classify
from pipeline.digests import text_digest
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import write_text
from pipeline.schema import Problem, Severity, StoredRecord

__all__ = ["CausalEpisode", "finished_episode", "load_tasks", "write_episode", "write_tasks"]


class CausalEpisode(StoredRecord):
    """One episode, self-contained: score and audit recompute from the log and the task."""

    task: str
    task_sha256: str
    solver: str
    model: str | None = None
    repeat: int = Field(ge=0)
    log: EpisodeLog
    score: CausalScore
    audit: Audit
    flags: tuple[Flag, ...]
    expbench: str
    """Version of the code that played it."""


def load_tasks(directory: Path) -> tuple[list[CausalTask], list[Problem]]:
    """Frozen tasks of a directory (recursively, `*.json`), sorted by id; what cannot be read is said, the rest comes.

    Raises:
        ExpbenchError: `RECORD_INVALID`, there is no task at all.
    """
    tasks: dict[str, CausalTask] = {}
    problems = []
    for path in sorted(directory.rglob("causal-*.json")) if directory.is_dir() else [directory]:
        try:
            task = CausalTask.model_validate_json(path.read_bytes())
            if task.id in tasks:
                raise ValueError(f"the id {task.id} is there twice")
            tasks[task.id] = task
        except (OSError, ValueError) as error:
            first = error.errors(include_url=False)[0]["msg"] if isinstance(error, ValidationError) else str(error)
            problems.append(Problem(component="causal.load", where=str(path), message=first, severity=Severity.ERROR))
    if not tasks:
        detail = "; ".join(f"{problem.where}: {problem.message}" for problem in problems[:3])
        raise ExpbenchError(
            FailureKind.RECORD_INVALID,
            str(directory),
            f"holds no causal task{': ' + detail if detail else ''}",
            consequence="Nothing was run",
            next_step="Make some: expbench generate causal --tier L1 --seeds 101,202 --out tasks",
        )
    return [tasks[name] for name in sorted(tasks)], problems


def write_tasks(tasks: Iterable[CausalTask], directory: Path) -> list[Path]:
    """Freeze tasks, one file each; equal tasks give equal bytes."""
    paths = []
    for task in tasks:
        paths.append(directory / f"{task.id}.json")
        write_text(paths[-1], to_json(task))
    return paths


def episode_path(run: Path, task: CausalTask, solver: str, repeat: int) -> Path:
    """Where an episode lies."""
    return run / "episodes" / solver / task.id / f"{repeat}.json"


def finished_episode(run: Path, task: CausalTask, solver: str, repeat: int) -> CausalEpisode | None:
    """An episode that an earlier pass finished on this very task; None when it has to be played."""
    path = episode_path(run, task, solver, repeat)
    if not path.is_file():
        return None
    episode = CausalEpisode.model_validate_json(path.read_bytes())
    return episode if episode.task_sha256 == text_digest(to_json(task)) else None


def write_episode(
    run: Path, task: CausalTask, solver: str, repeat: int, log: EpisodeLog, model: str | None = None
) -> CausalEpisode:
    """Score an episode and store it; it is finished when its file is there."""
    from pipeline.version import version

    episode = CausalEpisode(
        task=task.id, task_sha256=text_digest(to_json(task)), solver=solver, model=model, repeat=repeat, log=log,
        score=score(task, log), audit=audit(task, log), flags=classify(task, log), expbench=version(),
    )  # fmt: skip
    write_text(episode_path(run, task, solver, repeat), episode.model_dump_json(indent=1) + "\n")
    return episode
