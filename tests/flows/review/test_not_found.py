"""Tasks that no script of the repository answers: a result that a person must accept, and no rule can."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flows.release import release
from flows.review import (
    Answer,
    ReviewPolicy,
    Wording,
    approve_by_rule,
    decide,
    parse_rule,
    queue_of,
    waits,
    write_policy,
)
from flows.review.page import review_page
from pipeline.errors import ExpbenchError
from pipeline.store import Workspace
from pipeline.task import NotFound, Status, Task
from tests.flows.review.support import candidate, review_workspace

ABSENT, CANDIDATE = "paper-table-9-robustness", "paper-table-1-accuracy"


def absent() -> Task:
    task = candidate(ABSENT)
    truth = task.truth.evolve(
        sources=(), requirements=(), usage=(),
        not_found=NotFound(reason="the best script scores 0.11", searched=("content: train.py 0.11", "README: none")),
    )  # fmt: skip
    return task.evolve(
        status=Status.NOT_FOUND, status_reason="the best script scores 0.11", truth=truth, masked=(), validation=None,
        leaks=None, round_trip=None,
    )  # fmt: skip


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return review_workspace(tmp_path / "workspace", candidate(CANDIDATE), absent())


def test_it_waits_in_the_queue_with_what_was_searched(workspace: Workspace) -> None:
    found = {entry.task: entry for entry in queue_of(workspace)}
    assert set(found) == {ABSENT, CANDIDATE}
    assert found[ABSENT].status is Status.NOT_FOUND
    assert "the best script scores 0.11" in found[ABSENT].reasons[0]
    page = review_page(workspace, workspace.load_task(ABSENT))
    assert "No script was found" in page
    assert "README" in page
    assert "Re-execution" not in page
    assert json.loads(found[ABSENT].model_dump_json())["status"] == "not_found"


def test_a_person_accepts_it_and_it_waits_no_more(workspace: Workspace) -> None:
    done = decide(workspace, ABSENT, Answer(decision="approve", reviewer="Ada"))
    assert done.status is Status.NOT_FOUND, "that nothing answers it is what was approved"
    assert done.status_reason == "the best script scores 0.11 (accepted by Ada)"
    assert [entry.task for entry in queue_of(workspace)] == [CANDIDATE]
    assert decide(workspace, CANDIDATE, Answer(decision="approve", reviewer="Ada")).status is Status.APPROVED


def test_two_people_where_the_policy_says_so(workspace: Workspace) -> None:
    write_policy(workspace, ReviewPolicy(reviewers=2))
    first = decide(workspace, ABSENT, Answer(decision="approve", reviewer="Ada"))
    assert waits(first, 2)
    assert "waits for another reviewer" in first.status_reason
    disputed = decide(workspace, ABSENT, Answer(decision="reject", reviewer="Grace", comment="run_robust.py does it"))
    assert disputed.status is Status.NOT_FOUND
    assert "reviewers disagree" in disputed.status_reason
    assert decide(workspace, ABSENT, Answer(decision="approve", reviewer="Edith")).status is Status.NOT_FOUND
    assert ABSENT not in {entry.task for entry in queue_of(workspace)}


def test_it_can_be_rejected_searched_again_or_given_a_script(workspace: Workspace) -> None:
    task = workspace.load_task(ABSENT)
    named = Wording.of(task).evolve(sources="other.py [entry]")
    drafted = decide(workspace, ABSENT, Answer(decision="edit", reviewer="Ada", wording=named))
    assert (drafted.status, drafted.reviews[-1].wishes["sources"]) == (Status.DRAFT, ("other.py [entry]",))
    workspace.save_task(task)
    again = decide(workspace, ABSENT, Answer(decision="send_back", reviewer="Ada", comment="look in other.py"))
    assert again.status is Status.DRAFT
    workspace.save_task(task)
    with pytest.raises(ExpbenchError, match="needs a comment"):
        decide(workspace, ABSENT, Answer(decision="reject", reviewer="Ada"))
    rejected = decide(workspace, ABSENT, Answer(decision="reject", reviewer="Ada", comment="No such experiment."))
    assert rejected.status is Status.REJECTED


def test_no_rule_accepts_it(workspace: Workspace) -> None:
    applied, waiting = approve_by_rule(workspace, parse_rule("confidence>=0, claims>=0"))
    assert (applied, waiting) == ([CANDIDATE], [ABSENT])
    assert workspace.load_task(ABSENT).reviews == ()


def test_a_release_leaves_it_out_and_says_who_accepted_it(workspace: Workspace, tmp_path: Path) -> None:
    """There is no truth that an agent's work could be graded by; `--accept-all` accepts release candidates only."""
    released = release(workspace, out=tmp_path / "first", accept_all=True, name="demo")
    assert (released.tasks, workspace.load_task(ABSENT).reviews) == (1, ())
    assert dict(released.withheld) == {ABSENT: "not_found: no script answers it, which nobody has accepted yet"}
    decide(workspace, ABSENT, Answer(decision="approve", reviewer="Ada"))
    released = release(workspace, out=tmp_path / "second", accept_all=False, name="demo")
    assert (released.tasks, workspace.load_task(ABSENT).status) == (1, Status.NOT_FOUND)
    assert dict(released.withheld) == {ABSENT: "not_found: no script answers it, accepted by Ada"}
