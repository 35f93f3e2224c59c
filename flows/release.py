"""`expbench release`: accepted tasks of a workspace become a data set."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from flows.review import content_digest
from masking.edits import recipe_of
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import exclusive_lock
from pipeline.formats.huggingface import MaskRecipe, write_dataset
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
        withheld = {task.id: reason for task in tasks if (reason := _why_not(workspace, task)) is not None}
        chosen = [task for task in tasks if task.id not in withheld]
        if not chosen:
            candidates = sum(task.status is Status.MASKED for task in tasks)
            raise ExpbenchError(
                FailureKind.NOTHING_TO_RELEASE,
                str(workspace.root),
                f"no task is approved ({candidates} release candidate(s) of {len(tasks)} task(s))",
                consequence="Nothing was written" + "".join(f"; {task}: {why}" for task, why in _changed(withheld)),
                next_step="Review the candidates, or pass --accept-all to approve them by that rule"
                if candidates
                else "Look at index.html for the reason of each task",
            )
        directory = (out or workspace.root / "release").resolve()
        info = workspace.info()
        recipes = {task.id: recipe for task in chosen if (recipe := _recipe(workspace, task)) is not None}
        configs = write_dataset(directory, chosen, workspace=workspace, name=name or info.paper_id, recipes=recipes)
        for task in chosen:
            if task.status is not Status.RELEASED:
                workspace.save_task(task.evolve(status=Status.RELEASED))
    return ReleaseResult(
        directory=directory, tasks=len(chosen), configs=configs, withheld=tuple(sorted(withheld.items()))
    )


def _recipe(workspace: Workspace, task: Task) -> MaskRecipe | None:
    """How the masked repository is made again by those who may not be given it."""
    found = recipe_of(workspace.root / "repository", workspace.masked_repository(task.id), task.masked)
    if found is None:
        return None
    return MaskRecipe(commit=found.commit, edits=tuple(edit.model_dump() for edit in found.edits))


def _why_not(workspace: Workspace, task: Task) -> str | None:
    """Why a task is not released; None for one that is: approved, and still what was approved.

    Files of a workspace can be edited. An approval holds for the content that was approved (`Review.after`); reviews
    that were written before contents were recorded hold for any.
    """
    if task.status not in {Status.APPROVED, Status.RELEASED}:
        return task.status.value
    approvals = [review for review in task.reviews if review.decision in {"approve", "edit"}]
    recorded = {review.after for review in approvals if review.after is not None}
    if recorded and content_digest(task) not in recorded:
        return "changed after its approval: review it again"
    if not workspace.masked_repository(task.id).is_dir():
        return "its masked repository is missing"
    return None


def _changed(withheld: dict[str, str]) -> list[tuple[str, str]]:
    """What is withheld for another reason than its status."""
    states = {status.value for status in Status}
    return [(task, why) for task, why in sorted(withheld.items()) if why not in states]


def _accepted(workspace: Workspace, task: Task) -> Task:
    if task.status is not Status.MASKED:
        return task
    content = content_digest(task)
    review = Review(
        reviewer="rule: --accept-all",
        decision="approve",
        comment="approved without a person's review",
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        before=content,
        after=content,
    )
    approved = task.evolve(status=Status.APPROVED, reviews=(*task.reviews, review))
    workspace.save_task(approved)
    return approved
