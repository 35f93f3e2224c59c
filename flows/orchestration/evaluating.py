"""The flows of evaluation: `evaluate`, `evaluate-episode`, `judge`, `sweep`.

Thin on purpose, like those of curation: the same functions as the commands', with Prefect's log, retries by the table
of failures and slots around them. A run's directory is the truth: a flow that is run again finds what is finished in
it, and what is not finished goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Final

from prefect import flow, runtime, task
from prefect.artifacts import create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from pydantic import Field

from evaluation.harness.run import read_run
from evaluation.scores import EpisodeScores
from flows.engines import ModelOptions
from flows.episode_alone import evaluate_episode as run_episode
from flows.episode_alone import scores_of
from flows.evaluate import EvaluateOptions, EvaluationOutcome, Prepared
from flows.evaluate import evaluate as run_evaluation
from flows.grading_model import limited
from flows.judging import judge_run
from flows.orchestration.evaluation_options import EvaluationParameters, SweepEntry, options_from
from flows.orchestration.fan_out import Job, completed, end_of, run_bounded
from flows.orchestration.guard import Engine, at_work, slots, stage_task, tag_this_run
from flows.orchestration.names import EVALUATE, EVALUATE_EPISODE
from flows.orchestration.reporting import PrefectReporter
from flows.orchestration.task_runners import Spread, map_items, task_runner
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm import CacheMode
from pipeline.progress import Reporter

__all__ = ["evaluate", "evaluate_episode", "judge", "sweep"]

EVALUATE_TIMEOUT_S: Final = 30 * 24 * 3600
EPISODE_TIMEOUT_S: Final = 24 * 3600
"""Ends of a run that hangs; the agent's own wall time (40 minutes by default) is kept by the harness."""
JUDGE_TIMEOUT_S: Final = 48 * 3600


def _evaluate_name() -> str:
    parameters = runtime.flow_run.parameters
    return f"evaluate {parameters.get('agent')} on {Path(str(parameters.get('source'))).name}"


@flow(name=EVALUATE, flow_run_name=_evaluate_name, persist_result=True, timeout_seconds=EVALUATE_TIMEOUT_S)
def evaluate(
    source: Path,
    agent: str,
    out: Path | None = None,
    model: str | None = None,
    repeats: Annotated[int, Field(ge=1, le=100)] = 1,
    tasks: list[str] | None = None,
    concurrency: Annotated[int, Field(ge=1, le=1000)] = 2,
    spread: Spread = "runs",
    cluster: str | None = None,
    parameters: EvaluationParameters | None = None,
) -> dict[str, Any]:
    """An agent on the tasks of a source, each task `repeats` times; a run on a directory that exists goes on with it.

    Args:
        source: workspace, release or published data, as the worker sees it.
        agent: name of the agent (`expbench agents`).
        out: run to write; default: expbench-run-<agent> in the worker's directory.
        model: the agent's model; default: the worker's EXPBENCH_MODEL.
        repeats: episodes per task.
        tasks: patterns of task ids; default: all.
        concurrency: episodes at a time; with spread=runs the worker needs one more slot for this run.
        spread: each episode as a run of its own, or as a task run in threads, on Dask or on Ray.
        cluster: address of a running Dask scheduler or Ray head; default: one is started for this run.
        parameters: limits, network and graders.
    """
    given = parameters or EvaluationParameters()
    options = options_from(
        given,
        source=at_work(source),
        agent=agent,
        out=at_work(out or Path(f"expbench-run-{agent}")),
        model=model,
        repeats=repeats,
        tasks=tasks,
        concurrency=concurrency,
    )
    tag_this_run(agent=agent, model=options.model or "", stage="evaluate", gpu="yes" if options.limits.gpus else "")
    _require_one_purse(options, spread, concurrency)

    def carry_out(prepared: Prepared, reporter: Reporter) -> Sequence[EpisodeScores]:
        if spread == "runs":
            return _as_runs(prepared, concurrency)
        return _as_tasks(prepared, spread, concurrency, cluster)

    outcome = run_evaluation(options, PrefectReporter(f"{agent} on {source.name}"), carry_out)
    _table_of(outcome)
    return outcome.model_dump(mode="json", exclude={"rows"})


