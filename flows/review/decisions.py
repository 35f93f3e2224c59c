"""From a reviewer's answer to a recorded decision: what is wrong with an answer, and what a right one does to the task.

Rules that a form can express are checked by the form as well (`flows.orchestration.form`); here they are checked for
every way of answering. Nothing here runs a stage: a decision that needs one leaves the task where that stage begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

from flows.review.content import LISTS, Wording, content_digest, listed_paths
from flows.review.policy import read_policy
from masking.leaks import scan_task_text
from masking.numbers import BLOCKING
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import exclusive_lock
from pipeline.schema import Record
from pipeline.store import Workspace
from pipeline.task import Review, Status, Task

__all__ = ["REVIEWABLE", "Answer", "counted", "decide", "problems_of", "votes_on", "waits"]

REVIEWABLE = frozenset({Status.MASKED, Status.APPROVED, Status.NOT_FOUND})
"""Release candidates, approved tasks on which somebody has second thoughts, and tasks without a script, which a person
must accept."""


class Answer(Record):
    """What a reviewer answered."""

    decision: Literal["approve", "edit", "reject", "send_back"]
    reviewer: str
    comment: str = ""
    wording: Wording | None = None
    """The texts as the reviewer left them; None where there was nothing to edit."""
    shown: str | None = None
    """`content_digest` of the task that was shown; None where the answer is given on the stored task itself."""
    run: str | None = None
    """Where the answer was given; the same answer is applied once."""


def problems_of(workspace: Workspace, task: Task, answer: Answer) -> list[str]:
    """What is wrong with an answer, in words for its author; empty when it can be applied."""
    problems = []
    if not answer.reviewer.strip():
        problems.append("Say who you are: the reviewer's name is recorded with the decision.")
    if answer.decision in {"reject", "send_back"} and not answer.comment.strip():
        what = "A rejection" if answer.decision == "reject" else "Sending a task back"
        problems.append(f"{what} needs a comment: say what is wrong.")
    if task.status not in REVIEWABLE:
        problems.append(f"The task is {task.status.value.replace('_', ' ')} by now; there is nothing to decide.")
        return problems
    if answer.shown is not None and answer.shown != content_digest(task):
        problems.append("The task was changed after this page was made: look at it again.")
        return problems
    changes = dict(Wording.of(task).changes(answer.wording)) if answer.wording else {}
    fields = ", ".join(changes)
    if answer.decision == "approve" and changes:
        problems.append(f"You changed {fields} but chose approve: choose edit to approve with your changes.")
    method = answer.wording.method if answer.wording else task.method
    if answer.decision in {"approve", "edit"} and task.status is Status.MASKED and not method.strip():
        problems.append("The method is empty: choose edit and write how the experiment is done.")
    if answer.decision == "edit":
        problems += _edit_problems(workspace, task, answer, changes)
    return problems


def _edit_problems(workspace: Workspace, task: Task, answer: Answer, changes: dict[str, str]) -> list[str]:
    if answer.wording is None or not changes:
        return ["You chose edit but changed nothing: choose approve, or change a field."]
    problems = []
    wording = answer.wording.normalised()
    problems += [f"The {name} is empty." for name in changes if not getattr(wording, name).strip()]
    if problems:
        return problems
    edited = _reworded(task, wording)
    for hit in scan_task_text(edited):
        if hit.score >= BLOCKING and hit.where in changes:
            problems.append(f"The {hit.where} states the answer, which an agent would read: {hit.detail}.")
    repository = workspace.root / "repository"
    for name, paths in (
        ("sources", listed_paths(wording.sources, "sources") if "sources" in changes else []),
        ("masked", listed_paths(wording.masked, "masked") if "masked" in changes else []),
    ):
        for path, _ in paths:
            if path.startswith("/") or ".." in path.split("/") or not (repository / path).is_file():
                problems.append(f"The repository has no file {path} (named in {name}).")
    return problems


def decide(workspace: Workspace, task_id: str, answer: Answer) -> Task:
    """Record a decision and apply it; applying the same answer again (same `run`) changes nothing.

    approve, reject: a vote on the content; it takes effect when as many people as the workspace's policy asks for are
    of one mind. edit of texts: the changed content with the editor's vote. edit of sources or masked paths, send_back:
    the task returns to the stage that has to be done again (`flows.stages_alone.advance`) and waits for a person after.

    Raises:
        ExpbenchError: `USAGE` when the answer has a problem; `WORKSPACE_LOCKED` when another process works there.
    """
    with exclusive_lock(workspace.lock_path, str(workspace.root)):
        task = workspace.load_task(task_id)
        if answer.run is not None and any(review.run == answer.run for review in task.reviews):
            return task
        problems = problems_of(workspace, task, answer)
        if problems:
            raise ExpbenchError(
                FailureKind.USAGE,
                task_id,
                " ".join(problems).rstrip("."),
                consequence="No decision was recorded",
                next_step="Answer again",
            )
        decided = _decided(workspace, task, answer)
        workspace.save_task(decided)
        return decided


def _decided(workspace: Workspace, task: Task, answer: Answer) -> Task:
    before = content_digest(task)
    edited = task
    changes: tuple[tuple[str, str], ...] = ()
    wishes: dict[str, tuple[str, ...]] = {}
    if answer.decision == "edit":
        assert answer.wording is not None, "checked by `problems_of`"
        changes = Wording.of(task).changes(answer.wording)
        edited = _reworded(task, answer.wording.normalised())
        wishes = _wishes(task, answer.wording.normalised(), {name for name, _ in changes})
    elif answer.decision == "send_back":
        wishes = {"refused": tuple(source.path for source in task.truth.sources if source.role == "entry")}
    review = Review(
        reviewer=answer.reviewer.strip(),
        decision=answer.decision,
        comment=answer.comment.strip(),
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        run=answer.run,
        before=before,
        after=content_digest(edited),
        changes=changes,
        wishes=wishes,
    )
    edited = edited.evolve(reviews=(*task.reviews, review))
    if answer.decision == "send_back":
        return edited.evolve(status=Status.DRAFT, status_reason=_said("sent back", review))
    if "sources" in wishes:
        return edited.evolve(status=Status.DRAFT, status_reason=_said("other sources", review))
    if wishes:
        return edited.evolve(status=Status.VALIDATED, status_reason=_said("other mask", review))
    return counted(edited, read_policy(workspace).reviewers)


def votes_on(task: Task) -> dict[str, Review]:
    """The last approval or rejection of each reviewer that holds for the task's present content."""
    content = content_digest(task)
    votes: dict[str, Review] = {}
    for review in task.reviews:
        if review.after == content and review.decision != "send_back" and not review.wishes:
            votes.pop(review.reviewer.casefold(), None)
            votes[review.reviewer.casefold()] = review
    return votes


