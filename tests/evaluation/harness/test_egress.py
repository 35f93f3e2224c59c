"""The proxy for allowed hosts: what it lets through, what it refuses, and what it tells of each attempt."""

from __future__ import annotations

import asyncio
import socket
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from evaluation.harness import egress
from evaluation.harness.egress import Egress

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def ask(request: bytes, allow: tuple[str, ...] = ("allowed.org",), then: Talk | None = None) -> tuple[bytes, list[str]]:
    """What the proxy answers to the head of a request, and what it tells; `then` goes on with an open connection."""
    said: list[str] = []

    async def talk() -> bytes:
        with tempfile.TemporaryDirectory(prefix="eg-") as name:
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(f"{name}/s")
            server = await Egress(allow, said.append).start(listener)
            reader, writer = await asyncio.open_unix_connection(f"{name}/s")
            writer.write(request)
            if then is not None:
                head = await reader.readuntil(b"\r\n\r\n")
                await then(reader, writer)
            else:
                head = b""
            answer = head + await asyncio.wait_for(reader.read(), 30)
            writer.close()
            server.close()
            await server.wait_closed()
            return answer

    return asyncio.run(talk()), said


def resolve(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> list[tuple[Any, ...]]:
    """Every name leads to these; returns what was asked for."""
    asked: list[tuple[Any, ...]] = []

    def found(*given: Any, **options: Any) -> list[Any]:
        asked.append(given[:2])
        if not addresses:
            raise socket.gaierror("no such name")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    return asked


@pytest.mark.parametrize(
    "request_",
    [b"CONNECT other.org:443 HTTP/1.1", b"CONNECT allowed.org:80 HTTP/1.1", b"CONNECT allowed.org HTTP/1.1",
     b"CONNECT allowed.org:https HTTP/1.1", b"GET allowed.org:443 HTTP/1.1", b"GET http://allowed.org/ HTTP/1.1",
     b"CONNECT", b""],
)  # fmt: skip
def test_what_is_not_allowed_is_refused_and_told(monkeypatch: pytest.MonkeyPatch, request_: bytes) -> None:
    asked = resolve(monkeypatch, "8.8.8.8")
    answer, said = ask(request_ + b"\r\nHost: x\r\n\r\n")
    assert answer == b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n"
    assert said == [f"network: {request_.decode()} refused: not allowed in this run"]
    assert asked == [], "a refused name is not looked up"


def test_what_is_told_of_a_refusal_is_bounded() -> None:
    _, said = ask(b"CONNECT " + b"x" * 300 + b"\r\n\r\n")
    assert said == [f"network: CONNECT {'x' * 192} refused: not allowed in this run"]
    _, said = ask(b"RESOLVE " + b"y" * 300 + b":53 HTTP/1.1\r\n\r\n")
    assert said == [f"network: the name {'y' * 200} was asked for and not resolved: allowed hosts are reached by proxy"]


def test_a_name_that_was_asked_for_is_told_and_not_answered() -> None:
    answer, said = ask(b"RESOLVE allowed.org:53 HTTP/1.1\r\n\r\n")
    assert answer == b""
    assert said == ["network: the name allowed.org was asked for and not resolved: allowed hosts are reached by proxy"]


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["10.1.2.3"], ["169.254.169.254"], ["192.168.0.1"], ["::1"], ["8.8.8.8", "10.0.0.1"], []],
)
def test_no_name_leads_to_this_machine_or_a_private_network(
    monkeypatch: pytest.MonkeyPatch, addresses: list[str]
) -> None:
    asked = resolve(monkeypatch, *addresses)
    answer, said = ask(b"CONNECT allowed.org:443 HTTP/1.1\r\n\r\n")
    assert answer == b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n"
    assert said == ["network: allowed.org:443 refused: it leads to no public address"]
    assert asked == [("allowed.org", 443)]


def test_a_public_name_is_connected_by_its_first_address(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve(monkeypatch, "8.8.8.8", "1.1.1.1")
    assert asyncio.run(egress._public_endpoint("allowed.org")) == ("8.8.8.8", 443)


def far_end(monkeypatch: pytest.MonkeyPatch, serve: Talk) -> list[bytes]:
    """A far end on this machine in place of the public address; what it got."""
    got: list[bytes] = []
    connect = asyncio.open_connection

    async def connected(host: str, port: int) -> Any:
        assert (host, port) == ("8.8.8.8", 443)

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            server.close()
            got.append(await reader.read())
            await serve(reader, writer)
            writer.close()

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        return await connect(*server.sockets[0].getsockname())

    resolve(monkeypatch, "8.8.8.8")
    monkeypatch.setattr(asyncio, "open_connection", connected)
    return got


def test_what_flows_comes_through_whole_and_its_amount_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    sent, back = b"q" * 200_000, b"a" * 300_000

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(back)
        await writer.drain()

    async def then(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)
        writer.write_eof()  # the far end answers once this one has said all

    got = far_end(monkeypatch, serve)
    answer, said = ask(b"CONNECT allowed.org:443 HTTP/1.1\r\n\r\n", then=then)
    assert answer == b"HTTP/1.1 200 Connection established\r\n\r\n" + back
    assert got == [sent]
    assert said == ["network: allowed.org:443 was reached, 200000 bytes sent, 300000 bytes received"]


def test_an_end_that_cannot_be_reached_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve(monkeypatch, "8.8.8.8")

    async def refused(*_: object) -> None:
        raise OSError("no route")

    monkeypatch.setattr(asyncio, "open_connection", refused)
    answer, said = ask(b"CONNECT allowed.org:443 HTTP/1.1\r\n\r\n")
    assert answer == b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n"
    assert said == ["network: allowed.org:443 could not be reached: no route"]


def test_an_end_that_does_not_answer_in_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve(monkeypatch, "8.8.8.8")
    monkeypatch.setattr(egress, "_CONNECT_S", 0.05)
    monkeypatch.setattr(asyncio, "open_connection", lambda *_: asyncio.sleep(60))
    answer, said = ask(b"CONNECT allowed.org:443 HTTP/1.1\r\n\r\n")
    assert b" 502 " in answer
    assert len(said) == 1


def test_a_request_without_an_end_is_given_up_and_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(egress, "_HEAD_S", 0.05)
    assert ask(b"CONNECT allowed.org:443 HTTP/1.1\r\n") == (b"", [])
    assert ask(b"x" * 200_000) == (b"", [])


@pytest.mark.parametrize(
    ("allow", "host", "allowed"),
    [("Allowed.org.", "allowed.org", True), ("allowed.org", "ALLOWED.org.", True), ("*.a.org", "b.a.org", True),
     ("*.a.org", "c.b.a.org", True), ("*.a.org", "a.org", False), ("a.org", "b.a.org", False), ("a.org", "a.org.evil", False)],
)  # fmt: skip
def test_hosts_of_the_list(allow: str, host: str, allowed: bool) -> None:
    made = Egress(("x.org", allow), print)
    assert made.allowed(host, 443) == allowed
    assert not made.allowed(host, 80)
    assert not Egress((), print).allowed(host, 443)


def test_attempts_are_told_up_to_a_bound(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(egress, "_MOST_NOTES", 3)
    said: list[str] = []
    made = Egress((), said.append)
    for number in range(6):
        made._say(str(number))
    assert said == ["0", "1", "2 (further attempts are not listed)"]
