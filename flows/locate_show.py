"""What the locator found for one task, on a terminal: the decision, then what it rests on.

Paths and commands are never cut, and commands stand alone on their line, so that both can be copied. Text of others
reaches the terminal without its control characters.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from flows.locate_commands import command_groups
from flows.locate_run import LocateResult, engine_words, problems_of
from pipeline.locator import Chain
from pipeline.schema import Severity
from pipeline.task import NotFound, SourceScript

__all__ = ["show"]

_PROBLEMS: Final = 8
_WORDS: Final = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "dim"}


def show(result: LocateResult, console: Console, *, top: int, explain: bool) -> None:
    """Print a result.

    Args:
        result: from `located`.
        console: where to.
        top: files of the ranking.
        explain: give the reasons of each file.
    """
    location = result.location
    chain = location.chain
    _say(console, f"[bold]{_plain(result.repository)}[/bold] {result.commit[:12]}, {result.files} files ranked; "
                  f"engine: {_plain(engine_words(result))}")  # fmt: skip
    console.print(_ranking(location.ranked[:top], chain, explain=explain))
    if chain is None:
        assert location.not_found is not None, "locate returns a chain or says what it searched"
        _show_not_found(console, location.not_found)
    else:
        _show_chain(console, chain)
    _show_problems(console, result)


def _ranking(ranked: Iterable[SourceScript], chain: Chain | None, *, explain: bool) -> Table:
    members = {source.path: source.role for source in chain.sources} if chain else {}
    table = Table(title="Ranking", title_justify="left", show_lines=explain)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("file and reasons" if explain else "file", overflow="fold")
    table.add_column("role", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    for number, source in enumerate(ranked, 1):
        name = _plain(source.path)
        shown = f"[bold green]{name}[/bold green]" if source.path in members else name
        if explain:
            shown += "".join(f"\n[dim]{_plain(reason)}[/dim]" for reason in source.reasons)
        table.add_row(str(number), shown, members.get(source.path, source.role), f"{source.score:.2f}")
    return table


def _show_not_found(console: Console, found: NotFound) -> None:
    _say(console, f"[bold red]Not found[/bold red]: {_plain(found.reason)}")
    for line in found.searched:
        _say(console, f"  searched: {_plain(line)}")


def _show_chain(console: Console, chain: Chain) -> None:
    _say(console, f"[bold]Chain[/bold], confidence {chain.confidence:.2f}")
    for source in chain.sources:
        why = f"  [dim]{_plain(source.reasons[0])}[/dim]" if source.reasons else ""
        _say(console, f"  {source.role:<8} {_plain(source.path)}{why}")
    groups = command_groups(chain.usage)
    if groups:
        _say(console, "[bold]Commands[/bold], from the root of the repository")
    for group in groups:
        _say(console, f"  {_plain(group.line)}")
        _say(
            console, f"    [dim]{_plain('; '.join(part for part in (group.others, group.first.reason) if part))}[/dim]"
        )


def _show_problems(console: Console, result: LocateResult) -> None:
    """What could not be read, parsed or decided, the gravest first."""
    problems = problems_of(result)
    if problems:
        _say(console, f"[bold]Problems[/bold] ({len(problems)})")
    for problem in problems[:_PROBLEMS]:
        colour = _WORDS[problem.severity]
        _say(console, f"  [{colour}]{problem.severity}[/{colour}] {_plain(problem.where)}: {_plain(problem.message)}")
    if len(problems) > _PROBLEMS:
        _say(console, f"  and {len(problems) - _PROBLEMS} more: they are in --json and on the page of --explain")


def _say(console: Console, text: str) -> None:
    console.print(text, soft_wrap=True, highlight=False)


def _plain(text: str) -> str:
    """Text that is printed as it is: neither markup nor control characters, which move the cursor or worse."""
    return escape("".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text))
