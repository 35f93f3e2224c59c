"""The tasks of a directory: as published, of its repository, or of an import. What cannot be read is said file by file.

```
task.toml or tasks/<task>/task.toml or tasks/secondary_tasks/<suite>/<task>/task.toml or ColliderBench/tasks/...
```
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from evaluation.families.histogram.task import HistogramTask, find_shared, load_histogram_task
from pipeline.errors import ExpbenchError
from pipeline.schema import Problem, Severity

__all__ = ["CatalogueEntry", "holds_tasks", "read_catalogue"]

_COMPONENT: Final = "histogram.catalogue"
_DEPTH: Final = 6
"""Folders between the directory and a task; the published repository has four."""
_PLACES: Final = ("", "*/", "tasks/*/", "ColliderBench/tasks/*/")


class CatalogueEntry(NamedTuple):
    """A task and where it lies."""

    task: HistogramTask
    directory: Path
    shared: Path
    """Folder of its paper: `reference/`, and where they are there `paper/` and `object_efficiencies/`."""


def holds_tasks(directory: Path) -> bool:
    """Does this directory look like one with such tasks? By names only."""
    return any(
        (path.parent / "template").is_dir() and (path.parent / "TASK.md").is_file()
        for place in _PLACES
        for path in directory.glob(f"{place}task.toml")
    )


def read_catalogue(directory: Path) -> tuple[list[CatalogueEntry], list[Problem]]:
    """All tasks that can be read, sorted by id, and one error for each that cannot.

    Of two tasks with one id the first by path is kept. Ids that differ in case only are the same: they become names of
    directories.
    """
    found: dict[str, CatalogueEntry] = {}
    problems: list[Problem] = []
    for path in _task_files(directory):
        where = path.relative_to(directory).as_posix()
        try:
            task = load_histogram_task(path.parent)
        except ExpbenchError as error:
            problems.append(_problem(_shown(error.object, directory) or where, error.cause))
            continue
        earlier = found.get(task.id.lower())
        if earlier is not None:
            other = (earlier.directory / "task.toml").relative_to(directory).as_posix()
            problems.append(_problem(where, f"its id {task.id} is that of {other}"))
            continue
        shared = find_shared(path.parent, task.paper)
        assert shared is not None, "its reference was read from there"
        found[task.id.lower()] = CatalogueEntry(task, path.parent, shared)
    return sorted(found.values(), key=lambda entry: entry.task.id), problems


def _task_files(directory: Path) -> Iterator[Path]:
    """`task.toml` files in order of their paths; links to directories are not followed."""
    for here, names, files in os.walk(directory):
        depth = len(Path(here).relative_to(directory).parts)
        names[:] = sorted(name for name in names if not name.startswith(".")) if depth < _DEPTH else []
        if "task.toml" in files:
            yield Path(here) / "task.toml"


def _shown(path: str, directory: Path) -> str:
    """A path of an error, relative to the directory where it lies in it."""
    place = Path(path)
    return place.relative_to(directory).as_posix() if place.is_relative_to(directory) else path


def _problem(where: str, message: str) -> Problem:
    return Problem(component=_COMPONENT, where=where, message=message, severity=Severity.ERROR)
