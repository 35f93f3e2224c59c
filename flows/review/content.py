"""What a decision is about: the digest of a task's content, and the parts of it that a reviewer may reword.

A decision holds for one content. When a stage writes the same content again (a resumed run), the decision stays in
force; when the content differs, the decision stays on record and the task waits for a person again.
"""

from __future__ import annotations

import difflib
import re
from typing import Final, Literal

from pipeline.digests import digest_of
from pipeline.schema import Record
from pipeline.task import Task

__all__ = ["LISTS", "Wording", "content_digest", "decided_on", "listed_paths"]

LISTS: Final = ("sources", "masked")
"""Editable lists, one path a line: a change of one sends the task through its stages again. The others are texts, whose
change is checked at once and approved with it."""

_LABELLED: Final = re.compile(r"^(?P<path>.*?)(?: \[(?P<label>[a-z_]+)\])?$")


def content_digest(task: Task) -> str:
    """sha256 of everything a decision is about: the task without its status and its decisions."""
    # without defaults: a field that a later version of the schema adds must not undo the decisions that were made
    kept = task.model_dump(mode="json", exclude={"status", "status_reason", "reviews"}, exclude_defaults=True)
    return digest_of(kept)


def decided_on(stored: Task, made: Task) -> bool:
    """Was a decision of `stored` made on the content of `made` (whatever the decision has changed since)?"""
    digest = content_digest(made)
    return any(digest in {review.before, review.after} for review in stored.reviews)


class Wording(Record):
    """The editable parts of a task as texts, the way a form shows them."""

    question: str
    method: str
    expected: str
    sources: str
    """One `path [role]` a line, in the order in which they are run or read."""
    masked: str
    """One `path [action]` a line."""

    @classmethod
    def of(cls, task: Task) -> Wording:
        """The wording of `task` as it is."""
        return cls(
            question=task.question,
            method=task.method,
            expected=task.truth.expected.text,
            sources="\n".join(f"{source.path} [{source.role}]" for source in task.truth.sources),
            masked="\n".join(f"{item.path} [{item.action}]" for item in task.masked),
        )

    def normalised(self) -> Wording:
        """Without what a text area adds: carriage returns, blanks at line ends, empty lines around."""
        return Wording.model_validate({name: _clean(getattr(self, name)) for name in type(self).model_fields})

    def changes(self, edited: Wording) -> tuple[tuple[str, str], ...]:
        """(field, unified diff) of each field in which `edited` differs, in the order of the fields."""
        old, new = self.normalised(), edited.normalised()
        found = []
        for name in type(self).model_fields:
            before, after = getattr(old, name), getattr(new, name)
            if before != after:
                lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "before", "after", lineterm="")
                found.append((name, "\n".join(lines)))
        return tuple(found)


def listed_paths(text: str, kind: Literal["sources", "masked"]) -> list[tuple[str, str]]:
    """(path, label) of each line of an edited list; the label is empty where the line has none.

    A file's own name may end in brackets: only the labels that a list of this kind uses are taken off.
    """
    known = _ROLES if kind == "sources" else _ACTIONS
    found: dict[str, str] = {}
    for line in _clean(text).splitlines():
        match = _LABELLED.match(line.strip())
        assert match is not None, "the pattern fits every line"
        path, label = match["path"], match["label"] or ""
        if label not in known:
            path, label = line.strip(), ""
        if path:
            found.setdefault(path, label)
    return list(found.items())


_ROLES: Final = frozenset({"entry", "config", "wrapper", "library"})
_ACTIONS: Final = frozenset({"removed", "outputs_cleared", "edited"})


def _clean(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")).strip("\n")
