"""Published benchmarks that can be imported: one module a benchmark, found by its name.

A module holds `run(directory, out, options) -> ImportOutcome`. It reads everything that can be read, writes `out` when
a task came of it, and leaves printing and exit codes to the command.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Final

from pydantic import Field, JsonValue

from pipeline.schema import Problem, Record

__all__ = ["KINDS", "ImportOptions", "ImportOutcome", "importer", "likely_kind"]

_MODULES: Final[dict[str, str]] = {
    "collider-bench": "flows.importers.collider_bench",
    "exp-bench": "flows.importers.exp_bench",
    "prbench": "flows.importers.prbench",
    "release": "flows.importers.release",
}
KINDS: Final = tuple(_MODULES)
"""What `expbench import` takes, sorted."""


class ImportOptions(Record):
    """What a user may say beside source and target; an importer refuses what it does not know."""

    repositories: Path | None = None
    """EXP-Bench: file that names the commit of each paper's repository."""
    shape_variants: bool = False
    """Collider-Bench: a shape-only variant of each task of yields, too."""
    papers: Path | None = None
    """Release: directory with the papers that it may not hold."""


class ImportOutcome(Record):
    """What an import did."""

    tasks: int = Field(ge=0)
    """Tasks that were written; with 0 nothing was."""
    value: dict[str, JsonValue] = Field(default_factory=dict)
    """What the command prints; counts by name."""
    details: dict[str, JsonValue] = Field(default_factory=dict)
    """Only in the JSON."""
    errors: tuple[Problem, ...] = ()
    """One for each file or record that was left out."""
    notes: tuple[str, ...] = ()
    """Lines for a person, after the value."""


_SIGNS: Final[dict[str, tuple[str, ...]]] = {
    "release": ("expbench-release.json",),
    "exp-bench": ("*_complete_final.json", "*/*_complete_final.json", "*/*/*_complete_final.json"),
    "collider-bench": ("task.toml", "*/task.toml", "tasks/*/task.toml", "ColliderBench/tasks/*/task.toml"),
    "prbench": ("task.yaml", "*/task.yaml", "data/tasks/*/task.yaml"),
}
"""Files by which each benchmark's directory is told, the most telling first."""


def likely_kind(directory: Path) -> str | None:
    """The benchmark whose directory it looks like, by names of files alone; None: none of these."""
    signs = ((kind, sign) for kind, patterns in _SIGNS.items() for sign in patterns)
    return next((kind for kind, sign in signs if next(directory.glob(sign), None) is not None), None)


def importer(kind: str) -> Callable[[Path, Path, ImportOptions], ImportOutcome]:
    """The importer of a benchmark.

    Raises:
        KeyError: `kind` is none of `KINDS`.
    """
    run: Callable[[Path, Path, ImportOptions], ImportOutcome] = import_module(_MODULES[kind]).run
    return run
