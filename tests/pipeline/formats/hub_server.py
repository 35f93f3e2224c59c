"""A hub on this machine: the part of Hugging Face's HTTP API that creating, comparing, committing and loading need.

Files are kept in memory by commit. Those with an ending of `LFS` are stored outside git, as the hub does it: announced
in a batch request, uploaded to an address of their own, and named by their sha256 in the commit.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

LFS = (".parquet", ".gz", ".png")
TOKEN = "hf_of_a_test"


class Hub:
    """What the server keeps."""

    def __init__(self) -> None:
        self.repositories: dict[str, dict[str, Any]] = {}
        self.commits: list[tuple[str, str, list[str]]] = []
        """(repository, message, what was done)."""
        self.requests: list[str] = []
        self.objects: dict[str, bytes] = {}
        self.refuse: int | None = None
        """Answer every request with this status."""
        self.url = ""

    def files(self, repository: str) -> dict[str, bytes]:
        """Content by path."""
        found: dict[str, bytes] = self.repositories[repository]["files"]
        return found


def blob_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def entry(path: str, data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "file", "path": path, "size": len(data), "oid": blob_id(data)}
    if path.endswith(LFS):
        pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{hashlib.sha256(data).hexdigest()}\n"
        found["oid"] = blob_id(pointer.encode())
        found["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": len(pointer)}
    return found


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _answer(self, status: int, value: Any = None, headers: dict[str, str] | None = None, raw: bytes | None = None):
        body = raw if raw is not None else json.dumps(value if value is not None else {}).encode()
        self.send_response(status)
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.send_header("Content-Type", "application/json" if raw is None else "application/octet-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _missing(self) -> None:
        self._answer(404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"})

    def _do(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b"".join(self._chunks())
        path = unquote(urlsplit(self.path).path)
        query = parse_qs(urlsplit(self.path).query)
        hub = self.hub
        hub.requests.append(f"{self.command} {path}")
        if hub.refuse is not None:
            self._answer(hub.refuse, {"error": "refused"})
            return
        writes = self.command in {"POST", "PUT"} and not path.startswith("/upload/") and "paths-info" not in path
        if writes and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._answer(401, {"error": "Invalid username or password."})
            return
        for pattern, method in ROUTES:
            match = re.fullmatch(pattern, path)
            if match:
                method(self, body, query, **match.groupdict())
                return
        self._answer(404, {"error": f"no route for {path}"})

    do_GET = do_POST = do_PUT = do_HEAD = _do  # noqa: N815 - named by the library

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().split(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    # --- routes

    def create(self, body: bytes, query: Any) -> None:
        asked = json.loads(body)
        name = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else asked["name"]
        self.hub.repositories.setdefault(
            name,
            {"files": {}, "private": asked.get("visibility") == "private", "tags": {}, "settings": {}, "sha": "0" * 40},
        )
        self._answer(200, {"url": f"{self.hub.url}/datasets/{name}", "name": name})

    def validate_yaml(self, body: bytes, query: Any) -> None:
        front = yaml.safe_load(json.loads(body)["content"].split("---\n")[1])
        errors = [] if isinstance(front.get("configs"), list) else [{"message": "no configs"}]
        self._answer(400 if errors else 200, {"errors": errors, "warnings": []})

    def tree(self, body: bytes, query: Any, repository: str, revision: str) -> None:
        if repository not in self.hub.repositories:
            return self._missing()
        self._answer(200, [entry(path, data) for path, data in sorted(self.hub.files(repository).items())])
        return None

    def preupload(self, body: bytes, query: Any, repository: str, revision: str) -> None:
        if repository not in self.hub.repositories:
            return self._missing()
        files = [
            {"path": file["path"], "uploadMode": "lfs" if file["path"].endswith(LFS) else "regular",
             "shouldIgnore": False, "oid": None}
            for file in json.loads(body)["files"]
        ]  # fmt: skip
        self._answer(200, {"files": files})
        return None

    def batch(self, body: bytes, query: Any, repository: str) -> None:
        objects = [
            {**item, "actions": {"upload": {"href": f"{self.hub.url}/upload/{item['oid']}", "header": {}}}}
            for item in json.loads(body)["objects"]
        ]
        self._answer(200, {"transfer": "basic", "objects": objects})

    def upload(self, body: bytes, query: Any, oid: str) -> None:
        assert hashlib.sha256(body).hexdigest() == oid
        self.hub.objects[oid] = body
        self._answer(200)

    def commit(self, body: bytes, query: Any, repository: str, revision: str) -> None:
        found = self.hub.repositories[repository]
        files, done, summary = dict(found["files"]), [], ""
        for line in body.decode().splitlines():
            item = json.loads(line)
            value = item["value"]
            if item["key"] == "header":
                summary = value["summary"]
            elif item["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif item["key"] == "lfsFile":
                files[value["path"]] = self.hub.objects[value["oid"]]
            elif item["key"] == "deletedFile":
                del files[value["path"]]
            done.append(f"{item['key']} {value.get('path', '')}".strip())
        found["files"] = files
        found["sha"] = hashlib.sha1(body, usedforsecurity=False).hexdigest()
        self.hub.commits.append((repository, summary, done))
        url = f"{self.hub.url}/datasets/{repository}/commit/{found['sha']}"
        self._answer(200, {"commitUrl": url, "commitOid": found["sha"], "hookOutput": "", "success": True})

    def tag(self, body: bytes, query: Any, repository: str, revision: str) -> None:
        self.hub.repositories[repository]["tags"][json.loads(body)["tag"]] = revision
        self._answer(200)

    def settings(self, body: bytes, query: Any, repository: str) -> None:
        self.hub.repositories[repository]["settings"] |= json.loads(body)
        self._answer(200)


ROUTES = [
    (r"/api/repos/create", _Handler.create),
    (r"/api/validate-yaml", _Handler.validate_yaml),
    (r"/api/datasets/(?P<repository>[^/]+/[^/]+)/tree/(?P<revision>[^/]+)", _Handler.tree),
    (r"/api/datasets/(?P<repository>[^/]+/[^/]+)/preupload/(?P<revision>[^/]+)", _Handler.preupload),
    (r"/datasets/(?P<repository>[^/]+/[^/]+)\.git/info/lfs/objects/batch", _Handler.batch),
    (r"/upload/(?P<oid>[0-9a-f]{64})", _Handler.upload),
    (r"/api/datasets/(?P<repository>[^/]+/[^/]+)/commit/(?P<revision>[^/]+)", _Handler.commit),
    (r"/api/datasets/(?P<repository>[^/]+/[^/]+)/tag/(?P<revision>[^/]+)", _Handler.tag),
    (r"/api/datasets/(?P<repository>[^/]+/[^/]+)/settings", _Handler.settings),
]


@contextmanager
def hub_server() -> Iterator[Hub]:
    """A hub on a free port of this machine."""
    hub = Hub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
