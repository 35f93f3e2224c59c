"""Which files lose single functions instead of going as a whole, and which functions.

The paper masks whole scripts, and so do we: an experiment's script is what an agent has to write. Two cases are
different. A chain may consist of library files only; taking such a file out whole would break everything else that
imports it, and the masked run would fail for the wrong reason. And a person may know better and name the functions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final, Literal

from masking.functions import FunctionPolicy, function_names, mask_functions, names_at, spans_in
from masking.records import TextEdit
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.repository import Snapshot
from pipeline.schema import Problem, Record
from pipeline.task import SourceScript, Task

__all__ = ["MaskPolicy", "PartialMasks", "partial_masks"]

_MAX_IMPORTER: Final = 1 << 20
"""Python files above this size are data in disguise and import nothing of the repository."""


class MaskPolicy(Record):
    """How a mask is cut, where the task leaves a choice."""

    level: Literal["auto", "file"] = "auto"
    """`auto`: single functions of library files that others use; `file`: whole files only."""
    functions: tuple[str, ...] = ()
    """`path::name`: of this file only these functions, methods or classes are masked, whatever the rule says."""
    kept: FunctionPolicy = FunctionPolicy()

    def by_path(self) -> dict[str, tuple[str, ...]]:
        """Path -> names that a person wants masked there."""
        found: dict[str, tuple[str, ...]] = {}
        for item in self.functions:
            path, _, name = item.partition("::")
            found[path] = (*found.get(path, ()), name)
        return found


@dataclass(slots=True)
class PartialMasks:
    """What was decided."""

    edits: list[TextEdit] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)
    """Path -> why."""
    problems: list[Problem] = field(default_factory=list)


def partial_masks(task: Task, snapshot: Snapshot, sources: Sequence[SourceScript], policy: MaskPolicy) -> PartialMasks:
    """The files that are masked function by function.

    Args:
        task: its requirements and what ran say which functions answer the question.
        snapshot: the original.
        sources: the scripts that are masked.
        policy: what a person wants.

    Raises:
        ExpbenchError: `USAGE`: the policy names a file or function that is not there, or cannot be masked.
    """
    found = PartialMasks()
    for path, names in sorted(policy.by_path().items()):
        try:
            _take_out(found, snapshot, path, names, "a person wants them masked", policy)
        except ValueError as error:
            raise ExpbenchError(
                FailureKind.USAGE, f"{path}::{', '.join(names)}", str(error),
                consequence="No mask was planned",
                next_step="Name functions of a Python 3 file of the repository as PATH::NAME, or mask the whole file",
            ) from error  # fmt: skip
    if policy.level == "file" or any(script.role != "library" for script in sources):
        return found
    for script in sources:
        if script.path in found.reasons or not _used_elsewhere(snapshot, script.path, sources):
            continue
        try:
            data = _original(snapshot, script.path)
            names = _answering(task, script.path, data)
            if names and set(names) != {name for name in function_names(data) if "." not in name}:
                _take_out(found, snapshot, script.path, names, "they answer the question, others use the rest", policy)
        except ValueError as error:
            message = f"masked as a whole, its functions cannot be taken out one by one: {error}"
            found.problems.append(Problem(component="mask.plan", where=script.path, message=message))
    return found


def _answering(task: Task, path: str, data: bytes) -> tuple[str, ...]:
    """The functions of a file that a requirement names or that ran for the task; what is known of neither is none."""
    named = set(names_at(data, spans_in(task.truth.requirements, path)))
    named |= {item.name for item in task.truth.ran if item.path == path}
    return tuple(name for name in function_names(data) if name in named)


def _original(snapshot: Snapshot, path: str) -> bytes:
    if path not in {file.path for file in snapshot.files}:
        raise ValueError("it is not a file of the repository")
    return (snapshot.root / path).read_bytes()


def _take_out(
    found: PartialMasks, snapshot: Snapshot, path: str, names: tuple[str, ...], why: str, policy: MaskPolicy
) -> None:
    found.edits += mask_functions(path, _original(snapshot, path), names, policy.kept)
    found.reasons[path] = f"bodies of {', '.join(names)}: {why}"


def _used_elsewhere(snapshot: Snapshot, path: str, sources: Sequence[SourceScript]) -> bool:
    """Does a Python file that is not masked import the module? Then removing it would break more than the task."""
    masked = {script.path for script in sources}
    stem = PurePosixPath(path).stem
    name = PurePosixPath(path).parent.name if stem == "__init__" else stem
    pattern = re.compile(rb"^\s*(?:from|import)\s[^\n]*\b" + re.escape(name.encode()) + rb"\b", re.MULTILINE)
    return bool(name) and any(
        file.path.endswith(".py")
        and file.path not in masked
        and file.size <= _MAX_IMPORTER
        and pattern.search((snapshot.root / file.path).read_bytes())
        for file in snapshot.files
    )
