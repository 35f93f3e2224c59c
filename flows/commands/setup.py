"""Commands on this machine: doctor, examples."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from flows.commands.shared import Json, print_json

__all__ = ["app"]

app = typer.Typer()


@app.command(
    epilog="Examples:\n\n  expbench doctor\n\n  expbench doctor --json\n\n"
    "Exit codes: 0, also where something is missing."
)
def doctor(json_output: Json = False) -> None:
    """What is installed, which sandbox and engine will be used, and how to get the rest."""
    from flows.doctor import diagnose, to_table

    checks = diagnose()
    if not print_json(checks, json_output):
        Console().print(to_table(checks))


@app.command(
    epilog="Example:\n\n  expbench examples examples\n\n"
    "Exit codes: 0 they are there; 2 usage; 5 another thing of that name is there; 7 git is missing, or the disk full."
)
def examples(
    into: Annotated[Path, typer.Argument(help="Directory to write to.", metavar="DIR")],
    json_output: Json = False,
) -> None:
    """Write the worked examples: papers with real git repositories to try `curate` on."""
    from flows.examples import list_examples, materialise

    made = [materialise(name, into) for name in list_examples()]
    if print_json(made, json_output):
        return
    console = Console()
    for item in made:
        console.print(f"expbench curate {item.paper} {item.repository}", soft_wrap=True, highlight=False)
