"""A recorder behind its unix socket, and a client that believes it."""

from __future__ import annotations

import http.client
import socket
import ssl
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from pipeline.data.allow import default_allow_list
from pipeline.data.certificates import Authority
from pipeline.data.proxy import Recorder, serve_recorder
from pipeline.data.store import DataStore
from tests.pipeline.data.data_host import DataHost, serve_data_host

NAMES = ("api.openml.org", "download.pytorch.org", "huggingface.co", "github.com", "evil.example.com")


class Answer(NamedTuple):
    status: int
    reason: str
    headers: dict[str, str]
    body: bytes


class Phase:
    """One data phase without a container: `ask` is what a program in it would do."""

    def __init__(self, recorder: Recorder, authority: Authority, path: Path) -> None:
        self.recorder, self._authority, self._path = recorder, authority, path

    def ask(self, method: str, url: str, body: bytes | None = None, **headers: str) -> Answer:
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.netloc)
        plain = socket.socket(socket.AF_UNIX)
        plain.settimeout(30)
        plain.connect(str(self._path))
        trust = ssl.create_default_context(cadata=self._authority.certificate.decode())
        secure = parts.scheme == "https"
        connection.sock = trust.wrap_socket(plain, server_hostname=parts.hostname) if secure else plain
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, url.partition(parts.netloc)[2] or "/", body=body, headers=names)
            response = connection.getresponse()
            data = response.read()
            return Answer(response.status, response.reason, dict(response.getheaders()), data)
        finally:
            connection.close()

    def get(self, url: str) -> bytes:
        answer = self.ask("GET", url)
        assert answer.status == 200, answer
        return answer.body

    def outcomes(self) -> list[tuple[str, str]]:
        return [(asked.outcome, asked.url) for asked in self.recorder.requests]


Phases = Callable[..., Phase]


@pytest.fixture
def host() -> Iterator[DataHost]:
    with serve_data_host(*NAMES) as served:
        yield served


@pytest.fixture
def store(tmp_path: Path) -> DataStore:
    return DataStore(tmp_path / "data")


@pytest.fixture
def phase(host: DataHost, store: DataStore) -> Iterator[Phases]:
    """Makes phases over one cache."""
    with ExitStack() as stack:

        def begin(**options: Any) -> Phase:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ph-")))
            settings = {"limit_bytes": 1 << 20, "ask": None, "refresh": False} | options
            recorder = Recorder(store, default_allow_list(), host.upstream, **settings)
            authority = Authority()
            stack.enter_context(serve_recorder(recorder, authority, scratch / "s", scratch))
            return Phase(recorder, authority, scratch / "s")

        yield begin
