"""The bench as a service beside an agent's container: a unix socket, JSON lines, one bench an episode.

The hidden world, the engines and the budget stay on this side. Whoever connects, and however often, talks to the one
bench of the episode, one call at a time. Every call is in the log before its answer is sent, so that an answer that was
seen is an answer that counts.

A request is `{"tool": NAME, "arguments": {...}}` and a newline, an answer one JSON object and a newline. `status` is
free and tells what is left.

Non-goals: the socket itself (`evaluation.families.socket_service`).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pydantic import JsonValue

from evaluation.families.causal.bench import Bench, EpisodeLog
from evaluation.families.causal.tools import call_tool
from evaluation.families.socket_service import SocketService
from pipeline.files import write_text

__all__ = ["SOCKET", "BenchDesk", "BenchService", "answered"]

SOCKET: Final = "bench.sock"
_MOST_LINE: Final = 64 << 10
_MOST_CALLS: Final = 200
"""Calls of an episode, whatever becomes of them: nobody who means well comes near it. Further ones are refused, logged
nowhere and told to nobody, so that a flood fills neither the log nor the trajectory. `status` is always answered."""
_DEEPEST: Final = 8
"""Values inside values of a request; the tools need 3. What the parser still takes (about 990 deep) made the
trajectory's writer fail, and an episode that nothing is known of is one that an agent may prefer to its score."""

Told = Callable[[str, dict[str, JsonValue], dict[str, JsonValue]], object]


class BenchDesk:
    """One bench and the file of its log: calls come in as values, from any transport, one at a time.

    Args:
        bench: of the episode.
        record: file of the `EpisodeLog`; written at once, and after every call.
        told: receives (tool, arguments, answer) of every call that is taken.
    """

    def __init__(self, bench: Bench, record: Path, told: Told | None = None) -> None:
        self._bench, self._record, self._told = bench, record, told
        self._guard = threading.Lock()
        self._calls, self._asked = len(bench.log.entries), 0
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
            answer, counted = self._status() if tool == "status" else self._answer(tool, arguments)
        if self._told is not None and counted <= _MOST_CALLS:
            self._told(tool, arguments, answer)
        return answer

    def _status(self) -> tuple[dict[str, JsonValue], int]:
        bench = self._bench
        self._asked += 1
        return {"calls_left": bench.calls_left, "ended": bench.ended, "budget": bench.task.budget}, self._asked

    def _answer(self, tool: str, arguments: dict[str, Any]) -> tuple[dict[str, JsonValue], int]:
        self._calls += 1
        if self._calls > _MOST_CALLS:
            return {"error": f"more than {_MOST_CALLS} calls: the bench takes no further ones"}, self._calls
        answer = call_tool(self._bench, tool, arguments)
        self._write()
        return answer, self._calls

    def _write(self) -> None:
        write_text(self._record, self._bench.log.model_dump_json(indent=1) + "\n")


class BenchService(SocketService):
    """Serves a desk on a unix socket while this context is open.

    Args:
        desk: the bench.
        folder: directory of the socket, mounted into the container.
    """

    def __init__(self, desk: BenchDesk, folder: Path) -> None:
        super().__init__(folder / SOCKET, lambda line: answered(desk, line), name="bench", longest=_MOST_LINE)


def answered(desk: BenchDesk, line: bytes) -> dict[str, JsonValue]:
    """What a request, one line, gets."""
    try:
        request = json.loads(line)
    except (ValueError, RecursionError):
        return {"error": f"a request is one JSON object on a line of at most {_MOST_LINE} bytes"}
    if not isinstance(request, dict) or set(request) - {"tool", "arguments"}:
        return {"error": "a request has `tool` and `arguments`"}
    if _deeper(request, _DEEPEST):
        return {"error": f"a request has at most {_DEEPEST} values inside one another"}
    return desk.call(request.get("tool"), request.get("arguments", {}))


def _deeper(value: object, levels: int) -> bool:
    """Does a parsed value hold more levels than that?"""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels == 0 or any(_deeper(one, levels - 1) for one in inside)
