"""A Kubernetes API server that knows Jobs, with one node that runs a job's container as a process of this machine.

Real: the HTTP API of batch/v1 Jobs as the official client speaks it, and the strict schema of Kubernetes 1.37, which a
job has to fulfil. Not there: pods, images, limits, volumes. A job whose node selector asks for what the node does not
have stays pending, as on a real cluster.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jsonschema
import yaml

SCHEMA = json.loads((Path(__file__).parent / "data" / "kubernetes-1.37-job.json").read_bytes())
_JOBS = re.compile(r"^/apis/batch/v1/namespaces/([^/]+)/jobs(?:/([^/?]+))?$")


@dataclass
class Cluster:
    """What was asked for, and what runs."""

    port: int
    labels: dict[str, str]
    """Of the one node."""
    directory: Path
    environment: dict[str, str]
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    deleted: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """Name of the job and what the deletion said (grace period, propagation)."""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def kubeconfig(self) -> Path:
        """A file for the official client."""
        path = self.directory / "kubeconfig"
        context = {"cluster": "c", "user": "u", "namespace": "default"}
        told = {
            "apiVersion": "v1", "kind": "Config", "current-context": "here",
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}],
            "users": [{"name": "u", "user": {"token": "none"}}], "contexts": [{"name": "here", "context": context}],
        }  # fmt: skip
        path.write_text(yaml.safe_dump(told))
        return path

    def create(self, namespace: str, job: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """As the API server does: check, name, accept; and as its scheduler does: start it if the node fits."""
        try:
            jsonschema.validate(job, SCHEMA)
        except jsonschema.ValidationError as error:
            return 422, {"kind": "Status", "status": "Failure", "message": error.message, "code": 422}
        name = f"{job['metadata']['generateName']}{len(self.jobs):05d}"
        job["metadata"] |= {"name": name, "namespace": namespace, "uid": name}
        self.jobs[name] = job
        pod = job["spec"]["template"]["spec"]
        if pod.get("nodeSelector", {}).items() <= self.labels.items():
            self._start(name, pod["containers"][0])
        return 201, job

    def _start(self, name: str, container: dict[str, Any]) -> None:
        environment = self.environment | {item["name"]: item.get("value") or "" for item in container["env"]}
        program, *arguments = container["args"]
        assert program == "prefect", "the image's own command line"
        with (self.directory / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", program, *arguments], env=environment, cwd=self.directory, stdout=log,
                stderr=subprocess.STDOUT,
            )  # fmt: skip

    def delete(self, name: str, options: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Ends the job's process, too."""
        job = self.jobs.pop(name, None)
        if job is None:
            return 404, {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}
        self.deleted.append((name, options))
        if name in self.processes:
            self.processes[name].terminate()
        return 200, {"kind": "Status", "status": "Success"}


def _handler(cluster: Cluster) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self._job(lambda namespace, _, body: cluster.create(namespace, body))

        def do_DELETE(self) -> None:
            self._job(lambda _, name, body: cluster.delete(name, body | {"query": self.path.partition("?")[2]}))

        def do_GET(self) -> None:
            self._job(lambda _, name, __: (200, cluster.jobs[name]) if name in cluster.jobs else (404, {}))

        def _job(self, act: Any) -> None:
            match = _JOBS.match(self.path.partition("?")[0])
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size) or b"{}") if size else {}
            status, told = act(match[1], match[2], body) if match else (404, {"kind": "Status", "code": 404})
            data = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    return Handler


@contextmanager
def cluster_at(directory: Path, *, labels: dict[str, str]) -> Iterator[Cluster]:
    """A cluster for the block; its processes are ended with it."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    cluster = Cluster(0, labels, directory, clean)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(cluster))
    cluster.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield cluster
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        for process in cluster.processes.values():
            process.terminate()
            process.wait()
