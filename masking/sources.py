"""What the mask of a task is about: its source scripts, and the texts that must not come back near-duplicated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from masking.filekinds import is_code, is_root_readme
from masking.functions import MASKED_BODY, function_sources
from masking.probe import Reference
from masking.records import TextEdit
from pipeline.repository import Snapshot
from pipeline.task import SourceScript, Task

__all__ = ["background", "masked_sources", "references"]

_MAX_BACKGROUND: Final = 1 << 20
"""Bytes; larger code is generated or data, not the house's style."""


def masked_sources(task: Task) -> tuple[SourceScript, ...]:
    """The scripts that are masked: sources (libraries only where there is nothing else) and their equivalents."""
    scripts = tuple(script for script in task.truth.sources if script.role != "library")
    return (*(scripts or task.truth.sources), *task.truth.equivalents)


def references(task: Task, snapshot: Snapshot, edits: Sequence[TextEdit] = ()) -> list[Reference]:
    """The texts whose near-duplicates are looked for: masked source scripts and the README files at the root.

    Of a file that only lost bodies of functions, those functions are looked for.

    Args:
        task: names the scripts.
        snapshot: the original.
        edits: of the plan.
    """
    files = {file.path for file in snapshot.files}
    partly = {edit.path for edit in edits if edit.replacement == MASKED_BODY}
    paths = [script.path for script in masked_sources(task) if script.path in files]
    paths += sorted(path for path in files if (is_root_readme(path) or path in partly) and path not in paths)
    found: list[Reference] = []
    for path in paths:
        data = (snapshot.root / path).read_bytes()
        if path in partly:
            data = function_sources(data, [edit for edit in edits if edit.path == path])
        found.append(Reference(path, data))
    return found


def background(task: Task, snapshot: Snapshot) -> Iterator[bytes]:
    """The other code of the repository, each content once: what it shares with a masked file is the house's style."""
    masked = {script.path for script in masked_sources(task)}
    seen = {file.sha256 for file in snapshot.files if file.path in masked}
    for file in snapshot.files:
        code = is_code(file.path) and not file.binary and file.size <= _MAX_BACKGROUND
        if code and file.path not in masked and file.sha256 not in seen:
            seen.add(file.sha256)
            yield (snapshot.root / file.path).read_bytes()
