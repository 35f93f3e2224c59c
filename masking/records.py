"""The values that the masking stages hand on."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from pipeline.schema import Problem, Record
from pipeline.task import MaskedPath

__all__ = ["MaskPlan", "MaskedRepository", "TextEdit"]


class TextEdit(Record):
    """Bytes of a file that are overwritten because they state an answer, compute it, or name the paper."""

    path: str
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    sha256: str
    """Digest of the whole file, a notebook's outputs cleared: an edit never applies to anything else."""
    replacement: str = "[masked]"
    """What stands there instead; bodies and parameters of masked functions have their own (`masking.functions`)."""


class MaskPlan(Record):
    """What is taken out of a snapshot, and why.

    `paths` is what the task stores; `edits` says where inside files with the action `edited`.
    """

    paths: tuple[MaskedPath, ...]
    """Sorted by path, one entry a path."""
    edits: tuple[TextEdit, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def masks_functions(self) -> bool:
        """Does a file stay that lost the body of a function?"""
        return any(edit.replacement.startswith("raise ") for edit in self.edits)

    def with_action(self, action: str) -> frozenset[str]:
        """The paths with one action (`removed`, `outputs_cleared`, `edited`)."""
        return frozenset(item.path for item in self.paths if item.action == action)


class MaskedRepository(Record):
    """A fresh repository of one commit."""

    path: Path
    commit: str = Field(pattern=r"^[0-9a-f]{40}$")
    files: int
    """Files in the commit, symbolic links included."""
