"""Commands that bring published benchmarks in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from flows.commands.shared import Json, print_problems, print_value

__all__ = ["app"]

app = typer.Typer()

_MOST_SHOWN = 10
"""Problems that are printed; the directory that is written holds all of them."""


@app.command(
    "import",
    epilog="Examples:\n\n  expbench import exp-bench exp-bench-data --out tasks\n\n"
    "  expbench import exp-bench exp-bench-data --out tasks --repositories repositories.json\n\n"
    "  expbench import collider-bench Collider-Bench/ColliderBench/tasks --out collider --json\n\n"
    "  expbench import prbench PRBench/data/tasks --out prbench\n\n"
    "  expbench import release dataset --out tasks --papers papers\n\n"
    "Exit codes: 0 what could be read was written, and what could not is counted as errors; 2 usage; 5 it is no such "
    "data, or the repositories' file cannot be read; 6 no task came out of it.",
)
def import_(
    kind: Annotated[
        Literal["collider-bench", "exp-bench", "prbench", "release"],
        typer.Argument(help="What is imported.", metavar="KIND"),
    ],
    directory: Annotated[Path, typer.Argument(help="Directory with the published data.", metavar="DIR")],
    out: Annotated[Path, typer.Option(help="Directory to write; an earlier import there is replaced.")],
    repositories: Annotated[
        Path | None,
        typer.Option(
            help='exp-bench: JSON that says which commit belongs to a paper: {"18865": {"url": "https://...", '
            '"commit": "..."}}. Without it the tasks can be read and judged, not carried out.'
        ),
    ] = None,
    shape_variants: Annotated[
        bool,
        typer.Option("--shape-variants", help="collider-bench: also a shape-only variant of every task of yields."),
    ] = False,
    papers: Annotated[
        Path | None,
        typer.Option(
            help="release: directory with papers that the release may not hold for their licence; found by content."
        ),
    ] = None,
    json_output: Json = False,
) -> None:
    """Import published tasks; what departs from their form is kept, reported and counted."""
    from flows.importers import ImportOptions, importer, likely_kind
    from pipeline.errors import ExpbenchError, FailureKind

    for option, given, only in (
        ("--repositories", repositories is not None, "exp-bench"),
        ("--shape-variants", shape_variants, "collider-bench"),
        ("--papers", papers is not None, "release"),
    ):
        if given and kind != only:
            raise ExpbenchError(
                FailureKind.USAGE,
                option,
                f"it is about {only}, and {kind} is imported",
                consequence="Nothing was imported",
                next_step=f"Leave {option} out",
            )
    options = ImportOptions(repositories=repositories, shape_variants=shape_variants, papers=papers)
    try:
        outcome = importer(kind)(directory, out.resolve(), options)
    except ExpbenchError as error:
        other = likely_kind(directory)
        if error.kind is not FailureKind.RECORD_INVALID or other in {None, kind}:
            raise
        raise ExpbenchError(
            error.kind, error.object, f"{error.cause}; its files are named as those of {other} are",
            consequence=error.consequence, next_step=f"expbench import {other} {directory} --out {out}",
        ) from error  # fmt: skip
    print_problems(outcome.errors, _MOST_SHOWN)
    if not outcome.tasks:
        raise ExpbenchError(
            FailureKind.NOTHING_TO_RELEASE,
            str(directory),
            f"none of its records is a task ({len(outcome.errors)} error(s))",
            consequence="Nothing was written",
            next_step="Look at the messages above, or name the directory of the published data",
        )
    if json_output:
        problems = [problem.model_dump(mode="json") for problem in outcome.errors]
        print_value(outcome.value | outcome.details | {"problems": problems}, True)
        return
    print_value(outcome.value, False)
    for note in outcome.notes:
        Console(stderr=True).print(note, highlight=False, markup=False)
