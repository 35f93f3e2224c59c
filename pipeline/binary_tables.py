"""Tables and small arrays of binary results: Parquet, Feather and Arrow files, SQLite data bases, HDF5.

Run as a program (`python -m pipeline.binary_tables FILE`) it prints what `read` finds as one JSON value: the files come
from code that nobody vouches for, and their parsers are large, so that each file is read in a process of its own with
limits on time and memory (`read_apart`). Sizes are taken from headers before anything is
decompressed, a data base is opened read-only with a limit on the work it may cause, and Python objects that Arrow can
carry pickled are never revived. What is larger than results are is data: it is refused, not read.

Non-goals: pickles, joblib and torch files: reading them would run their code.
"""

from __future__ import annotations

import json
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

__all__ = ["READERS", "Cells", "read", "read_apart"]

_MAX_ROWS: Final = 1_000
_MAX_COLUMNS: Final = 200
_MAX_CELLS: Final = 20_000
_MAX_UNPACKED: Final = 64 << 20
_MAX_PACKED: Final = 2 << 20
"""Of a compressed file: what its headers announce need not be true, and LZ4 packs at most 255 to 1."""
_MAX_TABLES: Final = 50
_MAX_STEPS: Final = 200
"""Times that SQLite may pass 100,000 instructions of its virtual machine: about two seconds."""
_MAX_NODES: Final = 5_000
_MAX_DEPTH: Final = 8
_MAX_ARRAY: Final = 512
_CPU_S: Final = 20
"""Importing Arrow takes 0.4 s, reading a table of results some milliseconds."""
_TIMEOUT_S: Final = 300
"""The child ends itself after its processor time; this is for one that waits."""
_MEMORY: Final = 4 << 30
"""Of address space, most of which the libraries reserve and never use."""


class Cells(NamedTuple):
    """A table (`columns` are named), or an array with its path as labels and one index for each value."""

    place: str
    """Within the file: a table's name, a path; empty for the only table."""
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    """Of a table its rows; of an array one (value, index, ...) for each value."""
    labels: tuple[str, ...] = ()


def read(path: Path) -> Iterator[Cells]:
    """Everything in a file, by its suffix (`READERS`).

    Raises:
        ValueError: it is larger than results are, or damaged; a parser may raise anything else of a damaged file.
    """
    yield from READERS[path.suffix.lower()](path)


def _small(rows: int, columns: int, size: int) -> None:
    if rows > _MAX_ROWS or columns > _MAX_COLUMNS or rows * columns > _MAX_CELLS or size > _MAX_UNPACKED:
        raise ValueError(f"{rows} rows in {columns} columns: data rather than results, not searched")


