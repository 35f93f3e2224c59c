"""Frames between a supervisor and its client: one byte of kind, four bytes of length, payload."""

from __future__ import annotations

import array
import json
import os
import socket
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


def send_descriptor(channel: socket.socket, text: bytes, descriptor: int) -> None:
    """What `socket.send_fds` does, which Python 3.8 does not have."""
    channel.sendmsg([text], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))])


def receive_descriptor(channel: socket.socket, size: int) -> tuple[bytes, int | None]:
    """A message with the descriptor that came with it, as `socket.recv_fds` has them."""
    found = array.array("i")
    text, ancillary, _, _ = channel.recvmsg(size, socket.CMSG_LEN(found.itemsize))
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found.frombytes(data[: len(data) - len(data) % found.itemsize])
    return text, found[0] if found else None
