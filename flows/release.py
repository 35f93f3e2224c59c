"""`expbench release`: accepted tasks of a workspace become a data set."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import exclusive_lock
from pipeline.formats.huggingface import write_dataset
from pipeline.schema import Record
from pipeline.store import Workspace
from pipeline.task import Review, Status, Task

__all__ = ["ReleaseResult", "release"]


class ReleaseResult(Record):
    """What was written."""

    directory: Path
    tasks: int
    configs: tuple[str, ...]
    withheld: tuple[tuple[str, str], ...]
    """(task id, why it is not in the release)."""


def release(workspace: Workspace, *, out: Path | None, accept_all: bool, name: str | None) -> ReleaseResult:
    """Write the approved tasks to `out`; with `accept_all`, every release candidate is approved first.

    The approval is recorded in the task as made by the rule, not by a person.

    Raises:
        ExpbenchError: `NOTHING_TO_RELEASE` when no task is approved; `WORKSPACE_CONFLICT` when `out` holds other files.
    """
    with exclusive_lock(workspace.lock_path, str(workspace.root)):
        tasks = workspace.tasks()
        if accept_all:
            tasks = [_accepted(workspace, task) for task in tasks]
        chosen = [task for task in tasks if task.status in {Status.APPROVED, Status.RELEASED}]
        if not chosen:
            candidates = sum(task.status is Status.MASKED for task in tasks)
            raise ExpbenchError(
                FailureKind.NOTHING_TO_RELEASE,
                str(workspace.root),
                f"no task is approved ({candidates} release candidate(s) of {len(tasks)} task(s))",
                consequence="Nothing was written",
                next_step="Review the candidates, or pass --accept-all to approve them by that rule"
                if candidates
                else "Look at index.html for the reason of each task",
            )
        directory = (out or workspace.root / "release").resolve()
        info = workspace.info()
        configs = write_dataset(directory, chosen, workspace=workspace, name=name or info.paper_id)
        for task in chosen:
            if task.status is not Status.RELEASED:
                workspace.save_task(task.evolve(status=Status.RELEASED))
    released = {task.id for task in chosen}
    withheld = tuple((task.id, task.status.value) for task in tasks if task.id not in released)
    return ReleaseResult(directory=directory, tasks=len(chosen), configs=configs, withheld=withheld)


def _accepted(workspace: Workspace, task: Task) -> Task:
    if task.status is not Status.MASKED:
        return task
    review = Review(
        reviewer="rule: --accept-all",
        decision="approve",
        comment="approved without a person's review",
        at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    approved = task.evolve(status=Status.APPROVED, reviews=(*task.reviews, review))
    workspace.save_task(approved)
    return approved
