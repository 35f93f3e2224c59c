"""The queue: which tasks wait for a person, the most doubtful first, each with the reasons for doubt."""

from __future__ import annotations

from typing import Final

from flows.review.content import content_digest
from flows.review.decisions import votes_on, waits
from flows.review.policy import read_policy
from pipeline.schema import Record, Severity
from pipeline.store import Workspace
from pipeline.task import Status, Task, Verdict

__all__ = ["QueueEntry", "measures_of", "queue_of", "risk_of"]


class QueueEntry(Record):
    """A task that waits for a decision."""

    task: str
    question: str
    risk: float
    """0 (nothing speaks against it) to 1; orders the queue, no more."""
    reasons: tuple[str, ...]
    """What makes it doubtful, in words."""
    measures: dict[str, float]
    """What rules can ask about; a measure that is not known is not here."""
    votes: tuple[tuple[str, str], ...]
    """(reviewer, decision) that hold for this content."""
    content: str
    """`content_digest` of the task."""
    status: Status = Status.MASKED
    """`not_found`: no script answers it, which a person must accept."""


def queue_of(workspace: Workspace) -> list[QueueEntry]:
    """What nobody has decided on yet, by falling risk, then by id.

    Release candidates, and tasks for which no script was found: that is a result, and a person must accept it.
    """
    needed = read_policy(workspace).reviewers
    entries = [_entry(task) for task in workspace.tasks() if waits(task, needed)]
    return sorted(entries, key=lambda entry: (-entry.risk, entry.task))


def _entry(task: Task) -> QueueEntry:
    risk, reasons = risk_of(task)
    votes = tuple((review.reviewer, review.decision) for review in votes_on(task).values())
    return QueueEntry(
        task=task.id, question=task.question, risk=risk, reasons=reasons, measures=measures_of(task), votes=votes,
        content=content_digest(task), status=task.status,
    )  # fmt: skip


def measures_of(task: Task) -> dict[str, float]:
    """Numbers about a task that risk and rules use; what is not known is left out, never taken as 0."""
    measures = {"confidence": task.confidence, "claims": float(len(task.truth.expected.claims))}
    if task.leaks is not None:
        measures["leak_hits"] = float(len(task.leaks.hits))
        measures["leak_score"] = max((hit.score for hit in task.leaks.hits), default=0.0)
    if task.validation is not None:
        matches = task.validation.matches
        measures["repeats"] = float(len(task.validation.runs))
        if task.validation.flakiness is not None:
            measures["flakiness"] = task.validation.flakiness
        if matches:
            passed = sum(match.verdict is Verdict.PASS for match in matches)
            measures["reproduced"] = passed / len(matches)
    problems = [item for item in task.problems if item.severity is not Severity.INFO]
    monitor = task.validation.monitor if task.validation else ()
    measures["problems"] = float(len(problems) + len(monitor))
    return measures


# Weights of the reasons. They order a queue and decide nothing: disagreement comes before everything, then what could
# let an answer leak, then what could make it wrong, then low confidence. A reviewer reads the reasons, not the number.
_DISAGREEMENT, _LEAK, _FLAKY, _UNSUPPORTED, _PROBLEM, _PROCESS, _DOUBT = 1.0, 0.5, 0.4, 0.3, 0.1, 0.1, 0.6


_ABSENT: Final = 0.5
"""Of every task without a script: nothing was run that could speak for or against it."""


def _absent_reasons(task: Task) -> tuple[str, ...]:
    found = task.truth.not_found
    reasons = [f"no script of the repository answers it: {found.reason if found else task.status_reason}"]
    if found is not None and found.searched:
        reasons.append(f"{len(found.searched)} search(es) are listed on its page")
    disagree = len({review.decision == "reject" for review in votes_on(task).values()}) == 2
    return ("reviewers disagree", *reasons) if disagree else tuple(reasons)


def risk_of(task: Task) -> tuple[float, tuple[str, ...]]:
    """How doubtful a task is (0 to 1), and why."""
    if task.status is Status.NOT_FOUND:
        return _ABSENT, _absent_reasons(task)
    measures = measures_of(task)
    doubts: list[tuple[float, str]] = []
    decisions = {review.decision == "reject" for review in votes_on(task).values()}
    if len(decisions) == 2:
        doubts.append((_DISAGREEMENT, "reviewers disagree"))
    if "leak_score" not in measures:
        doubts.append((_LEAK, "no leak scan"))
    elif measures["leak_hits"]:
        text = f"{measures['leak_hits']:.0f} leak hit(s) below blocking, the strongest {measures['leak_score']:.2f}"
        doubts.append((_LEAK * measures["leak_score"], text))
    if "flakiness" not in measures:
        doubts.append((_FLAKY / 2, "flakiness unknown (fewer than two repeats)"))
    elif measures["flakiness"] > 0:
        text = f"flaky: {measures['flakiness']:.0%} of the claims differ between repeats"
        doubts.append((_FLAKY * (0.5 + measures["flakiness"] / 2), text))
    unsupported = 1 - measures.get("reproduced", 0.0)
    if unsupported > 0:
        doubts.append((_UNSUPPORTED * unsupported, f"{unsupported:.0%} of the paper's claims were not reproduced"))
    if measures["problems"]:
        doubts.append((_PROBLEM, f"{measures['problems']:.0f} problem(s) reported"))
    if not task.method.strip():
        doubts.append((_PROBLEM, "its method is to be written"))
    if task.environment.sandbox == "process":
        doubts.append((_PROCESS, "validated in the process sandbox, not in a container"))
    if task.confidence < 0.9:
        doubts.append((_DOUBT * (1 - task.confidence), f"confidence {task.confidence:.2f}"))
    certain = 1.0
    for weight, _ in doubts:
        certain *= 1 - min(weight, 1.0)
    doubts.sort(key=lambda item: (-item[0], item[1]))
    return round(1 - certain, 3), tuple(text for _, text in doubts)
