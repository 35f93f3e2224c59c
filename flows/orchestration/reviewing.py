"""`review-task`: one run a task, suspended until a person answers; no process exists while it waits.

On a resume the flow's body runs again from the top. What was asked and answered before is read from the trail, a file
in the workspace, so that nothing is asked, recorded or executed twice, on whichever machine the run goes on.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from prefect import flow, runtime, suspend_flow_run
from prefect.logging import get_run_logger

from flows.orchestration.form import ReviewForm, form_for
from flows.orchestration.guard import slots, stage_task, tag_this_run
from flows.orchestration.names import DEPLOYMENT, REVIEW_TASK
from flows.orchestration.reporting import PrefectReporter
from flows.refresh import refresh_page
from flows.review import Answer, content_digest, decide, problems_of, read_policy, waits
from flows.stages_alone import advance
from pipeline.schema import Record, StoredRecord
from pipeline.settings import Settings
from pipeline.store import Workspace
from pipeline.task import Status
from pipeline.task import Task as ExperimentTask

__all__ = ["WAIT", "Trail", "question_key", "review_task"]

WAIT: Final = timedelta(days=365)
"""How long a question stays open. Waiting costs nothing; after this the run fails and can be asked for again."""


_BETWEEN: Final = frozenset({Status.DRAFT, Status.LOCATED, Status.VALIDATED})
"""Where a decision leaves a task whose stages have to be done again."""


class _Question(Record):
    """One question put to the reviewer, and what came of it."""

    shown: str
    """`content_digest` of the task that was shown."""
    answer: Answer | None = None
    problems: tuple[str, ...] = ()
    """Why the answer could not be applied; empty for one that was."""


class Trail(StoredRecord):
    """`.reviews/<run>.json` of a workspace: the questions of one review run, in order."""

    questions: tuple[_Question, ...] = ()

    @staticmethod
    def path(workspace: Workspace, run: str) -> Path:
        """Where the trail of a run lies."""
        return workspace.root / ".reviews" / f"{run}.json"

    @classmethod
    def load(cls, workspace: Workspace, run: str) -> Trail:
        """The trail so far."""
        path = cls.path(workspace, run)
        return cls.model_validate_json(path.read_bytes()) if path.is_file() else cls()

    def put(self, workspace: Workspace, run: str, number: int, question: _Question) -> Trail:
        """The trail with one question added or replaced; written at once."""
        changed = self.evolve(questions=(*self.questions[:number], question, *self.questions[number + 1 :]))
        workspace.write_json(self.path(workspace, run), changed)
        return changed


def question_key(number: int) -> str:
    """Prefect's key of a question; each is used once."""
    return f"review-{number}"


@flow(name=REVIEW_TASK, flow_run_name="review {task_id}", persist_result=True)
def review_task(workspace: Path, task_id: str, content: str | None = None) -> dict[str, str]:
    """Ask a person about one task until a decision stands, apply it, and run the stages that it asks for.

    Args:
        workspace: the workspace's directory, as the worker sees it.
        task_id: id of the task.
        content: digest of the task that the first form shows, where it was made beforehand (`enqueue_reviews`).
    """
    opened = Workspace(workspace)
    opened.info()
    run = str(runtime.flow_run.id)
    tag_this_run(paper=opened.info().paper_id, task=task_id, stage="review")
    trail = Trail.load(opened, run)
    number = 0
    while True:
        stored = opened.load_task(task_id)
        if number >= len(trail.questions):
            if not waits(stored, read_policy(opened).reviewers):
                return _end(opened, stored)
            shown = content if number == 0 and content else content_digest(stored)
            trail = trail.put(opened, run, number, _Question(shown=shown))
        question = trail.questions[number]
        if question.answer is None:
            before = trail.questions[number - 1] if number else None
            form = _ask(opened, stored, number, before)
            answer = form.answer(shown=question.shown, run=f"{run}/{number}")
            problems = record_decision(opened.root, task_id, answer)
            question = question.evolve(answer=answer, problems=problems)
            trail = trail.put(opened, run, number, question)
        if not question.problems:
            if opened.load_task(task_id).status in _BETWEEN:
                go_on(opened.root, task_id)
            stored = opened.load_task(task_id)
            if not waits(stored, read_policy(opened).reviewers):
                return _end(opened, stored)
        number += 1


def _ask(workspace: Workspace, stored: ExperimentTask, number: int, before: _Question | None) -> ReviewForm:
    """Suspend the run with the form; in the run that goes on after the answer, return it."""
    problems = before.problems if before else ()
    return suspend_flow_run(
        wait_for_input=form_for(workspace, stored, problems, before.answer if before and problems else None),
        timeout=int(WAIT.total_seconds()),
        key=question_key(number),
    )


def _end(workspace: Workspace, stored: ExperimentTask) -> dict[str, str]:
    refresh_page(workspace)
    refresh_queue(workspace.root, return_state=True)  # a table that cannot be written does not undo a decision
    get_run_logger().info("%s: %s %s", stored.id, stored.status, stored.status_reason)
    return {"task": stored.id, "status": stored.status.value, "reason": stored.status_reason}


@stage_task("queue", tags=["stage:review"])
def refresh_queue(workspace: Path) -> int:
    """The queue's table as it is now; it offers the release when something is approved. Returns how many wait."""
    from flows.orchestration.enqueue import enqueue_reviews  # which needs this module

    return len(enqueue_reviews(Workspace(workspace), deployment=runtime.deployment.name or DEPLOYMENT, ask=False))


# never cached: the workspace remembers the decision by its run; a cached result would outlive it
@stage_task(run_name="decide on {task_id}", tags=["stage:review"])
def record_decision(workspace: Path, task_id: str, answer: Answer) -> tuple[str, ...]:
    """Apply an answer; returns what was wrong with it, nothing when it was applied (now or in an earlier attempt)."""
    opened = Workspace(workspace)
    stored = opened.load_task(task_id)
    if not any(review.run == answer.run for review in stored.reviews):
        problems = problems_of(opened, stored, answer)
        if problems:
            get_run_logger().warning("%s: the answer cannot be applied: %s", task_id, " ".join(problems))
            return tuple(problems)
        stored = decide(opened, task_id, answer)
    get_run_logger().info("%s: %s by %s: %s", task_id, answer.decision, answer.reviewer, stored.status)
    return ()


# never cached: the task's status on disk says what is left to do
@stage_task(run_name="stages of {task_id}", tags=["stage:validate", "stage:mask"])
def go_on(workspace: Path, task_id: str) -> str:
    """Run the stages that a decision asks for; returns the task's status after them."""
    opened = Workspace(workspace)
    inputs: Any = opened.info().inputs
    with slots(engine=inputs.engine, sandbox=inputs.sandbox):
        return advance(opened, task_id, Settings(), PrefectReporter(task_id)).status.value
