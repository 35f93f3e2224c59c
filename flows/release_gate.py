"""The gate of a release: its public part does not state the answers. A release that does not pass is not written.

Every public file but the masked repositories (those have the leak report of their task) is read: tables, card,
changelog, metadata, pictures with their text chunks. Looked for are the canary string, the sentences of the ground
truth, and the claimed numbers beside the metric's name. What the question and the method themselves say is the task's
own leak scan (`masking.leaks.scan_task_text`), which is made again here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from masking.leaks import scan_task_text
from masking.numbers import BLOCKING, NumberProbe
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.formats.family_parts import FamilyPart
from pipeline.formats.huggingface import PRIVATE, canary_of, read_tables
from pipeline.task import Task

__all__ = ["check_public", "private_sentences"]

_MIN_SENTENCE: Final = 24
"""Characters of a text that can only come from the ground truth; shorter ones (a file's name) occur by chance."""
_NUMBER: Final = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_COLUMNS: Final = ("question", "method", "agent_instructions", "record")
"""Of the public table: texts of the task itself, which its leak scan reads."""


def private_sentences(task: Task) -> Iterator[tuple[str, str]]:
    """(field, text) of the ground truth that must not be in a public file."""
    yield "expected outcome", task.truth.expected.text
    for number, requirement in enumerate(task.truth.requirements, start=1):
        yield f"requirement {number}", requirement.text
    yield "reason of the status", task.status_reason
    for review in task.reviews:
        yield "comment of a review", review.comment
        for field, change in review.changes:
            yield f"change of {field} in a review", change
    for claim in task.truth.expected.claims:
        for evidence in claim.evidence:
            yield f"evidence of {claim.id}", evidence.quote


def check_public(directory: Path, tasks: Sequence[Task], name: str, parts: Sequence[FamilyPart] = ()) -> None:
    """Read the public part of a split release.

    Args:
        directory: the release.
        tasks: that are in it.
        name: of the data set; decides its canary string.
        parts: tasks that are made of files, with what must not be found of them.

    Raises:
        ExpbenchError: `LEAK_FOUND`, naming the file and the field of the ground truth.
    """
    for task in tasks:
        for hit in scan_task_text(task):
            if hit.score >= BLOCKING:
                raise _leak(task.id, f"its {hit.where} states the answer: {hit.detail}")
    canary = canary_of(name)
    texts = dict(_texts(directory))
    for where, text in texts.items():
        if canary in text:
            raise _leak(where, "it holds the canary string of the private part")
    for task in tasks:
        probe = NumberProbe(task.truth.expected.claims)
        own = _flat(f"{task.question}\n{task.method}\n{task.agent_instructions}")
        for where, text in texts.items():
            _check_text(task, probe, where, text, own)
    if parts:
        _check_parts(parts, texts)


class _Searched:
    """A public text, and its numbers by where they stand."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.numbers = [float(match.group()) for match in _NUMBER.finditer(text)]
        self.places: dict[float, list[int]] = {}
        for at, number in enumerate(self.numbers):
            self.places.setdefault(number, []).append(at)

    def states(self, run: tuple[float, ...]) -> bool:
        """Are these numbers there, one after the other?"""
        return any(tuple(self.numbers[at : at + len(run)]) == run for at in self.places.get(run[0], ()))


def _check_parts(parts: Sequence[FamilyPart], texts: Mapping[str, str]) -> None:
    searched = {where: _Searched(text) for where, text in texts.items()}
    public: dict[bytes, str] = {}
    for part in parts:
        told = part.public
        own = _flat(f"{told.question}\n{told.method}\n{told.agent_instructions}")
        searched[f"{part.id}: question, method and instructions"] = _Searched(own)
        for path, data in part.public_files.items():
            if path not in part.paper_files:
                public[data] = f"{part.id}: {path}"
    searched |= {where: _Searched(_flat(data.decode("utf-8", "replace"))) for data, where in public.items()}
    for part in parts:
        for path, data in part.private_files.items():
            if data in public:
                raise _leak(public[data], f"it is the private file {path} of {part.id}")
        for where, given in searched.items():
            for field, sentence in part.sentences:
                if sentence in given.text:
                    raise _leak(where, f"it holds a line of the {field} of {part.id}")
            for field, run in part.runs:
                if given.states(run):
                    raise _leak(where, f"it states numbers of the {field} of {part.id}")


def _check_text(task: Task, probe: NumberProbe, where: str, text: str, own: str) -> None:
    for field, sentence in private_sentences(task):
        wanted = _flat(sentence)
        if len(wanted) >= _MIN_SENTENCE and wanted not in own and wanted in text:
            raise _leak(where, f"it holds the {field} of {task.id}")
    for hit in probe.find(text.encode(), "prose"):
        if hit.score >= BLOCKING:
            raise _leak(where, f"it states a number of the expected outcome of {task.id} ({hit.detail})")


def _texts(directory: Path) -> Iterator[tuple[str, str]]:
    """(file, its text on one line) of every public file; of the tables what is not the task's own words."""
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory).as_posix()
        if not path.is_file() or name.startswith((f"{PRIVATE}/", "repositories/")):
            continue
        if path.suffix == ".parquet":
            continue
        yield name, _flat(path.read_bytes().decode("utf-8", "replace"))
    for task_id, row in sorted(read_tables(directory)[0].items()):
        # files are searched one by one, with the paper left out
        rest: dict[str, Any] = {key: value for key, value in row.items() if key not in {*_COLUMNS, "files"}}
        record = json.loads(row["record"])
        rest["record"] = {key: value for key, value in record.items() if key not in _COLUMNS}
        yield f"tasks: {task_id}", _flat(json.dumps(rest, ensure_ascii=False))


def _flat(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _leak(where: str, cause: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.LEAK_FOUND,
        where,
        cause,
        consequence="The release was not written",
        next_step="Correct the task's text with `expbench review`, or withhold the task",
    )
