"""`expbench import release`: a released data set back into task files that people read and edit.

```
OUT/
  imported-release.json                       what was imported; written last
  tasks/<task>/task.yaml  truth.yaml  ...     as in a workspace
               evidence/1.png                 pictures of the evidence
```

The tasks equal those that were released. Masked repositories stay in the release, which `expbench evaluate` takes as it
is.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import ClassVar, Final

from flows.importers import ImportOptions, ImportOutcome
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import replace_directory, write_bytes
from pipeline.formats.huggingface import images_by_task, read_head, read_release, read_tables
from pipeline.schema import StoredRecord
from pipeline.store import Workspace

__all__ = ["run"]

_HEAD: Final = "imported-release.json"


class _Imported(StoredRecord):
    """`imported-release.json`."""

    SCHEMA_VERSION: ClassVar[int] = 1

    name: str
    version: str
    tasks: tuple[str, ...]


def run(directory: Path, out: Path, options: ImportOptions) -> ImportOutcome:
    """Import a release that has its ground truth; an earlier import of one in `out` is replaced as a whole.

    Raises:
        ExpbenchError: `RECORD_INVALID`: it is no release, or has no ground truth; `WORKSPACE_CONFLICT`: `out` holds
            something else.
    """
    head = read_head(directory)
    tasks = read_release(directory)
    if out.exists() and not (out / _HEAD).is_file() and (not out.is_dir() or any(out.iterdir())):
        raise ExpbenchError(
            FailureKind.WORKSPACE_CONFLICT,
            str(out),
            "holds files that are not an import of a release",
            consequence="Nothing was written",
            next_step="Choose an empty or new directory with --out",
        )
    pictures = images_by_task(read_tables(directory)[1])
    with replace_directory(out) as fresh:
        workspace = Workspace(fresh)
        for task in tasks:
            workspace.save_task(task)
            for name, data in sorted(pictures.get(task.id, {}).items()):
                write_bytes(workspace.task_dir(task.id) / "evidence" / PurePosixPath(name).name, data)
        imported = _Imported(name=head.name, version=head.version, tasks=tuple(task.id for task in tasks))
        workspace.write_json(workspace.root / _HEAD, imported)
    return ImportOutcome(
        tasks=len(tasks),
        value={
            "directory": str(out),
            "papers": len({task.paper.id for task in tasks}),
            "tasks": len(tasks),
            "version": head.version,
            "errors": 0,
        },
        details={"ids": [task.id for task in tasks]},
    )
