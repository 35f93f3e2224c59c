"""What commands share: options, and how a value reaches standard output.

Results go to standard output (`--json`: one JSON value), progress and messages to standard error.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console

from pipeline.errors import ExpbenchError, FailureKind

if TYPE_CHECKING:
    from pipeline.schema import Problem
    from pipeline.settings import Settings
    from pipeline.store import Workspace

__all__ = [
    "Json",
    "ScaleOption",
    "WorkspaceArgument",
    "WriteScripts",
    "agent_options_of",
    "escape",
    "open_workspace",
    "print_json",
    "print_problems",
    "print_value",
    "resumable",
    "settings_with",
    "status_text",
    "task_json",
]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON value on standard output instead of text.")]
ScaleOption = Annotated[
    Literal["smoke", "full", "auto"] | None,
    typer.Option(
        help="`full`: as the paper did it. `smoke`: as small as the code's own options allow; shows that it runs, "
        "confirms no number. `auto`: full, and smoke where that hits a limit or wants a GPU.  \\[default: auto]"
    ),
]
WriteScripts = Annotated[
    bool,
    typer.Option(
        "--write-scripts",
        help="Let the model write a script where none of the repository's reproduces the claims; it is marked as such.",
        rich_help_panel="With a language model",
    ),
]
WorkspaceArgument = Annotated[
    Path, typer.Argument(help="A workspace that `expbench curate` wrote.", metavar="WORKSPACE")
]


def settings_with(**asked: Any) -> Settings:
    """The settings of this machine, with what a command's options say on top (None: the option was not given)."""
    from pipeline.settings import Settings as _Settings

    return _Settings(**{name: value for name, value in asked.items() if value is not None})


@contextmanager
def resumable(
    command: str,
    consequence: str = "Containers were removed; what was finished is kept",
    next_step: str = "Run the same command with --resume to go on",
) -> Iterator[None]:
    """Turn Ctrl-C into our error; typer would end the process without a word.

    Args:
        command: as it is called.
        consequence: what is kept.
        next_step: how to go on.

    Raises:
        ExpbenchError: `INTERRUPTED`.
    """
    try:
        yield
    except KeyboardInterrupt as interrupt:
        raise ExpbenchError(
            FailureKind.INTERRUPTED, command, "interrupted", consequence=consequence, next_step=next_step
        ) from interrupt


def agent_options_of(given: list[str]) -> dict[str, str]:
    """Values of `--agent-option NAME=VALUE`.

    Raises:
        ExpbenchError: `USAGE`.
    """
    found: dict[str, str] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name.strip():
            raise ExpbenchError(
                FailureKind.USAGE,
                f"--agent-option {item}",
                "is not NAME=VALUE",
                consequence="No episode was run",
                next_step="Say for example `--agent-option cmd='python solve.py'`",
            )
        found[name.strip()] = value
    return found


def open_workspace(path: Path) -> Workspace:
    """The workspace there.

    Raises:
        ExpbenchError: `WORKSPACE_CONFLICT`, `RECORD_INVALID`: it is none, or cannot be read.
    """
    from pipeline.store import Workspace as _Workspace

    workspace = _Workspace(path)
    workspace.info()
    return workspace


def task_json(task: Any, truth: bool) -> Any:
    """A task as JSON; without `truth` only what an agent may see."""
    return (task if truth else task.public()).model_dump(mode="json")


def print_json(value: Any, as_json: bool) -> bool:
    """Print a record, or a sequence of records, as one line of JSON where that is asked for; was it?"""
    if as_json:
        many = isinstance(value, list | tuple)
        print_value([item.model_dump(mode="json") for item in value] if many else value.model_dump(mode="json"), True)
    return as_json


def print_value(value: Any, as_json: bool) -> None:
    """Print a value: as one line of JSON, or a mapping as a small table."""
    if as_json:
        sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
        return
    from rich.table import Table

    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for key, item in value.items():
        table.add_row(f"[bold]{key.replace('_', ' ')}[/bold]", escape(_plain(item)))
    Console().print(table)


def _plain(value: Any) -> str:
    """A value in words: what is not there is a dash, a mapping names what it has."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case dict():
            return ", ".join(f"{name} {_plain(item)}" for name, item in value.items() if item is not None) or "-"
        case list() | tuple():
            return ", ".join(map(_plain, value)) or "-"
        case _:
            return str(value)


def print_problems(problems: Sequence[Problem], most: int | None = None) -> None:
    """Problems on standard error, at most so many; all of them are in what the command wrote."""
    messages = Console(stderr=True)
    for problem in problems[:most]:
        messages.print(f"{problem.where}: {problem.message}", soft_wrap=True, highlight=False, markup=False)
    if most is not None and len(problems) > most:
        messages.print(f"... and {len(problems) - most} more")


def status_text(status_name: str) -> str:
    """A status in its colour."""
    from flows.views import styled_status

    return styled_status(status_name)


def escape(text: str) -> str:
    """Text that Rich prints as it is."""
    from rich.markup import escape

    return escape(text)
