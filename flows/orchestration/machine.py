"""`expbench up` and `expbench down`: server, work pool, deployments, limits and one worker on this machine.

What was started is written down with process ids and start times, so that `down` ends these processes and no others,
also after a restart of the machine gave a process id to somebody else. Several machines need none of this: see
docs/prefect.md.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Final
from uuid import UUID

from flows.orchestration.names import API_PORT, DEPLOYMENT, LIMITS, POOL
from pipeline.digests import digest_of, file_digest
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import exclusive_lock, read_record, write_text
from pipeline.progress import Reporter
from pipeline.schema import Record, StoredRecord
from pipeline.version import version

__all__ = ["Process", "Up", "down", "project_file", "state_directory", "up"]

_SERVER_S: Final = 300.0
"""A server with a new database took 20 to 33 s on two busy cores, and once more than a minute beside a test run."""
_ENGINE: Final = ("-m", "prefect.engine")
"""What a run's process executes. Named, Prefect starts it at once; left out, it starts two interpreters before it that
import Prefect to fetch the flow's code and to look for a project to install: expbench is installed already."""
_END_S: Final = 45.0
"""For an orderly end: Prefect gives a flow run 30 s after the first signal, and we remove containers in that time."""


class Process(Record):
    """A process that we started."""

    role: str
    pid: int
    started: int
    """Start time in clock ticks after boot (field 22 of `/proc/<pid>/stat`): with the pid it names one process."""
    boot: str
    """The kernel's id of this boot."""
    log: Path

    def alive(self) -> bool:
        """Is it this very process that runs?"""
        return self.boot == _boot() and _started(self.pid) == self.started


class Up(StoredRecord):
    """What runs: `up.json` in the state directory."""

    url: str
    api_url: str
    directory: Path
    """Where the worker runs; relative paths of a run's parameters begin here."""
    processes: tuple[Process, ...] = ()
    ready: bool = False
    deployed: str | None = None
    """Digest of the deployments that the server has."""
    interrupted: tuple[UUID, ...] = ()
    """Runs that `down` ended; the next `up` lets them go on."""


def state_directory() -> Path:
    """`$XDG_STATE_HOME/expbench`, by default `~/.local/state/expbench`."""
    configured = os.environ.get("XDG_STATE_HOME", "")
    base = Path(configured) if configured.startswith("/") else Path.home() / ".local" / "state"
    return base / "expbench"


def project_file() -> Path:
    """`prefect.yaml`: beside the packages in a clone, inside `flows` when installed.

    Raises:
        ExpbenchError: `TOOL_MISSING`: this installation came without it.
    """
    package = Path(__file__).resolve().parents[1]
    for path in (package.parent / "prefect.yaml", package / "_deployments" / "prefect.yaml"):
        if path.is_file():
            return path
    raise ExpbenchError(
        FailureKind.TOOL_MISSING,
        "prefect.yaml",
        "this installation of expbench came without it",
        consequence="Nothing was started",
        next_step="Run `expbench up` from a clone of the repository",
    )


def up(*, state: Path, directory: Path, port: int = API_PORT, limit: int = 3, reporter: Reporter) -> Up:
    """Start what is missing; what an earlier call started and still runs is kept.

    Args:
        state: directory for database, logs and the record of what runs.
        directory: where the worker runs.
        port: of the server, on 127.0.0.1.
        limit: runs at a time; more than three overload the server's SQLite ("database is locked" was seen at 20).
        reporter: progress.

    Raises:
        ExpbenchError: `WORKSPACE_LOCKED` (another `up` or `down` is at work), `WORKSPACE_CONFLICT` (the port belongs to
            somebody else, or another port is in use already), `TOOL_MISSING` (a part did not start; names its log).
    """
    project = project_file()
    with exclusive_lock(state / ".lock", str(state)):
        known = _read(state)
        api_url = f"http://127.0.0.1:{port}/api"
        alive = {process.role: process for process in known.processes if process.alive()} if known else {}
        if known and alive and known.api_url != api_url:
            raise _conflict(known.url, f"expbench is up there, not on port {port}", "Run `expbench down` first")
        if known and "server" in alive and "worker" in alive and known.ready:
            return known
        record = Up(
            url=f"http://127.0.0.1:{port}", api_url=api_url, directory=directory.resolve(),
            processes=tuple(alive.values()), interrupted=known.interrupted if known else (),
            deployed=known.deployed if known and "server" in alive else None,
        )  # fmt: skip
        environment = _environment(state, api_url)
        try:
            if "server" not in alive:
                _check_port(port)
                command = ["server", "start", "--host", "127.0.0.1", "--port", str(port)]
                record = _spawn(record, state, "server", command, environment, state)
            _wait_for_server(record, reporter)
            reporter.start("deployments")
            record = _configure(record, project, environment, state)
            reporter.end("deployments", f"on pool {POOL}")
            if "worker" not in alive:
                record = _let_go_on(record, reporter)
                command = ["worker", "start", "--pool", POOL, "--type", "process", "--limit", str(limit)]
                command += ["--name", f"expbench-{socket.gethostname()}"]
                record = _spawn(record, state, "worker", command, environment, directory.resolve())
            _wait_for_worker(record, reporter)
        except BaseException:
            _end_all(record)
            _write(state, record.evolve(processes=()))
            raise
        record = record.evolve(ready=True)
        _write(state, record)
        return record


