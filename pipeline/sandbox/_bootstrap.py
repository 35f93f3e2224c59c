"""A root file system of Debian or Ubuntu, made by debootstrap and imported into the engine; can be given up any time.

What is begun lies at one place per image, below the cache directory, and is cleared by whoever comes next: a process
that was killed while it worked leaves nothing that lasts. debootstrap is handed the lock of that place, so that what
outlives its killed parent keeps others away until its own end.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import remove_tree
from pipeline.progress import Reporter
from pipeline.sandbox._engine import engine_error, given_up
from pipeline.sandbox.base import StopHandle

if TYPE_CHECKING:
    from docker import DockerClient

__all__ = ["cleared_directory", "go_on", "import_root", "run_debootstrap"]

# 2 minutes were measured; a slow line may need many times that. What hangs for longer does not come to its end.
_BOOTSTRAP_S: Final = 3600.0
_POLL_S: Final = 1.0
_TAIL: Final = 30
_STEPS: Final = re.compile(r"I: (?:Installing|Unpacking|Configuring|Resolving|Base) .*(?:packages|system)")
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")


def go_on(stop: StopHandle | None, what: str) -> None:
    """Nothing, unless somebody said stop.

    Raises:
        ExpbenchError: `INTERRUPTED`.
    """
    if stop is not None and stop.reason:
        raise given_up(what, stop.reason)


@contextlib.contextmanager
def cleared_directory(path: Path) -> Iterator[Path]:
    """An empty directory that is gone at the end, with all that is mounted in it, however the block ends.

    Raises:
        ExpbenchError: `SANDBOX_BROKEN`, something stays mounted in it, so that it must not be removed.
    """
    _clear(path)
    path.mkdir(parents=True, mode=0o700)
    try:
        yield path
    finally:
        _clear(path)


def run_debootstrap(
    argv: list[str], *, what: str, next_step: str, lock: int, reporter: Reporter, stop: StopHandle | None
) -> None:
    """Run debootstrap with its steps reported; when the block is left in whatever way, all its processes are gone.

    Args:
        argv: the command.
        what: for messages.
        next_step: for the message of a failure.
        lock: descriptor of the lock of the place that it writes to; it inherits it.
        reporter: progress.
        stop: gives it up.

    Raises:
        ExpbenchError: `INTERRUPTED`, `NETWORK`, `DISK_FULL`, `SANDBOX_BROKEN`.
    """
    tail: list[str] = []
    with _group(argv, lock) as process:
        for line in _lines(process, what, stop):
            tail = [*tail[-_TAIL:], line.rstrip()]
            if _STEPS.match(line):
                reporter.step("base image", line[3:].strip())
        code = process.wait()
    if code == 0:
        return
    text = "; ".join([line for line in tail if line.startswith(("E:", "W:"))] or tail[-3:])
    network = any(word in text for word in ("Failed getting release", "Couldn't download", "resolve"))
    disk = "No space left" in text
    raise ExpbenchError(
        FailureKind.DISK_FULL if disk else FailureKind.NETWORK if network else FailureKind.SANDBOX_BROKEN,
        what,
        f"debootstrap ended with {code}: {text[:600]}",
        consequence="There is no base image, so no container can be run",
        next_step=next_step,
    )


@contextlib.contextmanager
def _group(argv: list[str], lock: int) -> Iterator[subprocess.Popen[bytes]]:
    """A program that leads a session of its own: a Ctrl-C of the terminal is ours to pass on, and its children end."""
    process = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        pass_fds=(lock,),
    )  # fmt: skip
    with process:
        try:
            yield process
        finally:
            if process.returncode is None:  # not waited for yet, so that the number is still its own
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


def _lines(process: subprocess.Popen[bytes], what: str, stop: StopHandle | None) -> Iterator[str]:
    assert process.stdout is not None
    descriptor, rest = process.stdout.fileno(), b""
    watched = [descriptor] if stop is None else [descriptor, stop.fileno()]
    deadline = time.monotonic() + _BOOTSTRAP_S
    while True:
        go_on(stop, what)
        if time.monotonic() > deadline:
            raise ExpbenchError(
                FailureKind.NETWORK,
                what,
                f"debootstrap did not end within {_BOOTSTRAP_S / 60:.0f} minutes",
                consequence="There is no base image, so no container can be run",
                next_step="Check the connection to the mirror, then run again",
            )
        if descriptor not in select.select(watched, [], [], _POLL_S)[0]:
            continue
        data = os.read(descriptor, 1 << 16)
        if not data:
            return
        *whole, rest = (rest + data).split(b"\n")
        yield from (line.decode("utf-8", "replace") for line in whole)


def import_root(
    client: DockerClient, root: Path, reference: str, changes: list[str], stop: StopHandle | None = None
) -> None:
    """Make an image of a root file system. An import that is cut off makes none.

    Raises:
        ExpbenchError: `INTERRUPTED`, `DISK_FULL`, `SANDBOX_BROKEN`.
    """
    from docker.errors import APIError

    what = f"import of base image {reference}"
    repository, _, tag = reference.rpartition(":")
    argv = ["tar", "--numeric-owner", "--sort=name", "--exclude=./dev/*", "-C", str(root), "-c", "."]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as archive:
        assert archive.stdout is not None
        try:
            chunks = _chunks(archive.stdout, what, stop)
            answer = client.api.import_image_from_data(chunks, repository=repository, tag=tag, changes=changes)
        except (APIError, OSError) as error:
            raise engine_error(error, what) from error
        finally:
            archive.stdout.close()  # it has ended, or ends now: nobody reads on
    if archive.returncode != 0 or '"error"' in str(answer):
        raise engine_error(RuntimeError(f"import failed: {answer}"), what)


def _chunks(stream: IO[bytes], what: str, stop: StopHandle | None) -> Iterator[bytes]:
    while data := stream.read(1 << 20):
        go_on(stop, what)
        yield data


def _clear(path: Path) -> None:
    """Remove a directory in which file systems may be mounted (debootstrap mounts /proc and /sys of the new root)."""
    for place in reversed(_mounted(path)):
        # detached at once, also while a process that was just killed still holds it
        subprocess.run(["umount", "--lazy", place], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    left = _mounted(path)
    if left:
        raise ExpbenchError(
            FailureKind.SANDBOX_BROKEN,
            f"base image (half made in {path})",
            f"{left[0]} is mounted and cannot be unmounted",
            consequence="It is not removed, and no base image is made",
            next_step=f"Run `umount {left[0]}`, then the same command again",
        )
    deadline = time.monotonic() + 10.0
    while True:
        try:
            return remove_tree(path)
        except OSError:  # the last files of a process that was killed a moment ago
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _mounted(path: Path) -> list[str]:
    """Mount points below a directory, in the order in which they were mounted."""
    below = f"{path.resolve()}{os.sep}"
    table = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    places = (_ESCAPED.sub(lambda match: chr(int(match[1], 8)), line.split(" ")[4]) for line in table.splitlines())
    return [place for place in places if place.startswith(below)]
