"""Frozen tasks and finished episodes on disk."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pydantic import Field, ValidationError

from evaluation.families.causal.bench import EpisodeLog
from evaluation.families.causal.engines import ENGINES
from evaluation.families.causal.generate import to_json
from evaluation.families.causal.scoring import Audit, CausalScore, audit, score
from evaluation.families.causal.task import CausalTask
from evaluation.families.causal.taxonomy import Flag, classify
from pipeline.digests import text_digest
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import read_record, write_text
from pipeline.schema import Problem, Severity, StoredRecord

__all__ = [
    "CausalEpisode", "find_task", "finished_episode", "frozen_task", "is_tasks", "load_tasks", "write_episode",
    "write_tasks",
]  # fmt: skip

_PATTERN: Final = "causal-*.json"


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


def is_tasks(directory: Path) -> bool:
    """Is it a frozen task, or does it hold some, itself or in directories of its own? By names alone."""
    if not directory.is_dir():
        return directory.match(_PATTERN) and directory.is_file()
    return any(any(directory.glob(pattern)) for pattern in (_PATTERN, f"*/{_PATTERN}"))


def load_tasks(directory: Path) -> tuple[list[CausalTask], list[Problem]]:
    """Frozen tasks of a directory (recursively, `*.json`), sorted by id; what cannot be read is said, the rest comes.

    Raises:
        ExpbenchError: `RECORD_INVALID`, there is no task at all.
    """
    tasks: dict[str, CausalTask] = {}
    problems = []
    for path in sorted(directory.rglob(_PATTERN)) if directory.is_dir() else [directory]:
        try:
            task = CausalTask.model_validate_json(path.read_bytes())
            _require_playable(task)
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


def _require_playable(task: CausalTask) -> None:
    """Does the task fit the simulations of this version?

    Raises:
        ValueError: it does not.
    """
    engine = ENGINES.get(task.simulation)
    if engine is None:
        raise ValueError(f"no simulation {task.simulation!r}; there are {', '.join(ENGINES)}")
    if engine.version != task.engine_version:
        raise ValueError(
            f"it was made with {engine.name} {task.engine_version}, this is {engine.version}: generate it anew"
        )
    if set(task.control) != set(engine.control) or not set(task.candidates) <= set(engine.control):
        raise ValueError(f"its parameters are not those of {engine.name}")
    if task.target not in engine.metrics:
        raise ValueError(f"{engine.name} has no metric {task.target!r}")
    for name, value in (*task.control.items(), *task.hidden.drivers):
        parameter = engine.parameter(name)
        if not parameter.low <= value <= parameter.high:
            raise ValueError(f"{name} = {value:g} is outside [{parameter.low:g}, {parameter.high:g}]")


def find_task(path: Path, task_id: str | None = None) -> CausalTask:
    """The task of a file, or the one of that id in a directory.

    Args:
        path: file or directory.
        task_id: which; None: the only one.

    Raises:
        ExpbenchError: `RECORD_INVALID`: there is none, or several and no id.
    """
    tasks, _ = load_tasks(path)
    found = [task for task in tasks if task_id is None or task.id == task_id]
    if len(found) == 1:
        return found[0]
    raise ExpbenchError(
        FailureKind.RECORD_INVALID,
        str(path),
        f"holds {len(found)} tasks" if task_id is None else f"does not hold the task {task_id}",
        consequence="Nothing was run or scored",
        next_step=f"Name one of: {', '.join(task.id for task in tasks[:10])}",
    )


def write_tasks(tasks: Iterable[CausalTask], directory: Path) -> list[Path]:
    """Freeze tasks, one file each; equal tasks give equal bytes."""
    paths = []
    for task in tasks:
        paths.append(directory / f"{task.id}.json")
        write_text(paths[-1], to_json(task))
    return paths


def frozen_task(directory: Path, simulation: str, tier: str, seed: int) -> CausalTask | None:
    """The task of this seed, if an earlier pass froze it there with the engine of this version; else None."""
    try:
        task = CausalTask.model_validate_json(
            (directory / f"causal-{tier.lower()}-{simulation}-{seed}.json").read_bytes()
        )
        _require_playable(task)
    except (OSError, ValueError):
        return None
    return task if (task.simulation, task.tier, task.seed) == (simulation, tier, seed) else None


def episode_path(run: Path, task: CausalTask, solver: str, repeat: int, model: str | None = None) -> Path:
    """Where an episode lies; another model's lies elsewhere."""
    who = solver if model is None else f"{solver}-{re.sub(r'[^A-Za-z0-9._-]+', '-', model)}"
    return run / "episodes" / who / task.id / f"{repeat}.json"


def finished_episode(
    run: Path, task: CausalTask, solver: str, repeat: int, model: str | None = None
) -> CausalEpisode | None:
    """An episode that an earlier pass finished on this very task; None when it has to be played.

    Raises:
        ExpbenchError: `RECORD_INVALID`: its file was changed by somebody (it is written as a whole or not at all).
    """
    path = episode_path(run, task, solver, repeat, model)
    if not path.is_file():
        return None
    episode = read_record(
        path, CausalEpisode, consequence="The run was not gone on with",
        next_step="Remove the file, and the episode is played again",
    )  # fmt: skip
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
    write_text(episode_path(run, task, solver, repeat, model), episode.model_dump_json(indent=1) + "\n")
    return episode
