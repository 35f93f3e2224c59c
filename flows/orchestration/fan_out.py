"""Many runs of one deployment, a bounded number at a time: papers of a list, episodes of a run, runs of a sweep.

Each has its own run, process, log, retries and cancellation, on whatever work pool its deployment names. The run that
fans out only counts: it is ended or restarted without harm, finds its runs again by their keys, and takes those with
it when it is cancelled. Non-goal: what the runs do.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from prefect import runtime
from prefect.artifacts import create_table_artifact
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.objects import FlowRun, State
from prefect.deployments import run_deployment
from prefect.logging import get_run_logger
from prefect.states import Cancelling, Completed, Failed

from flows.orchestration.guard import patient_client
from flows.orchestration.names import DEPLOYMENT

__all__ = ["Job", "Progress", "completed", "deployed_as", "end_of", "run_bounded"]

_POLL_S: Final = 5.0
"""Papers and episodes take minutes to hours; a request every five seconds is nothing to the server."""
_CRASHES: Final = 3
"""Tries of a run whose process was lost: a worker that is restarted loses each of its runs once."""


@dataclass(frozen=True)
class Job:
    """One run to be submitted."""

    key: str
    """Unique among the jobs; with the id of the run that fans out it makes the run's idempotency key."""
    label: str
    """For the log."""
    parameters: Mapping[str, Any]
    tags: tuple[str, ...] = ()


@dataclass
class Progress:
    """How far a fan-out is; `ended` is by the jobs' keys."""

    ended: dict[str, FlowRun] = field(default_factory=dict)

    @property
    def failed(self) -> list[str]:
        """Keys of the jobs that did not complete."""
        return [key for key, run in self.ended.items() if run.state is None or not run.state.is_completed()]


def deployed_as() -> str:
    """Name of the deployment that this run is of: what it submits goes to the same pool."""
    return runtime.deployment.name or DEPLOYMENT


def run_bounded(flow: str, jobs: Sequence[Job], concurrency: int, *, give_up: bool = False) -> dict[str, FlowRun]:
    """Submit the jobs as runs of `flow` on this run's pool and follow them to their end.

    Args:
        flow: name of the deployed flow.
        jobs: what to run, in this order.
        concurrency: runs at a time; the worker needs one more slot for the run that fans out.
        give_up: after the first run that failed, end those under way and submit no more.

    Returns:
        Key of the job -> its last run; with `give_up`, some are missing.
    """
    log = get_run_logger()
    waiting, active, progress = list(jobs), dict[UUID, Job](), Progress()
    tries: dict[str, int] = {}
    with patient_client() as client:
        try:
            while waiting or active:
                while waiting and len(active) < concurrency:
                    job = waiting.pop(0)
                    tries[job.key] = tries.get(job.key, 0) + 1
                    run = _submit(flow, job, tries[job.key])
                    active[run.id] = job
                    log.info("%s: submitted as %s", job.label, run.name)
                for run in _ended(client, list(active)):
                    job = active.pop(run.id)
                    log.info("%s: %s", job.label, run.state.name if run.state else "unknown")
                    if run.state is not None and run.state.is_crashed() and tries[job.key] < _CRASHES:
                        waiting.insert(0, job)
                        continue
                    progress.ended[job.key] = run
                if give_up and progress.failed:
                    break
                if active:
                    time.sleep(_POLL_S)
        finally:
            for run_id in active:  # not empty only when this run is being ended, or gives up
                client.set_flow_run_state(run_id, Cancelling(message="The run that asked for it was ended."))
    return progress.ended


def completed(state: State[Any] | None) -> bool:
    """Did a run end well?"""
    return state is not None and state.is_completed()


def end_of(
    rows: Sequence[tuple[Mapping[str, str], State[Any] | None]], key: str, description: str, message: str
) -> State[Any]:
    """The state of a run that fanned out: it completes when one of its runs did; a table says how each ended.

    Args:
        rows: what names a run, and how it ended.
        key: of the table.
        description: of the table.
        message: how many completed.
    """
    table = [
        {
            **named, "state": state.name if state else "unknown",
            "what happened": "" if state is None or completed(state) else state.message or "",
        }
        for named, state in rows
    ]  # fmt: skip
    create_table_artifact(table, key=key, description=description)
    good = sum(completed(state) for _, state in rows)
    if not good:
        return Failed(message=message)
    return Completed(message=message, name="Completed" if good == len(rows) else "Partly completed")


def _submit(flow: str, job: Job, attempt: int) -> FlowRun:
    again = "" if attempt == 1 else f":{attempt}"
    run = run_deployment(
        f"{flow}/{deployed_as()}",
        parameters=dict(job.parameters),
        timeout=0,
        as_subflow=True,
        idempotency_key=f"{runtime.flow_run.id}:{job.key}{again}",
        tags=list(job.tags),
    )
    assert isinstance(run, FlowRun), "the synchronous call returns the run"
    return run


def _ended(client: SyncPrefectClient, active: list[UUID]) -> list[FlowRun]:
    runs: list[FlowRun] = []
    for start in range(0, len(active), 100):
        wanted = FlowRunFilter(id=FlowRunFilterId(any_=active[start : start + 100]))
        runs += client.read_flow_runs(flow_run_filter=wanted, limit=100)
    return [run for run in runs if run.state is not None and run.state.is_final()]
