"""Commands beside a run: score a submission of a family by itself; probe what a model knows beforehand.

The families' own commands are in `flows.commands.families`, one module a family, found by looking there.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from flows.commands import families
from flows.commands.model_options import BudgetUsd, MaxCalls, MaxTokens, as_decimal
from flows.commands.shared import Json, print_json, print_value

__all__ = ["app", "score"]

app = typer.Typer()
score = typer.Typer(help="Score one submission against a task's reference.", no_args_is_help=True)
app.add_typer(score, name="score")
for _family in sorted(module.name for module in pkgutil.iter_modules(families.__path__)):
    _commands = import_module(f"{families.__name__}.{_family}")
    if hasattr(_commands, "score"):
        score.add_typer(_commands.score)
    if hasattr(_commands, "app"):
        app.add_typer(_commands.app)


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
    budget_usd: BudgetUsd = None,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    json_output: Json = False,
) -> None:
    """Ask a model for the outcomes of tasks without repository and method (EXP-Bench 4.2): does it know them?"""
    from flows.engines import ModelOptions
    from flows.probing import probe as run
    from flows.progress import TerminalReporter

    limits = ModelOptions(budget_usd=as_decimal(budget_usd), max_calls=max_calls, max_tokens=max_tokens)
    with TerminalReporter() as reporter:
        report = run(source, patterns=tasks or (), model=model, record=record, limits=limits, reporter=reporter)
    if print_json(report, json_output):
        return
    value = report.model_dump(mode="json", include={"model", "remembered", "hits", "chance"})
    print_value(value | {"asked": len(report.probes), "unknown": len(report.unknown)}, False)
