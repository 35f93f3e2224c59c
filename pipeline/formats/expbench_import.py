"""Published EXP-Bench data as a directory of tasks, in the workspace's own layout: readable with `ls`, editable, whole.

```
OUT/
  imported.json                    the papers, what belongs to no task, counts of quirks; written last
  problems.json                    every departure of the data from its own form
  tasks/<task>/task.yaml  truth.yaml  evidence.json      as in a workspace
               published.json                            the record as published, verbatim
```
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final

from pydantic import JsonValue, ValidationError

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import replace_directory
from pipeline.formats._expbench_rows import ConferenceLine
from pipeline.formats.expbench import PublishedDataset, PublishedPaper, PublishedTask, quirk_counts
from pipeline.schema import Problem, StoredRecord
from pipeline.store import Workspace

__all__ = ["Imported", "is_imported", "read_imported", "write_imported"]

_HEAD: Final = "imported.json"
_RECORD: Final = "published.json"


class Imported(StoredRecord):
    """`imported.json`."""

    SCHEMA_VERSION: ClassVar[int] = 1

    source: str = "exp-bench"
    papers: tuple[PublishedPaper, ...]
    tasks: tuple[str, ...]
    quirks: dict[str, int]
    other_lines: tuple[ConferenceLine, ...] = ()


class _Problems(StoredRecord):
    """`problems.json`."""

    problems: tuple[Problem, ...]


class _Published(StoredRecord):
    """`published.json`."""

    index: int
    original: dict[str, JsonValue]


def is_imported(directory: Path) -> bool:
    """Is a directory one that `write_imported` made?"""
    return (directory / _HEAD).is_file()


def write_imported(dataset: PublishedDataset, out: Path) -> Imported:
    """Write a data set; an earlier import in `out` is replaced as a whole.

    Raises:
        ExpbenchError: `WORKSPACE_CONFLICT`, `out` holds something that is no import.
    """
    if out.exists() and not is_imported(out) and (not out.is_dir() or any(out.iterdir())):
        raise ExpbenchError(
            FailureKind.WORKSPACE_CONFLICT,
            str(out),
            "holds files that are not an import of expbench",
            consequence="Nothing was written",
            next_step="Choose an empty or new directory with --out",
        )
    head = Imported(
        papers=dataset.papers,
        tasks=tuple(item.task.id for item in dataset.tasks),
        quirks=quirk_counts(dataset.problems),
        other_lines=dataset.other_lines,
    )
    with replace_directory(out) as fresh:
        workspace = Workspace(fresh)
        for item in dataset.tasks:
            workspace.save_task(item.task)
            published = _Published(index=item.index, original=item.original)
            workspace.write_json(workspace.task_dir(item.task.id) / _RECORD, published)
        workspace.write_json(workspace.root / "problems.json", _Problems(problems=dataset.problems))
        workspace.write_json(workspace.root / _HEAD, head)
    return head


def read_imported(directory: Path) -> PublishedDataset:
    """Read what `write_imported` wrote, with the changes that people made to the tasks since.

    Raises:
        ExpbenchError: `RECORD_INVALID`, a file is missing or does not fit its schema.
    """
    workspace = Workspace(directory)
    try:
        head = Imported.model_validate_json((workspace.root / _HEAD).read_bytes())
        problems = _Problems.model_validate_json((workspace.root / "problems.json").read_bytes()).problems
        tasks = []
        for task_id in workspace.task_ids():
            record = _Published.model_validate_json((workspace.task_dir(task_id) / _RECORD).read_bytes())
            task = workspace.load_task(task_id)
            tasks.append(PublishedTask(task=task, index=record.index, original=record.original))
    except (OSError, ValidationError) as error:
        raise ExpbenchError(
            FailureKind.RECORD_INVALID,
            str(directory),
            f"cannot be read as an import: {str(error).splitlines()[0]}",
            consequence="Nothing was loaded",
            next_step="Import the published data again",
        ) from error
    return PublishedDataset(
        papers=head.papers, tasks=tuple(tasks), problems=problems, other_lines=head.other_lines
    )  # fmt: skip
