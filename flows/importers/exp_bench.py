"""`expbench import exp-bench`: the published EXP-Bench data."""

from __future__ import annotations

from pathlib import Path

from flows.importers import ImportOptions, ImportOutcome
from pipeline.formats.expbench import read_known_repositories, read_published
from pipeline.formats.expbench_import import write_imported
from pipeline.schema import Severity

__all__ = ["run"]


def run(directory: Path, out: Path, options: ImportOptions) -> ImportOutcome:
    """Import published tasks; what departs from their form is kept, reported and counted.

    Raises:
        ExpbenchError: `RECORD_INVALID`: it is no such data, or the repositories' file cannot be read.
    """
    known = read_known_repositories(options.repositories) if options.repositories else {}
    dataset = read_published(directory, known)
    errors = tuple(problem for problem in dataset.problems if problem.severity is Severity.ERROR)
    if not dataset.tasks:
        return ImportOutcome(tasks=0, errors=errors)
    head = write_imported(dataset, out)
    return ImportOutcome(
        tasks=len(dataset.tasks),
        value={
            "directory": str(out),
            "papers": len(dataset.papers),
            "tasks": len(dataset.tasks),
            "not_found": sum(item.task.truth.not_found is not None for item in dataset.tasks),
            "with_commit": sum(set(item.task.repository.commit) != {"0"} for item in dataset.tasks),
            "errors": len(errors),
        },
        details={"quirks": dict(head.quirks)},
        errors=errors,
        notes=tuple(f"  {count} x {quirk}" for quirk, count in head.quirks.items()),
    )
