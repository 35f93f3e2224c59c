"""What every sandbox offers. Stages depend on this file only; `docker.py` and `process.py` are the back ends.

A run has a *tree* (a directory that is copied in, never mounted), a list of commands that run one after another in the
same container until one fails, and an output directory for logs and for the files that the run produced. The network is
off unless the phase says otherwise.

What only containers can give - read-only directories of this machine, an outbox beside the tree, GPUs - is part of
`RunSpec` and refused by a back end that has none of it.
"""

from __future__ import annotations

import os
import threading
from enum import StrEnum
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from pydantic import Field

from pipeline.errors import FailureKind
from pipeline.progress import Reporter
from pipeline.schema import Problem, Record

__all__ = [
    "BuildSpec", "Command", "CommandResult", "Gpus", "Image", "Limits", "Network", "ProducedFile", "ReadOnlyMount",
    "RunResult", "RunSpec", "Sandbox", "SandboxStatus", "StopHandle", "StoppableSandbox", "is_container",
]  # fmt: skip


class Network(StrEnum):
    """What a phase may reach."""

    NONE = "none"
    INSTALL = "install"
    """Package registries (today: the bridge network)."""


class Limits(Record):
    """Ceilings of one run. The defaults fit experiments of seconds to minutes on one machine."""

    wall_s: float = Field(default=1800.0, gt=0)
    """For all commands of the run together."""
    cpus: float = Field(default=2.0, gt=0)
    memory_mb: int = Field(default=4096, gt=0)
    pids: int = Field(default=512, gt=0)
    disk_mb: int = Field(default=2048, gt=0)
    """Writable space of the run, its tree included."""
    output_mb: int = Field(default=16, gt=0)
    """Per stream (stdout, stderr) and command."""


class BuildSpec(Record):
    """What an environment is made from; its digest names the image, so equal specs are built once."""

    python: str = "3.11"
    packages: tuple[str, ...] = ()
    """Exact pins `name==version`, sorted, from a resolution; installed without further resolution."""
    system_packages: tuple[str, ...] = ()
    """Debian packages, sorted."""

    @property
    def digest(self) -> str:
        """sha256 of the canonical JSON of the spec."""
        from pipeline.digests import digest_of

        return digest_of(self.model_dump(mode="json"))


class Image(Record):
    """A built environment: an image id for Docker, a directory's name for the process sandbox."""

    reference: str
    digest: str
    spec_digest: str


class Command(Record):
    """One command, run without a shell."""

    argv: tuple[str, ...] = Field(min_length=1)
    directory: str = "."
    """Relative to the root of the tree."""


class ReadOnlyMount(Record):
    """A directory or a single file of this machine that the run sees read-only (a bundle, an inbox, a witness)."""

    source: Path
    target: str = Field(pattern=r"^/[^\x00-\x1f\x7f]+$")
    """Absolute path inside."""


class Gpus(Record):
    """GPUs that a run is given."""

    count: int = Field(ge=1)
    type: str | None = None
    """Part of the name that the driver reports, e.g. `A40`; None: any."""
    memory_mb: int | None = Field(default=None, gt=0)
    """Memory that each must have; None: any."""


class RunSpec(Record):
    """What to run."""

    commands: tuple[Command, ...] = Field(min_length=1)
    env: dict[str, str] = Field(default_factory=dict)
    """Non-secret environment variables."""
    network: Network = Network.NONE
    limits: Limits = Limits()
    keep: tuple[str, ...] = ()
    """Glob patterns of produced files to copy out; empty means all that were created or changed, within the limits."""
    drop: tuple[str, ...] = ()
    """Glob patterns of files that are never copied out nor reported (caches); wins over `keep`."""
    mounts: tuple[ReadOnlyMount, ...] = ()
    """Docker only."""
    links: tuple[tuple[str, str], ...] = ()
    """(absolute path, at least two levels deep, file or folder of the tree that is found and written there). Docker
    only."""
    outbox: str | None = Field(default=None, pattern=r"^/[A-Za-z0-9._-]+$")
    """A writable directory beside the tree, copied out to `<out>/outbox`; it counts towards the disk limit. Docker
    only."""
    gpus: Gpus | None = None
    """Docker only."""
    witness: str = ""
    """Of a run with a witness: digest of the run without it and of what the witness does. Its mounts and outbox have
    names that nobody can know ahead, so that equal runs are told by this."""
    launcher: tuple[str, ...] = ()
    """What each command is started by (a program of ours that becomes it); no part of the command in any message."""
    dns: str | None = None
    """Name server that the run asks, as an address inside; None: the engine's choice. Docker only."""


class CommandResult(Record):
    """How one command ended; its output lies in `<out>/<index>.stdout` and `<index>.stderr`."""

    exit_code: int | None
    """None when a limit ended it or it never started."""
    failure: FailureKind | None = None
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    truncated: bool = False
    duration_s: float = 0.0


class ProducedFile(Record):
    """A file that the run created or changed, copied to `<out>/files/<path>`."""

    path: str
    size: int
    sha256: str
    executable: bool = False


