"""`expbench import prbench`: published task directories that can be read, copied as they are, with what could not.

```
OUT/
  prbench.json        which tasks, from what, how many errors
  problems.json       every problem, file by file
  tasks/<id>/         task.yaml, instruction, graders' text, paper, truth, reference code, input files
```

Only files that a task names are copied; links are not.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import ClassVar, Final

from evaluation.families.table.folder import MOST_FILE, TASK_FILE
from evaluation.families.table.reading import read_table_tasks, task_directories
from evaluation.families.table.records import Mode, TableTask
from evaluation.families.table.workspace import public_files, truth_digest
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import replace_directory, write_text
from pipeline.schema import Problem, Record, Severity, StoredRecord

__all__ = ["HEAD", "ImportedTables", "import_tables", "task_files"]

HEAD: Final = "prbench.json"
_PROBLEMS: Final = "problems.json"


class ImportedTable(Record):
    """A task of an import."""

    id: str
    published_id: str
    tables: int
    """Expected tables with truth."""
    code_only: bool
    """Does it have that mode too?"""
    truth_sha256: str


class ImportedTables(StoredRecord):
    """`prbench.json`."""

    SCHEMA_VERSION: ClassVar[int] = 1

    tasks: tuple[ImportedTable, ...]
    directories: int
    """Directories with a `task.yaml` that were looked at."""
    errors: int
    problems: tuple[Problem, ...] = ()


def import_tables(directory: Path, out: Path) -> ImportedTables:
    """Import what can be read; `out` is written when at least one task can.

    Raises:
        ExpbenchError: `RECORD_INVALID`: the directory is not there or holds no `task.yaml`; `WORKSPACE_CONFLICT`:
            `out` is there and is no earlier import.
    """
    found = task_directories(directory) if directory.is_dir() else []
    if not found:
        raise ExpbenchError(
            FailureKind.RECORD_INVALID, str(directory),
            f"holds no {TASK_FILE}, nor do its directories" if directory.is_dir() else "is no directory",
            consequence="Nothing was imported", next_step="Name the directory with PRBench's tasks (`data/tasks`)",
        )  # fmt: skip
    if out.exists() and not (out / HEAD).is_file() and (not out.is_dir() or any(out.iterdir())):
        raise ExpbenchError(
            FailureKind.WORKSPACE_CONFLICT, str(out), "is there, and is no import of PRBench tasks",
            consequence="Nothing was imported", next_step="Choose another --out",
        )  # fmt: skip
    tasks, problems = read_table_tasks(directory)
    both, more = read_table_tasks(directory, modes=(Mode.CODE_ONLY,))
    # a task that has only the code-only mode wrong is imported in full mode, with what is wrong with the other
    problems += [problem for problem in more if problem not in problems]
    code_only = {task.published_id for task in both}
    head = ImportedTables(
        tasks=tuple(
            ImportedTable(
                id=task.id, published_id=task.published_id, tables=len(task.files),
                code_only=task.published_id in code_only, truth_sha256=truth_digest(task),
            )
            for task in tasks
        ),
        directories=len(found),
        errors=sum(problem.severity is Severity.ERROR for problem in problems),
        problems=tuple(problems),
    )  # fmt: skip
    if tasks:
        with replace_directory(out) as target:
            for task in tasks:
                _copy(task, target / "tasks" / task.id)
            listed = [problem.model_dump(mode="json") for problem in problems]
            write_text(target / _PROBLEMS, json.dumps(listed, indent=1, ensure_ascii=False) + "\n")
            write_text(target / HEAD, head.evolve(problems=()).model_dump_json(indent=1) + "\n")
    return head


def task_files(task: TableTask) -> dict[str, Path]:
    """Path in the task's directory -> file, of everything that the task names, and its reference implementation.

    Links and what is too large to be shared are left out.
    """
    wanted = {TASK_FILE, task.instruction_file, task.metadata_file, *public_files(task)}
    wanted |= {rule.truth for rule in task.files}
    for name in (task.data_dir, task.code_dir):
        base = task.root / name
        if name not in {"", "."} and base.is_dir() and not base.is_symlink():
            wanted |= {path.relative_to(task.root).as_posix() for path in base.rglob("*") if path.is_file()}
    found = {}
    for path in sorted(wanted):
        source = task.root / path
        parts = Path(path).parts
        linked = any((task.root / Path(*parts[:end])).is_symlink() for end in range(1, len(parts) + 1))
        if not linked and "__pycache__" not in parts and source.stat().st_size <= MOST_FILE:
            found[path] = source
    return found


def _copy(task: TableTask, into: Path) -> None:
    for path, source in task_files(task).items():
        target = into / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
