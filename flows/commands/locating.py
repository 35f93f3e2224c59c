"""The command of stage 2.2 alone: which files of a repository answer a task, how they are run, what they implement."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
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
    from pipeline.locator import Location, RepositoryIndex, TaskQuery
    from pipeline.progress import Reporter

__all__ = ["app"]

_MODEL: Final = "With a language model"
_LOCATE: Final = "expbench locate"
_AGAIN: Final = "Give the same command again to go on"

app = typer.Typer()


@app.command(
    epilog="Examples:\n\n"
    '  expbench locate ~/src/repository "How accurate is the model on spirals?"\n\n'
    "  expbench locate ~/src/repository --task task.yaml\n\n"
    "  expbench locate https://github.com/owner/name@1a2b3c4 --task task.json --explain\n\n"
    "  expbench locate . --task task.yaml --json | jq .chain\n\n"
    "  expbench locate . --task task.yaml --engine model --model gpt-5-mini --budget-usd 0.5\n\n"
    "  expbench locate --cases cases.jsonl --repositories snapshots --out predictions.jsonl [--engine model]\n\n"
    "A task file is YAML or JSON with question, method and expected_outcome. A cases file has one such object a line, "
    "with paper_id and task_index; repositories are the directories DIR/<paper_id>/. An interrupted command goes on "
    "when it is given again.\n\n"
    "Exit codes: 0 well, a decision of not_found included; 2 usage; 4 repository; 5 task or cases file; 7 network or "
    "disk; 8 model or key; 9 budget; 130 interrupted."
)
def locate(
    repository: Annotated[
        str | None,
        typer.Argument(
            help="A directory, searched as it lies there; a bare repository; or a URL. REPO@COMMIT names a commit.",
            metavar="REPO",
        ),
    ] = None,
    question: Annotated[
        str | None,
        typer.Argument(help="The question in words, or a task file as for --task.", metavar="QUESTION"),
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
    top: Annotated[
        int | None,
        typer.Option(min=1, max=50, help="Files of the ranking that are shown; default: 10, with --explain 20."),
    ] = None,
    cases: Annotated[Path | None, typer.Option(help="Many tasks, one JSON object a line.")] = None,
    repositories: Annotated[Path | None, typer.Option(help="The repositories of --cases, as DIR/<paper_id>/.")] = None,
    out: Annotated[Path | None, typer.Option(help="Predictions of --cases, one JSON object a line.")] = None,
    engine: Annotated[
        Literal["keyless", "model"],
        typer.Option(help="Who decides: rules alone, or a model that reads and chooses."),
    ] = "keyless",
    model: Annotated[
        str | None, typer.Option(help="Name of the model; default: EXPBENCH_MODEL.", rich_help_panel=_MODEL)
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            help="Where the model's exchanges, costs and way (reader.json) go; default: expbench-locate/, in a "
            "directory of the task's own; with --cases OUT.model/.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    budget_usd: BudgetUsd = None,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    no_cache: NoCache = False,
    refresh: Refresh = False,
    replay: Replay = False,
    exchanges: Exchanges = None,
    json_output: Json = False,
) -> None:
    """Find the scripts of REPO that answer a task, and the commands that run them."""
    options = model_options(
        used=engine == "model", wanted="--engine model", consequence="Nothing was searched",
        modes={"--no-cache": no_cache, "--refresh": refresh, "--replay": replay}, name=model, budget_usd=budget_usd,
        max_calls=max_calls, max_tokens=max_tokens, exchanges=exchanges,
    )  # fmt: skip
    asked = _Asked(options, record) if engine == "model" else None
    if record is not None and asked is None:
        raise _usage("--record means something with --engine model only")
    if cases is not None:
        _alone("--cases", {"REPO": repository, "QUESTION": question, "--task": task, "--commit": commit,
                           "--explain": explain or None, "--html": html})  # fmt: skip
        if repositories is None or out is None:
            raise _usage("--cases needs --repositories and --out")
        _many(cases, repositories, out, asked, json_output)
        return
    _alone("one task", {"--repositories": repositories, "--out": out})
    if repository is None or (task is None) == (question is None):
        raise _usage(
            "a repository with either a question or --task, or --cases with --repositories and --out, is needed"
        )
    page = html or (Path("locate.html") if explain else None)
    with resumable(_LOCATE, "Nothing is half written; what a model answered is kept in --record", _AGAIN):
        _one(
            repository,
            question if task is None else task,
            commit,
            page,
            top or (20 if explain else 10),
            explain,
            asked,
            json_output,
        )


class _Asked(NamedTuple):
    """What is asked of a model."""

    options: ModelOptions
    record: Path | None
    """None: a directory of the task's own."""