def _plain(value: Any) -> Any:
    """A cell as JSON can hold it; nested values are data."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if value is None or isinstance(value, list | dict):
        return None
    return value if isinstance(value, bool | int | float | str) else str(value)


def _table(place: str, columns: Sequence[Any], rows: Sequence[Sequence[Any]]) -> Cells:
    return Cells(place, tuple(map(str, columns)), tuple(tuple(map(_plain, row)) for row in rows))


# --- Arrow -----------------------------------------------------------------------------------------------------------


def _packed(path: Path) -> None:
    if path.stat().st_size > _MAX_PACKED:
        raise ValueError(f"larger than {_MAX_PACKED >> 20} MB: data rather than results, not searched")


def _parquet(path: Path) -> Iterator[Cells]:
    from pyarrow import parquet  # type: ignore[import-untyped]

    _packed(path)
    with parquet.ParquetFile(path) as file:
        meta = file.metadata
        groups = [meta.row_group(index) for index in range(meta.num_row_groups)]
        _small(meta.num_rows, meta.num_columns, sum(group.total_byte_size for group in groups))
        yield _of_arrow(file.read(use_threads=False))


def _arrow(path: Path) -> Iterator[Cells]:
    import pyarrow as arrow
    from pyarrow import ipc

    _packed(path)
    with arrow.memory_map(str(path)) as source, ipc.open_file(source) as file:
        rows, batches = 0, []
        for index in range(file.num_record_batches):
            batch = file.get_batch(index)
            rows += batch.num_rows
            _small(rows, batch.num_columns, batch.nbytes)
            batches.append(batch)
        yield _of_arrow(arrow.Table.from_batches(batches, schema=file.schema))


def _of_arrow(table: Any) -> Cells:
    columns = [column.to_pylist() for column in table.columns]
    return _table("", table.column_names, list(zip(*columns, strict=True)))


# --- SQLite ----------------------------------------------------------------------------------------------------------


def _sqlite(path: Path) -> Iterator[Cells]:
    """The tables; views and triggers are not looked at."""
    with path.open("rb") as stream:
        if stream.read(16) != b"SQLite format 3\0":
            raise ValueError("not a SQLite data base")
    steps = iter(range(_MAX_STEPS))
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1 << 20)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.set_progress_handler(lambda: next(steps, None) is None, 100_000)
        listing = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
        for (name,) in connection.execute(listing).fetchmany(_MAX_TABLES):
            quoted = '"' + name.replace('"', '""') + '"'
            cursor = connection.execute(f"SELECT * FROM {quoted} LIMIT {_MAX_ROWS + 1}")  # noqa: S608 - quoted
            rows = cursor.fetchall()
            columns = [column[0] for column in cursor.description]
            _small(len(rows), len(columns), 0)
            yield _table(name, columns, rows)
    finally:
        connection.close()


# --- HDF5 ------------------------------------------------------------------------------------------------------------


def _hdf5(path: Path) -> Iterator[Cells]:
    """Small numeric data sets, compound ones as tables, and the attributes of all."""
    pyfive: Any = import_module("pyfive")
    with pyfive.File(str(path)) as file:
        stack: list[tuple[Any, tuple[str, ...]]] = [(file, ())]
        seen = 0
        while stack:
            node, labels = stack.pop()
            seen += 1
            if seen > _MAX_NODES:
                raise ValueError(f"more than {_MAX_NODES} groups and data sets")
            for key, value in sorted(node.attrs.items(), key=lambda item: str(item[0])):
                yield from _array(value, (*labels, str(key)), f"{'/'.join(labels)}@{key}")
            if not hasattr(node, "keys"):
                yield from _data_set(node, labels)
            elif len(labels) < _MAX_DEPTH:
                stack += [(node[key], (*labels, str(key))) for key in sorted(node.keys(), reverse=True)]


def _data_set(node: Any, labels: tuple[str, ...]) -> Iterator[Cells]:
    import numpy as np

    count = int(np.prod(node.shape, dtype=np.int64)) if node.shape else 1
    dtype = np.dtype(node.dtype)
    if dtype.names and count <= _MAX_ROWS and len(dtype.names) <= _MAX_COLUMNS:
        rows = np.asarray(node[()]).reshape(-1)
        yield _table("/".join(labels), dtype.names, [row.item() for row in rows])
    elif dtype.kind in "fiu" and count <= _MAX_ARRAY:
        yield from _array(node[()], labels, "/".join(labels))


def _array(value: Any, labels: tuple[str, ...], place: str) -> Iterator[Cells]:
    import numpy as np

    array = np.asarray(value)
    if array.dtype.kind in "fiu" and array.size <= _MAX_ARRAY:
        rows = tuple((item.item(), *index) for index, item in np.ndenumerate(array))
        yield Cells(place, (), rows, labels)


READERS: Final[dict[str, Callable[[Path], Iterator[Cells]]]] = {
    ".parquet": _parquet,
    ".pq": _parquet,
    **dict.fromkeys((".feather", ".ftr", ".arrow"), _arrow),
    **dict.fromkeys((".sqlite", ".sqlite3", ".db"), _sqlite),
    **dict.fromkeys((".h5", ".hdf5", ".hdf"), _hdf5),
}
"""Suffix -> reader."""


def read_apart(path: Path) -> list[Cells]:
    """As `read`, in a child process: a file that hangs, crashes or exhausts its parser is a problem of that file only.

    Raises:
        ValueError: it could not be read, with the reason.
    """
    argv = [sys.executable, "-m", "pipeline.binary_tables", str(path)]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise ValueError(f"reading it took longer than {_TIMEOUT_S} s") from error
    if done.returncode != 0:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise ValueError(lines[-1][:300] if lines and done.returncode > 0 else "reading it hit a limit or crashed")
    return [Cells(**item) for item in json.loads(done.stdout)]


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout.write(json.dumps([cells._asdict() for cells in read(Path(sys.argv[1]))]))
