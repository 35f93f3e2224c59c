"""Episodes on the terminal: one line each, in 80 columns; the other families with what ranks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.console import Console

from flows.commands.shared import escape

if TYPE_CHECKING:
    from rich.table import Table

    from evaluation.scores import EpisodeScores
    from pipeline.task import Family

__all__ = ["print_rows"]

_FAMILY_COLUMNS: Final = 3
"""Of a family's own metrics; more do not fit beside the names of its tasks. `expbench report` has all."""


def print_rows(console: Console, rows: Sequence[EpisodeScores]) -> None:
    """The scores of episodes, a table for each family, and below it why some have none.

    Args:
        console: standard output.
        rows: in the order in which they are shown.
    """
    for family in dict.fromkeys(row.family for row in rows):
        console.print(_table(family, [row for row in rows if row.family is family]))
    for row in rows:
        if row.reason:
            name = escape(f"{row.task}/{row.repeat}")
            console.print(f"{row.status.value}  {name}: {escape(row.reason)}", soft_wrap=True, highlight=False)


def _table(family: Family, rows: Sequence[EpisodeScores]) -> Table:
    from rich.table import Column, Table

    from evaluation.metrics import Metric, mark
    from evaluation.report.families import columns_of
    from evaluation.report.tables import family_value
    from pipeline.task import Family as _Family

    own = () if family is _Family.EXPERIMENT else columns_of(family, sorted({n for row in rows for n in row.metrics}))
    shown = own[:_FAMILY_COLUMNS]
    marks = ("D", "I", "E", "C") if family is _Family.EXPERIMENT else tuple(column.title for column in shown)
    # folded, not cut: tasks of one paper differ at the end of their names
    table = Table(
        Column("episode", overflow="fold"), Column("status", no_wrap=True),
        *(Column(name, justify="right", no_wrap=True) for name in ("M", *marks, "USD", "s")),
        box=None, padding=(0, 2, 0, 0),
    )  # fmt: skip
    for row in rows:
        figures = (
            [_share(mark(row, metric).value) for metric in (Metric.D, Metric.I, Metric.E, Metric.C)]
            if family is _Family.EXPERIMENT
            else [family_value(row.metrics.get(column.name), column) for column in shown]
        )
        cost = "?" if row.cost_usd is None else f"{row.cost_usd:.2f}"
        wall = "" if row.wall_s is None else f"{row.wall_s:.0f}"
        name = escape(f"{row.task}/{row.repeat}")
        table.add_row(name, row.status.value, _share(row.monitor), *figures, cost, wall)
    return table


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
