"""What a release holds of a task whose ground truth is files: a histogram, tables, a frozen world.

A task of the `experiment` family is one record (`pipeline.task.Task`). Those of the other families are directories in
the form in which their benchmarks publish them, and the release keeps every file of them, byte for byte, in two halves:
`files` of the public row, and `files` of the private one. Beside them, typed columns for people: a struct named after
the family in each half. Read back, the files are the source directory again, so that nothing is lost and no second
reader is needed.

Non-goals: what is public of a family's task (`evaluation.exports.families`), and the tables of all families
(`pipeline.formats.release_tables`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic import Field, JsonValue

from pipeline.schema import Record
from pipeline.task import Family, PublicTask

if TYPE_CHECKING:
    from datasets import Features

__all__ = [
    "PAPER_REDISTRIBUTABLE", "FamilyPart", "FamilyShape", "WithheldFile", "columns_of", "part_of", "private_columns",
    "public_columns", "significant_digits", "struct_of", "telling_runs", "write_files",
]  # fmt: skip

PAPER_REDISTRIBUTABLE: Final = frozenset({"CC-BY-4.0", "CC-BY-3.0", "CC-BY-SA-4.0", "CC0-1.0", "Apache-2.0", "MIT"})
"""Licences of a paper that allow a copy of it to be shared with nothing but notices kept (SPDX identifiers)."""

_TELLING: Final = 6
"""Significant digits in a run of numbers."""


class WithheldFile(Record):
    """A file of the public half that the release must not hold; whoever has it can put it back."""

    path: str
    sha256: str
    why: str


class FamilyPart(Record):
    """One task in its two halves."""

    public: PublicTask
    category: str = ""
    columns: dict[str, JsonValue] = Field(default_factory=dict)
    """Typed columns of the public half."""
    truth: dict[str, JsonValue] = Field(default_factory=dict)
    """Typed columns of the private half."""
    public_files: dict[str, bytes] = Field(default_factory=dict)
    """Content by path in the family's source directory."""
    private_files: dict[str, bytes] = Field(default_factory=dict)
    withheld: tuple[WithheldFile, ...] = ()
    paper_files: tuple[str, ...] = ()
    """Which of the public files are the paper: the agent is given it, so that what it states is no leak."""
    figures: dict[str, int | str] = Field(default_factory=dict)
    """What the card counts over the tasks of the family: numbers are spread, words are counted. Public."""
    sentences: tuple[tuple[str, str], ...] = ()
    """(field, text) of the ground truth that must not be in a public file; not stored."""
    runs: tuple[tuple[str, tuple[float, ...]], ...] = ()
    """(field, numbers) that must not stand one after the other in a public file; long enough that chance does not bring
    them together (`telling_runs`); not stored."""

    @property
    def id(self) -> str:
        """The task's id."""
        return self.public.id


class FamilyShape(NamedTuple):
    """How the rows of a family look: a struct is a mapping, a list is a list of one, a scalar is its Arrow name."""

    family: Family
    public: Mapping[str, Any]
    private: Mapping[str, Any]
    title: str
    """Of its section on the card."""
    about: str
    """On the card: what the agent gets, and what is asked."""
    chart: tuple[str, str]
    """(title, figure) of its bar chart: a number is drawn task by task, words are counted."""


def telling_runs(values: Sequence[float]) -> list[tuple[float, ...]]:
    """The shortest pieces of a sequence that are met in another text by copying, not by chance.

    A piece begins at each value and is as long as it takes to reach `_TELLING` significant digits: `46.48, 6.1, 1.78`
    tells, while `1, 2, 3` numbers the steps of any instruction.
    """
    runs = []
    for start in range(len(values)):
        digits = 0
        for end in range(start, len(values)):
            digits += significant_digits(values[end])
            if digits >= _TELLING:
                runs.append(tuple(values[start : end + 1]))
                break
    return runs


