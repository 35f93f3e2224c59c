"""`expbench release`: accepted tasks of one or several workspaces become a versioned data set."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import Field

from flows.release_gate import check_public
from flows.review import content_digest
from masking.edits import recipe_of
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import exclusive_lock, replace_directory
from pipeline.formats.hub import PushReport, push
from pipeline.formats.huggingface import (
    MaskRecipe,
    Part,
    Release,
    ReleaseHead,
    is_release,
    read_head,
    read_release,
    write_dataset,
)
from pipeline.formats.release_log import Change, VersionEntry, compare, latest_decision, next_version, withdrawal_reason
from pipeline.schema import Record
from pipeline.store import Workspace
from pipeline.task import Review, Status, Task

__all__ = ["ReleaseOptions", "ReleaseResult", "release"]


class ReleaseOptions(Record):
    """How a release is made; the defaults give a split release whose ground truth is a part of its own."""

    layout: Literal["split", "open"] = "split"
    version: str | None = None
    """None: it follows from what changed."""
    license: str | None = None
    """SPDX identifier of the data set."""
    paper_licenses: dict[str, str] = Field(default_factory=dict)
    """By paper id."""
    images: bool = True
    """Pictures of the evidence in the private part."""
    push: str | None = None
    """Repository on the hub (`owner/name`) that gets the public part, or the open set."""
    push_private: str | None = None
    """Repository that gets the private part; made private, with access on request."""
    dry_run: bool = False
    """Say what would be written and uploaded; nothing is changed, here or there."""


class ReleaseResult(Record):
    """What was written (of a dry run: what would be)."""

    directory: Path
    tasks: int
    configs: tuple[str, ...]
    withheld: tuple[tuple[str, str], ...]
    """(task id, why it is not in the release)."""
    version: str
    layout: Literal["split", "open"]
    added: tuple[Change, ...] = ()
    repaired: tuple[Change, ...] = ()
    withdrawn: tuple[Change, ...] = ()
    pushes: tuple[PushReport, ...] = ()
    dry_run: bool = False


def release(
    workspace: Workspace | Sequence[Workspace],
    *,
    out: Path | None,
    accept_all: bool,
    name: str | None,
    options: ReleaseOptions | None = None,
) -> ReleaseResult:
    """Write the approved tasks to `out`; with `accept_all`, every release candidate is approved first.

    The approval is recorded in the task as made by the rule, not by a person. A release that lies in `out` is replaced
    as a whole, and its changelog goes on.

    Args:
        workspace: one, or several whose tasks become one data set.
        out: directory to write; None: `release` in the (first) workspace.
        accept_all: approve every release candidate by that rule.
        name: of the data set; None: as before, or the paper's id.
        options: how.

    Raises:
        ExpbenchError: `NOTHING_TO_RELEASE` when no task is approved; `WORKSPACE_CONFLICT` when `out` holds other files
            or two workspaces have a task of the same id; `LEAK_FOUND` when the public part states an answer; `USAGE`
            for a version that is none or not a later one.
    """
    how = options or ReleaseOptions()
    if how.layout == "open" and how.push_private is not None:
        raise ExpbenchError(
            FailureKind.USAGE,
            f"--push-private {how.push_private}",
            "an open set has no private part",
            consequence="Nothing was written",
            next_step="Leave it out, or release with --layout split",
        )
    workspaces = [workspace] if isinstance(workspace, Workspace) else list(workspace)
    with ExitStack() as locks:
        for item in workspaces:
            locks.enter_context(exclusive_lock(item.lock_path, str(item.root)))
        offered = _offered(workspaces, accept_all, keep=not how.dry_run)
        withheld = {task.id: why for task, place in offered.values() if (why := _why_not(place, task)) is not None}
        chosen = {task_id: pair for task_id, pair in offered.items() if task_id not in withheld}
        if not chosen:
            raise _nothing(workspaces, [task for task, _ in offered.values()], withheld)
        directory = (out or workspaces[0].root / "release").resolve()
        made, result = _made(directory, chosen, offered, withheld, name or _name(directory, workspaces), how)
        if how.dry_run:
            with tempfile.TemporaryDirectory(prefix="expbench-release-") as scratch:
                configs = _write_checked(Path(scratch), made)
                return result.evolve(configs=configs, pushes=_pushed(Path(scratch), how))
        with replace_directory(directory) as fresh:
            configs = _write_checked(fresh, made)
        for task, place in chosen.values():
            if task.status is not Status.RELEASED:
                place.save_task(task.evolve(status=Status.RELEASED))
    return result.evolve(configs=configs, pushes=_pushed(directory, how))


def _offered(workspaces: Sequence[Workspace], accept_all: bool, *, keep: bool) -> dict[str, tuple[Task, Workspace]]:
    """All tasks with their workspaces, sorted by id."""
    offered: dict[str, tuple[Task, Workspace]] = {}
    for workspace in workspaces:
        for found in workspace.tasks():
            task = _accepted(workspace, found, keep=keep) if accept_all else found
            if task.id in offered:
                raise ExpbenchError(
                    FailureKind.WORKSPACE_CONFLICT,
                    task.id,
                    f"is a task of both {offered[task.id][1].root} and {workspace.root}",
                    consequence="Nothing was written",
                    next_step="Release one of the two workspaces",
                )
            offered[task.id] = (task, workspace)
    return dict(sorted(offered.items()))


def _name(directory: Path, workspaces: Sequence[Workspace]) -> str:
    if is_release(directory):
        return read_head(directory).name
    return workspaces[0].info().paper_id if len(workspaces) == 1 else directory.name


def _made(
    directory: Path,
    chosen: Mapping[str, tuple[Task, Workspace]],
    offered: Mapping[str, tuple[Task, Workspace]],
    withheld: Mapping[str, str],
    name: str,
    how: ReleaseOptions,
) -> tuple[Release, ReleaseResult]:
    """The release, and what is said of it."""
    parts = tuple(_part(task, workspace, how) for task, workspace in chosen.values())
    tasks = [part.task for part in parts]
    earlier, before = _earlier(directory)
    gone = {task_id: withdrawal_reason(task.status) for task_id, (task, _) in offered.items() if task_id in withheld}
    added, repaired, withdrawn = compare(before, tasks, gone)
    version = next_version(
        earlier, asked=how.version, added=bool(added), repaired=bool(repaired), withdrawn=bool(withdrawn)
    )
    entry = VersionEntry(
        version=version, date=latest_decision(tasks), tasks=len(tasks), added=added, repaired=repaired,
        withdrawn=withdrawn,
    )  # fmt: skip
    same = bool(earlier) and not entry.changed and earlier[0].version == version
    made = Release(
        name=name, parts=parts, versions=tuple(earlier) if same else (entry, *earlier), layout=how.layout,
        license=how.license, paper_licenses=how.paper_licenses,
    )  # fmt: skip
    result = ReleaseResult(
        directory=directory, tasks=len(parts), configs=(), withheld=tuple(sorted(withheld.items())), version=version,
        layout=how.layout, added=added, repaired=repaired, withdrawn=withdrawn, dry_run=how.dry_run,
    )  # fmt: skip
    return made, result


def _part(task: Task, workspace: Workspace, how: ReleaseOptions) -> Part:
    images = sorted((workspace.task_dir(task.id) / "evidence").glob("*.png")) if how.images else []
    return Part(
        task=task if task.status is Status.RELEASED else task.evolve(status=Status.RELEASED),
        masked=workspace.masked_repository(task.id),
        recipe=_recipe(workspace, task),
        original=original if (original := workspace.root / "repository").is_dir() else None,
        images=tuple(images),
    )


def _earlier(directory: Path) -> tuple[tuple[VersionEntry, ...], list[Task]]:
    """(versions, tasks) of the release in `directory`; nothing when there is none.

    Raises:
        ExpbenchError: `WORKSPACE_CONFLICT`: it holds other files.
    """
    if not directory.exists() or (directory.is_dir() and not any(directory.iterdir())):
        return (), []
    if not is_release(directory):
        raise ExpbenchError(
            FailureKind.WORKSPACE_CONFLICT,
            str(directory),
            "holds files that are not a release of expbench",
            consequence="Nothing was written",
            next_step="Choose an empty or new directory with --out",
        )
    head: ReleaseHead = read_head(directory)
    return head.versions, read_release(directory) if head.versions else []


def _write_checked(directory: Path, made: Release) -> tuple[str, ...]:
    configs = write_dataset(directory, made)
    if made.layout == "split":
        check_public(directory, [part.task for part in made.parts], made.name)
    return configs


def _pushed(directory: Path, how: ReleaseOptions) -> tuple[PushReport, ...]:
    """The private part first: when the public one is there, those who may can grade with it."""
    reports = []
    if how.push_private is not None:
        reports.append(push(directory, how.push_private, part="private", dry_run=how.dry_run))
    if how.push is not None:
        reports.append(push(directory, how.push, part="public", dry_run=how.dry_run))
    return tuple(reports)


def _nothing(workspaces: Sequence[Workspace], tasks: Sequence[Task], withheld: Mapping[str, str]) -> ExpbenchError:
    candidates = sum(task.status is Status.MASKED for task in tasks)
    return ExpbenchError(
        FailureKind.NOTHING_TO_RELEASE,
        ", ".join(str(workspace.root) for workspace in workspaces),
        f"no task is approved ({candidates} release candidate(s) of {len(tasks)} task(s))",
        consequence="Nothing was written" + "".join(f"; {task}: {why}" for task, why in _changed(withheld)),
        next_step="Review the candidates, or pass --accept-all to approve them by that rule"
        if candidates
        else "Look at index.html for the reason of each task",
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


def _changed(withheld: Mapping[str, str]) -> list[tuple[str, str]]:
    """What is withheld for another reason than its status."""
    states = {status.value for status in Status}
    return [(task, why) for task, why in sorted(withheld.items()) if why not in states]


def _accepted(workspace: Workspace, task: Task, *, keep: bool) -> Task:
    """The task, approved by the rule when it is a release candidate; saved unless this is a dry run."""
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
    if keep:
        workspace.save_task(approved)
    return approved
