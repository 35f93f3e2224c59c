"""`expbench desk`: a person or an agent answers in place of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from flows.commands.shared import Json, print_json, print_value, resumable

__all__ = ["app"]

app = typer.Typer()


@app.command(
    epilog="Examples:\n\n  expbench desk desk --by 'A. Reader'\n\n  expbench desk desk --list\n\n"
    "Exit codes: 0 listed; 2 usage, the address is taken, or DIR cannot be written; 5 a desk runs there, or a request "
    "in it was damaged; 7 the disk is full; 130 ended by Ctrl-C."
)
def desk(
    directory: Annotated[Path, typer.Argument(help="Directory with inbox and outbox; made if missing.", metavar="DIR")],
    host: Annotated[
        str, typer.Option(help="Address to listen on. Whoever reaches it may ask; nothing is encrypted.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8765,
    by: Annotated[str, typer.Option(help="Who answers, where an answer does not say; recorded with it.")] = "unnamed",
    list_waiting: Annotated[
        bool, typer.Option("--list", help="Say what waits and for how long, and end; the desk may run beside it.")
    ] = False,
    json_output: Json = False,
) -> None:
    """An OpenAI-compatible endpoint whose answers are files that a person or any agent writes; ends with Ctrl-C."""
    if list_waiting:
        _list(directory, json_output)
        return
    import asyncio

    from pipeline.desk.folder import open_desk
    from pipeline.desk.server import DeskServer
    from pipeline.network.listening import listen

    next_step = "Open it again with the same command: what waits is kept, and clients that ask again find it"
    with (
        resumable("expbench desk", "Clients that waited were cut off; what lies on the desk is kept", next_step),
        open_desk(directory, by) as folder,
        listen(host, port, "The desk") as listener,
    ):
        url = f"http://{host}:{listener.getsockname()[1]}/v1"
        environment = {
            "EXPBENCH_MODEL": "desk", "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "desk",
            "EXPBENCH_MODEL_ENDPOINT": "desk", "EXPBENCH_MODEL_SCHEMA_MODE": "json_schema",
            "EXPBENCH_MODEL_TIMEOUT_S": "86400",
        }  # fmt: skip
        if json_output:
            print_value({"directory": str(directory.resolve()), "url": url, "environment": environment}, True)
        else:
            typer.echo("".join(f"export {name}={value}\n" for name, value in environment.items()), nl=False)
            typer.echo(f"# for clients, e.g. expbench curate ... --engine model; requests: {directory}/inbox")
        asyncio.run(DeskServer(folder).serve(listener))


def _list(directory: Path, json_output: bool) -> None:
    from pipeline.desk.folder import open_requests

    waiting = open_requests(directory)
    if print_json(waiting, json_output):
        return
    console = Console(soft_wrap=True, highlight=False, markup=False)
    console.print(f"{len(waiting)} waiting")
    for item in waiting:
        minutes, seconds = divmod(round(item.waiting_s), 60)
        note = ", an answer was refused" if item.refused else ""
        console.print(f"{item.page}  {minutes}:{seconds:02d} min, takes {' '.join(item.takes)}{note}\n  {item.summary}")
