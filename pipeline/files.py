"""Writing files so that a reader never sees half of one: temporary file, fsync, rename; and file locks."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pipeline.errors import ExpbenchError, FailureKind

if TYPE_CHECKING:
    from pydantic import BaseModel

ModelT = TypeVar("ModelT", bound="BaseModel")

__all__ = [
    "exclusive_lock",
    "find_record",
    "is_locked",
    "read_record",
    "remove_tree",
    "replace_directory",
    "write_bytes",
    "write_text",
]


def read_record(path: Path, model: type[ModelT], *, consequence: str, next_step: str) -> ModelT:
    """A record that was written as JSON.

    Args:
        path: its file.
        model: what it is.
        consequence: of its not being readable.
        next_step: what makes it readable again.

    Raises:
        ExpbenchError: `RECORD_INVALID`: it is not there, or cannot be read as such a record.
    """
    try:
        return model.model_validate_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ExpbenchError(
            FailureKind.RECORD_INVALID, str(path),
            f"cannot be read as {model.__name__.lstrip('_')}: {str(error).splitlines()[0]}",
            consequence=consequence, next_step=next_step,
        ) from error  # fmt: skip


def find_record(path: Path, model: type[ModelT]) -> ModelT | None:
    """A record that was written as JSON; None where there is none, or one of another version: it is made again."""
    try:
        return model.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None


def write_bytes(path: Path, data: bytes) -> None:
    """Replace `path` by `data` atomically; its directory is created when missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Replace `path` by `text` in UTF-8, atomically."""
    write_bytes(path, text.encode("utf-8"))


@contextmanager
def replace_directory(path: Path) -> Iterator[Path]:
    """A fresh directory beside `path` that takes its place when the block ends without an exception."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent))
    try:
        yield temporary
        temporary.chmod(0o755)
        remove_tree(path)
        temporary.replace(path)
    except BaseException:
        remove_tree(temporary)
        raise


def remove_tree(path: Path) -> None:
    """Remove a file or directory tree if it is there; symbolic links are removed, not followed."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


@contextmanager
def exclusive_lock(path: Path, what: str) -> Iterator[None]:
    """Hold an exclusive lock on `path` (advisory `flock`: the kernel drops it when the process dies, however it dies).

    Raises:
        ExpbenchError: `WORKSPACE_LOCKED` when another process holds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            stream.seek(0)
            holder = stream.read().strip() or "unknown"
            raise ExpbenchError(
                FailureKind.WORKSPACE_LOCKED,
                what,
                f"another expbench process works in it (process {holder})",
                consequence="Nothing was started",
                next_step="Wait for it to end, stop it, or use another --out",
            ) from error
        stream.seek(0)
        stream.truncate()
        stream.write(str(os.getpid()))
        stream.flush()
        try:
            yield
        finally:
            fcntl.flock(stream, fcntl.LOCK_UN)


def is_locked(path: Path) -> bool:
    """Does a process hold the lock? Only asks: the lock file is not changed and not created."""
    try:
        with path.open() as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
