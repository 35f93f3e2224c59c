"""A user of its own for each run of the process sandbox, where root is there to become one.

RLIMIT_NPROC counts per user, signals and /proc are open between processes of one user: two runs at once must not be the
same one. A run claims one of a range of uids by a file lock, which the kernel drops when its holder dies; what a run
that was killed left running under that uid is ended before the uid is used again. No accounts are made.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pipeline.errors import ExpbenchError, FailureKind

__all__ = ["FIRST_UID", "SLOTS", "can_become", "claimed_user", "tasks_of", "threads_of"]

# Below 65536, because a container may have no more; in Debian's reserved range (65000-65533), where no account is.
FIRST_UID: Final = 65400
SLOTS: Final = 64
# One place for the whole machine, whatever cache directory is configured: uids are the machine's too.
_LOCKS: Final = Path("/run/lock/expbench")
_USED: Final = b"used\n"
_END_S: Final = 10.0


def can_become() -> str:
    """Why root cannot become another user here (no CAP_SETUID, uids that are not mapped), empty when it can."""
    try:
        subprocess.run(
            ["/bin/sh", "-c", ":"], user=FIRST_UID, group=FIRST_UID, extra_groups=[], check=True, timeout=60,
            stdin=subprocess.DEVNULL, capture_output=True, cwd="/",
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        return f"root cannot become uid {FIRST_UID} here ({error})"
    return ""


@contextlib.contextmanager
def claimed_user() -> Iterator[int | None]:
    """A uid (and gid) that nobody else uses meanwhile, lowest free one first; None where the caller is not root.

    Raises:
        ExpbenchError: `SANDBOX_UNAVAILABLE` (locks cannot be made, every uid belongs to somebody), `SANDBOX_BROKEN`
            (what an earlier run left behind does not end).
    """
    if os.geteuid() != 0:
        yield None
        return
    uid, lock = _claim()
    try:
        os.pwrite(lock, _USED, 0)
        yield uid
    finally:
        try:
            _end_tasks(uid)
            os.ftruncate(lock, 0)
        finally:
            os.close(lock)


def _claim() -> tuple[int, int]:
    """(uid, descriptor that holds its lock)."""
    foreign: set[int] = set()
    for waiting in (False, True):  # all taken: wait for one of them, not the same for everybody
        start = os.getpid() % SLOTS if waiting else 0
        for slot in range(SLOTS):
            uid = FIRST_UID + (start + slot) % SLOTS
            if uid in foreign:
                continue
            lock = _lock(uid, waiting)
            if lock is None:
                continue
            try:
                ours = _is_ours(uid, lock)
            except ExpbenchError:
                os.close(lock)
                raise
            if ours:
                return uid, lock
            os.close(lock)
            foreign.add(uid)
    raise ExpbenchError(
        FailureKind.SANDBOX_UNAVAILABLE,
        f"users {FIRST_UID} to {FIRST_UID + SLOTS - 1}",
        "each is an account of this machine, or runs processes that are not ours",
        consequence="No run can be kept apart from others, so nothing was run",
        next_step="Free one of these uids, or use the Docker sandbox",
    )


def _lock(uid: int, wait: bool) -> int | None:
    """The descriptor that holds the lock of a uid, None when somebody else holds it."""
    try:
        _LOCKS.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(_LOCKS / str(uid), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise ExpbenchError(
            FailureKind.SANDBOX_UNAVAILABLE,
            f"lock directory {_LOCKS}",
            str(error),
            consequence="Runs at the same time could not be kept apart, so nothing was run",
            next_step=f"Make it possible to write to {_LOCKS.parent}, or use the Docker sandbox",
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def _is_ours(uid: int, lock: int) -> bool:
    """May it be used? What a killed run left is ended; processes that we did not start stay as they are."""
    with contextlib.suppress(KeyError):
        pwd.getpwuid(uid)
        return False
    if tasks_of(uid):
        if os.pread(lock, len(_USED), 0) != _USED:
            return False
        _end_tasks(uid)
    return True


def tasks_of(uid: int) -> int:
    """Living processes that run as this user, in any of its senses (real, effective, saved)."""
    return sum(1 for state, uids, _ in _status() if str(uid) in uids and state not in {"Z", "X"})


def threads_of(uid: int) -> int:
    """What RLIMIT_NPROC counts of this (real) user: threads, and zombies."""
    return sum(max(1, threads) for _, uids, threads in _status() if uids[:1] == [str(uid)])


def _status() -> Iterator[tuple[str, list[str], int]]:
    """(state, uids, threads) of each process that /proc shows."""
    # no glob: it asks whether each file exists, and a process that ends meanwhile makes that question fail (ESRCH)
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal():
            continue
        try:
            text = (process / "status").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        yield fields.get("State", "").strip()[:1], fields.get("Uid", "").split(), int(fields.get("Threads", "0"))


def _end_tasks(uid: int) -> None:
    """End all processes of a user in one go of the kernel (a loop over pids would lose against a fork bomb)."""
    deadline = time.monotonic() + _END_S
    while tasks_of(uid):
        subprocess.run(
            ["/bin/sh", "-c", "kill -s KILL -- -1"], user=uid, group=uid, extra_groups=[], check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
        )  # fmt: skip
        if time.monotonic() > deadline:
            raise ExpbenchError(
                FailureKind.SANDBOX_BROKEN,
                f"user {uid} of the process sandbox",
                "processes of an earlier run do not end",
                consequence="This user cannot be used again",
                next_step=f"Look at `ps -u {uid}`; a process that waits for a device cannot be ended",
            )
        time.sleep(0.01)
