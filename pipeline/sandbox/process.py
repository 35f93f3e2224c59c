"""Run code as processes of this machine, for machines without Docker. It isolates less, and says so in every result.

Where namespaces are permitted, a run sees a read-only file system, an empty home, size-limited temporary directories,
its own process table and no network; as root, it also runs as another user. Where they are not, what remains is a clean
copy, a clean environment, limits that are polled, and the end of all processes at the end of the run - and a problem
of severity ERROR in the result for each thing that does not hold. Memory is always polled (every 50 ms), never a hard
limit: a single allocation can go past it for that long.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.progress import Reporter
from pipeline.sandbox import _hostpython
from pipeline.sandbox._isolation import SCRATCH, isolation, wrapped
from pipeline.sandbox._locks import cache_directory
from pipeline.sandbox._session import SupervisorGone, bootstrap, check_directories, drive, experiment_environment
from pipeline.sandbox.base import BuildSpec, Image, Network, RunResult, RunSpec, SandboxStatus
from pipeline.schema import Problem, Severity

__all__ = ["ProcessSandbox"]

_MB: Final = 1 << 20
_SYSTEM_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_TMP: Final = "/tmp"  # noqa: S108 - the run's own, in its namespace
_MARK: Final = "expbench-run.json"
_LEAVE_S: Final = 20.0


class ProcessSandbox:
    """The sandbox of a machine without Docker."""

    name: Literal["docker", "process"] = "process"

    def status(self) -> SandboxStatus:
        """Is uv there, and what will hold? Never raises."""
        import uv

        try:
            uv.find_uv_bin()
        except FileNotFoundError as error:
            step = "Install the package uv into the environment of expbench"
            return SandboxStatus(name="process", available=False, detail=str(error), next_step=step)
        held = isolation()
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

    def build(self, spec: BuildSpec, *, log: Path, owner: str, reporter: Reporter) -> Image:
        """See `Sandbox.build`."""
        return _hostpython.build_environment(spec, log=log, owner=owner, reporter=reporter)

    def run(self, image: Image, tree: Path, spec: RunSpec, *, out: Path, owner: str) -> RunResult:
        """See `Sandbox.run`."""
        check_directories(spec.commands, spec.limits)
        venv = _hostpython.environment_directory(image)
        if not (venv / "bin" / "python").exists():
            raise ExpbenchError(
                FailureKind.SANDBOX_BROKEN,
                f"environment {image.reference}",
                f"{venv} is not there any more",
                consequence="Nothing was run",
                next_step="Run again: the environment is built anew",
            )
        with _scratch(owner) as scratch:
            python = str((venv / "bin" / "python").resolve())
            argv = [python, "-I", "-S", "-c", bootstrap()]
            if isolation().namespaces:
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
                    return drive(channel, _payload(spec, venv, scratch), tree, spec, out, _announce(spec))
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
                shutil.rmtree(mark.parent, ignore_errors=True)
                removed += 1
        return removed


@contextlib.contextmanager
def _scratch(owner: str) -> Iterator[Path]:
    """A directory of this run, removed at its end; with namespaces it stays empty."""
    root = cache_directory() / "runs"
    root.mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="run-", dir=root))
    try:
        directory.chmod(0o755)
        (directory / _MARK).write_text(json.dumps({"owner": owner}), encoding="utf-8")
        for name in ("work", "tmp"):
            (directory / name).mkdir()
            if (uid := isolation().uid) is not None:
                os.chown(directory / name, uid, uid)
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _payload(spec: RunSpec, venv: Path, scratch: Path) -> dict[str, Any]:
    held, limits = isolation(), spec.limits
    work, tmp = (f"{_TMP}/work", _TMP) if held.namespaces else (str(scratch / "work"), str(scratch / "tmp"))
    allowed = sorted(os.sched_getaffinity(0))
    count = max(1, min(len(allowed), round(limits.cpus)))
    first = os.getpid() % len(allowed)  # several runs at once should not all get the first CPU
    rlimits = {"RLIMIT_FSIZE": limits.disk_mb * _MB}
    if held.namespaces:
        # counted per user, and per namespace where there is one; the supervisor counts the run's own more exactly
        rlimits["RLIMIT_NPROC"] = limits.pids + 64
    return {
        "container": False,
        "kill_everything": held.namespaces,
        "uid": held.uid,
        "gid": held.uid,
        "work": work,
        "make": [work, f"{tmp}/home"],
        "disks": list(SCRATCH) if held.namespaces else [],
        "directories": [] if held.namespaces else [work, tmp],
        "rlimits": rlimits,
        "cpus": sorted((allowed + allowed)[first : first + count]),
        "env": experiment_environment(spec, home=f"{tmp}/home", tmp=tmp, venv=str(venv), system_path=_SYSTEM_PATH),
    }


def _announce(spec: RunSpec) -> tuple[Problem, ...]:
    held = isolation()
    texts = ["run as processes of this machine, not in a container: memory limits are polled"]
    severity = Severity.WARNING
    if not held.namespaces:
        severity = Severity.ERROR
        texts.append(f"network not isolated ({held.reason})")
        texts.append("files of this machine could be read" + ("" if held.uid is not None else " and written"))
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
