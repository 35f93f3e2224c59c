"""A task's claims, laid as tables, against the numbers of one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from pipeline.evidence import TableEvidence
from pipeline.match.printed import PrintedNumber
from pipeline.match.records import CellMatch, Source
from pipeline.match.tables import PrintedTable, match_printed
from pipeline.match.views import plain
from pipeline.paper import Box
from pipeline.task import NumericClaim
from pipeline.validation.observation import Observation

__all__ = ["align_claims"]

_NOWHERE = Box(0, 0, 0, 0)


def align_claims(claims: Sequence[NumericClaim], observations: Sequence[Observation]) -> dict[str, CellMatch]:
    """By claim id the number that it comes to lie on in the largest match beyond chance; equal to it or not.

    Args:
        claims: all of one task; together they are evidence for where each of them lies.
        observations: all numbers of the run, in reading order.
    """
    sources: dict[str, list[Observation]] = {}
    for seen in observations:
        sources.setdefault(seen.source, []).append(seen)
    if len(sources) > 1:
        sources["everything"] = list(observations)  # numbers of one table may be spread over a stream and files
    tables = list(_lay(claims))
    parts = [(Source(name=name, origin="run", command="run"), numbers) for name, numbers in sources.items()]
    found: dict[str, CellMatch] = {}
    for match in match_printed(tables, parts):
        ids = {(number.row, number.column, number.part): number.id for number in tables[match.table].numbers}
        for cell in (*match.cells, *match.missed):
            found.setdefault(ids[cell.row, cell.column, cell.part], cell)
    return found


def _lay(claims: Sequence[NumericClaim]) -> Iterator[PrintedTable]:
    """Cells of the paper's tables where they stand there; the others in a row for their conditions, under their metric."""
    tables: dict[str, list[PrintedNumber]] = {}
    rows: dict[frozenset[tuple[str, str]], int] = {}
    columns: dict[str, int] = {}
    taken: Counter[tuple[str, int, int]] = Counter()
    for claim in claims:
        cell = next((e for e in claim.evidence if isinstance(e, TableEvidence) and e.row is not None), None)
        if cell is not None and cell.row is not None and cell.column is not None:
            label, row, column = f"{cell.label} page {cell.page}", cell.row, cell.column
            beside, above = cell.row_labels, cell.column_headers
        else:
            conditions = frozenset((plain(item.name), plain(item.value)) for item in claim.conditions)
            label, row = "", rows.setdefault(conditions, len(rows))
            column = columns.setdefault(plain(claim.metric), len(columns))
            beside, above = tuple(item.value for item in claim.conditions), (claim.metric,)
        number = PrintedNumber(
            id=claim.id, value=claim.value, decimals=claim.decimals, text=claim.text, unit=claim.unit,
            uncertainty=claim.uncertainty, page=cell.page if cell else 0, box=cell.box if cell else _NOWHERE,
            label=label, row=row, column=column, part=taken[label, row, column], row_labels=beside,
            column_labels=above,
        )  # fmt: skip
        taken[label, row, column] += 1
        tables.setdefault(label, []).append(number)
    for label, numbers in tables.items():
        yield PrintedTable(label, numbers[0].page, tuple(numbers))
