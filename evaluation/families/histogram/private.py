"""What only the graders of a histogram task see, as a directory: the task as published, its reference, the paper.

```
task/task.toml  TASK.md  template/<file>.yaml      reference/<file>.yaml      paper.pdf
```
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from evaluation.families.histogram.catalogue import CatalogueEntry
from evaluation.families.histogram.task import HistogramTask, load_histogram_task
from evaluation.families.histogram.workspace import paper_pdf
from evaluation.task import EvaluationTask
from pipeline.digests import digest_of, file_digest
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import replace_directory

__all__ = ["PAPER", "private_task", "reference_digest", "write_private"]

PAPER: Final = "paper.pdf"


def write_private(entry: CatalogueEntry, scratch: Path) -> Path:
    """Copy what graders need below `scratch`; what an earlier call copied from the same files is used again."""
    task = entry.task
    reference = entry.shared / "reference" / task.file
    sources = {
        "task/task.toml": entry.directory / "task.toml",
        "task/TASK.md": entry.directory / "TASK.md",
        f"task/template/{task.file}": entry.directory / "template" / task.file,
        f"reference/{task.file}": reference,
    }
    pdf = paper_pdf(entry)
    if pdf is not None:
        sources[PAPER] = pdf
    digest = digest_of({name: file_digest(path) for name, path in sorted(sources.items())})
    target = scratch / f"{task.id}-{digest[:12]}"
    if target.is_dir():
        return target
    with replace_directory(target) as fresh:
        for name, path in sources.items():
            place = fresh / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
    return target


def private_task(task: EvaluationTask) -> HistogramTask:
    """The task with its reference.

    Raises:
        ExpbenchError: `RECORD_INVALID`: it is not at hand, or damaged.
    """
    if task.private is None:
        raise ExpbenchError(
            FailureKind.RECORD_INVALID, task.id, "its reference is not at hand",
            consequence="The submission cannot be scored",
            next_step="Name the directory with the published tasks, or import them again",
        )  # fmt: skip
    directory = task.private / "task"
    [reference] = sorted((task.private / "reference").glob("*.yaml"))
    return load_histogram_task(directory, reference=reference)


def reference_digest(task: HistogramTask) -> str:
    """sha256 of what decides a score: bins, reference, mode, tolerance."""
    return digest_of(task.model_dump(mode="json", include={"reference", "template", "scored", "mode", "tolerance"}))
