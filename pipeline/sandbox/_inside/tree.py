"""The tree's way into the sandbox, and the way of produced files out of it. Runs as the unprivileged user."""

# ruff: noqa: PTH101, PTH102, PTH112, PTH118, PTH208, PTH211
# byte paths: file names need not be UTF-8, and pathlib has none

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from typing import Any

from pipeline.sandbox._inside.wire import FILE_HEAD, INDEX, STOP, read_exact, read_frame, send, send_json

MAX_ENTRIES = 200_000


def receive_tree(work: bytes) -> None:
    """Write the tree that the client sends; paths were checked there and are relative."""
    while True:
        kind, payload = read_frame()
        if kind == b"Z":
            return
        if kind == b"D":
            path = os.path.join(work, payload)
            if not os.path.isdir(path):
                os.mkdir(path, 0o755)
        elif kind == b"L":
            size = INDEX.unpack_from(payload)[0]
            os.symlink(payload[2 + size :], os.path.join(work, payload[2 : 2 + size]))
        elif kind == b"F":
            mode, size = FILE_HEAD.unpack_from(payload)
            path = os.path.join(work, payload[FILE_HEAD.size :])
            target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
            try:
                while size:
                    data = memoryview(read_exact(min(size, 1 << 20)))
                    size -= len(data)
                    while data:
                        data = data[os.write(target, data) :]
            finally:
                os.close(target)
        else:
            raise OSError(errno.EPROTO, f"unexpected frame in the tree: {kind!r}")


def entries(work: bytes) -> Iterator[tuple[bytes, os.stat_result]]:
    """Everything below the root, sorted, links not followed; directories that cannot be read are opened up first."""
    stack = [b""]
    while stack:
        here = stack.pop()
        full = os.path.join(work, here)
        with contextlib.suppress(OSError):
            os.chmod(full, stat.S_IMODE(os.lstat(full).st_mode) | 0o700)
        try:
            names = sorted(os.listdir(full))
        except OSError:
            continue
        below = []
        for name in names:
            path = os.path.join(here, name)
            try:
                info = os.lstat(os.path.join(work, path))
            except OSError:
                continue
            if stat.S_ISDIR(info.st_mode):
                below.append(path)
            else:
                yield path, info
        stack.extend(reversed(below))


def open_file(path: bytes) -> int:
    """A regular file for reading, whatever its mode says."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(path, flags)
    except PermissionError:
        os.chmod(path, 0o600)
        return os.open(path, flags)


def send_manifest(work: bytes, budget: int, began_ns: int) -> None:
    """Name, size and digest of every file; `budget` bytes are read at most (a sparse file may claim any size).

    What was modified after `began_ns`, when the tree had arrived, was written by the run, also when it is as it was.
    """
    for count, (path, info) in enumerate(entries(work)):
        entry: dict[str, Any] = {"path": path.decode("latin-1"), "size": info.st_size, "kind": "file", "sha256": ""}
        if count >= MAX_ENTRIES:
            send_json(b"m", {**entry, "kind": "too_many"})
            break
        if stat.S_ISLNK(info.st_mode):
            entry["kind"] = "link"
        elif not stat.S_ISREG(info.st_mode):
            entry["kind"] = "special"
        elif info.st_size > budget:
            entry["kind"] = "too_big"
        else:
            budget -= info.st_size
            entry["executable"] = bool(info.st_mode & 0o111)
            entry["written"] = info.st_mtime_ns > began_ns
            try:
                entry["sha256"] = digest(os.path.join(work, path))
            except OSError as error:
                entry.update(kind="unreadable", note=str(error.strerror))
        send_json(b"m", entry)
    send(b"M")


def digest(path: bytes) -> str:
    """sha256 of a file."""
    value = hashlib.sha256()
    source = open_file(path)
    try:
        while True:
            data = os.read(source, 1 << 20)
            if not data:
                return value.hexdigest()
            value.update(data)
    finally:
        os.close(source)


def send_wanted(work: bytes) -> None:
    """The files that the client asks for."""
    wanted = []
    while True:
        kind, payload = read_frame()
        if kind == b"Y":
            break
        if kind != STOP:  # asked to stop when the last command had just ended
            wanted.append(payload)
    for path in wanted:
        send(b"f", path)
        source = open_file(os.path.join(work, path))
        try:
            while True:
                data = os.read(source, 1 << 18)
                if not data:
                    break
                send(b"b", data)
        finally:
            os.close(source)
        send(b"g")
