"""Commands that grade: judge (again, from saved artefacts; or a judge against people's labels)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console

from flows.commands.model_options import AskModel, model_group
from flows.commands.option_groups import with_options
from flows.commands.shared import Json, escape, print_json, resumable
from pipeline.errors import ExpbenchError, FailureKind

if TYPE_CHECKING:
    from evaluation.judges.calibration import Calibration
    from evaluation.judges.regrade import Regraded

__all__ = ["app"]

app = typer.Typer()


@app.command(
    epilog="Examples:\n\n"
    "  expbench judge runs/mini\n\n"
    "  expbench judge runs/mini --judge model --model gpt-5-mini --panel 3 --budget-usd 2\n\n"
    "  expbench judge runs/mini --judge model --model gpt-5-mini --replay\n\n"
    "  expbench judge runs/mini --calibrate labels.jsonl --json\n\n"
    "  expbench judge --calibrate labels-with-verdicts.jsonl\n\n"
    'Labels: one JSON object a line, {"episode": "TASK/0", "dimension": "design", "item": "constant:n", '
    '"label": "pass"}; with "verdict" beside it no run is needed.\n\n'
    "Exit codes: 0 well; 2 usage; 5 run, source or labels; 6 no episode could be graded, or no label has a verdict; "
    "8 model or key; 9 budget; 130 interrupted."
)
@with_options(model=model_group)
def judge(
    run: Annotated[Path | None, typer.Argument(help="A run of `expbench evaluate`.", metavar="RUN")] = None,
    engine: Annotated[
        Literal["keyless", "model"], typer.Option("--judge", help="Who judges: rules, or a language model.")
    ] = "keyless",
    panel: Annotated[int, typer.Option(min=1, max=15, help="Draws of the model that vote.")] = 1,
    *,
    model: AskModel,
    monitor: Annotated[bool, typer.Option("--monitor/--no-monitor", help="Check integrity again, too.")] = True,
    source: Annotated[
        Path | None, typer.Option(help="Where the tasks are, when they moved since the run.", metavar="SOURCE")
    ] = None,
    calibrate: Annotated[
        Path | None, typer.Option(help="Compare verdicts with people's labels instead of judging.", metavar="LABELS")
    ] = None,
    json_output: Json = False,
) -> None:
    """Judge the episodes of RUN again from what was saved, or compare a judge with people's labels."""
    if calibrate is not None:
        _calibrate(calibrate, run, json_output)
        return
    if run is None:
        raise ExpbenchError(
            FailureKind.USAGE,
            "expbench judge",
            "neither a run nor --calibrate was given",
            consequence="Nothing was judged",
            next_step="Name a run, or labels to compare with",
        )
    from flows.judging import judge_run
    from flows.progress import TerminalReporter

    options = model(used=engine == "model", wanted="--judge model", consequence="Nothing was judged")
    with resumable("expbench judge"), TerminalReporter() as reporter:
        result = judge_run(
            run, engine=engine, options=options, panel=panel, monitor=monitor, source=source, reporter=reporter
        )
    _show(result, json_output)
    if not result.graded:
        raise typer.Exit(6)


def _show(result: Regraded, json_output: bool) -> None:
    if print_json(result, json_output):
        return
    from rich.table import Column, Table

    # folded, not cut: tasks of one paper differ at the end of their names
    table = Table(Column("episode", overflow="fold"), "M", "D", "I", "C", "E")
    for row in result.graded:
        table.add_row(
            f"{row.task}/{row.repeat}",
            *(_mark(v) for v in (row.monitor, row.design, row.implementation, row.conclusion, row.execution)),
        )
    console = Console()
    console.print(table)
    for name, reason in result.left:
        console.print(f"left as it is  {escape(name)}  [dim]{escape(reason)}[/dim]")
    console.print(f"\n{len(result.graded)} episode(s) graded, {len(result.changed)} verdict(s) changed")
    for line in result.changed[:20]:
        console.print(f"  {escape(line)}", soft_wrap=True)


def _mark(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"


def _calibrate(labels: Path, run: Path | None, json_output: bool) -> None:
    from evaluation.judges.calibration import calibrate, read_labels

    found = read_labels(labels)
    verdicts = {}
    if run is not None:
        from evaluation.judges.regrade import run_verdicts

        verdicts = run_verdicts(run)
    result = calibrate(found, verdicts)
    if not print_json(result, json_output):
        _show_calibration(result)
    if not result.overall.items:
        raise typer.Exit(6)


def _show_calibration(result: Calibration) -> None:
    from rich.table import Column, Table

    names = ("items", "decided", "accuracy", "precision", "recall", "F1", "kappa")
    table = Table(Column("dimension", no_wrap=True), *names, box=None, padding=(0, 2, 0, 0))
    confusion = Table("dimension", "label", "pass", "fail", "unknown", title="label by verdict")
    for name, row in [*result.dimensions.items(), ("all", result.overall)]:
        figures = (row.accuracy, row.precision, row.recall, row.f1, row.kappa)
        table.add_row(name, str(row.items), str(row.decided), *("-" if f is None else f"{f:.3f}" for f in figures))
        for label, counts in row.confusion.items():
            confusion.add_row(name, label, *(str(counts[verdict]) for verdict in ("pass", "fail", "unknown")))
    console = Console()
    console.print(table)
    console.print(confusion)
    for name in result.missing[:20]:
        console.print(f"no verdict for {escape(name)}")
