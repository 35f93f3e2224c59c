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

__all__ = ["CatalogueEntry", "holds_task_files", "holds_tasks", "problem_of", "read_catalogue"]

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


def holds_task_files(directory: Path) -> bool:
    """Is there anything in it that `read_catalogue` would look at?"""
    return next(_task_files(directory), None) is not None


def read_catalogue(directory: Path) -> tuple[list[CatalogueEntry], list[Problem]]:
    """All tasks that can be read, sorted by id, and one error for each that cannot.

    Of two tasks with one id the one whose directory is called so is kept, else the first by path. Ids that differ in
    case only are the same: they become names of directories.
    """
    found: dict[str, CatalogueEntry] = {}
    problems: list[Problem] = []
    for path in _task_files(directory):
        try:
            task = load_histogram_task(path.parent)
        except ExpbenchError as error:
            problems.append(problem_of(error, directory))
            continue
        shared = find_shared(path.parent, task.paper)
        assert shared is not None, "its reference was read from there"
        entry = CatalogueEntry(task, path.parent, shared)
        earlier = found.get(task.id.lower())
        if earlier is not None:
            entry, other = sorted((earlier, entry), key=lambda item: item.directory.name != item.task.id)
            places = [(item.directory / "task.toml").relative_to(directory).as_posix() for item in (other, entry)]
            problems.append(_problem(places[0], f"its id {other.task.id} is that of {places[1]}"))
        found[task.id.lower()] = entry
    return sorted(found.values(), key=lambda entry: entry.task.id), problems


def _task_files(directory: Path) -> Iterator[Path]:
    """`task.toml` files in order of their paths; links to directories are not followed."""
    for here, names, files in os.walk(directory):
        depth = len(Path(here).relative_to(directory).parts)
        names[:] = sorted(name for name in names if not name.startswith(".")) if depth < _DEPTH else []
        if "task.toml" in files:
            yield Path(here) / "task.toml"


def problem_of(error: ExpbenchError, directory: Path) -> Problem:
    """What is wrong with a file of a task, its path relative to the directory where it lies in it."""
    place, base = Path(error.object).absolute(), directory.absolute()
    return _problem(place.relative_to(base).as_posix() if place.is_relative_to(base) else error.object, error.cause)


def _problem(where: str, message: str) -> Problem:
    return Problem(component=_COMPONENT, where=where, message=message, severity=Severity.ERROR)
