"""Commands of the causal family: generate tasks, check the simulations, play episodes."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer
from rich.console import Console

from flows.commands.model_options import as_decimal
from flows.commands.shared import Json, print_json, print_value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evaluation.families.causal.bench import EpisodeLog
    from evaluation.families.causal.task import CausalTask, Tier
    from pipeline.errors import ExpbenchError
    from pipeline.llm import ModelClient

__all__ = ["app"]

_SEED: Final = re.compile(r"[0-9]{1,9}")

app = typer.Typer()
generate_app = typer.Typer(help="Generate tasks from seeds.", no_args_is_help=True)
app.add_typer(generate_app, name="generate")


@generate_app.command(
    "causal",
    epilog="Examples:\n\n  expbench generate causal --tier L2 --seeds 101,202 --out tasks\n\n"
    "  expbench generate causal --tier L1 --simulation market --seeds 7 --json\n\n"
    "  expbench generate causal --tier L1V --seeds 1,2,3,4 --out tasks\n\n"
    "  expbench generate causal --check tasks\n\n"
    "Tasks that are in --out already are kept, so the same command goes on where it stopped; --check makes "
    "them again.\n\n"
    "Exit codes: 0 all were generated, or nothing differs; 1 a frozen task differs; 2 usage; 5 no frozen task can be "
    "read; 6 for some seed no draw could be verified (the others' tasks are there).",
)
def generate_causal(
    tier: Annotated[
        Literal["L1", "L2", "L3", "L1V", "L1B", "L4"],
        typer.Option(help="Tier. L1V: by the whole metric vector; L1B: blind metric; L4: phase boundary."),
    ] = "L1",
    seeds: Annotated[str, typer.Option(help="Seeds, separated by commas, whole and not negative.")] = "101,202",
    simulation: Annotated[list[str] | None, typer.Option(help="Only these simulations; default: all five.")] = None,
    out: Annotated[Path, typer.Option(help="Directory to write the frozen tasks to.")] = Path("causal-tasks"),
    check: Annotated[
        Path | None, typer.Option(help="Regenerate the frozen tasks of this directory; exit 1 if a byte differs.")
    ] = None,
    json_output: Json = False,
) -> None:
    """Seeded mystery worlds with verified drivers and inert decoys; equal seeds give equal bytes."""
    from evaluation.families.causal.engines import ENGINES

    if check is not None:
        _check_frozen(check, json_output)
        return
    _require_directory(out)
    wanted = [(name, seed) for name in _simulations(simulation, ENGINES) for seed in _numbers(seeds)]
    tasks, failed = _generated(wanted, tier, out)
    if failed and not tasks:
        raise failed[0]
    rows = [{"task": task.id, "target": task.target, **task.difficulty.model_dump()} for task in tasks]
    if json_output:
        print_value(rows, True)
    else:
        _table(rows)
        Console().print(f"\nPlay   expbench solve {out} --solver ofat --out run", soft_wrap=True)
    if failed:
        raise typer.Exit(failed[0].exit_code)


def _generated(
    wanted: Sequence[tuple[str, int]], tier: Tier, out: Path
) -> tuple[list[CausalTask], list[ExpbenchError]]:
    """The tasks of these simulations and seeds, each written as soon as it is there, and what gave none."""
    from evaluation.families.causal.generate import generate
    from evaluation.families.causal.store import frozen_task, write_tasks
    from flows.progress import TerminalReporter
    from pipeline.errors import ExpbenchError, FailureKind

    tasks, failed = [], list[ExpbenchError]()
    began, made = time.monotonic(), 0
    with TerminalReporter() as reporter:
        reporter.start("generate", len(wanted))
        for number, (name, seed) in enumerate(wanted):
            task = frozen_task(out, name, tier, seed)
            if task is not None:
                tasks.append(task)
                reporter.step("generate", f"{task.id}: was there")
                continue
            made += 1
            try:
                tasks.append(generate(name, tier, seed, reporter))
            except ExpbenchError as error:
                if error.kind is not FailureKind.DATA_UNAVAILABLE:
                    raise
                failed.append(error)
                reporter.warn(str(error))
                continue
            write_tasks(tasks[-1:], out)
            left = (time.monotonic() - began) / made * (len(wanted) - number - 1)
            reporter.step("generate", tasks[-1].id + (f", about {left:.0f} s left" if left >= 1 else ""))
        reporter.end("generate", f"{len(tasks)} tasks in {out}, {len(failed)} seed(s) gave none")
    return tasks, failed


def _check_frozen(directory: Path, json_output: bool) -> None:
    from evaluation.families.causal.generate import generate, to_json
    from evaluation.families.causal.store import load_tasks
    from flows.progress import TerminalReporter

    tasks, problems = load_tasks(directory)
    differing = [problem.where for problem in problems]
    with TerminalReporter() as reporter:
        reporter.start("regenerate", len(tasks))
        for task in tasks:
            if to_json(generate(task.simulation, task.tier, task.seed)) != to_json(task):
                differing.append(task.id)
            reporter.step("regenerate", task.id)
        reporter.end("regenerate", f"{len(tasks)} tasks, {len(differing)} differ")
    print_value({"tasks": len(tasks), "differing": differing}, json_output)
    if differing:
        raise typer.Exit(1)


@app.command(
    epilog="Examples:\n\n  expbench solve tasks --solver ofat --out run\n\n"
    "  expbench solve tasks --solver ofat-rand --salt 3 --repeats 10 --out run\n\n"
    "  expbench solve tasks --solver llm --model gpt-5-mini --repeats 3 --budget-usd 2 --out run\n\n"
    "Episodes that are in --out already are kept, so the same command goes on where it stopped.\n\n"
    "Exit codes: 0 all were played; 2 usage; 5 no task or a damaged episode; 8 model or key; 9 budget; 130 interrupted."
)
def solve(
    tasks: Annotated[Path, typer.Argument(help="Frozen tasks of the causal family.", metavar="TASKS")],
    solver: Annotated[
        Literal["random", "ofat", "adaptive", "ofat-rand", "llm", "model"],
        typer.Option(help="A reference solver, or `llm` (also `model`): a language model in the standard agent loop."),
    ] = "ofat",
    model: Annotated[str | None, typer.Option(help="Name of the model; default: EXPBENCH_MODEL.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Episodes per task.")] = 1,
    salt: Annotated[
        int, typer.Option(min=0, help="Number of the first repeat: `random` and `ofat-rand` draw by task and number.")
    ] = 0,
    max_usd: Annotated[
        float | None,
        typer.Option("--budget-usd", "--max-usd", min=0, help="Money that a model may cost altogether."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Directory of the run.")] = Path("causal-run"),
    json_output: Json = False,
) -> None:
    """Play the causal tasks on the blind bench, score and audit every episode."""
    from evaluation.families.causal.store import load_tasks
    from evaluation.families.causal.sweep import sweep, table
    from flows.progress import TerminalReporter

    loaded, problems = load_tasks(tasks)
    _require_directory(out)
    solver = "model" if solver == "llm" else solver
    play, client = _player(solver, model, max_usd, out)
    try:
        with TerminalReporter() as reporter:
            for problem in problems:
                reporter.warn(f"{problem.where}: {problem.message}")
            episodes = sweep(
                loaded, play, out, solver=solver, repeats=repeats, reporter=reporter, first=salt,
                model=client.config.model if client else None,
            )  # fmt: skip
    finally:
        if client is not None:
            client.close()
    rows = table(episodes)
    if print_json(rows, json_output):
        return
    shown = [row.model_dump(exclude={"by_tier", "model"}) | dict(row.by_tier) for row in rows]
    _table(shown)


@app.command(
    epilog="Examples:\n\n  expbench simulations\n\n  expbench simulations --check\n\n"
    "Exit codes: 0 well; 1 with --check: a literature check failed."
)
def simulations(
    check: Annotated[bool, typer.Option("--check", help="Run the literature checks; exit 1 if one fails.")] = False,
    json_output: Json = False,
) -> None:
    """The simulations of the causal family, or what they show of their literatures."""
    from evaluation.families.causal.engines import ENGINES
    from evaluation.families.causal.validation import validate

    if not check:
        rows = [
            {
                "simulation": engine.name,
                "domain": engine.domain,
                "target": engine.target,
                "parameters": ", ".join(parameter.name for parameter in engine.parameters),
            }
            for engine in ENGINES.values()
        ]
        print_value(rows, True) if json_output else _table(rows)
        return
    checks = validate()
    if not print_json(checks, json_output):
        columns = {"simulation", "name", "reference", "measured", "expected", "passed"}
        _table([item.model_dump(include=columns) for item in checks])
    if not all(item.passed for item in checks):
        raise typer.Exit(1)


def _player(
    solver: str, model: str | None, max_usd: float | None, run: Path
) -> tuple[Callable[[CausalTask, int], EpisodeLog], ModelClient | None]:
    if solver != "model":
        from evaluation.families.causal.solvers import solve as play

        return (lambda task, repeat: play(task, solver, repeat)), None
    from evaluation.families.causal.model_solver import solve_with_model
    from pipeline.llm import Budget, BudgetLimits, CallLedger, ModelClient, model_config_from_environment

    client = ModelClient(
        model_config_from_environment(model), ledger=CallLedger(run / "calls.jsonl"),
        budget=Budget(limits=BudgetLimits(usd=as_decimal(max_usd))) if max_usd is not None else None,
    )  # fmt: skip
    return (lambda task, repeat: solve_with_model(task, client, repeat=repeat)), client


def _numbers(text: str) -> list[int]:
    from pipeline.errors import ExpbenchError, FailureKind

    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or any(_SEED.fullmatch(part) is None for part in parts):
        raise ExpbenchError(
            FailureKind.USAGE, f"--seeds {text!r}", "is no list of whole numbers from 0 to 999999999",
            consequence="No task was generated", next_step="Give for example --seeds 101,202",
        )  # fmt: skip
    return list(dict.fromkeys(int(part) for part in parts))


def _require_directory(out: Path) -> None:
    """Can results be written there?"""
    from pipeline.errors import ExpbenchError, FailureKind

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExpbenchError(
            FailureKind.USAGE, f"--out {out}", f"is no directory that can be written to ({error.strerror})",
            consequence="Nothing was generated or played", next_step="Name another directory with --out",
        ) from error  # fmt: skip


def _simulations(given: Sequence[str] | None, known: Mapping[str, object]) -> list[str]:
    """The simulations asked for, each once; checked before the first task is made."""
    from pipeline.errors import ExpbenchError, FailureKind

    for name in given or ():
        if name not in known:
            raise ExpbenchError(
                FailureKind.USAGE, f"--simulation {name}", "is not known", consequence="No task was generated",
                next_step=f"Choose among {', '.join(known)}",
            )  # fmt: skip
    return list(dict.fromkeys(given or known))


def _table(rows: Sequence[Mapping[str, object]]) -> None:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in rows[0] if rows else ():
        table.add_column(str(name).replace("_", " "), overflow="fold")
    for row in rows:
        table.add_row(*(f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values()))
    Console().print(table)
