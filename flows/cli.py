"""The command line. Parses, calls, prints; imports what a command needs when it runs, so that `--help` is immediate.

Results go to standard output (`--json`: one JSON value), progress and messages to standard error.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer
from rich.console import Console

from pipeline.errors import ExpbenchError, FailureKind

if TYPE_CHECKING:
    from pipeline.store import Workspace

__all__ = ["app", "main"]

app = typer.Typer(
    name="expbench",
    help="From a paper and its repository to validated, masked, leak-checked research-experiment tasks.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    epilog="Exit codes: 0 well, 2 usage, 3 paper, 4 repository, 5 workspace, 6 nothing came out, "
    "7 sandbox or machine, 8 engine or model, 9 budget, 130 interrupted, 1 a defect of expbench.",
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON value on standard output instead of text.")]
WorkspaceArgument = Annotated[
    Path, typer.Argument(help="A workspace that `expbench curate` wrote.", metavar="WORKSPACE")
]


@app.command(
    epilog="Examples:\n\n"
    "  expbench curate paper.pdf https://github.com/someone/their-code\n\n"
    "  expbench curate paper.pdf ../their-code --commit 3f2a91c --out work --repeats 3\n\n"
    "  expbench curate paper.pdf ../their-code --out work --resume\n\n"
    "  expbench curate paper.pdf ../their-code --dry-run --json"
)
def curate(
    pdf: Annotated[Path, typer.Argument(help="The paper.", metavar="PAPER.pdf")],
    repository: Annotated[str, typer.Argument(help="Its git repository: a path or a URL.", metavar="REPOSITORY")],
    commit: Annotated[str | None, typer.Option(help="Commit, tag or branch; default: the repository's HEAD.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Workspace to write; default: ./expbench-<paper>.", show_default=False)
    ] = None,
    engine: Annotated[
        Literal["keyless", "model"] | None,
        typer.Option(help="Who reads: `keyless` needs no language model and no account.  \\[default: keyless]"),
    ] = None,
    sandbox: Annotated[
        Literal["docker", "process"] | None,
        typer.Option(help="Where the repository's code runs; default: docker when usable, else process (announced)."),
    ] = None,
    repeats: Annotated[int | None, typer.Option(min=1, help="Clean re-executions per task.  \\[default: 2]")] = None,
    max_tasks: Annotated[int | None, typer.Option(min=1, help="At most so many draft tasks, best first.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a workspace; finished stages are kept.")] = False,
    allow_missing_submodules: Annotated[
        bool, typer.Option("--allow-missing-submodules", help="Go on without submodules that cannot be fetched.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check the inputs and say what would be done.")] = False,
    json_output: Json = False,
) -> None:
    """Turn PAPER.pdf and REPOSITORY into tasks: extract, locate, trace, validate, mask."""
    from flows.curate import CurateOptions, plan
    from flows.curate import curate as run
    from flows.progress import TerminalReporter
    from pipeline.settings import Settings

    settings = Settings()
    options = CurateOptions(
        pdf=pdf,
        repository=repository,
        commit=commit,
        out=out,
        engine=engine or settings.engine,
        sandbox=sandbox or settings.sandbox,
        repeats=repeats or settings.repeats,
        max_tasks=max_tasks,
        resume=resume,
        allow_missing_submodules=allow_missing_submodules,
    )
    if dry_run:
        with TerminalReporter() as reporter:
            planned = plan(options, reporter)
        _print(planned.model_dump(mode="json"), json_output)
        return
    try:
        with TerminalReporter() as reporter:
            outcome = run(options, reporter, settings)
    except KeyboardInterrupt as interrupt:  # typer would end the process without a word
        raise ExpbenchError(
            FailureKind.INTERRUPTED,
            "expbench curate",
            "interrupted",
            consequence="Containers were removed; what was finished is kept",
            next_step="Run the same command with --resume to go on",
        ) from interrupt
    if json_output:
        _print(outcome.model_dump(mode="json"), True)
    else:
        console = Console()
        for task, status, reason in outcome.tasks:
            console.print(f"{_status(status):<30} {task}" + (f"  [dim]{_escape(reason)}[/dim]" if reason else ""))
        console.print(f"\n{outcome.candidates} release candidate(s) of {len(outcome.tasks)} task(s)")
        console.print(f"Look at   {outcome.page}", soft_wrap=True)
        console.print(f"Release   expbench release {outcome.workspace}", soft_wrap=True)
    if outcome.candidates == 0:
        raise typer.Exit(6)


@app.command(
    epilog="Examples:\n\n  expbench extract paper.pdf --html reading.html\n\n"
    "  expbench extract paper.pdf --json > document.json"
)
def extract(
    pdf: Annotated[Path, typer.Argument(help="The paper.", metavar="PAPER.pdf")],
    html: Annotated[Path | None, typer.Option(help="Write a page that draws what was understood over the PDF.")] = None,
    ocr: Annotated[bool, typer.Option("--ocr/--no-ocr", help="Read pages without a text layer by OCR.")] = True,
    json_output: Json = False,
) -> None:
    """Read a PDF: sections, passages, captions, tables as grids, figures; each with page and box."""
    from extractors.document import read_document
    from flows.document_page import document_page
    from flows.progress import TerminalReporter
    from flows.views import print_document
    from pipeline.files import write_text

    with TerminalReporter() as reporter:
        document = read_document(pdf, reporter=reporter, ocr="auto" if ocr else "off")
    if html is not None:
        write_text(html, document_page(pdf, document))
    if json_output:
        _print(document.model_dump(mode="json"), True)
    else:
        print_document(document, Console())
        if html is not None:
            Console().print(f"\nLook at   {html.resolve()}", soft_wrap=True)


@app.command(
    epilog="Examples:\n\n  expbench estimate paper.pdf --model gpt-5-mini\n\n"
    "  expbench estimate papers/*.pdf --tasks-per-paper 9 --json"
)
def estimate(
    pdfs: Annotated[list[Path], typer.Argument(help="The papers.", metavar="PAPER.pdf...")],
    model: Annotated[str | None, typer.Option(help="Name of the model; default: EXPBENCH_MODEL.")] = None,
    tasks_per_paper: Annotated[int | None, typer.Option(min=1, help="Default: EXP-Bench's mean.")] = None,
    ledger: Annotated[
        list[Path] | None, typer.Option(help="Ledger of an earlier run: what was seen replaces what is assumed.")
    ] = None,
    json_output: Json = False,
) -> None:
    """Forecast calls, tokens and money of reading papers with a model; calls none and needs no key."""
    from flows.estimate import estimate as forecast
    from flows.estimate import to_table
    from flows.progress import TerminalReporter

    with TerminalReporter() as reporter:
        estimated = forecast(
            pdfs, reporter=reporter, model=model, tasks_per_paper=tasks_per_paper, ledgers=tuple(ledger or ())
        )
    if json_output:
        _print(estimated.model_dump(mode="json"), True)
    else:
        Console().print(to_table(estimated))


@app.command(epilog="Example:\n\n  expbench status work")
def status(workspace: WorkspaceArgument, json_output: Json = False) -> None:
    """What a workspace holds, how far its tasks are, and what took how long."""
    from flows.views import print_status, status_of

    report = status_of(_open(workspace))
    if json_output:
        _print(report.model_dump(mode="json"), True)
    else:
        print_status(report, Console())


@app.command(epilog="Examples:\n\n  expbench show work\n\n  expbench show work my-paper-table-2-accuracy --truth")
def show(
    workspace: WorkspaceArgument,
    task: Annotated[str | None, typer.Argument(help="A task's id (or the end of it); default: list them.")] = None,
    truth: Annotated[bool, typer.Option("--truth", help="Show the ground truth and its evidence too.")] = False,
    json_output: Json = False,
) -> None:
    """Show the tasks of a workspace, or one of them."""
    from flows.views import find_task, print_task, print_tasks

    opened = _open(workspace)
    if task is None:
        tasks = opened.tasks()
        if json_output:
            _print([_task_json(item, truth) for item in tasks], True)
        else:
            print_tasks(tasks, Console())
        return
    found = find_task(opened, task)
    if json_output:
        _print(_task_json(found, truth), True)
    else:
        print_task(found, Console(), truth=truth)


@app.command(epilog="Example:\n\n  expbench doctor")
def doctor(json_output: Json = False) -> None:
    """What is installed, which sandbox and engine will be used, and how to get the rest."""
    from flows.doctor import diagnose, to_table

    checks = diagnose()
    if json_output:
        _print([check.model_dump(mode="json") for check in checks], True)
    else:
        Console().print(to_table(checks))


@app.command(epilog="Example:\n\n  expbench examples worked-examples")
def examples(
    into: Annotated[Path, typer.Argument(help="Directory to write to.", metavar="DIR")],
    json_output: Json = False,
) -> None:
    """Write the worked examples: papers with real git repositories to try `curate` on."""
    from flows.examples import list_examples, materialise

    made = [materialise(name, into) for name in list_examples()]
    if json_output:
        _print([item.model_dump(mode="json") for item in made], True)
        return
    console = Console()
    for item in made:
        console.print(f"expbench curate {item.paper} {item.repository}", soft_wrap=True, highlight=False)


@app.command(
    epilog="Examples:\n\n  expbench release work --accept-all --out dataset\n\n"
    "  python -c \"import datasets; print(datasets.load_dataset('dataset', 'tasks'))\""
)
def release(
    workspace: WorkspaceArgument,
    out: Annotated[Path | None, typer.Option(help="Directory to write; default: WORKSPACE/release.")] = None,
    accept_all: Annotated[
        bool,
        typer.Option(
            "--accept-all", help="Approve every release candidate without a person's review; recorded as such."
        ),
    ] = False,
    name: Annotated[str | None, typer.Option(help="Name of the data set; default: the paper's id.")] = None,
    json_output: Json = False,
) -> None:
    """Write the accepted tasks as a data set that Hugging Face `datasets` loads, answers apart."""
    from flows.release import release as run

    result = run(_open(workspace), out=out, accept_all=accept_all, name=name)
    if json_output:
        _print(result.model_dump(mode="json"), True)
    else:
        console = Console()
        console.print(f"{result.tasks} task(s) released to {result.directory}", soft_wrap=True, highlight=False)
        for config in result.configs:
            console.print(f"  datasets.load_dataset({str(result.directory)!r}, {config!r})", soft_wrap=True)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    show_version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if show_version:
        from pipeline.version import version

        typer.echo(f"expbench {version()}")
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
    sys.exit(0)


def _terminate(signum: int, frame: FrameType | None) -> None:
    """SIGTERM ends a run as Ctrl-C does: containers are removed, what was finished is kept."""
    raise KeyboardInterrupt


def _report(error: ExpbenchError, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(error.as_dict()) + "\n")
        return
    console = Console(stderr=True)
    console.print(f"[bold red]error[/bold red] {_escape(error.object)}: {_escape(error.cause)}.", soft_wrap=True)
    console.print(f"      {_escape(error.consequence)}. [bold]{_escape(error.next_step)}.[/bold]", soft_wrap=True)


def _open(path: Path) -> Workspace:
    from pipeline.store import Workspace as _Workspace

    workspace = _Workspace(path)
    workspace.info()
    return workspace


def _task_json(task: Any, truth: bool) -> Any:
    return (task if truth else task.public()).model_dump(mode="json")


def _print(value: Any, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
        return
    from rich.table import Table

    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for key, item in value.items():
        table.add_row(f"[bold]{key.replace('_', ' ')}[/bold]", _escape(str(item)))
    Console().print(table)


def _status(status_name: str) -> str:
    from flows.views import styled_status

    return styled_status(status_name)


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)


if __name__ == "__main__":
    main()
