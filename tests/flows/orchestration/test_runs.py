"""Runs on a real server and worker: reviews without a process, bad input, cancellation."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from flows.examples import materialise
from flows.review import Answer, ReviewPolicy, Wording, content_digest, decide, write_policy
from pipeline.files import is_locked
from pipeline.store import Workspace
from pipeline.task import Status
from tests.flows.orchestration.machine import Machine, wait_until
from tests.flows.review.support import candidate, review_workspace

pytestmark = pytest.mark.prefect

FIRST, SECOND = "paper-table-1-accuracy", "paper-table-2-accuracy"


def ask(workspace: Workspace) -> dict[str, Any]:
    from flows.orchestration.enqueue import enqueue_reviews

    return {item.task: item for item in enqueue_reviews(workspace)}


def answer(machine: Machine, run: str, workspace: Workspace, task: str, **given: str) -> Any:
    """What the form would send: all fields, as prefilled, and what the reviewer put in."""
    wording = Wording.of(workspace.load_task(task)).model_dump()
    with machine.client() as client:
        return client.resume_flow_run(UUID(run), run_input={**wording, "comment": "", **given})


def test_reviews_wait_without_a_process_and_are_asked_for_once(machine: Machine) -> None:
    workspace = review_workspace(machine.directory / "waiting", candidate(FIRST), candidate(SECOND, confidence=0.4))
    first = ask(workspace)
    assert list(first) == [SECOND, FIRST], "the most doubtful first"
    assert all(item.new for item in first.values())
    again = ask(workspace)
    assert {task: item.run for task, item in again.items()} == {task: item.run for task, item in first.items()}
    assert not any(item.new for item in again.values())
    for item in first.values():
        run = machine.run(item.run)
        assert run.state is not None
        assert (run.state.name, run.run_count, run.infrastructure_pid) == ("Suspended", 0, None)
        assert {"expbench-review", "paper:paper", f"task:{run.parameters['task_id']}"} <= set(run.tags)
    decide(workspace, FIRST, Answer(decision="approve", reviewer="Ada"))
    assert list(ask(workspace)) == [SECOND]
    ended = machine.run(first[FIRST].run)
    assert ended.state is not None
    assert ended.state.name == "Cancelled", "what was decided in the terminal is not asked for any more"


def test_the_server_refuses_what_the_form_forbids(machine: Machine) -> None:
    workspace = review_workspace(machine.directory / "refusing")
    run = str(ask(workspace)[FIRST].run)
    for given, field in (
        ({"decision": "reject", "reviewer": "Ada"}, "comment"),
        ({"decision": "send back to locate", "reviewer": "Ada", "comment": " "}, "comment"),
        ({"decision": "approve", "reviewer": ""}, "reviewer"),
        ({"decision": "approve"}, "reviewer"),
        ({"decision": "perhaps", "reviewer": "Ada"}, "decision"),
        ({"decision": "approve", "reviewer": "Ada", "status": "approved"}, "status"),
    ):
        refused = answer(machine, run, workspace, FIRST, **given)
        assert refused.status.value == "REJECT", given
        assert field in refused.details.reason
    assert machine.run(run).state.name == "Suspended"
    assert workspace.load_task(FIRST).reviews == ()


def test_a_run_asks_again_until_two_people_agree_on_what_they_saw(machine: Machine) -> None:
    workspace = review_workspace(machine.directory / "agreeing")
    write_policy(workspace, ReviewPolicy(reviewers=2))
    run = str(ask(workspace)[FIRST].run)

    def next_question() -> bool:
        state = machine.run(run).state
        assert state is not None
        assert state.name not in {"Failed", "Crashed"}, state.message
        return state.name == "Suspended" and state.state_details.pause_key == "review-1"

    assert answer(machine, run, workspace, FIRST, decision="approve", reviewer="Ada").status.value == "ACCEPT"
    wait_until(next_question, "the run to ask for another reviewer")
    assert str(ask(workspace)[FIRST].run) == run, "the run that asks already is found, whichever question it is at"
    assert workspace.load_task(FIRST).status is Status.MASKED
    assert answer(machine, run, workspace, FIRST, decision="approve", reviewer="Grace").status.value == "ACCEPT"
    machine.wait_for(run, "Completed")
    task = workspace.load_task(FIRST)
    assert task.status is Status.APPROVED
    assert [review.reviewer for review in task.reviews] == ["Ada", "Grace"]
    assert {review.after for review in task.reviews} == {content_digest(task)}
    assert [review.run for review in task.reviews] == [f"{run}/0", f"{run}/1"]


def test_bad_input_is_refused_with_our_message(machine: Machine, tmp_path: Path) -> None:
    told = machine.prefect(
        "deployment", "run", "curate-paper/local", "-p", "pdf=x.pdf", "-p", "repository=y", "-p", "engine=oracle",
        expect=1,
    )  # fmt: skip
    assert "engine" in told
    run = machine.submit("curate-paper", pdf="missing.pdf", repository=tmp_path)
    ended = wait_until(lambda: state if (state := machine.run(run).state) and state.is_final() else None, "its end")
    assert ended.name == "Failed"
    assert "missing.pdf: there is no such file for the worker, which runs in" in str(ended.message)
    assert "Give an absolute path" in str(ended.message)


def test_items_are_carried_out_by_the_workers_of_a_dask_cluster(machine: Machine) -> None:
    """One worker process of its own; an item that fails is told and takes no other with it."""
    pytest.importorskip("prefect_dask")
    from prefect import task

    from flows.orchestration.task_runners import map_items, task_runner

    @task
    def inverse(item: dict[str, int], top: int) -> tuple[int, float]:
        import os

        return os.getpid(), top / item["below"]

    states = map_items(inverse, [{"below": 2}, {"below": 0}], task_runner("dask", 1), top=1)
    assert [state.name for state in states] == ["Completed", "Failed"]
    process, value = states[0].result()
    assert (process != os.getpid(), value) == (True, 0.5)
    assert "division by zero" in str(states[1].message)


@pytest.mark.docker
def test_a_cancelled_run_leaves_nothing_behind(machine: Machine, tmp_path: Path) -> None:
    import docker

    from flows.curate import CurateOptions
    from flows.orchestration.submit import submit_curation

    example = materialise("agreement-weights", tmp_path / "example")
    workspace = Workspace(machine.directory / "cancelled")
    options = CurateOptions(
        pdf=example.paper, repository=str(example.repository), out=workspace.root, max_tasks=1, repeats=1
    )
    told = submit_curation(options, review=False)
    assert told.workspace == workspace.root
    run = str(told.run)
    engine = docker.from_env()
    try:
        ours = {"all": True, "filters": {"label": f"expbench.owner={workspace.owner}"}}
        wait_until(lambda: engine.containers.list(**ours), "a container of the run")
        machine.prefect("flow-run", "cancel", run)
        machine.wait_for(run, "Cancelled")
        wait_until(lambda: not is_locked(workspace.lock_path), "the lock to be released")
        assert engine.containers.list(**ours) == []
    finally:
        engine.close()
    assert [path for path in workspace.root.rglob("*.tmp") if ".runs" not in path.parts] == []
    assert workspace.exists()
