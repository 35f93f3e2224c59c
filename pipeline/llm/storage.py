"""Errors of the file system under ledger and cache, as errors that a user can act on.

A full disk or a missing permission must not surface as a bare `OSError` from the middle of a run that spends money.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pipeline.errors import ExpbenchError, FailureKind

__all__ = ["storage_errors"]

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@contextlib.contextmanager
def storage_errors(path: Path, what: str, consequence: str) -> Iterator[None]:
    """Turn what the file system refuses into an `ExpbenchError`.

    Args:
        path: file or directory that is worked on.
        what: what it is, e.g. `the ledger of model calls`.
        consequence: what did not happen.

    Raises:
        ExpbenchError: `DISK_FULL` (no space, quota or file-size limit), `RECORD_INVALID` (everything else: permissions,
            a file where a directory should be, a read-only or broken file system).
    """
    try:
        yield
    except OSError as error:
        full = error.errno in _FULL
        failed = ExpbenchError(
            FailureKind.DISK_FULL if full else FailureKind.RECORD_INVALID,
            str(path),
            f"{what} cannot be used: {error.strerror or error}",
            consequence=consequence,
            next_step="Free some space there, then resume"
            if full
            else "Check that this user may read and write there and that no other file is in its place, then resume",
        )
        raise failed from error
