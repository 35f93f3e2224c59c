"""Scalars in TensorBoard event files and in offline logs of Weights & Biases.

Both are framed protocol-buffer records (TFRecord; LevelDB log blocks behind an own header). Only the wire format and
the few fields that hold scalars are read: the official readers bring whole frameworks with them, and a log was written
by code that nobody vouches for, so sizes are bounded and a damaged end is passed over (a killed run leaves one).

Of each series the last value is a result; the smallest and the largest are given too, because papers report the best.
Non-goals: histograms, images, audio, and check sums.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

__all__ = ["Series", "read_tensorboard", "read_wandb"]

_MAX_BYTES: Final = 64 << 20
_MAX_SERIES: Final = 2000
_BLOCK: Final = 32 << 10
_VARINT, _DOUBLE, _BYTES, _FLOAT = 0, 1, 2, 5
_WANDB_HEADER: Final = 7

_Field = tuple[int, int, Any]


class Series(NamedTuple):
    """One scalar over a run."""

    name: str
    last: float
    lowest: float
    highest: float
    points: int


class _Collected:
    """Series under construction, in order of first appearance."""

    def __init__(self) -> None:
        self._found: dict[str, Series] = {}

    def add(self, name: str, value: float) -> None:
        if not name or not math.isfinite(value):
            return
        known = self._found.get(name)
        if known is None:
            if len(self._found) < _MAX_SERIES:
                self._found[name] = Series(name, value, value, value, 1)
            return
        low, high = min(known.lowest, value), max(known.highest, value)
        self._found[name] = Series(name, value, low, high, known.points + 1)

    def series(self) -> list[Series]:
        return list(self._found.values())


def read_tensorboard(path: Path) -> list[Series]:
    """The scalars of a TensorBoard event file.

    Raises:
        ValueError: too large, or not an event file.
    """
    data = _content(path)
    found = _Collected()
    records = 0
    for record in _tfrecords(data):
        records += 1
        for number, kind, summary in _fields(record):
            if (number, kind) == (5, _BYTES):  # Event.summary
                for inner, inner_kind, value in _fields(summary):
                    if (inner, inner_kind) == (1, _BYTES):  # Summary.value
                        _scalar(value, found)
    if not records:
        raise ValueError("it holds no record of TensorBoard")
    return found.series()


def _content(path: Path) -> bytes:
    if path.stat().st_size > _MAX_BYTES:
        raise ValueError(f"larger than {_MAX_BYTES >> 20} MB")
    return path.read_bytes()


def _tfrecords(data: bytes) -> Iterator[bytes]:
    """Length (8 bytes), its check sum (4), the record, its check sum (4)."""
    place = 0
    while place + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, place)
        end = place + 12 + length
        if end + 4 > len(data):
            return
        yield data[place + 12 : end]
        place = end + 4


def _scalar(value: bytes, found: _Collected) -> None:
    name, numbers = "", []
    for number, kind, content in _fields(value):
        if (number, kind) == (1, _BYTES):  # tag
            name = content.decode("utf-8", "replace")
        elif (number, kind) == (2, _FLOAT):  # simple_value
            numbers.append(struct.unpack("<f", content)[0])
        elif (number, kind) == (8, _BYTES):  # tensor
            numbers += _tensor(content)
    if len(numbers) == 1:
        # a 32-bit float prints as 0.8920000195503235: the shortest text that means the same float is what was logged
        found.add(name, _shortest(numbers[0]))


def _shortest(value: float) -> float:
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if struct.pack("<f", float(text)) == struct.pack("<f", value):
            return float(text)
    return value


def _tensor(data: bytes) -> list[float]:
    """The value of a scalar TensorProto; empty for anything with a shape."""
    dtype, content, values = 0, b"", []
    for number, kind, value in _fields(data):
        if (number, kind) == (1, _VARINT):
            dtype = value
        elif (number, kind) == (2, _BYTES) and value:
            return []
        elif (number, kind) == (4, _BYTES):
            content = value
        elif number == 5 and kind in {_BYTES, _FLOAT} and len(value) == 4:
            values.append(struct.unpack("<f", value)[0])
        elif (number, kind) == (6, _BYTES) and len(value) == 8:
            values.append(struct.unpack("<d", value)[0])
    if content and dtype in {1, 2} and len(content) == (4 if dtype == 1 else 8):
        values.append(struct.unpack("<f" if dtype == 1 else "<d", content)[0])
    return values


def read_wandb(path: Path) -> list[Series]:
    """The scalars of an offline log of Weights & Biases (`run-<id>.wandb`): its history and its summary.

    Raises:
        ValueError: too large, or not such a log.
    """
    data = _content(path)
    if not data.startswith(b":W&B"):
        raise ValueError("it does not begin like a log of Weights & Biases")
    found = _Collected()
    for record in _blocks(data):
        for number, kind, content in _fields(record):
            if kind == _BYTES and number in {2, 3}:  # Record.history, Record.summary
                for inner, inner_kind, item in _fields(content):
                    if (inner, inner_kind) == (1, _BYTES):  # item, update
                        _wandb_item(item, found)
    return found.series()


def _wandb_item(data: bytes, found: _Collected) -> None:
    key, nested, text = "", [], ""
    for number, kind, content in _fields(data):
        if kind != _BYTES:
            continue
        if number == 1:
            key = content.decode("utf-8", "replace")
        elif number == 2:
            nested.append(content.decode("utf-8", "replace"))
        elif number == 16:
            text = content.decode("utf-8", "replace")
    name = key or "/".join(nested)
    if name.startswith("_"):  # _step, _runtime, _timestamp: the logger's own
        return
    try:
        _wandb_value(name, json.loads(text), found, 0)
    except (ValueError, RecursionError):
        return  # `NaN` and media are no results


def _wandb_value(name: str, value: Any, found: _Collected, depth: int) -> None:
    if isinstance(value, dict) and depth < 4 and "_type" not in value:
        for key, inner in value.items():
            _wandb_value(f"{name}/{key}", inner, found, depth + 1)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        found.add(name, float(value))


def _blocks(data: bytes) -> Iterator[bytes]:
    """Records of a LevelDB log: blocks of 32 kB, in them chunks of check sum (4), length (2), kind (1)."""
    place = _WANDB_HEADER
    pending = b""
    while place + 7 <= len(data):
        room = _BLOCK - place % _BLOCK
        if room < 7:
            place += room
            continue
        length, kind = struct.unpack_from("<HB", data, place + 4)
        chunk = data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind == 0 and length == 0:
            continue
        pending = chunk if kind in {1, 2} else pending + chunk
        if kind in {1, 4}:
            yield pending
            pending = b""


def _fields(data: bytes) -> Iterator[_Field]:
    """(number, wire type, value) of each field of a message; ends at what is not one."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, place = _varint(data, place)
            yield number, kind, value
            continue
        if kind == _BYTES:
            size, place = _varint(data, place)
        elif kind in {_DOUBLE, _FLOAT}:
            size = 8 if kind == _DOUBLE else 4
        else:
            return
        if place + size > len(data) or number == 0:
            return
        yield number, kind, data[place : place + size]
        place += size


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(data) and shift < 70:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
    return value, len(data)
