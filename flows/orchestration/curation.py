"""The flows of curation: `curate-paper`, `curate`, `validate-task`, `mask-task`, `release`.

Thin on purpose: each calls the same function as its command, with Prefect's log, retries by the table of failures and
slots around it. They have no cached results: the workspace's stage records are keyed by the content digests of all
inputs, so a repeated or resumed run finds what is finished there, and nothing that was deleted there is ever claimed.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Final

from prefect import flow, runtime
from pydantic import Field

from flows.curate import CurateOptions, default_workspace
from flows.curate import curate as run_curate
from flows.engines import ModelOptions
from flows.orchestration.enqueue import enqueue_reviews
from flows.orchestration.guard import (
    Engine,
    SandboxName,
    at_work,
    paper_label,
    slots,
    stage_task,
    tag_this_run,
)
from flows.orchestration.names import CURATE_PAPER, DEPLOYMENT, RELEASE
from flows.orchestration.reporting import PrefectReporter
from flows.outcome import Outcome
from flows.release import release as run_release
from flows.stages_alone import mask_task as run_mask
from flows.stages_alone import validate_task as run_validate
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.repository import check_source
from pipeline.settings import Settings
from pipeline.store import Workspace

__all__ = ["curate_item", "curate_paper", "mask_task", "release", "validate_task"]

CURATE_TIMEOUT_S: Final = 48 * 3600
STAGE_TIMEOUT_S: Final = 24 * 3600
"""Ends of a run that hangs. What runs other people's code has limits of its own, far below (`Settings.limits`)."""


def _curate_name() -> str:
    parameters = runtime.flow_run.parameters
    return f"curate {paper_label(Path(str(parameters.get('pdf'))))}"


@flow(name=CURATE_PAPER, flow_run_name=_curate_name, persist_result=True, timeout_seconds=CURATE_TIMEOUT_S)
def curate_paper(
    pdf: Path,
    repository: str,
    commit: str | None = None,
    out: Path | None = None,
    engine: Engine | None = None,
    sandbox: SandboxName | None = None,
    repeats: Annotated[int, Field(ge=1, le=100)] | None = None,
    max_tasks: Annotated[int, Field(ge=1)] | None = None,
    allow_missing_submodules: bool = False,
    model: str | None = None,
    budget_usd: Annotated[Decimal, Field(ge=0)] | None = None,
    max_calls: Annotated[int, Field(ge=0)] | None = None,
    max_tokens: Annotated[int, Field(ge=0)] | None = None,
    review: bool = True,
) -> dict[str, Any]:
    """One paper and its repository through extract, locate, trace, validate and mask; then reviews are asked for.

    A run on a workspace that exists goes on with it when it was made from the same inputs.

    Args:
        pdf: the paper, as the worker sees it.
        repository: its git repository: a path or a URL.
        commit: commit, tag or branch; default: HEAD.
        out: workspace to write; default: expbench-<paper> in the worker's directory.
        engine: keyless needs no language model; default: the worker's settings.
        sandbox: where the repository's code runs; default: Docker when usable.
        repeats: clean re-executions per task; default: the worker's settings.
        max_tasks: at most so many draft tasks, best first.
        allow_missing_submodules: go on without submodules that cannot be fetched.
        model: name of the model, with engine model; default: the worker's EXPBENCH_MODEL.
        budget_usd: with engine model, stop before more dollars are spent in this workspace.
        max_calls: with engine model, stop before more calls are made.
        max_tokens: with engine model, stop before more tokens are used.
        review: ask for a review of each release candidate.
    """
    options = _options(
        {
            "pdf": at_work(pdf), "repository": _repository(repository), "commit": commit,
            "out": at_work(out or default_workspace(pdf)), "engine": engine, "sandbox": sandbox,
            "repeats": repeats, "max_tasks": max_tasks, "allow_missing_submodules": allow_missing_submodules,
        },
        ModelOptions(name=model, budget_usd=budget_usd, max_calls=max_calls, max_tokens=max_tokens),
    )  # fmt: skip
    _check_inputs(options)
    tag_this_run(paper=paper_label(pdf), stage="curate", engine=options.engine)
    outcome = run_stages(options)
    runs: list[str] = []
    if review:  # of candidates, and of tasks that no script answers
        runs = ask_for_reviews(outcome.workspace)
    return {**outcome.model_dump(mode="json"), "reviews": runs}


def _repository(given: str) -> str:
    """A local path is one of the worker's; anything else (a URL) is left as it is."""
    local = at_work(Path(given)) if "://" not in given and not given.startswith("git@") else None
    return str(local) if local is not None and local.exists() else given


def _options(given: Mapping[str, Any], model: ModelOptions) -> CurateOptions:
    """The options of a paper; what was left out is as the worker's settings say."""
    settings = Settings()
    chosen = {name: value for name, value in given.items() if value is not None}
    defaults = {"engine": settings.engine, "sandbox": settings.sandbox, "repeats": settings.repeats}
    return CurateOptions.model_validate({**defaults, **chosen, "resume": True, "model": model})


