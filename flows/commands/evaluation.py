"""Commands that run agents: evaluate, agents, episodes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console

from flows.commands.shared import Json, agent_options_of, escape, print_value, resumable

if TYPE_CHECKING:
    from evaluation.scores import EpisodeScores

__all__ = ["app"]

app = typer.Typer()

_LIMITS = "Limits of an episode"
_GRADING = "Grading"


@app.command(
    epilog="Examples:\n\n"
    "  expbench evaluate workspace --agent oracle --out runs/oracle\n\n"
    "  expbench evaluate release --agent iterative --model gpt-5-mini --repeats 3 --workers 4 --max-usd 2\n\n"
    "  expbench evaluate release --agent command --agent-option script=agent.sh --tasks 'paper-*'\n\n"
    "  expbench evaluate release --agent iterative --model gpt-5-mini --out runs/it --resume\n\n"
    "Exit codes: 0 every episode that can be carried out has scores; 2 usage; 5 run or source; 6 no episode has "
    "scores; 7 an episode stayed unknown (the machinery failed), or no Docker Engine; 8 model or key; 9 budget; "
    "130 interrupted."
)
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
    wall_minutes: Annotated[
        float, typer.Option(min=0.01, help="Wall time (EXP-Bench: 40).", rich_help_panel=_LIMITS)
    ] = 40.0,
    max_calls: Annotated[int | None, typer.Option(min=0, help="Model calls.", rich_help_panel=_LIMITS)] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=0, help="Tokens, input and output.", rich_help_panel=_LIMITS)
    ] = None,
    max_usd: Annotated[float | None, typer.Option(min=0, help="Money for calls.", rich_help_panel=_LIMITS)] = None,
    cpus: Annotated[float, typer.Option(min=0.1, help="CPUs of an episode.", rich_help_panel=_LIMITS)] = 2.0,
    memory_mb: Annotated[int, typer.Option(min=64, help="Memory of an episode.", rich_help_panel=_LIMITS)] = 4096,
    disk_mb: Annotated[
        int, typer.Option(min=16, help="Counts as memory of this machine.", rich_help_panel=_LIMITS)
    ] = 4096,
    gpus: Annotated[int, typer.Option(min=0, help="GPUs of an episode.", rich_help_panel=_LIMITS)] = 0,
    gpu_type: Annotated[
        str | None, typer.Option(help="Part of the GPU's name, e.g. A40.", rich_help_panel=_LIMITS)
    ] = None,
    network: Annotated[
        str,
        typer.Option(
            help="What the agent may reach beside its model: `none`, or `allow=HOST,...` (TLS, recorded).",
            rich_help_panel=_LIMITS,
        ),
    ] = "none",
    judge: Annotated[
        Literal["keyless", "model"],
        typer.Option(help="Who grades; `keyless` needs no language model.", rich_help_panel=_GRADING),
    ] = "keyless",
    judge_model: Annotated[
        str | None, typer.Option(help="Name of the judge; default: EXPBENCH_MODEL.", rich_help_panel=_GRADING)
    ] = None,
    panel: Annotated[int, typer.Option(min=1, help="Votes per criterion.", rich_help_panel=_GRADING)] = 1,
    judge_usd: Annotated[
        float | None,
        typer.Option(min=0.0, help="Money that the judging model may cost in this run.", rich_help_panel=_GRADING),
    ] = None,
    judge_calls: Annotated[
        int | None, typer.Option(min=0, help="Calls that it may make.", rich_help_panel=_GRADING)
    ] = None,
    judge_tokens: Annotated[
        int | None, typer.Option(min=0, help="Tokens that it may use.", rich_help_panel=_GRADING)
    ] = None,
    execute_all: Annotated[
        bool,
        typer.Option("--execute-all", help="Re-execute what the monitor fails, too.", rich_help_panel=_GRADING),
    ] = False,
    ablate: Annotated[
        str,
        typer.Option(
            help="Leave out a share of the set-up (`method:0.5`), or a tool of the workspace (`tool:read-paper`).",
            rich_help_panel=_GRADING,
        ),
    ] = "",
    json_output: Json = False,
) -> None:
    """Run an agent on tasks: masked workspace, agent, submission, monitor, re-execution, judge, scores."""
    from decimal import Decimal

    from evaluation.episode import EpisodeLimits
    from flows.engines import ModelOptions
    from flows.evaluate import EvaluateOptions, parse_network, plan
    from flows.evaluate import evaluate as run
    from flows.progress import TerminalReporter
    from pipeline.llm import ModelSettings

    options = EvaluateOptions(
        source=source,
        agent=agent,
        agent_options=agent_options_of(agent_option or []),
        model=model or ModelSettings().name,
        tasks=tuple(tasks or ()),
        repeats=repeats,
        workers=workers,
        limits=EpisodeLimits(
            wall_s=wall_minutes * 60, model_calls=max_calls, tokens=max_tokens, money_usd=max_usd, cpus=cpus,
            memory_mb=memory_mb, disk_mb=disk_mb, gpus=gpus,
        ),
        gpu_type=gpu_type,
        judge=judge,
        judge_model=judge_model,
        judge_limits=ModelOptions(
            budget_usd=None if judge_usd is None else Decimal(str(judge_usd)), max_calls=judge_calls,
            max_tokens=judge_tokens,
        ),
        panel=panel,
        out=out,
        resume=resume,
        ablation=ablate,
        network=parse_network(network),
        execute_all=execute_all,
    )  # fmt: skip
    if dry_run:
        with TerminalReporter() as reporter:
            planned = plan(options, reporter)
        print_value(planned.model_dump(mode="json"), json_output)
        return
    with resumable("expbench evaluate"), TerminalReporter() as reporter:
        outcome = run(options, reporter)
    if json_output:
        print_value(outcome.model_dump(mode="json"), True)
    else:
        console = Console()
        _print_rows(console, outcome.rows)
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
    from rich.table import Table

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
    table = Table("agent", "", "kind", "version", "what it is, and needs", box=None, padding=(0, 2, 0, 0))
    for agent, availability in found:
        mark = "[green]ready[/green]" if availability.available else "[yellow]missing[/yellow]"
        text = f"{agent.description}; {availability.detail}"
        text += f". {availability.next_step}" if availability.next_step else ""
        table.add_row(f"[bold]{agent.name}[/bold]", mark, agent.kind, agent.version or "", escape(text))
    Console().print(table)


@app.command(epilog="Examples:\n\n  expbench episodes runs/oracle\n\n  expbench episodes runs/oracle --json")
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
    _print_rows(console, [scores for *_, scores in listed if scores is not None])
    for task, repeat, state, scores in listed:
        if scores is None:
            last = state.finished[-1].value if state and state.finished else "not begun"
            console.print(f"[dim]{escape(task)}/{repeat}: {last}[/dim]")


def _print_rows(console: Console, rows: list[EpisodeScores] | tuple[EpisodeScores, ...]) -> None:
    from rich.table import Table

    table = Table("episode", "status", "M", "D", "I", "E", "C", "USD", "s", box=None, padding=(0, 2, 0, 0))
    for row in rows:
        figures = [_share(value) for value in (row.monitor, row.design, row.implementation, row.execution)]
        cost = "?" if row.cost_usd is None else f"{row.cost_usd:.2f}"
        wall = "" if row.wall_s is None else f"{row.wall_s:.0f}"
        name = f"{escape(row.task)}/{row.repeat}"
        reason = f" [dim]{escape(row.reason)}[/dim]" if row.reason else ""
        table.add_row(name, row.status.value + reason, *figures, _share(row.conclusion), cost, wall)
    console.print(table)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
