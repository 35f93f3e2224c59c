"""`expbench import prbench`: PRBench's public task directories."""

from __future__ import annotations

from pathlib import Path

from evaluation.families.table.imported import import_tables
from flows.importers import ImportOptions, ImportOutcome
from pipeline.schema import Severity

__all__ = ["run"]


def run(directory: Path, out: Path, options: ImportOptions) -> ImportOutcome:
    """Import what can be read; each error names its file, and the other tasks are imported all the same.

    Raises:
        ExpbenchError: `RECORD_INVALID`: it is no such data; `WORKSPACE_CONFLICT`: `out` is something else.
    """
    head = import_tables(directory, out)
    errors = tuple(problem for problem in head.problems if problem.severity is Severity.ERROR)
    others = [problem for problem in head.problems if problem.severity is Severity.WARNING]
    return ImportOutcome(
        tasks=len(head.tasks),
        value={
            "directory": str(out),
            "directories": head.directories,
            "tasks": len(head.tasks),
            "tables": sum(task.tables for task in head.tasks),
            "code_only": sum(task.code_only for task in head.tasks),
            "errors": len(errors),
        },
        details={
            "ids": [task.id for task in head.tasks],
            "problems": [problem.model_dump(mode="json") for problem in head.problems],
        },
        errors=errors,
        notes=tuple(f"  {problem.where}: {problem.message}" for problem in others),
    )
