"""The program that closes the process sandbox's namespaces behind itself and then becomes another program.

`unshare` starts it in new mount, process and (mostly) network namespaces; like `supervisor` it is a stand-alone
script of the standard library. It makes the whole file system read-only, puts empty directories over the places where
people keep their own things and over the shared temporary directories, mounts size-limited ones where the run may
write, gives up the namespace's capabilities and executes the rest of its command line.

Usage: python -I -S _isolate.py PLAN PROGRAM [ARGUMENT...], PLAN being JSON:

    hide    directories that become empty and read-only
    scratch [directory, bytes]: become empty, writable by everybody, limited
    expose  [path, writable?]: stay visible although they are below one of those
    user    uid and gid to become, or null
"""

# ruff: noqa: PTH103, PTH112, PTH114, PTH120
# byte paths: file names need not be UTF-8, and pathlib has none

from __future__ import annotations

import ctypes
import json
import os
import struct
import sys
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
MS_NOSUID, MS_NODEV, MS_BIND, MS_REMOUNT, MS_RDONLY = 2, 4, 4096, 32, 1
SYS_MOUNT_SETATTR = 442  # the same number on all architectures
MOUNT_ATTR_RDONLY = 1
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
PR_SET_NO_NEW_PRIVS = 38


def check(result: int, what: str) -> None:
    """Raise what errno says."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def read_only(path: str, on: bool, recursive: bool) -> None:
    """Set or clear the read-only flag of a mount."""
    attributes = struct.pack("QQQQ", MOUNT_ATTR_RDONLY if on else 0, 0 if on else MOUNT_ATTR_RDONLY, 0, 0)
    flags = AT_RECURSIVE if recursive else 0
    result = LIBC.syscall(SYS_MOUNT_SETATTR, AT_FDCWD, path.encode(), flags, attributes, len(attributes))
    check(result, f"mount_setattr {path}")


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    """Mount a file system, with errors raised."""
    check(
        LIBC.mount(source.encode(), os.fsencode(target), kind.encode(), flags, data.encode()),
        f"mount {source} on {target}",
    )


def close_off(plan: dict[str, Any]) -> None:
    """Rearrange the mounts as planned."""
    covered: list[str] = [path for path in plan["hide"] if os.path.isdir(path) and not os.path.islink(path)]
    scratch = [(path, size) for path, size in plan["scratch"] if os.path.isdir(path) and not os.path.islink(path)]
    kept = [(path, writable, os.open(path, os.O_PATH | os.O_CLOEXEC)) for path, writable in plan["expose"]]
    read_only("/", True, True)
    for path in covered:
        mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=0755")
    for path, size in scratch:
        mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, f"size={size},nr_inodes={size // 4096 + 64},mode=1777")
    for path, writable, handle in kept:
        if not os.path.lexists(path):
            if os.path.isdir(f"/proc/self/fd/{handle}"):
                os.makedirs(path, 0o755)
            else:
                os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
                os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))
        mount(f"/proc/self/fd/{handle}", path, "", MS_BIND)
        read_only(path, not writable, False)
        os.close(handle)
    for path in covered:
        read_only(path, True, False)


def main() -> None:
    """Close off, give up, become."""
    plan = json.loads(sys.argv[1])
    os.umask(0o022)
    close_off(plan)
    if plan["user"] is not None:
        os.setgroups([])
        os.setresgid(plan["user"], plan["user"], plan["user"])
        os.setresuid(plan["user"], plan["user"], plan["user"])
    check(LIBC.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "prctl")
    check(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
    os.chdir("/")
    os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 - no shell is meant


if __name__ == "__main__":
    main()
