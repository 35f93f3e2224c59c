"""What the release asks of a family: its columns, and its tasks in two halves.

Non-goals: writing and reading tables (`pipeline.formats`), and the decision what is released (`flows.release`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from evaluation.families.registry import family_of_source, family_rules
from evaluation.task import EvaluationTask
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.formats.family_parts import FamilyPart, FamilyShape
from pipeline.progress import Reporter
from pipeline.schema import Problem
from pipeline.scratch import scratch_directory
from pipeline.task import Family

__all__ = ["family_parts", "is_family_source", "loaded_tasks", "shape_of"]

_MODULES: Final[dict[Family, str]] = {
    Family.HISTOGRAM: "evaluation.exports.families.histogram",
    Family.TABLE: "evaluation.exports.families.table",
    Family.CAUSAL: "evaluation.exports.families.causal",
}
"""Each holds `SHAPE` and `parts`."""
Parts = Callable[[Path, Sequence[EvaluationTask], frozenset[str]], list[FamilyPart]]
"""(source directory, its tasks, ids of the papers that may be given along) -> their halves."""


def is_family_source(directory: Path) -> bool:
    """Does it hold tasks of a family other than `experiment`? By names alone."""
    return family_of_source(directory) is not None


def shape_of(family: Family) -> FamilyShape:
    """The columns of a family.

    Raises:
        KeyError: the family has no files of its own (`experiment`).
    """
    shape: FamilyShape = import_module(_MODULES[family]).SHAPE
    return shape


def family_parts(
    directory: Path, *, shared_papers: frozenset[str], reporter: Reporter
) -> tuple[list[FamilyPart], list[Problem]]:
    """The tasks of a family's source directory in two halves, sorted by id; and what of it cannot be read.

    Args:
        directory: published tasks of a family, an import of them, or generated ones; only read.
        shared_papers: ids of the papers whose licence allows a copy; files of the others are withheld.
        reporter: progress.

    Raises:
        ExpbenchError: `RECORD_INVALID`: it holds no tasks of a family, or none that can be read.
    """
    rules = family_of_source(directory)
    if rules is None:
        raise ExpbenchError(
            FailureKind.RECORD_INVALID, str(directory), "it is no workspace, and holds no tasks of a known benchmark",
            consequence="Nothing was written",
            next_step="Name a workspace of `expbench curate`, or what `expbench import` or `generate` wrote",
        )  # fmt: skip
    with scratch_directory() as scratch:
        tasks, problems = rules.load(directory, scratch=Path(scratch), only=(), reporter=reporter, build=False)
        made: Any = import_module(_MODULES[rules.family])
        read: Parts = made.parts
        return read(directory, tasks, shared_papers), problems


def loaded_tasks(
    family: Family, directory: Path, *, scratch: Path, only: Collection[str], reporter: Reporter, build: bool
) -> tuple[list[EvaluationTask], list[Problem]]:
    """Tasks of a restored source directory, as the family itself loads them.

    Raises:
        ExpbenchError: `RECORD_INVALID`: it is no source of the family.
    """
    rules = family_rules(family)
    assert rules is not None, "the experiment family has rows, not files"
    return rules.load(directory, scratch=scratch, only=only, reporter=reporter, build=build)
