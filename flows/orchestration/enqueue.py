"""Review runs without a process: made through the client API, already suspended, with their form attached.

A run that starts only to suspend itself costs a process start (11 to 28 s on two busy cores) and a worker's slot. So
each run is created in `Pending`, which no worker picks up, gets its form, and is set `Suspended`; the first process
starts when a person has answered. This leans on `force`, which skips the server's rules for changes of state: a test
covers it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote
from uuid import UUID

from prefect import runtime
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import ArtifactCreate
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.client.schemas.responses import DeploymentResponse
from prefect.exceptions import ObjectNotFound
from prefect.input.run_input import keyset_from_paused_state
from prefect.settings import get_current_settings
from prefect.states import Cancelled, Pending, Suspended

from flows.orchestration.form import form_for
from flows.orchestration.guard import find_deployment, patient_client, read_all_runs
from flows.orchestration.names import DEPLOYMENT, QUEUE_ARTIFACT, RELEASE, REVIEW_TAG, REVIEW_TASK
from flows.orchestration.reviewing import WAIT, Trail, question_key
from flows.review import QueueEntry, queue_of
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import Record
from pipeline.store import Workspace
from pipeline.task import Status

__all__ = ["Enqueued", "enqueue_reviews", "queue_url", "run_url"]

_ATTEMPTS: Final = 50
"""Earlier runs of the same content that ended without a decision (cancelled by hand) before we give up counting."""

_NOT_ENDED: Final = [StateType.PAUSED, StateType.SCHEDULED, StateType.PENDING, StateType.RUNNING]


class Enqueued(Record):
    """A task with the run that asks about it."""

    task: str
    run: UUID
    url: str
    new: bool
    risk: float
    reasons: tuple[str, ...]


def enqueue_reviews(workspace: Workspace, *, deployment: str = DEPLOYMENT, ask: bool = True) -> list[Enqueued]:
    """One suspended `review-task` run for each task of a workspace that waits for a person, the most doubtful first.

    Calling it again makes no second run for the same content, and cancels suspended runs of this workspace whose task
    was decided elsewhere or changed since. The queue is also written as a table artifact.

    Args:
        workspace: whose tasks.
        deployment: name of the deployment that the runs are of.
        ask: make runs for tasks that no run asks about yet; otherwise only those that do are looked at.

    Raises:
        ExpbenchError: `RECORD_INVALID` when the server has no such deployment.
    """
    paper = workspace.info().paper_id
    queue = queue_of(workspace)
    with patient_client() as client:
        target = find_deployment(
            client, f"{REVIEW_TASK}/{deployment}",
            consequence="No review was asked for; what was curated is in the workspace",
            then="then `expbench review WORKSPACE --prefect`",
        )  # fmt: skip
        under_way = _under_way(client, target, workspace, paper)
        if not ask:
            queue = [entry for entry in queue if any(_asks_about(workspace, run, entry) for run in under_way)]
        # the least doubtful first: the user interface lists the newest runs on top
        made = [_enqueue(client, target, workspace, paper, entry, under_way) for entry in reversed(queue)][::-1]
        kept = {item.run for item in made}
        for run in under_way:
            if run.id not in kept and run.state is not None and run.state.is_paused():
                message = "The task was decided or changed elsewhere; nothing is left to answer here."
                client.set_flow_run_state(run.id, Cancelled(message=message), force=True)
        release = _release_form(client, deployment, workspace)
    _write_queue(paper, made, release)
    return made


def _release_form(client: SyncPrefectClient, deployment: str, workspace: Workspace) -> str:
    """Where the user interface runs the release of this workspace, filled in; nothing while no task is approved."""
    if not any(task.status is Status.APPROVED for task in workspace.tasks()):
        return ""
    try:
        target = client.read_deployment_by_name(f"{RELEASE}/{deployment}")
    except ObjectNotFound:  # a pool may go without it: `expbench release` does the same
        return ""
    parameters = quote(json.dumps({"workspace": str(workspace.root)}))
    return f"{_ui()}/v2/deployments/deployment/{target.id}/run?parameters={parameters}"


def _write_queue(paper: str, made: Sequence[Enqueued], release: str) -> None:
    """The queue as a table artifact, a link to each form, and to the release once something is approved."""
    rows = [
        {"risk": item.risk, "task": f"[{item.task}]({item.url})", "look at": "; ".join(item.reasons)} for item in made
    ]
    data = rows or [{"risk": "", "task": "nothing waits for a person", "look at": ""}]
    text = f"{len(rows)} task(s) of {paper} wait for a person, the most doubtful first. All: {queue_url()}"
    if release:  # the table is a click further away than this text
        text += f"\n\n[Release what is approved]({release})"
    artifact = ArtifactCreate(
        key=QUEUE_ARTIFACT,
        type="table",
        description=text,
        data=json.dumps(data, ensure_ascii=False),
        flow_run_id=UUID(runtime.flow_run.id) if runtime.flow_run.id else None,
    )
    with patient_client() as client:  # `create_table_artifact` is for flow runs only
        client.create_artifact(artifact)


def queue_url() -> str:
    """Where the user interface lists the waiting reviews."""
    return f"{_ui()}/v2/runs?state=Suspended&tags={REVIEW_TAG}"


def run_url(run: UUID) -> str:
    """Where the user interface shows a run."""
    return f"{_ui()}/v2/runs/flow-run/{run}"


def _ui() -> str:
    settings = get_current_settings()
    return (settings.ui_url or (settings.api.url or "").removesuffix("/api")).rstrip("/")


def _enqueue(
    client: SyncPrefectClient,
    target: DeploymentResponse,
    workspace: Workspace,
    paper: str,
    entry: QueueEntry,
    under_way: Sequence[FlowRun],
) -> Enqueued:
    run = next((run for run in under_way if _asks_about(workspace, run, entry)), None)
    new = run is None
    run = run or _new_run(client, target, workspace, paper, entry)
    if run.state is not None and run.state.is_pending() and not run.empirical_policy.pause_keys:
        _suspend(client, run, workspace, entry)  # new, or left half-made by a process that was killed here
    return Enqueued(
        task=entry.task, run=run.id, url=run_url(run.id), new=new, risk=entry.risk, reasons=entry.reasons
    )  # fmt: skip


def _under_way(
    client: SyncPrefectClient, target: DeploymentResponse, workspace: Workspace, paper: str
) -> list[FlowRun]:
    """This workspace's review runs that have not ended."""
    from prefect.client.schemas.filters import (
        DeploymentFilter,
        DeploymentFilterId,
        FlowRunFilter,
        FlowRunFilterState,
        FlowRunFilterStateType,
        FlowRunFilterTags,
    )

    wanted = FlowRunFilter(
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=_NOT_ENDED)),
        tags=FlowRunFilterTags(all_=[REVIEW_TAG, f"paper:{paper}"]),
    )
    where = DeploymentFilter(id=DeploymentFilterId(any_=[target.id]))
    runs = read_all_runs(client, flow_run_filter=wanted, deployment_filter=where)
    return [run for run in runs if run.parameters.get("workspace") == str(workspace.root)]


