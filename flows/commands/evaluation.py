"""Commands that run agents: evaluate, agents, episodes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from flows.commands import evaluation_options as given
from flows.commands._episodes import print_rows
from flows.commands.shared import Json, agent_options_of, escape, print_value, resumable

if TYPE_CHECKING:
    from flows.evaluation_records import EvaluateOptions

__all__ = ["app"]

app = typer.Typer()


@app.command(
    epilog="Examples:\n\n"
    "  expbench evaluate work --agent oracle --out runs/oracle\n\n"
    "  expbench evaluate dataset --agent iterative --model gpt-5-mini --repeats 3 --workers 4 --max-usd 2\n\n"
    "  expbench evaluate dataset --agent command --agent-option script=agent.sh --tasks 'paper-*'\n\n"
    "  expbench evaluate dataset --agent iterative --model gpt-5-mini --out runs/it --resume\n\n"
    "Exit codes: 0 every episode that can be carried out has scores; 2 usage; 5 run or source; 6 no episode has "
    "scores; 7 an episode stayed unknown (the machinery failed), or no Docker Engine; 8 model or key; 9 budget; "
    "130 interrupted."
)
def evaluate(
    source: given.Source,
    agent: given.AgentName,
    agent_option: given.AgentOptions = None,
    model: given.AgentModel = None,
    tasks: given.TaskPatterns = None,
    repeats: given.Repeats = 1,
    workers: given.Workers = 1,
    out: given.RunToWrite = None,
    resume: given.Resume = False,
    dry_run: given.DryRun = False,
    wall_minutes: given.WallMinutes = 40.0,
    max_calls: given.MaxCalls = None,
    max_tokens: given.MaxTokens = None,
    max_usd: given.MaxUsd = None,
    cpus: given.Cpus = 2.0,
    memory_mb: given.MemoryMb = 4096,
    disk_mb: given.DiskMb = 4096,
    gpus: given.Gpus = 0,
    gpu_type: given.GpuType = None,
    network: given.Network = "none",
    judge: given.JudgeEngine = "keyless",
    judge_model: given.JudgeModel = None,
    panel: given.Panel = 1,
    judge_usd: given.JudgeUsd = None,
    judge_calls: given.JudgeCalls = None,
    judge_tokens: given.JudgeTokens = None,
    execute_all: given.ExecuteAll = False,
    counterfactual: given.Counterfactual = "auto",
    counterfactual_minutes: given.CounterfactualMinutes = 15.0,
    ablate: given.Ablate = "",
    json_output: Json = False,
) -> None:
    """Run an agent on tasks: masked workspace, agent, submission, monitor, re-execution, judge, scores."""
    from decimal import Decimal

    from flows.orchestration.evaluation_options import EvaluationParameters, options_from

    parameters = EvaluationParameters(
        agent_options=agent_options_of(agent_option or []), wall_minutes=wall_minutes, max_calls=max_calls,
        max_tokens=max_tokens, max_usd=max_usd, cpus=cpus, memory_mb=memory_mb, disk_mb=disk_mb, gpus=gpus,
        gpu_type=gpu_type, network=network, judge=judge, judge_model=judge_model, panel=panel,
        judge_budget_usd=None if judge_usd is None else Decimal(str(judge_usd)), judge_max_calls=judge_calls,
        judge_max_tokens=judge_tokens, execute_all=execute_all, counterfactual=counterfactual,
        counterfactual_minutes=counterfactual_minutes, ablate=ablate,
    )  # fmt: skip
    options = options_from(
        parameters, source=source, agent=agent, out=out, model=model, repeats=repeats, tasks=tasks, concurrency=workers
    )
    (_show_plan if dry_run else _evaluate)(options.evolve(resume=resume), json_output)


def _show_plan(options: EvaluateOptions, json_output: bool) -> None:
    from flows.evaluate import plan
    from flows.progress import TerminalReporter

    with TerminalReporter() as reporter:
        planned = plan(options, reporter)
    if json_output:
        print_value(planned.model_dump(mode="json"), True)
    else:
        model = planned.model or "none"
        shown = {
            "run": planned.run,
            "agent": f"{planned.agent} {planned.agent_version or ''}".strip() + f" ({planned.detail}); model: {model}",
            "judge": planned.judge,
            "episodes": f"{planned.episodes} of {len(planned.tasks)} task(s), {options.workers} at once; "
            f"at most {planned.longest_hours:g} hours",
            "environments": planned.environments,
            "tasks": "\n".join(planned.tasks),
            "blocked": "\n".join(f"{task}: {reason}" for task, reason in planned.blocked) or "none",
            "in the way": "\n".join(obstacle.message for obstacle in planned.obstacles) or "nothing",
        }
        print_value(shown, False)
    if planned.obstacles:
        raise typer.Exit(planned.obstacles[0].exit_code)


def _evaluate(options: EvaluateOptions, json_output: bool) -> None:
    from flows.evaluate import evaluate as run
    from flows.progress import TerminalReporter

    with resumable("expbench evaluate"), TerminalReporter() as reporter:
        outcome = run(options, reporter)
    if json_output:
        print_value(outcome.model_dump(mode="json"), True)
    else:
        console = Console()
        print_rows(console, outcome.rows)
        console.print(f"\n{outcome.scored} of {outcome.episodes} episode(s) have scores (judge: {outcome.judge})")
        console.print(f"Look at   expbench report {outcome.run}", soft_wrap=True)
    if outcome.unknown:
        raise typer.Exit(7)
    if outcome.scored == 0:
        raise typer.Exit(6)


@app.command(
    epilog="Examples:\n\n  expbench agents\n\n  expbench agents --install openhands\n\n  expbench agents --json\n\n"
    "Exit codes: 0; 2 no such agent; 7 a program or package that its installation needs is missing."
)
def agents(
    install: Annotated[
        list[str] | None, typer.Option(help="Build this agent's bundle first; may be repeated.", metavar="NAME")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Build it even if it is there.")] = False,
    json_output: Json = False,
) -> None:
    """List the agents, and what each needs to run here."""
    from rich.padding import Padding

    from evaluation.agents.registry import list_agents

    if install:
        from evaluation.agents.bundles import install_agent
        from flows.progress import TerminalReporter

        with TerminalReporter() as reporter:
            for name in install:
                install_agent(name, reporter, force=force)
    found = [(agent, agent.availability()) for agent in list_agents()]
    if json_output:
        value: list[dict[str, Any]] = [
            {"name": agent.name, "kind": agent.kind, "version": agent.version, "description": agent.description}
            | availability.model_dump(mode="json")
            for agent, availability in found
        ]
        print_value(value, True)
        return
    console = Console()
    for agent, availability in found:
        mark = "[green]ready[/green]  " if availability.available else "[yellow]missing[/yellow]"
        version = "" if agent.kind == "bound" else f"  [dim]{agent.version or ''}[/dim]"
        console.print(f"{mark}  [bold]{agent.name}[/bold]{version}", highlight=False)
        text = f"{agent.description}; {availability.detail}"
        text += f". {availability.next_step}" if availability.next_step else ""
        console.print(Padding(escape(text), (0, 0, 0, 9)), highlight=False)


@app.command(
    epilog="Examples:\n\n  expbench episodes runs/oracle\n\n  expbench episodes runs/oracle --json\n\n"
    "Exit codes: 0 well; 5 it is no run, or cannot be read."
)
def episodes(
    run: Annotated[Path, typer.Argument(help="A run that `expbench evaluate` wrote.", metavar="RUN")],
    json_output: Json = False,
) -> None:
    """List the episodes of a run: how far each came, and its scores."""
    from evaluation.harness.episode_runner import episode_folder
    from evaluation.harness.run import read_run, states
    from evaluation.scores import EpisodeScores

    record = read_run(run)
    listed = []
    for task, repeat, state in states(run, record):
        path = episode_folder(run, task, repeat).scores
        finished = state is not None and "score" in {step.value for step in state.finished} and path.is_file()
        scores = EpisodeScores.model_validate_json(path.read_bytes()) if finished else None
        listed.append((task, repeat, state, scores))
    if json_output:
        print_value(
            [
                {"task": task, "repeat": repeat, "state": state and state.model_dump(mode="json"),
                 "scores": scores and scores.model_dump(mode="json")}
                for task, repeat, state, scores in listed
            ],
            True,
        )  # fmt: skip
        return
    console = Console()
    print_rows(console, [scores for *_, scores in listed if scores is not None])
    for task, repeat, state, scores in listed:
        if scores is None:
            last = state.finished[-1].value if state and state.finished else "not begun"
            console.print(f"[dim]{escape(task)}/{repeat}: {last}[/dim]")
