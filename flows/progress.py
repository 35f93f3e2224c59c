"""Progress on the terminal: a live display for people, plain lines where there is no terminal, nothing for `--json`.

Everything goes to standard error, so that standard output holds the result alone.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

__all__ = ["TerminalReporter"]


class TerminalReporter:
    """A `Reporter` that draws one line per stage; a context manager, so that the display is always taken down."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self._live = self.console.is_terminal
        self._tasks: dict[str, TaskID] = {}
        self._progress = Progress(
            SpinnerColumn(finished_text="[green]✓"),
            TextColumn("[bold]{task.fields[stage]}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.description}", markup=True),
            console=self.console,
        )

    def __enter__(self) -> Self:
        if self._live:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._progress.stop()

    def start(self, stage: str, total: int | None = None) -> None:
        """Begin a line for `stage`."""
        if self._live:
            self._tasks[stage] = self._progress.add_task("", total=total, stage=f"{stage:<12}")
        else:
            self._line(stage, "…" if total is None else f"0/{total}")

    def step(self, stage: str, message: str) -> None:
        """Advance the line of `stage`."""
        if not self._live:
            self._line(stage, message)
        elif stage in self._tasks:
            self._progress.update(self._tasks[stage], advance=1, description=_plain(message))

    def note(self, stage: str, message: str) -> None:
        """Say beside the line of `stage` what it is doing."""
        if not self._live:
            self._line(stage, f"  {message}")
        elif stage in self._tasks:
            self._progress.update(self._tasks[stage], description=_plain(message))

    def end(self, stage: str, message: str = "") -> None:
        """Finish the line of `stage`."""
        if not self._live:
            self._line(stage, message or "done")
        elif stage in self._tasks:
            task = self._progress.tasks[self._progress.task_ids.index(self._tasks[stage])]
            done = task.total if task.total is not None else max(task.completed, 1)
            self._progress.update(self._tasks[stage], total=done, completed=done, description=_plain(message))

    def warn(self, message: str) -> None:
        """Print a warning above the display."""
        self.console.print(f"[yellow]![/yellow] {_plain(message)}", highlight=False)

    def _line(self, stage: str, message: str) -> None:
        self.console.print(
            f"[bold]{stage:<12}[/bold] {_plain(message, keep_indent=True)}", highlight=False, soft_wrap=True
        )


def _plain(message: str, *, keep_indent: bool = False) -> str:
    """One line, and text of papers and repositories is not read as console markup."""
    indent = " " * (len(message) - len(message.lstrip(" "))) if keep_indent else ""
    return escape(indent + " ".join(message.split()))