def down(*, state: Path) -> list[Process]:
    """End what `up` started and still runs: the worker first, so that its runs remove their containers.

    Returns:
        The processes that were ended.
    """
    with exclusive_lock(state / ".lock", str(state)):
        record = _read(state)
        if record is None:
            return []
        interrupted = _under_way(record)
        ended = _end_all(record)
        if interrupted:
            _write(state, record.evolve(processes=(), ready=False, interrupted=interrupted))
        else:
            (state / "up.json").unlink(missing_ok=True)
        return ended


def _environment(state: Path, api_url: str) -> dict[str, str]:
    """The user's environment; the database lies in `state` unless the user has named one (PostgreSQL)."""
    environment = dict(os.environ)
    environment.update(
        PREFECT_API_URL=api_url,
        PREFECT_UI_API_URL=api_url,
        PREFECT_UI_URL=api_url.removesuffix("/api"),
        PREFECT_SERVER_ANALYTICS_ENABLED="false",
        PREFECT_CLIENT_RETRY_EXTRA_CODES="500",  # "database is locked" of SQLite: see `guard.patient`
        PREFECT_LOCAL_STORAGE_PATH=str(state / "results"),
    )
    named = {"PREFECT_SERVER_DATABASE_CONNECTION_URL", "PREFECT_API_DATABASE_CONNECTION_URL"}
    if not named & set(environment):
        environment["PREFECT_SERVER_DATABASE_CONNECTION_URL"] = f"sqlite+aiosqlite:///{state / 'prefect.db'}"
        environment.setdefault("PREFECT_SERVER_DATABASE_TIMEOUT", "60")  # of 10 s: a writer waits for the others
    return environment


def _spawn(
    record: Up, state: Path, role: str, arguments: list[str], environment: dict[str, str], directory: Path
) -> Up:
    """Start a part in a session of its own (Ctrl-C of a terminal does not reach it) and write it down."""
    log = state / f"{role}.log"
    with log.open("ab") as stream:
        child = subprocess.Popen(
            [sys.executable, "-m", "prefect", *arguments],
            stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT,
            env=environment, cwd=directory, start_new_session=True,
        )  # fmt: skip
    started = _started(child.pid)
    process = Process(role=role, pid=child.pid, started=started or 0, boot=_boot(), log=log)
    record = record.evolve(processes=(*record.processes, process))
    _write(state, record)
    return record


