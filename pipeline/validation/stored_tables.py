"""Numbers of binary results, each file read in a child process (`pipeline.binary_tables`).

A file that hangs, crashes or exhausts its parser is a problem of that file and of nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pipeline.binary_tables import READERS, Cells, read_apart
from pipeline.validation.observation import Observation, observe, observe_grid
from pipeline.validation.scalars import number_of

__all__ = ["STORED", "UNREADABLE", "read_stored"]

STORED: Final = frozenset(READERS)
"""Suffixes of what can be read."""
UNREADABLE: Final = frozenset({".pkl", ".pickle", ".joblib", ".pt", ".pth", ".ckpt", ".dill"})
"""Never opened: loading them runs code."""


def read_stored(path: Path, name: str) -> Iterator[Observation]:
    """The numbers of a Parquet, Feather, Arrow, SQLite or HDF5 file.

    Args:
        path: the file; its suffix says what it is.
        name: its path in the run's tree, for `where` and as context.

    Raises:
        ValueError: it could not be read, with the reason.
    """
    for cells in read_apart(path):
        yield from _of_table(cells, name) if cells.columns else _of_array(cells, name)


def _of_table(cells: Cells, name: str) -> Iterator[Observation]:
    where = f"{name}: {cells.place}" if cells.place else name
    rows = [list(cells.columns), *([_cell(value) for value in row] for row in cells.rows)]
    places = [f"{where} header", *(f"{where} row {index}" for index in range(1, len(rows)))]
    yield from observe_grid(rows, places=places, source=where, context=(name,), header_rows=1)


def _cell(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return ""
    return repr(value) if isinstance(value, float) else str(value)


def _of_array(cells: Cells, name: str) -> Iterator[Observation]:
    where = f"{name}: {cells.place}"
    for value, *index in cells.rows:
        if number := number_of(value):
            place = f"{where}[{', '.join(map(str, index))}]" if index else where
            coordinates = [("index", str(position)) for position in index]
            yield observe(
                number, labels=cells.labels, coordinates=coordinates, context=(name,), where=place, source=name
            )
