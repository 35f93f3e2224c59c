"""Commands that write other harnesses' forms: export exp-bench, harbor, inspect, atif."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console

from flows.commands.shared import Json, escape, print_json, print_problems, print_value

if TYPE_CHECKING:
    from evaluation.exports.parts import ExportReport

__all__ = ["app"]

app = typer.Typer()
export = typer.Typer(
    no_args_is_help=True,
    help="Write tasks and trajectories in the forms of other harnesses.",
    epilog="Examples:\n\n  expbench export harbor work harbor-tasks\n\n  expbench export inspect work inspect-tasks\n\n"
    "  expbench export exp-bench work exp-bench-data\n\n  expbench export atif runs/demo trajectories",
)
app.add_typer(export, name="export")

_TASKS_CODES = (
    "Exit codes: 0 written (skipped tasks are named); 5 the source cannot be read, or OUT holds something else; "
    "6 no task of it can be carried out elsewhere."
)
Source = Annotated[
    Path, typer.Argument(help="Workspace, release, import, or published EXP-Bench data.", metavar="SOURCE", exists=True)
]
Out = Annotated[Path, typer.Argument(help="Directory to write.", metavar="OUT")]
Only = Annotated[
    list[str] | None, typer.Option("--task", help="Id of a task; repeatable; default: all.", show_default=False)
]
BaseImage = Annotated[
    str | None,
    typer.Option(help="Image that the containers build on; default: python:VERSION-slim.", show_default=False),
]
Installed = Annotated[
    bool, typer.Option("--installed", help="The base image has the tasks' packages already: install nothing.")
]


@export.command(
    "exp-bench",
    epilog="Examples:\n\n  expbench export exp-bench work data\n\n"
    "  expbench export exp-bench imported data    # back as it was published\n\n"
    "Exit codes: 0 written; 5 the source cannot be read.",
)
def exp_bench(
    source: Source,
    out: Out,
    conference: Annotated[
        str | None,
        typer.Option(help="Folder for tasks that were not imported; default: venue and year.", show_default=False),
    ] = None,
    json_output: Json = False,
) -> None:
    """Write EXP-Bench's published layout; what was imported comes back as it was."""
    from flows.export import export_published

    report = export_published(source, out.resolve(), conference=conference)
    if print_json(report, json_output):
        return
    print_value(
        {"directory": str(report.directory), "papers": report.papers, "tasks": report.tasks,
         "files": len(report.files)}, False,
    )  # fmt: skip
    messages = Console(stderr=True)
    for quirk, count in report.quirks.items():
        messages.print(f"  {count} x {quirk}", highlight=False)
    if report.left:
        messages.print(f"  {report.left} task(s) say more than this form has a place for (claims, bands, evidence)")


@export.command(
    epilog="Examples:\n\n  expbench export harbor work harbor-tasks\n\n  harbor run -p harbor-tasks -a oracle\n\n"
    "  expbench export harbor work harbor-tasks --base-image expbench/env:0123 --installed --network public\n\n"
    + _TASKS_CODES
)
def harbor(
    source: Source,
    out: Out,
    task: Only = None,
    base_image: BaseImage = None,
    installed: Installed = False,
    network: Annotated[
        Literal["no-network", "public"], typer.Option(help="Of the containers; the tasks are made for none.")
    ] = "no-network",
    json_output: Json = False,
) -> None:
    """Write harbor task directories; the verifier checks execution and the numbers of the conclusion."""
    from flows.export import export_tasks
    from flows.progress import TerminalReporter

    with TerminalReporter() as reporter:
        report = export_tasks(
            "harbor", source, out.resolve(), reporter=reporter, only=task or (), base_image=base_image,
            installed=installed, network=network,
        )  # fmt: skip
    _report(report, json_output)


@export.command(
    "inspect",
    epilog="Examples:\n\n  expbench export inspect work inspect-tasks\n\n"
    "  inspect eval inspect-tasks/expbench_inspect.py --model openai/gpt-5-mini\n\n"
    "  inspect eval inspect-tasks/expbench_inspect.py --solver oracle --model mockllm/model\n\n" + _TASKS_CODES,
)
def inspect_(
    source: Source,
    out: Out,
    task: Only = None,
    base_image: BaseImage = None,
    installed: Installed = False,
    json_output: Json = False,
) -> None:
    """Write an Inspect task with one sample a task, an oracle solver, and a scorer of the same checks."""
    from flows.export import export_tasks
    from flows.progress import TerminalReporter

    with TerminalReporter() as reporter:
        report = export_tasks(
            "inspect", source, out.resolve(), reporter=reporter, only=task or (), base_image=base_image,
            installed=installed,
        )  # fmt: skip
    _report(report, json_output)


@export.command(
    epilog="Examples:\n\n  expbench export atif runs/demo/episodes/my-task/0 trajectory.json\n\n"
    "  expbench export atif runs/demo trajectories\n\n"
    "Exit codes: 0 written; 5 there is no trajectory, or it cannot be read."
)
def atif(
    source: Annotated[
        Path, typer.Argument(help="A run, an episode's directory, or a trajectory.jsonl.", metavar="EPISODE|RUN",
                             exists=True),
    ],
    out: Annotated[Path, typer.Argument(help="A .json file for one episode, else a directory.", metavar="OUT")],
    json_output: Json = False,
) -> None:  # fmt: skip
    """Write trajectories as ATIF v1.7, one file an episode."""
    from flows.export import export_trajectories

    report = export_trajectories(source.resolve(), out.resolve())
    print_problems(report.problems)
    if not print_json(report, json_output):
        for path in report.written:
            Console().print(escape(str(path)), soft_wrap=True, highlight=False)


def _report(report: ExportReport, as_json: bool) -> None:
    if print_json(report, as_json):
        return
    console = Console()
    console.print(f"{len(report.tasks)} task(s) written to {escape(str(report.directory))}", soft_wrap=True)
    for task, why in report.skipped:
        console.print(f"  skipped {escape(task)}: {escape(why)}", soft_wrap=True, highlight=False)
    for task, why in report.without_oracle:
        console.print(f"  without a solution {escape(task)}: {escape(why)}", soft_wrap=True, highlight=False)
    for note in report.notes:
        console.print(f"  {escape(note)}", soft_wrap=True, highlight=False)