def _asks_about(workspace: Workspace, run: FlowRun, entry: QueueEntry) -> bool:
    """Does the run ask about this content, or is it at work on this task just now?"""
    if run.parameters.get("task_id") != entry.task:
        return False
    if run.state is None or not run.state.is_paused():
        return True
    questions = Trail.load(workspace, str(run.id)).questions
    shown = questions[-1].shown if questions else run.parameters.get("content")
    return bool(shown == entry.content)


def _new_run(
    client: SyncPrefectClient, target: DeploymentResponse, workspace: Workspace, paper: str, entry: QueueEntry
) -> FlowRun:
    """A run that asks about this content; the key keeps two processes that enqueue at once from making two."""
    for number in range(_ATTEMPTS):
        run = client.create_flow_run_from_deployment(
            target.id,
            parameters={"workspace": str(workspace.root), "task_id": entry.task, "content": entry.content},
            name=f"review {entry.task}",
            tags=[REVIEW_TAG, f"paper:{paper}", f"task:{entry.task}", "stage:review"],
            state=Pending(),
            idempotency_key=f"review:{workspace.root}:{entry.task}:{entry.content}:{number}",
        )
        if run.state is None or not run.state.is_final():
            return run
    raise ExpbenchError(
        FailureKind.RECORD_INVALID,
        entry.task,
        f"{_ATTEMPTS} review runs of it ended without a decision",
        consequence="No further one was made",
        next_step="Decide in the terminal: expbench review WORKSPACE TASK",
    )


def _suspend(client: SyncPrefectClient, run: FlowRun, workspace: Workspace, entry: QueueEntry) -> None:
    key = question_key(0)
    state: State[Any] = Suspended(pause_key=key, timeout_seconds=int(WAIT.total_seconds()))
    keyset = keyset_from_paused_state(state)
    state.state_details.run_input_keyset = {str(name): value for name, value in keyset.items()}
    form_for(workspace, workspace.load_task(entry.task)).save(keyset, flow_run_id=run.id)
    policy = run.empirical_policy
    policy.pause_keys = {key}  # so that the flow's own call with this key returns the answer instead of suspending
    client.update_flow_run(run.id, empirical_policy=policy)
    client.set_flow_run_state(run.id, state, force=True)
