"""`expbench a2a`: green and white agents over the A2A protocol."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from flows.commands.shared import Json, agent_options_of, print_value, resumable

if TYPE_CHECKING:
    from pydantic import SecretStr

    from evaluation.a2a.messages import GreenRequest
    from evaluation.episode import EpisodeLimits
    from flows.a2a import WhiteOptions

__all__ = ["app"]

app = typer.Typer(help="Agents that talk over the A2A protocol: white ones solve, green ones evaluate.",
                  no_args_is_help=True)  # fmt: skip

Host = Annotated[
    str, typer.Option(help="Address to listen on; any but this machine's own needs a token. Nothing is encrypted.")
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        help="File with the bearer token that callers must send; default: EXPBENCH_A2A_TOKEN.", metavar="FILE"
    ),
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")]
Url = Annotated[str, typer.Option(help="URL under which others reach it, where that is not host and port.")]
AgentOption = Annotated[
    list[str] | None, typer.Option(help="NAME=VALUE for the agent; may be repeated.", metavar="NAME=VALUE")
]
Judge = Annotated[
    Literal["keyless", "model"], typer.Option(help="Who grades analysis and code.", rich_help_panel="Grading")
]
JudgeModel = Annotated[
    str | None, typer.Option(help="Name of the judge; default: EXPBENCH_MODEL.", rich_help_panel="Grading")
]
Draws = Annotated[int, typer.Option(min=1, help="Draws of the judging model.", rich_help_panel="Grading")]
Poll = Annotated[
    float, typer.Option(min=0.1, help="Seconds between two looks at the white agent.", rich_help_panel="Time")
]
Grace = Annotated[
    float, typer.Option(min=0, help="Beside an episode's time, for building and packing.", rich_help_panel="Time")
]


@app.command(
    epilog="Examples:\n\n  expbench a2a white --agent iterative --model gpt-5-mini --port 9002\n\n"
    "  expbench a2a white --agent command --agent-option script=agent.sh\n\n"
    "  EXPBENCH_A2A_TOKEN=$(cat token) expbench a2a white --agent iterative --host 0.0.0.0\n\n"
    "Exit codes: 2 usage, the address is taken, or it can be reached by others and no token is set; 7 no Docker "
    "Engine, or the agent is not installed; 8 model or key; 130 ended by Ctrl-C."
)
def white(
    agent: Annotated[str, typer.Option(help="Name of the agent (see `expbench agents`).")],
    agent_option: AgentOption = None,
    model: Annotated[str | None, typer.Option(help="The agent's model; default: EXPBENCH_MODEL.")] = None,
    wall_minutes: Annotated[float, typer.Option(min=0.01, help="Most time that a task gets.")] = 360.0,
    memory_mb: Annotated[int, typer.Option(min=64, help="Most memory that a task gets.")] = 8192,
    at_once: Annotated[int, typer.Option(min=1, help="Tasks at the same time.")] = 1,
    logs: Annotated[Path, typer.Option(help="Directory for the logs of environments.")] = Path("expbench-white"),
    host: Host = "127.0.0.1",
    port: Port = 9002,
    url: Url = "",
    token_file: TokenFile = None,
) -> None:
    """Answer as a white agent: one of ours in its container, for any green agent; ends with Ctrl-C."""
    from evaluation.a2a.access import OWN_TOKEN
    from flows.a2a import serve_white
    from flows.progress import TerminalReporter

    options = _white(agent, agent_option, model).evolve(
        ceilings=_ceilings(wall_minutes, memory_mb),
        at_once=at_once,
        host=host,
        port=port,
        url=url,
        logs=logs,
        token=_secret(OWN_TOKEN, token_file),
    )
    with resumable("expbench a2a white"), TerminalReporter() as reporter:
        serve_white(options, reporter, typer.echo)


@app.command(
    epilog="Examples:\n\n  expbench a2a green prbench --out runs/green --port 9001\n\n"
    "The white agent's own token, where it wants one, is EXPBENCH_A2A_WHITE_TOKEN.\n\n"
    "Exit codes: 2 usage, the address is taken, or a token is missing; 130 ended by Ctrl-C."
)
def green(
    source: Annotated[Path, typer.Argument(help="Directory with tasks.", metavar="SOURCE", exists=True)],
    out: Annotated[Path, typer.Option(help="Directory; each request writes a run below it.", metavar="DIR")],
    judge: Judge = "keyless",
    judge_model: JudgeModel = None,
    panel: Draws = 1,
    poll_s: Poll = 5.0,
    grace_minutes: Grace = 15.0,
    host: Host = "127.0.0.1",
    port: Port = 9001,
    url: Url = "",
    token_file: TokenFile = None,
) -> None:
    """Answer as a green agent: evaluate the white agent whose URL a message names; ends with Ctrl-C."""
    from evaluation.a2a.access import OWN_TOKEN, WHITE_TOKEN
    from flows.a2a import GreenOptions, serve_green
    from flows.progress import TerminalReporter

    options = GreenOptions(
        source=source, out=out, judge=judge, judge_model=judge_model, panel=panel, poll_s=poll_s,
        grace_minutes=grace_minutes, host=host, port=port, url=url,
        token=_secret(OWN_TOKEN, token_file), white_token=_secret(WHITE_TOKEN),
    )  # fmt: skip
    with resumable("expbench a2a green"), TerminalReporter() as reporter:
        serve_green(options, reporter, typer.echo)


@app.command(
    epilog="Examples:\n\n  expbench a2a evaluate prbench --white http://127.0.0.1:9002 --out runs/white\n\n"
    "  expbench a2a evaluate prbench --agent oracle --tasks 'task_white_*'\n\n"
    "  expbench a2a evaluate prbench --white http://solver:9002 --green http://grader:9001 --json\n\n"
    "Tokens of agents elsewhere: EXPBENCH_A2A_WHITE_TOKEN, EXPBENCH_A2A_GREEN_TOKEN.\n\n"
    "Exit codes: 0 every episode that can be carried out has scores; 2 usage; 5 run or source; 6 no episode has "
    "scores; 7 an agent does not answer, or an episode stayed unknown; 8 model, key or token; 130 interrupted."
)
def evaluate(
    source: Annotated[Path, typer.Argument(help="Directory with tasks.", metavar="SOURCE", exists=True)],
    white: Annotated[str | None, typer.Option(help="URL of a white agent that runs.", metavar="URL")] = None,
    agent: Annotated[str | None, typer.Option(help="Or: start this agent of ours as the white one.")] = None,
    agent_option: AgentOption = None,
    model: Annotated[str | None, typer.Option(help="Model of --agent; default: EXPBENCH_MODEL.")] = None,
    green: Annotated[
        str | None, typer.Option(help="URL of a green agent; default: ours, on a free port.", metavar="URL")
    ] = None,
    tasks: Annotated[
        list[str] | None, typer.Option(help="Only tasks whose id matches; may be repeated.", metavar="GLOB")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, max=100, help="Episodes per task.")] = 1,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Episodes at once.")] = 1,
    out: Annotated[Path, typer.Option(help="Run to write.", metavar="RUN")] = Path("expbench-run-a2a"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run; finished steps are kept.")] = False,
    wall_minutes: Annotated[
        float | None, typer.Option(min=0.01, help="Instead of the tasks' own time.", rich_help_panel="Time")
    ] = None,
    judge: Judge = "keyless",
    judge_model: JudgeModel = None,
    panel: Draws = 1,
    poll_s: Poll = 5.0,
    grace_minutes: Grace = 15.0,
    json_output: Json = False,
) -> None:
    """Evaluate a white agent through a green one; the run is like any other (`expbench report`)."""
    from evaluation.a2a.access import GREEN_TOKEN, WHITE_TOKEN
    from evaluation.episode import EpisodeLimits as Limits
    from flows.a2a import GreenOptions, evaluate_over_a2a
    from flows.progress import TerminalReporter
    from pipeline.errors import ExpbenchError, FailureKind

    if (white is None) == (agent is None):
        raise ExpbenchError(
            FailureKind.USAGE, "expbench a2a evaluate",
            "both --white and --agent are given" if white else "neither --white nor --agent is given",
            consequence="Nothing was evaluated", next_step="Name a running white agent, or one of ours to start",
        )  # fmt: skip
    limits = Limits() if wall_minutes is None else Limits(wall_s=wall_minutes * 60)
    chosen = tuple(tasks or ())
    options = GreenOptions(
        source=source, out=out, limits=limits, workers=workers, judge=judge, judge_model=judge_model, panel=panel,
        poll_s=poll_s, grace_minutes=grace_minutes, resume=resume, white_token=_secret(WHITE_TOKEN),
    )  # fmt: skip
    request = _request(white, chosen, repeats) if white else None
    starting = None
    if agent is not None:
        starting = _white(agent, agent_option, model).evolve(at_once=workers, logs=out / "environments")
    with resumable("expbench a2a evaluate"), TerminalReporter() as reporter:
        outcome = evaluate_over_a2a(
            options,
            request,
            starting,
            reporter,
            tasks=chosen,
            repeats=repeats,
            green_url=green or "",
            green_token=_secret(GREEN_TOKEN),
        )
    if json_output:
        print_value(outcome.summary | {"reports": outcome.reports}, True)
    else:
        print_value({name: outcome.summary[name] for name in ("run", "judge", "episodes", "scored", "unknown")}, False)
        reports: dict[str, Any] = outcome.reports
        for name, report in sorted(reports.items()):
            typer.echo(f"{name}: {report['grading']['summary']}")
    if outcome.summary["unknown"]:
        raise typer.Exit(7)
    if not outcome.summary["scored"]:
        raise typer.Exit(6)


def _request(url: str, tasks: tuple[str, ...], repeats: int) -> GreenRequest:
    from pydantic import ValidationError

    from evaluation.a2a.messages import GreenRequest as Request
    from pipeline.errors import ExpbenchError, FailureKind

    try:
        return Request(white_agent_url=url, tasks=tasks, repeats=repeats)
    except ValidationError as error:
        raise ExpbenchError(
            FailureKind.USAGE, f"--white {url}", "is no http or https URL",
            consequence="Nothing was evaluated", next_step="Give the URL that `expbench a2a white` prints",
        ) from error  # fmt: skip


def _secret(variable: str, file: Path | None = None) -> SecretStr | None:
    from pydantic import SecretStr as Secret

    from evaluation.a2a.access import token_from

    token = token_from(variable, file)
    return None if token is None else Secret(token)


def _white(agent: str, options: list[str] | None, model: str | None) -> WhiteOptions:
    from flows.a2a import WhiteOptions as Options
    from pipeline.llm import ModelSettings

    return Options(agent=agent, agent_options=agent_options_of(options or []), model=model or ModelSettings().name)


def _ceilings(wall_minutes: float, memory_mb: int) -> EpisodeLimits:
    from flows.a2a import CEILINGS

    return CEILINGS.evolve(wall_s=wall_minutes * 60, memory_mb=memory_mb)
