"""Locks between processes, and the cache directory in which they and the process sandbox's environments lie."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

__all__ = ["cache_directory", "locked"]

_POLL_S: Final = 0.2


def cache_directory() -> Path:
    """`$XDG_CACHE_HOME/expbench`; by default `~/.cache/expbench`, for root `/var/cache/expbench`.

    Root's is a public place because what root runs here becomes another user, who cannot see into root's home.
    """
    configured = os.environ.get("XDG_CACHE_HOME", "")
    if configured.startswith("/"):
        return Path(configured) / "expbench"
    return Path("/var/cache/expbench") if os.geteuid() == 0 else Path.home() / ".cache" / "expbench"


def _taken(descriptor: int, *, wait: bool) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def locked(name: str, waiting: Callable[[], object] | None = None) -> Iterator[int]:
    """Hold the lock of this name against other threads and processes of this user; waits for it.

    The kernel releases it when its holder dies, so there are no stale locks.

    Args:
        name: of the lock.
        waiting: called again and again while somebody else holds it; what it raises ends the wait.

    Yields:
        Its descriptor: a child process that inherits it holds the lock, too, until it ends.
    """
    directory = cache_directory() / "locks"
    directory.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(directory / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while not _taken(descriptor, wait=waiting is None):
            assert waiting is not None
            waiting()
            time.sleep(_POLL_S)
        yield descriptor
    finally:
        os.close(descriptor)
