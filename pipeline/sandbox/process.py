"""Run code as processes of this machine, for machines without Docker. It isolates less, and says so in every result.

Where namespaces are permitted, a run sees a read-only file system, an empty home, size-limited temporary directories,
its own process table and no network. Where they are not, what remains is a clean copy, a clean environment, limits, and
the end of all processes at the end of the run - and a problem of severity ERROR in the result for each thing that does
not hold. As root, each run has a user of its own in either case.

- Processes and threads: each start is asked for (`_inside/gate.py`), so the limit is exact. Where the kernel cannot do
  that, RLIMIT_NPROC alone binds the run, and the result says so.
- Memory is polled (every 20 ms). The kernel's ceiling behind it is RLIMIT_DATA, per process, at twice the limit and
  512 MB: it breaks programs that *reserve* that much private writable memory without touching it (a huge
  `numpy.empty`, more than 60 threads with stacks of 8 MB beside a small limit). RLIMIT_AS is not used: CUDA, Java, Go
  and memory-mapped data sets reserve address space far beyond what they use.
- Disk is a tmpfs of that size with namespaces, otherwise walked (every 0.2 s); each file ends at the limit by itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.progress import Reporter
from pipeline.sandbox import _hostpython
from pipeline.sandbox._commands import check_directories, experiment_environment
from pipeline.sandbox._engine import given_up
from pipeline.sandbox._isolation import SCRATCH, Isolation, closed_parent, isolation, wrapped
from pipeline.sandbox._locks import cache_directory
from pipeline.sandbox._program import bootstrap
from pipeline.sandbox._session import SupervisorGone, drive
from pipeline.sandbox._users import claimed_user, threads_of
from pipeline.sandbox.base import BuildSpec, Image, Limits, Network, RunResult, RunSpec, SandboxStatus, StopHandle
from pipeline.schema import Problem, Severity

__all__ = ["ProcessSandbox"]

_MB: Final = 1 << 20
_SYSTEM_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_TMP: Final = "/tmp"  # noqa: S108 - the run's own, in its namespace
_MARK: Final = "expbench-run.json"
_LEAVE_S: Final = 20.0
# What of the limit of processes is for the supervisor's own helpers of that user, where the gate is the exact limit.
_BESIDE_GATE: Final = 8
_DATA_SLACK: Final = 512 * _MB
# Since then RLIMIT_NPROC counts a user namespace by itself; before, all processes of its owner.
_COUNTS_PER_NAMESPACE: Final = (5, 14)


class ProcessSandbox:
    """The sandbox of a machine without Docker.

    Args:
        held: what of isolation to use; None tries what this machine permits.
    """

    name: Literal["docker", "process"] = "process"

    def __init__(self, held: Isolation | None = None) -> None:
        self._given = held

    @property
    def held(self) -> Isolation:
        """What holds here."""
        return self._given or isolation()

    def status(self) -> SandboxStatus:
        """Is uv there, and what will hold? Never raises."""
        import uv

        try:
            uv.find_uv_bin()
        except FileNotFoundError as error:
            step = "Install the package uv into the environment of expbench"
            return SandboxStatus(name="process", available=False, detail=str(error), next_step=step)
        held = self.held
        unusable = held.unusable or _unreachable(held)
        if unusable:
            step = "Give the container CAP_SETUID and CAP_SETGID, run as an ordinary user, or use Docker"
            if not held.unusable:
                step = "Set XDG_CACHE_HOME to a directory that every user can enter"
            return SandboxStatus(name="process", available=False, detail=unusable, next_step=step)
        if held.namespaces:
            return SandboxStatus(
                name="process",
                available=True,
                detail="processes in namespaces of their own (no network, read-only files)",
            )
        return SandboxStatus(
            name="process",
            available=True,
            detail=f"NOT isolated from this machine's files and network ({held.reason})",
            next_step="Install Docker Engine, or permit unprivileged user namespaces",
        )

    def build(
        self, spec: BuildSpec, *, log: Path, owner: str, reporter: Reporter, stop: StopHandle | None = None
    ) -> Image:
        """See `StoppableSandbox.build`; a build that has begun here is finished."""
        if stop is not None and stop.reason:
            raise given_up(f"build of {spec.digest[:12]}", stop.reason)
        self._require_usable()
        return _hostpython.build_environment(spec, self.held, log=log, reporter=reporter)

    def run(
        self, image: Image, tree: Path, spec: RunSpec, *, out: Path, owner: str, stop: StopHandle | None = None
    ) -> RunResult:
        """See `StoppableSandbox.run`."""
        check_directories(spec.commands, spec.limits)
        _refuse_what_needs_a_container(spec)
        self._require_usable()
        held = self.held
        venv = _hostpython.environment_directory(image)
        if not (venv / "bin" / "python").exists():
            raise ExpbenchError(
                FailureKind.SANDBOX_BROKEN,
                f"environment {image.reference}",
                f"{venv} is not there any more",
                consequence="Nothing was run",
                next_step="Run again: the environment is built anew",
            )
        with claimed_user() as user, _scratch(owner, user) as scratch:
            python = str((venv / "bin" / "python").resolve())
            argv = [python, "-I", "-S", "-c", bootstrap()]
            if held.namespaces:
                argv = wrapped(
                    argv,
                    hide=[Path.cwd(), out.resolve().parent, tree.resolve()],
                    scratch_bytes=spec.limits.disk_mb * _MB,
                    expose=[(venv, False), (Path(python).parents[1], False)],
                    network=spec.network is not Network.NONE,
                    user=None,
                )
            with _Piped(argv, scratch) as channel:
                try:
                    payload = _payload(spec, held, user, venv, scratch)
                    return drive(channel, payload, tree, spec, out, _announce(spec, held, user), stop)
                except SupervisorGone:
                    raise _gone(channel) from None

    def reap(self, owner: str) -> int:
        """See `Sandbox.reap`. Supervisors end with their client, so only directories can be left."""
        removed = 0
        for mark in sorted((cache_directory() / "runs").glob(f"*/{_MARK}")):
            try:
                found = json.loads(mark.read_text(encoding="utf-8"))["owner"]
            except (OSError, ValueError, KeyError):
                continue  # another process is just making or removing it
            if found == owner:
                _remove(mark.parent)
                removed += 1
        return removed

    def _require_usable(self) -> None:
        """Refuse to run where the limits would not bind.

        Raises:
            ExpbenchError: `SANDBOX_UNAVAILABLE`.
        """
        status = self.status()
        if not status.available:
            raise ExpbenchError(
                FailureKind.SANDBOX_UNAVAILABLE,
                "process sandbox",
                status.detail,
                consequence="Nothing was run",
                next_step=status.next_step,
            )


def _unreachable(held: Isolation) -> str:
    """Why a user of its own could not walk to the environments, an empty text when it can."""
    cache = cache_directory()
    if held.namespaces or os.geteuid() != 0:
        return ""
    existing = next(path for path in (cache, *cache.parents) if path.is_dir())
    closed = closed_parent(existing / "x")
    return f"the cache directory {cache} is below {closed}, which other users cannot enter" if closed else ""


def _remove(directory: Path) -> None:
    """Remove what a run wrote, directories that it closed included."""
    for here, folders, _ in os.walk(directory):
        for name in folders:
            if not (path := Path(here) / name).is_symlink():
                path.chmod(0o700)
    shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def _scratch(owner: str, user: int | None) -> Iterator[Path]:
    """A directory of this run, removed at its end; with namespaces it stays empty."""
    root = cache_directory() / "runs"
    root.mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="run-", dir=root))
    try:
        directory.chmod(0o755)
        (directory / _MARK).write_text(json.dumps({"owner": owner}), encoding="utf-8")
        for name in ("work", "tmp"):
            (directory / name).mkdir()
            if user is not None:
                os.chown(directory / name, user, user)
        yield directory
    finally:
        _remove(directory)


def _refuse_what_needs_a_container(spec: RunSpec) -> None:
    """Mounts, an outbox and GPUs.

    Raises:
        ExpbenchError: `SANDBOX_UNAVAILABLE`, `GPU_UNAVAILABLE`.
    """
    if spec.gpus is not None:
        raise ExpbenchError(
            FailureKind.GPU_UNAVAILABLE,
            "process sandbox",
            "it hands out no GPUs",
            consequence="Nothing was run",
            next_step="Use the Docker sandbox on a machine with GPUs",
        )
    if spec.mounts or spec.links or spec.outbox is not None or spec.dns is not None:
        raise ExpbenchError(
            FailureKind.SANDBOX_UNAVAILABLE,
            "process sandbox",
            "it has neither mounts nor links nor an outbox nor a name server",
            consequence="Nothing was run",
            next_step="Install Docker Engine and use the Docker sandbox",
        )


def _nproc(limits: Limits, held: Isolation, user: int | None) -> dict[str, int | None]:
    """RLIMIT_NPROC beside the gate, and where there is no gate.

    A user that others share has processes of its own already, and their number changes: beside the gate it has no
    limit, alone what is there now is added.
    """
    if user is not None:
        return {"gate": True, "beside_gate": limits.pids + _BESIDE_GATE, "alone": limits.pids}
    release = tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])
    if held.namespaces and release >= _COUNTS_PER_NAMESPACE:
        return {"gate": True, "beside_gate": None, "alone": limits.pids + 2}  # unshare and the supervisor
    return {"gate": True, "beside_gate": None, "alone": limits.pids + 1 + threads_of(os.geteuid())}


def _payload(spec: RunSpec, held: Isolation, user: int | None, venv: Path, scratch: Path) -> dict[str, Any]:
    limits = spec.limits
    work, tmp = (f"{_TMP}/work", _TMP) if held.namespaces else (str(scratch / "work"), str(scratch / "tmp"))
    allowed = sorted(os.sched_getaffinity(0))
    count = max(1, min(len(allowed), round(limits.cpus)))
    first = os.getpid() % len(allowed)  # several runs at once should not all get the first CPU
    rlimits = {"RLIMIT_FSIZE": limits.disk_mb * _MB, "RLIMIT_DATA": 2 * limits.memory_mb * _MB + _DATA_SLACK}
    return {
        "container": False,
        "kill_everything": held.namespaces,
        "uid": user,
        "gid": user,
        "work": work,
        "make": [work, f"{tmp}/home"],
        "disks": list(SCRATCH) if held.namespaces else [],
        "outbox": None,
        "links": [],
        "directories": [] if held.namespaces else [work, tmp],
        "rlimits": rlimits,
        "nproc": _nproc(limits, held, user),
        "cpus": sorted((allowed + allowed)[first : first + count]),
        "env": experiment_environment(spec, home=f"{tmp}/home", tmp=tmp, venv=str(venv), system_path=_SYSTEM_PATH),
    }


def _announce(spec: RunSpec, held: Isolation, user: int | None) -> tuple[Problem, ...]:
    texts = ["run as processes of this machine, not in a container: memory limits are polled"]
    severity = Severity.WARNING
    if not held.namespaces:
        severity = Severity.ERROR
        texts.append(f"network not isolated ({held.reason})")
        texts.append("files of this machine could be read" + ("" if user is not None else " and written"))
    elif spec.network is not Network.NONE:
        texts.append("the run could reach the network")
    return tuple(Problem(component="sandbox.process", where="run", message=text, severity=severity) for text in texts)


class _Piped:
    """A supervisor behind pipes, ended with this context; a `Channel`."""

    def __init__(self, argv: list[str], scratch: Path) -> None:
        self._argv = argv
        self._errors = scratch / "supervisor.log"

    def __enter__(self) -> _Piped:
        """Start it.

        Raises:
            ExpbenchError: `SANDBOX_BROKEN`.
        """
        try:
            with self._errors.open("wb") as errors:
                self.process = subprocess.Popen(
                    self._argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd="/",
                    env={"PATH": _SYSTEM_PATH, "LANG": "C.UTF-8"}, start_new_session=True,
                )  # fmt: skip
        except OSError as error:
            raise ExpbenchError(
                FailureKind.SANDBOX_BROKEN,
                f"process sandbox ({self._argv[0]})",
                str(error),
                consequence="Nothing was run",
                next_step="Check that the program can be started, then run again",
            ) from error
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin.fileno(), self.process.stdout.fileno()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        return self

    def __exit__(self, *_: object) -> None:
        """Close its stdin, which ends it and everything below it; kill it when it does not go."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        try:
            self.process.wait(_LEAVE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def fileno(self) -> int:
        """See `Channel`."""
        return self._out

    def write_fileno(self) -> int:
        """See `Channel`."""
        return self._in

    def read(self) -> bytes | None:
        """See `Channel`."""
        try:
            return os.read(self._out, 1 << 18) or None
        except BlockingIOError:
            return b""

    def write(self, data: memoryview) -> int:
        """See `Channel`."""
        try:
            return os.write(self._in, data[: 1 << 16])
        except BlockingIOError:
            return 0

    def diagnostics(self) -> str:
        """The end of what it wrote to stderr."""
        return self._errors.read_text("utf-8", "replace").strip()[-600:]


def _gone(channel: _Piped) -> ExpbenchError:
    code = channel.process.wait(_LEAVE_S)
    said = channel.diagnostics()
    return ExpbenchError(
        FailureKind.SANDBOX_BROKEN,
        "process sandbox",
        f"its supervisor ended with {code} before the run did{': ' + said if said else ''}",
        consequence="Nothing is known about the code",
        next_step="Run again; if it comes back, use the Docker sandbox",
    )
