"""PRBench's public task directories become typed tasks; what is wrong with one is said file by file, the others go on.

A directory is read, never executed and never written to. Every path of a `task.yaml` has to stay inside its task: an
absolute one, `..`, or a link that leads out is an error of that task.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Final

import yaml
from pydantic import ValidationError

from evaluation.families.table.alignment import match_columns
from evaluation.families.table.csvfile import CsvTable, TableError, is_missing, read_table
from evaluation.families.table.published import OutputsBlock, PublishedTableTask, unknown_fields
from evaluation.families.table.records import (
    DEFAULT_WEIGHTS,
    Container,
    Dimension,
    Expected,
    FileRule,
    Kind,
    Mode,
    TableTask,
    Tolerance,
)
from evaluation.families.table.tolerances import DEFAULT, tolerance_about, tolerance_in_words
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import Problem, Severity

__all__ = ["MOST_FILE", "TASK_FILE", "load_table_task", "read_table_tasks", "task_directories"]

TASK_FILE: Final = "task.yaml"
CODE_ONLY_SUFFIX: Final = ".code-only"
_COMPONENT: Final = "formats.prbench"
_MOST_BYTES: Final = 1 << 20
"""Of `task.yaml`; the published ones have 5 kB."""
MOST_FILE: Final = 64 << 20
"""Bytes of a file that a task names; an import copies none that is larger."""
_PYTHON: Final = re.compile(r"python:(\d+\.\d+)")
_LAYOUTS: Final = ("", "tasks", "data/tasks")
"""Where tasks lie below the directory that a user names: the tasks themselves, an import, a checkout."""
_TABLES: Final = ".csv"
_WEIGHT_SLACK: Final = 1e-6


class _Reader:
    """Reads one task and collects what is wrong with it."""

    def __init__(self, root: Path, name: str) -> None:
        self.root, self.name = root, name
        self.problems: list[Problem] = []

    def error(self, where: str, message: str) -> None:
        self._add(where, message, Severity.ERROR)

    def note(self, where: str, message: str, severity: Severity = Severity.WARNING) -> None:
        self._add(where, message, severity)

    def _add(self, where: str, message: str, severity: Severity) -> None:
        place = f"{self.name}/{where}" if self.name else where
        self.problems.append(Problem(component=_COMPONENT, where=place, message=message, severity=severity))

    @property
    def failed(self) -> bool:
        return any(problem.severity is Severity.ERROR for problem in self.problems)

    # --- paths

    def inside(self, path: str, what: str) -> bool:
        """Is it a relative path that stays inside of the task?"""
        pure = PurePosixPath(path)
        if not path.strip() or pure.is_absolute() or ".." in pure.parts or "\\" in path or "\0" in path:
            self.error(TASK_FILE, f"{what}: the path {path!r} does not stay inside of the task's directory")
            return False
        target = self.root / path
        if not target.resolve().is_relative_to(self.root.resolve()):
            self.error(path, f"{what}: is a link that leads out of the task's directory")
            return False
        return True

    def file(self, path: str, what: str) -> bool:
        """Is it a file of the task?"""
        if not self.inside(path, what):
            return False
        if not (self.root / path).is_file():
            self.error(path, f"{what}: there is no such file")
            return False
        if (self.root / path).stat().st_size > MOST_FILE:
            self.error(path, f"{what}: is larger than {MOST_FILE >> 20} MB")
            return False
        return True

    def text(self, path: str, what: str) -> bool:
        """Is it a file of the task with text in UTF-8?"""
        if not self.file(path, what):
            return False
        try:
            (self.root / path).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            self.error(path, f"{what}: is no UTF-8 text (byte {error.start})")
            return False
        return True


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
        reader = _Reader(path, path.name)
        for mode in modes:
            task = _read(reader, mode)
            if task is not None and task.id in tasks:
                reader.error(TASK_FILE, f"task_id {task.published_id!r} is that of {tasks[task.id].root.name} already")
                task = None
            if task is not None:
                tasks[task.id] = task
        problems += dict.fromkeys(reader.problems)
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
    reader = _Reader(directory, "")
    task = _read(reader, mode)
    if task is not None:
        return task, reader.problems
    errors = [problem for problem in reader.problems if problem.severity is Severity.ERROR]
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    raise ExpbenchError(
        FailureKind.RECORD_INVALID, f"{directory}/{errors[0].where}", f"{errors[0].message}{more}",
        consequence="The task cannot be used", next_step="Correct it, or name another task's directory",
    )  # fmt: skip


# --- one task --------------------------------------------------------------------------------------------------------


def _read(reader: _Reader, mode: Mode) -> TableTask | None:
    published = _yaml(reader)
    if published is None:
        return None
    if mode is Mode.CODE_ONLY and published.code_only is None:
        reader.note(TASK_FILE, "it has no code-only mode", Severity.INFO)
        return None
    for name in unknown_fields(published):
        reader.note(TASK_FILE, f"field {name!r} is not known and was not used", Severity.INFO)
    slug = _slug(reader, published.task_id)
    metadata = published.evaluation_file or published.metadata_file
    for path, what in ((published.instruction_file, "instruction_file"), (metadata, "metadata_file")):
        reader.text(path, what)
    paper = published.paper.paper_file
    (reader.text if paper.lower().endswith((".md", ".txt")) else reader.file)(paper, "paper.paper_file")
    for path in published.input_files:
        reader.file(path, "input_files")
    data_dir = published.ground_truth_data_dir
    code_dir = published.ground_truth_code_dir or (
        "reproduce" if (reader.root / "reproduce").is_dir() else "reproduction"
    )
    for path, what in ((data_dir, "ground_truth_data_dir"), (code_dir, "ground_truth_code_dir")):
        reader.inside(path, what)
    only = published.code_only if mode is Mode.CODE_ONLY else None
    expected = _expected(reader, only.expected_outputs if only else published.expected_outputs, mode)
    _no_answers_given(reader, published, metadata, data_dir, code_dir)
    grading = only.grading if only else published.grading
    dimensions = _dimensions(reader, grading.dimensions, mode)
    if any(problem.severity is Severity.ERROR for problem in reader.problems):
        return None
    files = _files(reader, published, expected, dimensions, metadata)
    if reader.failed:
        return None
    docker = published.docker
    python = _PYTHON.search(docker.image)
    if python is None:
        reader.note(TASK_FILE, f"image {docker.image!r} is not used: the sandbox has a Python base of its own")
    return TableTask(
        id=slug + (CODE_ONLY_SUFFIX if only else ""), published_id=published.task_id, mode=mode, root=reader.root,
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


def _yaml(reader: _Reader) -> PublishedTableTask | None:
    path = reader.root / TASK_FILE
    try:
        if not path.resolve().is_relative_to(reader.root.resolve()):
            reader.error(TASK_FILE, "is a link that leads out of the task's directory")
            return None
        if path.stat().st_size > _MOST_BYTES:
            reader.error(TASK_FILE, f"is larger than {_MOST_BYTES} bytes")
            return None
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)  # noqa: S506 - text, lists, mappings
        if not isinstance(data, dict):
            reader.error(TASK_FILE, "document: holds no fields (`task_id: ...`)")
            return None
        return PublishedTableTask.model_validate(data)
    except FileNotFoundError:
        reader.error(TASK_FILE, "there is none")
    except UnicodeDecodeError as error:
        reader.error(TASK_FILE, f"is no UTF-8 text (byte {error.start})")
    except yaml.YAMLError as error:
        reader.error(TASK_FILE, f"is no YAML: {' '.join(str(error).split())}")
    except RecursionError:
        reader.error(TASK_FILE, "is nested too deeply")
    except ValidationError as error:
        for item in error.errors(include_input=False, include_url=False)[:5]:
            reader.error(TASK_FILE, f"{'.'.join(map(str, item['loc'])) or 'document'}: {item['msg']}")
    return None


def _slug(reader: _Reader, published: str) -> str:
    slug = re.sub(r"[^a-z0-9._-]+", "-", published.strip().lower()).strip("-._")[:140]
    if not slug:
        reader.error(TASK_FILE, f"task_id {published!r} has no letter and no digit")
    elif slug != published:
        reader.note(TASK_FILE, f"task_id {published!r} is written {slug!r} here", Severity.INFO)
    if reader.name and published != reader.name:
        reader.note(TASK_FILE, f"task_id {published!r} is not the name of its directory", Severity.INFO)
    return slug or "task"


def _expected(reader: _Reader, outputs: OutputsBlock, mode: Mode) -> Expected:
    for what in ("analysis", "code", "data"):
        for path in getattr(outputs, what):
            pure = PurePosixPath(path)
            if not path.strip() or pure.is_absolute() or ".." in pure.parts or "\\" in path or ".git" in pure.parts:
                reader.error(
                    TASK_FILE, f"expected_outputs.{what}: the path {path!r} does not stay inside of the workspace"
                )
    every = [*outputs.analysis, *outputs.code, *outputs.data]
    double = sorted({path for path in every if every.count(path) > 1})
    if double:
        reader.error(TASK_FILE, f"expected_outputs: {double[0]!r} is there more than once")
    if not every:
        reader.error(TASK_FILE, "expected_outputs: nothing is expected, so nothing can be graded")
    data = tuple(outputs.data) if mode is Mode.FULL else ()
    if mode is Mode.CODE_ONLY and outputs.data:
        reader.note(TASK_FILE, "code_only.expected_outputs.data is not used: code-only mode has no tables")
    return Expected(analysis=tuple(outputs.analysis), code=tuple(outputs.code), data=data)


def _no_answers_given(
    reader: _Reader, published: PublishedTableTask, metadata: str, data_dir: str, code_dir: str
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
            reader.error(TASK_FILE, f"{path!r} would be given to the agent, and is for graders only")


def _dimensions(reader: _Reader, blocks: Sequence[object], mode: Mode) -> tuple[Dimension, ...]:
    found: list[Dimension] = []
    for block in blocks:
        try:
            found.append(
                Dimension.model_validate({name: getattr(block, name) for name in ("name", "weight", "description")})
            )
        except ValidationError as error:
            reader.error(TASK_FILE, f"grading.dimensions: {error.errors()[0]['msg']}")
    if not blocks:
        default = [item for item in DEFAULT_WEIGHTS if mode is Mode.FULL or item.kind is not Kind.DATA]
        total = sum(item.weight for item in default)
        reader.note(TASK_FILE, "it has no rubric: the weights of the paper are used", Severity.INFO)
        return tuple(item.evolve(weight=item.weight / total) for item in default)
    metrics = [dimension.metric for dimension in found]
    double = sorted({name for name in metrics if metrics.count(name) > 1})
    if double:
        reader.error(TASK_FILE, f"grading.dimensions: more than one is about {double[0]}")
    total = sum(dimension.weight for dimension in found)
    if found and abs(total - 1) > _WEIGHT_SLACK:
        if total <= 0:
            reader.error(TASK_FILE, "grading.dimensions: all weights are 0")
            return ()
        reader.note(TASK_FILE, f"grading.dimensions: the weights add up to {total:.6g}, and were scaled to 1")
        found = [dimension.evolve(weight=dimension.weight / total) for dimension in found]
    return tuple(found)


# --- tables ----------------------------------------------------------------------------------------------------------


def _files(
    reader: _Reader, published: PublishedTableTask, expected: Expected, dimensions: tuple[Dimension, ...], metadata: str
) -> tuple[FileRule, ...]:
    about = next((item.description for item in dimensions if item.kind is Kind.DATA), "")
    words = (reader.root / metadata).read_text(encoding="utf-8", errors="replace")
    instruction = (reader.root / published.instruction_file).read_text(encoding="utf-8", errors="replace")
    comparison = published.comparison
    for path in sorted(set(comparison.files) - set(expected.data) if expected.data else ()):
        reader.error(TASK_FILE, f"comparison.files: {path!r} is no expected table")
    general = _configured(comparison.tolerance, comparison.absolute_tolerance)
    general = general or tolerance_in_words(about, "rubric") or tolerance_in_words(words, metadata) or DEFAULT
    rules = []
    for path in expected.data:
        if not path.lower().endswith(_TABLES):
            reader.note(path, "is no CSV: that it is there is graded, its content is not")
            continue
        truth = _truth_path(reader, path, published.ground_truth_data_dir)
        table = _truth(reader, truth) if truth else None
        if truth is None or table is None:
            continue
        if truth in published.input_files:
            reader.error(TASK_FILE, f"input_files: {truth!r} would be given to the agent, and is the truth of {path}")
        block = comparison.files.get(path)
        own = _configured(block.tolerance, block.absolute_tolerance or comparison.absolute_tolerance) if block else None
        in_words = None if comparison.tolerance is not None else tolerance_about(path, words, metadata)
        tolerance = own or in_words or general
        columns = {
            name: Tolerance(relative=value, source=TASK_FILE)
            for name, value in (block.columns if block else {}).items()
        }
        keys = tuple(block.keys) if block and block.keys is not None else None
        _known_columns(reader, path, table, (*columns, *(keys or ())))
        _declared_columns(reader, path, table, instruction)
        rules.append(
            FileRule(
                path=path, truth=truth, tolerance=tolerance, columns=columns, keys=keys,
                alignment=block.alignment if block else "key", trend=block.trend if block else True,
                weight=block.weight if block else 1.0,
            )
        )  # fmt: skip
    graded = [item.name for item in dimensions if item.kind is Kind.DATA]
    if graded and not rules and not reader.failed:
        reader.error(TASK_FILE, f"grading.dimensions: {graded[0]!r} grades data, and no table with truth is expected")
    return tuple(rules)


def _configured(relative: float | None, absolute: float | None) -> Tolerance | None:
    if relative is None and absolute is None:
        return None
    return Tolerance(relative=relative or 0.0, absolute=absolute, source=TASK_FILE)


def _truth_path(reader: _Reader, path: str, data_dir: str) -> str | None:
    """The truth of an expected table: the same path, or its name (or path below `data/`) in the truth's directory."""
    below = PurePosixPath(path)
    shorter = PurePosixPath(*below.parts[1:]) if len(below.parts) > 1 else below
    candidates = dict.fromkeys(str(PurePosixPath(data_dir) / part) for part in (shorter, below, below.name))
    own = [path] if below.is_relative_to(data_dir) else []
    for candidate in [*own, *candidates]:
        if (reader.root / candidate).is_file():
            return candidate if reader.inside(candidate, "truth") else None
    reader.error(next(iter(candidates)), f"there is no truth for the expected table {path}")
    return None


