"""`expbench import release`: a released data set back into task files that people read, edit and evaluate.

The tasks equal those that were released (`evaluation.imported_release` has the layout). Masked repositories stay
archives, or recipes where their licence does not allow a copy; tasks of the other families are the source directories
that they were released from.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

from evaluation.imported_release import FAMILIES, HEAD, MASK, ImportedRelease
from evaluation.releases import release_recipe
from flows.importers import ImportOptions, ImportOutcome
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import replace_directory, write_bytes
from pipeline.formats.family_parts import FamilyPart, write_files
from pipeline.formats.huggingface import (
    PRIVATE,
    images_by_task,
    read_family_parts,
    read_head,
    read_release,
    read_tables,
)
from pipeline.formats.release_tables import archive_name, originals_name
from pipeline.store import Workspace
from pipeline.task import Task

__all__ = ["run"]

_MOST_BYTES: Final = 256 << 20
"""Of a file that may be a paper."""


def run(directory: Path, out: Path, options: ImportOptions) -> ImportOutcome:
    """Import a release that has its ground truth; an earlier import of one in `out` is replaced as a whole.

    Raises:
        ExpbenchError: `RECORD_INVALID`: it is no release, or has no ground truth; `WORKSPACE_CONFLICT`: `out` holds
            something else; `USAGE`: the directory of papers is none.
    """
    head = read_head(directory)
    tasks, parts = read_release(directory), read_family_parts(directory)
    if out.exists() and not (out / HEAD).is_file() and (not out.is_dir() or any(out.iterdir())):
        raise ExpbenchError(
            FailureKind.WORKSPACE_CONFLICT,
            str(out),
            "holds files that are not an import of a release",
            consequence="Nothing was written",
            next_step="Choose an empty or new directory with --out",
        )
    wanted = {item.sha256 for part in parts for item in part.withheld}
    papers = _papers(options.papers, wanted) if options.papers is not None else {}
    families = sorted({part.public.family for part in parts}, key=lambda family: family.value)
    without: list[str] = []
    with replace_directory(out) as fresh:
        _write_experiments(directory, tasks, Workspace(fresh))
        for family in families:
            own: Sequence[FamilyPart] = [part for part in parts if part.public.family is family]
            without += write_files(own, fresh / FAMILIES / family.value, papers)
        imported = ImportedRelease(
            name=head.name,
            version=head.version,
            tasks=tuple(sorted([*(task.id for task in tasks), *(part.id for part in parts)])),
            families=tuple(families),
            without_paper=tuple(part.public for part in parts if part.id in without),
        )
        Workspace(fresh).write_json(fresh / HEAD, imported)
    return ImportOutcome(
        tasks=len(imported.tasks),
        value={
            "directory": str(out),
            "papers": len({item.paper.id for item in [*tasks, *(part.public for part in parts)]}),
            "tasks": len(imported.tasks),
            "version": head.version,
            "without_paper": len(without),
            "errors": 0,
        },
        details={"ids": list(imported.tasks), "without_paper": list(without)},
        notes=tuple(f"  {task}: its paper is not in the release; give it with --papers" for task in without),
    )


def _write_experiments(directory: Path, tasks: Sequence[Task], workspace: Workspace) -> None:
    """Task files, pictures of the evidence, and what the masked repositories are made from."""
    public, private = read_tables(directory)
    pictures = images_by_task(private)
    for task in tasks:
        workspace.save_task(task)
        for name, data in sorted(pictures.get(task.id, {}).items()):
            write_bytes(workspace.task_dir(task.id) / "evidence" / PurePosixPath(name).name, data)
        recipe = release_recipe(public[task.id], private[task.id])
        if recipe is not None:
            workspace.write_json(workspace.task_dir(task.id) / MASK, recipe)
        for name, places in _archives(public[task.id]).items():
            for place in places:
                if (directory / place).is_file():
                    target = workspace.root / name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(directory / place, target)
                    break


def _archives(row: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Archive of an import -> where a release has it; ids become names of files only through these two functions."""
    masked, taken = archive_name(row["id"]), originals_name(row["id"])
    return {masked: (masked,), taken: (f"{PRIVATE}/{taken}", taken)}


def _papers(directory: Path, wanted: set[str]) -> dict[str, bytes]:
    """Files of a directory by sha256, those that are wanted; names do not matter.

    Raises:
        ExpbenchError: `USAGE`: there is no such directory.
    """
    if not directory.is_dir():
        raise ExpbenchError(
            FailureKind.USAGE, f"--papers {directory}", "is no directory",
            consequence="Nothing was imported", next_step="Name the directory that holds the papers' files",
        )  # fmt: skip
    found = {}
    for path in sorted(directory.rglob("*")):
        if path.is_file() and path.stat().st_size <= _MOST_BYTES:
            data = path.read_bytes()
            digest = hashlib.sha256(data).hexdigest()
            if digest in wanted:
                found[digest] = data
    return found
