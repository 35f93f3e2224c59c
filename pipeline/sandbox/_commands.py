"""What both back ends ask of commands before they run, and the environment they run in."""

from __future__ import annotations

from pathlib import Path

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.sandbox.base import Command, Limits, RunSpec

__all__ = ["check_directories", "experiment_environment", "shown"]

_LONGEST_WALL_S = 7 * 86400


def experiment_environment(spec: RunSpec, *, home: str, tmp: str, venv: str, system_path: str) -> dict[str, str]:
    """The whole environment of a command: nothing of the host's gets in, and equal runs see equal values."""
    threads = str(max(1, int(spec.limits.cpus)))
    base = {
        "HOME": home,
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "LOGNAME": "runner",
        "MPLBACKEND": "Agg",
        "PATH": f"{venv}/bin:{system_path}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONUNBUFFERED": "1",
        "TMPDIR": tmp,
        "TZ": "UTC",
        "USER": "runner",
        "VIRTUAL_ENV": venv,
    }
    for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM"):
        base[f"{name}_NUM_THREADS"] = threads
    return base | spec.env


def check_directories(commands: tuple[Command, ...], limits: Limits) -> None:
    """Refuse directories that lead out of the tree (a defect of the caller, not of the code under test).

    Raises:
        ExpbenchError: `USAGE`.
    """
    for command in commands:
        parts = Path(command.directory).parts
        if command.directory.startswith("/") or ".." in parts or "\0" in "".join((*command.argv, command.directory)):
            raise ExpbenchError(
                FailureKind.USAGE,
                f"command {shown(command)}",
                f"its directory {command.directory!r} is not inside the tree, or it holds a NUL byte",
                consequence="The commands were not run",
                next_step="Give a directory relative to the root of the tree",
            )
    if limits.wall_s > _LONGEST_WALL_S:
        raise ExpbenchError(
            FailureKind.USAGE,
            f"wall limit {limits.wall_s:g} s",
            "is more than a week",
            consequence="The commands were not run",
            next_step="Give a smaller limit",
        )


def shown(command: Command) -> str:
    """The command line for messages, shortened."""
    text = " ".join(command.argv)
    return text if len(text) <= 120 else text[:117] + "..."
