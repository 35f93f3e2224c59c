"""Start the agent behind its forwarders: `launch.py PORT=SOCKET ... -- COMMAND ARGUMENT ...`.

Runs in the agent's container with that container's own Python (3.9 or later, standard library only). Each forwarder
listens on 127.0.0.1:PORT and hands every connection on to a unix socket that is mounted into the container, behind
which the harness's gateway listens: the container itself has no network. The ports are open before the agent starts, so
that its first request cannot come too early; one process with one thread serves them all, so that they take one place
of the agent's process limit.
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


async def serve(listeners: list[tuple[socket.socket, str]]) -> None:
    """All forwarders, for ever."""
    servers = []
    for listener, path in listeners:

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str = path) -> None:
            await forward(path, reader, writer)

        servers.append(await asyncio.start_server(accept, sock=listener))
    await asyncio.gather(*(server.serve_forever() for server in servers))


def main(arguments: list[str]) -> None:
    """Open the ports, leave a child behind that serves them, become the agent."""
    split = arguments.index("--")
    listeners = []
    for pair in arguments[:split]:
        port, _, path = pair.partition("=")
        listeners.append((socket.create_server(("127.0.0.1", int(port)), backlog=BACKLOG), path))
    if listeners and os.fork() == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        os.chdir("/")
        asyncio.run(serve(listeners))
        os._exit(0)
    for listener, _ in listeners:
        listener.close()
    command = arguments[split + 1 :]
    try:
        os.execvp(command[0], command)  # noqa: S606 - no shell is meant
    except OSError as error:
        sys.stderr.write(f"the agent cannot be started: {command[0]}: {error.strerror}\n")
        sys.exit(127)


if __name__ == "__main__":
    main(sys.argv[1:])
