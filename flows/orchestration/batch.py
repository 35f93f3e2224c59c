"""The flow `curate`: a list of papers, a bounded number at a time.

By default each paper is a `curate-paper` run of its own (`flows.orchestration.fan_out`); in threads, or on a Dask or
Ray cluster, the papers are task runs of this one (`flows.orchestration.task_runners`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from prefect import flow
from prefect.client.schemas.objects import State
from pydantic import Field

from flows.curate import default_workspace
from flows.orchestration.curation import CURATE_TIMEOUT_S, curate_item
from flows.orchestration.fan_out import Job, completed, deployed_as, end_of, run_bounded
from flows.orchestration.guard import Engine, SandboxName, at_work, paper_label, tag_this_run
from flows.orchestration.names import CURATE_PAPER
from flows.orchestration.source_list import Source, read_sources
from flows.orchestration.task_runners import Spread, map_items, task_runner

__all__ = ["curate"]


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
    spread: Spread = "runs",
    cluster: str | None = None,
) -> State[Any]:
    """Curate all papers of a list.

    The run completes when at least one paper did; papers that failed are in its table, each with its run.

    Args:
        sources: JSON Lines or CSV with pdf, repository and, optionally, commit.
        out: directory that gets one workspace a paper.
        concurrency: papers at a time; with spread=runs the worker needs one more slot for this run.
        engine: as for curate-paper.
        sandbox: as for curate-paper.
        repeats: as for curate-paper.
        max_tasks: as for curate-paper.
        review: ask for a review of each release candidate.
        spread: each paper as a run of its own, or as a task run in threads, on Dask or on Ray.
        cluster: address of a running Dask scheduler or Ray head; default: one is started for this run.
    """
    papers = read_sources(at_work(sources))
    tag_this_run(stage="curate", list=sources.stem)
    shared = {"engine": engine, "sandbox": sandbox, "repeats": repeats, "max_tasks": max_tasks, "review": review}
    names = _workspaces(papers)
    jobs = [_job(source, at_work(out).resolve() / names[source.digest], shared) for source in papers]
    if spread == "runs":
        ended = run_bounded(CURATE_PAPER, jobs, concurrency)
        states = [ended[job.key].state for job in jobs]
        runs = [str(ended[job.key].id) for job in jobs]
    else:
        runner = task_runner(spread, concurrency, cluster)
        states = [*map_items(curate_item, [job.parameters for job in jobs], runner, deployment=deployed_as())]
        runs = ["a task run of this one"] * len(jobs)
    return _summary(papers, states, runs)


def _workspaces(papers: list[Source]) -> dict[str, str]:
    """A directory for each paper: as `expbench curate` would call it, with a digest where two would be the same."""
    plain = [default_workspace(source.pdf).name for source in papers]
    return {
        source.digest: name if plain.count(name) == 1 else f"{name}-{source.digest[:8]}"
        for source, name in zip(papers, plain, strict=True)
    }


def _job(source: Source, workspace: Path, shared: dict[str, Any]) -> Job:
    return Job(
        key=source.digest,
        label=paper_label(source.pdf),
        parameters={
            "pdf": str(source.pdf),
            "repository": source.repository,
            "commit": source.commit,
            "out": str(workspace),
            **shared,
        },
        tags=(f"paper:{paper_label(source.pdf)}", "stage:curate"),
    )


def _summary(papers: list[Source], states: list[State[Any] | None], runs: list[str]) -> State[Any]:
    rows = [
        ({"paper": paper_label(source.pdf), "run": run}, state)
        for source, state, run in zip(papers, states, runs, strict=True)
    ]
    message = f"{sum(map(completed, states))} of {len(papers)} papers were curated"
    return end_of(rows, "curated-papers", "The papers of the list and how their runs ended.", message)
