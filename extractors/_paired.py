"""Columns that print two measures in each cell (`Ins/mCls` over `90.2/86.5`) read as two columns.

Only where header and cells agree: the header has as many parts as every cell, and every part of a cell is a number or a
dash. `8/10` under `Correct` is one thing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from extractors.claims import parse_cell
from pipeline.paper import Cell, Table

__all__ = ["split_pairs"]

_DASH: Final = re.compile(r"[–—-]*")


def split_pairs(table: Table) -> tuple[Table, tuple[int, ...]]:
    """The table with paired columns apart, and for each of its columns the one it was printed in.

    Args:
        table: a table as printed.
    """
    width = max((len(row) for row in table.grid), default=0)
    parts = [_parts_of(table, column) for column in range(width)]
    if all(len(names) < 2 for names in parts):
        return table, tuple(range(width))
    origin = tuple(column for column, names in enumerate(parts) for _ in range(max(len(names), 1)))
    first = [origin.index(column) for column in range(width)]
    grid = tuple(
        tuple(part for column in range(width) for part in _cell_parts(table, row, column, parts[column]))
        for row in range(len(table.grid))
    )
    cells = tuple(made for cell in table.cells for made in _moved(table, cell, parts, first))
    return table.model_copy(update={"grid": grid, "cells": cells}), origin


def _leaf(table: Table, column: int) -> int | None:
    """The header row whose text stands directly above a column's body."""
    rows = [r for r in range(table.header_rows) if column < len(table.grid[r]) and table.grid[r][column]]
    return rows[-1] if rows else None


def _parts_of(table: Table, column: int) -> tuple[str, ...]:
    row = _leaf(table, column)
    if row is None or column < table.stub_columns:
        return ()
    head = table.grid[row][column]
    bracket = re.fullmatch(r"(?P<name>.+?)\s?\((?P<parts>[^()]+/[^()]+)\)", head)
    names = [name.strip() for name in (bracket["parts"] if bracket else head).split("/")]
    if len(names) < 2 or any(not re.search(r"[^\W\d_]", name) for name in names):
        return ()
    texts = [
        texts[column] for texts in table.grid[table.header_rows :] if column < len(texts) and texts[column].strip()
    ]
    split = [[part.strip() for part in text.split("/")] for text in texts]
    if not split or any(len(own) != len(names) for own in split):
        return ()
    if any(parse_cell(part) is None and not _DASH.fullmatch(part) for own in split for part in own):
        return ()
    return tuple(f"{bracket['name']} {name}" for name in names) if bracket else tuple(names)


def _cell_parts(table: Table, row: int, column: int, names: Sequence[str]) -> list[str]:
    text = table.grid[row][column] if column < len(table.grid[row]) else ""
    if len(names) < 2:
        return [text]
    if row == _leaf(table, column):
        return list(names)
    if row < table.header_rows or not text.strip():
        return [text, *([""] * (len(names) - 1))]
    return [part.strip() for part in text.split("/")]


def _moved(table: Table, cell: Cell, parts: Sequence[Sequence[str]], first: Sequence[int]) -> list[Cell]:
    """A cell at its place in the wider table: split where its column is, stretched where it spans one that is."""
    last = cell.column + cell.column_span - 1
    names = parts[cell.column] if cell.column_span == 1 else ()
    if len(names) > 1 and (cell.row >= table.header_rows or cell.row == _leaf(table, cell.column)):
        texts = _cell_parts(table, cell.row, cell.column, names)
        return [
            cell.model_copy(update={"column": first[cell.column] + i, "text": text}) for i, text in enumerate(texts)
        ]
    span = first[last] + max(len(parts[last]), 1) - first[cell.column]
    return [cell.model_copy(update={"column": first[cell.column], "column_span": span})]
