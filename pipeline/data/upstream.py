"""One request to a real data host: a connection to a public address, certificates checked, nothing of the client's."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from pipeline.network.addresses import public_address

__all__ = ["Resolver", "Upstream", "resolve_publicly"]

Resolver = Callable[[str, int], tuple[str, int] | None]
"""The address and port to connect to for a host and port; None: none that may be reached."""

_PATIENCE_S: Final = 60.0
_HEADERS: Final = {
    "User-Agent": "Mozilla/5.0 (compatible; expbench data phase)",
    "Accept": "*/*",
    "Accept-Encoding": "identity",
    "Connection": "close",
}
"""All of them: what a client says there could carry something out, or make the answer depend on who asks."""


def resolve_publicly(host: str, port: int) -> tuple[str, int] | None:
    """Public addresses only (`public_address`)."""
    address = public_address(host, port)
    return None if address is None else (address, port)


class Upstream:
    """The way out of a data phase.

    Args:
        resolve: where a host is; tests lead a real name to a server of theirs.
        tls: whom to believe; None: whom this machine believes.
    """

    def __init__(self, resolve: Resolver = resolve_publicly, tls: ssl.SSLContext | None = None) -> None:
        self._resolve = resolve
        self._tls = tls or ssl.create_default_context()

    def open(self, method: str, url: str, body: bytes, content_type: str) -> http.client.HTTPResponse:
        """Ask; redirects are answers like others.

        Raises:
            PermissionError: the host leads to no public address.
            OSError: it cannot be reached.
            http.client.HTTPException: it answers nonsense.
        """
        parts = urlsplit(url)
        host = parts.hostname or ""
        secure = parts.scheme == "https"
        endpoint = self._resolve(host, 443 if secure else 80)
        if endpoint is None:
            raise PermissionError(f"{host} leads to no public address")
        connection = http.client.HTTPConnection(host, timeout=_PATIENCE_S)
        plain = socket.create_connection(endpoint, _PATIENCE_S)
        try:
            connection.sock = self._tls.wrap_socket(plain, server_hostname=host) if secure else plain
            target = parts.path + (f"?{parts.query}" if "?" in url else "")
            headers = _HEADERS | ({"Content-Type": content_type} if body else {})
            connection.request(method, target, body=body or None, headers=headers)
            return connection.getresponse()
        except BaseException:
            connection.close()
            plain.close()
            raise
