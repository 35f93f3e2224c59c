"""Commands that bring published benchmarks in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from flows.commands.shared import Json, print_value

__all__ = ["app"]

app = typer.Typer()

_MOST_SHOWN = 10
"""Problems that are printed; all of them are in `problems.json`."""


@app.command(
    "import",
    epilog="Examples:\n\n  expbench import exp-bench exp-bench-data --out tasks\n\n"
    "  expbench import exp-bench exp-bench-data --out tasks --repositories repositories.json\n\n"
    "Exit codes: 0 all files were read; 5 it is no such data, or the repositories' file cannot be read; "
    "6 no task came out of it.",
)
def import_(
    kind: Annotated[Literal["exp-bench"], typer.Argument(help="What is imported.", metavar="exp-bench")],
    directory: Annotated[Path, typer.Argument(help="Directory with the published data.", metavar="DIR")],
    out: Annotated[Path, typer.Option(help="Directory to write; an earlier import there is replaced.")],
    repositories: Annotated[
        Path | None,
        typer.Option(
            help='JSON that says which commit belongs to a paper: {"18865": {"url": "https://...", "commit": "..."}}. '
            "Without it the tasks can be read and judged, not carried out."
        ),
    ] = None,
    json_output: Json = False,
) -> None:
    """Import published tasks; what departs from their form is kept, reported and counted."""
    from pipeline.errors import ExpbenchError, FailureKind
    from pipeline.formats.expbench import read_known_repositories, read_published
    from pipeline.formats.expbench_import import write_imported
    from pipeline.schema import Severity

    known = read_known_repositories(repositories) if repositories else {}
    dataset = read_published(directory, known)
    errors = [problem for problem in dataset.problems if problem.severity is Severity.ERROR]
    messages = Console(stderr=True)
    for problem in errors[:_MOST_SHOWN]:
        messages.print(f"{problem.where}: {problem.message}", soft_wrap=True, highlight=False, markup=False)
    if len(errors) > _MOST_SHOWN:
        messages.print(f"... and {len(errors) - _MOST_SHOWN} more")
    if not dataset.tasks:
        raise ExpbenchError(
            FailureKind.NOTHING_TO_RELEASE,
            str(directory),
            f"none of its records is a task ({len(errors)} error(s))",
            consequence="Nothing was written",
            next_step="Look at the messages above, or name the directory of the published data",
        )
    head = write_imported(dataset, out.resolve())
    value = {
        "directory": str(out.resolve()),
        "papers": len(dataset.papers),
        "tasks": len(dataset.tasks),
        "not_found": sum(item.task.truth.not_found is not None for item in dataset.tasks),
        "with_commit": sum(set(item.task.repository.commit) != {"0"} for item in dataset.tasks),
        "errors": len(errors),
    }
    if json_output:
        print_value(value | {"quirks": head.quirks}, True)
        return
    print_value(value, False)
    for quirk, count in head.quirks.items():
        messages.print(f"  {count} x {quirk}", highlight=False)