@flow(
    name=EVALUATE_EPISODE,
    flow_run_name="{task_id}/{repeat}",
    persist_result=True,
    timeout_seconds=EPISODE_TIMEOUT_S,
)
def evaluate_episode(
    run: Path,
    source: Path,
    task_id: str,
    repeat: Annotated[int, Field(ge=0)] = 0,
    judge_limits: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """One episode of a run that `evaluate` began, from wherever it stands.

    Args:
        run: the run's directory, as the worker sees it.
        source: where the run's tasks are.
        task_id: the task.
        repeat: which episode of it, from 0.
        judge_limits: what the judging model may cost.
    """
    run, source = at_work(run), at_work(source)
    record = read_run(run)
    gpu = "yes" if record.limits.gpus else ""
    tag_this_run(agent=record.agent, task=task_id, stage="evaluate-episode", gpu=gpu)
    return carry_out_episode(
        {"task": task_id, "repeat": repeat}, run=run, source=source, judge_limits=judge_limits or {}
    )


# never cached: the episode's own files say what is finished
@stage_task("episode", run_name="{item[task]}/{item[repeat]}", tags=["stage:evaluate-episode"])
def carry_out_episode(item: dict[str, Any], run: Path, source: Path, judge_limits: dict[str, Any]) -> dict[str, Any]:
    """One episode; a retry goes on behind its last finished step."""
    record = read_run(run)
    uses_model = record.model is not None or record.judge.engine == "model"
    with slots(engine="model" if uses_model else "keyless", sandbox="docker", gpus=record.limits.gpus):
        scores = run_episode(
            run, source, item["task"], item["repeat"], judge_limits=ModelOptions.model_validate(judge_limits),
            reporter=PrefectReporter(f"{item['task']}/{item['repeat']}"),
        )  # fmt: skip
    return {"task": scores.task, "repeat": scores.repeat, "status": scores.status.value, "reason": scores.reason}


@flow(name="judge", flow_run_name="judge {run.name}", persist_result=True, timeout_seconds=JUDGE_TIMEOUT_S)
def judge(
    run: Path,
    engine: Engine = "keyless",
    model: str | None = None,
    panel: Annotated[int, Field(ge=1, le=15)] = 1,
    monitor: bool = True,
    source: Path | None = None,
    budget_usd: Annotated[Decimal, Field(ge=0)] | None = None,
    max_calls: Annotated[int, Field(ge=0)] | None = None,
    max_tokens: Annotated[int, Field(ge=0)] | None = None,
    cache: CacheMode = CacheMode.USE,
) -> dict[str, Any]:
    """The episodes of a run graded again, from what was saved: no container, no agent.

    Args:
        run: the run's directory, as the worker sees it.
        engine: who judges: rules, or a language model.
        model: the judging model; default: the worker's EXPBENCH_MODEL.
        panel: draws of the model that vote.
        monitor: check integrity again, too.
        source: where the tasks are, when they moved since the run.
        budget_usd: stop before the judge has cost more dollars in this run.
        max_calls: stop before the judge has made more calls in this run.
        max_tokens: stop before the judge has used more tokens in this run.
        cache: use recorded answers, ask anew, or only replay.
    """
    run, source = at_work(run), at_work(source) if source else None
    tag_this_run(stage="judge", agent=read_run(run).agent)
    options = ModelOptions(name=model, budget_usd=budget_usd, max_calls=max_calls, max_tokens=max_tokens, cache=cache)
    return grade_again(run, engine, options, panel, monitor, source)


@stage_task("grade again", tags=["stage:judge"])
def grade_again(
    run: Path, engine: Engine, options: ModelOptions, panel: int, monitor: bool, source: Path | None
) -> dict[str, Any]:
    """All episodes; answers that were paid for are recorded in the run, and found again by a retry."""
    with slots(engine=engine, sandbox="process"):
        done = judge_run(
            run, engine=engine, options=options, panel=panel, monitor=monitor, source=source,
            reporter=PrefectReporter(run.name),
        )  # fmt: skip
    return {
        "run": done.run, "graded": len(done.graded), "left": [list(item) for item in done.left],
        "changed": list(done.changed),
    }  # fmt: skip


@flow(name="sweep", flow_run_name="sweep {out.name}", timeout_seconds=EVALUATE_TIMEOUT_S)
def sweep(
    source: Path,
    out: Path,
    entries: Annotated[list[SweepEntry], Field(min_length=1)],
    repeats: Annotated[int, Field(ge=1, le=100)] = 1,
    tasks: list[str] | None = None,
    concurrency: Annotated[int, Field(ge=1, le=1000)] = 2,
    runs_at_once: Annotated[int, Field(ge=1, le=100)] = 1,
    parameters: EvaluationParameters | None = None,
) -> State[Any]:
    """Several agents, models or settings on the same tasks: one `evaluate` run each, then a report over all.

    The run completes when at least one of them did; the others are in its table, each with its run.

    Args:
        source: workspace, release or published data, as the worker sees it.
        out: directory that gets one run per entry, and `report`.
        entries: agent, model, options and name of each run.
        repeats: episodes per task.
        tasks: patterns of task ids; default: all.
        concurrency: episodes at a time in each run.
        runs_at_once: runs at a time; the worker needs a slot for each, one for this run, and those of the episodes.
        parameters: limits, network and graders, the same for all.
    """
    _require_distinct(entries)
    out = at_work(out)
    tag_this_run(stage="sweep", source=source.name)
    shared = {
        "source": str(at_work(source)), "repeats": repeats, "tasks": tasks, "concurrency": concurrency,
    }  # fmt: skip
    jobs = [
        Job(
            key=entry.label,
            label=entry.label,
            parameters=shared | {
                "agent": entry.agent, "model": entry.model, "out": str(out.resolve() / entry.label),
                "parameters": (parameters or EvaluationParameters()).with_agent_options(entry.agent_options),
            },
            tags=(f"agent:{entry.agent}", "stage:evaluate"),
        )
        for entry in entries
    ]  # fmt: skip
    ended = run_bounded(EVALUATE, jobs, runs_at_once)
    good_runs = [out.resolve() / job.key for job in jobs if completed(ended[job.key].state)]
    if good_runs:
        write_sweep_report(good_runs, out.resolve() / "report")
    rows = [({"run": job.label}, ended[job.key].state) for job in jobs]
    return end_of(rows, "sweep", f"Runs in {out}", f"{len(good_runs)} of {len(jobs)} runs were completed")


@task(name="report", cache_policy=NO_CACHE, tags=["stage:report"])
def write_sweep_report(runs: list[Path], into: Path) -> str:
    """The report over all runs of a sweep, as `expbench report RUN... --out` writes it."""
    from flows.results import make_report, write_report

    reporter = PrefectReporter(into.parent.name)
    results, report = make_report(runs, public=False, reporter=reporter)
    write_report(results, report, into, "html", title=into.parent.name, public=False, pages=True, reporter=reporter)
    return str(into / "index.html")


# --- episodes, spread


def _as_runs(prepared: Prepared, concurrency: int) -> list[EpisodeScores]:
    """A run of `evaluate-episode` for each episode that is not finished."""
    options = prepared.options
    jobs = [
        Job(
            key=f"{task_id}/{repeat}",
            label=f"{task_id}/{repeat}",
            parameters={
                "run": str(options.root), "source": str(options.source.resolve()), "task_id": task_id,
                "repeat": repeat, "judge_limits": options.judge_limits.model_dump(mode="json"),
            },
            tags=(f"agent:{options.agent}", f"task:{task_id}", "stage:evaluate-episode"),
        )
        for task_id, repeat in _unfinished(prepared)
    ]  # fmt: skip
    ended = run_bounded(EVALUATE_EPISODE, jobs, concurrency, give_up=True)
    for key, run in sorted(ended.items()):
        if run.state is None or not run.state.is_completed():
            raise _ended_by(key, (run.state and run.state.message) or "no state")
    return _rows(prepared)


def _as_tasks(prepared: Prepared, spread: Spread, concurrency: int, cluster: str | None) -> list[EpisodeScores]:
    """The episodes as task runs of this flow run."""
    options = prepared.options
    items = [{"task": task_id, "repeat": repeat} for task_id, repeat in _unfinished(prepared)]
    states = map_items(
        carry_out_episode,
        items,
        task_runner(spread, concurrency, cluster),
        run=options.root,
        source=options.source.resolve(),
        judge_limits=options.judge_limits.model_dump(mode="json"),
    )
    for item, state in zip(items, states, strict=True):
        if not state.is_completed():
            raise _ended_by(f"{item['task']}/{item['repeat']}", state.message or state.name or "")
    return _rows(prepared)


def _unfinished(prepared: Prepared) -> list[tuple[str, int]]:
    return [episode for episode in prepared.record.episodes if _scores(prepared, *episode) is None]


def _scores(prepared: Prepared, task_id: str, repeat: int) -> EpisodeScores | None:
    """Scores that stand; blocked and unknown episodes get a new chance, as with `--resume`."""
    scores = scores_of(prepared.options.root, task_id, repeat)
    return scores if scores is not None and scores.status.value == "scored" else None


def _rows(prepared: Prepared) -> list[EpisodeScores]:
    rows = (scores_of(prepared.options.root, *episode) for episode in prepared.record.episodes)
    return [row for row in rows if row is not None]


def _ended_by(episode: str, cause: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.INTERRUPTED, episode, cause,
        consequence="The other episodes were given up where they were; what is finished is kept",
        next_step="Mend the cause, then submit the same run again: it goes on",
    )  # fmt: skip


def _require_one_purse(options: EvaluateOptions, spread: Spread, concurrency: int) -> None:
    """A budget is kept by one process; several would each spend what is left of it."""
    if options.judge == "model" and limited(options.judge_limits) and concurrency > 1:
        raise ExpbenchError(
            FailureKind.USAGE, f"spread={spread}, concurrency={concurrency}",
            "a budget of the judge is kept by one process at a time",
            consequence="No episode was run",
            next_step="Use concurrency=1, or evaluate without the model and give the budget to the flow `judge`",
        )  # fmt: skip


def _require_distinct(entries: Sequence[SweepEntry]) -> None:
    labels = [entry.label for entry in entries]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise ExpbenchError(
            FailureKind.USAGE, ", ".join(twice), "is the name of several entries",
            consequence="Nothing was started", next_step="Give each entry a name of its own",
        )  # fmt: skip


def _table_of(outcome: EvaluationOutcome) -> None:
    rows = [
        {
            "episode": f"{row.task}/{row.repeat}", "status": row.status.value, "M": row.monitor, "D": row.design,
            "I": row.implementation, "E": row.execution, "C": row.conclusion, "why": row.reason,
        }
        for row in outcome.rows
    ]  # fmt: skip
    create_table_artifact(rows, key="episodes", description=f"Episodes of {outcome.run} (judge: {outcome.judge})")
