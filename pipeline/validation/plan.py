"""What a validation runs: the task's commands at full and at smoke scale, their seeds, environment and limits."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Final

from pipeline.data.phase import with_data
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.execution_plan import ExecutionPlan, PlannedCommand, RunScale
from pipeline.repository import Snapshot
from pipeline.sandbox.base import Command, Gpus, Limits, RunSpec
from pipeline.task import Task, Usage
from pipeline.validation.scale import smoke_scale
from pipeline.validation.seeds import seeds_in_force, with_seed
from pipeline.validation.written_files import written_files

__all__ = ["execution_plan", "make_plan", "run_variables"]

_SMOKE_WALL_S: Final = 600.0
"""A smoke run that takes longer than this shows no more than one that does not end."""

# One thread: libraries that sum in parallel print other last digits from run to run. No display, no colours, no byte
# code beside the sources (it would count as produced), no downloads by libraries that would try.
_ENVIRONMENT: Final = {
    "MPLBACKEND": "Agg",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
    "PYTHONIOENCODING": "utf-8",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "NO_COLOR": "1",
    "TERM": "dumb",
    "COLUMNS": "200",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "WANDB_MODE": "offline",
    "TQDM_DISABLE": "1",
}


def execution_plan(task: Task, snapshot: Snapshot) -> ExecutionPlan:
    """What the task's chain runs at both scales, which seeds are in force, what it needs and should leave behind.

    Args:
        task: located task; `truth.usage` holds the commands.
        snapshot: the repository that it runs on.

    Raises:
        ExpbenchError: `RECORD_INVALID`, it has no commands or one that leaves the repository.
    """
    usage = tuple(step.evolve(directory=place) for step, place in zip(
        task.truth.usage, _directories(task), strict=True
    ))  # fmt: skip
    sources = [source.path for source in task.truth.sources if source.role != "config"]
    configs = [source.path for source in task.truth.sources if source.role == "config"]
    smoke = smoke_scale(snapshot, usage, configs)
    return ExecutionPlan(
        commands=tuple(PlannedCommand(argv=step.argv, directory=step.directory) for step in usage),
        smoke=smoke.commands,
        smoke_files=smoke.files,
        changes=smoke.changes,
        no_smoke=smoke.why_not,
        seeds=seeds_in_force(snapshot, usage, sources),
        data_needs=task.truth.data_needs,
        outputs=written_files(snapshot, sources),
    )


def make_plan(
    task: Task, snapshot: Snapshot, *, limits: Limits, repeat: int = 1, plan: ExecutionPlan | None = None,
    scale: RunScale = "full",
) -> RunSpec:  # fmt: skip
    """One run of a task's chain: its commands in order, without network.

    Args:
        task: located task; `truth.usage` holds the commands.
        snapshot: the repository that it runs on.
        limits: ceilings of the run.
        repeat: number of the run, from 1; it decides the seed where a script takes one that nothing sets.
        plan: what `execution_plan` made of the same task; made here when None.
        scale: of a plan without a smoke scale only `full`. A smoke run asks for no GPU and ends within ten minutes.

    Raises:
        ExpbenchError: `RECORD_INVALID`, it has no commands or one that leaves the repository; `DATA_UNAVAILABLE`, what
            it downloads is not in the cache.
    """
    plan = plan or execution_plan(task, snapshot)
    planned = plan.smoke if scale == "smoke" else plan.commands
    smoke = scale == "smoke"
    spec = RunSpec(
        commands=tuple(
            Command(argv=with_seed(snapshot, Usage(argv=step.argv, directory=step.directory), repeat),
                    directory=step.directory)
            for step in planned
        ),
        env=run_variables(snapshot, [step.directory for step in planned]),
        links=task.truth.mapped,
        limits=limits.evolve(wall_s=min(limits.wall_s, _SMOKE_WALL_S)) if smoke else limits,
        gpus=None if smoke else _gpus(task),
    )  # fmt: skip
    return spec if task.truth.data is None else with_data(spec, task.truth.data)


def run_variables(snapshot: Snapshot, directories: Sequence[str]) -> dict[str, str]:
    """The environment variables of a run whose commands start in these directories."""
    return {**_ENVIRONMENT, "PYTHONPATH": _python_path(snapshot, directories)}


def _directories(task: Task) -> list[str]:
    if not task.truth.usage:
        raise ExpbenchError(
            FailureKind.RECORD_INVALID,
            task.id,
            "it has no command that runs its source scripts",
            consequence="It was not run",
            next_step="Locate its scripts first, or add a command to `usage` in truth.yaml",
        )
    directories = []
    for usage in task.truth.usage:
        directory = posixpath.normpath(usage.directory)
        if directory.startswith(("/", "..")):
            raise ExpbenchError(
                FailureKind.RECORD_INVALID,
                task.id,
                f"the command `{' '.join(usage.argv)}` runs in `{usage.directory}`, outside the repository",
                consequence="It was not run",
                next_step="Correct `usage` in truth.yaml",
            )
        directories.append(directory)
    return directories


def _gpus(task: Task) -> Gpus | None:
    """What the task needs, as a request: a sandbox without GPUs refuses it, so that nothing is skipped silently."""
    needs = task.resources
    return Gpus(count=needs.gpus, type=needs.gpu_type, memory_mb=needs.gpu_memory_mb) if needs.gpus else None


def _python_path(snapshot: Snapshot, directories: Sequence[str]) -> str:
    """The root and src/ as seen from each command's directory.

    Relative, because each sandbox puts the tree elsewhere; Python makes the entries absolute when it starts.
    """
    places = ["."]
    if any(file.path.startswith("src/") and file.path.endswith(".py") for file in snapshot.files):
        places.append("src")
    # from an absolute root, so that the working directory of this process (it may be gone) plays no part
    found = [
        posixpath.relpath(f"/{place}", f"/{directory}") for directory in sorted(set(directories)) for place in places
    ]
    return ":".join(dict.fromkeys(found))
