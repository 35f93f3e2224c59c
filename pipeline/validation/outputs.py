"""Everything that a run left behind, as numbers with their labels: streams, tables, JSON, YAML, arrays, notebooks.

The files were written by code that nobody vouches for: nothing is unpickled, sizes and depths are bounded, and what
could not be read is reported beside what could.
"""

from __future__ import annotations

import csv
import io
import json
import math
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np
import yaml

from pipeline.repository import Snapshot
from pipeline.sandbox.base import Command, RunResult
from pipeline.schema import Problem, Severity
from pipeline.validation.event_logs import Series, read_tensorboard, read_wandb
from pipeline.validation.observation import Observation, observe, observe_grid
from pipeline.validation.scalars import number_of
from pipeline.validation.stored_tables import STORED, UNREADABLE, read_stored
from pipeline.validation.text_output import observe_text

__all__ = ["is_result_file", "read_committed", "read_file", "read_run", "read_values"]

# A results file is small: the largest of the worked examples has 4 kB, EXP1 of the Renyi repository 14 kB.
_MAX_BYTES: Final = 8 << 20
_MAX_OBSERVATIONS: Final = 60_000
_MAX_ARRAY: Final = 512
_MAX_COMMITTED: Final = 200_000
"""Numbers of committed files that are looked at; a repository with more holds data, not results."""
_MAX_NODES: Final = 50_000
_MAX_LIST: Final = 64
_COMPONENT: Final = "validation.outputs"


def read_run(
    result: RunResult, out: Path, commands: Sequence[Command] = ()
) -> tuple[tuple[Observation, ...], tuple[Problem, ...]]:
    """All numbers of a run, and what of its output could not be read.

    Args:
        result: the run.
        out: its output directory (`<index>.stdout`, `<index>.stderr`, `files/`).
        commands: the commands that ran; their arguments are context of what they printed.
    """
    found: list[Observation] = []
    problems: list[Problem] = []
    for index in range(len(result.commands)):
        for stream in ("stdout", "stderr"):
            path = out / f"{index}.{stream}"
            if not path.is_file():
                continue
            name = stream if len(result.commands) == 1 else f"command {index + 1} {stream}"
            context = (" ".join(commands[index].argv),) if index < len(commands) else ()
            text, cut = _text(path)
            if cut:
                problems.append(_problem(name, f"longer than {_MAX_BYTES} bytes: only its end was read"))
            found += observe_text(text, name, context)
    for produced in result.written:
        values, complaints = read_file(out / "files" / produced.path, produced.path)
        found += values
        problems += complaints
    if len(found) > _MAX_OBSERVATIONS:
        problems.append(
            _problem(
                "run", f"{len(found)} numbers were printed or written; only the last {_MAX_OBSERVATIONS} were used"
            )
        )
        found = found[-_MAX_OBSERVATIONS:]
    return tuple(found), tuple(problems)


def read_file(path: Path, name: str) -> tuple[list[Observation], list[Problem]]:
    """The numbers of one produced file.

    Args:
        path: where it lies.
        name: its path in the run's tree, used for `where` and as context.
    """
    suffix = PurePosixPath(name).suffix.lower()
    if PurePosixPath(name).name.startswith("events.out.tfevents"):
        suffix = ".tfevents"
    reader = _READERS.get(suffix)
    if suffix in UNREADABLE:
        message = "not opened: a pickle runs code when it is read; write the numbers as text, JSON or CSV"
        return [], [_problem(name, message).evolve(severity=Severity.INFO)]
    if reader is None or not path.is_file():
        return [], []
    if path.stat().st_size > _MAX_BYTES and suffix not in _TEXT:
        return [], [_problem(name, f"larger than {_MAX_BYTES} bytes: not searched for results")]
    try:
        return list(reader(path, name)), []
    except (
        ValueError,
        OSError,
        KeyError,
        EOFError,
        RecursionError,
        csv.Error,
        yaml.YAMLError,
        zipfile.BadZipFile,
    ) as error:
        return [], [_problem(name, f"could not be read as {suffix}: {error}")]


def read_committed(snapshot: Snapshot) -> Iterator[tuple[str, list[Observation]]]:
    """The repository's own files that hold numbers, the smallest first, without those that make it too many."""
    count = 0
    for file in sorted(snapshot.files, key=lambda item: (item.size, item.path)):
        values, _ = read_file(snapshot.root / file.path, file.path)
        if values and count + len(values) <= _MAX_COMMITTED:
            count += len(values)
            yield file.path, values


