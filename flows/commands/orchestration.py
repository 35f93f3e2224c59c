"""Commands around Prefect and review: up, down, review."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from flows.commands.shared import Json, escape, open_workspace, print_json, print_value, status_text

__all__ = ["app"]

app = typer.Typer()

State = Annotated[
    Path | None,
    typer.Option(help="Directory for database, logs and process ids; default: ~/.local/state/expbench.",
                 show_default=False),
]  # fmt: skip


@app.command(
    epilog="Examples:\n\n  expbench up\n\n  expbench up --port 4300 --limit 2\n\n"
    "Exit codes: 0 all of it runs; 2 usage; 5 the port is taken; 7 something did not start (the logs say why)."
)
def up(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the server on 127.0.0.1.")] = 4200,
    limit: Annotated[int, typer.Option(min=2, help="Runs at a time.")] = 3,
    directory: Annotated[
        Path | None, typer.Option(help="Where runs work; default: the current directory.", show_default=False)
    ] = None,
    state: State = None,
    json_output: Json = False,
) -> None:
    """Start a Prefect server, a work pool, the deployments and a worker on this machine."""
    from flows.orchestration.machine import state_directory
    from flows.orchestration.machine import up as start
    from flows.progress import TerminalReporter

    with TerminalReporter() as reporter:
        record = start(
            state=(state or state_directory()).resolve(),
            directory=directory or Path.cwd(),
            port=port,
            limit=limit,
            reporter=reporter,
        )
    if print_json(record, json_output):
        return
    console = Console()
    console.print(f"[bold]{record.url}[/bold]", soft_wrap=True)
    console.print(f"Review    {record.url}/v2/runs?state=Suspended&tags=expbench-review", soft_wrap=True)
    if port != 4200:
        console.print(f"Before Prefect's own commands: export PREFECT_API_URL={record.api_url}", soft_wrap=True)
    submit = "prefect deployment run curate-paper/local -p pdf=PAPER.pdf -p repository=REPOSITORY"
    console.print(f"Submit    {submit}", soft_wrap=True)
    console.print(f"Logs      {(state or state_directory()).resolve()}", soft_wrap=True)
    ending = f"expbench down --state {shlex.quote(str(state))}" if state else "expbench down"
    console.print(f"End       {ending}", soft_wrap=True)


@app.command(
    epilog="Examples:\n\n  expbench down\n\n  expbench down --state ~/prefect-a\n\n"
    "Exit codes: 0 what `up` started has ended, or nothing was running."
)
def down(state: State = None, json_output: Json = False) -> None:
    """End what `expbench up` started, and nothing else; runs end orderly and remove their containers."""
    from flows.orchestration.machine import down as stop
    from flows.orchestration.machine import state_directory

    ended = stop(state=(state or state_directory()).resolve())
    if print_json(ended, json_output):
        return
    Console().print(
        "\n".join(f"ended {process.role} (process {process.pid})" for process in ended) or "nothing was running"
    )


@app.command(
    epilog="Examples:\n\n  expbench review work --list\n\n  expbench review work table-2-accuracy\n\n"
    "  expbench review work table-2-accuracy --decision approve --reviewer 'Ada L.'\n\n"
    "  expbench review work --prefect\n\n"
    "  expbench review work --approve-where 'confidence>=0.95, flakiness=0, leak_hits=0'\n\n"
    "Exit codes: 0 listed, asked for or recorded; 2 usage, or the answer cannot be applied; 5 the workspace or task "
    "cannot be read; 7 no Prefect server answers (--prefect), or the sandbox failed."
)
def review(
    workspace: Annotated[
        Path | None,
        typer.Argument(help="A workspace; default: the current directory.", metavar="WORKSPACE", show_default=False),
    ] = None,
    task: Annotated[
        str | None,
        typer.Argument(help="A task's id, or a part that no other has; default: list the queue.", show_default=False),
    ] = None,
    list_queue: Annotated[bool, typer.Option("--list", help="List what waits, the most doubtful first.")] = False,
    decision: Annotated[
        Literal["approve", "edit", "reject", "send-back"] | None, typer.Option(help="Decide without being asked.")
    ] = None,
    reviewer: Annotated[str | None, typer.Option(help="Your name; recorded with the decision.")] = None,
    comment: Annotated[str, typer.Option(help="Required to reject or send back.")] = "",
    edit: Annotated[
        list[str] | None, typer.Option(help="FIELD=TEXT: question, method, expected, sources or masked.")
    ] = None,
    reviewers: Annotated[
        int | None, typer.Option(min=1, max=5, help="How many people must agree on each task, from now on.")
    ] = None,
    approve_where: Annotated[
        str | None, typer.Option(help="Approve what a rule holds for, without a person; recorded as such.")
    ] = None,
    prefect: Annotated[bool, typer.Option("--prefect", help="Ask for the reviews in the Prefect UI.")] = False,
    json_output: Json = False,
) -> None:
    """Review the release candidates of a workspace: list them, decide on one, or ask for reviews in the Prefect UI."""
    from flows.commands import _review

    root, name = _review.target(workspace, task)
    opened = open_workspace(root)
    if reviewers is not None:
        _review.set_reviewers(opened, reviewers)
    if approve_where is not None:
        print_value(_review.by_rule(opened, approve_where), json_output)
    elif prefect:
        _review.ask_in_prefect(opened, json_output)
    elif name is None or list_queue:
        _review.show_queue(opened, json_output)
    else:
        decided = _review.decide_on(
            opened, name, decision=decision, reviewer=reviewer, comment=comment, edits=edit or []
        )
        outcome: dict[str, Any] = {
            "task": decided.id, "status": decided.status.value, "reason": decided.status_reason,
        }  # fmt: skip
        if json_output:
            print_value(outcome, True)
        else:
            reason = f"  {escape(decided.status_reason)}" if decided.status_reason else ""
            Console().print(f"{status_text(decided.status)} {decided.id}{reason}", soft_wrap=True)
