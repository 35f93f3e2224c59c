"""Run one command with a deadline and a bound on its output."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass

__all__ = ["Finished", "run"]

_MOST_OUTPUT = 64 << 20
"""Bytes after which a command is ended: the output lies on the container's disk, which is memory."""
_KEPT_END = 8 << 20


@dataclass(frozen=True)
class Finished:
    """How a command ended."""

    exit_code: int | None
    """None: it was ended."""
    output: str
    """Standard output and error, as they came."""
    note: str
    truncated: bool
    duration_s: float


def run(argv: list[str], directory: str, timeout_s: float) -> Finished:
    """Run it in a session of its own, so that all of it can be ended.

    The output goes into a file, not a pipe: a background child that keeps a pipe open would hold the agent up.
    """
    began = time.monotonic()
    note = ""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            argv,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            note = _wait(process, output.fileno(), began + timeout_s, timeout_s)
            if note:
                _end(process.pid)
            code = process.wait()
        finally:
            if process.poll() is None:  # the program itself is being ended
                _end(process.pid)
                process.wait()
        size = os.fstat(output.fileno()).st_size
        output.seek(max(size - _KEPT_END, 0))
        text = output.read(_KEPT_END).decode("utf-8", "replace")
    if size > _KEPT_END:
        text = f"[the first {size - _KEPT_END} bytes of the output are left out]\n{text}"
    return Finished(None if note else code, text, note, size > _KEPT_END, time.monotonic() - began)


def _wait(process: subprocess.Popen[bytes], output: int, deadline: float, timeout_s: float) -> str:
    """Wait for its end; returns why it has to be ended, or nothing."""
    pause = 0.01
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            return f"ended after {timeout_s:.0f} s"
        try:
            process.wait(min(pause, left))
        except subprocess.TimeoutExpired:
            pause = min(pause * 2, 0.5)
        else:
            return ""
        if os.fstat(output).st_size > _MOST_OUTPUT:
            return f"ended: it printed more than {_MOST_OUTPUT >> 20} MB"


def _end(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
