"""Sockets that agents connect to, and what is said when there can be none."""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path

import pytest

from evaluation.harness.exchange import listen, no_gateway
from pipeline.errors import FailureKind


def test_a_socket_is_open_to_another_user_and_takes_the_place_of_an_old_one() -> None:
    with tempfile.TemporaryDirectory(prefix="ex-") as name:
        path = Path(name) / "s"
        path.write_text("of a process before")
        with listen(path) as made, socket.socket(socket.AF_UNIX) as client:
            assert path.stat().st_mode & 0o777 == 0o666
            assert made.getblocking() is False
            client.connect(str(path))
            connection, _ = made.accept()
            with connection:
                client.sendall(b"x")
                assert connection.recv(1) == b"x"


def test_many_may_wait_at_once() -> None:
    with tempfile.TemporaryDirectory(prefix="ex-") as name, listen(Path(name) / "s"):
        clients = [socket.socket(socket.AF_UNIX) for _ in range(64)]
        for client in clients:
            client.settimeout(5)
            client.connect(f"{name}/s")
        for client in clients:
            client.close()


def test_a_path_that_is_too_long_leaves_no_descriptor_open(tmp_path: Path) -> None:
    opened = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(OSError, match="too long"):
        listen(tmp_path / ("x" * 120))
    assert len(list(Path("/proc/self/fd").iterdir())) == opened


def test_a_gateway_that_cannot_be_opened_names_its_directory_and_cause() -> None:
    error = no_gateway(Path("/tmp/x"), "no space")
    assert (error.kind, error.object, error.cause) == (
        FailureKind.SANDBOX_BROKEN, "gateway in /tmp/x", "cannot listen: no space",
    )  # fmt: skip
    assert error.failure.retry
