"""Commands beside a run: score a submission of a family by itself; probe what a model knows beforehand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from flows.commands.shared import Json, print_value

__all__ = ["app", "score"]

app = typer.Typer()
score = typer.Typer(help="Score one submission against a task's reference.", no_args_is_help=True)
app.add_typer(score, name="score")


@app.command(
    epilog="Examples:\n\n  expbench probe release --model gpt-5-mini\n\n"
    "  expbench probe tasks --tasks 'iclr2024-*' --record probe --json\n\n"
    "Exit codes: 0 it was asked; 2 usage; 5 the source cannot be read; 8 model or key; 9 budget."
)
def probe(
    source: Annotated[
        Path, typer.Argument(help="Workspace, release, import, or published EXP-Bench data.", metavar="SOURCE")
    ],
    model: Annotated[str | None, typer.Option(help="The model; default: EXPBENCH_MODEL.")] = None,
    tasks: Annotated[
        list[str] | None, typer.Option(help="Only tasks whose id matches; may be repeated.", metavar="GLOB")
    ] = None,
    record: Annotated[
        Path | None, typer.Option(help="Keep exchanges and calls here; what was asked before is not paid for again.")
    ] = None,
    json_output: Json = False,
) -> None:
    """Ask a model for the outcomes of tasks without repository and method (EXP-Bench 4.2): does it know them?"""
    from flows.probing import probe as run
    from flows.progress import TerminalReporter

    with TerminalReporter() as reporter:
        report = run(source, patterns=tasks or (), model=model, record=record, reporter=reporter)
    if json_output:
        print_value(report.model_dump(mode="json"), True)
        return
    value = report.model_dump(mode="json", include={"model", "remembered", "hits", "chance"})
    print_value(value | {"asked": len(report.probes), "unknown": len(report.unknown)}, False)


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
