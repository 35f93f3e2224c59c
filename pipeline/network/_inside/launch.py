"""Start a command behind forwarders: `launch.py [ADDRESS:]PORT=SOCKET ... [dns=SOCKET] [names=FILE] -- COMMAND ...`.

Runs in a container with that container's own Python (3.8 or later, standard library only). Each forwarder listens on
127.0.0.1:PORT and hands every connection on to a unix socket that is mounted into the container, behind which a gateway
of ours listens: the container itself has no network. The ports are open before the command starts, so that its first
request cannot come too early; one process with one thread serves them all, so that they take one place of the run's
process limit. It is no child of the command, which may wait for all of its children.

With `dns=` it is also the container's name server. It knows no name but those of `names=` (a pattern a line), which
stand for `NAMED_ADDRESS`, and tells every other one that it was asked for. With `replay=DIRECTORY` the module beside
this one answers at that address from recorded files, and nothing is forwarded.
"""

from __future__ import annotations

import asyncio
import contextlib
import fnmatch
import importlib
import os
import socket
import sys
from pathlib import Path

CHUNK = 1 << 16
BACKLOG = 64
NAMED_ADDRESS = "127.0.0.80"
"""Of the container's own loopback, and not the one where a program listens itself."""
A_RECORD = b"\x00\x01\x00\x01"


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


class Names(asyncio.DatagramProtocol):
    """A name server that knows the names it was given."""

    def __init__(self, path: str, known: list[str]) -> None:
        self._path = path
        self._known = known
        self._told: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        name = asked_name(data)
        if len(data) < 12 or not name:
            return
        if any(fnmatch.fnmatchcase(name.lower(), pattern) for pattern in self._known):
            self._transport.sendto(known_name(data), addr)
            return
        self._transport.sendto(data[:2] + b"\x81\x83" + data[4:6] + bytes(6) + data[12:], addr)
        if self._path and name not in self._told and len(self._told) < 500:
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


def known_name(query: bytes) -> bytes:
    """The answer for a known name: its IPv4 address, and nothing of any other kind."""
    end = query.index(0, 12) + 5
    question = query[12:end]
    answers = question[-4:] == A_RECORD
    head = query[:2] + b"\x81\x80\x00\x01" + bytes([0, int(answers)]) + bytes(4)
    record = b"\xc0\x0c" + A_RECORD + b"\x00\x00\x00\x3c\x00\x04" + socket.inet_aton(NAMED_ADDRESS)
    return head + question + (record if answers else b"")


async def serve(listeners: list[tuple[socket.socket, str]], names: tuple[socket.socket, Names] | None = None) -> None:
    """All forwarders, for ever."""
    servers = []
    if names is not None:
        loop = asyncio.get_running_loop()
        await loop.create_datagram_endpoint(lambda: names[1], sock=names[0])
    for listener, path in listeners:

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str = path) -> None:
            await forward(path, reader, writer)

        servers.append(await asyncio.start_server(accept, sock=listener))
    await asyncio.gather(asyncio.Event().wait(), *(server.serve_forever() for server in servers))


def hide() -> None:
    """Keep the command, which is the same user, from taking this process over (ptrace, /proc/PID/mem)."""
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE


def open_name_server() -> socket.socket:
    """The container's port 53."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.bind(("127.0.0.1", 53))
    listener.setblocking(False)
    return listener


def become_server() -> bool:
    """Leave a process behind that is nobody's child; True in that process."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return False
    if os.fork():
        os._exit(0)
    hide()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.chdir("/")
    return True


def main(arguments: list[str]) -> None:
    """Open the ports, leave a process behind that serves them, become the command."""
    split = arguments.index("--")
    options = [pair.partition("=")[::2] for pair in arguments[:split]]
    words = dict(options)
    listeners: list[tuple[socket.socket, str]] = []
    for place, path in options:
        address, _, port = place.rpartition(":")
        if port.isdecimal():
            listeners.append((socket.create_server((address or "127.0.0.1", int(port)), backlog=BACKLOG), path))
    known = Path(words["names"]).read_text(encoding="ascii").split() if "names" in words else []
    name_server = open_name_server() if "dns" in words or known else None
    servers = []
    if "replay" in words:
        servers = importlib.import_module("replay").open_servers(Path(words["replay"]), NAMED_ADDRESS)
    if (listeners or name_server or servers) and become_server():
        for server in servers:
            server.serve_in_thread()
        names = None if name_server is None else (name_server, Names(words.get("dns", ""), known))
        asyncio.run(serve(listeners, names))
        os._exit(0)
    for end in (*(listener for listener, _ in listeners), *(server.socket for server in servers), name_server):
        if end is not None:
            end.close()
    command = arguments[split + 1 :]
    try:
        os.execvp(command[0], command)  # noqa: S606 - no shell is meant
    except OSError as error:
        sys.stderr.write(f"{command[0]} cannot be started: {error.strerror}\n")
        sys.exit(127)


if __name__ == "__main__":
    main(sys.argv[1:])
