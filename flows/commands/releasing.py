"""The command that turns accepted tasks into a data set: release."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console

from flows.commands.shared import Json, escape, print_json

if TYPE_CHECKING:
    from flows.release import ReleaseResult

__all__ = ["app"]

app = typer.Typer()

_MOST_SHOWN = 20
"""Files of a push that are listed; all of them are in the JSON."""


@app.command(
    epilog="Examples:\n\n  expbench release work --accept-all --out dataset\n\n"
    "  expbench release work-1 work-2 --out bench --name my-bench --license CC-BY-4.0\n\n"
    "  expbench release collider-bench datasets/causal/core-v0 --out families\n\n"
    "  expbench release work --out bench --push me/bench --push-private me/bench-truth --dry-run\n\n"
    "  python -c \"import datasets; print(datasets.load_dataset('dataset'))\"\n\n"
    "Exit codes: 0 written; 2 usage, or a version that is not a later one; 5 the directory holds something else; "
    "6 nothing is approved, or an answer would be published; 7 or 8 the hub cannot be reached or refuses."
)
def release(
    sources: Annotated[
        list[Path],
        typer.Argument(
            help="Workspaces of `expbench curate`, and directories with histogram, table or causal tasks (published, "
            "imported or generated); several become one data set.",
            metavar="SOURCE",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Directory to write; default: release in the workspace.", show_default=False)
    ] = None,
    accept_all: Annotated[
        bool,
        typer.Option(
            "--accept-all", help="Approve every release candidate without a person's review; recorded as such."
        ),
    ] = False,
    name: Annotated[
        str | None,
        typer.Option(help="Name of the data set; default: as before, or the paper's id.", show_default=False),
    ] = None,
    layout: Annotated[
        Literal["split", "open"],
        typer.Option(help="split: ground truth in a part of its own (private/); open: all in one."),
    ] = "split",
    set_version: Annotated[
        str | None, typer.Option(help="Version, as 1.2.3; default: it follows from what changed.", show_default=False)
    ] = None,
    license_: Annotated[
        str | None, typer.Option("--license", help="Licence of the data set itself (SPDX).", show_default=False)
    ] = None,
    paper_license: Annotated[
        list[str] | None,
        typer.Option(
            help="PAPER=SPDX: licence of a paper, as its publisher states it; repeatable.", show_default=False
        ),
    ] = None,
    images: Annotated[bool, typer.Option(help="Put pictures of the evidence into the private part.")] = True,
    push: Annotated[
        str | None,
        typer.Option(
            help="OWNER/NAME on the hub (HF_ENDPOINT) that gets the public part, or the open set.", show_default=False
        ),
    ] = None,
    push_private: Annotated[
        str | None,
        typer.Option(help="OWNER/NAME that gets the private part: private, access on request.", show_default=False),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be written and uploaded; change nothing.")
    ] = False,
    json_output: Json = False,
) -> None:
    """Write the accepted tasks as a data set that Hugging Face `datasets` loads, answers apart."""
    from flows.progress import TerminalReporter
    from flows.release import ReleaseOptions
    from flows.release import release as run
    from flows.release_offer import sources_of

    options = ReleaseOptions(
        layout=layout, version=set_version, license=license_, paper_licenses=_licences(paper_license or []),
        images=images, push=push, push_private=push_private, dry_run=dry_run,
    )  # fmt: skip
    with TerminalReporter() as reporter:
        opened, families = sources_of(sources)
        result = run(
            opened, out=out, accept_all=accept_all, name=name, options=options, families=families, reporter=reporter
        )
    if not print_json(result, json_output):
        _print(result, Console())


def _licences(stated: list[str]) -> dict[str, str]:
    from pipeline.errors import ExpbenchError, FailureKind

    found: dict[str, str] = {}
    for item in stated:
        paper, equals, spdx = item.partition("=")
        if not (paper and equals and spdx):
            raise ExpbenchError(
                FailureKind.USAGE, f"--paper-license {item}", "is not of the form PAPER=SPDX",
                consequence="Nothing was written", next_step="Write for example --paper-license my-paper=CC-BY-4.0",
            )  # fmt: skip
        found[paper] = spdx
    return found


def _print(result: ReleaseResult, console: Console) -> None:
    done = "would be released" if result.dry_run else "released"
    console.print(
        f"{result.tasks} task(s) {done} to {escape(str(result.directory))}, version {result.version}",
        soft_wrap=True, highlight=False,
    )  # fmt: skip
    for title, changes in (
        ("added", result.added), ("repaired", result.repaired), ("withdrawn", result.withdrawn),
    ):  # fmt: skip
        for change in changes:
            what = f" ({', '.join(change.what)})" if change.what else ""
            console.print(f"  {title:<10}{escape(change.task + what)}", soft_wrap=True, highlight=False)
    for task, why in result.withheld:
        console.print(f"  withheld  {escape(f'{task} ({why})')}", soft_wrap=True, highlight=False)
    if not result.dry_run:
        for config in result.configs:
            console.print(f"Load      datasets.load_dataset({str(result.directory)!r}, {config!r})", soft_wrap=True)
        console.print(f"Evaluate  expbench evaluate {shlex.quote(str(result.directory))} --agent noop", soft_wrap=True)
    for report in result.pushes:
        done = "would be pushed" if report.dry_run else "pushed" if report.changes else "already there"
        new = " (new repository)" if report.created else ""
        console.print(f"{report.part} part {done}: {report.endpoint}/datasets/{report.repository}{new}", soft_wrap=True)
        for item in report.changes[:_MOST_SHOWN]:
            console.print(
                f"  {item.action:<8}{escape(item.path)} ({item.bytes} bytes)", soft_wrap=True, highlight=False
            )
        more = len(report.changes) - _MOST_SHOWN
        tail = f"  ... and {more} more, {report.unchanged} unchanged" if more > 0 else f"  {report.unchanged} unchanged"
        console.print(tail, highlight=False)
