"""The launcher inside the container: forwarders, a name server without names, and how it becomes the agent."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.network._inside import launch

PROGRAM = launch.__file__


@pytest.fixture
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="la-") as name:
        yield Path(name)


# --- names


def query(name: str, number: bytes = b"\xab\xcd", count: bytes = b"\x00\x01") -> bytes:
    """A DNS query of type A."""
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return number + b"\x01\x00" + count + b"\x00" * 6 + labels + b"\x00\x00\x01\x00\x01"


@pytest.mark.parametrize("name", ["a", "pypi.org", "files.pythonhosted.org", "x" * 63 + ".org"])
def test_the_name_in_a_query(name: str) -> None:
    assert launch.asked_name(query(name)) == name


@pytest.mark.parametrize("data", [b"", b"x" * 12, b"x" * 12 + b"\0", query("a")[:12]])
def test_what_is_no_query_has_no_name(data: bytes) -> None:
    assert launch.asked_name(data) == ""


def test_a_query_that_breaks_off_or_is_no_text_is_read_as_far_as_it_goes() -> None:
    assert launch.asked_name(b"x" * 12 + b"\x04ab") == "ab"
    assert launch.asked_name(b"x" * 12 + b"\x02\xffb\x01c\x00") == "\ufffdb.c"


class Transport:
    def __init__(self) -> None:
        self.sent: list[tuple[bytes, Any]] = []

    def sendto(self, data: bytes, addr: Any) -> None:
        self.sent.append((data, addr))


def ask_names(place: Path, *queries: bytes) -> tuple[list[tuple[bytes, Any]], list[bytes]]:
    """What is answered to queries, and what the socket behind is told."""
    told: list[bytes] = []
    transport = Transport()

    async def run() -> None:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            told.append(await reader.readuntil(b"\r\n\r\n"))
            writer.close()

        server = await asyncio.start_unix_server(accept, str(place / "s"))
        names = launch.Names(str(place / "s"), [])
        names.connection_made(transport)  # type: ignore[arg-type]
        for data in queries:
            names.datagram_received(data, ("127.0.0.1", 5353))
            await asyncio.gather(*names._tasks)  # the server's queue holds a hundred
        server.close()
        await server.wait_closed()
        assert not names._tasks

    asyncio.run(run())
    return transport.sent, told


def test_every_query_is_answered_that_there_is_no_such_name(place: Path) -> None:
    asked = query("pypi.org", b"\x12\x34", b"\x00\x02")
    [(answer, addr)], told = ask_names(place, asked)
    assert addr == ("127.0.0.1", 5353)
    assert answer[:2] == b"\x12\x34", "the number of the query"
    flags = int.from_bytes(answer[2:4], "big")
    assert flags & 0x8000, "it is an answer"
    assert flags & 0xF == 3, "of a name that does not exist"
    assert answer[4:6] == b"\x00\x02"
    assert answer[6:12] == b"\0" * 6, "with no records"
    assert answer[12:] == asked[12:], "and the question again"
    assert told == [b"RESOLVE pypi.org:53 HTTP/1.1\r\n\r\n"]


def test_a_name_is_told_once_and_answered_each_time(place: Path) -> None:
    sent, told = ask_names(place, query("a.org"), query("b.org"), query("a.org"))
    assert len(sent) == 3
    assert sorted(told) == [b"RESOLVE a.org:53 HTTP/1.1\r\n\r\n", b"RESOLVE b.org:53 HTTP/1.1\r\n\r\n"]


@pytest.mark.parametrize("data", [b"", b"short", b"x" * 12, b"x" * 12 + b"\0"])
def test_what_asks_for_nothing_is_not_answered(place: Path, data: bytes) -> None:
    assert ask_names(place, data) == ([], [])


def test_so_many_names_are_told_and_all_are_answered(place: Path) -> None:
    sent, told = ask_names(place, *(query(f"n{number}.org") for number in range(502)))
    assert len(sent) == 502
    assert len(told) == 500


def test_a_gateway_that_is_gone_costs_no_answer() -> None:
    transport = Transport()

    async def run() -> None:
        names = launch.Names("/no/such/socket", [])
        names.connection_made(transport)  # type: ignore[arg-type]
        names.datagram_received(query("a.org"), ("127.0.0.1", 1))
        await asyncio.gather(*names._tasks)

    asyncio.run(run())
    assert len(transport.sent) == 1


# --- forwarding


def talk(place: Path, request: bytes, answer: bytes, path: Path | None = None) -> tuple[bytes, list[bytes]]:
    """What comes back through a forwarder to a socket that answers once it was told everything."""
    got: list[bytes] = []

    async def run() -> bytes:
        async def far(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            got.append(await reader.read())
            writer.write(answer)
            await writer.drain()
            writer.close()

        server = await asyncio.start_unix_server(far, str(place / "s"))
        open_port = socket.create_server(("127.0.0.1", 0))
        port = open_port.getsockname()[1]
        serving = asyncio.create_task(launch.serve([(open_port, str(path or place / "s"))]))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        found = b""
        with contextlib.suppress(ConnectionResetError):  # it was not asked what it had to say
            writer.write(request)
            writer.write_eof()
            found = await asyncio.wait_for(reader.read(), 30)
        writer.close()
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving
        server.close()
        await server.wait_closed()
        return found

    return asyncio.run(run()), got


def test_both_directions_come_through_whole_and_their_ends_too(place: Path) -> None:
    request, answer = b"q" * 300_000, b"a" * 200_000
    assert talk(place, request, answer) == (answer, [request])


def test_a_socket_that_nobody_listens_on_ends_the_connection(place: Path) -> None:
    assert talk(place, b"q", b"a", place / "none") == (b"", [])


def test_each_port_leads_to_its_own_socket(place: Path) -> None:
    async def run() -> list[bytes]:
        ports, servers = [], []
        for name in ("one", "two"):

            async def far(_: asyncio.StreamReader, writer: asyncio.StreamWriter, name: str = name) -> None:
                writer.write(name.encode())
                writer.close()

            servers.append(await asyncio.start_unix_server(far, str(place / name)))
            ports.append((socket.create_server(("127.0.0.1", 0)), str(place / name)))
        serving = asyncio.create_task(launch.serve(ports))
        found = []
        for port, _ in ports:
            reader, writer = await asyncio.open_connection(*port.getsockname())
            found.append(await asyncio.wait_for(reader.read(), 30))
            writer.close()
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving
        for server in servers:
            server.close()
            await server.wait_closed()
        return found

    assert asyncio.run(run()) == [b"one", b"two"]


def test_the_name_server_answers_beside_the_ports(place: Path) -> None:
    opened: list[asyncio.BaseTransport] = []

    async def run() -> bytes:
        loop = asyncio.get_running_loop()
        create = loop.create_datagram_endpoint

        async def created(*given: Any, **options: Any) -> Any:
            pair = await create(*given, **options)
            opened.append(pair[0])  # the launcher serves for ever, and never closes it
            return pair

        loop.create_datagram_endpoint = created  # type: ignore[method-assign]
        names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        names.bind(("127.0.0.1", 0))
        names.setblocking(False)
        address = names.getsockname()
        port = socket.create_server(("127.0.0.1", 0))
        serving = asyncio.create_task(
            launch.serve([(port, str(place / "s"))], (names, launch.Names(str(place / "s"), [])))
        )
        await asyncio.sleep(0.05)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.setblocking(False)
            await loop.sock_sendto(client, query("a.org"), address)
            found = await asyncio.wait_for(loop.sock_recv(client, 512), 30)
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving
        opened[0].close()
        await asyncio.sleep(0)
        return found

    assert asyncio.run(run())[:2] == b"\xab\xcd"


# --- becoming the command


def launched(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", "-S", PROGRAM, *arguments], capture_output=True, text=True, timeout=60, check=False
    )


def test_the_command_finds_the_port_open_and_the_server_is_none_of_its_children(place: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    code = (
        "import os, socket\n"
        f"with socket.create_connection(('127.0.0.1', {port}), 30) as line: print('open')\n"
        "try: os.waitpid(-1, os.WNOHANG)\n"
        "except ChildProcessError: print('no child')\n"
    )
    told = launched(f"{port}={place / 's'}", "--", sys.executable, "-c", code)
    try:
        assert told.stdout.split("\n")[:2] == ["open", "no child"], told.stderr
    finally:
        end_server(str(place / "s"))


def test_a_command_that_cannot_be_started_says_so_and_ends_as_a_shell_would() -> None:
    told = launched("--", "/no/such/agent")
    assert told.returncode == 127
    assert told.stderr == "/no/such/agent cannot be started: No such file or directory\n"


def end_server(path: str) -> None:
    """The launcher's server has no parent: it is found by its arguments."""
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdecimal() and path.encode() in (folder / "cmdline").read_bytes():
                os.kill(int(folder.name), signal.SIGKILL)