class RunResult(Record):
    """The outcome of a run. `failure` is None when every command exited with 0."""

    commands: tuple[CommandResult, ...]
    produced: tuple[ProducedFile, ...] = ()
    rewritten: tuple[ProducedFile, ...] = ()
    """Files that the run wrote and that are as they were in the tree, copied out like the produced ones."""
    removed: tuple[str, ...] = ()
    """Files of the tree that are not there any more, sorted."""
    outbox: tuple[ProducedFile, ...] = ()
    """Files of the outbox, copied to `<out>/outbox/<path>`."""
    failure: FailureKind | None = None
    message: str = ""
    problems: tuple[Problem, ...] = ()
    duration_s: float = 0.0
    peak_memory_mb: float | None = None
    cpu_s: float | None = None
    """Seconds of processor time of all commands and what they started; None when the run was cut off."""

    @property
    def written(self) -> tuple[ProducedFile, ...]:
        """All files that the run wrote; results that it reproduces may be shipped, and are as they were."""
        return tuple(sorted((*self.produced, *self.rewritten), key=lambda item: item.path))


class SandboxStatus(Record):
    """What a sandbox says of itself, for `expbench doctor`."""

    name: Literal["docker", "process"]
    available: bool
    detail: str
    """Version when available, otherwise the reason."""
    next_step: str = ""


@runtime_checkable
class Sandbox(Protocol):
    """A place to run other people's code."""

    name: Literal["docker", "process"]

    def status(self) -> SandboxStatus:
        """Is it usable here? Never raises."""

    def build(self, spec: BuildSpec, *, log: Path, owner: str, reporter: Reporter) -> Image:
        """The image of `spec`, built when there is none yet. Safe under concurrent calls and processes.

        Args:
            spec: exact packages.
            log: file that receives the build's output.
            owner: label of the run (see `reap`).
            reporter: progress.

        Raises:
            ExpbenchError: `ENVIRONMENT_UNBUILDABLE` (a package cannot be installed), `NETWORK`, `DISK_FULL`,
                `SANDBOX_UNAVAILABLE`, `SANDBOX_BROKEN`.
        """

    def run(self, image: Image, tree: Path, spec: RunSpec, *, out: Path, owner: str) -> RunResult:
        """Copy `tree` in, run the commands, copy logs and produced files to `out`, remove everything else.

        A failing command, a limit that is hit and so on are results, not exceptions.

        Raises:
            ExpbenchError: `SANDBOX_UNAVAILABLE`, `SANDBOX_BROKEN`, `DISK_FULL`: the machinery failed, nothing is known
                about the code.
        """

    def reap(self, owner: str) -> int:
        """End and remove what runs of `owner` left behind (after a crash); returns how many. Touches nothing else."""


def is_container(sandbox: Sandbox) -> bool:
    """Are its runs containers? They alone have mounts, links, an outbox, a name server, and an image to look into."""
    return sandbox.name == "docker"


class StopHandle:
    """Ends a run from another thread.

    `stop` ends the commands and lets the run come to its end, so that what it printed and wrote is kept: its failure is
    then `INTERRUPTED`. `abort` gives the run up: `run` raises `INTERRUPTED`, and the sandbox is removed at once.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._reader, self._writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._reason = ""
        self._aborted = False

    def __del__(self) -> None:
        os.close(self._reader)
        os.close(self._writer)

    def fileno(self) -> int:
        """Readable as soon as one of the two was called."""
        return self._reader

    @property
    def reason(self) -> str:
        """Why it is to end; empty as long as it is not."""
        return self._reason

    @property
    def aborted(self) -> bool:
        """Was `abort` called?"""
        return self._aborted

    def stop(self, reason: str) -> None:
        """End the commands, keep what they made. The first reason stays."""
        self._set(reason, abort=False)

    def abort(self, reason: str) -> None:
        """Give the run up, also after `stop`."""
        self._set(reason, abort=True)

    def _set(self, reason: str, *, abort: bool) -> None:
        with self._guard:
            first = not self._reason
            self._reason = self._reason or reason
            self._aborted = self._aborted or abort
            if first:
                os.write(self._writer, b"!")


@runtime_checkable
class StoppableSandbox(Sandbox, Protocol):
    """A sandbox whose runs and builds can be ended from another thread."""

    def build(
        self, spec: BuildSpec, *, log: Path, owner: str, reporter: Reporter, stop: StopHandle | None = None
    ) -> Image:
        """As `Sandbox.build`, and given up when `stop` says so: its container is removed, no image is made.

        Raises:
            ExpbenchError: `INTERRUPTED`; and what `Sandbox.build` raises.
        """

    def run(
        self, image: Image, tree: Path, spec: RunSpec, *, out: Path, owner: str, stop: StopHandle | None = None
    ) -> RunResult:
        """As `Sandbox.run`, and ends when `stop` says so.

        Raises:
            ExpbenchError: `GPU_UNAVAILABLE`; `INTERRUPTED` after `StopHandle.abort`; and what `Sandbox.run` raises.
        """
