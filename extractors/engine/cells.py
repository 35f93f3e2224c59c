"""What a table's own labels say of a cell: the conditions and the unit that an answer left out.

Numbers of a table mean nothing without their row and column: two claims of one table must never have the same
conditions. Non-goal: deciding what a table is about.
"""

from __future__ import annotations

from collections.abc import Sequence

from extractors.engine.evidence import compact, words_of
from extractors.engine.listing import Cells
from extractors.naming import split_unit
from pipeline.paper import Table
from pipeline.task import Condition, TableEvidence

__all__ = ["labels_that_name_the_metric", "unit_of", "with_labels"]


def labels_that_name_the_metric(cells: Cells, row_names: Sequence[str], column_names: Sequence[str]) -> list[str]:
    """Headers and labels of the first cell whose level the answer calls no condition: then they name the metric."""
    table, row, column = cells.table, cells.rows[0], cells.columns[0]
    levels = [(label, row_names, n) for n, (label, _) in enumerate(_row_levels(table, row))]
    levels += [(label, column_names, n) for n, label in enumerate(_column_levels(table, column))]
    return [label for label, names, n in levels if label and n < len(names) and not names[n].strip()]


def unit_of(table: Table, cell: TableEvidence, metric: str) -> str | None:
    """A unit in brackets behind the metric, in its header, or in the caption: `Test accuracy (%)`."""
    for text in (metric, *cell.column_headers, *cell.row_labels):
        unit = split_unit(text)[1]
        if unit:
            return unit
    return "%" if "(%)" in table.caption else None


def with_labels(
    kept: tuple[Condition, ...], table: Table, place: tuple[int, int], metric: str,
    names: tuple[Sequence[str], Sequence[str]], all_labels: bool,
) -> tuple[Condition, ...]:  # fmt: skip
    """Conditions that the cell's own labels give and the answer left out: no two claims of a table are alike.

    A level that the answer calls no condition (an empty name) is left out unless `all_labels`; the name of a level that
    it says nothing about is read from the table's own header.
    """
    found = {condition.name.lower(): condition for condition in kept}
    values = {compact(condition.value)[0] for condition in kept}
    levels = [(label, names[0], n, stub) for n, (label, stub) in enumerate(_row_levels(table, place[0]))]
    levels += [(label, names[1], n, "") for n, label in enumerate(_column_levels(table, place[1]))]
    for label, said, level, header in levels:
        value = split_unit(label)[0] or label
        given = said[level].strip() if level < len(said) else header
        silent = level < len(said) and not given and not all_labels
        if not label or silent or words_of(value) <= words_of(metric) or compact(value)[0] in values:
            continue
        name = split_unit(given)[0] or given or "setting"
        while name.lower() in found:
            name += " (2)"
        found[name.lower()] = Condition(name=name, value=value)
        values.add(compact(value)[0])
    return tuple(found.values())


def _row_levels(table: Table, row: int) -> list[tuple[str, str]]:
    """For each label column its text for a row, spanning labels included, and what the header calls it."""
    return [(_covering(table, row, column), stub) for column, stub in enumerate(_stub_names(table))]


def _column_levels(table: Table, column: int) -> list[str]:
    """For each header row its text above a column, spanning headers included."""
    return [_covering(table, row, column) for row in range(table.header_rows)]


def _covering(table: Table, row: int, column: int) -> str:
    own = table.grid[row][column] if column < len(table.grid[row]) else ""
    spans = (
        cell.text
        for cell in table.cells
        if cell.row <= row < cell.row + cell.row_span and cell.column <= column < cell.column + cell.column_span
    )
    return own or next((text for text in spans if text), "")


def _stub_names(table: Table) -> tuple[str, ...]:
    """What the header says of the label columns, outermost first: `Method`."""
    heads = table.grid[: table.header_rows]
    return tuple(
        next((split_unit(row[column])[0] for row in reversed(heads) if column < len(row) and row[column]), "")
        for column in range(table.stub_columns)
    )
