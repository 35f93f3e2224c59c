"""What was handed in, and what can be said of it without a reader: what is there, and what is the truth itself.

Whether an analysis understood the method, and whether a program is right, takes somebody who reads. Without one both
are unknown, and so is the quality of the code. Three things are known all the same: nothing was handed in; every file
is the ground truth's own, letter by letter; how much of what was asked for is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from evaluation.families.table.csvfile import TableError, parse_table
from evaluation.families.table.records import Kind, TableTask
from pipeline.schema import Record

__all__ = ["HandedIn", "read_directory", "solution", "unread_grade"]

_TOO_SHORT: Final = 40
"""Bytes below which a file holds nothing (a header line and a row of numbers have more)."""
_MOST_TEXT: Final = 4 << 20
_TEXTS: Final = (".py", ".ipynb", ".md", ".rst", ".txt", ".csv", ".tsv", ".jl", ".m", ".r", ".c", ".cc", ".cpp", ".f90",
                 ".sh", ".json", ".yaml", ".yml", ".toml", ".cfg", ".h", ".hpp", ".rs", ".f", ".java")  # fmt: skip


class HandedIn(Record):
    """Texts of what was handed in, by path."""

    texts: dict[str, str]

    def of(self, paths: Sequence[str]) -> dict[str, str]:
        """Those of these paths that are there."""
        return {path: self.texts[path] for path in paths if path in self.texts}

    @property
    def programs(self) -> dict[str, str]:
        """All programs in Python, notebooks included."""
        return {path: text for path, text in sorted(self.texts.items()) if path.endswith((".py", ".ipynb"))}


def read_directory(directory: Path) -> HandedIn:
    """The text files below a directory; links are not followed, and git's own files are none."""
    texts: dict[str, str] = {}
    for path in sorted(directory.rglob("*")):
        relative = path.relative_to(directory)
        if path.is_symlink() or not path.is_file() or ".git" in relative.parts:
            continue
        if any((directory / parent).is_symlink() for parent in relative.parents if parent.parts):
            continue
        if path.suffix.lower() in _TEXTS and path.stat().st_size <= _MOST_TEXT:
            texts[relative.as_posix()] = path.read_text(encoding="utf-8", errors="replace")
    return HandedIn(texts=texts)


def solution(task: TableTask) -> dict[str, str]:
    """Path in the workspace -> text, of everything that the truth and the reference have of what is expected."""
    files = {rule.path: task.read(rule.truth) for rule in task.files}
    files |= _analysis(task)
    return dict(sorted((files | _reference(task)).items()))


def _analysis(task: TableTask) -> dict[str, str]:
    return dict.fromkeys(task.expected.analysis, task.metadata)


def _reference(task: TableTask) -> dict[str, str]:
    homes = {Path(path).parent.as_posix() for path in task.expected.code} or {"reproduction"}
    files: dict[str, str] = {}
    for name, text in task.reference_code().items():
        wanted = [path for path in task.expected.code if Path(path).name == name]
        files |= dict.fromkeys(wanted or [f"{sorted(homes)[0]}/{name}"], text)
    return files


def unread_grade(kind: Kind, task: TableTask, handed_in: HandedIn) -> tuple[float | None, str]:
    """(score, why) of a dimension that is no table, as far as nobody has to read for it; None: unknown.

    Args:
        kind: any but `DATA`.
        task: its expectations and reference.
        handed_in: what there is.
    """
    if kind is Kind.COMPLETENESS:
        return _completeness(task, handed_in)
    if kind is Kind.METHODOLOGY:
        truth, what = _analysis(task), "analysis"
        there = handed_in.of(task.expected.analysis) if truth else _documents(handed_in)
    else:
        truth, what = _reference(task), "program"
        there = handed_in.of(task.expected.code) or handed_in.programs
    if not any(text.strip() for text in there.values()):
        return 0.0, f"there is no {what}"
    if truth and handed_in.of([*truth]) == truth:
        return 1.0, "it is the ground truth's own, letter by letter"
    return None, f"the {what} was read by nobody"


def _documents(handed_in: HandedIn) -> Mapping[str, str]:
    return {path: text for path, text in handed_in.texts.items() if path.endswith((".md", ".rst", ".txt"))}


def _completeness(task: TableTask, handed_in: HandedIn) -> tuple[float, str]:
    expected = task.expected.all
    good = [path for path in expected if path in handed_in.texts and not _trivial(path, handed_in.texts[path])]
    missing = [path for path in expected if path not in good]
    reason = f"{len(good)} of {len(expected)} expected file(s) are there and not trivial"
    return len(good) / len(expected), reason + (f" (not {', '.join(missing[:4])})" if missing else "")


def _trivial(path: str, text: str) -> bool:
    if path.endswith(".csv"):
        try:
            return not any(cell for row in parse_table(text).rows for cell in row)
        except TableError:
            return True
    return len(text.strip()) < _TOO_SHORT
