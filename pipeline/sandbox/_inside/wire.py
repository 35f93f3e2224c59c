"""Frames between a supervisor and its client: one byte of kind, four bytes of length, payload."""

from __future__ import annotations

import json
import os
import struct
from typing import Any

HEADER = struct.Struct(">cI")
FILE_HEAD = struct.Struct(">HQ")
INDEX = struct.Struct(">H")
STOP = b"K"


class ClientGone(Exception):  # noqa: N818 - a state, named as what happened
    """stdin ended: nobody waits for the result."""


def read_exact(size: int) -> bytes:
    """Exactly `size` bytes from stdin."""
    parts = []
    while size:
        part = os.read(0, min(size, 1 << 20))
        if not part:
            raise ClientGone
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def read_frame() -> tuple[bytes, bytes]:
    """The next frame of the client."""
    kind, size = HEADER.unpack(read_exact(HEADER.size))
    return kind, read_exact(size)


def send(kind: bytes, payload: bytes = b"") -> None:
    """One frame to the client."""
    data = memoryview(HEADER.pack(kind, len(payload)) + payload)
    while data:
        data = data[os.write(1, data) :]


def send_json(kind: bytes, value: Any) -> None:
    """One frame with JSON in it."""
    send(kind, json.dumps(value).encode("ascii"))
