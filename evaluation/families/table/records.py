"""What a table task is: files, environment, expected outputs, rubric, and how its tables are compared (PRBench A).

Non-goals: reading `task.yaml` (`reading`), comparing (`compare`), grading (`grading`).
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from pipeline.schema import Record

__all__ = [
    "DEFAULT_RELATIVE", "DEFAULT_WEIGHTS", "Alignment", "Container", "Dimension", "Expected", "FileRule", "Kind",
    "Mode", "TableTask", "Tolerance", "kind_of",
]  # fmt: skip

Alignment = Literal["key", "position", "interpolate"]

DEFAULT_RELATIVE: Final = 0.05
"""Where neither configuration nor rubric says anything: what the one published task says of a deterministic method."""


class Mode(StrEnum):
    """What the agent is asked for."""

    FULL = "full"
    """Analysis, code and data."""
    CODE_ONLY = "code_only"
    """Analysis and code; nothing is run, there are no tables."""


class Kind(StrEnum):
    """What a dimension of a rubric is about, which decides how it is graded."""

    METHODOLOGY = "methodology_understanding"
    CODE = "code_correctness"
    DATA = "data_accuracy"
    COMPLETENESS = "completeness"
    QUALITY = "code_quality"
    OTHER = "other"


_WORDS: Final = (
    (Kind.METHODOLOGY, r"methodolog|analysis|understanding|comprehension"),
    (Kind.COMPLETENESS, r"complete|completion|deliverable|instruction_following"),
    (Kind.QUALITY, r"quality|style|readab"),
    (Kind.DATA, r"data|accuracy|numerical|result"),
    (Kind.CODE, r"code|implementation|algorithm"),
)
"""In this order: `code_completeness` is about completeness, `data_quality` about quality."""


def kind_of(name: str) -> Kind:
    """What a dimension is about, by its name."""
    lowered = re.sub(r"[\s-]+", "_", name.strip().lower())
    return next((kind for kind, words in _WORDS if re.search(words, lowered)), Kind.OTHER)


class Dimension(Record):
    """One dimension of the rubric."""

    name: str = Field(pattern=r"^[A-Za-z][\w .-]{0,79}$")
    weight: float = Field(ge=0, le=1)
    description: str = ""

    @property
    def kind(self) -> Kind:
        """What it is about."""
        return kind_of(self.name)

    @property
    def metric(self) -> str:
        """Its key among an episode's metrics: the kind's name, its own for what is of no kind."""
        if self.kind is not Kind.OTHER:
            return self.kind.value
        return re.sub(r"\W+", "_", self.name.strip().lower())


DEFAULT_WEIGHTS: Final = (
    Dimension(name=Kind.METHODOLOGY.value, weight=0.05),
    Dimension(name=Kind.CODE.value, weight=0.30),
    Dimension(name=Kind.DATA.value, weight=0.60),
    Dimension(name=Kind.COMPLETENESS.value, weight=0.05),
)
"""PRBench 4.1; for tasks without a rubric of their own."""


class Tolerance(Record):
    """How far a value may be off: `|x - t| <= relative * |t|`, or `<= absolute` where that is given."""

    relative: float = Field(ge=0)
    absolute: float | None = Field(default=None, ge=0)
    """None: only a truth of 0 has one, 1e-8 of the largest value of its column."""
    source: str = "default"
    """Where it comes from, e.g. `task.yaml` or the sentence of the rubric."""


class FileRule(Record):
    """How one table is compared."""

    path: str
    """As the agent has to name it, relative to the workspace."""
    truth: str
    """Its truth, relative to the task's directory."""
    tolerance: Tolerance
    columns: dict[str, Tolerance] = Field(default_factory=dict)
    """Columns with a tolerance of their own."""
    keys: tuple[str, ...] | None = None
    """Columns that say which row is which; None: inferred from the truth."""
    alignment: Alignment = "key"
    trend: bool = True
    """Does agreement in trend count?"""
    weight: float = Field(default=1.0, gt=0)
    """Among the files of the task."""


class Container(Record):
    """What the task asks of its sandbox (PRBench B.1)."""

    image: str = "python:3.11-slim"
    python: str = "3.11"
    memory_mb: int = Field(default=2048, gt=0)
    timeout_s: int = Field(default=3600, gt=0)
    packages: tuple[str, ...] = ()
    """Requirements, as the task names them."""


class Expected(Record):
    """Files that the agent has to hand in, relative to the workspace."""

    analysis: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    data: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """All of them, in order."""
        return (*self.analysis, *self.code, *self.data)


class TableTask(Record):
    """One task in one mode. Paths are relative to `root`."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,159}$")
    published_id: str
    mode: Mode
    root: Path
    title: str
    author: str = ""
    doi: str = ""
    year: int | None = None
    paper_file: str
    instruction_file: str
    metadata_file: str
    data_dir: str = "data"
    code_dir: str = "reproduction"
    input_files: tuple[str, ...] = ()
    expected: Expected
    container: Container = Container()
    dimensions: tuple[Dimension, ...] = Field(min_length=1)
    files: tuple[FileRule, ...] = ()
    """One per expected table; empty in code-only mode."""
    instruction_suffix: str = ""
    banned: tuple[str, ...] = ()
    """Libraries that `task.yaml` itself bans, beside those of the instruction."""

    @property
    def instruction(self) -> str:
        """What the agent is told, with the suffix of its mode."""
        text = self.read(self.instruction_file)
        return f"{text.rstrip()}\n\n{self.instruction_suffix.strip()}\n" if self.instruction_suffix.strip() else text

    @property
    def metadata(self) -> str:
        """The graders' reference text."""
        return self.read(self.metadata_file)

    def read(self, path: str) -> str:
        """Text of one of its files; empty when it is not there."""
        target = self.root / path
        return target.read_text(encoding="utf-8", errors="replace") if path and target.is_file() else ""

    def reference_code(self) -> dict[str, str]:
        """Base name -> text of the reference implementation's Python files, sorted."""
        directory = self.root / self.code_dir
        if not directory.is_dir():
            return {}
        found = sorted(path for path in directory.rglob("*.py") if path.is_file() and not path.is_symlink())
        return {path.name: path.read_text(encoding="utf-8", errors="replace") for path in found}
