"""What all connections of one server share: the script's position, the recordings, gates, clock and settings."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.doubles.protocol_server._chat import ChatWire
from tests.doubles.protocol_server._exchange import Wire, request_text
from tests.doubles.protocol_server._messages import MessagesWire
from tests.doubles.protocol_server._responses import ResponsesWire
from tests.doubles.protocol_server.clock import Clock
from tests.doubles.protocol_server.recording import RecordedRequest
from tests.doubles.protocol_server.script import Endpoint, ErrorReply, Script, Turn

__all__ = ["WIRES", "ConnectionOver", "Features", "Responder", "State"]

WIRES: dict[str, Wire] = {"chat": ChatWire(), "responses": ResponsesWire(), "messages": MessagesWire()}

Responder = Callable[[Endpoint, dict[str, Any]], Turn | None]
"""Chooses a turn from the endpoint and the body, one request at a time; None leaves it to computation or a 500."""

_MUST_BE_NAMED = ("embeddings", "count_tokens", "models")
"""Endpoints that are answered by computation unless a turn names them."""


class ConnectionOver(Exception):  # noqa: N818 - a signal, not an error
    """The server closes, or the turn ended the connection: the handler must give up."""


@dataclass(frozen=True)
class Features:
    """What the endpoint can do. Compatible servers differ; what is off is rejected with 400 as they do."""

    json_schema: bool = True
    json_object: bool = True
    tools: bool = True
    images: bool = True
    streaming: bool = True
    stream_usage: bool = True
    chat_completions: bool = True
    """Off: the model is offered through the Responses API only, as OpenAI's largest ones are."""


@dataclass
class State:
    """Shared by all connections; every access goes through `lock` or is to something immutable."""

    script: Script
    clock: Clock
    responder: Responder | None = None
    features: Features = Features()
    api_key: str | None = None
    models: tuple[str, ...] = ()
    context_tokens: int | None = None
    record_to: Path | None = None

    # re-entrant: a responder is called with it held, and may look at the recordings or release a gate
    lock: Any = field(default_factory=threading.RLock)
    stopping: threading.Event = field(default_factory=threading.Event)
    gates: defaultdict[str, threading.Event] = field(default_factory=lambda: defaultdict(threading.Event))
    requests: list[RecordedRequest] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    used: list[int] = field(default_factory=list)
    defects: list[BaseException] = field(default_factory=list)
    clients_left: int = 0

    def __post_init__(self) -> None:
        self.extend(self.script.turns)

    def extend(self, turns: tuple[Turn, ...]) -> None:
        """Add turns at the end of the script."""
        with self.lock:
            self.turns.extend(turns)
            self.used.extend([0] * len(turns))

    def record(self, request: RecordedRequest) -> RecordedRequest:
        """Append with its number; the caller holds the lock."""
        numbered = request.evolve(number=len(self.requests) + 1)
        self.requests.append(numbered)
        if self.record_to is not None:
            with self.record_to.open("a", encoding="utf-8") as stream:
                stream.write(numbered.model_dump_json() + "\n")
        return numbered

    def choose(self, endpoint: Endpoint, body: dict[str, Any]) -> tuple[Turn | None, str]:
        """The turn for a request and its name in the recording; the caller holds the lock."""
        if self.responder is not None:
            chosen = self.responder(endpoint, body)
            if chosen is not None:
                return chosen, "responder"
        if self.script.order == "conversation":
            index = WIRES[endpoint].assistant_turns(body) if endpoint in WIRES else len(self.turns)
            if index < len(self.turns):
                return self.turns[index], f"turn {index + 1}"
        else:
            text = request_text(body)
            for index, turn in enumerate(self.turns):
                free = turn.times is None or self.used[index] < turn.times
                if free and self._fits(turn, endpoint, body, text):
                    self.used[index] += 1
                    return turn, f"turn {index + 1}"
        if endpoint in _MUST_BE_NAMED:
            return None, "computed"
        return self.script.default or self._exhausted(endpoint), "default" if self.script.default else "exhausted"

    @staticmethod
    def _fits(turn: Turn, endpoint: Endpoint, body: dict[str, Any], text: str) -> bool:
        match = turn.match
        if match.endpoint is None and endpoint in _MUST_BE_NAMED:
            return False
        return (
            (match.endpoint in (None, endpoint))
            and (match.model in (None, body.get("model")))
            and (match.contains is None or match.contains in text)
            and (match.stream in (None, bool(body.get("stream"))))
            and (match.has_tools in (None, bool(body.get("tools"))))
        )

    def _exhausted(self, endpoint: Endpoint) -> Turn:
        message = (
            f"scripted server: no turn is left for request {len(self.requests) + 1} ({endpoint}); the script has "
            f"{len(self.turns)} turns and none that is unused matches. Add a turn or a default"
        )
        # the official clients would try a 500 again, and the message would be seen late
        return Turn(error=ErrorReply(status=500, message=message), headers={"x-should-retry": "false"})

    def pause(self, seconds: float) -> None:
        """Let scripted time pass.

        Raises:
            ConnectionOver: the server closed meanwhile.
        """
        if seconds > 0:
            self.clock.wait(seconds, self.stopping)
        if self.stopping.is_set():
            raise ConnectionOver

    def hold(self, gate: str) -> None:
        """Wait for a gate.

        Raises:
            ConnectionOver: the server closed meanwhile.
        """
        with self.lock:
            event = self.gates[gate]
        event.wait()
        if self.stopping.is_set():
            raise ConnectionOver

    def hang(self) -> None:
        """Wait for the end of the server."""
        self.stopping.wait()
        raise ConnectionOver

    def stop(self) -> None:
        """Wake everything that waits."""
        self.stopping.set()
        self.clock.wake()
        with self.lock:
            gates = list(self.gates.values())
        for gate in gates:
            gate.set()
