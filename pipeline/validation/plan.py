"""What a validation runs: the task's commands, in which environment, under which limits."""

from __future__ import annotations

import posixpath
from typing import Final

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.repository import Snapshot
from pipeline.sandbox.base import Command, Gpus, Limits, RunSpec
from pipeline.task import Task

__all__ = ["make_plan"]

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


def make_plan(task: Task, snapshot: Snapshot, *, limits: Limits) -> RunSpec:
    """The run of a task's chain: its commands in order, without network.

    Args:
        task: located task; `truth.usage` holds the commands.
        snapshot: the repository that it runs on.
        limits: ceilings of the run.

    Raises:
        ExpbenchError: `RECORD_INVALID`, it has no commands or one that leaves the repository.
    """
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
    return RunSpec(
        commands=tuple(
            Command(argv=usage.argv, directory=directory)
            for usage, directory in zip(task.truth.usage, directories, strict=True)
        ),
        env={**_ENVIRONMENT, "PYTHONPATH": _python_path(snapshot, directories)},
        limits=limits,
        gpus=_gpus(task),
    )


def _gpus(task: Task) -> Gpus | None:
    """What the task needs, as a request: a sandbox without GPUs refuses it, so that nothing is skipped silently."""
    needs = task.resources
    return Gpus(count=needs.gpus, type=needs.gpu_type, memory_mb=needs.gpu_memory_mb) if needs.gpus else None


def _python_path(snapshot: Snapshot, directories: list[str]) -> str:
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
