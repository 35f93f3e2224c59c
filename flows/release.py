"""`expbench release`: accepted tasks of one or several workspaces become a versioned data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

from pydantic import Field

from flows.release_gate import check_public
from flows.release_offer import Offer, Offered, family_offer, offered_tasks, released_part, why_not
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import exclusive_lock, replace_directory
from pipeline.formats.family_parts import FamilyPart
from pipeline.formats.hub import PushReport, push
from pipeline.formats.huggingface import (
    Release,
    ReleaseHead,
    is_release,
    read_family_parts,
    read_head,
    read_release,
    write_dataset,
)
from pipeline.formats.release_log import Change, VersionEntry, compare, latest_decision, next_version, withdrawal_reason
from pipeline.progress import Reporter, SilentReporter
from pipeline.schema import Record
from pipeline.scratch import scratch_directory
from pipeline.store import Workspace
from pipeline.task import Status, Task

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
    families: Sequence[Path] = (),
    reporter: Reporter | None = None,
) -> ReleaseResult:
    """Write the approved tasks to `out`; with `accept_all`, every release candidate is approved first.

    Tasks of the families that are made of files (`families`) come as published or generated: nobody approves them here.

    The approval is recorded in the task as made by the rule, not by a person. A release that lies in `out` is replaced
    as a whole, and its changelog goes on.

    Args:
        workspace: one, or several whose tasks become one data set; none where there are `families`.
        out: directory to write; None: `release` in the (first) workspace.
        accept_all: approve every release candidate by that rule.
        name: of the data set; None: as before, or the paper's id.
        options: how.
        families: directories with histogram, table or causal tasks.
        reporter: progress.

    Raises:
        ExpbenchError: `NOTHING_TO_RELEASE` when no task is approved; `WORKSPACE_CONFLICT` when `out` holds other files
            or two sources have a task of the same id; `LEAK_FOUND` when the public part states an answer; `USAGE`
            for a version that is none or not a later one; `RECORD_INVALID` when a source cannot be read or
            a task has no method.
    """
    how = options or ReleaseOptions()
    workspaces = [workspace] if isinstance(workspace, Workspace) else list(workspace)
    _check_usage(how, workspaces, out)
    with ExitStack() as locks:
        for item in workspaces:
            locks.enter_context(exclusive_lock(item.lock_path, str(item.root)))
        offered = offered_tasks(workspaces, accept_all, keep=not how.dry_run)
        withheld = {task.id: why for task, place in offered.values() if (why := why_not(place, task)) is not None}
        chosen = {task_id: pair for task_id, pair in offered.items() if task_id not in withheld}
        _check_methods([*chosen.values(), *(pair for pair in offered.values() if accept_all)])
        others = family_offer(families, how.paper_licenses, offered, reporter or SilentReporter())
        if not chosen and not others.parts:
            raise _nothing(workspaces, [task for task, _ in offered.values()], withheld)
        directory = (out or workspaces[0].root / "release").resolve()
        called = name or _name(directory, workspaces if not families else [])
        made, result = _made(directory, chosen, others, offered, withheld, called, how)
        if how.dry_run:
            with scratch_directory() as scratch:
                configs = _write_checked(Path(scratch), made)
                return result.evolve(configs=configs, pushes=_pushed(Path(scratch), how))
        with replace_directory(directory) as fresh:
            configs = _write_checked(fresh, made)
        for task, place in chosen.values():
            if task.status is not Status.RELEASED:
                place.save_task(task.evolve(status=Status.RELEASED))
    return result.evolve(configs=configs, pushes=_pushed(directory, how))


def _check_methods(wanted: Sequence[Offered]) -> None:
    """A task without a method is a draft: nobody has said how its experiment is done."""
    ready = {Status.MASKED, Status.APPROVED, Status.RELEASED}
    found = dict.fromkeys(task.id for task, _ in wanted if task.status in ready and not task.method.strip())
    empty = list(found)
    if empty:
        more = f" and {len(empty) - 1} more" if len(empty) > 1 else ""
        raise ExpbenchError(
            FailureKind.RECORD_INVALID,
            f"{empty[0]}{more}",
            "its method is empty (to be written): nothing that ran bears out how the experiment is done",
            consequence="No release was written",
            next_step="Write the method (`expbench review`, edit) or reject the task, then release again",
        )


def _check_usage(how: ReleaseOptions, workspaces: Sequence[Workspace], out: Path | None) -> None:
    if how.layout == "open" and how.push_private is not None:
        raise ExpbenchError(
            FailureKind.USAGE,
            f"--push-private {how.push_private}",
            "an open set has no private part",
            consequence="Nothing was written",
            next_step="Leave it out, or release with --layout split",
        )
    if out is None and not workspaces:
        raise ExpbenchError(
            FailureKind.USAGE,
            "--out",
            "is missing: only a workspace has a place of its own for its release",
            consequence="Nothing was written",
            next_step="Name the directory to write with --out",
        )


def _name(directory: Path, workspaces: Sequence[Workspace]) -> str:
    if is_release(directory):
        return read_head(directory).name
    return workspaces[0].info().paper_id if len(workspaces) == 1 else directory.name


def _made(
    directory: Path,
    chosen: Mapping[str, Offered],
    others: Offer,
    offered: Mapping[str, Offered],
    withheld: Mapping[str, str],
    name: str,
    how: ReleaseOptions,
) -> tuple[Release, ReleaseResult]:
    """The release, and what is said of it."""
    parts = tuple(released_part(task, workspace, images=how.images) for task, workspace in chosen.values())
    tasks = [part.task for part in parts]
    count = len(parts) + len(others.parts)
    earlier, before = _earlier(directory)
    gone = {task_id: withdrawal_reason(task.status) for task_id, (task, _) in offered.items() if task_id in withheld}
    added, repaired, withdrawn = compare(before, [*tasks, *others.parts], gone)
    version = next_version(
        earlier, asked=how.version, added=bool(added), repaired=bool(repaired), withdrawn=bool(withdrawn)
    )
    entry = VersionEntry(
        version=version, date=latest_decision(tasks), tasks=count, added=added, repaired=repaired,
        withdrawn=withdrawn,
    )  # fmt: skip
    same = bool(earlier) and not entry.changed and earlier[0].version == version
    made = Release(
        name=name, parts=parts, versions=tuple(earlier) if same else (entry, *earlier), layout=how.layout,
        license=how.license, paper_licenses=how.paper_licenses, family_parts=others.parts, shapes=others.shapes,
    )  # fmt: skip
    result = ReleaseResult(
        directory=directory, tasks=count, configs=(), version=version,
        withheld=tuple(sorted([*withheld.items(), *others.unread])), layout=how.layout, added=added,
        repaired=repaired, withdrawn=withdrawn, dry_run=how.dry_run,
    )  # fmt: skip
    return made, result


def _earlier(directory: Path) -> tuple[tuple[VersionEntry, ...], list[Task | FamilyPart]]:
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
    if not head.versions:
        return (), []
    return head.versions, [*read_release(directory), *read_family_parts(directory)]


def _write_checked(directory: Path, made: Release) -> tuple[str, ...]:
    configs = write_dataset(directory, made)
    if made.layout == "split":
        check_public(directory, [part.task for part in made.parts], made.name, made.family_parts)
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
        next_step="Review the candidates (`expbench review WORKSPACE --list`), or approve them all by --accept-all"
        if candidates
        else "Look at index.html for the reason of each task",
    )


def _changed(withheld: Mapping[str, str]) -> list[tuple[str, str]]:
    """What is withheld for another reason than its status."""
    states = {status.value for status in Status}
    return [(task, why) for task, why in sorted(withheld.items()) if why not in states]
