"""Commands that run agents: evaluate, agents, episodes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from flows.commands._episodes import print_rows
from flows.commands.evaluation_options import Episodes
from flows.commands.option_groups import with_options
from flows.commands.shared import Json, agent_options_of, escape, print_json, print_value, resumable

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
@with_options(episodes=Episodes)
def evaluate(
    source: Annotated[
        Path, typer.Argument(help="Workspace, release, or published EXP-Bench data.", metavar="SOURCE", exists=True)
    ],
    agent: Annotated[str, typer.Option(help="Name of the agent (see `expbench agents`).")],
    agent_option: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE for the agent; may be repeated.", metavar="NAME=VALUE")
    ] = None,
    model: Annotated[str | None, typer.Option(help="The agent's model; default: EXPBENCH_MODEL.")] = None,
    tasks: Annotated[
        list[str] | None, typer.Option(help="Only tasks whose id matches; may be repeated.", metavar="GLOB")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Episodes per task.")] = 1,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Episodes at once.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Run to write; default: ./expbench-run-<agent>.", metavar="RUN")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run; finished steps are kept.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything and say what would be done.")] = False,
    *,
    episodes: Episodes,
    json_output: Json = False,
) -> None:
    """Run an agent on tasks: masked workspace, agent, submission, monitor, re-execution, judge, scores."""
    from flows.orchestration.evaluation_options import EvaluationParameters, options_from

    parameters = EvaluationParameters(agent_options=agent_options_of(agent_option or []), **episodes._asdict())
    options = options_from(
        parameters, source=source, agent=agent, out=out, model=model, repeats=repeats, tasks=tasks, concurrency=workers
    )
    (_show_plan if dry_run else _evaluate)(options.evolve(resume=resume), json_output)


def _show_plan(options: EvaluateOptions, json_output: bool) -> None:
    from flows.evaluate import plan
    from flows.progress import TerminalReporter

    with TerminalReporter() as reporter:
        planned = plan(options, reporter)
    if not print_json(planned, json_output):
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
    if not print_json(outcome, json_output):
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
