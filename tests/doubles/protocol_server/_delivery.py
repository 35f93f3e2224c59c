"""How answers leave: whole, streamed, slowly, cut off, malformed, or as a reset connection."""

from __future__ import annotations

import json
import socket
import struct
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.doubles.protocol_server._exchange import Event, Exchange, Rejection, Wire
from tests.doubles.protocol_server._state import ConnectionOver, State
from tests.doubles.protocol_server.script import Cut, ErrorReply, Turn

__all__ = ["Delivery"]

_HTML = b"<!doctype html><html><body><h1>It works!</h1></body></html>"


class Delivery(BaseHTTPRequestHandler):
    """The answering half of the handler."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # otherwise each answer waits for the delayed acknowledgement (40 ms)
    state: State

    def _reject(self, problem: Rejection, wire: Wire) -> None:
        body = wire.error(ErrorReply(status=problem.status, message=problem.message, code=problem.code))
        if problem.param is not None and "param" in body["error"]:
            body["error"]["param"] = problem.param
        self._send_json(problem.status, body)

    def _deliver(self, exchange: Exchange, wire: Wire) -> None:
        turn = exchange.turn
        self.state.pause(turn.delay_s)
        if turn.hold is not None and (turn.hold_at == 0 or not exchange.body.get("stream")):
            self.state.hold(turn.hold)
        if turn.error is not None:
            self._send_error(turn.error, wire, turn.headers)
        elif turn.fault is not None:
            self._deliver_fault(turn, exchange)
        elif exchange.body.get("stream"):
            self._stream(exchange, wire)
        elif turn.cut is not None:
            self._cut_whole(json.dumps(wire.whole(exchange)).encode(), turn.cut, wire, turn.headers)
        else:
            self._send_json(200, wire.whole(exchange), turn.headers)

    def _send_error(self, reply: ErrorReply, wire: Wire, headers: dict[str, str]) -> None:
        extra = dict(headers)
        if reply.retry_after is not None:
            after = reply.retry_after
            extra["retry-after"] = f"{after:g}" if isinstance(after, int | float) else after
        self._send_json(reply.status, wire.error(reply), extra)

    def _deliver_fault(self, turn: Turn, exchange: Exchange) -> None:
        if turn.fault == "reset":
            self._reset()
        elif turn.fault == "hang":
            self.state.hang()
        elif turn.fault == "wrong_content_type":
            self._send(200, _HTML, "text/html; charset=utf-8", turn.headers)
        elif turn.fault == "empty_body":
            self._send(200, b"", "application/json", turn.headers)
        elif exchange.body.get("stream"):
            self._start_stream(turn.headers)
            self._chunk(b'data: {"id": "chatcmpl-\n\n')
            self._end_stream()
        else:
            self._send(200, b'{"id": "chatcmpl-000001", "object": "chat.comple', "application/json", turn.headers)

    def _cut_whole(self, body: bytes, cut: Cut, wire: Wire, headers: dict[str, str]) -> None:
        if cut.error is not None:
            self._send_error(cut.error, wire, headers)
            return
        if cut.after >= len(body):
            raise ValueError(f"the answer has {len(body)} bytes: it cannot be cut after {cut.after}")
        part = body[: cut.after]
        self._head(200, "application/json", len(body) if cut.how == "abrupt" else len(part), headers)
        self.wfile.write(part)
        self.close_connection = cut.how == "abrupt"

    def _stream(self, exchange: Exchange, wire: Wire) -> None:
        turn, cut = exchange.turn, exchange.turn.cut
        self._start_stream(turn.headers)
        sent = 0
        for sent, event in enumerate(wire.events(exchange)):
            if cut is not None and sent == cut.after:
                self._cut_stream(cut, wire)
                return
            if turn.hold is not None and turn.hold_at and sent == turn.hold_at:
                self.state.hold(turn.hold)
            self.state.pause(turn.between_s)
            self._event(event)
        if cut is not None:  # a test that believes it cuts must not pass by mistake
            raise ValueError(f"the stream has {sent + 1} events: it cannot be cut after {cut.after}")
        self._end_stream()

    def _cut_stream(self, cut: Cut, wire: Wire) -> None:
        if cut.how == "abrupt":
            self.close_connection = True  # the chunked transfer stays unfinished
            return
        if cut.how == "malformed":
            self._chunk(b'data: {"choices": [{"index": 0, "delta": {"content": "brok\n\n')
        elif cut.error is not None:
            self._event(wire.error_event(cut.error))
        self._end_stream()

    def _event(self, event: Event) -> None:
        data = event.data if isinstance(event.data, str) else json.dumps(event.data)
        name = f"event: {event.name}\n" if event.name else ""
        self._chunk(f"{name}data: {data}\n\n".encode())

    def _start_stream(self, headers: dict[str, str]) -> None:
        self._head(200, "text/event-stream; charset=utf-8", None, headers)

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _end_stream(self) -> None:
        self.wfile.write(b"0\r\n\r\n")

    def _head(self, status: int, content_type: str, length: int | None, headers: dict[str, str]) -> None:
        self.send_response_only(status)
        self.send_header("content-type", content_type)
        if length is None:
            self.send_header("transfer-encoding", "chunked")
        else:
            self.send_header("content-length", str(length))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _send(self, status: int, body: bytes, content_type: str, headers: dict[str, str] | None = None) -> None:
        self._head(status, content_type, len(body), headers or {})
        self.wfile.write(body)

    def _send_json(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        self._send(status, json.dumps(body).encode(), "application/json", headers)

    def _reset(self) -> None:
        # lingering for 0 s makes close() send a reset; the file objects must go first, they keep the socket open
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.rfile.close()
        self.wfile.close()
        self.connection.close()
        raise ConnectionOver
