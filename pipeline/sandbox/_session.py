"""This side of a run: feeds the supervisor, keeps its output, turns its frames into a `RunResult`.

Both back ends give it a `Channel` to the program of `_inside/supervisor.py`; which kind of sandbox is behind it does
not matter here.
"""

from __future__ import annotations

import json
import select
import struct
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Protocol

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.sandbox._copying import HEADER, Collector, TreeSource, frame
from pipeline.sandbox._outcomes import command_result, failure_message, problems_of
from pipeline.sandbox._program import supervisor_source
from pipeline.sandbox.base import CommandResult, ProducedFile, RunResult, RunSpec, StopHandle
from pipeline.schema import Problem

__all__ = ["Channel", "SupervisorGone", "drive"]

_INDEX = struct.Struct(">H")
_MB = 1 << 20
# Beside the wall limit: starting (0.6 s measured under load), copying in and out (slowest seen: 60 MB/s).
_GRACE_S = 60.0
_SLOWEST_COPY = 20 * _MB
_TAIL = 4096


class SupervisorGone(Exception):  # noqa: N818 - a state, named as what happened
    """The supervisor ended before its protocol did; the back end finds out why."""


class Channel(Protocol):
    """Bytes to and from a supervisor."""

    def fileno(self) -> int:
        """What to wait on for reading."""

    def write_fileno(self) -> int:
        """What to wait on for writing."""

    def read(self) -> bytes | None:
        """What has arrived on the supervisor's stdout (empty: only something else arrived); None at its end."""

    def write(self, data: memoryview) -> int:
        """Send a part of `data` without blocking; how much."""


def drive(
    channel: Channel,
    payload: dict[str, Any],
    tree: Path,
    spec: RunSpec,
    out: Path,
    problems: tuple[Problem, ...],
    stop: StopHandle | None = None,
) -> RunResult:
    """Run `spec` through a supervisor that has just been started.

    Args:
        channel: to the supervisor.
        payload: the back end's part of the supervisor's spec (see its `serve`).
        tree: directory to copy in.
        spec: what to run.
        out: receives `<index>.stdout`, `<index>.stderr` and `files/`.
        problems: what the back end has to say about this run.
        stop: ends the run from another thread.

    Raises:
        SupervisorGone: it ended early.
        ExpbenchError: `SANDBOX_BROKEN` (no answer in time, or nonsense), `DISK_FULL` (this machine's), `INTERRUPTED`
            (`StopHandle.abort`).
    """
    session = _Session(payload, tree, spec, out, stop)
    try:
        session.pump(channel)
        return session.result(problems)
    except OSError as error:
        raise ExpbenchError(
            FailureKind.DISK_FULL if error.errno == 28 else FailureKind.SANDBOX_BROKEN,
            f"output directory {out}",
            str(error),
            consequence="The run's output is incomplete, nothing is known about the code",
            next_step="Free space on this disk and run again",
        ) from error
    except (ValueError, KeyError, struct.error) as error:
        raise ExpbenchError(
            FailureKind.SANDBOX_BROKEN,
            "sandbox protocol",
            f"the supervisor sent nonsense: {error}",
            consequence="The run's result is not known",
            next_step="Run again; if it comes back, report it with the run's directory",
        ) from error
    finally:
        session.close()


