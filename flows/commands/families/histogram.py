"""`expbench score histogram`, `expbench histogram-tables`, `expbench read-paper`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from flows.commands.shared import Json, escape, print_json, print_value

if TYPE_CHECKING:
    from evaluation.families.histogram.tables import HistogramTables

__all__ = ["app", "score"]

app = typer.Typer()
score = typer.Typer()


@score.command(
    epilog="Examples:\n\n  expbench score histogram --task tasks/sus-16-046_sim-T5Wg --submission run/workspace\n\n"
    "  expbench score histogram --task tasks/sus-16-046_sim-T5Wg --submission results/histogram_T5Wg.yaml --json\n\n"
    "  expbench score histogram --task TASK --submission run --recovered 0.5,1.8,6.1,46.5 --provenance passed\n\n"
    "Exit codes: 0 it was scored, a file that cannot be scored included (distance 1); 2 usage; 5 the task or its "
    "reference cannot be read."
)
def histogram(
    task: Annotated[Path, typer.Option(help="Directory with task.toml and template/.", metavar="DIR")],
    submission: Annotated[
        Path, typer.Option(help="The filled file, or the workspace with results/<file>.", metavar="PATH")
    ],
    reference: Annotated[
        Path | None, typer.Option(help="Hidden reference; default: shared/<paper>/reference/<file> above the task.")
    ] = None,
    provenance: Annotated[
        Literal["passed", "fabricated", "unknown"], typer.Option(help="Label of the audit of the run.")
    ] = "unknown",
    recovered: Annotated[
        str | None, typer.Option(help="Bin values that the audit recovered, in order.", metavar="Y1,Y2,...")
    ] = None,
    tau: Annotated[float, typer.Option(min=0.0, help="Threshold of Acc (Collider-Bench 4.1).")] = 0.33,
    json_output: Json = False,
) -> None:
    """Score a histogram: validity, relative L2, normalisation error, shape error, Acc (Collider-Bench 3.3)."""
    from evaluation.families.histogram import Provenance, load_histogram_task, score_histogram
    from pipeline.errors import ExpbenchError, FailureKind

    loaded = load_histogram_task(task, reference=reference)
    try:
        values = None if recovered is None else [float(part) for part in recovered.split(",")]
        result = score_histogram(loaded, submission, provenance=Provenance(provenance), recovered=values, tau=tau)
    except ValueError as error:
        raise ExpbenchError(
            FailureKind.USAGE,
            f"--recovered {recovered}",
            str(error),
            consequence="Nothing was scored",
            next_step=f"Give {len(loaded.truth)} numbers, separated by commas, one a bin",
        ) from error
    print_value(result.model_dump(mode="json"), json_output)


@app.command(
    "read-paper",
    epilog="Examples:\n\n  expbench read-paper PAPER.pdf --pages 1-3\n\n"
    "  expbench read-paper PAPER.pdf --pages 5,8-10 --figures figures\n\n  expbench read-paper PAPER.pdf --json\n\n"
    "Exit codes: 0 it was read; 2 it has no such pages; 3 the paper cannot be read.",
)
def read_paper(
    pdf: Annotated[Path, typer.Argument(help="The paper.", metavar="PAPER.pdf")],
    pages: Annotated[str, typer.Option(help="Pages, e.g. `3-5` or `1,4-6`; all without it.", metavar="PAGES")] = "",
    figures: Annotated[
        Path | None, typer.Option(help="Write figures as PNG into this directory instead of printing text.")
    ] = None,
    json_output: Json = False,
) -> None:
    """Print a paper's text page by page, or write its figures as PNG; the tool that agents have in their workspace."""
    from evaluation.families.histogram.standalone import read_paper as run
    from flows.progress import TerminalReporter

    with TerminalReporter() as reporter:
        found = run(pdf, pages, figures, reporter)
    if print_json(found, json_output):
        return
    typer.echo(found.text, nl=False)
    for figure in found.figures:
        typer.echo(f"{figure.path}  page {figure.page}  {figure.caption}")
    if figures is not None and not found.figures:
        typer.echo("no figure was found on these pages", err=True)


@app.command(
    "histogram-tables",
    epilog="Examples:\n\n  expbench histogram-tables runs/claude runs/codex\n\n"
    "  expbench histogram-tables runs/* --plots overlays --json\n\n"
    "Exit codes: 0 there are tables; 5 one is no run, or none holds an episode of the histogram family.",
)
def histogram_tables(
    runs: Annotated[list[Path], typer.Argument(help="Runs that `expbench evaluate` wrote.", metavar="RUN")],
    tau: Annotated[float, typer.Option(min=0.0, help="Threshold of Acc (Collider-Bench 4.1).")] = 0.33,
    plots: Annotated[
        Path | None, typer.Option(help="Draw the best run of each agent over the reference, one SVG a task, into here.")
    ] = None,
    json_output: Json = False,
) -> None:
    """Tables of Collider-Bench over runs: distances (2), shapes (3), consumption (4), labels, cost against accuracy."""
    from evaluation.families.histogram.standalone import tables_of_runs

    tables, drawn = tables_of_runs(runs, tau=tau, plots=plots)
    if json_output:
        print_value(tables.model_dump(mode="json") | {"plots": [str(path) for path in drawn]}, True)
        return
    _print_tables(tables)


def _print_tables(tables: HistogramTables) -> None:
    from rich.console import Console
    from rich.table import Table

    from evaluation.families.histogram.aggregate import mean_text

    console = Console()
    names = [item.agent for item in tables.agents]
    for title, field in (
        ("relative L2 of the yields", "relative_l2"),
        ("relative L2 of the shapes", "shape_l2"),
        ("normalisation error", "delta_norm"),
    ):
        table = Table("task", *map(escape, names), title=f"{title}, mean±std over runs", box=None, padding=(0, 2, 0, 0))
        for task in sorted({cell.summary.task for cell in tables.cells}):
            row = {cell.agent: cell.summary for cell in tables.cells if cell.summary.task == task}
            texts = [
                mean_text(getattr(row[name], field), getattr(row[name], f"{field}_spread")) if name in row else ""
                for name in names
            ]
            table.add_row(escape(task), *texts)
        console.print(table)
    table = Table(
        "agent", f"Acc({tables.tau:g})", "tokens (M)", "cost (USD)", "hours", "passed / failed / fabricated / unknown",
        "front", title="agents, mean±std over runs", box=None, padding=(0, 2, 0, 0),
    )  # fmt: skip
    for item in tables.agents:
        used = [mean_text(part.mean, part.spread) for part in (item.tokens_millions, item.cost_usd, item.hours)]
        labels = " / ".join(str(item.provenance[name]) for name in ("passed", "failed", "fabricated", "unknown"))
        table.add_row(escape(item.agent), mean_text(item.accuracy, None), *used, labels, "*" if item.on_front else "")
    console.print(table)
