"""A service of a family beside an agent's container: a unix socket, a request a line, an answer a line.

What is asked is decided by the family's own `answer`; this module holds what all of them need: listening before the
agent starts, one request at a time however many clients there are, lines that are too long or cut off, clients that go
away, and defects that make nothing of an episode known instead of costing an agent its score.

Non-goals: authentication (the socket's directory is mounted into one container and closed to everybody else), services
for several episodes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from evaluation.harness.exchange import listen
from evaluation.harness.serving import ServingThread
from pipeline.errors import ExpbenchError, FailureKind

__all__ = ["SocketService"]

_CLOSE_S: Final = 10.0
"""For the answer that is under way when the agent has ended; nobody waits for it any more."""
_MOST_CLIENTS: Final = 32
"""Connections at a time; further ones are closed. 1,500 that an agent held open took every file descriptor of the
harness, and with them the episodes beside its own; a client that means well has one, for one request."""


class SocketService:
    """Answers requests on a unix socket while this context is open.

    Args:
        path: of the socket; made on entry, removed on exit.
        answer: takes a line without being told who sent it, and gives the value to send back. A line that is longer
            than `longest` arrives as an empty one. Called from one thread, one call at a time. What it raises is a
            defect of ours: the client's connection is closed, and leaving the context fails.
        name: of the service, for messages.
        longest: bytes of a request.
    """

    def __init__(self, path: Path, answer: Callable[[bytes], Mapping[str, Any]], *, name: str, longest: int) -> None:
        self._path, self._answer, self._name, self._longest = path, answer, name, longest
        self._problem: BaseException | None = None
        self._thread = ServingThread(self._serve, name=f"expbench-{name}")
        self._talks: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        """Listen.

        Raises:
            ExpbenchError: `SANDBOX_BROKEN`: the socket cannot be made.
        """
        try:
            self._socket = listen(self._path)
        except OSError as error:
            raise self._broken(f"cannot listen: {error}") from error
        if problem := self._thread.start():
            self._socket.close()
            self._path.unlink(missing_ok=True)
            raise self._broken(problem)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening.

        Raises:
            ExpbenchError: `SANDBOX_BROKEN`: a request could not be answered; nothing is known of the agent then.
        """
        problem = self._thread.stop(_CLOSE_S)
        self._path.unlink(missing_ok=True)
        if error is not None:
            return
        if self._problem is not None:
            raise self._broken(f"{type(self._problem).__name__}: {self._problem}") from self._problem
        if problem:
            raise self._broken(problem)

    async def _serve(self, ready: Callable[[], None], closing: asyncio.Event) -> None:
        server = await asyncio.start_unix_server(self._connected, sock=self._socket, limit=self._longest)
        ready()
        await closing.wait()
        server.close()
        for task in self._talks:
            task.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._talks) >= _MOST_CLIENTS:
            writer.close()
            return
        talk = asyncio.create_task(self._talk(reader, writer))
        self._talks.add(talk)
        talk.add_done_callback(self._ended)

    def _ended(self, talk: asyncio.Task[None]) -> None:
        """A talk is over; what it raised is the first problem of the episode, or one more."""
        self._talks.discard(talk)
        if not talk.cancelled() and (error := talk.exception()) is not None:
            self._problem = self._problem or error

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (line := await _line(reader)) is not None:
                writer.write(json.dumps(self._answer(line)).encode() + b"\n")
                await writer.drain()
        except ConnectionError:
            pass  # who asked has gone
        finally:
            writer.close()

    def _broken(self, cause: str) -> ExpbenchError:
        return ExpbenchError(
            FailureKind.SANDBOX_BROKEN, f"{self._name} at {self._path.name}", cause,
            consequence="Nothing is known of the agent, the episode has no scores",
            next_step="Check that the directory for temporary files (TMPDIR) is writable and its path short, then run "
            "the same command with --resume",
        )  # fmt: skip


async def _line(reader: asyncio.StreamReader) -> bytes | None:
    """The next request; None at the end, empty for one that is too long."""
    try:
        return await reader.readline() or None
    except ValueError:
        return b""
