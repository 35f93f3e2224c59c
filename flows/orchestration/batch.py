"""The flow `curate`: a list of papers, each as a `curate-paper` run of its own, a bounded number at a time.

Each paper has its own run, process, log, retries and cancellation, on whatever work pool its deployment names. The
batch itself only counts: it is ended or restarted without harm, finds its papers' runs again by their key, and takes
those with it when it is cancelled.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any, Final
from uuid import UUID

from prefect import flow, get_client, runtime
from prefect.artifacts import create_table_artifact
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.objects import FlowRun, State
from prefect.deployments import run_deployment
from prefect.logging import get_run_logger
from prefect.states import Cancelling, Completed, Failed
from pydantic import Field

from flows.curate import default_workspace
from flows.orchestration.curation import CURATE_TIMEOUT_S
from flows.orchestration.guard import Engine, SandboxName, paper_label, tag_this_run
from flows.orchestration.names import CURATE_PAPER, DEPLOYMENT
from flows.orchestration.source_list import Source, read_sources

__all__ = ["curate"]

_POLL_S: Final = 5.0
"""Papers take minutes to hours; a request every five seconds is nothing to the server."""


@flow(name="curate", flow_run_name="curate list {sources.name}", timeout_seconds=30 * CURATE_TIMEOUT_S)
def curate(
    sources: Path,
    out: Path,
    concurrency: Annotated[int, Field(ge=1, le=1000)] = 2,
    engine: Engine | None = None,
    sandbox: SandboxName | None = None,
    repeats: Annotated[int, Field(ge=1, le=100)] | None = None,
    max_tasks: Annotated[int, Field(ge=1)] | None = None,
    review: bool = True,
) -> State[Any]:
    """Curate all papers of a list.

    The run completes when at least one paper did; papers that failed are in its table, each with its run.

    Args:
        sources: JSON Lines or CSV with pdf, repository and, optionally, commit.
        out: directory that gets one workspace a paper.
        concurrency: papers at a time; the worker needs one more slot for this run.
        engine: as for curate-paper.
        sandbox: as for curate-paper.
        repeats: as for curate-paper.
        max_tasks: as for curate-paper.
        review: ask for a review of each release candidate.
    """
    papers = read_sources(sources)
    tag_this_run(stage="curate", list=sources.stem)
    shared = {"engine": engine, "sandbox": sandbox, "repeats": repeats, "max_tasks": max_tasks, "review": review}
    ended = _run_all(papers, out.resolve(), concurrency, shared)
    return _summary(papers, ended)


def _run_all(papers: list[Source], out: Path, concurrency: int, shared: dict[str, Any]) -> dict[str, FlowRun]:
    """Start and follow all papers; the runs that are under way are cancelled when this run is ended from outside."""
    log = get_run_logger()
    waiting, active, ended = list(papers), dict[UUID, Source](), dict[str, FlowRun]()
    names = _workspaces(papers)
    with get_client(sync_client=True) as client:
        try:
            while waiting or active:
                while waiting and len(active) < concurrency:
                    source = waiting.pop(0)
                    run = _start(source, out / names[source.digest], shared)
                    active[run.id] = source
                    log.info("%s: submitted as %s", paper_label(source.pdf), run.name)
                for run in _ended(client, list(active)):
                    source = active.pop(run.id)
                    ended[source.digest] = run
                    log.info("%s: %s", paper_label(source.pdf), run.state.name if run.state else "unknown")
                if active:
                    time.sleep(_POLL_S)
        finally:
            for run_id in active:  # not empty only when this run is being ended
                client.set_flow_run_state(run_id, Cancelling(message="The list's run was ended."))
    return ended


def _workspaces(papers: list[Source]) -> dict[str, str]:
    """A directory for each paper: as `expbench curate` would call it, with a digest where two would be the same."""
    plain = [default_workspace(source.pdf).name for source in papers]
    return {
        source.digest: name if plain.count(name) == 1 else f"{name}-{source.digest[:8]}"
        for source, name in zip(papers, plain, strict=True)
    }


def _start(source: Source, workspace: Path, shared: dict[str, Any]) -> FlowRun:
    run = run_deployment(
        f"{CURATE_PAPER}/{runtime.deployment.name or DEPLOYMENT}",
        parameters={
            "pdf": str(source.pdf),
            "repository": source.repository,
            "commit": source.commit,
            "out": str(workspace),
            **shared,
        },
        timeout=0,
        as_subflow=True,
        idempotency_key=f"{runtime.flow_run.id}:{source.digest}",
        tags=[f"paper:{paper_label(source.pdf)}", "stage:curate"],
    )
    assert isinstance(run, FlowRun), "the synchronous call returns the run"
    return run


def _ended(client: SyncPrefectClient, active: list[UUID]) -> list[FlowRun]:
    runs: list[FlowRun] = []
    for start in range(0, len(active), 100):
        wanted = FlowRunFilter(id=FlowRunFilterId(any_=active[start : start + 100]))
        runs += client.read_flow_runs(flow_run_filter=wanted, limit=100)
    return [run for run in runs if run.state is not None and run.state.is_final()]


def _summary(papers: list[Source], ended: dict[str, FlowRun]) -> State[Any]:
    rows = []
    for source in papers:
        run = ended[source.digest]
        state = run.state
        rows.append(
            {
                "paper": paper_label(source.pdf),
                "state": state.name if state else "unknown",
                "what happened": (state.message or "") if state and not state.is_completed() else "",
                "run": str(run.id),
            }
        )
    create_table_artifact(rows, key="curated-papers", description="The papers of the list and how their runs ended.")
    good = sum(run.state is not None and run.state.is_completed() for run in ended.values())
    message = f"{good} of {len(papers)} papers were curated"
    if not good:
        return Failed(message=message)
    return Completed(message=message, name="Completed" if good == len(papers) else "Partly completed")
