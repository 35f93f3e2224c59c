"""A data host on this machine: HTTP and HTTPS for whatever names a test gives it, behind the resolver of the proxy."""

from __future__ import annotations

import http.server
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.data.certificates import Authority
from pipeline.data.upstream import Upstream, resolve_publicly


class Page:
    """What a URL gives."""

    def __init__(
        self, body: bytes = b"", content_type: str = "application/octet-stream", status: int = 200,
        endless: bool = False, length: bool = True, **headers: str,
    ) -> None:  # fmt: skip
        self.body, self.content_type, self.status, self.endless, self.length = (
            body,
            content_type,
            status,
            endless,
            length,
        )
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class DataHost:
    """Pages by `host/path?query`, and what was asked for."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.pages: dict[str, Page] = {}
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []
        self.ports: dict[int, int] = {}
        self.tls = ssl.create_default_context()

    def resolve(self, host: str, port: int) -> tuple[str, int] | None:
        """The resolver override: these names are here, all others where they really are."""
        return ("127.0.0.1", self.ports[port]) if host in self.names else resolve_publicly(host, port)

    @property
    def upstream(self) -> Upstream:
        return Upstream(self.resolve, self.tls)

    def urls(self) -> list[str]:
        return [f"{method} {url}" for method, url, *_ in self.asked]


@contextmanager
def serve_data_host(*names: str) -> Iterator[DataHost]:
    host = DataHost(names)

    class _Handler(http.server.BaseHTTPRequestHandler):
        def __getattr__(self, name: str) -> Callable[[], None]:
            if name.startswith("do_"):
                return self.answer
            raise AttributeError(name)

        def answer(self) -> None:
            url = f"{self.headers['Host']}{self.path}"
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            host.asked.append((self.command, url, dict(self.headers), body))
            page = host.pages.get(url, Page(b"nothing here", "text/plain", 404))
            self.send_response(page.status)
            self.send_header("Content-Type", page.content_type)
            for name, value in page.headers.items():
                self.send_header(name, value)
            if page.length:
                self.send_header("Content-Length", str(len(page.body)))
            self.end_headers()
            try:
                if self.command != "HEAD":
                    self.wfile.write(page.body)
                while page.endless:
                    self.wfile.write(b"x" * 65536)
            except OSError:
                pass

        def log_message(self, *_: object) -> None:
            """Quiet."""

    authority = Authority()
    with tempfile.TemporaryDirectory() as name:
        pem = Path(name) / "host.pem"
        pem.write_bytes(authority.issue(names))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)
    host.tls = ssl.create_default_context(cadata=authority.certificate.decode())
    servers = {port: http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) for port in (80, 443)}
    servers[443].socket = context.wrap_socket(servers[443].socket, server_side=True)
    host.ports = {port: server.server_address[1] for port, server in servers.items()}
    threads = [threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True) for server in servers.values()]
    for thread in threads:
        thread.start()
    try:
        yield host
    finally:
        for server in servers.values():
            server.shutdown()
            server.server_close()
        for thread in threads:
            thread.join()
