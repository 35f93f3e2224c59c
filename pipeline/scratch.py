"""Scratch directories that do not outlive the process that made them, however it ends.

Each is locked by its process (`flock` on the directory itself), and the kernel drops the lock when the process dies:
what nobody holds is nobody's, and the next start removes it. A process id in the name would not do: containers that
share a directory for temporary files each count their processes from 1, and a living process would lose its files.

Their paths are short (a unix socket's path holds 107 bytes) and say nothing: an agent can read the host's path of a
mount in its mount table.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from pipeline.errors import ExpbenchError, FailureKind

__all__ = ["remove_orphaned_scratch", "scratch_directory", "scratch_root"]

_PREFIX: Final = "scratch-"
_TRIES: Final = 20
"""To lock a new directory: between its making and its locking another process that cleans may take it."""


def scratch_root() -> Path:
    """The directory of this user's scratch directories; nobody else can enter it.

    Raises:
        ExpbenchError: `SANDBOX_BROKEN`: its place belongs to somebody else.
    """
    root = Path(tempfile.gettempdir()) / f"expbench-{os.geteuid()}"
    with contextlib.suppress(FileExistsError):
        root.mkdir(mode=0o700)
    if root.is_symlink() or not root.is_dir() or root.lstat().st_uid != os.geteuid():
        raise _unusable(root, "is not a directory of this user", "Remove it, or set TMPDIR to a directory of your own")
    root.chmod(0o700)
    return root


@contextlib.contextmanager
def scratch_directory(above: Path | None = None) -> Iterator[Path]:
    """A new directory, removed at the end; after a process that was killed, by `remove_orphaned_scratch`.

    Args:
        above: where it is to lie, for what is moved to its place afterwards (a rename stays on one file system); what
            killed processes left there is removed first. None: with those for temporary files.

    Raises:
        ExpbenchError: `SANDBOX_BROKEN`: see `scratch_root`; or no directory there can be locked.
    """
    if above is not None:
        _clean(above)
    path, held = _made(above or scratch_root())
    try:
        yield path
    finally:
        if path.exists():
            shutil.rmtree(path)
        os.close(held)


def remove_orphaned_scratch(warn: Callable[[str], object]) -> None:
    """Remove this user's scratch directories whose processes are gone; at the start of whatever makes some.

    Args:
        warn: is told of each that could not be removed.

    Raises:
        ExpbenchError: `SANDBOX_BROKEN`: see `scratch_root`.
    """
    for path, error in _clean(scratch_root()):
        warn(f"{path}: left by a process that is gone, and cannot be removed ({error}): remove it by hand")


def _clean(root: Path) -> list[tuple[Path, OSError]]:
    """Remove what nobody holds; what could not be removed, and why."""
    left = []
    for path in sorted(root.glob(f"{_PREFIX}*")):
        held = _hold(path)
        if held is not None:
            try:
                shutil.rmtree(path)
            except OSError as error:
                left.append((path, error))
            finally:
                os.close(held)
    return left


def _made(root: Path) -> tuple[Path, int]:
    for _ in range(_TRIES):
        path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
        held = _hold(path)
        if held is not None:
            return path, held
    raise _unusable(root, "holds no directory that can be locked", "Set TMPDIR to a directory on a local file system")


def _hold(path: Path) -> int | None:
    """The directory, open and locked; None: in use, gone, or a link."""
    try:
        held = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(held), path.lstat()):  # not removed between the opening and the locking
            return held
    except OSError:
        pass
    os.close(held)
    return None


def _unusable(root: Path, cause: str, next_step: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.SANDBOX_BROKEN, str(root), cause, consequence="Nothing was started", next_step=next_step
    )
