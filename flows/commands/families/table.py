"""`expbench score table`, and `expbench a2a` (PRBench's green and white agents)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from flows.commands import a2a
from flows.commands.shared import Json, print_value

__all__ = ["app", "score"]

score = typer.Typer()
app = typer.Typer()
app.add_typer(a2a.app, name="a2a")


@score.command(
    epilog="Examples:\n\n  expbench score table --task prbench/tasks/task_white_1993 --submission run/workspace\n\n"
    "  expbench score table --task tasks/task_white_1993 --submission results/ --json\n\n"
    "  expbench score table --task TASK --submission WORKSPACE --mode code-only --judge model\n\n"
    "Exit codes: 0 it was scored, missing or unreadable tables included (they have 0); 2 usage; 5 the task cannot be "
    "read; 8 model or key."
)
def table(
    task: Annotated[Path, typer.Option(help="Directory with task.yaml and the truth.", metavar="DIR")],
    submission: Annotated[
        Path, typer.Option(help="The agent's workspace, a directory of tables, or one table.", metavar="PATH")
    ],
    mode: Annotated[
        Literal["full", "code-only"], typer.Option(help="Which of the task's two rubrics is asked for.")
    ] = "full",
    judge: Annotated[
        Literal["keyless", "model"], typer.Option(help="Who grades analysis and code; tables are computed.")
    ] = "keyless",
    judge_model: Annotated[str | None, typer.Option(help="Name of the judge; default: EXPBENCH_MODEL.")] = None,
    panel: Annotated[int, typer.Option(min=1, help="Draws of the model; their median counts.")] = 1,
    record: Annotated[
        Path | None, typer.Option(help="Keep the judge's exchanges here; what was asked is not paid for again.")
    ] = None,
    json_output: Json = False,
) -> None:
    """Score a reproduction: tables within tolerances, methodology, code, completeness, callback (PRBench 4.1)."""
    from evaluation.families.table.records import Mode
    from evaluation.families.table.standalone import score_submission
    from flows.grading_model import score_model
    from flows.progress import TerminalReporter

    wanted = Mode.FULL if mode == "full" else Mode.CODE_ONLY
    with score_model(judge, judge_model, record) as client, TerminalReporter() as reporter:
        report = score_submission(task, submission, mode=wanted, client=client, panel=panel, reporter=reporter)
    print_value(report if json_output else _short(report), json_output)


def _short(report: dict[str, Any]) -> dict[str, str]:
    """What a person reads: dimensions, tables, violations."""
    scores = report["grading"]["scores"]
    lines = {name: f"{_number(item['score'])}  {item['justification']}" for name, item in scores.items()}
    for item in report["tables"]:
        notes = f" ({item['problem']})" if item["problem"] else ""
        lines[item["path"]] = f"{item['score']:.4f}  {item['right']} of {item['values']} values{notes}"
    for number, item in enumerate(report["findings"], 1):
        kind = "violation" if item["verdict"] == "fail" else "suspicion"
        lines[f"{kind} {number}"] = f"{item['where']}: {item['reason']}"
    return {**lines, "overall": _number(report["overall"]), "end to end": str(report["end_to_end_callback"]).lower()}


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4f}"
