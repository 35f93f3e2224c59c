"""What an opaque agent really started: programs in its container, as a tracer inside tells them, turned into events.

The tracer (`_inside/watch.py`) connects before the agent exists, and nobody after it is listened to. Programs become
`CommandRun` events that are marked as observed; a script that an interpreter was given becomes a `FileChange` unless it
is the masked repository's own, so that provenance and the rules read what was run even where it was deleted afterwards.
Non-goals: what a process does inside itself, and what it prints (the agent's own command has that).
"""

from __future__ import annotations

import json
import shlex
import socket
import threading
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from evaluation.harness.exchange import listen, no_gateway
from evaluation.trajectory import CommandRun, Event, FileChange, Note

__all__ = ["TRACE_SOCKET", "WATCHER", "ProcessRecorder"]

TRACE_SOCKET: Final = "trace.sock"
WATCHER: Final = "watch.py"
_MOST: Final = 20_000
"""Different command lines that become events; a compilation of a large project has some thousands."""
_LINE: Final = 1 << 20
_END_S: Final = 10.0


class _Told(BaseModel):
    """A line of the tracer."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    argv: tuple[str, ...] = ()
    parent: str = ""
    cwd: str = ""
    cut: bool = False
    script: str = ""
    text: str = ""
    failed: str = ""


class ProcessRecorder:
    """Listens to one tracer while this context is open.

    Args:
        folder: directory of the socket, mounted into the container.
        workspace: where the masked repository lies in the container.
        inbox: where the files lie that the agent was started with.
        masked: the masked repository.
        emit: where events go; called from another thread, one at a time.
    """

    def __init__(self, folder: Path, workspace: str, inbox: str, masked: Path, emit: Callable[[Event], object]) -> None:
        self._path = folder / TRACE_SOCKET
        self._workspace, self._inbox = PurePosixPath(workspace), PurePosixPath(inbox)
        self._masked, self._emit = masked, emit
        self._seen: dict[tuple[str, str], int] = {}
        self._left_out = 0
        self._socket: socket.socket | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> None:
        """Open the socket.

        Raises:
            ExpbenchError: `SANDBOX_BROKEN`: it cannot be made.
        """
        try:
            self._socket = listen(self._path)
        except OSError as error:
            raise no_gateway(self._path.parent, str(error)) from error
        self._socket.setblocking(True)
        self._thread = threading.Thread(target=self._serve, args=(self._socket,), name="process recorder", daemon=True)
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        assert self._socket is not None
        assert self._thread is not None
        # the container is gone, so its end of the connection is closed; where no tracer came, accept() still waits
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as waker:
            waker.setblocking(False)
            waker.connect_ex(str(self._path))
        self._thread.join(_END_S)
        self._socket.close()
        self._path.unlink(missing_ok=True)
        repeats = sum(count - 1 for count in self._seen.values())
        if repeats or self._left_out:
            text = f"{repeats} further starts of programs that are listed"
            if self._left_out:
                text += f", {self._left_out} of programs that are not (more than {_MOST} different ones)"
            self._emit(Note(seq=0, at=0, text=text))

    def _serve(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as lines:
            while line := lines.readline(_LINE):
                try:
                    self._tell(_Told.model_validate(json.loads(line)))
                except (ValidationError, ValueError, RecursionError):
                    self._emit(Note(seq=0, at=0, text="a line of the tracer could not be read"))

    def _tell(self, told: _Told) -> None:
        if told.failed:
            self._emit(Note(seq=0, at=0, text=f"programs that the agent started were not recorded: {told.failed}"))
            return
        if _by_git_itself(told):
            return
        if told.script and not self._is_masked(told.script, told.text):
            path = PurePosixPath(told.script)
            # the agent's own program is what the agent says, not a change of the files that it was handed over in
            name = path.name if path.is_relative_to(self._inbox) else told.script
            self._emit(FileChange(seq=0, at=0, path=name, action="created", text=told.text))
        key = (shlex.join(told.argv), told.cwd)
        if key not in self._seen and len(self._seen) >= _MOST:
            self._left_out += 1
            return
        self._seen[key] = self._seen.get(key, 0) + 1
        if self._seen[key] == 1:
            self._emit(CommandRun(seq=0, at=0, command=key[0], directory=told.cwd, truncated=told.cut, observed=True))

    def _is_masked(self, path: str, text: str) -> bool:
        """Is it a file of the masked repository, unchanged?"""
        name = PurePosixPath(path)
        if not name.is_relative_to(self._workspace):
            return False
        original = self._masked / name.relative_to(self._workspace)
        try:
            with original.open("rb") as stream:
                return stream.read(len(text.encode("utf-8", "replace")) + 1).decode("utf-8", "replace").startswith(text)
        except OSError:
            return False


def _by_git_itself(told: _Told) -> bool:
    """`git stash` runs `git read-tree` from its own directory: a part of what was asked for, not another request."""
    program, parent = PurePosixPath(told.argv[0] if told.argv else ""), PurePosixPath(told.parent)
    return program.parent.name == "git-core" and (parent.name == "git" or parent.parent.name == "git-core")
