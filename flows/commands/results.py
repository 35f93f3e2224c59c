"""Commands on the results of evaluations: report, compare, failures."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console

from flows.commands.model_options import as_decimal
from flows.commands.shared import Json, escape, print_json, print_value

if TYPE_CHECKING:
    from evaluation.report.tables import Table
    from flows.results import ComparisonReport

__all__ = ["WORSE", "app"]

app = typer.Typer()

_FILE_WIDTH = 180
WORSE = 10
"""Exit code of `compare` when b is worse; none of the codes of `pipeline.errors`, so that CI can tell them apart."""


@app.command(
    epilog="Examples:\n\n  expbench report runs/openhands-a\n\n"
    "  expbench report runs/* --out report        # HTML; open report/index.html\n\n"
    "  expbench report runs/* --out site --public\n\n"
    "  expbench report runs/openhands-a --format md > results.md\n\n"
    "  expbench report runs/* --format parquet --out episodes.parquet\n\n"
    "Exit codes: 0 written or printed (unfinished episodes are left out, and counted); 2 usage; 5 a run cannot be "
    "read, or --out holds something else; 7 disk."
)
def report(
    runs: Annotated[list[Path], typer.Argument(help="Runs that `expbench evaluate` wrote.", metavar="RUN")],
    out: Annotated[
        Path | None, typer.Option(help="Where to write: a directory (html, csv) or a file (md, parquet, json).")
    ] = None,
    form: Annotated[
        Literal["html", "md", "csv", "parquet", "json"] | None,
        typer.Option(
            "--format", help="Default: html with --out, else tables on the terminal. md, csv, json also to stdout."
        ),
    ] = None,
    public: Annotated[
        bool, typer.Option("--public", help="Leave out what only graders may see, to publish the report.")
    ] = False,
    title: Annotated[str, typer.Option(help="Heading of the report.")] = "Evaluation",
    pages: Annotated[bool, typer.Option("--pages/--no-pages", help="html: write a page per episode, too.")] = True,
    json_output: Json = False,
) -> None:
    """Report runs: leaderboard with intervals, bounds, categories, strictness, stability, cost, failure types."""
    from flows.progress import TerminalReporter
    from flows.results import make_report, report_text, tables_of, write_report
    from pipeline.errors import ExpbenchError, FailureKind
    from pipeline.progress import SilentReporter

    chosen = form or ("html" if out is not None else "json" if json_output else None)
    if chosen in {"html", "parquet"} and out is None:
        raise ExpbenchError(
            FailureKind.USAGE,
            f"--format {chosen}",
            "needs a place to write to",
            consequence="No report was written",
            next_step="Add --out",
        )
    with TerminalReporter() as terminal:
        reporter = terminal if terminal.console.is_terminal else SilentReporter()  # not a line for each of 10,000
        results, made = make_report(runs, public=public, reporter=reporter)
        for problem in made.problems:
            terminal.warn(problem)
        if made.unfinished:
            terminal.warn(f"{len(made.unfinished)} episode(s) are not finished and left out")
        if out is not None:
            assert chosen is not None
            written = write_report(
                results, made, out, chosen, title=title, public=public, pages=pages, reporter=reporter
            )
    if out is not None:
        paths = written if isinstance(written, list) else [written.page]
        if json_output:
            print_value({"written": [str(path.resolve()) for path in paths]}, True)
        else:
            Console().print("\n".join(f"Look at   {escape(str(path.resolve()))}" for path in paths), soft_wrap=True)
    elif chosen is not None:
        sys.stdout.write(report_text(results, made, chosen, title=title, public=public))
    else:
        from evaluation.report.plain import fitting

        console = _console()
        for table in tables_of(made):
            _print_table(console, fitting(table, console.width))
            console.print()


@app.command(
    epilog="Examples:\n\n  expbench compare runs/main runs/branch\n\n"
    "  expbench compare runs/main runs/branch --json || echo worse\n\n"
    f"Exit codes: 0 RUN_B is not significantly worse in any metric; {WORSE} it is (Wilcoxon signed-rank over shared "
    "tasks, Holm-corrected, p < .05); 2 the runs share no task; 5 a run cannot be read, or tasks were "
    "not set up or graded in the same way (see --allow-different)."
)
def compare(
    run_a: Annotated[Path, typer.Argument(help="The run to compare with.", metavar="RUN_A")],
    run_b: Annotated[Path, typer.Argument(help="The run in question.", metavar="RUN_B")],
    allow_different: Annotated[
        bool,
        typer.Option("--allow-different", help="Compare tasks with other set-up, limits or graders, too."),
    ] = False,
    json_output: Json = False,
) -> None:
    """Compare two runs task by task: differences with intervals, corrected p-values."""
    from flows.results import compare_runs

    compared = compare_runs(run_a, run_b, allow_different=allow_different)
    if not print_json(compared, json_output):
        _print_comparison(compared)
    if compared.worse:
        raise typer.Exit(WORSE)


@app.command(
    epilog="Examples:\n\n  expbench failures runs/openhands-a\n\n"
    "  expbench failures runs/openhands-a --engine model --model gpt-4.1-mini --budget-usd 2\n\n"
    "Exit codes: 0 well; 2 usage; 5 the run cannot be read; 8 model or key; 9 budget."
)
def failures(
    run: Annotated[Path, typer.Argument(help="A run that `expbench evaluate` wrote.", metavar="RUN")],
    engine: Annotated[
        Literal["keyless", "model"],
        typer.Option(help="`keyless`: rules and clustering of messages; `model`: a language model reads and groups."),
    ] = "keyless",
    model: Annotated[str | None, typer.Option(help="Name of the model; default: EXPBENCH_MODEL.")] = None,
    budget_usd: Annotated[float | None, typer.Option(min=0, help="Money that the model may cost.")] = None,
    json_output: Json = False,
) -> None:
    """Group what went wrong into failure types with prevalence by phase; kept in RUN/failures.json for the report."""
    from flows.engines import ModelOptions
    from flows.progress import TerminalReporter
    from flows.results import failures_of
    from pipeline.progress import SilentReporter

    reads = ModelOptions(name=model, budget_usd=as_decimal(budget_usd)) if engine == "model" else None
    with TerminalReporter() as terminal:
        reporter = terminal if terminal.console.is_terminal else SilentReporter()
        taxonomy, path = failures_of(run, model=reads, reporter=reporter)
        for problem in taxonomy.problems:
            terminal.warn(f"{problem.where}: {problem.message}")
    if print_json(taxonomy, json_output):
        return
    from evaluation.report.tables import failure_table

    console = _console()
    _print_table(console, failure_table(taxonomy))
    console.print(f"Kept in   {escape(str(path.resolve()))}", soft_wrap=True)


def _print_table(console: Console, table: Table) -> None:
    """A table, and its note across the whole width: as a caption it was as narrow as the narrowest table."""
    from evaluation.report.plain import to_rich

    drawn = to_rich(table)
    drawn.caption = None
    console.print(drawn)
    if table.note:
        console.print(f"[dim]{escape(table.note)}[/dim]", highlight=False)


def _console() -> Console:
    """Standard output; where that is no terminal there is no width that lines would have to fit into."""
    console = Console()
    return console if console.is_terminal else Console(width=_FILE_WIDTH)


def _print_comparison(compared: ComparisonReport) -> None:
    from flows.results import comparison_tables

    console = _console()
    for table in comparison_tables(compared):
        _print_table(console, table)
    if compared.differing:
        count = len(compared.differing)
        console.print(f"[yellow]{count} task(s) were set up or graded differently: a difference may come from that.[/]")
    if compared.too_few:
        console.print("[yellow]So few tasks are shared that no difference could be significant: run more.[/]")
    verdict = f"worse in {', '.join(compared.worse)}" if compared.worse else "not significantly worse in any metric"
    better = f"; better in {', '.join(compared.better)}" if compared.better else ""
    rank = {"a": "ranks below", "b": "ranks above", None: "ranks level with"}[compared.ahead]
    console.print(
        f"[bold]{escape(compared.b)}[/bold] {rank} {escape(compared.a)} by {compared.comparisons[0].metric}; it is "
        f"{verdict}{better}.",
        highlight=False,
    )
