"""Commands on a workspace: status, show."""

from __future__ import annotations

from typing import Annotated, Final

import typer
from rich.console import Console

from flows.commands.shared import Json, WorkspaceArgument, open_workspace, print_json, print_value, task_json

__all__ = ["app"]

app = typer.Typer()
_CODES: Final = "Exit codes: 0 well; 2 usage; 5 it is no workspace, has no such task, or cannot be read."


@app.command(epilog="Examples:\n\n  expbench status work\n\n  expbench status work --json\n\n" + _CODES)
def status(workspace: WorkspaceArgument, json_output: Json = False) -> None:
    """What a workspace holds, how far its tasks are, and what took how long."""
    from flows.views import print_status, status_of

    report = status_of(open_workspace(workspace))
    if not print_json(report, json_output):
        print_status(report, Console())


@app.command(
    epilog="Examples:\n\n  expbench show work\n\n  expbench show work table-2-accuracy --truth\n\n" + _CODES,
)
def show(
    workspace: WorkspaceArgument,
    task: Annotated[
        str | None, typer.Argument(help="A task's id, or a part that no other has; default: list them.")
    ] = None,
    truth: Annotated[bool, typer.Option("--truth", help="Show the ground truth and its evidence too.")] = False,
    json_output: Json = False,
) -> None:
    """Show the tasks of a workspace, or one of them."""
    from flows.views import find_task, print_task, print_tasks

    opened = open_workspace(workspace)
    if task is None:
        tasks = opened.tasks()
        if json_output:
            print_value([task_json(item, truth) for item in tasks], True)
        else:
            print_tasks(tasks, Console())
        return
    found = find_task(opened, task)
    if json_output:
        print_value(task_json(found, truth), True)
    else:
        print_task(found, Console(), truth=truth)
