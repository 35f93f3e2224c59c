"""Retries by the table of failures, slots, and what a run is called: shared by all flows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, Literal

from prefect import runtime
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State, TaskRun
from prefect.concurrency.sync import concurrency
from prefect.tasks import Task

from pipeline.errors import ExpbenchError

__all__ = ["RETRIES", "RETRY_DELAYS", "paper_label", "slots", "tag_this_run", "worth_retrying"]

RETRIES: Final = 4
RETRY_DELAYS: Final = [10.0, 30.0, 120.0, 300.0]
"""Seconds. Short first: most retries are for a workspace that another run holds for a moment."""

_LEASE_S: Final = 60.0
"""After a run was killed its slot is free again when the lease ends; a living run renews it."""


def paper_label(pdf: Path) -> str:
    """What a paper is called in names and tags before it was read: its file, or its directory for `paper.pdf`."""
    return pdf.stem if pdf.stem not in {"paper", "main"} else pdf.absolute().parent.name or pdf.stem


def worth_retrying(task: Task[..., Any], run: TaskRun, state: State[Any]) -> bool:
    """Prefect's `retry_condition_fn`: the table of failures decides (`pipeline.errors.FAILURES`).

    What is not an `ExpbenchError` is a defect: trying again would only hide it.
    """
    error = state.result(raise_on_failure=False)
    return isinstance(error, ExpbenchError) and error.failure.retry


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


def tag_this_run(**tags: str) -> None:
    """Add `name:value` tags to the flow run this is called in, so that runs of a paper or task are found by them."""
    run_id = runtime.flow_run.id
    if not run_id:
        return
    with get_client(sync_client=True) as client:
        known = client.read_flow_run(run_id).tags
        wanted = sorted({*known, *(f"{name}:{value}" for name, value in tags.items() if value)})
        if wanted != sorted(known):
            client.update_flow_run(run_id, tags=wanted)


Engine = Literal["keyless", "model"]
SandboxName = Literal["docker", "process"]