def is_result_file(name: str) -> bool:
    """Has a file, by its name, a form in which numbers are read?"""
    return PurePosixPath(name).suffix.lower() in _READERS or PurePosixPath(name).name.startswith("events.out.tfevents")


def _problem(where: str, message: str) -> Problem:
    return Problem(component=_COMPONENT, where=where, message=message, severity=Severity.WARNING)


def _text(path: Path) -> tuple[str, bool]:
    """The text of a file, its last `_MAX_BYTES` bytes when it is longer: results come last."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        stream.seek(max(0, size - _MAX_BYTES))
        return stream.read().decode("utf-8", "replace").replace("\r\n", "\n"), size > _MAX_BYTES


def _read_text(path: Path, name: str) -> Iterator[Observation]:
    yield from observe_text(_text(path)[0], name, (name,))


def _read_csv(path: Path, name: str) -> Iterator[Observation]:
    text = _text(path)[0]
    first = text.split("\n", 1)[0]
    delimiter = max("\t;,", key=first.count) if first else ","
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if any(cell.strip() for cell in row)]
    places = [f"{name} row {index}" for index in range(1, len(rows) + 1)]
    yield from observe_grid(rows, places=places, source=name, context=(name,))


def _read_json(path: Path, name: str) -> Iterator[Observation]:
    yield from read_values(json.loads(_text(path)[0], parse_constant=float), name)


def _read_jsonl(path: Path, name: str) -> Iterator[Observation]:
    for index, line in enumerate(_text(path)[0].splitlines(), start=1):
        if line.strip():
            yield from read_values(json.loads(line, parse_constant=float), f"{name} line {index}", context=(name,))


def _read_yaml(path: Path, name: str) -> Iterator[Observation]:
    yield from read_values(yaml.safe_load(_text(path)[0]), name)


def _read_notebook(path: Path, name: str) -> Iterator[Observation]:
    notebook = json.loads(_text(path)[0])
    for index, cell in enumerate(notebook.get("cells", ()) if isinstance(notebook, dict) else (), start=1):
        for output in cell.get("outputs", ()) if isinstance(cell, dict) else ():
            text = output.get("text") or (output.get("data") or {}).get("text/plain") or ""
            joined = "".join(map(str, text)) if isinstance(text, list) else str(text)
            yield from observe_text(joined, f"{name} cell {index}", (name,))


# --- logs of experiment trackers ---


def _read_tensorboard(path: Path, name: str) -> Iterator[Observation]:
    yield from _observe_series(read_tensorboard(path), name)


def _read_wandb(path: Path, name: str) -> Iterator[Observation]:
    yield from _observe_series(read_wandb(path), name)


def _observe_series(series: Sequence[Series], name: str) -> Iterator[Observation]:
    """The last value of each series; the best ones too where they differ, under a name that says so."""
    for item in series:
        labels = tuple(item.name.split("/"))
        values = {"last": item.last, "lowest": item.lowest, "highest": item.highest}
        for which, value in values.items():
            number = number_of(value)
            if number is None or (which != "last" and value == item.last):
                continue
            # a name of its own: beside the last value it would make every claim ambiguous
            kind = () if which == "last" else (which,)
            where = f"{name}: {item.name} ({which} of {item.points})"
            yield observe(number, labels=(*labels, *kind), context=(name,), where=where, source=name)


# --- arrays ----------------------------------------------------------------------------------------------------------


def _read_npy(path: Path, name: str) -> Iterator[Observation]:
    with path.open("rb") as stream:
        yield from _observe_array(_load_array(stream, path.stat().st_size), (), name)


def _read_npz(path: Path, name: str) -> Iterator[Observation]:
    with zipfile.ZipFile(path) as archive:
        for info in sorted(archive.infolist(), key=lambda item: item.filename):
            if info.filename.endswith(".npy") and info.file_size <= _MAX_BYTES:
                # at most what was announced: a member that expands further is cut, then refused as truncated
                with archive.open(info) as member:
                    data = member.read(info.file_size)
                key = info.filename[: -len(".npy")]
                yield from _observe_array(_load_array(io.BytesIO(data), len(data)), (key,), f"{name}: {key}")


def _load_array(stream: BinaryIO | io.BytesIO, size: int) -> np.ndarray[Any, Any] | None:
    """A small numeric array; None for others. The header is checked first: it may announce more than there is.

    Raises:
        ValueError: not an array file.
    """
    version = np.lib.format.read_magic(stream)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(stream)
    count = math.prod(shape)
    if count > _MAX_ARRAY or dtype.kind not in "fiu" or count * dtype.itemsize > size:
        return None
    stream.seek(0)
    loaded = np.load(stream, allow_pickle=False)
    return loaded if isinstance(loaded, np.ndarray) else None


def _observe_array(array: np.ndarray[Any, Any] | None, labels: tuple[str, ...], where: str) -> Iterator[Observation]:
    if array is None:
        return
    for index, value in np.ndenumerate(array):
        if number := number_of(value.item()):
            place = f"{where}[{', '.join(map(str, index))}]" if index else where
            yield observe(
                number,
                labels=labels,
                coordinates=[("index", str(i)) for i in index],
                context=(where,),
                where=place,
                source=where,
                record=f"{where}[{index[0]}]" if index else where,
            )


# --- nested values ---------------------------------------------------------------------------------------------------


def read_values(data: Any, source: str, context: Sequence[str] | None = None) -> Iterator[Observation]:
    """The numbers of nested dictionaries and lists (JSON, YAML), key path as labels, scalar siblings as coordinates.

    A dictionary of lists of one length is read as a table, each list a column.

    Args:
        data: what a parser returned.
        source: the file's name.
        context: texts that hold for all numbers; the file's name when None.
    """
    around = (source,) if context is None else tuple(context)
    stack: list[_Node] = [_Node(data, (), (), "")]
    visited = 0
    while stack:
        node = stack.pop()
        visited += 1
        if visited > _MAX_NODES:
            raise ValueError(f"more than {_MAX_NODES} values")
        if isinstance(node.value, dict):
            stack += reversed(_members(node))
        elif isinstance(node.value, list):
            if len(node.value) <= _MAX_LIST or isinstance(node.value[0], dict | list):  # else a curve or a sample
                stack += reversed(_items(node))
        elif number := number_of(node.value):
            place = f"{source}: {node.place}" if node.place else source
            yield observe(
                number,
                labels=node.path,
                coordinates=node.pairs,
                context=around,
                where=place,
                source=source,
                record=f"{source}: {node.record}",
            )


class _Node(NamedTuple):
    value: Any
    path: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    place: str
    record: str = ""
    """Place of the object (or row of columns) that it is a member of."""


def _members(node: _Node) -> list[_Node]:
    scalars = [(str(key), text) for key, value in node.value.items() if (text := _scalar_text(value))][:24]
    columns = _columns(node.value)
    found = []
    for key, value in node.value.items():
        name = str(key)
        path, place = (*node.path, name), f"{node.place}.{name}" if node.place else name
        pairs = (*node.pairs, *(pair for pair in scalars if pair[0] != name))
        if name in columns:
            rows = [(*pairs, *_row_of(columns, index, name)) for index in range(len(value))]
            found += [
                _Node(item, path, rows[index], f"{place}[{index}]", f"{node.place}[{index}]")
                for index, item in enumerate(value)
            ]
        else:
            found.append(_Node(value, path, pairs, place, node.place))
    return found


def _items(node: _Node) -> list[_Node]:
    label = node.path[-1] if node.path else ""
    return [
        _Node(
            item,
            node.path,
            node.pairs if isinstance(item, dict) else (*node.pairs, (f"{label} index", str(index))),
            f"{node.place}[{index}]",
            node.place,
        )
        for index, item in enumerate(node.value)
    ]


def _columns(node: dict[Any, Any]) -> dict[str, list[Any]]:
    lists = {str(k): v for k, v in node.items() if isinstance(v, list) and v and not isinstance(v[0], dict | list)}
    lengths = {len(value) for value in lists.values()}
    return lists if len(lists) >= 2 and len(lengths) == 1 and max(lengths) <= _MAX_LIST else {}


def _row_of(columns: dict[str, list[Any]], index: int, key: str) -> list[tuple[str, str]]:
    return [(name, _scalar_text(values[index])) for name, values in columns.items() if name != key]


def _scalar_text(value: Any) -> str:
    if isinstance(value, str):
        return value[:80]
    return repr(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


_Reader = Callable[[Path, str], Iterator[Observation]]
_TEXT: Final = frozenset({".txt", ".log", ".md", ".out", ".rst", ".tex"})
_READERS: Final[dict[str, _Reader]] = {
    **dict.fromkeys(_TEXT, _read_text),
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".json": _read_json,
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".yaml": _read_yaml,
    ".yml": _read_yaml,
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".ipynb": _read_notebook,
    ".tfevents": _read_tensorboard,
    ".wandb": _read_wandb,
    **dict.fromkeys(STORED, read_stored),
}