def _configure(record: Up, project: Path, environment: dict[str, str], state: Path) -> Up:
    """Work pool, limits and deployments; what is there with other values was set by somebody and stays."""
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.actions import GlobalConcurrencyLimitCreate, WorkPoolCreate
    from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
    from prefect.workers.process import ProcessWorker

    with SyncPrefectClient(api=record.api_url) as client:
        template = ProcessWorker.get_default_base_job_template()
        template["variables"]["properties"]["working_dir"]["default"] = str(record.directory)
        template["variables"]["properties"]["command"]["default"] = shlex.join([sys.executable, *_ENGINE])
        pool = WorkPoolCreate(name=POOL, type="process", base_job_template=template)
        client.create_work_pool(pool, overwrite=True)  # the directory may be another one than last time
        for name, limit in LIMITS.items():
            try:
                client.read_global_concurrency_limit_by_name(name)
            except ObjectNotFound:
                try:
                    client.create_global_concurrency_limit(GlobalConcurrencyLimitCreate(name=name, limit=limit))
                except ObjectAlreadyExists:
                    continue
    digest = digest_of([file_digest(project), version(), str(record.directory)])
    if record.deployed == digest:
        return record
    done = subprocess.run(
        [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--prefect-file", str(project), "-n", DEPLOYMENT],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, cwd=project.parent, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        log = state / "deploy.log"
        log.write_text(done.stdout + done.stderr, encoding="utf-8")
        raise _not_started("deployments", f"prefect deploy ended with {done.returncode}", log)
    return record.evolve(deployed=digest)


def _let_go_on(record: Up, reporter: Reporter) -> Up:
    """Runs that lost their process (a killed worker, `down`) are scheduled again before a new worker starts."""
    from prefect.client.orchestration import SyncPrefectClient

    from flows.orchestration.orphans import reschedule_orphans

    with SyncPrefectClient(api=record.api_url) as client:
        for run in reschedule_orphans(client, POOL, record.interrupted):
            reporter.warn(f"run {run.name} had lost its process: it goes on")
    return record.evolve(interrupted=())


def _under_way(record: Up) -> tuple[UUID, ...]:
    """Runs that have a process now; none when there is no server any more to ask."""
    if not any(process.role == "server" and process.alive() for process in record.processes):
        return record.interrupted
    from httpx import HTTPError
    from prefect.client.orchestration import SyncPrefectClient

    from flows.orchestration.orphans import runs_under_way

    try:
        with SyncPrefectClient(api=record.api_url) as client:
            return (*record.interrupted, *runs_under_way(client, POOL))
    except HTTPError:  # it is there but does not answer: ending it is what was asked for
        return record.interrupted


def _wait_for_server(record: Up, reporter: Reporter) -> None:
    import httpx

    reporter.start("server")
    server = next(process for process in record.processes if process.role == "server")
    deadline = time.monotonic() + _SERVER_S
    while time.monotonic() < deadline:
        if not _running(server):
            raise _not_started("server", "it ended", server.log)
        try:
            if httpx.get(f"{record.api_url}/health", timeout=5.0).status_code == 200:
                reporter.end("server", record.url)
                return
        except httpx.HTTPError:
            time.sleep(0.5)
    raise _not_started("server", f"it did not answer within {_SERVER_S:g} s", server.log)


def _wait_for_worker(record: Up, reporter: Reporter) -> None:
    """Until the pool has a worker that polls."""
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import WorkerStatus

    reporter.start("worker")
    worker = next(process for process in record.processes if process.role == "worker")
    deadline = time.monotonic() + _SERVER_S
    with SyncPrefectClient(api=record.api_url) as client:
        while time.monotonic() < deadline:
            if not _running(worker):
                raise _not_started("worker", "it ended", worker.log)
            workers = client.read_workers_for_work_pool(POOL)
            if any(item.status is WorkerStatus.ONLINE for item in workers):
                reporter.end("worker", f"in {record.directory}")
                return
            time.sleep(0.5)
    raise _not_started("worker", f"it did not report within {_SERVER_S:g} s", worker.log)


def _not_started(part: str, cause: str, log: Path) -> ExpbenchError:
    tail = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-3:] if log.is_file() else []
    return ExpbenchError(
        FailureKind.TOOL_MISSING,
        f"Prefect {part}",
        f"{cause}: {' / '.join(line.strip() for line in tail) or 'it said nothing'}",
        consequence="What had been started was ended again",
        next_step=f"Read {log}",
    )


def _check_port(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise _conflict(f"port {port}", f"is in use ({error.strerror})", "Choose another: --port") from error


def _conflict(what: str, cause: str, next_step: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.WORKSPACE_CONFLICT, what, cause, consequence="Nothing was started", next_step=next_step
    )


# --- processes -------------------------------------------------------------------------------------------------------


def _end_all(record: Up) -> list[Process]:
    order = {"worker": 0, "server": 1}
    processes = sorted(record.processes, key=lambda process: order.get(process.role, 2))
    return [process for process in processes if _end(process)]


def _end(process: Process) -> bool:
    """Ask it to end, then end its group; False when it is not running (any more)."""
    if not _running(process):
        return False
    os.kill(process.pid, signal.SIGTERM)
    deadline = time.monotonic() + _END_S
    while time.monotonic() < deadline:
        if not _running(process):
            return True
        time.sleep(0.1)
    if _running(process):
        os.killpg(process.pid, signal.SIGKILL)  # its own session: it leads a group of nothing but its children
    return True


def _running(process: Process) -> bool:
    """As `alive`; a child of ours that has ended is collected first, so that it does not look alive."""
    with contextlib.suppress(ChildProcessError):  # started by an earlier `up`
        os.waitpid(process.pid, os.WNOHANG)
    return process.alive()


def _started(pid: int) -> int | None:
    """Start time of a process, None when there is none (a zombie has ended)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[19])


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


# --- the record ------------------------------------------------------------------------------------------------------


def _read(state: Path) -> Up | None:
    path = state / "up.json"
    if not path.is_file():
        return None
    return read_record(
        path, Up, consequence="Nothing was started or ended",
        next_step="End the processes by hand (ps), then remove the file",
    )  # fmt: skip


def _write(state: Path, record: Up) -> None:
    write_text(state / "up.json", record.model_dump_json(indent=1) + "\n")
