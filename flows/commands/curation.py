"""Commands that read papers: curate, extract, estimate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from flows.commands.shared import Json, escape, print_value, status_text
from pipeline.errors import ExpbenchError, FailureKind

__all__ = ["app"]

app = typer.Typer()


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
        print_value(planned.model_dump(mode="json"), json_output)
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
        print_value(outcome.model_dump(mode="json"), True)
    else:
        console = Console()
        for task, status, reason in outcome.tasks:
            console.print(f"{status_text(status):<30} {task}" + (f"  [dim]{escape(reason)}[/dim]" if reason else ""))
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
        print_value(document.model_dump(mode="json"), True)
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
        print_value(estimated.model_dump(mode="json"), True)
    else:
        Console().print(to_table(estimated))
