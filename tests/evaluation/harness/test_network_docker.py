"""`--network allow=HOST`, really: a container without a network, one allowed host behind the proxy, a TLS server for it."""

from __future__ import annotations

import http.server
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluation.harness import egress
from evaluation.harness.episode_runner import episode_folder
from evaluation.trajectory import CommandRun, Note
from evaluation.trajectory_io import read_trajectory
from pipeline.sandbox import StopHandle
from tests.evaluation.harness.support import tiny_runner, tiny_tasks
from tests.evaluation.harness.test_episode_docker import command

pytestmark = pytest.mark.docker

HOST = "packages.example.org"
LOOK = r"""
cat > ca.pem <<'END'
{certificate}
END
cat > look.py <<'END'
import http.client, os, socket, ssl, urllib.request

def attempt(name, do):
    try:
        print(name, "->", do())
    except OSError as error:
        print(name, "-> refused:", error)

trusting = ssl.create_default_context(cafile="ca.pem")
get = lambda url: urllib.request.urlopen(url, timeout=20, context=trusting if url.startswith("https") else None).read()
attempt("allowed", lambda: get("https://packages.example.org/index"))
attempt("other", lambda: get("https://arxiv.org/abs/2505.24785"))
attempt("plain", lambda: get("http://packages.example.org/index"))
attempt("lookalike", lambda: get("https://packages.example.org.evil.com/"))
attempt("name", lambda: socket.getaddrinfo("openreview.net", 443))
attempt("address", lambda: socket.create_connection(("1.1.1.1", 443), 5))
attempt("host", lambda: socket.create_connection(("172.17.0.1", 22), 5))
END
python look.py
"""


class _Index(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"the index of packages")

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate of the allowed host, its key in the same file."""
    path = tmp_path / "server.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={HOST}", "-addext",
         f"subjectAltName=DNS:{HOST}", "-keyout", str(tmp_path / "key"), "-out", str(tmp_path / "cert")],
        check=True, capture_output=True,
    )  # fmt: skip
    path.write_text((tmp_path / "cert").read_text() + (tmp_path / "key").read_text())
    return path


@pytest.fixture
def port(certificate: Path) -> Iterator[int]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Index)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_allowed_host_is_reached_and_nothing_else(
    tmp_path: Path, certificate: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = egress._public_endpoint

    async def endpoint(host: str) -> tuple[str, int] | None:
        return ("127.0.0.1", port) if host == HOST else await real(host)  # the one thing that a test cannot have

    monkeypatch.setattr(egress, "_public_endpoint", endpoint)
    [task] = tiny_tasks(tmp_path / "tasks", 1)
    root = tmp_path / "run"
    text = LOOK.replace("{certificate}", certificate.read_text().split("-----BEGIN PRIVATE")[0].strip())
    runner = tiny_runner(root, command(text, tmp_path), allow=(HOST,))[0]  # type: ignore[arg-type]
    runner.episode(task, 0, StopHandle())
    _, events, problems = read_trajectory(episode_folder(root, task.id, 0).trajectory)
    assert problems == []
    output = "".join(event.output for event in events if isinstance(event, CommandRun))
    lines = dict(line.split(" -> ", 1) for line in output.splitlines() if " -> " in line)
    assert lines["allowed"] == "b'the index of packages'"
    assert {name for name, said in lines.items() if said.startswith("refused")} == {
        "other", "plain", "lookalike", "name", "address", "host",
    }  # fmt: skip
    notes = [event.text for event in events if isinstance(event, Note) and event.text.startswith("network: ")]
    assert any(f"{HOST}:443 was reached" in text for text in notes)
    for wanted in ("CONNECT arxiv.org:443", "GET http://packages.example.org/index", f"CONNECT {HOST}.evil.com:443"):
        assert any(wanted in text and "refused" in text for text in notes), wanted
    assert any("the name openreview.net was asked for and not resolved" in text for text in notes)
