"""PRBench's public task directories become typed tasks; what is wrong with one is said file by file, the others go on.

A directory is read, never executed and never written to. Every path of a `task.yaml` has to stay inside its task: an
absolute one, `..`, or a link that leads out is an error of that task.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Final

import yaml
from pydantic import ValidationError

from evaluation.families.table.file_rules import file_rules
from evaluation.families.table.folder import TASK_FILE, TaskFolder
from evaluation.families.table.published import OutputsBlock, PublishedTableTask, unknown_fields
from evaluation.families.table.records import (
    DEFAULT_WEIGHTS,
    Container,
    Dimension,
    Expected,
    Kind,
    Mode,
    TableTask,
)
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import Problem, Severity

__all__ = ["CODE_ONLY_SUFFIX", "load_table_task", "read_table_tasks", "task_directories"]

CODE_ONLY_SUFFIX: Final = ".code-only"
_MOST_BYTES: Final = 1 << 20
"""Of `task.yaml`; the published ones have 5 kB."""
_PYTHON: Final = re.compile(r"python:(\d+\.\d+)")
_LAYOUTS: Final = ("", "tasks", "data/tasks")
"""Where tasks lie below the directory that a user names: the tasks themselves, an import, a checkout."""
_WEIGHT_SLACK: Final = 1e-6


def task_directories(directory: Path) -> list[Path]:
    """Directories with a `task.yaml`: the directory itself, or those one level below it, `tasks/` or `data/tasks/`."""
    if (directory / TASK_FILE).is_file():
        return [directory]
    for layout in _LAYOUTS:
        base = directory / layout
        if base.is_dir() and (found := sorted(path.parent for path in base.glob(f"*/{TASK_FILE}"))):
            return found
    return []


def read_table_tasks(directory: Path, *, modes: Sequence[Mode] = (Mode.FULL,)) -> tuple[list[TableTask], list[Problem]]:
    """All tasks of a directory that can be read, sorted by id, and what was wrong with the others.

    Args:
        directory: see `task_directories`.
        modes: which modes each task is read in; code-only ones have `.code-only` behind their id.
    """
    tasks: dict[str, TableTask] = {}
    problems: list[Problem] = []
    # of two with one id the one whose directory is called so is read first, and kept
    for path in sorted(task_directories(directory), key=lambda place: not _names_itself(place)):
        folder = TaskFolder(path, path.name)
        for mode in modes:
            task = _read(folder, mode)
            if task is not None and task.id in tasks:
                folder.error(TASK_FILE, f"task_id {task.published_id!r} is that of {tasks[task.id].root.name} already")
                task = None
            if task is not None:
                tasks[task.id] = task
        problems += dict.fromkeys(folder.problems)
    return [tasks[name] for name in sorted(tasks)], sorted(problems, key=lambda item: item.where)


def _names_itself(directory: Path) -> bool:
    """Is the directory called as its task? A glance at the file, whatever its form."""
    try:
        with (directory / TASK_FILE).open("rb") as stream:
            head = stream.read(_MOST_BYTES)
    except OSError:
        return False
    match = re.search(rb"^task_id:\s*['\"]?([^\s'\"#]+)", head, re.MULTILINE)
    return match is not None and match[1] == directory.name.encode()


def load_table_task(directory: Path, mode: Mode = Mode.FULL) -> tuple[TableTask, list[Problem]]:
    """One task, and what of it departs from the format without hindering anything.

    Raises:
        ExpbenchError: `RECORD_INVALID`: it is no task, or is wrong in a way that leaves nothing to score.
    """
    folder = TaskFolder(directory, "")
    task = _read(folder, mode)
    if task is not None:
        return task, folder.problems
    errors = [problem for problem in folder.problems if problem.severity is Severity.ERROR]
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    raise ExpbenchError(
        FailureKind.RECORD_INVALID, f"{directory}/{errors[0].where}", f"{errors[0].message}{more}",
        consequence="The task cannot be used", next_step="Correct it, or name another task's directory",
    )  # fmt: skip


# --- one task --------------------------------------------------------------------------------------------------------


def _read(folder: TaskFolder, mode: Mode) -> TableTask | None:
    published = _yaml(folder)
    if published is None:
        return None
    if mode is Mode.CODE_ONLY and published.code_only is None:
        folder.note(TASK_FILE, "it has no code-only mode", Severity.INFO)
        return None
    for name in unknown_fields(published):
        folder.note(TASK_FILE, f"field {name!r} is not known and was not used", Severity.INFO)
    slug = _slug(folder, published.task_id)
    metadata = published.evaluation_file or published.metadata_file
    for path, what in ((published.instruction_file, "instruction_file"), (metadata, "metadata_file")):
        folder.text(path, what)
    paper = published.paper.paper_file
    (folder.text if paper.lower().endswith((".md", ".txt")) else folder.file)(paper, "paper.paper_file")
    for path in published.input_files:
        folder.file(path, "input_files")
    data_dir = published.ground_truth_data_dir
    code_dir = published.ground_truth_code_dir or (
        "reproduce" if (folder.root / "reproduce").is_dir() else "reproduction"
    )
    for path, what in ((data_dir, "ground_truth_data_dir"), (code_dir, "ground_truth_code_dir")):
        folder.inside(path, what)
    only = published.code_only if mode is Mode.CODE_ONLY else None
    expected = _expected(folder, only.expected_outputs if only else published.expected_outputs, mode)
    _no_answers_given(folder, published, metadata, data_dir, code_dir)
    grading = only.grading if only else published.grading
    dimensions = _dimensions(folder, grading.dimensions, mode)
    if folder.failed():
        return None
    files = file_rules(folder, published, expected, dimensions, metadata)
    if folder.failed():
        return None
    docker = published.docker
    python = _PYTHON.search(docker.image)
    if python is None:
        folder.note(TASK_FILE, f"image {docker.image!r} is not used: the sandbox has a Python base of its own")
    return TableTask(
        id=slug + (CODE_ONLY_SUFFIX if only else ""), published_id=published.task_id, mode=mode, root=folder.root,
        title=published.paper.title, author=published.paper.author, doi=published.paper.doi, year=published.paper.year,
        paper_file=published.paper.paper_file, instruction_file=published.instruction_file, metadata_file=metadata,
        data_dir=data_dir, code_dir=code_dir, input_files=tuple(published.input_files), expected=expected,
        container=Container(
            image=docker.image, python=python[1] if python else Container().python, memory_mb=docker.memory_limit,
            timeout_s=docker.timeout, packages=tuple(docker.pip_install),
        ),
        dimensions=dimensions, files=files, instruction_suffix=only.instruction_suffix if only else "",
        banned=tuple(published.banned_libraries),
    )  # fmt: skip


def _yaml(folder: TaskFolder) -> PublishedTableTask | None:
    path = folder.root / TASK_FILE
    try:
        if not path.resolve().is_relative_to(folder.root.resolve()):
            folder.error(TASK_FILE, "is a link that leads out of the task's directory")
            return None
        if path.stat().st_size > _MOST_BYTES:
            folder.error(TASK_FILE, f"is larger than {_MOST_BYTES} bytes")
            return None
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)  # noqa: S506 - text, lists, mappings
        if not isinstance(data, dict):
            folder.error(TASK_FILE, "document: holds no fields (`task_id: ...`)")
            return None
        return PublishedTableTask.model_validate(data)
    except FileNotFoundError:
        folder.error(TASK_FILE, "there is none")
    except UnicodeDecodeError as error:
        folder.error(TASK_FILE, f"is no UTF-8 text (byte {error.start})")
    except yaml.YAMLError as error:
        folder.error(TASK_FILE, f"is no YAML: {' '.join(str(error).split())}")
    except RecursionError:
        folder.error(TASK_FILE, "is nested too deeply")
    except ValidationError as error:
        for item in error.errors(include_input=False, include_url=False)[:5]:
            folder.error(TASK_FILE, f"{'.'.join(map(str, item['loc'])) or 'document'}: {item['msg']}")
    return None


def _slug(folder: TaskFolder, published: str) -> str:
    slug = re.sub(r"[^a-z0-9._-]+", "-", published.strip().lower()).strip("-._")[:140]
    if not slug:
        folder.error(TASK_FILE, f"task_id {published!r} has no letter and no digit")
    elif slug != published:
        folder.note(TASK_FILE, f"task_id {published!r} is written {slug!r} here", Severity.INFO)
    if folder.name and published != folder.name:
        folder.note(TASK_FILE, f"task_id {published!r} is not the name of its directory", Severity.INFO)
    return slug or "task"


def _expected(folder: TaskFolder, outputs: OutputsBlock, mode: Mode) -> Expected:
    for what in ("analysis", "code", "data"):
        for path in getattr(outputs, what):
            pure = PurePosixPath(path)
            if not path.strip() or pure.is_absolute() or ".." in pure.parts or "\\" in path or ".git" in pure.parts:
                folder.error(
                    TASK_FILE, f"expected_outputs.{what}: the path {path!r} does not stay inside of the workspace"
                )
    every = [*outputs.analysis, *outputs.code, *outputs.data]
    double = sorted({path for path in every if every.count(path) > 1})
    if double:
        folder.error(TASK_FILE, f"expected_outputs: {double[0]!r} is there more than once")
    if not every:
        folder.error(TASK_FILE, "expected_outputs: nothing is expected, so nothing can be graded")
    data = tuple(outputs.data) if mode is Mode.FULL else ()
    if mode is Mode.CODE_ONLY and outputs.data:
        folder.note(TASK_FILE, "code_only.expected_outputs.data is not used: code-only mode has no tables")
    return Expected(analysis=tuple(outputs.analysis), code=tuple(outputs.code), data=data)


def _no_answers_given(
    folder: TaskFolder, published: PublishedTableTask, metadata: str, data_dir: str, code_dir: str
) -> None:
    """Nothing that the agent gets may be what only graders may see."""
    expected = set(published.expected_outputs.data)
    for path in (published.instruction_file, published.paper.paper_file, *published.input_files):
        pure = PurePosixPath(path)
        hidden = (
            [Path(data_dir), Path(code_dir)]
            if path not in published.input_files or path in expected
            else [Path(code_dir)]
        )
        below = any(Path(path).is_relative_to(base) for base in hidden if str(base) not in {"", "."})
        if path == metadata or below or pure.name == TASK_FILE:
            folder.error(TASK_FILE, f"{path!r} would be given to the agent, and is for graders only")


def _dimensions(folder: TaskFolder, blocks: Sequence[object], mode: Mode) -> tuple[Dimension, ...]:
    found: list[Dimension] = []
    for block in blocks:
        try:
            found.append(
                Dimension.model_validate({name: getattr(block, name) for name in ("name", "weight", "description")})
            )
        except ValidationError as error:
            folder.error(TASK_FILE, f"grading.dimensions: {error.errors()[0]['msg']}")
    if not blocks:
        default = [item for item in DEFAULT_WEIGHTS if mode is Mode.FULL or item.kind is not Kind.DATA]
        total = sum(item.weight for item in default)
        folder.note(TASK_FILE, "it has no rubric: the weights of the paper are used", Severity.INFO)
        return tuple(item.evolve(weight=item.weight / total) for item in default)
    metrics = [dimension.metric for dimension in found]
    double = sorted({name for name in metrics if metrics.count(name) > 1})
    if double:
        folder.error(TASK_FILE, f"grading.dimensions: more than one is about {double[0]}")
    total = sum(dimension.weight for dimension in found)
    if found and abs(total - 1) > _WEIGHT_SLACK:
        if total <= 0:
            folder.error(TASK_FILE, "grading.dimensions: all weights are 0")
            return ()
        folder.note(TASK_FILE, f"grading.dimensions: the weights add up to {total:.6g}, and were scaled to 1")
        found = [dimension.evolve(weight=dimension.weight / total) for dimension in found]
    return tuple(found)
