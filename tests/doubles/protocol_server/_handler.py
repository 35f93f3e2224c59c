"""One connection: reads requests, checks and records them, and asks the script for the turn that answers."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.doubles.protocol_server import _embeddings
from tests.doubles.protocol_server._checks import find_problem
from tests.doubles.protocol_server._delivery import Delivery
from tests.doubles.protocol_server._exchange import CREATED, Exchange, Rejection, Wire, estimate_tokens
from tests.doubles.protocol_server._messages import MessagesWire
from tests.doubles.protocol_server._state import WIRES, ConnectionOver
from tests.doubles.protocol_server.recording import (
    RecordedImage,
    RecordedRequest,
    safe_headers,
    safe_path,
    without_images,
)
from tests.doubles.protocol_server.script import Endpoint, Turn

__all__ = ["Handler"]

_MAX_BODY = 64 << 20
"""Bytes of a request: a hundred page images are about 30 MB in base64."""
_POSTS: dict[str, Endpoint] = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/messages": "messages",
    "/v1/messages/count_tokens": "count_tokens",
    "/v1/embeddings": "embeddings",
}


class _Arrived(NamedTuple):
    """A request as read, before it is judged."""

    body: Any
    problem: Rejection | None


class Handler(Delivery):
    """See the module's docstring; `state` is set by the server's subclass."""

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are recorded, not logged."""

    # --- requests

    def do_HEAD(self) -> None:  # noqa: N802 - http.server calls it by this name
        """Agents use it to see whether the server lives."""
        self._send(200, b"", "application/json")

    def do_GET(self) -> None:  # noqa: N802 - http.server calls it by this name
        """List of models, one model."""
        path = urlsplit(self.path).path.rstrip("/")
        names = self.state.models or ("scripted",)
        objects = [{"id": n, "object": "model", "created": CREATED, "owned_by": "protocol-server"} for n in names]
        chosen = path.removeprefix("/v1/models/")
        with self.state.lock:
            problem = self._unauthorised()
            turn = None
            if problem is None and path.startswith("/v1/models"):
                turn, outcome = self.state.choose("models", {})
            elif problem is None:
                problem = Rejection(404, f"Invalid URL (GET {path})")
            if problem is None and path != "/v1/models" and chosen not in names:
                problem = Rejection(404, f"The model '{chosen}' does not exist", "model_not_found", "model")
            self._record(None, f"rejected {problem.status}" if problem else outcome)
        if problem is not None:
            self._reject(problem, WIRES["chat"])
        elif turn is not None:
            self._deliver(Exchange(0, {"model": "scripted"}, turn), WIRES["chat"])
        elif path == "/v1/models":
            self._send_json(200, {"object": "list", "data": objects})
        else:
            self._send_json(200, next(item for item in objects if item["id"] == chosen))

    def do_POST(self) -> None:  # noqa: N802 - http.server calls it by this name
        """All that generates."""
        path = urlsplit(self.path).path.rstrip("/")
        endpoint = _POSTS.get(path)
        wire: Wire = (
            MessagesWire() if endpoint in ("messages", "count_tokens") else WIRES.get(endpoint or "", WIRES["chat"])
        )
        arrived = self._read_body()
        with self.state.lock:
            problem = self._unauthorised() or arrived.problem
            if problem is None:
                problem = find_problem(self.state, endpoint, arrived.body, f"POST {path}")
            turn: Turn | None = None
            outcome = f"rejected {problem.status}" if problem else ""
            if problem is None and endpoint is not None:
                turn, outcome = self.state.choose(endpoint, arrived.body)
            number = self._record(arrived.body, outcome).number
        if problem is not None:
            self._reject(problem, wire)
        elif turn is not None:
            self._deliver(Exchange(number, arrived.body, turn), wire)
        elif endpoint == "embeddings":
            self._send_json(200, _embeddings.respond(arrived.body))
        else:
            self._send_json(200, {"input_tokens": estimate_tokens(arrived.body)})

    def _read_body(self) -> _Arrived:
        length = int(self.headers.get("content-length") or 0)
        if length > _MAX_BODY:
            self.close_connection = True
            return _Arrived(None, Rejection(413, f"Request body over {_MAX_BODY} bytes"))
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            raw = self._read_chunks()
        else:
            raw = self.rfile.read(length)
        try:
            if self.headers.get("content-encoding") == "gzip":
                raw = gzip.decompress(raw)
            body = json.loads(raw)
        except (ValueError, OSError, EOFError, zlib.error):
            return _Arrived(None, Rejection(400, "We could not parse the JSON body of your request."))
        if not isinstance(body, dict):
            return _Arrived(body, Rejection(400, "The JSON body must be an object."))
        return _Arrived(body, None)

    def _read_chunks(self) -> bytes:
        parts = []
        while size := int(self.rfile.readline().split(b";")[0].strip() or b"0", 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass  # trailers
        return b"".join(parts)

    def _unauthorised(self) -> Rejection | None:
        expected = self.state.api_key
        if expected is None:
            return None
        _, sent = safe_headers(dict(self.headers.items()))
        if sent == expected:
            return None
        message = "Incorrect API key provided." if sent else "You didn't provide an API key."
        return Rejection(401, message, "invalid_api_key" if sent else None)

    def _record(self, body: Any, outcome: str) -> RecordedRequest:
        headers, credential = safe_headers(dict(self.headers.items()))
        images: list[RecordedImage] = []
        request = RecordedRequest(
            number=0,
            method=self.command,
            path=safe_path(self.path),
            headers=headers,
            credential_sent=credential is not None,
            credential_digest=hashlib.sha256(credential.encode()).hexdigest() if credential else None,
            body=without_images(body, images),
            images=tuple(images),
            outcome=outcome,
        )
        return self.state.record(request)

    def handle(self) -> None:
        """Serve the connection until it ends; a client that left is counted, a closing server is no error."""
        try:
            super().handle()
        except ConnectionOver:
            self.close_connection = True
        except (ConnectionError, TimeoutError):
            with self.state.lock:
                self.state.clients_left += 1

    def finish(self) -> None:
        """Close the files; the client may be gone already."""
        try:
            super().finish()
        except (ConnectionError, ValueError):
            self.close_connection = True
