"""Walking and copying plain trees by bytes: file names need not be UTF-8, links are never followed."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["MAX_READ", "Entry", "copy_entry", "display", "entries"]

MAX_READ: Final = 128 << 20
"""Bytes; larger files are compared by digest only, and reported."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or symbolic link below a root."""

    raw: bytes
    """POSIX path relative to the root, as the file system has it."""
    path: str
    """The same as `RepositoryFile.path` shows it."""
    absolute: bytes
    link: bool
    executable: bool
    size: int

    def read(self) -> bytes:
        """The content of a file, or the target of a link."""
        if self.link:
            return os.readlink(self.absolute)
        with open(self.absolute, "rb") as stream:
            return stream.read()


def display(raw: bytes) -> str:
    r"""A path for people and records: bytes that are not UTF-8 are shown as `\xNN`."""
    return raw.decode("utf-8", "backslashreplace")


def _is_git(name: bytes) -> bool:
    # git treats these as .git on some file systems and refuses to check them out
    return name.lower().rstrip(b" .") in {b".git", b"git~1"}


def entries(root: Path, *, git: bool = False) -> Iterator[Entry]:
    """All files and links below `root`, sorted by raw path; sockets, devices and pipes are left out.

    Args:
        root: the directory.
        git: also what lies in directories (or is a file) named `.git`.
    """
    top = os.fsencode(root)
    found: list[Entry] = []
    for directory, names, files in os.walk(top):
        links = [name for name in names if os.path.islink(os.path.join(directory, name))]
        names[:] = [name for name in names if name not in links and (git or not _is_git(name))]
        for name in files + links:
            if not git and _is_git(name):
                continue
            absolute = os.path.join(directory, name)
            status = os.lstat(absolute)
            link = stat.S_ISLNK(status.st_mode)
            if link or stat.S_ISREG(status.st_mode):
                raw = os.path.relpath(absolute, top)
                found.append(Entry(raw, display(raw), absolute, link, bool(status.st_mode & 0o100), status.st_size))
    yield from sorted(found, key=lambda entry: entry.raw)


def copy_entry(entry: Entry, into: Path, data: bytes | None = None) -> None:
    """Put a file or link below `into` at the same path, with `data` instead of its content when given."""
    target = os.path.join(os.fsencode(into), entry.raw)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if entry.link:
        os.symlink(os.readlink(entry.absolute), target)
        return
    if data is None:
        shutil.copyfile(entry.absolute, target, follow_symlinks=False)
    else:
        with open(target, "wb") as stream:
            stream.write(data)
    os.chmod(target, 0o755 if entry.executable else 0o644)
