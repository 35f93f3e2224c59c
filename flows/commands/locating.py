"""The command of stage 2.2 alone: which files of a repository answer a task, how they are run, what they implement."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

import typer
from rich.console import Console

from flows.commands.model_options import (
    BudgetUsd,
    Exchanges,
    MaxCalls,
    MaxTokens,
    NoCache,
    Refresh,
    Replay,
    model_options,
)
from flows.commands.shared import Json, escape, resumable
from pipeline.errors import ExpbenchError, FailureKind

if TYPE_CHECKING:
    from flows.engines import ModelOptions
    from flows.locate_run import LocateResult
    from pipeline.tracing import Trace

__all__ = ["app"]

_SETTINGS = 25
"""Settings shown in the terminal; the page and `--json` have all."""

_MODEL: Final = "With a language model"
_RECORD: Final = Path("expbench-locate")

app = typer.Typer()


@app.command(
    epilog="Examples:\n\n"
    "  expbench locate ~/src/repository --task task.yaml\n\n"
    "  expbench locate https://github.com/owner/name --commit 1a2b3c4 --task task.json --explain\n\n"
    "  expbench locate . --task task.yaml --json | jq .chain\n\n"
    "  expbench locate . --task task.yaml --engine model --model gpt-5-mini --budget-usd 0.5\n\n"
    "  expbench locate --cases cases.jsonl --repositories snapshots --out predictions.jsonl\n\n"
    "A task file is YAML or JSON with question, method and expected_outcome. A cases file has one such object a line, "
    "with paper_id and task_index; repositories are the directories DIR/<paper_id>/.\n\n"
    "Exit codes: 0 well, a decision of not_found included; 2 usage; 4 repository; 5 task or cases file; 7 network or "
    "disk; 8 model or key; 9 budget; 130 interrupted."
)
def locate(
    repository: Annotated[
        str | None,
        typer.Argument(help="A directory, searched as it lies there; a bare repository; or a URL.", metavar="[REPO]"),
    ] = None,
    task: Annotated[Path | None, typer.Option(help="YAML or JSON with question, method, expected_outcome.")] = None,
    commit: Annotated[
        str | None, typer.Option(help="Commit, branch or tag of a git repository; default: HEAD.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Give the reasons for each file, and write them as a page.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(help="Where the page goes; with --explain the default is locate.html.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, max=50, help="Files of the ranking that are shown.")] = 10,
    cases: Annotated[Path | None, typer.Option(help="Many tasks, one JSON object a line.")] = None,
    repositories: Annotated[Path | None, typer.Option(help="The repositories of --cases, as DIR/<paper_id>/.")] = None,
    out: Annotated[Path | None, typer.Option(help="Predictions of --cases, one JSON object a line.")] = None,
    engine: Annotated[
        Literal["keyless", "model"],
        typer.Option(help="Who decides: rules alone, or a model that checks their ranking."),
    ] = "keyless",
    model: Annotated[
        str | None, typer.Option(help="Name of the model; default: EXPBENCH_MODEL.", rich_help_panel=_MODEL)
    ] = None,
    record: Annotated[
        Path,
        typer.Option(help="Where the model's exchanges, costs and way (agent.json) go.", rich_help_panel=_MODEL),
    ] = _RECORD,
    budget_usd: BudgetUsd = None,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    no_cache: NoCache = False,
    refresh: Refresh = False,
    replay: Replay = False,
    exchanges: Exchanges = None,
    json_output: Json = False,
) -> None:
    """Find the scripts of REPO that answer a task, the commands that run them, and the lines that implement it."""
    options = model_options(
        used=engine == "model", wanted="--engine model", consequence="Nothing was searched",
        modes={"--no-cache": no_cache, "--refresh": refresh, "--replay": replay}, name=model, budget_usd=budget_usd,
        max_calls=max_calls, max_tokens=max_tokens, exchanges=exchanges,
    )  # fmt: skip
    asked = _Asked(options, record) if engine == "model" else None
    with resumable("expbench locate"):
        if cases is not None:
            if repositories is None or out is None or repository is not None or task is not None:
                raise _usage("--cases needs --repositories and --out, and no REPO or --task")
            if asked is not None:
                raise _usage("--cases is measured without a model; --engine model takes one task")
            _many(cases, repositories, out, json_output)
            return
        if repository is None or task is None:
            raise _usage("a repository with --task, or --cases with --repositories and --out, is needed")
        page = html or (Path("locate.html") if explain else None)
        _one(repository, task, commit, page, top if not explain else max(top, 20), explain, asked, json_output)


class _Asked(NamedTuple):
    """What is asked of a model."""

    options: ModelOptions
    record: Path


def _usage(cause: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.USAGE, "expbench locate", cause, consequence="Nothing was searched", next_step="See --help"
    )


def _many(cases: Path, repositories: Path, out: Path, json_output: bool) -> None:
    from flows.locate_inputs import read_cases
    from flows.locate_run import run_cases
    from flows.progress import TerminalReporter
    from pipeline.settings import Settings

    loaded = read_cases(cases)
    with TerminalReporter() as reporter:
        counts = run_cases(loaded, repositories, out, cache=Settings().cache_dir / "indexes", reporter=reporter)
    if json_output:
        sys.stdout.write(json.dumps(counts, ensure_ascii=False) + "\n")
        return
    console = Console()
    console.print(
        f"{counts['predictions']} of {counts['cases']} cases: {counts['chains']} with a chain, {counts['not_found']} "
        f"not found; written to {escape(str(out))}",
        soft_wrap=True,
    )


def _one(
    repository: str, task: Path, commit: str | None, page: Path | None, top: int, explain: bool, asked: _Asked | None,
    json_output: bool,
) -> None:  # fmt: skip
    from flows.locate_inputs import open_repository, read_task
    from flows.locate_page import locate_page
    from flows.locate_run import explained, located, prediction
    from flows.progress import TerminalReporter
    from pipeline.files import write_text
    from pipeline.locator import build_index
    from pipeline.settings import Settings

    query = read_task(task)
    if asked is not None:
        from flows.locate_model import check_model, checked_by_model

        check_model(asked.options)
    cache = Settings().cache_dir
    with TerminalReporter() as reporter:
        snapshot = open_repository(repository, commit, cache, reporter)
        index = build_index(snapshot, cache=cache / "indexes")
        if asked is None:
            result = located(index, query)
        else:
            location, engine = checked_by_model(index, query, asked.options, asked.record, reporter)
            result = located(index, query, location=location, engine=engine)
    if page is not None:
        write_text(page, locate_page(result, query, shown=top))
    if json_output:
        value = {
            "repository": result.repository,
            "commit": result.commit,
            "engine": result.engine,
            **prediction(result),
            **(explained(result, top) if explain else {}),
            **({"html": str(page)} if page is not None else {}),
        }
        sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
        return
    _show(result, top, explain)
    if page is not None:
        Console(stderr=True).print(f"written to {escape(str(page))}", soft_wrap=True)


def _show(result: LocateResult, top: int, explain: bool) -> None:
    from rich.table import Table

    from flows.locate_commands import command_groups

    console = Console()
    location = result.location
    chain = location.chain
    members = {source.path: source.role for source in chain.sources} if chain else {}
    table = Table(
        "#", "file", "role", "score", *(["reasons"] if explain else []), title="Ranking", title_justify="left"
    )
    for number, source in enumerate(location.ranked[:top], 1):
        name = escape(source.path)
        shown = f"[bold green]{name}[/bold green]" if source.path in members else name
        reasons = [escape("\n".join(source.reasons))] if explain else []
        table.add_row(str(number), shown, members.get(source.path, source.role), f"{source.score:.2f}", *reasons)
    console.print(table)
    if chain is None:
        assert location.not_found is not None
        console.print(f"[bold red]not found[/bold red]: {escape(location.not_found.reason)}", soft_wrap=True)
        for line in location.not_found.searched:
            console.print(f"  searched: {escape(line)}", soft_wrap=True)
        return
    console.print(f"[bold]Chain[/bold], confidence {chain.confidence:.2f}")
    for source in chain.sources:
        why = f"  [dim]{escape(source.reasons[0])}[/dim]" if source.reasons else ""
        console.print(f"  {source.role:<8} {escape(source.path)}{why}", soft_wrap=True)
    for group in command_groups(chain.usage):
        console.print(f"  $ {escape(group.line)}  [dim]{escape(group.first.reason)}[/dim]", soft_wrap=True)
        if group.others:
            console.print(f"    [dim]{escape(group.others)}[/dim]", soft_wrap=True)
    if result.trace is not None:
        _show_trace(console, result.trace)


def _show_trace(console: Console, trace: Trace) -> None:
    """Steps with their lines; settings that are more than a default; needs."""
    console.print(f"[bold]Requirements[/bold] ({len(trace.requirements)})")
    for number, item in enumerate(trace.requirements, 1):
        places = ", ".join(f"{span.path}:{span.start}-{span.end}" for span in item.spans[:4])
        console.print(f"  {number:>2}. {escape(item.text)}  [dim]{escape(places)}[/dim]", soft_wrap=True)
    chosen = [item for item in trace.hyperparameters if item.source != "default"]
    if trace.hyperparameters:
        rest = len(trace.hyperparameters) - len(chosen)
        console.print(f"[bold]Settings[/bold] ({len(chosen)} of the commands and configurations, {rest} defaults)")
    for setting in chosen[:_SETTINGS]:
        origin = f"[dim]{setting.source}[/dim]"
        console.print(f"  {escape(setting.name)} = {escape(setting.value)}  {origin}", soft_wrap=True)
    if len(chosen) > _SETTINGS:
        console.print(f"  and {len(chosen) - _SETTINGS} more: all of them are in --json and on the page of --explain")
    if trace.data_needs:
        console.print("[bold]Needs[/bold]")
    for need in trace.data_needs:
        console.print(f"  {escape(need)}", soft_wrap=True)
