"""The command line. Parses, calls, prints; imports what a command needs when it runs, so that `--help` is immediate.

Results go to standard output (`--json`: one JSON value), progress and messages to standard error. The commands
themselves are in `flows.commands`.
"""

from __future__ import annotations

import errno
import json
import signal
import sys
from types import FrameType
from typing import Annotated, Final, NoReturn

import typer
from rich.console import Console

from flows.commands import (
    causal,
    checking,
    curation,
    desk,
    evaluation,
    exporting,
    importing,
    judging,
    locating,
    orchestration,
    releasing,
    results,
    scoring,
    setup,
    sourcing,
    workspaces,
)
from flows.commands.help_layout import ReadableCommand, ReadableGroup
from flows.commands.shared import escape
from pipeline.errors import ExpbenchError, FailureKind

__all__ = ["app", "main"]

app = typer.Typer(
    name="expbench",
    cls=ReadableGroup,
    help="From a paper and its repository to validated, masked, leak-checked research-experiment tasks.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    epilog="Exit codes: 0 well, 2 usage, 3 paper, 4 repository, 5 workspace, 6 nothing came out, "
    "7 sandbox or machine, 8 engine or model, 9 budget, 130 interrupted, 1 a defect of expbench.",
)

_PANELS: Final = {
    "From papers to tasks": (sourcing, curation, locating, checking, workspaces),
    "Review, release, exchange": (orchestration, releasing, importing, exporting),
    "Evaluate agents": (evaluation, judging, results, scoring),
    "Causal worlds": (causal,),
    "This machine": (setup, desk),
}
"""How `--help` groups the commands."""
_PATH_ERRORS: Final = frozenset(
    {errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP}
)
"""What a path on the command line can be wrong in. A file that is missing is not here: commands look for theirs first,
so that one which is missing later is a defect and wants its traceback."""
_DISK_ERRORS: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


def _into_panel(group: typer.Typer, panel: str) -> None:
    """Put a group's commands under a heading; a group without a name lends its commands to the one above it."""
    for command in group.registered_commands:
        command.rich_help_panel = panel
    for inner in group.registered_groups:
        inner.rich_help_panel = panel
        if inner.typer_instance is not None and not inner.name:
            _into_panel(inner.typer_instance, panel)


def _readable(group: typer.Typer) -> None:
    """The layout of `flows.commands.help_layout` for all commands of a group, and of the groups in it."""
    for command in group.registered_commands:
        command.cls = ReadableCommand
    for inner in group.registered_groups:
        inner.cls = ReadableGroup
        if inner.typer_instance is not None:
            _readable(inner.typer_instance)


for panel, groups in _PANELS.items():
    for group in groups:
        _into_panel(group.app, panel)
        _readable(group.app)
        app.add_typer(group.app)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version, with digests of stages, prompts and packages.")
    ] = False,
) -> None:
    if show_version:
        from flows.versions import version_lines

        typer.echo("\n".join(version_lines()))
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> NoReturn:
    """Entry point: every failure ends with its documented exit code and a message that says what to do."""
    signal.signal(signal.SIGTERM, _terminate)
    arguments = sys.argv[1:]
    try:
        app(args=arguments, standalone_mode=True)
    except ExpbenchError as error:
        _report(error, "--json" in arguments)
        sys.exit(error.exit_code)
    except OSError as error:
        told = _path_error(error)
        if told is None:
            raise
        _report(told, "--json" in arguments)
        sys.exit(told.exit_code)
    sys.exit(0)


def _path_error(error: OSError) -> ExpbenchError | None:
    """What the file system said of a path that the user named; None: something that only we can mend."""
    if error.filename is None or error.errno not in _PATH_ERRORS | _DISK_ERRORS:
        return None
    full = error.errno in _DISK_ERRORS
    return ExpbenchError(
        FailureKind.DISK_FULL if full else FailureKind.USAGE,
        str(error.filename),
        (error.strerror or "it cannot be used").lower(),
        consequence="The command stopped there; what it had finished is kept",
        next_step="Free some space and run it again"
        if full
        else "Name another path, or see to its owner and permissions",
    )


def _terminate(signum: int, frame: FrameType | None) -> None:
    """SIGTERM ends a run as Ctrl-C does: containers are removed, what was finished is kept."""
    raise KeyboardInterrupt


def _report(error: ExpbenchError, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(error.as_dict()) + "\n")
        return
    console = Console(stderr=True, highlight=False)
    console.print(f"[bold red]error[/bold red] {escape(error.object)}: {escape(error.cause)}.", soft_wrap=True)
    console.print(f"      {escape(error.consequence)}. [bold]{escape(error.next_step)}.[/bold]", soft_wrap=True)


if __name__ == "__main__":
    main()