def _alone(what: str, others: dict[str, object]) -> None:
    given = [name for name, value in others.items() if value is not None]
    if given:
        raise _usage(f"{', '.join(given)} {'has' if len(given) == 1 else 'have'} no meaning with {what}")


def _usage(cause: str) -> ExpbenchError:
    return ExpbenchError(FailureKind.USAGE, _LOCATE, cause, consequence="Nothing was searched", next_step="See --help")


def _many(cases: Path, repositories: Path, out: Path, asked: _Asked | None, json_output: bool) -> None:
    from flows.locate_cases import partial_directory, run_cases
    from flows.locate_inputs import check_output, read_cases
    from flows.progress import TerminalReporter
    from pipeline.settings import Settings

    settings = Settings()
    loaded = read_cases(cases)
    check_output(out, inputs=[cases])
    cache = settings.cache_dir
    kept = f"No prediction was written yet; those that are finished are kept in {partial_directory(out)}"
    with (
        resumable(_LOCATE, kept, _AGAIN),
        TerminalReporter() as reporter,
        ExitStack() as stack,
    ):
        search, searcher = None, "keyless"
        if asked is not None:  # the layer of models is not even imported without one
            from flows.locate_model import check_model, choosing_model

            searcher, record = check_model(asked.options), asked.record or out.with_name(f"{out.name}.model")
            search = stack.enter_context(choosing_model(asked.options, record, reporter))
        counts = run_cases(loaded, repositories, out, cache=cache, reporter=reporter, search=search, searcher=searcher)
    if json_output:
        sys.stdout.write(json.dumps(counts, ensure_ascii=False) + "\n")
        return
    Console().print(
        f"{counts['predictions']} of {counts['cases']} cases: {counts['chains']} with a chain, {counts['not_found']} "
        f"not found; written to {escape(str(out))}",
        soft_wrap=True, highlight=False,
    )  # fmt: skip


def _one(
    repository: str, task: Path | str | None, commit: str | None, page: Path | None, top: int, explain: bool,
    asked: _Asked | None, json_output: bool,
) -> None:  # fmt: skip
    from flows.locate_inputs import check_output, open_repository, read_asked
    from flows.locate_run import located
    from flows.progress import TerminalReporter
    from pipeline.locator import build_index
    from pipeline.settings import Settings

    source, query = read_asked(task or "")
    if page is not None:
        check_output(page, inputs=[source] if source is not None else [])
    settings = Settings()
    if asked is not None and asked.record is None:
        asked = asked._replace(record=_record_of(source or Path("question"), repository, query))
    searching = _searching(asked, query)
    with TerminalReporter() as reporter:
        snapshot = open_repository(repository, commit, settings.cache_dir, reporter)
        index = build_index(snapshot, cache=settings.cache_dir / "indexes")
        location, engine = searching(index, reporter)
        result = located(index, query, location=location, engine=engine)
    paths = {"record": asked.record if asked is not None else None, "html": page}
    _written(result, query, paths, top, explain, json_output)


def _record_of(task: Path, repository: str, query: TaskQuery) -> Path:
    from flows.locate_model import record_of

    return record_of(task, repository, query)


def _searching(asked: _Asked | None, query: TaskQuery) -> Callable[[RepositoryIndex, Reporter], tuple[Location, str]]:
    """What ranks and decides, checked before a repository is fetched: rules, or a model that chooses."""
    from pipeline.locator import locate as by_rules

    if asked is None:  # the layer of models is not even imported
        return lambda index, reporter: (by_rules(index, query), "keyless")
    from flows.locate_model import WAY, check_model, choosing_model

    check_model(asked.options)
    record, options = asked.record, asked.options
    assert record is not None, "a task has its directory"

    def search(index: RepositoryIndex, reporter: Reporter) -> tuple[Location, str]:
        with choosing_model(options, record, reporter) as decide:
            return decide(index, [query], WAY)[0]

    return search


def _written(
    result: LocateResult, query: TaskQuery, paths: dict[str, Path | None], top: int, explain: bool, json_output: bool
) -> None:
    from flows.locate_page import locate_page
    from flows.locate_run import explained, prediction
    from flows.locate_show import show
    from pipeline.files import write_text

    page = paths["html"]
    if page is not None:
        write_text(page, locate_page(result, query, shown=top))
    if json_output:
        value = {
            "repository": result.repository,
            "commit": result.commit,
            "engine": result.engine,
            **prediction(result),
            **(explained(result, top) if explain else {}),
            **{name: str(path) for name, path in paths.items() if path is not None},
        }
        sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
        return
    show(result, Console(), top=top, explain=explain)
    if page is not None:
        Console(stderr=True).print(f"written to {escape(str(page))}", soft_wrap=True, highlight=False)
