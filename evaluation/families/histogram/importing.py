"""Published tasks as a directory of their own: what can be read, in the published layout, and nothing else.

```
OUT/
  collider-bench.json                tasks, papers, counts; written last
  problems.json                      one entry for each task that was left out, and why
  tasks/<task>/                      task.toml  TASK.md  template/  artifacts/
  shared/<paper>/                    reference/  paper/  object_efficiencies/
```

The directory is evaluated, scored and imported like the published one. Of every task of absolute yields a shape-only
variant can be made (Collider-Bench 4.4), where none is published.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final

from evaluation.families.histogram.catalogue import CatalogueEntry, holds_task_files, problem_of, read_catalogue
from evaluation.families.histogram.workspace import paper_pdf, regular_files
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import replace_directory
from pipeline.schema import Problem, StoredRecord

__all__ = ["MARKER", "ImportedHistograms", "import_tasks", "shape_variant"]

MARKER: Final = "collider-bench.json"
_HEAD: Final = 1024
"""Bytes in which a PDF says that it is one; some have something in front."""
_PUBLISHED: Final = "`results/*.yaml` | Fill the `null` bin values with your predicted signal yields."
_SHAPE_ROW: Final = (
    "`results/*.yaml` | Fill the `null` bin values with your predicted relative signal bin contents; the scorer "
    "ignores overall normalization."
)
_SHAPE_NOTE: Final = (
    "> **Shape only:** predict the normalized distribution over the bins. The absolute normalization is not scored.\n\n"
)


class ImportedHistograms(StoredRecord):
    """`collider-bench.json`."""

    SCHEMA_VERSION: ClassVar[int] = 1

    source: str = "collider-bench"
    tasks: tuple[str, ...]
    papers: tuple[str, ...]
    without_paper: tuple[str, ...]
    """Tasks whose paper's PDF is not in the source: `read-paper` has nothing to read there."""
    variants: tuple[str, ...]
    """Shape-only variants that were made."""


class _Problems(StoredRecord):
    problems: tuple[Problem, ...]


