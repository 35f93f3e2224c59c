"""A task's claims, laid as tables, against the numbers of one run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from pipeline.evidence import TableEvidence
from pipeline.match.printed import PrintedNumber
from pipeline.match.records import CellMatch, Source
from pipeline.match.tables import ACCEPTED, PrintedTable, match_printed
from pipeline.match.views import plain
from pipeline.paper import Box
from pipeline.task import NumericClaim
from pipeline.validation.observation import Observation
from pipeline.validation.places import by_file

__all__ = ["align_claims"]

_NOWHERE: Final = Box(0, 0, 0, 0)
_METRIC: Final = ""
"""Stands beside the names of conditions."""


def align_claims(claims: Sequence[NumericClaim], observations: Sequence[Observation]) -> dict[str, CellMatch]:
    """By claim id the number that it comes to lie on in the largest match beyond chance; equal to it or not.

    Args:
        claims: all of one task; together they are evidence for where each of them lies.
        observations: all numbers of the run, in reading order.
    """
    sources = by_file(observations)
    if len(sources) > 1:
        sources["everything"] = list(observations)  # numbers of one table may be spread over a stream and files
    parts = [(Source(name=name, origin="run", command="run"), numbers) for name, numbers in sources.items()]
    tables = list(_lay(claims))
    # The same claims laid in another way are another try. Numbers without structure (no field is named) do not count:
    # of shares of 30 any dozen of claims found half of itself in any dozen of numbers.
    limit = ACCEPTED - math.log10(len(tables))
    sure = [match for match in match_printed(tables, parts) if match.chance <= limit and match.fields]
    found: dict[str, CellMatch] = {}
    for match in sorted(sure, key=lambda match: (-len(match.cells), match.chance)):
        ids = {(number.row, number.column, number.part): number.id for number in tables[match.table].numbers}
        for cell in (*match.cells, *match.missed):
            found.setdefault(ids[cell.row, cell.column, cell.part], cell)
    return found


def _lay(claims: Sequence[NumericClaim]) -> Iterator[PrintedTable]:
    """The paper's tables with the cells that are claimed; and the other claims, each condition once as the columns."""
    cells: dict[str, list[PrintedNumber]] = {}
    others: list[NumericClaim] = []
    for claim in claims:
        cell = next((e for e in claim.evidence if isinstance(e, TableEvidence) and e.row is not None), None)
        if cell is None or cell.row is None or cell.column is None:
            others.append(claim)
            continue
        table = cells.setdefault(f"{cell.label} page {cell.page}", [])
        table.append(_print(claim, table, (cell.row, cell.column), cell.row_labels, cell.column_headers))
    values: dict[str, set[str]] = {}
    for claim in others:
        for name, value in _names(claim).items():
            values.setdefault(name, set()).add(value)
    for axis in [name for name, found in values.items() if len(found) > 1] or [_METRIC]:
        rows: dict[tuple[str, ...], int] = {}
        columns: dict[str, int] = {}
        table = cells.setdefault(f"by {axis}", [])
        for claim in others:
            beside = _names(claim)
            above = beside.pop(axis, "")
            place = rows.setdefault(tuple(sorted(beside.values())), len(rows)), columns.setdefault(above, len(columns))
            table.append(_print(claim, table, place, tuple(beside.values()), (above,)))
    for label, numbers in cells.items():
        yield PrintedTable(label, numbers[0].page if numbers else 0, tuple(numbers))


def _names(claim: NumericClaim) -> dict[str, str]:
    return {_METRIC: claim.metric, **{plain(item.name): item.value for item in claim.conditions}}


def _print(
    claim: NumericClaim, table: Sequence[PrintedNumber], place: tuple[int, int], beside: tuple[str, ...],
    above: tuple[str, ...],
) -> PrintedNumber:  # fmt: skip
    """A claim as a number in a row and a column; where others stand there already, beside them."""
    row, column = place
    return PrintedNumber(
        id=claim.id, value=claim.value, decimals=claim.decimals, text=claim.text, unit=claim.unit,
        uncertainty=claim.uncertainty, page=0, box=_NOWHERE, label="", row=row, column=column,
        part=sum((number.row, number.column) == place for number in table), row_labels=beside, column_labels=above,
    )  # fmt: skip