def _check_inputs(options: CurateOptions) -> None:
    """A wrong path is the commonest mistake: worker and submitter may have different directories."""
    if not options.pdf.is_file():
        raise ExpbenchError(
            FailureKind.PAPER_INVALID,
            str(options.pdf),
            f"there is no such file for the worker, which runs in {Path.cwd()}",
            consequence="Nothing was started",
            next_step="Give an absolute path on the worker's machine, or a path in its directory",
        )
    check_source(options.repository)


@stage_task("stages", tags=["stage:curate"])
def run_stages(options: CurateOptions) -> Outcome:
    """All stages of one paper; a retry goes on from what was finished."""
    with slots(engine=options.engine, sandbox=options.sandbox):
        return run_curate(options, PrefectReporter(paper_label(options.pdf)), Settings())


@stage_task("paper", run_name="curate {item[pdf]}", tags=["stage:curate"])
def curate_item(item: dict[str, Any], deployment: str) -> dict[str, Any]:
    """One paper of a list as a task run, in a thread or on a cluster: as the flow `curate-paper` does it.

    Args:
        item: parameters of `curate-paper`.
        deployment: name of the deployment that asks for the reviews.
    """
    given = {name: value for name, value in item.items() if name != "review"}
    options = _options(given, ModelOptions())
    _check_inputs(options)
    with slots(engine=options.engine, sandbox=options.sandbox):
        outcome = run_curate(options, PrefectReporter(paper_label(options.pdf)), Settings())
    made = []
    if item.get("review"):
        made = enqueue_reviews(Workspace(outcome.workspace), deployment=deployment)
    return {**outcome.model_dump(mode="json"), "reviews": [str(review.run) for review in made]}


@stage_task("ask for reviews", tags=["stage:review"])
def ask_for_reviews(workspace: Path) -> list[str]:
    """Suspended review runs for the candidates of a workspace, on the pool this run is on."""
    made = enqueue_reviews(Workspace(workspace), deployment=runtime.deployment.name or DEPLOYMENT)
    return [str(item.run) for item in made]


@flow(
    name="validate-task",
    flow_run_name="validate {task_id}",
    persist_result=True,
    timeout_seconds=STAGE_TIMEOUT_S,
)
def validate_task(workspace: Path, task_id: str) -> dict[str, str]:
    """Re-execute one task of a workspace again, and mask it when it passes.

    Args:
        workspace: the workspace's directory, as the worker sees it.
        task_id: id of the task.
    """
    return _stage(workspace, task_id, "validate")


@flow(name="mask-task", flow_run_name="mask {task_id}", persist_result=True, timeout_seconds=STAGE_TIMEOUT_S)
def mask_task(workspace: Path, task_id: str) -> dict[str, str]:
    """Mask one validated task of a workspace again, with leak scan and round trip.

    Args:
        workspace: the workspace's directory, as the worker sees it.
        task_id: id of the task.
    """
    return _stage(workspace, task_id, "mask")


def _stage(workspace: Path, task_id: str, stage: str) -> dict[str, str]:
    opened = Workspace(at_work(workspace))
    tag_this_run(paper=opened.info().paper_id, task=task_id, stage=stage)
    return run_one_stage(opened.root, task_id, stage)


@stage_task("stage", run_name="{stage} {task_id}")
def run_one_stage(workspace: Path, task_id: str, stage: str) -> dict[str, str]:
    """One stage of one task."""
    opened = Workspace(workspace)
    inputs = opened.info().inputs
    work = run_validate if stage == "validate" else run_mask
    with slots(engine=inputs.engine, sandbox=inputs.sandbox):
        done = work(opened, task_id, Settings(), PrefectReporter(task_id))
    return {"task": done.id, "status": done.status.value, "reason": done.status_reason}


@flow(name=RELEASE, flow_run_name="release {workspace}", persist_result=True, timeout_seconds=STAGE_TIMEOUT_S)
def release(workspace: Path, out: Path | None = None, name: str | None = None) -> dict[str, Any]:
    """Write the approved tasks of a workspace as a data set; approval without a person is not offered here.

    Args:
        workspace: the workspace's directory, as the worker sees it.
        out: directory to write; default: WORKSPACE/release.
        name: name of the data set; default: the paper's id.
    """
    opened = Workspace(at_work(workspace))
    tag_this_run(paper=opened.info().paper_id, stage="release")
    return write_release(opened.root, at_work(out) if out else None, name)


@stage_task("write release", tags=["stage:release"])
def write_release(workspace: Path, out: Path | None, name: str | None) -> dict[str, Any]:
    """The release; an earlier one in the same place is replaced as a whole."""
    return run_release(Workspace(workspace), out=out, accept_all=False, name=name).model_dump(mode="json")
