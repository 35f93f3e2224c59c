"""The server itself: a real HTTP server on the loopback interface, in threads, for the length of a `with` block."""

from __future__ import annotations

import socket
import sys
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.doubles.protocol_server._handler import Handler
from tests.doubles.protocol_server._state import Features, Responder, State
from tests.doubles.protocol_server.clock import Clock, RealClock
from tests.doubles.protocol_server.recording import RecordedRequest
from tests.doubles.protocol_server.script import Script, Turn

__all__ = ["ProtocolServer"]

_HOST = "127.0.0.1"
_POLL_S = 0.02
"""How often the accepting thread looks whether it should stop: closing takes at most this long."""


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = False  # joined on close: no thread outlives its test
    block_on_close = True
    request_queue_size = 256

    def __init__(self, port: int, handler: type[Handler], state: State) -> None:
        self.state = state
        self.open_sockets: set[socket.socket] = set()
        super().__init__((_HOST, port), handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self.state.lock:
            self.open_sockets.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self.state.lock:
            self.open_sockets.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exc_info()[1]
        if error is not None:
            with self.state.lock:
                self.state.defects.append(error)

    def close_connections(self) -> None:
        """Wake handlers that wait for a next request on an idle connection."""
        with self.state.lock:
            sockets = list(self.open_sockets)
        for connection in sockets:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:  # closed by its client or handler meanwhile
                continue


class ProtocolServer:
    """Speaks the protocols of model endpoints from a script, to real clients.

    Args:
        script: turns, or a function that makes them from the endpoint and the request's body.
        clock: where scripted delays pass; `ManualClock` for tests.
        features: what the endpoint can do; what is off is rejected as compatible servers do.
        api_key: when given, requests without it get 401.
        models: names that exist; empty: any name is served.
        context_tokens: longer requests (estimated) get 400 `context_length_exceeded`.
        record_to: a file that gets one JSON line a request.
        port: 0 takes a free one.

    Raises:
        OSError: the port is taken.
        RuntimeError: on leaving the block, when the server itself failed on a request.
    """

    def __init__(
        self,
        script: Script | Responder | None = None,
        *,
        clock: Clock | None = None,
        features: Features | None = None,
        api_key: str | None = None,
        models: tuple[str, ...] = (),
        context_tokens: int | None = None,
        record_to: Path | None = None,
        port: int = 0,
    ) -> None:
        responder = script if callable(script) else None
        self._state = State(
            script=script if isinstance(script, Script) else Script(),
            responder=responder,
            clock=clock or RealClock(),
            features=features or Features(),
            api_key=api_key,
            models=models,
            context_tokens=context_tokens,
            record_to=record_to,
        )
        self._port = port
        self._server: _HTTPServer | None = None
        self._thread: threading.Thread | None = None

    # --- life

    def start(self) -> Self:
        """Listen and serve in the background."""
        handler = type("BoundHandler", (Handler,), {"state": self._state})
        self._server = _HTTPServer(self._port, handler, self._state)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": _POLL_S}, name="protocol-server", daemon=True
        )
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop, end all connections, join all threads. Safe to call twice."""
        if self._server is None or self._thread is None:
            return
        self._state.stop()
        self._server.shutdown()
        self._server.close_connections()
        self._server.server_close()
        self._thread.join()
        self._port = self._server.server_address[1]
        self._server = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
        if error is None and self._state.defects:
            raise RuntimeError("the protocol server failed on a request") from self._state.defects[0]

    # --- what tests look at

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._port if self._server is None else int(self._server.server_address[1])

    @property
    def origin(self) -> str:
        """`http://127.0.0.1:PORT`: what Anthropic's clients take as base URL."""
        return f"http://{_HOST}:{self.port}"

    @property
    def base_url(self) -> str:
        """What OpenAI's clients take as base URL; ends in `/v1`."""
        return f"{self.origin}/v1"

    @property
    def script(self) -> Script:
        """The script that it was started with."""
        return self._state.script

    @property
    def requests(self) -> list[RecordedRequest]:
        """All requests so far, in the order of their arrival."""
        with self._state.lock:
            return list(self._state.requests)

    @property
    def unused(self) -> list[Turn]:
        """Turns that no request has met yet."""
        with self._state.lock:
            return [turn for turn, used in zip(self._state.turns, self._state.used, strict=True) if used == 0]

    @property
    def clients_left(self) -> int:
        """How many connections their clients ended in the middle of an answer."""
        with self._state.lock:
            return self._state.clients_left

    # --- what tests do

    def enqueue(self, *turns: Turn) -> None:
        """Add turns at the end of the script."""
        self._state.extend(turns)

    def release(self, gate: str) -> None:
        """Let the turns that `hold` at this gate go on, now and later."""
        with self._state.lock:
            event = self._state.gates[gate]
        event.set()