class _Session:
    """State of one run."""

    def __init__(self, payload: dict[str, Any], tree: Path, spec: RunSpec, out: Path, stop: StopHandle | None) -> None:
        limits = spec.limits
        out.mkdir(parents=True, exist_ok=True)
        for old in (*out.glob("[0-9]*.stdout"), *out.glob("[0-9]*.stderr")):
            old.unlink()
        self.spec, self.out = spec, out
        self.source = TreeSource(tree)
        self.files = self.collector = Collector(out / "files", self.source, spec.keep, limits.disk_mb * _MB, spec.drop)
        self.outbox: Collector | None = None
        self.stop = stop
        self._told_to_stop = False
        self.began = time.monotonic()
        self.tails: dict[str, bytes] = {}
        self.ended: list[dict[str, Any]] = []
        self.not_started: dict[str, Any] | None = None
        self.peak: float | None = None
        self.cpu_s: float | None = None
        self.done = False
        self._files: dict[str, IO[bytes]] = {}
        self._incoming = bytearray()
        self._extra: list[bytes] = []
        self._payload = payload | {
            "commands": [
                {"argv": [*spec.launcher, *command.argv], "directory": command.directory} for command in spec.commands
            ],
            "wall_s": limits.wall_s,
            "memory_bytes": limits.memory_mb * _MB,
            "disk_bytes": limits.disk_mb * _MB,
            "output_bytes": limits.output_mb * _MB,
            "pids": limits.pids,
        }

    def pump(self, channel: Channel) -> None:
        """Move bytes both ways until the supervisor says that it is done."""
        outgoing = self._outgoing()
        pending = memoryview(b"")
        deadline = self.began + self.spec.limits.wall_s + _GRACE_S + self.spec.limits.disk_mb * _MB / _SLOWEST_COPY
        while not self.done:
            if not pending:
                pending = memoryview(next(outgoing, b""))
            self._obey()
            if not pending and self._extra:
                pending = memoryview(self._extra.pop(0))
            asked = [] if self.stop is None or self._told_to_stop else [self.stop.fileno()]
            readable, writable, _ = select.select(
                [channel.fileno(), *asked], [channel.write_fileno()] if pending else [], [], 1.0
            )
            if channel.fileno() in readable:
                data = channel.read()
                if data is None:
                    raise SupervisorGone
                self._receive(data)
            if writable and not self.done:
                pending = pending[self._write(channel, pending) :]
            if time.monotonic() > deadline:
                raise ExpbenchError(
                    FailureKind.SANDBOX_BROKEN,
                    "sandbox",
                    f"no result {time.monotonic() - self.began:.0f} s after the start, past the wall limit of "
                    f"{self.spec.limits.wall_s:.0f} s and the time to copy",
                    consequence="The run was ended from outside, its result is not known",
                    next_step="Run again, with less load on this machine",
                )

    def _obey(self) -> None:
        """Do what the stop handle says: end the commands once, or give the run up."""
        if self.stop is None or not self.stop.reason:
            return
        if self.stop.aborted:
            raise ExpbenchError(
                FailureKind.INTERRUPTED,
                "sandbox",
                self.stop.reason,
                consequence="The run was given up, its result is not known",
                next_step="Run again",
            )
        if not self._told_to_stop:
            self._told_to_stop = True
            self._extra.append(frame(b"K"))

    @staticmethod
    def _write(channel: Channel, pending: memoryview) -> int:
        try:
            return channel.write(pending)
        except (BrokenPipeError, ConnectionResetError):
            return len(pending)  # it has ended; what it said last is still to be read

    def _outgoing(self) -> Iterator[bytes]:
        yield supervisor_source()
        yield frame(b"S", json.dumps(self._payload).encode("ascii"))
        for data in self.source.frames():
            if self.not_started is not None:
                return
            yield data

    def _receive(self, data: bytes) -> None:
        self._incoming += data
        while len(self._incoming) >= HEADER.size:
            kind, size = HEADER.unpack_from(self._incoming)
            if len(self._incoming) < HEADER.size + size:
                return
            payload = bytes(self._incoming[HEADER.size : HEADER.size + size])
            del self._incoming[: HEADER.size + size]
            self._handle(kind, payload)

    def _handle(self, kind: bytes, payload: bytes) -> None:
        if kind in {b"o", b"e"}:
            self._output(kind, payload)
        elif kind == b"c":
            self.ended.append(json.loads(payload))
        elif kind == b"U":
            used = json.loads(payload)
            self.peak = used["peak_memory_bytes"] / _MB
            self.cpu_s = round(float(used["cpu_s"]), 3)
        elif kind in {b"m", b"M", b"f", b"b", b"g"}:
            self._collect(kind, payload)
        elif kind == b"N":
            if self.outbox is not None or self.spec.outbox is None:
                raise ValueError("an outbox that nobody asked for")
            self.collector = self.outbox = Collector(self.out / "outbox", None, (), max(0, self.files.budget))
        elif kind == b"X":
            self.not_started = json.loads(payload)
            self.done = True
        elif kind == b"z":
            self.done = True
        elif kind != b"R":
            raise ValueError(f"unknown frame {kind!r}")

    def _collect(self, kind: bytes, payload: bytes) -> None:
        if kind == b"m":
            self.collector.offer(json.loads(payload))
        elif kind == b"M":
            self._extra.append(self.collector.wishes())
        elif kind == b"f":
            self.collector.begin(payload)
        elif kind == b"b":
            self.collector.data(payload)
        else:
            self.collector.end()

    def _output(self, kind: bytes, payload: bytes) -> None:
        index = int(_INDEX.unpack_from(payload)[0])
        if index != len(self.ended) or index >= len(self.spec.commands):
            raise ValueError(f"output of command {index} at the wrong time")
        name = f"{index}.{'stdout' if kind == b'o' else 'stderr'}"
        if name not in self._files:
            self._files[name] = (self.out / name).open("wb")
        data = payload[_INDEX.size :]
        self._files[name].write(data)
        self._files[name].flush()  # a person may be following it
        self.tails[name] = (self.tails.get(name, b"") + data)[-_TAIL:]

    def close(self) -> None:
        """Close what is open; every started command has both of its output files."""
        for index in range(len(self.ended)):
            for stream in ("stdout", "stderr"):
                (self.out / f"{index}.{stream}").touch()
        for stream_file in self._files.values():
            stream_file.close()
        self._close_collectors()

    def _close_collectors(self) -> None:
        self.files.close()
        if self.outbox is not None:
            self.outbox.close()

    def result(self, problems: tuple[Problem, ...]) -> RunResult:
        """What came of it."""
        self._close_collectors()
        problems = (*problems, *self.source.problems, *self.files.problems)
        if self.outbox is not None:
            problems = (*problems, *(p.evolve(where=f"outbox: {p.where}") for p in self.outbox.problems))
        duration = round(time.monotonic() - self.began, 4)
        if self.not_started is not None:
            return self._without_start(problems, duration)
        commands = tuple(command_result(record, self._errors(index)) for index, record in enumerate(self.ended))
        failed = next((index for index, command in enumerate(commands) if command.failure is not None), None)
        return RunResult(
            commands=commands,
            produced=_sorted(self.files.produced),
            rewritten=_sorted(self.files.rewritten),
            removed=self.files.removed(),
            outbox=() if self.outbox is None else _sorted(self.outbox.produced),
            failure=None if failed is None else commands[failed].failure,
            message="" if failed is None else self._message(failed, commands[failed]),
            problems=(*problems, *problems_of(self.ended)),
            duration_s=duration,
            peak_memory_mb=None if self.peak is None else round(self.peak, 1),
            cpu_s=self.cpu_s,
        )

    def _without_start(self, problems: tuple[Problem, ...], duration: float) -> RunResult:
        limit = self.spec.limits.disk_mb
        if not self.not_started or not self.not_started.get("disk_full"):
            raise SupervisorGone  # what it could not do stands on its stderr, which the back end reads
        return RunResult(
            commands=(),
            failure=FailureKind.RUN_DISK_FULL,
            message=f"the tree does not fit into the disk limit of {limit} MB; no command was started",
            problems=problems,
            duration_s=duration,
        )

    def _errors(self, index: int) -> bytes:
        return self.tails.get(f"{index}.stderr", b"")

    def _message(self, index: int, command: CommandResult) -> str:
        ended_by = self.stop.reason if self.stop else ""
        why = self.ended[index]["why"]
        return failure_message(self.spec, index, command, why=why, errors=self._errors(index), ended_by=ended_by)


def _sorted(files: Iterable[ProducedFile]) -> tuple[ProducedFile, ...]:
    return tuple(sorted(files, key=lambda produced: produced.path))