def counted(task: Task, needed: int) -> Task:
    """The status that the votes give: agreement of enough people, or a majority once more than enough have voted.

    A task without a script stays `not_found` when it is accepted: that nothing answers it *is* what was approved.
    """
    votes = list(votes_on(task).values())
    against = [review for review in votes if review.decision == "reject"]
    absent = task.status is Status.NOT_FOUND
    found = task.truth.not_found.reason if absent and task.truth.not_found else ""
    open_status = Status.NOT_FOUND if absent else Status.MASKED
    names = ", ".join(f"{review.reviewer} {_VERBS[review.decision]}" for review in votes)
    outcome = _outcome(votes, needed)
    if outcome == "open":
        return task.evolve(status=open_status, status_reason=_both(found, f"waits for another reviewer ({names})"))
    if outcome == "disagreement":
        return task.evolve(status=open_status, status_reason=_both(found, f"reviewers disagree: {names}"))
    if outcome == "rejected":
        return task.evolve(status=Status.REJECTED, status_reason=_said("rejected", against[-1]))
    if absent:
        accepted = ", ".join(review.reviewer for review in votes if review.decision != "reject")
        return task.evolve(status_reason=_both(found, f"accepted by {accepted}"))
    return task.evolve(status=Status.APPROVED, status_reason="")


def _outcome(votes: Sequence[Review], needed: int) -> Literal["open", "disagreement", "rejected", "approved"]:
    against = sum(review.decision == "reject" for review in votes)
    in_favour = len(votes) - against
    agreed = not against or not in_favour
    majority = len(votes) > max(needed, 2) and against != in_favour
    if len(votes) < max(needed, 1):
        return "open"
    if not agreed and not majority:
        return "disagreement"
    return "rejected" if against > in_favour else "approved"


def waits(task: Task, needed: int) -> bool:
    """Does the task wait for a person: a release candidate, or one without a script that nobody has accepted?

    Args:
        task: as stored.
        needed: how many people must be of one mind (`ReviewPolicy.reviewers`).
    """
    if task.status is Status.NOT_FOUND:
        return _outcome(list(votes_on(task).values()), needed) != "approved"
    return task.status is Status.MASKED


def _both(first: str, second: str) -> str:
    return f"{first} ({second})" if first else second


_VERBS = {"approve": "approves", "edit": "approves with changes", "reject": "rejects"}


def _said(what: str, review: Review) -> str:
    return f"{what} by {review.reviewer}" + (f": {review.comment}" if review.comment else "")


def _reworded(task: Task, wording: Wording) -> Task:
    """The task with the texts of `wording`; the leak report's part about the task's own text is made anew."""
    truth = task.truth.evolve(expected=task.truth.expected.evolve(text=wording.expected))
    edited = task.evolve(question=wording.question, method=wording.method, truth=truth)
    if task.leaks is None:
        return edited
    hits = [hit for hit in task.leaks.hits if hit.kind != "task_text"] + scan_task_text(edited)
    hits.sort(key=lambda hit: (-hit.score, hit.kind, hit.where, hit.detail))
    return edited.evolve(leaks=task.leaks.evolve(hits=tuple(hits)))


def _wishes(task: Task, wording: Wording, changed: set[str]) -> dict[str, tuple[str, ...]]:
    """What the edited lists ask of the stages."""
    wishes: dict[str, tuple[str, ...]] = {}
    if not changed & set(LISTS):
        return wishes
    if "sources" in changed:
        wishes["sources"] = tuple(
            f"{path} [{role}]" if role else path for path, role in listed_paths(wording.sources, "sources")
        )
    if "masked" in changed:
        now = {item.path for item in task.masked}
        wanted = {path for path, _ in listed_paths(wording.masked, "masked")}
        wishes["mask"] = tuple(sorted(wanted - now))
        wishes["keep"] = tuple(sorted(now - wanted))
    return wishes
