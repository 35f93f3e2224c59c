"""Repositories behind URLs, over both of git's HTTP protocols."""

from __future__ import annotations

import functools
import http.server
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline._git.mirror import mirror_remote
from pipeline._git.source import RemoteSource
from pipeline.errors import FailureKind
from pipeline.repository import open_snapshot
from tests.pipeline.repositories import ENV, MIT, add_submodule, commit, failure, git, make


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make(tmp_path / "repo", {"main.py": "print(1)\n", "LICENSE": MIT, "sub/run me.sh": "echo\n"})


@pytest.fixture
def into(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "snapshot"


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder and the URL under which git's "dumb" HTTP protocol finds what lies in it."""
    root = tmp_path / "served"
    root.mkdir()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield root, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def publish(repo: Path, root: Path) -> None:
    shutil.rmtree(root / f"{repo.name}.git", ignore_errors=True)
    git(root, "clone", "-q", "--bare", str(repo), f"{repo.name}.git")
    git(root / f"{repo.name}.git", "update-server-info")


def test_remote_repository_and_submodule(repo: Path, served: tuple[Path, str], tmp_path: Path, into: Path) -> None:
    root, url = served
    lib = make(tmp_path / "lib", {"lib.py": "1\n"})
    add_submodule(repo, "../lib.git", "lib", git(lib, "rev-parse", "HEAD"))
    publish(repo, root)
    publish(lib, root)
    snapshot = open_snapshot(f"{url}/repo.git", into=into)
    assert snapshot.ref.commit == git(repo, "rev-parse", "HEAD")
    assert snapshot.ref.url == f"{url}/repo.git"
    assert snapshot.text("lib/lib.py") == "1\n"
    # The same call again needs no network, and stays at the first commit although the branch moved on.
    commit(repo, {"new.py": "1"})
    publish(repo, root)
    shutil.move(root / "repo.git", root / "away.git")
    assert open_snapshot(f"{url}/repo.git", into=into) == snapshot
    shutil.move(root / "away.git", root / "repo.git")
    older = open_snapshot(f"{url}/repo.git", commit=snapshot.ref.commit[:9], into=into.with_name("older"))
    assert older.files == snapshot.files


def test_remote_errors(repo: Path, served: tuple[Path, str], tmp_path: Path, into: Path) -> None:
    root, url = served
    failure(FailureKind.REPOSITORY_INVALID, f"{url}/none.git", into)
    publish(repo, root)
    assert "main" in failure(FailureKind.COMMIT_UNKNOWN, f"{url}/repo.git", into, commit="nope").next_step
    failure(FailureKind.COMMIT_UNKNOWN, f"{url}/repo.git", into, commit="1" * 40)
    git(root, "init", "-q", "--bare", "empty.git")
    git(root / "empty.git", "update-server-info")
    failure(FailureKind.REPOSITORY_EMPTY, f"{url}/empty.git", into)


class _Smart(_Quiet):
    """git's own HTTP back end, as a hosting service runs it."""

    def do_POST(self) -> None:
        self._backend(self.rfile.read(int(self.headers["Content-Length"])))

    def do_GET(self) -> None:
        self._backend(b"")

    def _backend(self, body: bytes) -> None:
        path, _, query = self.path.partition("?")
        status = {"/private": 401, "/forbidden": 403, "/broken": 502}.get("/" + path.split("/")[1])
        if status is not None:
            self.send_error(status)
            return
        environment = {
            **ENV,
            "GIT_PROJECT_ROOT": self.directory,
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.decode().split(": ", 1) for line in head.split(b"\r\n") if b": " in line)
        self.send_response(int(headers.pop("Status", "200").split()[0]))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def hosted(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder and the URL under which git's "smart" HTTP protocol serves its repositories."""
    root = tmp_path / "hosted"
    root.mkdir()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Smart, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield root, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_hosting_service_is_asked_for_one_commit_only(repo: Path, hosted: tuple[Path, str], tmp_path: Path) -> None:
    root, url = hosted
    first = git(repo, "rev-parse", "HEAD")
    git(repo, "tag", "-a", "v1", "-m", "one")
    second = commit(repo, {"new.py": "1"})
    publish(repo, root)
    for number, (name, expected) in enumerate([(None, second), ("v1", first), (first, first), (first[:8], first)]):
        snapshot = open_snapshot(f"{url}/repo.git", commit=name, into=tmp_path / "out" / f"s{number}")
        assert snapshot.ref.commit == expected
        assert "new.py" in {file.path for file in snapshot.files} or expected == first
    mirror, oid = mirror_remote(RemoteSource(f"{url}/repo.git"), tmp_path / "mirror", None)
    assert oid == second
    assert git(mirror.git_dir, "rev-list", "--all", "--count", second) == "1"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("private", FailureKind.REPOSITORY_INVALID),
        ("forbidden", FailureKind.REPOSITORY_INVALID),
        ("none.git", FailureKind.REPOSITORY_INVALID),
        ("broken", FailureKind.NETWORK),
    ],
)
def test_what_a_hosting_service_answers(hosted: tuple[Path, str], into: Path, path: str, kind: FailureKind) -> None:
    failure(kind, f"{hosted[1]}/{path}", into)


def test_a_commit_that_a_hosting_service_does_not_have(repo: Path, hosted: tuple[Path, str], into: Path) -> None:
    publish(repo, hosted[0])
    error = failure(FailureKind.COMMIT_UNKNOWN, f"{hosted[1]}/repo.git", into, commit="1" * 40)
    assert git(repo, "rev-parse", "HEAD")[:12] in error.next_step


def test_remote_repositories_do_not_name_local_folders(
    repo: Path, served: tuple[Path, str], tmp_path: Path, into: Path
) -> None:
    root, url = served
    private = make(tmp_path / "private")
    add_submodule(repo, str(private), "lib", git(private, "rev-parse", "HEAD"))
    publish(repo, root)
    assert "this machine" in failure(FailureKind.SUBMODULE_UNAVAILABLE, f"{url}/repo.git", into).cause
