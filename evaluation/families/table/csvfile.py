"""Tables as PRBench writes them (A.2): comment lines, one header, commas, `nan` or nothing for a missing value.

Cells stay text until they are compared, so that nothing is lost on the way in. Non-goal: guessing at other dialects.
"""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path
from typing import Final

from pipeline.schema import Record

__all__ = ["CsvTable", "TableError", "is_missing", "number_of", "parse_table", "read_table"]

_MOST_BYTES: Final = 20 << 20
"""The largest published table has 6 kB."""
_MISSING: Final = frozenset({"", "nan", "na", "n/a", "none", "null", "-nan", "+nan"})
_NUMBER: Final = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eEdD][-+]?\d+)?|[-+]?inf(?:inity)?", re.IGNORECASE)


class TableError(ValueError):
    """A file is no such table; the message says where and why."""


class CsvTable(Record):
    """A table: names of columns, and rows of as many cells (stripped text)."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    ragged: tuple[int, ...] = ()
    """Lines that had fewer or more cells than the header; cut, or filled with missing values."""

    def column(self, name: str) -> tuple[str, ...]:
        """The cells of a column."""
        index = self.columns.index(name)
        return tuple(row[index] for row in self.rows)


def is_missing(cell: str) -> bool:
    """Does a cell say that there is no value?"""
    return cell.strip().lower() in _MISSING


def number_of(cell: str) -> float | None:
    """The number that a cell holds; None for text and for missing values. Fortran's `1.0D-3` is one."""
    text = cell.strip()
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text.lower().replace("d", "e") if "inf" not in text.lower() else text)
    return None if math.isnan(value) else value


def read_table(path: Path, *, strict: bool = False) -> CsvTable:
    """Read a table from a file.

    Args:
        path: the file.
        strict: refuse rows that are shorter or longer than the header (the truth has none).

    Raises:
        TableError: it is too large, no text, or no table.
    """
    size = path.stat().st_size
    if size > _MOST_BYTES:
        raise TableError(f"has {size} bytes, more than the {_MOST_BYTES} that are read")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TableError(f"is no UTF-8 text (byte {error.start})") from error
    return parse_table(text, strict=strict)


def parse_table(text: str, *, strict: bool = False) -> CsvTable:
    """Read a table from text; see `read_table`.

    Raises:
        TableError: see `read_table`.
    """
    if "\0" in text:
        raise TableError("holds a NUL character")
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    lines = [(number, line) for number, line in lines if not line.lstrip().startswith("#")]
    if not lines:
        raise TableError("is empty")
    numbers = [number for number, _ in lines]
    records: list[tuple[int, list[str]]] = []
    try:
        reader = csv.reader((line for _, line in lines), strict=True, skipinitialspace=True)
        for cells in reader:
            number = numbers[min(reader.line_num, len(numbers)) - 1]
            records.append((number, [cell.strip() for cell in cells]))
    except csv.Error as error:
        raise TableError(f"line {numbers[min(len(records), len(numbers) - 1)]}: {error}") from error
    return _table(records, strict)


def _table(records: list[tuple[int, list[str]]], strict: bool) -> CsvTable:
    first, header = records[0]
    while len(header) > 1 and header[-1] == "":
        header.pop()  # a comma at the end of the line
    if all(number_of(cell) is not None for cell in header):
        raise TableError(f"line {first}: there is no header, the first line holds numbers only")
    if "" in header:
        raise TableError(f"line {first}: column {header.index('') + 1} has no name")
    double = sorted({name for name in header if header.count(name) > 1})
    if double:
        raise TableError(f"line {first}: column {double[0]!r} is there more than once")
    rows, ragged = [], []
    for number, cells in records[1:]:
        over = [cell for cell in cells[len(header) :] if cell]
        if len(cells) < len(header) or over:
            if strict:
                raise TableError(f"line {number}: {len(cells)} cells, the header has {len(header)}")
            ragged.append(number)
        rows.append(tuple([*cells, *[""] * (len(header) - len(cells))][: len(header)]))
    return CsvTable(columns=tuple(header), rows=tuple(rows), ragged=tuple(ragged))
