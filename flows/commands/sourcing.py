"""The command of stage 1: sources."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console

from flows.commands.shared import Json, escape, print_problems, print_value

if TYPE_CHECKING:
    from pipeline.sources.build import CandidateList, Plan
    from pipeline.sources.filters import Filters
    from pipeline.sources.services import Lookup

__all__ = ["app"]

app = typer.Typer()

_MOST_SHOWN = 10
"""Problems that are printed; all of them are in the report."""


class LookupName(StrEnum):
    """Whom candidates are looked up with (typer takes no lists of literals)."""

    OPENALEX = "openalex"
    SEMANTIC_SCHOLAR = "semantic-scholar"
    GITHUB = "github"


@app.command(
    epilog="Examples:\n\n  expbench sources iclr2024/conference_data.jsonl --out candidates.jsonl\n\n"
    "  expbench sources papers.bib more.csv --filters filters.yaml --look-up openalex --look-up github "
    "--out candidates.jsonl\n\n"
    "  expbench sources --venue ICLR.cc/2024/Conference --look-up github --download --out candidates.jsonl\n\n"
    "  expbench sources papers.bib --look-up github --dry-run\n\n"
    "  expbench sources --print-filters > filters.yaml\n\n"
    "Exit codes: 0 a list was made (what could not be looked up is a problem of the list); 2 usage or filters; "
    "5 an export cannot be read; 6 no candidate is left; 8 a venue cannot be listed."
)
def sources(
    exports: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Exports of papers: .jsonl (conference_data.jsonl as published), .json, .csv, .tsv, .bib.",
            metavar="EXPORT", show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="List to write (.jsonl); LIST.rejected.jsonl and LIST.report.json beside it.", show_default=False
        ),
    ] = None,
    filters: Annotated[
        Path | None,
        typer.Option(help="YAML or JSON with filters; default: those of --print-filters.", show_default=False),
    ] = None,
    venue: Annotated[
        list[str] | None,
        typer.Option(help="OpenReview venue id whose accepted papers are taken; repeatable.", show_default=False),
    ] = None,
    look_up: Annotated[
        list[LookupName] | None,
        typer.Option(help="Whom to ask about citations (openalex, semantic-scholar) and code (github); repeatable.",
                     show_default=False),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Keep the best so many.", show_default=False)] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Fetch the papers of the list into papers/ beside it.")
    ] = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask nobody: only what was looked up before is known.")
    ] = False,
    max_age_days: Annotated[int, typer.Option(min=0, help="Ask again for answers older than this.")] = 30,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be asked of whom; ask nobody, write nothing.")
    ] = False,
    print_filters: Annotated[
        bool, typer.Option("--print-filters", help="Print the filters (default, or those of --filters) and exit.")
    ] = False,
    json_output: Json = False,
) -> None:  # fmt: skip
    """Make a ranked, filtered list of papers with code, from exports and look-ups; every rejection says why."""
    from datetime import timedelta

    from flows.progress import TerminalReporter
    from pipeline.settings import Settings
    from pipeline.sources.build import build_list, plan_list
    from pipeline.sources.filters import Filters, read_filters
    from pipeline.sources.listing import fetch_papers, write_list
    from pipeline.sources.services import lookup_named
    from pipeline.sources.web import WebClient

    asked: Filters = read_filters(filters) if filters else Filters()
    if print_filters:
        _print_filters(asked, json_output)
        return
    _check(exports, venue, out, download=download, dry_run=dry_run)
    found, venues = exports or [], venue or []
    lookups: list[Lookup] = [lookup_named(name.value) for name in dict.fromkeys(look_up or [])]
    cache = Settings().cache_dir / "sources"
    with WebClient(cache, offline=offline, max_age=timedelta(days=max_age_days)) as client:
        if dry_run:
            plan = plan_list(found, venues=venues, lookups=lookups, filters=asked, client=client)
            _print_plan(plan, json_output)
            return
        with TerminalReporter() as reporter:
            result = build_list(found, venues=venues, lookups=lookups, filters=asked, client=client,
                                reporter=reporter, limit=limit)  # fmt: skip
            base = found[0].resolve().parent if found else None
            if out is not None and download:
                missing = fetch_papers(result, out.resolve(), client, reporter)
                result = result.evolve(problems=(*result.problems, *missing))
    written = write_list(result, out.resolve(), base) if out is not None else ()
    _report(result, written, base, json_output)
    _none_left(result)


def _check(
    exports: list[Path] | None, venue: list[str] | None, out: Path | None, *, download: bool, dry_run: bool
) -> None:
    from pipeline.errors import ExpbenchError, FailureKind

    cause = step = ""
    if not exports and not venue:
        cause, step = (
            "neither an export nor a venue is given",
            "Name a file of papers, or --venue ICLR.cc/2024/Conference",
        )
    elif out is not None and out.suffix != ".jsonl":
        cause, step = f"--out {out} does not end in .jsonl", "Name the list for example candidates.jsonl"
    elif download and out is None and not dry_run:
        cause, step = "--download needs a place for the papers", "Give --out: they are put into papers/ beside it"
    if cause:
        raise ExpbenchError(
            FailureKind.USAGE, "expbench sources", cause, consequence="No list was made", next_step=step
        )


def _none_left(result: CandidateList) -> None:
    from pipeline.errors import ExpbenchError, FailureKind

    if result.candidates:
        return
    most = ", ".join(f"{name} ({count})" for name, count in list(result.rejections().items())[:3])
    raise ExpbenchError(
        FailureKind.NOTHING_TO_RELEASE, "expbench sources",
        f"none of {result.read} paper(s) passes the filters; most are rejected by {most}",
        consequence="The list is empty", next_step="Relax the filters with --filters (see --print-filters)",
    )  # fmt: skip


def _print_filters(filters: Filters, as_json: bool) -> None:
    import sys

    import yaml

    value = filters.model_dump(mode="json", exclude={"schema_version"})
    if as_json:
        print_value(value, True)
    else:
        sys.stdout.write(yaml.safe_dump(value, sort_keys=False))


def _print_plan(plan: Plan, as_json: bool) -> None:
    value = {"dry_run": True, **plan.model_dump(mode="json")}
    if as_json:
        print_value(value, True)
        return
    print_value(
        {
            "papers": plan.read,
            "rejected_before": plan.rejected_before,
            "requests": ", ".join(f"{name}: {count}" for name, count in plan.requests.items()) or "none",
            "cached": ", ".join(f"{name}: {count}" for name, count in plan.cached.items()) or "none",
        },
        False,
    )


def _report(result: CandidateList, written: tuple[Path, ...], base: Path | None, as_json: bool) -> None:
    from pipeline.sources.listing import list_row

    if as_json:
        print_value(
            {
                "out": [str(path) for path in written],
                "read": result.read,
                "candidates": [list_row(item, base) for item in result.candidates],
                "rejected": [
                    {"id": item.candidate.id, "title": item.candidate.title,
                     "reasons": [reason.model_dump() for reason in item.reasons]}
                    for item in result.rejected
                ],
                "rejections": result.rejections(),
                "asked": result.asked,
                "problems": [problem.model_dump(mode="json") for problem in result.problems],
            },
            True,
        )  # fmt: skip
        return
    console = Console()
    if result.candidates:
        _print_table(result, console)
    for item in result.rejected:
        reasons = "; ".join(reason.reason for reason in item.reasons)
        console.print(
            f"[red]rejected[/red] {escape(item.candidate.id)}: {escape(reasons)}", soft_wrap=True, highlight=False
        )
    print_problems(result.problems, _MOST_SHOWN)
    console.print(f"{len(result.candidates)} kept, {len(result.rejected)} rejected of {result.read} paper(s)")
    for path in written:
        console.print(f"  {escape(str(path))}", soft_wrap=True, highlight=False)


def _print_table(result: CandidateList, console: Console) -> None:
    from rich.table import Table

    numbers = ("", "score", "cit.", "stars", "forks", "GPUs")
    rows = []
    for item in result.candidates:
        paper = item.candidate
        counts = (paper.citations, paper.stars, paper.forks, paper.needs.gpus)
        venue = f"{paper.venue or ''} {paper.year or ''}".strip()
        cells = [str(item.rank), f"{item.score:.2f}", *("?" if value is None else str(value) for value in counts)]
        rows.append([*cells, venue, paper.id, ", ".join(item.unknown), paper.title])
    names = [*numbers, "venue", "id", "not known", "paper"]
    if not any(row[-2] for row in rows):
        names, rows = [*names[:-2], names[-1]], [[*row[:-2], row[-1]] for row in rows]
    table = Table(box=None, padding=(0, 1, 0, 0))
    for number, name in enumerate(names):
        # only the title gives way on a narrow screen
        least = max(len(name), *(len(row[number]) for row in rows)) if name != "paper" else 20
        right: Literal["left", "right"] = "right" if name in numbers else "left"
        table.add_column(name, justify=right, no_wrap=True, overflow="ellipsis", min_width=least)
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    console.print(table)