def _truth(reader: _Reader, path: str) -> CsvTable | None:
    try:
        table = read_table(reader.root / path, strict=True)
    except TableError as error:
        reader.error(path, str(error))
        return None
    if all(is_missing(cell) for row in table.rows for cell in row):
        reader.error(path, "it holds no value")
        return None
    return table


def _known_columns(reader: _Reader, path: str, table: CsvTable, names: Sequence[str]) -> None:
    for name in names:
        if name not in table.columns:
            reader.error(TASK_FILE, f"comparison.files.{path}: column {name!r} is not among {', '.join(table.columns)}")


def _declared_columns(reader: _Reader, path: str, table: CsvTable, instruction: str) -> None:
    """The columns that the instruction asks for are those of the truth; otherwise no agent can be right."""
    section = re.search(
        rf"\*\*File\*\*:\s*`{re.escape(path)}`(?P<text>.*?)(?=\*\*File\*\*:|\Z)", instruction, re.DOTALL | re.IGNORECASE
    )
    match = re.search(r"\*\*Columns\*\*:\s*`(?P<columns>[^`\n]+)`", section["text"], re.IGNORECASE) if section else None
    if not match:
        return
    asked = [cell.strip() for cell in next(csv.reader([match["columns"]], skipinitialspace=True))]
    missing = [name for name in table.columns if name not in match_columns(table.columns, asked)]
    more = [name for name in asked if name not in match_columns(asked, table.columns)]
    if missing or more:
        reader.error(
            path, f"its columns are {', '.join(table.columns)}; the instruction asks for {', '.join(asked)}"
        )  # fmt: skip
