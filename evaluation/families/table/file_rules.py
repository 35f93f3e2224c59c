"""How each expected table of a published task is compared: its truth, tolerances, columns, keys and weight.

A tolerance is taken from where it is told first: the table's own in `task.yaml`; the table's in the words of the text
for graders, unless `task.yaml` has a relative one for all; that one; the rubric's words; the text's; the default.
Non-goal: comparing (`compare.py`).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from evaluation.families.table.alignment import match_columns
from evaluation.families.table.csvfile import CsvTable, TableError, is_missing, read_table
from evaluation.families.table.folder import TASK_FILE, TaskFolder
from evaluation.families.table.published import PublishedTableTask
from evaluation.families.table.records import Dimension, Expected, FileRule, Kind, Tolerance
from evaluation.families.table.tolerances import DEFAULT, tolerance_about, tolerance_in_words

__all__ = ["file_rules"]

_TABLES: Final = ".csv"


def file_rules(
    folder: TaskFolder,
    published: PublishedTableTask,
    expected: Expected,
    dimensions: tuple[Dimension, ...],
    metadata: str,
) -> tuple[FileRule, ...]:
    """The rule of each expected table; what is wrong with one goes to the folder's problems.

    Args:
        folder: of the task.
        published: its `task.yaml`.
        expected: what a submission has to hold.
        dimensions: of the rubric; that of the data may state tolerances in words.
        metadata: path of the text for graders, which may state them too.
    """
    about = next((item.description for item in dimensions if item.kind is Kind.DATA), "")
    words = (folder.root / metadata).read_text(encoding="utf-8", errors="replace")
    instruction = (folder.root / published.instruction_file).read_text(encoding="utf-8", errors="replace")
    comparison = published.comparison
    for path in sorted(set(comparison.files) - set(expected.data) if expected.data else ()):
        folder.error(TASK_FILE, f"comparison.files: {path!r} is no expected table")
    general = _configured(comparison.tolerance, comparison.absolute_tolerance)
    general = general or tolerance_in_words(about, "rubric") or tolerance_in_words(words, metadata) or DEFAULT
    rules = []
    for path in expected.data:
        if not path.lower().endswith(_TABLES):
            folder.note(path, "is no CSV: that it is there is graded, its content is not")
            continue
        truth = _truth_path(folder, path, published.ground_truth_data_dir)
        table = _truth(folder, truth) if truth else None
        if truth is None or table is None:
            continue
        if truth in published.input_files:
            folder.error(TASK_FILE, f"input_files: {truth!r} would be given to the agent, and is the truth of {path}")
        block = comparison.files.get(path)
        own = _configured(block.tolerance, block.absolute_tolerance or comparison.absolute_tolerance) if block else None
        in_words = None if comparison.tolerance is not None else tolerance_about(path, words, metadata)
        tolerance = own or in_words or general
        columns = {
            name: Tolerance(relative=value, source=TASK_FILE)
            for name, value in (block.columns if block else {}).items()
        }
        keys = tuple(block.keys) if block and block.keys is not None else None
        _known_columns(folder, path, table, (*columns, *(keys or ())))
        _declared_columns(folder, path, table, instruction)
        rules.append(
            FileRule(
                path=path, truth=truth, tolerance=tolerance, columns=columns, keys=keys,
                alignment=block.alignment if block else "key", trend=block.trend if block else True,
                weight=block.weight if block else 1.0,
            )
        )  # fmt: skip
    graded = [item.name for item in dimensions if item.kind is Kind.DATA]
    if graded and not rules and not folder.failed():
        folder.error(TASK_FILE, f"grading.dimensions: {graded[0]!r} grades data, and no table with truth is expected")
    return tuple(rules)


def _configured(relative: float | None, absolute: float | None) -> Tolerance | None:
    if relative is None and absolute is None:
        return None
    return Tolerance(relative=relative or 0.0, absolute=absolute, source=TASK_FILE)


def _truth_path(folder: TaskFolder, path: str, data_dir: str) -> str | None:
    """The truth of an expected table: the same path, or its name (or path below `data/`) in the truth's directory."""
    below = PurePosixPath(path)
    shorter = PurePosixPath(*below.parts[1:]) if len(below.parts) > 1 else below
    candidates = dict.fromkeys(str(PurePosixPath(data_dir) / part) for part in (shorter, below, below.name))
    own = [path] if below.is_relative_to(data_dir) else []
    for candidate in [*own, *candidates]:
        if (folder.root / candidate).is_file():
            return candidate if folder.inside(candidate, "truth") else None
    folder.error(next(iter(candidates)), f"there is no truth for the expected table {path}")
    return None


def _truth(folder: TaskFolder, path: str) -> CsvTable | None:
    try:
        table = read_table(folder.root / path, strict=True)
    except TableError as error:
        folder.error(path, str(error))
        return None
    if all(is_missing(cell) for row in table.rows for cell in row):
        folder.error(path, "it holds no value")
        return None
    return table


def _known_columns(folder: TaskFolder, path: str, table: CsvTable, names: Sequence[str]) -> None:
    for name in names:
        if name not in table.columns:
            folder.error(TASK_FILE, f"comparison.files.{path}: column {name!r} is not among {', '.join(table.columns)}")


def _declared_columns(folder: TaskFolder, path: str, table: CsvTable, instruction: str) -> None:
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
        folder.error(
            path, f"its columns are {', '.join(table.columns)}; the instruction asks for {', '.join(asked)}"
        )  # fmt: skip
