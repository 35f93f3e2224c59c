"""What an episode needs on disk before and after the agent: image, inbox, and the workspace it left behind."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Final

from evaluation.lock import environment_spec
from evaluation.task import EvaluationTask
from pipeline.data.phase import require_data
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.progress import Reporter
from pipeline.sandbox.base import Image, RunResult, Sandbox

__all__ = ["build_image", "require_task", "workspace_after", "write_inbox"]

LAUNCHER: Final = "launch.py"
_PROGRAMS: Final = {LAUNCHER: "pipeline.network._inside", "watch.py": "evaluation.harness._inside"}


def require_task(task: EvaluationTask) -> None:
    """Can an agent be given this task here, with all that the original's runs have?

    Raises:
        ExpbenchError: `DATA_UNAVAILABLE`, it is blocked, or the cache of this machine lacks what its runs download: an
            agent without it would be scored for what it was not given.
    """
    if task.blocked or task.masked_repository is None:
        raise _blocked(task, task.blocked or "there is no masked repository to work in", "Provide what is missing")
    if task.data is None:
        return
    try:
        require_data(task.data)
    except ExpbenchError as error:
        raise _blocked(
            task, f"what its runs download is not at hand: {error.object}: {error.cause}", error.next_step
        ) from error


def _blocked(task: EvaluationTask, cause: str, next_step: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.DATA_UNAVAILABLE, task.id, cause,
        consequence="It was not carried out, and its scores are blocked, not 0",
        next_step=f"{next_step} and run with --resume, or leave the task out with --tasks",
    )  # fmt: skip


def build_image(task: EvaluationTask, sandbox: Sandbox, *, logs: Path, owner: str, reporter: Reporter) -> Image:
    """The image of the task's environment; a look-up where it was built before.

    A task whose source names no packages gets the base image with its Python alone.

    Args:
        task: the task.
        sandbox: where it will run.
        logs: directory for build logs, one below it per environment.
        owner: label of the run.
        reporter: progress.

    Raises:
        ExpbenchError: see `Sandbox.build`.
    """
    spec = environment_spec(task)
    return sandbox.build(spec, log=logs / spec.digest[:12] / "build.log", owner=owner, reporter=reporter)


def write_inbox(scratch: Path, files: Mapping[str, str]) -> tuple[Path, Path]:
    """Lay out what the container sees of this machine.

    Returns:
        The inbox with the agent's `files`, and the directory with the launcher, where the gateway puts its sockets.

    Raises:
        ExpbenchError: `INTERNAL`: an adapter names a file outside the inbox.
    """
    inbox, harness = scratch / "inbox", scratch / "harness"
    for directory in (inbox, harness):
        directory.mkdir()
    for name, text in sorted(files.items()):
        if name.startswith("/") or ".." in PurePosixPath(name).parts:
            raise ExpbenchError(
                FailureKind.INTERNAL, f"inbox file {name!r}", "is outside the inbox",
                consequence="The agent was not started", next_step="Correct the agent's adapter",
            )  # fmt: skip
        path = inbox / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for name, package in _PROGRAMS.items():
        program = resources.files(package).joinpath(name).read_text(encoding="utf-8")
        (harness / name).write_text(program, encoding="utf-8")
    for directory in (inbox, harness):  # another user reads them, whatever this process's umask is
        for here, _, names in os.walk(directory):
            Path(here).chmod(0o755)
            for name in names:
                (Path(here) / name).chmod(0o644)
    return inbox, harness


# --- after the run ---------------------------------------------------------------------------------------------------


def workspace_after(masked: Path, changed: Path, result: RunResult, into: Path) -> None:
    """Put the agent's workspace together again: the masked files, with what it changed and without what it removed.

    Unchanged files are hard links where that is possible; nobody writes to them.

    Args:
        masked: the masked repository.
        changed: directory with the files that the run produced.
        result: of the run.
        into: new directory.
    """
    shutil.copytree(masked, into, symlinks=True, ignore=_git_directory(masked), copy_function=_link)
    for name in result.removed:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
            (into / name).unlink()
    for produced in result.produced:
        target = into / produced.path
        _make_way(into, target)
        shutil.copyfile(changed / produced.path, target)
        target.chmod(0o755 if produced.executable else 0o644)


def _git_directory(root: Path) -> Callable[[str, list[str]], list[str]]:
    def ignore(directory: str, names: list[str]) -> list[str]:
        return [".git"] if Path(directory) == root and ".git" in names else []

    return ignore


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # another file system, or one without links
        shutil.copy2(source, target, follow_symlinks=False)


def _make_way(root: Path, target: Path) -> None:
    """Directories above the target; files and links that were there before are gone, as they are in the container."""
    for parent in reversed(target.relative_to(root).parents):
        path = root / parent
        if path.is_symlink() or path.is_file():
            path.unlink()
        path.mkdir(exist_ok=True)
    if target.is_dir() and not target.is_symlink():
        shutil.rmtree(target)
    target.unlink(missing_ok=True)  # it may be a link to the masked file: never write through it
