"""A TCP socket that listens, or a message that says why it does not."""

from __future__ import annotations

import socket

from pipeline.errors import ExpbenchError, FailureKind

__all__ = ["listen"]


def listen(host: str, port: int, what: str = "The agent") -> socket.socket:
    """A socket that listens; port 0 takes a free one.

    Raises:
        ExpbenchError: `USAGE`: the address is taken, or is none of this machine.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise ExpbenchError(
            FailureKind.USAGE, f"{host}:{port}", f"cannot be listened on: {error.strerror or error}",
            consequence=f"{what} was not started", next_step="Choose another --port, or 0 for a free one",
        ) from error  # fmt: skip
    return listener