def import_tasks(
    directory: Path, out: Path, *, shape_variants: bool = False
) -> tuple[ImportedHistograms | None, list[Problem]]:
    """Import what can be read; an earlier import in `out` is replaced as a whole.

    Returns:
        What was written (None: no task could be read, nothing was), and one error for each task that was left out.

    Raises:
        ExpbenchError: `RECORD_INVALID`, there is no such directory, or nothing in it is called as a task is;
            `WORKSPACE_CONFLICT`, `out` holds something that is no such import.
    """
    if not directory.is_dir():
        raise ExpbenchError(
            FailureKind.RECORD_INVALID, str(directory), "there is no such directory",
            consequence="Nothing was imported", next_step="Name the directory of the published Collider-Bench tasks",
        )  # fmt: skip
    if out.exists() and not (out / MARKER).is_file() and (not out.is_dir() or any(out.iterdir())):
        raise ExpbenchError(
            FailureKind.WORKSPACE_CONFLICT, str(out), "holds files that are not an import of Collider-Bench",
            consequence="Nothing was written", next_step="Choose an empty or new directory with --out",
        )  # fmt: skip
    if not holds_task_files(directory):
        raise ExpbenchError(
            FailureKind.RECORD_INVALID, str(directory), "holds no task.toml, nor do its directories",
            consequence="Nothing was imported",
            next_step="Name the directory of the published Collider-Bench tasks (`ColliderBench/tasks`)",
        )  # fmt: skip
    entries, problems = read_catalogue(directory)
    files: dict[str, dict[str, Path]] = {}
    for entry in entries:
        try:
            files[entry.task.id] = _files_of(entry)
        except ExpbenchError as error:
            problems.append(problem_of(error, directory))
    entries = [entry for entry in entries if entry.task.id in files]
    if not entries:
        return None, problems
    with replace_directory(out) as fresh:
        for entry in entries:
            for name, source in files[entry.task.id].items():
                (fresh / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, fresh / name)
        variants = _variants(entries, fresh) if shape_variants else []
        head = ImportedHistograms(
            tasks=tuple(sorted([*(entry.task.id for entry in entries), *variants])),
            papers=tuple(sorted({entry.task.paper for entry in entries})),
            without_paper=tuple(entry.task.id for entry in entries if paper_pdf(entry) is None),
            variants=tuple(variants),
        )
        listed = _Problems(problems=tuple(problems))
        (fresh / "problems.json").write_text(listed.model_dump_json(indent=1) + "\n", encoding="utf-8")
        (fresh / MARKER).write_text(head.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return head, problems


def _files_of(entry: CatalogueEntry) -> dict[str, Path]:
    """Place in the import -> file of the source, of one task.

    Raises:
        ExpbenchError: `RECORD_INVALID`: a file is too large to be given along, or the paper is no PDF.
    """
    task, target, shared = entry.task, f"tasks/{entry.task.id}", f"shared/{entry.task.paper}"
    wanted = {
        f"{target}/task.toml": entry.directory / "task.toml",
        f"{target}/TASK.md": entry.directory / "TASK.md",
        f"{target}/template/{task.file}": entry.directory / "template" / task.file,
        f"{shared}/reference/{task.file}": entry.shared / "reference" / task.file,
    }
    for source, place in (
        (entry.directory / "artifacts", f"{target}/artifacts"),
        (entry.shared / "object_efficiencies", f"{shared}/object_efficiencies"),
    ):
        wanted |= {f"{place}/{path.relative_to(source).as_posix()}": path for path in regular_files(source)}
    pdf = paper_pdf(entry)
    if pdf is not None:
        with pdf.open("rb") as stream:
            if b"%PDF-" not in stream.read(_HEAD):
                raise ExpbenchError(
                    FailureKind.RECORD_INVALID, str(pdf), "it is no PDF",
                    consequence=f"The task {task.id} was left out", next_step="Replace it by the paper, or remove it",
                )  # fmt: skip
        wanted[f"{shared}/paper/{task.paper}.pdf"] = pdf
    return wanted


def _variants(entries: Sequence[CatalogueEntry], root: Path) -> list[str]:
    """Shape-only variants of the tasks of absolute yields that have none; their ids."""
    there = {(entry.task.paper, entry.task.file) for entry in entries if entry.task.mode == "shape"}
    ids = {entry.task.id.lower() for entry in entries}
    made = []
    for entry in entries:
        task = entry.task
        name = shape_variant_id(task.id)
        taken = (task.paper, task.file) in there or name.lower() in ids
        if task.mode != "shape_norm" or len(task.truth) < 2 or taken:
            continue
        source, target = root / "tasks" / task.id, root / "tasks" / name
        shutil.copytree(source, target)
        template = target / "template" / task.file
        texts = [(target / part).read_text(encoding="utf-8") for part in ("task.toml", "TASK.md")]
        changed = shape_variant(name, texts[0], texts[1], template.read_text(encoding="utf-8"))
        for path, text in zip((target / "task.toml", target / "TASK.md", template), changed, strict=True):
            path.write_text(text, encoding="utf-8")
        made.append(name)
    return made


def shape_variant_id(task: str) -> str:
    """`sus-16-046_sim-T5Wg` becomes `sus-16-046_shape-T5Wg`, as published."""
    return task.replace("_sim-", "_shape-", 1) if "_sim-" in task else f"{task}_shape"


def shape_variant(name: str, settings: str, instructions: str, template: str) -> tuple[str, str, str]:
    """`task.toml`, `TASK.md` and the template of the shape-only variant of a task, in the words of the published ones.

    Args:
        name: id of the variant.
        settings: `task.toml`.
        instructions: `TASK.md`.
        template: the template.
    """
    settings = re.sub(r"(?m)^(id\s*=\s*).*$", lambda match: f'{match[1]}"{name}"', settings, count=1)
    settings = re.sub(r"(?m)^(mode\s*=\s*).*$", lambda match: f'{match[1]}"shape"', settings, count=1)
    if not re.search(r"(?m)^mode\s*=", settings):
        settings = re.sub(r"(?m)^\[metrics\].*$", '[metrics]\nmode = "shape"', settings, count=1)
    instructions = instructions.replace("**Task type:** simulation", "**Task type:** simulation (shape-only)", 1)
    instructions = _SHAPE_NOTE + instructions.replace(_PUBLISHED, _SHAPE_ROW, 1)
    head, mark, histogram = template.partition("\n---\n")
    if mark:
        template = f"{head}\nscoring: shape_only\n---\n{histogram}"
    return settings, instructions, template
