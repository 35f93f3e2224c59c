"""Answer HTTP and HTTPS requests from recorded files.

Inside a container it stands beside the launcher (`pipeline.network._inside.launch`), runs with that container's Python
(3.8 or later, standard library only) and holds nothing but one record: `index.json`, `blobs/`, `host.pem`. Outside, the
recording proxy builds on the same handler, so that a run meets the same answers in the data phase and after it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import socket
import socketserver
import ssl
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

CHUNK = 1 << 18
PATIENCE_S = 120.0
TLS_HANDSHAKE = b"\x16"
NOT_RECORDED = "Not recorded by the data phase"
MOST_BODY = 2048
"""Bytes that a request may carry; only calls that read by POST have a body at all."""
MOST_DRAINED = 1 << 16


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """One thread a connection; whether it speaks TLS is seen from its first byte."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64
    tls: ssl.SSLContext

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away or does not trust us is its own affair."""

    def serve_in_thread(self) -> None:
        """Serve for as long as the process lives."""
        threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    """One request, one answer, then the connection is closed: nothing of one request can be taken for the next."""

    protocol_version = "HTTP/1.1"
    server: Server
    scheme = "http"
    begun = False
    """Has the client got the head of an answer?"""

    def __getattr__(self, name: str) -> Any:
        """Whatever the method is, `answer` decides."""
        if name.startswith("do_"):
            return self.answer
        raise AttributeError(name)

    def answer(self) -> None:
        """Answer one request."""
        raise NotImplementedError

    def setup(self) -> None:
        """Begin TLS where the client does."""
        self.request.settimeout(PATIENCE_S)
        if self.request.recv(1, socket.MSG_PEEK) == TLS_HANDSHAKE:
            self.request = self.server.tls.wrap_socket(self.request, server_side=True)
            self.scheme = "https"
        super().setup()

    def finish(self) -> None:
        """Also close what TLS took over."""
        with contextlib.suppress(OSError):
            super().finish()
            self.request.shutdown(socket.SHUT_WR)
        self.request.close()

    def url(self) -> str:
        """The URL that is asked for, in the one form that the index uses; empty when the request names none."""
        host = (self.headers.get("Host") or "").strip().lower()
        name, _, port = host.partition(":")
        standard = "443" if self.scheme == "https" else "80"
        plain = name.isascii() and all(letter.isalnum() or letter in ".-_" for letter in name) and self.path.isascii()
        if not name or not plain or port not in ("", standard) or not self.path.startswith("/"):
            return ""
        return f"{self.scheme}://{name.rstrip('.')}{self.path.partition('#')[0]}"

    def body(self) -> bytes | None:
        """What the request carries, which is nothing but for a POST; None when it is longer than it may be.

        It is read in any case: a client that cannot send its request to the end does not look at the answer.
        """
        length = self.headers.get("Content-Length") or "0"
        known = length.isdecimal() and "Transfer-Encoding" not in self.headers
        data = self.rfile.read(min(int(length), MOST_DRAINED)) if known else b""
        return data if known and len(data) <= MOST_BODY else None

    def send_reply(self, reply: dict[str, Any], path: Path) -> None:
        """A recorded answer, or the part of it that the client wants.

        Args:
            reply: of the index.
            path: of its body.
        """
        size = reply["size"]
        first, last, partial = 0, size - 1, False
        if self.command != "HEAD" and reply["status"] == 200 and "content-encoding" not in dict(reply["headers"]):
            first, last, partial = wanted_range(self.headers.get("Range"), size)
        if partial:
            extra = [("content-range", f"bytes {first}-{last}/{size}")]
            self.send_head(206, "Partial Content", [*reply["headers"], *extra], last - first + 1)
        else:
            self.send_head(reply["status"], reply["reason"], reply["headers"], size)
        if self.command == "HEAD":
            return
        with path.open("rb") as stream:
            stream.seek(first)
            left = last - first + 1
            while left > 0:
                data = stream.read(min(CHUNK, left))
                if not data:
                    break
                self.wfile.write(data)
                left -= len(data)

    def send_head(self, status: int, reason: str, headers: Any, length: int | None) -> None:
        """Status line and headers."""
        self.begun = True
        self.send_response_only(status, reason)
        for name, value in headers:
            self.send_header(name, value)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Connection", "close")
        self.end_headers()

    def send_refusal(self, reason: str, text: str) -> None:
        """403, which no client takes for something that another try would get; never 404, which has a meaning."""
        data = f"{text}\n".encode("utf-8", "replace")
        self.send_head(403, reason, [("content-type", "text/plain; charset=utf-8")], len(data))
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *arguments: object) -> None:
        """What was asked stands in the record."""


class Replay(Handler):
    """Answers from a record."""

    server: ReplayServer

    def answer(self) -> None:
        """The recorded answer; a HEAD is answered by the head of a recorded GET."""
        body = self.body() or b""
        url = self.url()
        reply = self.server.index.get(request_key(self.command, url, body))
        if reply is None and self.command == "HEAD":
            reply = self.server.index.get(request_key("GET", url, b""))
        if reply is None:
            self.send_refusal(NOT_RECORDED, f"{self.command} {url} was not asked for in the data phase")
            return
        self.send_reply(reply, self.server.blobs / reply["sha256"])


class ReplayServer(Server):
    """Answers from a record at one port."""

    def __init__(self, address: tuple[str, int], directory: Path, index: dict[str, Any], tls: ssl.SSLContext) -> None:
        super().__init__(address, Replay)
        self.index = index
        self.blobs = directory / "blobs"
        self.tls = tls


def request_key(method: str, url: str, body: bytes) -> str:
    """What tells requests apart."""
    return f"{method} {url}" + (f" {hashlib.sha256(body).hexdigest()}" if body else "")


def wanted_range(header: str | None, size: int) -> tuple[int, int, bool]:
    """First and last byte of a `Range`, and whether it is one; several ranges and nonsense mean everything."""
    whole = (0, size - 1, False)
    unit, _, spec = (header or "").partition("=")
    start, dash, end = spec.strip().partition("-")
    if unit.strip() != "bytes" or not dash or any(part and not part.isdecimal() for part in (start, end)):
        return whole
    if start:
        first, last = int(start), min(int(end) if end else size - 1, size - 1)
    elif end:
        first, last = max(0, size - int(end)), size - 1
    else:
        return whole
    return (first, last, True) if 0 <= first <= last else whole


def open_servers(directory: Path, address: str) -> list[ReplayServer]:
    """The two ports of a record, bound and not yet served."""
    index = json.loads((directory / "index.json").read_text(encoding="utf-8"))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(str(directory / "host.pem"))
    return [ReplayServer((address, port), directory, index, tls) for port in (80, 443)]
