"""Commands that read papers: curate, extract, estimate."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

import typer
from rich.console import Console

from flows.commands.model_options import AskModel, model_group
from flows.commands.option_groups import with_options
from flows.commands.shared import (
    Json,
    ScaleOption,
    WriteScripts,
    escape,
    print_json,
    print_value,
    resumable,
    settings_with,
    status_text,
)
from pipeline.errors import ExpbenchError, FailureKind

if TYPE_CHECKING:
    from flows.curate import CurateOptions, Plan
    from flows.outcome import Outcome

__all__ = ["app"]

app = typer.Typer()
_RUNS: Final = "How the code is run"


class CodeRuns(NamedTuple):
    """How the code of the repository is run, for `with_options`."""

    sandbox: Annotated[
        Literal["docker", "process"] | None,
        typer.Option(
            help="Where the repository's code runs; default: docker when usable, else process (announced).",
            rich_help_panel=_RUNS,
        ),
    ] = None
    repeats: Annotated[
        int | None,
        typer.Option(min=1, help="Clean re-executions per task.  \\[default: 2]", rich_help_panel=_RUNS),
    ] = None
    scale: ScaleOption = None
    data: Annotated[
        Literal["fetch", "offline"] | None,
        typer.Option(
            help="May data that experiments download be fetched, once?  \\[default: fetch in Docker]",
            rich_help_panel=_RUNS,
        ),
    ] = None
    write_scripts: WriteScripts = False

    @property
    def of_settings(self) -> dict[str, Any]:
        """Those that are settings of the machine that runs it; None: not asked for."""
        return {"scale": self.scale, "data": self.data, "write_scripts": self.write_scripts or None}


@app.command(
    epilog="Examples:\n\n"
    "  expbench curate paper.pdf https://github.com/someone/their-code\n\n"
    "  expbench curate paper.pdf ../their-code --commit 3f2a91c --out work --repeats 3\n\n"
    "  expbench curate paper.pdf ../their-code --out work --resume\n\n"
    "  expbench curate paper.pdf ../their-code --dry-run --json\n\n"
    "  expbench curate paper.pdf ../their-code --engine model --model gpt-4.1-mini --budget-usd 2\n\n"
    "  expbench curate paper.pdf ../their-code --engine model --out again --replay --exchanges work/model\n\n"
    "  expbench curate paper.pdf ../their-code --engine model --write-scripts --scale full\n\n"
    "  expbench curate paper.pdf ../their-code --prefect\n\n"
    "Exit codes: 0 there are release candidates; 6 no task became one (each says why); 2 usage; 3 the paper; 4 the "
    "repository; 5 the workspace; 7 sandbox, network or disk; 8 model, key or endpoint; 9 budget; 130 interrupted. "
    "What was finished or paid for before an error is kept, and --resume goes on from there."
)
@with_options(runs=CodeRuns, model=model_group)
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
    max_tasks: Annotated[int | None, typer.Option(min=1, help="At most so many draft tasks, best first.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a workspace; finished stages are kept.")] = False,
    allow_missing_submodules: Annotated[
        bool, typer.Option("--allow-missing-submodules", help="Go on without submodules that cannot be fetched.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the inputs and say what would be done, and at what cost.")
    ] = False,
    prefect: Annotated[
        bool, typer.Option("--prefect", help="Submit the run to the Prefect server instead of running it here.")
    ] = False,
    *,
    runs: CodeRuns,
    model: AskModel,
    json_output: Json = False,
) -> None:
    """Turn PAPER.pdf and REPOSITORY into tasks: extract, locate, trace, validate, mask."""
    from flows.curate import CurateOptions, plan
    from flows.curate import curate as run
    from flows.progress import TerminalReporter

    settings = settings_with(**runs.of_settings)
    chosen = engine or settings.engine
    asked = model(
        used=chosen == "model", wanted="--engine model", consequence="Nothing was started",
        also={"--write-scripts": runs.write_scripts},
    )  # fmt: skip
    options = CurateOptions(
        pdf=pdf,
        repository=repository,
        commit=commit,
        out=out,
        engine=chosen,
        sandbox=runs.sandbox or settings.sandbox,
        repeats=runs.repeats or settings.repeats,
        max_tasks=max_tasks,
        resume=resume,
        allow_missing_submodules=allow_missing_submodules,
        model=asked,
    )
    if dry_run:
        with TerminalReporter() as reporter:
            planned = plan(options, reporter)
        _print_plan(planned, json_output)
        return
    if prefect:
        if any(value is not None for value in runs.of_settings.values()):
            names = "EXPBENCH_SCALE, EXPBENCH_DATA and EXPBENCH_WRITE_SCRIPTS"
            cause = "a submitted run has the scale, data and scripts of its worker's settings"
            raise _usage("--prefect", cause, f"Set {names} where the worker runs")
        _submit(options, json_output)
        return
    with resumable("expbench curate"), TerminalReporter() as reporter:
        outcome = run(options, reporter, settings)
    if not print_json(outcome, json_output):
        _print_outcome(outcome, Console())
    if outcome.candidates == 0:
        raise typer.Exit(6)


def _print_outcome(outcome: Outcome, console: Console) -> None:
    for task, status, reason in outcome.tasks:
        console.print(f"{status_text(status):<30} {task}" + (f"  [dim]{escape(reason)}[/dim]" if reason else ""))
    console.print(f"\n{outcome.candidates} release candidate(s) of {len(outcome.tasks)} task(s)")
    console.print(f"Look at   {outcome.page}", soft_wrap=True)
    if outcome.candidates:
        place = shlex.quote(str(outcome.workspace))
        console.print(f"Review    expbench review {place} --list", soft_wrap=True)
        console.print(f"Release   expbench release {place}        # what was approved", soft_wrap=True)


def _usage(what: str, cause: str, step: str) -> ExpbenchError:
    return ExpbenchError(FailureKind.USAGE, what, cause, consequence="Nothing was started", next_step=step)


def _submit(options: CurateOptions, as_json: bool) -> None:
    """Hand a run to the Prefect server.

    Raises:
        ExpbenchError: `USAGE` when an option is about files of this machine; otherwise see `submit_curation`.
    """
    from flows.orchestration.submit import submit_curation
    from pipeline.llm import CacheMode

    if options.model.cache is not CacheMode.USE or options.model.exchanges is not None:
        raise _usage("--prefect", "a submitted run uses the exchanges of its own workspace", "Run it here for that")
    submitted = submit_curation(options)
    if print_json(submitted, as_json):
        return
    console = Console()
    console.print(f"submitted as {escape(submitted.name)}: {submitted.url}", soft_wrap=True, highlight=False)
    console.print(f"Look at   expbench status {submitted.workspace}", soft_wrap=True)


def _print_plan(planned: Plan, as_json: bool) -> None:
    """A plan; on the terminal the forecast of a model is a table of its own."""
    if print_json(planned, as_json):
        return
    print_value(planned.model_dump(mode="json", exclude={"forecast"}), False)
    if planned.forecast is not None:
        from flows.estimate import forecast_table

        Console().print(forecast_table(planned.forecast, f"what {planned.forecast.model} is expected to take"))


@app.command(
    epilog="Examples:\n\n  expbench extract paper.pdf --html reading.html\n\n"
    "  expbench extract paper.pdf --json > document.json\n\n"
    "  expbench extract paper.pdf --find 'random seeds' --find 'learning rate'\n\n"
    "The PDF is read in a process of its own.\n\n"
    "Exit codes: 0 well, with what was difficult listed; 2 usage; 3 it is no readable paper; 7 disk."
)
def extract(
    pdf: Annotated[Path, typer.Argument(help="The paper.", metavar="PAPER.pdf")],
    html: Annotated[Path | None, typer.Option(help="Write a page that draws what was understood over the PDF.")] = None,
    ocr: Annotated[bool, typer.Option("--ocr/--no-ocr", help="Read pages without a text layer by OCR.")] = True,
    find: Annotated[
        list[str] | None, typer.Option(help="Look something up in the paper's index; may be given several times.")
    ] = None,
    json_output: Json = False,
) -> None:
    """Read a PDF: sections, passages, captions, tables as grids, figures; each with page and box."""
    from extractors.isolated import read_isolated
    from flows.progress import TerminalReporter
    from pipeline.files import write_text

    with TerminalReporter() as reporter:
        document = read_isolated(pdf, reporter=reporter, ocr="auto" if ocr else "off")
    if html is not None:
        from flows.document_page import document_page

        write_text(html, document_page(pdf, document))
    found: list[dict[str, Any]] = []
    if find:
        from flows.lookup import look_up

        found = look_up(document, find)
    if json_output:
        print_value({**document.model_dump(mode="json"), **({"found": found} if find else {})}, True)
        return
    from flows.lookup import print_found
    from flows.views import print_document

    console = Console()
    if find:
        print_found(found, console)
    else:
        print_document(document, console)
    if html is not None:
        console.print(f"\nLook at   {html.resolve()}", soft_wrap=True)


@app.command(
    epilog="Examples:\n\n  expbench estimate paper.pdf --model gpt-5-mini\n\n"
    "  expbench estimate papers/*.pdf --tasks-per-paper 9 --json\n\n"
    "Exit codes: 0 well; 2 usage, or no model is named; 3 a paper; 5 the ledger or the price file cannot be read."
)
def estimate(
    pdfs: Annotated[list[Path], typer.Argument(help="The papers.", metavar="PAPER.pdf")],
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
    if not print_json(estimated, json_output):
        Console().print(to_table(estimated))
