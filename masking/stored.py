"""Tables in Parquet, Feather, Arrow, SQLite and HDF5 files, as text that the other checks can read.

Each file is read in a child process (`pipeline.binary_tables`). What is larger than a table of results is data: it is
noted, and its exact bytes are compared like those of every file.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from masking.units import Budget, Unit
from pipeline.binary_tables import Cells, read_apart
from pipeline.schema import Severity
from pipeline.scratch import scratch_directory

__all__ = ["STORED_MAGIC", "read_stored_tables"]

STORED_MAGIC: Final = {
    b"PAR1": ".parquet", b"ARROW1": ".arrow", b"SQLite format 3\0": ".sqlite", b"\x89HDF\r\n\x1a\n": ".h5",
}  # fmt: skip
"""First bytes -> suffix by which `pipeline.binary_tables` knows the format."""
_MAX: Final = 2 << 20


def read_stored_tables(name: str, where: str, data: bytes, budget: Budget, depth: int) -> Iterator[Unit]:
    """One unit for each table, as CSV; an array is a table of its label and its values."""
    del name, depth
    if len(data) > _MAX:
        budget.unread(where, f"a binary table of more than {_MAX >> 20} MB: not searched for results", Severity.INFO)
        return
    suffix = next(suffix for magic, suffix in STORED_MAGIC.items() if data.startswith(magic))
    try:
        with scratch_directory() as directory:
            path = Path(directory) / f"file{suffix}"
            path.write_bytes(data)
            found = read_apart(path)
    except ValueError as error:
        budget.unread(where, f"a binary table: {error}", Severity.INFO)
        return
    for cells in found:
        yield Unit(f"{where}!/{cells.place or 'table'}", "table.csv", _text(cells), "member")


def _text(cells: Cells) -> bytes:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    if cells.columns:
        writer.writerows([cells.columns, *cells.rows])
    else:
        writer.writerows([" ".join(cells.labels), row[0]] for row in cells.rows)
    return stream.getvalue().encode("utf-8", "replace")
