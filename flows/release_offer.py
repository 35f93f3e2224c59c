"""What is offered to a release: accepted tasks of workspaces, and tasks of the benchmarks that are made of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from evaluation.exports.families.forms import family_parts, is_family_source, shape_of
from evaluation.imported_release import is_imported_release
from flows.review import content_digest, read_policy, waits
from flows.review.decisions import votes_on
from masking.edits import recipe_of
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.formats.family_parts import PAPER_REDISTRIBUTABLE, FamilyPart, FamilyShape
from pipeline.formats.huggingface import MaskRecipe, Part
from pipeline.progress import Reporter
from pipeline.store import Workspace
from pipeline.task import Review, Status, Task

__all__ = ["Offer", "Offered", "family_offer", "offered_tasks", "released_part", "sources_of", "why_not"]

Offered = tuple[Task, Workspace]
"""A task, and the workspace that it lies in."""


class Offer(NamedTuple):
    """Tasks of the families that are made of files."""

    parts: tuple[FamilyPart, ...] = ()
    """Sorted by id."""
    unread: tuple[tuple[str, str], ...] = ()
    """(where, why) of what a source holds and cannot be read."""

    @property
    def shapes(self) -> tuple[FamilyShape, ...]:
        """Of the families of these tasks, sorted."""
        families = {part.public.family for part in self.parts}
        return tuple(shape_of(family) for family in sorted(families, key=lambda family: family.value))


def sources_of(paths: Sequence[Path]) -> tuple[list[Workspace], list[Path]]:
    """(workspaces, directories with tasks of other families).

    Raises:
        ExpbenchError: `RECORD_INVALID`: one is neither.
    """
    workspaces, families = [], []
    for path in paths:
        if is_imported_release(path):
            raise ExpbenchError(
                FailureKind.RECORD_INVALID, str(path), "is an import of a release, not what a release is made from",
                consequence="Nothing was written",
                next_step="Release the workspaces again, and for other families families/<family> of this directory",
            )  # fmt: skip
        workspace = Workspace(path)
        if not workspace.exists() and path.is_dir() and is_family_source(path):
            families.append(path)
        else:
            workspace.info()  # raises when it is none
            workspaces.append(workspace)
    return workspaces, families


def family_offer(
    directories: Sequence[Path], paper_licenses: Mapping[str, str], taken: Mapping[str, object], reporter: Reporter
) -> Offer:
    """The tasks of these directories.

    Args:
        directories: each with tasks of one family.
        paper_licenses: SPDX identifier by paper id; a paper of which none that allows a copy is stated is left out.
        taken: ids of the tasks that are offered beside them.
        reporter: progress.

    Raises:
        ExpbenchError: `WORKSPACE_CONFLICT`: an id is there twice; `RECORD_INVALID`: nothing can be read.
    """
    shared = frozenset(paper for paper, licence in paper_licenses.items() if licence in PAPER_REDISTRIBUTABLE)
    found: dict[str, tuple[FamilyPart, Path]] = {}
    unread = []
    for directory in directories:
        parts, problems = family_parts(directory, shared_papers=shared, reporter=reporter)
        unread += [(problem.where, problem.message) for problem in problems]
        for part in parts:
            if part.id in found or part.id in taken:
                other = found[part.id][1] if part.id in found else "a workspace"
                raise _twice(part.id, f"{other} and {directory}")
            found[part.id] = (part, directory)
    return Offer(tuple(found[task][0] for task in sorted(found)), tuple(unread))


def _twice(task: str, places: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.WORKSPACE_CONFLICT,
        task,
        f"is a task of both {places}",
        consequence="Nothing was written",
        next_step="Release one of the two",
    )


def offered_tasks(workspaces: Sequence[Workspace], accept_all: bool, *, keep: bool) -> dict[str, Offered]:
    """All tasks with their workspaces, sorted by id.

    Args:
        workspaces: at least one.
        accept_all: approve every release candidate by that rule.
        keep: save what is approved.

    Raises:
        ExpbenchError: `WORKSPACE_CONFLICT`: two workspaces have a task of one id.
    """
    offered: dict[str, Offered] = {}
    for workspace in workspaces:
        for found in workspace.tasks():
            task = _accepted(workspace, found, keep=keep) if accept_all else found
            if task.id in offered:
                raise _twice(task.id, f"{offered[task.id][1].root} and {workspace.root}")
            offered[task.id] = (task, workspace)
    return dict(sorted(offered.items()))


def _accepted(workspace: Workspace, task: Task, *, keep: bool) -> Task:
    """The task, approved by the rule when it is a release candidate; saved unless this is a dry run."""
    if task.status is not Status.MASKED or not task.method.strip():
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
    if keep:
        workspace.save_task(approved)
    return approved


def why_not(workspace: Workspace, task: Task) -> str | None:
    """Why a task is not released; None for one that is: approved, and still what was approved.

    Files of a workspace can be edited. An approval holds for the content that was approved (`Review.after`); reviews
    that were written before contents were recorded hold for any.
    """
    if task.status is Status.NOT_FOUND:
        return _no_script(workspace, task)
    if task.status not in {Status.APPROVED, Status.RELEASED}:
        return task.status.value
    approvals = [review for review in task.reviews if review.decision in {"approve", "edit"}]
    recorded = {review.after for review in approvals if review.after is not None}
    if recorded and content_digest(task) not in recorded:
        return "changed after its approval: review it again"
    if not workspace.masked_repository(task.id).is_dir():
        return "its masked repository is missing"
    return None


def _no_script(workspace: Workspace, task: Task) -> str:
    """A question without a script is never a task of a release, accepted or not: nothing could grade its answer."""
    if waits(task, read_policy(workspace).reviewers):
        return "not_found: no script answers it, which nobody has accepted yet"
    names = ", ".join(review.reviewer for review in votes_on(task).values() if review.decision != "reject")
    return f"not_found: no script answers it, accepted by {names}"


def released_part(task: Task, workspace: Workspace, *, images: bool) -> Part:
    """A task with what a release holds beside it; with `images`, pictures of its evidence."""
    pictures = sorted((workspace.task_dir(task.id) / "evidence").glob("*.png")) if images else []
    return Part(
        task=task if task.status is Status.RELEASED else task.evolve(status=Status.RELEASED),
        masked=workspace.masked_repository(task.id),
        recipe=_recipe(workspace, task),
        original=original if (original := workspace.root / "repository").is_dir() else None,
        images=tuple(pictures),
    )


def _recipe(workspace: Workspace, task: Task) -> MaskRecipe | None:
    """How the masked repository is made again by those who may not be given it."""
    found = recipe_of(workspace.root / "repository", workspace.masked_repository(task.id), task.masked)
    if found is None:
        return None
    return MaskRecipe(commit=found.commit, edits=tuple(edit.model_dump() for edit in found.edits))
