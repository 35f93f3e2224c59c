"""A CONNECT proxy with an allow-list, for runs whose network policy names hosts (`--network allow=HOST,...`).

Only TLS (port 443) to the named hosts; names are resolved here, and addresses of this machine, of private networks and
of cloud metadata services are refused whatever name leads to them. Every attempt is told. What flows is encrypted
between the agent and the host, so only its amount is known.
"""

from __future__ import annotations

import asyncio
import contextlib
import fnmatch
import socket
from collections.abc import Callable
from typing import Final

from pipeline.network.addresses import public_address

__all__ = ["Egress"]

_MOST_HEAD: Final = 8192
_HEAD_S: Final = 30.0
_CONNECT_S: Final = 20.0
_MOST_NOTES: Final = 500
_CHUNK: Final = 1 << 16


class Egress:
    """The proxy of one episode.

    Args:
        allow: host names; `*.example.org` stands for every host below.
        tell: receives one line an attempt.
    """

    def __init__(self, allow: tuple[str, ...], tell: Callable[[str], object]) -> None:
        self._allow = tuple(host.lower().rstrip(".") for host in allow)
        self._tell = tell
        self._told = 0

    async def start(self, listener: socket.socket) -> asyncio.AbstractServer:
        """Serve on a listening socket, in the running loop."""
        return await asyncio.start_unix_server(self._serve, sock=listener)

    def allowed(self, host: str, port: int) -> bool:
        """Is it on the list?"""
        name = host.lower().rstrip(".")
        return port == 443 and any(fnmatch.fnmatchcase(name, pattern) for pattern in self._allow)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _HEAD_S)
            await self._connect(head[:_MOST_HEAD].split(b"\r\n")[0].decode("latin-1"), reader, writer)
        writer.close()

    async def _connect(self, request: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method, _, rest = request.partition(" ")
        host, _, port = rest.split(" ")[0].rpartition(":")
        if method == "RESOLVE":
            what = "was asked for and not resolved: allowed hosts are reached by proxy"
            self._say(f"network: the name {host[:200]} {what}")
            return
        if method != "CONNECT" or not port.isdecimal() or not self.allowed(host, int(port)):
            self._say(f"network: {request[:200]} refused: not allowed in this run")
            writer.write(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
            return
        endpoint = await _public_endpoint(host)
        if endpoint is None:
            self._say(f"network: {host}:443 refused: it leads to no public address")
            writer.write(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
            return
        try:
            far_reader, far_writer = await asyncio.wait_for(asyncio.open_connection(*endpoint), _CONNECT_S)
        except (OSError, TimeoutError) as error:
            self._say(f"network: {host}:443 could not be reached: {error}")
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n")
            return
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        sent, got = await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
        self._say(f"network: {host}:443 was reached, {sent} bytes sent, {got} bytes received")
        far_writer.close()

    def _say(self, text: str) -> None:
        self._told += 1
        if self._told <= _MOST_NOTES:
            self._tell(text if self._told < _MOST_NOTES else f"{text} (further attempts are not listed)")


async def _public_endpoint(host: str) -> tuple[str, int] | None:
    """An address of the host that is nobody's private one; connecting goes to it and not to the name again."""
    address = await asyncio.to_thread(public_address, host, 443)
    return None if address is None else (address, 443)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
    """One direction, until its end; how many bytes."""
    count = 0
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK):
            count += len(data)
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    return count
