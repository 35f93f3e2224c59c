"""Tasks of what `expbench import release` wrote: files that people may have edited since, and the release's archives.

```
OUT/
  imported-release.json                     what was imported; written last
  tasks/<task>/task.yaml  truth.yaml ...    experiments, as in a workspace; mask.json: how the mask is made again
  repositories/  originals/                 the release's archives, as they were
  families/<family>/                        source directories of the other families
```
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import ClassVar, Final, TypeVar

from pydantic import BaseModel

from evaluation.families.registry import family_rules
from evaluation.recipes import NOT_BUILT
from evaluation.releases import release_repository
from evaluation.task import EvaluationTask, private_digest
from pipeline.files import read_record
from pipeline.formats.release_tables import MaskRecipe, archive_name
from pipeline.progress import Reporter
from pipeline.schema import Problem, StoredRecord
from pipeline.store import Workspace
from pipeline.task import Family, PublicTask

__all__ = ["FAMILIES", "HEAD", "MASK", "ImportedRelease", "is_imported_release", "load_imported_release"]

HEAD: Final = "imported-release.json"
FAMILIES: Final = "families"
MASK: Final = "mask.json"
RecordT = TypeVar("RecordT", bound=BaseModel)

_NO_PAPER: Final = "its paper was neither in the release nor given: import it again with --papers DIR"


class ImportedRelease(StoredRecord):
    """`imported-release.json`."""

    SCHEMA_VERSION: ClassVar[int] = 1

    name: str
    version: str
    tasks: tuple[str, ...]
    """Of all families."""
    families: tuple[Family, ...] = ()
    """Those with a source directory of their own."""
    without_paper: tuple[PublicTask, ...] = ()
    """Tasks whose paper was neither in the release nor given: they cannot be set up."""


def is_imported_release(directory: Path) -> bool:
    """Did `expbench import release` write this directory?"""
    return (directory / HEAD).is_file()


def load_imported_release(
    directory: Path, *, scratch: Path, reporter: Reporter, only: Collection[str] = (), build: bool = True
) -> tuple[list[EvaluationTask], list[Problem]]:
    """The tasks, sorted by id; see `evaluation.releases.load_release`.

    Raises:
        ExpbenchError: `RECORD_INVALID`: a file of it cannot be read.
    """
    head = _read(directory / HEAD, ImportedRelease)
    tasks: list[EvaluationTask] = []
    problems: list[Problem] = []
    workspace = Workspace(directory)
    for task_id in workspace.task_ids():
        if not only or task_id in only:
            reporter.step("tasks", task_id)
            task, told = _experiment(workspace, task_id, scratch, reporter, build)
            tasks.append(task)
            problems += told
    lacking = {task.id: task for task in head.without_paper if not only or task.id in only}
    tasks += [EvaluationTask(public=task, blocked=_NO_PAPER) for task in lacking.values()]
    whole = set(head.tasks) - set(workspace.task_ids()) - {task.id for task in head.without_paper}
    # what is asked for goes on as it is: a family may know further modes of a task by ids of their own
    wanted = sorted(set(only) - lacking.keys() if only else whole)
    for family in head.families if wanted else ():
        rules = family_rules(family)
        assert rules is not None, "the experiment family has no directory of its own"
        source = directory / FAMILIES / family.value
        found, told = rules.load(source, scratch=scratch, only=wanted, reporter=reporter, build=build)
        tasks += found
        problems += told
    return sorted(tasks, key=lambda task: task.id), problems


def _read(path: Path, model: type[RecordT]) -> RecordT:
    return read_record(
        path, model, consequence="There are no tasks to evaluate", next_step="Import the release again"
    )  # fmt: skip


def _experiment(
    workspace: Workspace, task_id: str, scratch: Path, reporter: Reporter, build: bool
) -> tuple[EvaluationTask, list[Problem]]:
    task = workspace.load_task(task_id)
    path, archive = workspace.task_dir(task_id) / MASK, archive_name(task_id)
    recipe = _read(path, MaskRecipe) if path.is_file() else None
    built = NOT_BUILT
    if build:
        there = archive if (workspace.root / archive).is_file() else None
        built = release_repository(task.public(), there, task.masked, recipe, workspace.root, scratch, reporter)
    loaded = EvaluationTask(
        public=task.public(),
        truth=task.truth,
        masked_paths=task.masked,
        masked_repository=built.masked,
        original_tree=built.original,
        blocked=built.blocked,
        private_digest=private_digest(task.truth),
    )
    return loaded, list(built.problems)
