"""A published task's directory: which paths lie inside of it, which files it has, and what is wrong with it so far."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Final

from pipeline.schema import Problem, Severity

__all__ = ["MOST_FILE", "TASK_FILE", "TaskFolder"]

TASK_FILE: Final = "task.yaml"
MOST_FILE: Final = 64 << 20
"""Bytes of a file that a task names; an import copies none that is larger."""
_COMPONENT: Final = "formats.prbench"


class TaskFolder:
    """One task's directory, with the problems that its readers found.

    Args:
        root: the directory.
        name: what problems call it; empty: they name files alone.
    """

    def __init__(self, root: Path, name: str) -> None:
        self.root, self.name = root, name
        self.problems: list[Problem] = []

    def error(self, where: str, message: str) -> None:
        """Say what leaves nothing to score."""
        self._add(where, message, Severity.ERROR)

    def note(self, where: str, message: str, severity: Severity = Severity.WARNING) -> None:
        """Say what departs from the format and hinders nothing."""
        self._add(where, message, severity)

    def _add(self, where: str, message: str, severity: Severity) -> None:
        place = f"{self.name}/{where}" if self.name else where
        self.problems.append(Problem(component=_COMPONENT, where=place, message=message, severity=severity))

    def failed(self) -> bool:
        """Is there an error?"""
        return any(problem.severity is Severity.ERROR for problem in self.problems)

    # --- paths

    def inside(self, path: str, what: str) -> bool:
        """Is it a relative path that stays inside of the task?"""
        pure = PurePosixPath(path)
        if not path.strip() or pure.is_absolute() or ".." in pure.parts or "\\" in path or "\0" in path:
            self.error(TASK_FILE, f"{what}: the path {path!r} does not stay inside of the task's directory")
            return False
        target = self.root / path
        if not target.resolve().is_relative_to(self.root.resolve()):
            self.error(path, f"{what}: is a link that leads out of the task's directory")
            return False
        return True

    def file(self, path: str, what: str) -> bool:
        """Is it a file of the task?"""
        if not self.inside(path, what):
            return False
        if not (self.root / path).is_file():
            self.error(path, f"{what}: there is no such file")
            return False
        if (self.root / path).stat().st_size > MOST_FILE:
            self.error(path, f"{what}: is larger than {MOST_FILE >> 20} MB")
            return False
        return True

    def text(self, path: str, what: str) -> bool:
        """Is it a file of the task with text in UTF-8?"""
        if not self.file(path, what):
            return False
        try:
            (self.root / path).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            self.error(path, f"{what}: is no UTF-8 text (byte {error.start})")
            return False
        return True
