"""`expbench score experiment`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from flows.commands.shared import Json, print_value

__all__ = ["score"]

score = typer.Typer()


@score.command(
    epilog="Examples:\n\n  expbench score experiment --task workspace/tasks/TASK --submission response.json\n\n"
    "  expbench score experiment --task tasks/TASK --submission run/episodes/TASK/0/submission/files --json\n\n"
    "  expbench score experiment --task tasks/TASK --submission DIR --judge model --judge-model gpt-5-mini\n\n"
    "Exit codes: 0 it was judged; 2 usage; 5 task or submission cannot be read; 8 model or key; 9 budget."
)
def experiment(
    task: Annotated[Path, typer.Option(help="tasks/<id> of a workspace or an import.", metavar="DIR")],
    submission: Annotated[
        Path, typer.Option(help="response.json, or a directory with it and the changed files.", metavar="PATH")
    ],
    judge: Annotated[Literal["keyless", "model"], typer.Option(help="Who judges.")] = "keyless",
    judge_model: Annotated[str | None, typer.Option(help="Name of the judge; default: EXPBENCH_MODEL.")] = None,
    panel: Annotated[int, typer.Option(min=1, help="Draws of the model that vote.")] = 1,
    record: Annotated[
        Path | None, typer.Option(help="Keep the judge's exchanges here; what was asked is not paid for again.")
    ] = None,
    json_output: Json = False,
) -> None:
    """Judge a submission without an episode: design, implementation, conclusion (EXP-Bench 4.1)."""
    from evaluation.families.experiment_standalone import score_experiment
    from flows.grading_model import score_model
    from flows.progress import TerminalReporter

    with score_model(judge, judge_model, record) as client, TerminalReporter() as reporter:
        found = score_experiment(task, submission, client=client, panel=panel, reporter=reporter)
    value = found.model_dump(mode="json")
    if json_output:
        print_value(value, True)
        return
    print_value({name: value[name] for name in value if name not in {"judgement", "problems"}}, False)