def significant_digits(value: float) -> int:
    """Of the shortest decimal that is the number: 3 of `46.5`, 1 of `200`, none of 0."""
    mantissa = repr(abs(float(value))).partition("e")[0]
    return len(mantissa.replace(".", "").strip("0"))


# --- columns


def columns_of(shape: Mapping[str, Any]) -> Features:
    """Typed features of a shape."""
    from datasets import Features

    return Features({name: _feature(item) for name, item in shape.items()})


def _feature(shape: Any) -> Any:
    from datasets import List, Value

    if isinstance(shape, str):
        return Value(shape)
    if isinstance(shape, list):
        return List(_feature(shape[0]))
    return {name: _feature(item) for name, item in shape.items()}


_FILES: Final = [{"path": "string", "data": "binary"}]
_WITHHELD: Final = [{"path": "string", "sha256": "string", "why": "string"}]


def public_columns(shapes: Sequence[FamilyShape]) -> dict[str, Any]:
    """Shape of the columns that these families add to every public row of a release; none for no family."""
    if not shapes:
        return {}
    added = {"category": "string", "files": _FILES, "withheld_files": _WITHHELD, "paper_files": ["string"]}
    return {**added, **{shape.family.value: dict(shape.public) for shape in shapes}}


def private_columns(shapes: Sequence[FamilyShape]) -> dict[str, Any]:
    """Shape of the columns that these families add to every private row of a release; none for no family."""
    return {"files": _FILES, **{shape.family.value: dict(shape.private) for shape in shapes}} if shapes else {}


def struct_of(part: FamilyPart, *, private: bool) -> dict[str, Any]:
    """The columns that a task adds to its row of one half."""
    family = part.public.family.value
    if private:
        return {"files": _rows(part.private_files), family: part.truth, "record": json.dumps({"family": family})}
    return {
        "category": part.category,
        "files": _rows(part.public_files),
        "withheld_files": [item.model_dump() for item in part.withheld],
        "paper_files": list(part.paper_files),
        family: part.columns,
    }


def _rows(files: Mapping[str, bytes]) -> list[dict[str, Any]]:
    return [{"path": path, "data": data} for path, data in sorted(files.items())]


# --- reading


def part_of(public: Mapping[str, Any], private: Mapping[str, Any] | None) -> FamilyPart:
    """A task again from its rows; without the private one it has no ground truth.

    Raises:
        pydantic.ValidationError, KeyError, TypeError, ValueError: they are not the rows of such a task.
    """
    task = PublicTask.model_validate_json(public["record"])
    family = task.family.value
    return FamilyPart(
        public=task,
        category=public["category"] or "",
        columns=public[family],
        truth={} if private is None else private[family],
        public_files=_files(public["files"]),
        private_files={} if private is None else _files(private["files"]),
        withheld=tuple(WithheldFile.model_validate(item) for item in public["withheld_files"]),
        paper_files=tuple(public["paper_files"]),
    )


def _files(rows: Sequence[Mapping[str, Any]]) -> dict[str, bytes]:
    files = {}
    for row in rows:
        path = PurePosixPath(row["path"])
        if path.is_absolute() or not path.parts or ".." in path.parts or "\0" in row["path"]:
            raise ValueError(f"the path {row['path']!r} leads out of the task's directory")
        files[row["path"]] = row["data"]
    return files


def write_files(parts: Sequence[FamilyPart], directory: Path, found: Mapping[str, bytes] | None = None) -> list[str]:
    """Write the source directory that tasks of one family were released from.

    Args:
        parts: of one family.
        directory: receives the files.
        found: content of withheld files by sha256.

    Returns:
        Ids of the tasks of which a withheld file is still missing.
    """
    given = found or {}
    missing = []
    for part in parts:
        files = {**part.public_files, **part.private_files}
        for item in part.withheld:
            data = given.get(item.sha256)
            if data is not None and hashlib.sha256(data).hexdigest() == item.sha256:
                files[item.path] = data
            else:
                missing.append(part.id)
        for name, data in sorted(files.items()):
            target = directory / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
    return sorted(set(missing))
