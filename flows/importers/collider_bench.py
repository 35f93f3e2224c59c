"""`expbench import collider-bench`: the published Collider-Bench tasks."""

from __future__ import annotations

from pathlib import Path

from evaluation.families.histogram.importing import import_tasks
from flows.importers import ImportOptions, ImportOutcome

__all__ = ["run"]


def run(directory: Path, out: Path, options: ImportOptions) -> ImportOutcome:
    """Import published tasks; a task that cannot be read is left out, named and counted.

    Raises:
        ExpbenchError: `RECORD_INVALID`: there is no such directory; `WORKSPACE_CONFLICT`: `out` holds something else.
    """
    head, problems = import_tasks(directory, out, shape_variants=options.shape_variants)
    if head is None:
        return ImportOutcome(tasks=0, errors=tuple(problems))
    return ImportOutcome(
        tasks=len(head.tasks),
        value={
            "directory": str(out),
            "papers": len(head.papers),
            "tasks": len(head.tasks),
            "shape_variants": len(head.variants),
            "without_paper": len(head.without_paper),
            "errors": len(problems),
        },
        details={"ids": list(head.tasks)},
        errors=tuple(problems),
    )
