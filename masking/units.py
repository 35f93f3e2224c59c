"""A readable piece of a file, and the bounds of looking into one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from pipeline.schema import Problem, Severity

__all__ = ["MAX_DEPTH", "MAX_MEMBER", "MAX_PICTURES", "Budget", "Pictures", "Role", "Unit"]

MAX_DEPTH: Final = 4
MAX_MEMBER: Final = 64 << 20
MAX_TOTAL: Final = 512 << 20
MAX_MEMBERS: Final = 20_000

Role = Literal["file", "member", "cells", "cell", "output", "decoded", "strings", "text"]


@dataclass(frozen=True, slots=True)
class Unit:
    """A readable piece. `where` says how to get there, e.g. `old.zip!/src/run.py` or `nb.ipynb#output 3`."""

    where: str
    name: str
    """Name whose suffix decides how the piece is treated."""
    data: bytes
    role: Role
    binary: bool = False
    values: frozenset[float] = frozenset()
    """Numbers that are not text: the constants of compiled Python."""


MAX_PICTURES: Final = 100
"""Pictures of one repository that are read, at 0.5 to 1.5 s each; repositories with more hold data."""


@dataclass(slots=True)
class Pictures:
    """How many pictures were read in one scan; shared by the budgets of its files."""

    left: int = MAX_PICTURES


@dataclass(slots=True)
class Budget:
    """Bounds of looking into one file, and what was met on the way."""

    expanded: int = 0
    members: int = 0
    problems: list[Problem] = field(default_factory=list)
    pictures: Pictures = field(default_factory=Pictures)

    def unread(self, where: str, reason: str, severity: Severity = Severity.WARNING) -> None:
        """Note something that was not looked into."""
        self.problems.append(
            Problem(component="mask.read", where=where, message=f"not looked into: {reason}", severity=severity)
        )

    def allows(self, where: str, size: int) -> bool:
        """Take `size` bytes of one member out of the budget; reports when there is no room."""
        self.members += 1
        if size > MAX_MEMBER or self.expanded + size > MAX_TOTAL or self.members > MAX_MEMBERS:
            self.unread(where, "larger than the bounds of the scan when unpacked")
            return False
        self.expanded += size
        return True
