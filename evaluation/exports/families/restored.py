"""Tasks of a release that are made of files, as the harness runs them: their source directories are written again.

The family itself loads them from there, so that a task of a release is the task that was released. One whose files are
not all there - the ground truth is a part of its own, a paper may be withheld for its licence - is *blocked*, and says
what is missing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from evaluation.exports.families.forms import loaded_tasks
from evaluation.task import EvaluationTask
from pipeline.digests import digest_of
from pipeline.files import replace_directory
from pipeline.formats.family_parts import FamilyPart, write_files
from pipeline.progress import Reporter
from pipeline.schema import Problem, Severity
from pipeline.task import Family

__all__ = ["load_family_parts"]

_COMPONENT: Final = "evaluation.releases"
_NO_TRUTH: Final = "the release holds no ground truth for it, needed from the start: add its private part"
_NO_PAPER: Final = (
    "its paper is not in the release ({why}): give its file to `expbench import release DIR --out OUT --papers DIR`, "
    "then evaluate OUT"
)


def load_family_parts(
    parts: Sequence[FamilyPart], *, scratch: Path, only: Collection[str], reporter: Reporter, build: bool
) -> tuple[list[EvaluationTask], list[Problem]]:
    """These tasks as their families load them, and what is to be said of them.

    Args:
        parts: of any families but `experiment`.
        scratch: receives source directories and workspaces; what is there is used again.
        only: ids; empty means all.
        reporter: progress.
        build: see `evaluation.families.base.FamilyRules.load`.
    """
    tasks: list[EvaluationTask] = []
    problems: list[Problem] = []
    families = sorted({part.public.family for part in parts}, key=lambda family: family.value)
    for family in families:
        chosen = [part for part in parts if part.public.family is family and (not only or _is_asked(part, only))]
        whole = []
        for part in chosen:
            if why := _missing(part):
                tasks.append(EvaluationTask(public=part.public, category=part.category, blocked=why))
            else:
                whole.append(part)
        if whole:
            found, told = _load(family, whole, scratch, only or [part.id for part in whole], reporter, build)
            tasks += found
            problems += told
    return sorted(tasks, key=lambda task: task.id), problems


def _is_asked(part: FamilyPart, only: Collection[str]) -> bool:
    """Is it, or a mode of it that the family knows by an id of its own (`<task>.code-only`)?"""
    return any(name == part.id or name.startswith(f"{part.id}.") for name in only)


def _missing(part: FamilyPart) -> str:
    if not part.private_files:
        return _NO_TRUTH
    return _NO_PAPER.format(why=part.withheld[0].why) if part.withheld else ""


def _load(
    family: Family, parts: Sequence[FamilyPart], scratch: Path, only: Collection[str], reporter: Reporter, build: bool
) -> tuple[list[EvaluationTask], list[Problem]]:
    key = digest_of([[part.id, _contents(part)] for part in parts])[:16]
    directory = scratch / "released" / f"{family.value}-{key}"
    if not directory.is_dir():  # renamed into place when it was complete
        with replace_directory(directory) as fresh:
            write_files(parts, fresh)
    tasks, problems = loaded_tasks(family, directory, scratch=scratch, only=only, reporter=reporter, build=build)
    lost = sorted({part.id for part in parts} & set(only) - {task.id for task in tasks})
    for task in lost:
        message = "this version of expbench cannot load it from its files"
        problems.append(Problem(component=_COMPONENT, where=task, message=message, severity=Severity.ERROR))
    return tasks, problems


def _contents(part: FamilyPart) -> dict[str, str]:
    """sha256 by path."""
    files = {**part.public_files, **part.private_files}
    return {path: hashlib.sha256(data).hexdigest() for path, data in sorted(files.items())}
