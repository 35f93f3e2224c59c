"""`expbench evaluate`: options become a run record, an agent, a sandbox and graders; the harness does the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from evaluation.agents.base import AgentAdapter
from evaluation.agents.registry import get_agent
from evaluation.harness.run import (
    JudgeRecord,
    RunRecord,
    begin_run,
    open_run,
    require_place,
    run_episodes,
    run_owner,
    task_digest,
)
from evaluation.scores import EpisodeScores, EpisodeStatus
from evaluation.task import EvaluationTask
from flows.engines import ModelOptions
from flows.evaluation_checks import (
    agent_sandbox,
    blocked_tasks,
    matching,
    obstacles,
    require_available,
    require_judge,
    require_launch,
    require_no_secrets,
    upstreams_and_prices,
    without_unused_model,
)
from flows.evaluation_records import EvaluateOptions, EvaluationOutcome, EvaluationPlan, Obstacle
from flows.grading_model import grading_model
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.progress import Reporter
from pipeline.scratch import scratch_directory
from pipeline.version import version

if TYPE_CHECKING:
    from evaluation.harness.episode_runner import EpisodeRunner
    from pipeline.llm import ModelClient

__all__ = [
    "CarryOut", "EvaluateOptions", "EvaluationOutcome", "EvaluationPlan", "Prepared", "episode_runner", "evaluate",
    "in_threads", "load_chosen", "parse_network", "plan", "recorded_options",
]  # fmt: skip

_WORKSPACES: Final = "workspaces"


def plan(options: EvaluateOptions, reporter: Reporter) -> EvaluationPlan:
    """What `evaluate` would do, and what is in its way; nothing is run and nothing is written to the run's directory.

    Raises:
        ExpbenchError: `USAGE`, there is no such agent, option or task; `RECORD_INVALID`, the source cannot be read.
    """
    agent = get_agent(options.agent, options.agent_options)
    options = without_unused_model(options, agent)
    with scratch_directory() as scratch:
        tasks = load_chosen(options, Path(scratch), reporter)
        checks = (
            lambda: require_available(agent), lambda: require_no_secrets(options), lambda: require_judge(options),
            agent_sandbox, lambda: require_place(options.root, resume=options.resume),
            # reads what the tasks were unpacked to, so that it has to be asked in here
            lambda: require_launch(agent, options, tasks),
        )  # fmt: skip
        found = obstacles(checks)
        blocked = {error.object: error.cause for error in blocked_tasks(tasks)}
    from evaluation.lock import environment_spec

    availability = agent.availability()
    open_tasks = [task for task in tasks if task.id not in blocked]
    episodes = len(tasks) * options.repeats
    rounds = -(-len(open_tasks) * options.repeats // options.workers)
    return EvaluationPlan(
        run=options.root,
        agent=agent.name,
        agent_version=agent.version,
        available=availability.available,
        detail=availability.detail,
        model=options.model,
        judge=_judge_name(options),
        episodes=episodes,
        tasks=tuple(task.id for task in tasks),
        blocked=tuple(blocked.items()),
        environments=len({environment_spec(task).digest for task in open_tasks}),
        longest_hours=round(rounds * options.limits.wall_s / 3600, 2),
        obstacles=tuple(
            Obstacle(message=str(error), exit_code=error.exit_code)
            for error in {str(error): error for error in found}.values()
        ),
    )


@dataclass(frozen=True)
class Prepared:
    """A run whose directory is held and whose `run.yaml` is written: what is left is to carry out its episodes."""

    options: EvaluateOptions
    record: RunRecord
    tasks: tuple[EvaluationTask, ...]
    agent: AgentAdapter
    client: ModelClient | None
    """The judging model; None: keyless."""


class CarryOut(Protocol):
    """Brings all episodes of a run to their end: in threads of this process, or elsewhere (`flows.orchestration`)."""

    def __call__(self, prepared: Prepared, reporter: Reporter) -> Sequence[EpisodeScores]: ...  # noqa: D102


def evaluate(options: EvaluateOptions, reporter: Reporter, carry_out: CarryOut | None = None) -> EvaluationOutcome:
    """Run an agent on the tasks of a source.

    Args:
        options: what is asked for.
        reporter: progress.
        carry_out: who carries the episodes out; None: `in_threads`.

    Raises:
        ExpbenchError: `USAGE` (agent, options, patterns), `TOOL_MISSING` (the agent is not installed),
            `SANDBOX_UNAVAILABLE` (no Docker Engine), `WORKSPACE_CONFLICT`, `WORKSPACE_LOCKED`, `RECORD_INVALID`,
            `AUTHENTICATION` and others of the model layer, `BUDGET_EXCEEDED`, `INTERRUPTED`.
    """
    from flows.episode_alone import leave_no_orphans

    agent = get_agent(options.agent, options.agent_options)
    options = without_unused_model(options, agent)
    require_available(agent)
    require_no_secrets(options)
    require_judge(options)
    if carry_out is None:
        agent_sandbox()  # before anything is written; elsewhere each machine has an engine of its own
    root = options.root
    upstreams_and_prices(options)
    with open_run(root, resume=options.resume), grading_model(options.judge, options.judging, root) as client:
        tasks = load_chosen(options, root / _WORKSPACES, reporter)
        record = _record(options, agent, tasks)
        require_launch(agent, options, tasks)
        for error in blocked_tasks(tasks):
            reporter.warn(str(error))
        begin_run(root, record)
        leave_no_orphans(root, record, here=carry_out is None)
        prepared = Prepared(options=options, record=record, tasks=tuple(tasks), agent=agent, client=client)
        rows = (carry_out or in_threads)(prepared, reporter)
    return _outcome(options, rows)


def in_threads(prepared: Prepared, reporter: Reporter) -> list[EpisodeScores]:
    """All episodes of a run in this process, `workers` at once."""
    runner = episode_runner(prepared, owner=run_owner(prepared.options.root), reporter=reporter)
    return run_episodes(
        runner, prepared.tasks, repeats=prepared.options.repeats, workers=prepared.options.workers,
        sandbox=runner.agent_step.sandbox, reporter=reporter,
    )  # fmt: skip


def episode_runner(prepared: Prepared, *, owner: str, reporter: Reporter) -> EpisodeRunner:
    """What runs the episodes of a run: agent, sandbox, limits, graders.

    Args:
        prepared: the run.
        owner: label of the containers that are started.
        reporter: progress.
    """
    from evaluation.execution import validate_execution
    from evaluation.harness.agent_step import AgentStep
    from evaluation.harness.episode_runner import EpisodeRunner
    from evaluation.harness.graders import Graders

    options = prepared.options
    upstreams, prices = upstreams_and_prices(options)
    step = AgentStep(
        agent=prepared.agent, sandbox=agent_sandbox(), limits=options.limits, owner=owner, model=options.model,
        upstreams=upstreams, prices=prices, allow=options.network, gpu_type=options.gpu_type,
    )  # fmt: skip
    graders = Graders(
        execution=partial(validate_execution, perturbing=options.counterfactual), client=prepared.client,
        panel=options.panel, execute_all=options.execute_all,
    )  # fmt: skip
    return EpisodeRunner(
        root=options.root, run=prepared.record.run, agent_step=step, graders=graders,
        agent_options=options.agent_options, reporter=reporter,
    )  # fmt: skip


def recorded_options(record: RunRecord, root: Path, source: Path, judge_limits: ModelOptions) -> EvaluateOptions:
    """The options that a run was begun with, from its `run.yaml`.

    Args:
        record: `run.yaml`.
        root: the run's directory.
        source: where its tasks are now.
        judge_limits: of the judging model; they are no part of what makes runs comparable.
    """
    return EvaluateOptions(
        source=source, agent=record.agent, agent_options=record.agent_options, model=record.model,
        repeats=record.repeats, limits=record.limits, gpu_type=record.gpu_type,
        judge="model" if record.judge.engine == "model" else "keyless", judge_model=record.judge.model,
        judge_limits=judge_limits, panel=record.judge.panel, out=root, resume=True, ablation=record.ablation,
        network=record.network, execute_all=record.judge.execute_all, counterfactual=record.judge.counterfactual,
    )  # fmt: skip


def parse_network(text: str) -> tuple[str, ...]:
    """`none`, or `allow=HOST,HOST`: the hosts.

    Raises:
        ExpbenchError: `USAGE`.
    """
    if text == "none":
        return ()
    word, _, hosts = text.partition("=")
    found = tuple(sorted({host.strip().lower() for host in hosts.split(",") if host.strip()}))
    if word != "allow" or not found or any("/" in host or ":" in host or host == "*" for host in found):
        raise ExpbenchError(
            FailureKind.USAGE, f"--network {text}", "is neither `none` nor `allow=HOST,...` with names of hosts",
            consequence="No episode was run", next_step="Say for example `--network allow=pypi.org,*.pythonhosted.org`",
        )  # fmt: skip
    return found


def load_chosen(options: EvaluateOptions, scratch: Path, reporter: Reporter) -> list[EvaluationTask]:
    """The tasks of a source that the patterns choose, ablated where that is asked for.

    Raises:
        ExpbenchError: `USAGE`, none matches; and see `evaluation.sources.load_tasks`.
    """
    from evaluation.ablations import ablate, parse_ablation
    from evaluation.sources import load_tasks

    # first without repositories: those of the tasks that are not asked for are not built
    found, problems = load_tasks(options.source, scratch=scratch, reporter=reporter, build=not options.tasks)
    for problem in problems:
        reporter.warn(f"{problem.where}: {problem.message}")
    chosen = matching(found, options.tasks, options.source, "No episode was run")
    if options.tasks:
        only = tuple(task.id for task in chosen)
        chosen, more = load_tasks(options.source, scratch=scratch, reporter=reporter, only=only)
        for problem in more:
            if problem not in problems:
                reporter.warn(f"{problem.where}: {problem.message}")
    if not options.ablation:
        return chosen
    ablation = parse_ablation(options.ablation)
    return [ablate(task, ablation).task for task in chosen]


def _record(options: EvaluateOptions, agent: AgentAdapter, tasks: Sequence[EvaluationTask]) -> RunRecord:
    return RunRecord(
        run=options.root.name,
        source=str(options.source),
        agent=agent.name,
        agent_version=agent.version,
        agent_options=options.agent_options,
        model=options.model,
        repeats=options.repeats,
        limits=options.limits,
        gpu_type=options.gpu_type,
        network=options.network,
        ablation=options.ablation,
        judge=JudgeRecord(
            engine=options.judge,
            model=_judge_model(options),
            panel=options.panel,
            execute_all=options.execute_all,
            counterfactual=options.counterfactual,
        ),
        tasks={task.id: task_digest(task) for task in tasks},
        expbench=version(),
    )


def _judge_model(options: EvaluateOptions) -> str | None:
    if options.judge == "keyless":
        return None
    from pipeline.llm import model_config_from_environment

    return model_config_from_environment(options.judge_model).model


def _judge_name(options: EvaluateOptions) -> str:
    model = _judge_model(options)
    if model is None:
        return "keyless"
    return model if options.panel == 1 else f"{model}, panel of {options.panel}"


def _outcome(options: EvaluateOptions, rows: Sequence[EpisodeScores]) -> EvaluationOutcome:
    count = {status: sum(row.status is status for row in rows) for status in EpisodeStatus}
    return EvaluationOutcome(
        run=options.root,
        agent=options.agent,
        model=options.model,
        judge=_judge_name(options),
        episodes=len(rows),
        scored=count[EpisodeStatus.SCORED],
        blocked=count[EpisodeStatus.BLOCKED],
        unknown=count[EpisodeStatus.UNKNOWN],
        rows=tuple(rows),
    )
