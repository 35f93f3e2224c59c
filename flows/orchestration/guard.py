"""Retries by the table of failures, slots, and what a run is called: shared by all flows."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, Literal, ParamSpec, TypeVar

from httpx import TransportError
from prefect import runtime, task
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun, State, TaskRun
from prefect.client.schemas.responses import DeploymentResponse
from prefect.concurrency.sync import concurrency
from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError
from prefect.settings import PREFECT_CLIENT_RETRY_EXTRA_CODES, temporary_settings
from prefect.tasks import Task

from pipeline.errors import ExpbenchError, FailureKind

__all__ = [
    "WORK_VARIABLE", "Engine", "SandboxName", "at_work", "find_deployment", "paper_label", "patient", "patient_client",
    "read_all_runs", "slots", "stage_task", "tag_this_run", "worth_retrying",
]  # fmt: skip

_RETRY_DELAYS: Final = [10.0, 30.0, 120.0, 300.0]
"""Seconds. Short first: most retries are for a workspace that another run holds for a moment."""

P = ParamSpec("P")
R = TypeVar("R")

_LEASE_S: Final = 60.0
"""After a run was killed its slot is free again when the lease ends; a living run renews it."""


WORK_VARIABLE: Final = "EXPBENCH_WORK"
"""Directory that relative paths of a run's parameters begin in; the pools that run in containers set it."""


def at_work(path: Path) -> Path:
    """An absolute path for a parameter of a run; relative ones begin in EXPBENCH_WORK, else where the worker runs.

    Raises:
        ExpbenchError: `USAGE`: Prefect gave the run a temporary directory (it does so in containers), which is removed
            with it: a workspace written there would be lost, and its reviews would ask about nothing.
    """
    if path.is_absolute():
        return path
    base = os.environ.get(WORK_VARIABLE)
    here = Path(base) if base else Path.cwd()
    if not base and here.parent == Path(tempfile.gettempdir()) and here.name.startswith("prefect-"):
        raise ExpbenchError(
            FailureKind.USAGE,
            str(path),
            f"is relative, and this run works in {here}, which is removed when it ends",
            consequence="Nothing was started",
            next_step=f"Give absolute paths, or set {WORK_VARIABLE} in the work pool's environment",
        )
    return here / path


def paper_label(pdf: Path) -> str:
    """What a paper is called in names and tags before it was read: its file, or its directory for `paper.pdf`."""
    return pdf.stem if pdf.stem not in {"paper", "main"} else pdf.absolute().parent.name or pdf.stem


def worth_retrying(task: Task[..., Any], run: TaskRun, state: State[Any]) -> bool:
    """Prefect's `retry_condition_fn`: the table of failures decides (`pipeline.errors.FAILURES`).

    So is a call of Prefect's own that its server could not answer: 6 of 1,000 items of a simulation on SQLite were lost
    while its log said "database is locked" 42 times, although each call was tried five times. Whatever else is no
    `ExpbenchError` is a defect: trying again would only hide it.
    """
    error = state.result(raise_on_failure=False)
    if isinstance(error, PrefectHTTPStatusError):
        return error.response.status_code >= 500
    if isinstance(error, TransportError):
        return True
    return isinstance(error, ExpbenchError) and error.failure.retry


def stage_task(
    name: str | None = None, *, run_name: str | None = None, tags: Sequence[str] = ()
) -> Callable[[Callable[P, R]], Task[P, R]]:
    """A task that is retried by the table of failures, and never cached: what is finished lies in our own store.

    Args:
        name: of the task; default: the function's.
        run_name: of its runs, a template over its parameters.
        tags: of its runs.
    """
    return task(
        name=name, task_run_name=run_name, tags=list(tags), cache_policy=NO_CACHE, retries=len(_RETRY_DELAYS),
        retry_delay_seconds=_RETRY_DELAYS, retry_condition_fn=worth_retrying,
    )  # fmt: skip


@contextmanager
def slots(*, engine: str, sandbox: str | None, gpus: int = 0) -> Iterator[None]:
    """Hold slots of the global concurrency limits; waits for them. A limit that does not exist bounds nothing."""
    wanted = [
        ("expbench-docker", 1 if sandbox != "process" else 0),
        ("expbench-model", 1 if engine == "model" else 0),
        ("expbench-gpu", gpus),
    ]
    with ExitStack() as stack:
        for name, occupy in wanted:
            if occupy:
                stack.enter_context(concurrency(name, occupy=occupy, lease_duration=_LEASE_S, strict=False))
        yield


@contextmanager
def patient() -> Iterator[None]:
    """Prefect calls of the block are tried again when the server answers 500, too (five times, with growing pauses).

    With SQLite behind it, a server under load answers so ("database is locked") where it could say 503, which Prefect's
    client already retries. What was locked out changed nothing, so that the same call may be made again.
    """
    with temporary_settings({PREFECT_CLIENT_RETRY_EXTRA_CODES: {500}}):
        yield


@contextmanager
def patient_client() -> Iterator[SyncPrefectClient]:
    """A client of the server whose calls are `patient`."""
    with patient(), get_client(sync_client=True) as client:
        yield client


def find_deployment(client: SyncPrefectClient, name: str, *, consequence: str, then: str) -> DeploymentResponse:
    """The deployment of this name.

    Raises:
        ExpbenchError: `RECORD_INVALID`: the server has none.
    """
    try:
        return client.read_deployment_by_name(name)
    except ObjectNotFound as error:
        raise ExpbenchError(
            FailureKind.RECORD_INVALID, name, "the Prefect server has no such deployment", consequence=consequence,
            next_step=f"Run `expbench up` (or `prefect deploy`), {then}",
        ) from error  # fmt: skip


def read_all_runs(client: SyncPrefectClient, **filters: Any) -> list[FlowRun]:
    """The flow runs that fit, from as many pages as there are."""
    runs: list[FlowRun] = []
    while page := client.read_flow_runs(**filters, limit=200, offset=len(runs)):
        runs += page
    return runs


def tag_this_run(**tags: str) -> None:
    """Add `name:value` tags to the flow run this is called in, so that runs of a paper or task are found by them."""
    run_id = runtime.flow_run.id
    if not run_id:
        return
    with patient_client() as client:
        known = client.read_flow_run(run_id).tags
        wanted = sorted({*known, *(f"{name}:{value}" for name, value in tags.items() if value)})
        if wanted != sorted(known):
            client.update_flow_run(run_id, tags=wanted)


Engine = Literal["keyless", "model"]
SandboxName = Literal["docker", "process"]
