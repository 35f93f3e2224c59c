"""A Prefect server and worker of this test session, started and ended by `expbench up` and `expbench down`."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

if TYPE_CHECKING:  # Prefect takes 5 s to import: not while tests are collected
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import Artifact, FlowRun

ROOT = Path(__file__).resolve().parents[3]
LONG_S = 900.0
"""A fraction of it is needed; a test fails by it only where something hangs."""

T = TypeVar("T")


def wait_until(look: Callable[[], T | None], what: str, seconds: float = LONG_S) -> T:
    """Ask until there is an answer."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.25)
    raise AssertionError(f"waited {seconds:g} s in vain for {what}")


@dataclass
class Machine:
    """What `expbench up` started."""

    state: Path
    directory: Path
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """For commands; without what would lead them elsewhere."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
        return clean | {
            "PREFECT_API_URL": f"{self.url}/api",
            "PREFECT_HOME": str(self.state / "home"),
            "EXPBENCH_EQUIVALENTS": "0",  # not what is tested here, and most of a curation's time
        }

    def expbench(self, *arguments: object, expect: int = 0) -> str:
        """Run a command of ours; returns its standard output."""
        return self._run([sys.executable, "-m", "flows.cli", *map(str, arguments)], expect)

    def prefect(self, *arguments: object, expect: int = 0) -> str:
        """Run a command of Prefect's, in the project's directory, where `prefect.toml` lies."""
        return self._run([sys.executable, "-m", "prefect", *map(str, arguments)], expect)

    def _run(self, command: list[str], expect: int) -> str:
        done = subprocess.run(
            command, capture_output=True, text=True, env=self.environment, cwd=ROOT, check=False, timeout=LONG_S
        )
        assert done.returncode == expect, done.stdout + done.stderr
        return done.stdout if expect == 0 else done.stdout + done.stderr

    def up(self) -> dict[str, Any]:
        """Start what is missing."""
        told = self.expbench("up", "--state", self.state, "--directory", self.directory, "--port", self.port, "--json")
        return dict(json.loads(told))

    def down(self) -> list[dict[str, Any]]:
        """End what was started."""
        return list(json.loads(self.expbench("down", "--state", self.state, "--json")))

    def kill_worker(self) -> None:
        """As when the machine loses power: the worker and all its runs are gone at once."""
        record = json.loads((self.state / "up.json").read_text())
        worker = next(process for process in record["processes"] if process["role"] == "worker")
        children = _descendants(worker["pid"])
        os.killpg(worker["pid"], signal.SIGKILL)
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        wait_until(
            lambda: not any(_alive(pid) for pid in (worker["pid"], *children)), "the killed processes to be gone"
        )

    def client(self) -> SyncPrefectClient:
        """A client of the server."""
        from prefect.client.orchestration import SyncPrefectClient

        return SyncPrefectClient(api=f"{self.url}/api")

    def run(self, run_id: str | UUID) -> FlowRun:
        """A flow run as the server has it."""
        with self.client() as client:
            return client.read_flow_run(UUID(str(run_id)))

    def wait_for(self, run_id: str | UUID, *names: str) -> FlowRun:
        """Until the run's state has one of these names; a run that fails meanwhile fails the test."""

        def look() -> FlowRun | None:
            run = self.run(run_id)
            assert run.state is not None
            if run.state.name in names:
                return run
            assert run.state.name not in {"Failed", "Crashed"}, f"{run.name}: {run.state.message}"
            return None

        return wait_until(look, f"run {run_id} to be {' or '.join(names)}")

    def submit(self, flow: str, **parameters: object) -> str:
        """Id of a new run, submitted by Prefect's own command."""
        options = [part for name, value in parameters.items() for part in ("-p", f"{name}={value}")]
        told = self.prefect("deployment", "run", flow, *options)
        match = re.search(r"UUID: ([0-9a-f-]{36})", told)
        assert match, told
        return match[1]

    def artifact(self, key: str) -> Artifact:
        """The newest artifact of this key."""
        from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey
        from prefect.client.schemas.sorting import ArtifactSort

        with self.client() as client:
            wanted = ArtifactFilter(key=ArtifactFilterKey(any_=[key]))
            (found,) = client.read_artifacts(artifact_filter=wanted, sort=ArtifactSort.CREATED_DESC, limit=1)
        return found

    def table(self, key: str) -> list[dict[str, Any]]:
        """Rows of the newest table artifact of this key."""
        return list(json.loads(str(self.artifact(key).data)))

    def logs(self, run_id: str | UUID) -> str:
        """The run's log as the server has it."""
        from prefect.client.schemas.filters import LogFilter, LogFilterFlowRunId

        with self.client() as client:
            logs = client.read_logs(LogFilter(flow_run_id=LogFilterFlowRunId(any_=[UUID(str(run_id))])), limit=200)
        return "\n".join(log.message for log in logs)


def _descendants(pid: int) -> list[int]:
    """Processes below one; a flow run has a session of its own and so is not in the worker's group."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found: list[int] = []
    level = [pid]
    while level:
        level = [child for parent in level for child in parents.get(parent, [])]
        found += level
    return found


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def started(root: Path) -> Iterator[Machine]:
    """A machine that is up, and down in the end."""
    from prefect.settings import PREFECT_API_URL, PREFECT_UI_URL, temporary_settings

    directory = root / "work"
    directory.mkdir(parents=True)
    machine = Machine(state=root / "state", directory=directory, port=free_port())
    try:
        machine.up()
        url = f"{machine.url}/api"
        with temporary_settings({PREFECT_API_URL: url, PREFECT_UI_URL: machine.url}):
            yield machine
    finally:
        machine.down()
