"""The bench as a service beside an agent's container: a unix socket, JSON lines, one bench an episode.

The hidden world, the engines and the budget stay on this side. Whoever connects, and however often, talks to the one
bench of the episode, one call at a time. Every call is in the log before its answer is sent, so that an answer that was
seen is an answer that counts.

A request is `{"tool": NAME, "arguments": {...}}` and a newline, an answer one JSON object and a newline. `status` is
free and tells what is left.

Non-goals: authentication (the socket's directory is mounted into one container and closed to everybody else), several
episodes.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from pydantic import JsonValue

from evaluation.families.causal.bench import Bench, EpisodeLog
from evaluation.families.causal.tools import call_tool
from evaluation.harness.exchange import listen
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import write_text

__all__ = ["SOCKET", "BenchDesk", "BenchService"]

SOCKET: Final = "bench.sock"
_MOST_LINE: Final = 64 << 10
_MOST_ENTRIES: Final = 200
"""Logged calls of an episode, refused ones included: nobody who means well comes near it."""
_START_S: Final = 30.0
_CLOSE_S: Final = 10.0

Told = Callable[[str, dict[str, JsonValue], dict[str, JsonValue]], object]


class BenchDesk:
    """One bench and the file of its log: calls come in as values, from any transport, one at a time.

    Args:
        bench: of the episode.
        record: file of the `EpisodeLog`; written at once, and after every call.
        told: receives (tool, arguments, answer) of every call.
    """

    def __init__(self, bench: Bench, record: Path, told: Told | None = None) -> None:
        self._bench, self._record, self._told = bench, record, told
        self._guard = threading.Lock()
        self._write()

    @property
    def log(self) -> EpisodeLog:
        """The log so far."""
        return self._bench.log

    def call(self, tool: object, arguments: object) -> dict[str, JsonValue]:
        """Carry out a call; whatever is wrong with it is the answer's `error`."""
        if not isinstance(tool, str) or not isinstance(arguments, dict):
            return {"error": "a call is a tool's name and an object of arguments"}
        with self._guard:
            answer = self._answer(tool, arguments)
        if self._told is not None:
            self._told(tool, arguments, answer)
        return answer

    def _answer(self, tool: str, arguments: dict[str, Any]) -> dict[str, JsonValue]:
        bench = self._bench
        if tool == "status":
            return {"calls_left": bench.calls_left, "ended": bench.ended, "budget": bench.task.budget}
        if len(bench.log.entries) >= _MOST_ENTRIES and not bench.ended:
            return {"error": f"more than {_MOST_ENTRIES} calls: the bench takes no further ones"}
        answer = call_tool(bench, tool, arguments)
        self._write()
        return answer

    def _write(self) -> None:
        write_text(self._record, self._bench.log.model_dump_json(indent=1) + "\n")


class BenchService:
    """Serves a desk on a unix socket while this context is open.

    Args:
        desk: the bench.
        folder: directory of the socket, mounted into the container.
    """

    def __init__(self, desk: BenchDesk, folder: Path) -> None:
        self._desk, self._path = desk, folder / SOCKET
        self._ready = threading.Event()
        self._problem: BaseException | None = None

    def __enter__(self) -> Self:
        """Listen.

        Raises:
            ExpbenchError: `SANDBOX_BROKEN`: the socket cannot be made.
        """
        try:
            self._socket = listen(self._path)
        except OSError as error:
            raise _broken(self._path, f"cannot listen: {error}") from error
        self._thread = threading.Thread(target=self._serve, name="expbench-bench", daemon=True)
        self._thread.start()
        if not self._ready.wait(_START_S) or self._problem is not None:
            raise _broken(self._path, str(self._problem or f"not ready after {_START_S:.0f} s"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening.

        Raises:
            ExpbenchError: `SANDBOX_BROKEN`: the bench could not answer a call; nothing is known of the agent then.
        """
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(_CLOSE_S)
        self._path.unlink(missing_ok=True)
        if self._problem is not None and error is None:
            raise _broken(self._path, f"{type(self._problem).__name__}: {self._problem}")

    def _serve(self) -> None:
        try:
            asyncio.run(self._main())
        except (OSError, RuntimeError) as error:
            self._problem = error
        finally:
            self._ready.set()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._closing = asyncio.Event()
        server = await asyncio.start_unix_server(self._connection, sock=self._socket, limit=_MOST_LINE)
        self._ready.set()
        await self._closing.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (line := await self._line(reader)) is not None:
                writer.write(json.dumps(self._handle(line)).encode() + b"\n")
                await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass  # who asked has gone, or the episode is over
        finally:
            writer.close()

    @staticmethod
    async def _line(reader: asyncio.StreamReader) -> bytes | None:
        """The next request; None at the end, empty for one that is too long."""
        try:
            return await reader.readline() or None
        except ValueError:
            return b""

    def _handle(self, line: bytes) -> dict[str, JsonValue]:
        try:
            request = json.loads(line)
        except (ValueError, RecursionError):
            return {"error": f"a request is one JSON object on a line of at most {_MOST_LINE} bytes"}
        if not isinstance(request, dict) or set(request) - {"tool", "arguments"}:
            return {"error": "a request has `tool` and `arguments`"}
        try:
            return self._desk.call(request.get("tool"), request.get("arguments", {}))
        except (
            ArithmeticError,
            ValueError,
            LookupError,
            OSError,
        ) as error:  # a defect, or a full disk: no answer of ours
            self._problem = self._problem or error
            return {"error": "the bench is out of order"}


def _broken(path: Path, cause: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.SANDBOX_BROKEN, f"bench at {path.name}", cause,
        consequence="Nothing is known of the agent, the episode has no scores",
        next_step="Check that the directory for temporary files (TMPDIR) is writable and its path short, then run the "
        "same command with --resume",
    )  # fmt: skip
