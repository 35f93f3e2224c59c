"""Decisions on tasks: what is refused, what is recorded, when a task is approved."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.release import release
from flows.review import (
    Answer,
    ReviewPolicy,
    Wording,
    approve_by_rule,
    content_digest,
    decide,
    decided_on,
    parse_rule,
    problems_of,
    queue_of,
    write_policy,
)
from flows.review.content import listed_paths
from flows.review.page import review_page
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import exclusive_lock
from pipeline.store import Workspace
from pipeline.task import Status
from tests.flows.review.support import candidate, review_workspace

TASK = "paper-table-1-accuracy"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return review_workspace(tmp_path / "work")


def answer(decision: str = "approve", reviewer: str = "Ada", **more: object) -> Answer:
    return Answer.model_validate({"decision": decision, "reviewer": reviewer, **more})


def reworded(workspace: Workspace, **changes: str) -> Wording:
    return Wording.of(workspace.load_task(TASK)).evolve(**changes)


def test_an_approval_is_recorded_with_what_was_approved(workspace: Workspace) -> None:
    before = workspace.load_task(TASK)
    decided = decide(workspace, TASK, answer(comment="checked against Table 1"))
    assert decided.status is Status.APPROVED
    stored = workspace.load_task(TASK)
    assert stored == decided
    [review] = stored.reviews
    assert (review.reviewer, review.decision, review.comment) == ("Ada", "approve", "checked against Table 1")
    assert review.before == review.after == content_digest(before) == content_digest(stored)
    assert review.at.endswith("+00:00")


@pytest.mark.parametrize("decision", ["reject", "send_back"])
def test_a_refusal_needs_a_comment(workspace: Workspace, decision: str) -> None:
    with pytest.raises(ExpbenchError, match="needs a comment") as caught:
        decide(workspace, TASK, answer(decision, comment="  "))
    assert caught.value.kind is FailureKind.USAGE
    assert workspace.load_task(TASK).reviews == ()


def test_a_decision_needs_a_name(workspace: Workspace) -> None:
    with pytest.raises(ExpbenchError, match="who you are"):
        decide(workspace, TASK, answer(reviewer="  "))


def test_an_empty_method_is_written_before_it_is_approved(tmp_path: Path) -> None:
    """A bug it prevents: a draft of which nobody said how it is done went out as a task."""
    workspace = review_workspace(tmp_path / "work", candidate().evolve(method=""))
    with pytest.raises(ExpbenchError, match="The method is empty: choose edit"):
        decide(workspace, TASK, answer())
    assert approve_by_rule(workspace, parse_rule("confidence>=0.5")) == ([], [TASK])
    page = review_page(workspace, workspace.load_task(TASK))
    assert "to be written" in page
    written = reworded(workspace, method="Train each model on every split.")
    assert decide(workspace, TASK, answer("edit", wording=written)).status is Status.APPROVED


def test_a_rejection_says_who_and_why(workspace: Workspace) -> None:
    decided = decide(workspace, TASK, answer("reject", comment="not in the paper"))
    assert decided.status is Status.REJECTED
    assert decided.status_reason == "rejected by Ada: not in the paper"
    with pytest.raises(ExpbenchError, match="nothing to decide"):
        decide(workspace, TASK, answer())


def test_an_edit_keeps_the_difference_and_approves_the_new_text(workspace: Workspace) -> None:
    old = workspace.load_task(TASK)
    decided = decide(workspace, TASK, answer("edit", wording=reworded(workspace, question="Which method is best?")))
    assert (decided.status, decided.question) == (Status.APPROVED, "Which method is best?")
    [review] = decided.reviews
    assert review.changes == (
        (
            "question",
            "--- before\n+++ after\n@@ -1 +1 @@\n-How do the methods compare in accuracy?\n+Which method is best?",
        ),
    )
    assert review.before == content_digest(old)
    assert review.after == content_digest(decided) != review.before
    assert decided_on(decided, old), "the stages make the old content again: the decision on it stays in force"


def test_an_edit_must_not_give_the_answer_away(workspace: Workspace) -> None:
    told = answer("edit", wording=reworded(workspace, question="Does ours reach an accuracy of 87.3%?"))
    [problem] = problems_of(workspace, workspace.load_task(TASK), told)
    assert "states the answer" in problem


def test_changes_are_never_dropped_silently(workspace: Workspace) -> None:
    changed = answer("approve", wording=reworded(workspace, method="Another method."))
    assert "choose edit" in problems_of(workspace, workspace.load_task(TASK), changed)[0]
    unchanged = answer("edit", wording=reworded(workspace))
    assert "changed nothing" in problems_of(workspace, workspace.load_task(TASK), unchanged)[0]
    emptied = answer("edit", wording=reworded(workspace, question=" \r\n"))
    assert "is empty" in problems_of(workspace, workspace.load_task(TASK), emptied)[0]


def test_what_a_text_area_adds_is_no_change(workspace: Workspace) -> None:
    task = workspace.load_task(TASK)
    area = Wording.of(task).evolve(method=task.method.replace("\n", "\r\n") + "\r\n")
    assert Wording.of(task).changes(area) == ()


def test_an_answer_to_an_old_page_is_not_applied(workspace: Workspace) -> None:
    shown = content_digest(workspace.load_task(TASK))
    workspace.save_task(workspace.load_task(TASK).evolve(question="Changed meanwhile?"))
    assert "look at it again" in problems_of(workspace, workspace.load_task(TASK), answer(shown=shown))[0]


@pytest.mark.parametrize("path", ["no/such.py", "/etc/passwd", "../work/workspace.json"])
def test_paths_must_be_files_of_the_repository(workspace: Workspace, path: str) -> None:
    for field in ("sources", "masked"):
        told = answer("edit", wording=reworded(workspace, **{field: path}))
        assert any("has no file" in problem for problem in problems_of(workspace, workspace.load_task(TASK), told))


def test_other_sources_and_masks_go_back_to_their_stage(workspace: Workspace) -> None:
    decided = decide(workspace, TASK, answer("edit", wording=reworded(workspace, masked="README.md\nother.py")))
    assert decided.status is Status.VALIDATED
    assert decided.reviews[0].wishes == {"mask": ("other.py",), "keep": ()}
    workspace.save_task(candidate())
    decided = decide(workspace, TASK, answer("edit", wording=reworded(workspace, sources="other.py [entry]")))
    assert decided.status is Status.DRAFT
    assert decided.reviews[0].wishes["sources"] == ("other.py [entry]",)


def test_sending_back_remembers_what_was_refused(workspace: Workspace) -> None:
    decided = decide(workspace, TASK, answer("send_back", comment="this script makes Table 2"))
    assert decided.status is Status.DRAFT
    assert decided.reviews[0].wishes == {"refused": ("scripts/run secret.py",)}


def test_the_same_answer_is_applied_once(workspace: Workspace) -> None:
    first = decide(workspace, TASK, answer(run="run-1/0"))
    assert decide(workspace, TASK, answer(run="run-1/0")) == first
    assert len(workspace.load_task(TASK).reviews) == 1


def test_a_workspace_in_use_is_not_written(workspace: Workspace) -> None:
    with exclusive_lock(workspace.lock_path, "test"), pytest.raises(ExpbenchError) as caught:
        decide(workspace, TASK, answer())
    assert caught.value.kind is FailureKind.WORKSPACE_LOCKED
    assert caught.value.failure.retry


def test_two_reviewers_must_agree(workspace: Workspace) -> None:
    write_policy(workspace, ReviewPolicy(reviewers=2))
    first = decide(workspace, TASK, answer())
    assert first.status is Status.MASKED
    assert "another reviewer" in first.status_reason
    again = decide(workspace, TASK, answer(reviewer="ADA"))
    assert again.status is Status.MASKED, "the same person counts once, however the name is written"
    assert decide(workspace, TASK, answer(reviewer="Grace")).status is Status.APPROVED


def test_disagreement_is_flagged_first_and_a_third_person_decides(tmp_path: Path) -> None:
    workspace = review_workspace(tmp_path / "work", candidate(), candidate("paper-table-2-accuracy", confidence=0.3))
    write_policy(workspace, ReviewPolicy(reviewers=2))
    decide(workspace, TASK, answer())
    disputed = decide(workspace, TASK, answer("reject", "Grace", comment="another metric"))
    assert disputed.status is Status.MASKED
    assert disputed.status_reason == "reviewers disagree: Ada approves, Grace rejects"
    first = queue_of(workspace)[0]
    assert (first.task, first.reasons[0]) == (TASK, "reviewers disagree")
    assert decide(workspace, TASK, answer("reject", "Emmy", comment="so it is")).status is Status.REJECTED


def test_second_thoughts_take_an_approval_back(workspace: Workspace) -> None:
    decide(workspace, TASK, answer())
    assert decide(workspace, TASK, answer("reject", comment="wrong table")).status is Status.REJECTED


def test_a_vote_does_not_count_for_other_content(workspace: Workspace) -> None:
    write_policy(workspace, ReviewPolicy(reviewers=2))
    decide(workspace, TASK, answer())
    edited = decide(workspace, TASK, answer("edit", "Grace", wording=reworded(workspace, question="Which is best?")))
    assert edited.status is Status.MASKED, "Ada has not seen Grace's question"
    assert decide(workspace, TASK, answer()).status is Status.APPROVED


def test_what_was_changed_after_its_approval_is_not_released(workspace: Workspace) -> None:
    approved = decide(workspace, TASK, answer())
    workspace.save_task(approved.evolve(question="Edited by hand?"))
    with pytest.raises(ExpbenchError, match="changed after its approval"):
        release(workspace, out=None, accept_all=False, name=None)


def test_a_broken_policy_is_not_taken_for_one_reviewer(workspace: Workspace) -> None:
    (workspace.root / "review.json").write_text("{")
    with pytest.raises(ExpbenchError) as caught:
        decide(workspace, TASK, answer())
    assert caught.value.kind is FailureKind.RECORD_INVALID
    assert workspace.load_task(TASK).reviews == ()


@given(st.lists(st.sampled_from(["a.py", "b [x].py", "c d/e.sh", "[removed]"]), max_size=6))
def test_listed_paths_are_read_back(paths: list[str]) -> None:
    unique = list(dict.fromkeys(paths))
    assert listed_paths("\n".join(f"{path} [removed]" for path in paths), "masked") == [(p, "removed") for p in unique]
    assert [path for path, _ in listed_paths("\r\n".join(f"  {path} " for path in paths), "sources")] == unique
