"""Versions of a released data set: what was added, repaired and withdrawn, task by task.

A release is compared with the one that lies in the same place. The version follows from the difference: the first is
1.0.0; tasks added or withdrawn raise the second number, tasks repaired alone the third; where nothing changed,
nothing is raised. The public text names fields of the public half; of ground truth it only says that it was repaired.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.formats.family_parts import FamilyPart
from pipeline.schema import Record
from pipeline.task import PublicTask, Status, Task

__all__ = [
    "FIRST_VERSION", "Change", "VersionEntry", "changelog_markdown", "compare", "latest_decision", "next_version",
    "withdrawal_reason",
]  # fmt: skip

FIRST_VERSION: Final = "1.0.0"
_VERSION: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_SILENT: Final = frozenset({"schema_version", "status", "provenance", "status_reason", "reviews"})
"""Fields whose change alone repairs nothing in the task."""


class Change(Record):
    """What became of one task."""

    task: str
    what: tuple[str, ...] = ()
    """Of a repaired task: the public fields that changed, and `ground truth`; of a withdrawn one: why."""


class VersionEntry(Record):
    """One version of the data set."""

    version: str
    date: str | None = None
    """Of the latest decision in it (ISO date), not of the machine that wrote it."""
    tasks: int
    added: tuple[Change, ...] = ()
    repaired: tuple[Change, ...] = ()
    withdrawn: tuple[Change, ...] = ()

    @property
    def changed(self) -> bool:
        """Does anything differ from the version before?"""
        return bool(self.added or self.repaired or self.withdrawn)


def compare(
    before: Sequence[Task | FamilyPart], after: Sequence[Task | FamilyPart], gone: Mapping[str, str]
) -> tuple[tuple[Change, ...], tuple[Change, ...], tuple[Change, ...]]:
    """(added, repaired, withdrawn), each sorted by task.

    Args:
        before: tasks of the earlier release.
        after: tasks of this one.
        gone: by task id, why a task is not released any more; of the others: that nobody offered them.
    """
    old, new = {task.id: task for task in before}, {task.id: task for task in after}
    added = tuple(Change(task=task) for task in sorted(new.keys() - old.keys()))
    withdrawn = tuple(
        Change(task=task, what=(gone.get(task, "not among the tasks that were offered"),))
        for task in sorted(old.keys() - new.keys())
    )
    both = ((task, _difference(old[task], new[task])) for task in sorted(old.keys() & new.keys()))
    return added, tuple(Change(task=task, what=what) for task, what in both if what), withdrawn


def _difference(before: Task | FamilyPart, after: Task | FamilyPart) -> tuple[str, ...]:
    if isinstance(before, FamilyPart) and isinstance(after, FamilyPart):
        return _files_difference(before, after)
    if isinstance(before, FamilyPart) or isinstance(after, FamilyPart):
        return ("family", "ground truth")
    names = [
        name for name in Task.model_fields if name not in _SILENT and getattr(before, name) != getattr(after, name)
    ]
    public = [name.replace("_", " ") for name in names if name in PublicTask.model_fields]
    return (*public, *(["ground truth"] if len(public) < len(names) else []))


def _files_difference(before: FamilyPart, after: FamilyPart) -> tuple[str, ...]:
    """Of tasks that are made of files; what is typed beside them follows from the files."""
    old, new = before.public, after.public
    names = PublicTask.model_fields.keys() - _SILENT
    changed = sorted(name.replace("_", " ") for name in names if getattr(old, name) != getattr(new, name))
    if (before.public_files, before.withheld) != (after.public_files, after.withheld):
        changed.append("files")
    return (*changed, *(["ground truth"] if before.private_files != after.private_files else []))


def latest_decision(tasks: Sequence[Task]) -> str | None:
    """ISO date of the latest review of the tasks."""
    dates = [review.at[:10] for task in tasks for review in task.reviews if review.at]
    return max(dates, default=None)


def next_version(
    earlier: Sequence[VersionEntry], *, asked: str | None, added: bool, repaired: bool, withdrawn: bool
) -> str:
    """The version of this release.

    Args:
        earlier: versions so far, the newest first.
        asked: what the publisher wants it to be called; None: it follows from the difference.
        added: are there new tasks?
        repaired: are there changed tasks?
        withdrawn: are there tasks that are gone?

    Raises:
        ExpbenchError: `USAGE`: `asked` is no version, or not a later one although something changed.
    """
    last = _numbers(earlier[0].version) if earlier else None
    if asked is not None:
        match = _VERSION.fullmatch(asked)
        changed = added or repaired or withdrawn
        if match is None or (last is not None and (_numbers(asked) < last or (changed and _numbers(asked) == last))):
            raise ExpbenchError(
                FailureKind.USAGE,
                f"version {asked}",
                "is not of the form 1.2.3" if match is None else f"does not come after {earlier[0].version}",
                consequence="Nothing was written",
                next_step="Give a later version, or leave --set-version out: it follows from what changed",
            )
        return asked
    if last is None:
        return FIRST_VERSION
    major, minor, patch = last
    if added or withdrawn:
        return f"{major}.{minor + 1}.0"
    return f"{major}.{minor}.{patch + 1}" if repaired else earlier[0].version


def _numbers(version: str) -> tuple[int, int, int]:
    match = _VERSION.fullmatch(version)
    return (int(match[1]), int(match[2]), int(match[3])) if match else (0, 0, 0)


def withdrawal_reason(status: Status) -> str:
    """In words that say nothing of the answer: a task's own reason may quote the numbers that did not come out."""
    return {
        Status.WITHDRAWN: "withdrawn by its curators",
        Status.REJECTED: "rejected in a later review",
        Status.NOT_FOUND: "no script that answers it was found",
    }.get(status, "waits for a review again")


def changelog_markdown(entries: Sequence[VersionEntry]) -> str:
    """`CHANGELOG.md`, the newest version first."""
    lines = ["# Changelog", ""]
    for entry in entries:
        lines += [f"## {entry.version}" + (f" ({entry.date})" if entry.date else ""), ""]
        lines.append(f"{entry.tasks} task(s).")
        for title, changes in (
            ("Added", entry.added), ("Repaired", entry.repaired), ("Withdrawn", entry.withdrawn),
        ):  # fmt: skip
            if changes:
                lines += ["", f"### {title}", ""]
                lines += [f"- `{change.task}`" + (f": {', '.join(change.what)}" if change.what else "")
                          for change in changes]  # fmt: skip
        lines.append("")
    return "\n".join(lines)
