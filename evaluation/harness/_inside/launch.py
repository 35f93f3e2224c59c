"""Start the agent behind its forwarders: `launch.py PORT=SOCKET ... [dns=SOCKET] -- COMMAND ARGUMENT ...`.

Runs in the agent's container with that container's own Python (3.9 or later, standard library only). Each forwarder
listens on 127.0.0.1:PORT and hands every connection on to a unix socket that is mounted into the container, behind
which the harness's gateway listens: the container itself has no network. The ports are open before the agent starts, so
that its first request cannot come too early; one process with one thread serves them all, so that they take one place
of the agent's process limit. With `dns=` it is also the container's name server, which knows no name and tells every
one that it was asked for: allowed hosts are reached through the proxy, which is given names.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys

CHUNK = 1 << 16
BACKLOG = 64


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One direction of a connection, until its end."""
    with contextlib.suppress(ConnectionError, OSError):
        while True:
            data = await reader.read(CHUNK)
            if not data:
                break
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


async def forward(path: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One connection."""
    try:
        far_reader, far_writer = await asyncio.open_unix_connection(path)
    except OSError:
        writer.close()
        return
    await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))
    for end in (writer, far_writer):
        end.close()


def asked_name(query: bytes) -> str:
    """The name in a DNS query; empty for what is none."""
    labels, at = [], 12
    while at < len(query) and query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("ascii", "replace"))
        at += 1 + query[at]
    return ".".join(labels)


class NoNames(asyncio.DatagramProtocol):
    """A name server that knows no name."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._told: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        name = asked_name(data)
        if len(data) < 12 or not name:
            return
        self._transport.sendto(data[:2] + b"\x81\x83" + data[4:6] + bytes(6) + data[12:], addr)
        if name not in self._told and len(self._told) < 500:
            self._told.add(name)
            task = asyncio.ensure_future(self._tell(name))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _tell(self, name: str) -> None:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_unix_connection(self._path)
            writer.write(f"RESOLVE {name}:53 HTTP/1.1\r\n\r\n".encode("ascii", "replace"))
            await reader.read()
            writer.close()


async def serve(listeners: list[tuple[socket.socket, str]], names: tuple[socket.socket, str] | None = None) -> None:
    """All forwarders, for ever."""
    servers = []
    if names is not None:
        loop = asyncio.get_running_loop()
        await loop.create_datagram_endpoint(lambda: NoNames(names[1]), sock=names[0])
    for listener, path in listeners:

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str = path) -> None:
            await forward(path, reader, writer)

        servers.append(await asyncio.start_server(accept, sock=listener))
    await asyncio.gather(*(server.serve_forever() for server in servers))


def hide() -> None:
    """Keep the agent, which is the same user, from taking this process over (ptrace, /proc/PID/mem)."""
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE


def main(arguments: list[str]) -> None:
    """Open the ports, leave a child behind that serves them, become the agent."""
    split = arguments.index("--")
    listeners: list[tuple[socket.socket, str]] = []
    names = None
    for pair in arguments[:split]:
        port, _, path = pair.partition("=")
        if port == "dns":
            names = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM), path)
            names[0].bind(("127.0.0.1", 53))
            names[0].setblocking(False)
            continue
        listeners.append((socket.create_server(("127.0.0.1", int(port)), backlog=BACKLOG), path))
    if listeners and os.fork() == 0:
        hide()
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        os.chdir("/")
        asyncio.run(serve(listeners, names))
        os._exit(0)
    for listener, _ in listeners:
        listener.close()
    if names is not None:
        names[0].close()
    command = arguments[split + 1 :]
    try:
        os.execvp(command[0], command)  # noqa: S606 - no shell is meant
    except OSError as error:
        sys.stderr.write(f"the agent cannot be started: {command[0]}: {error.strerror}\n")
        sys.exit(127)


if __name__ == "__main__":
    main(sys.argv[1:])
