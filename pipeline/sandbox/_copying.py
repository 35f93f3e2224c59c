"""Copying in and out of a sandbox: a tree becomes frames, frames become files below one directory.

Nothing that comes out is trusted: names are checked, only regular files are written, through a new directory that
nobody else writes to, and every digest is computed again on this side. Links are never followed, in either direction.
"""

# ruff: noqa: PTH114, PTH115, PTH118
# byte paths: file names need not be UTF-8, and pathlib has none

from __future__ import annotations

import fnmatch
import hashlib
import os
import shutil
import stat
import struct
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.sandbox.base import ProducedFile
from pipeline.schema import Problem, Severity

__all__ = ["Collector", "TreeSource", "frame", "shown"]

HEADER = struct.Struct(">cI")
_FILE_HEAD = struct.Struct(">HQ")
_LINK_HEAD = struct.Struct(">H")
_CHUNK = 1 << 20
# Of one name on Linux, and of what is left of 4096 below the output directory; escapes make names longer.
_NAME_MAX = 255
_PATH_MAX = 3000
# A run that leaves more files behind has produced a cache, not results; 20 000 copy out in about 3 s here.
_MAX_PRODUCED = 20_000
# A run that leaves thousands of links says one thing with them: the first few name it.
_MAX_PROBLEMS = 20


def frame(kind: bytes, payload: bytes = b"") -> bytes:
    """One frame of the protocol that `_inside/supervisor.py` describes."""
    return HEADER.pack(kind, len(payload)) + payload


def shown(path: bytes) -> str:
    r"""A path as text: bytes that are not UTF-8 appear as `\\xNN`, as in `RepositoryFile.path`."""
    return path.decode("utf-8", "backslashreplace")


class TreeSource:
    """A directory on this side as frames; remembers what it sent, so that changes can be told later.

    Args:
        root: the directory. Links in it are sent as links; sockets, pipes and devices are left out and reported.
    """

    def __init__(self, root: Path) -> None:
        self.root = os.fsencode(root)
        self.digests: dict[bytes, str] = {}
        self.executable: set[bytes] = set()
        self.links: set[bytes] = set()
        self.problems: list[Problem] = []
        self.size = 0

    def frames(self) -> Iterator[bytes]:
        """The tree, sorted, ended by its end mark.

        Raises:
            ExpbenchError: `SANDBOX_BROKEN`, a file cannot be read or changed while it was copied.
        """
        try:
            for here, directories, files in os.walk(self.root, onerror=_raise):
                relative = os.path.relpath(here, self.root)
                prefix = b"" if relative == b"." else relative
                directories.sort()
                linked = [name for name in directories if os.path.islink(os.path.join(here, name))]
                directories[:] = [name for name in directories if name not in linked]
                if prefix:
                    yield frame(b"D", prefix)
                for name in sorted(files + linked):
                    yield from self._entry(os.path.join(here, name), os.path.join(prefix, name))
        except OSError as error:
            raise ExpbenchError(
                FailureKind.SANDBOX_BROKEN,
                f"tree {shown(self.root)}",
                f"cannot be copied into the sandbox: {error}",
                consequence="The commands were not run",
                next_step="Check that the directory is readable and that nothing writes to it, then run again",
            ) from error
        yield frame(b"Z")

    def _entry(self, path: bytes, relative: bytes) -> Iterator[bytes]:
        info = os.lstat(path)
        if stat.S_ISLNK(info.st_mode):
            self.links.add(relative)
            yield frame(b"L", _LINK_HEAD.pack(len(relative)) + relative + os.readlink(path))
            return
        if not stat.S_ISREG(info.st_mode):
            self.problems.append(
                Problem(component="sandbox.copy", where=shown(relative), message="not a regular file: not copied in")
            )
            return
        digest = hashlib.sha256()
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as source:
            size = left = os.fstat(source.fileno()).st_size
            mode = 0o755 if info.st_mode & 0o111 else 0o644
            yield frame(b"F", _FILE_HEAD.pack(mode, size) + relative)
            while left:
                data = source.read(min(left, _CHUNK))
                if not data:
                    raise OSError(f"{shown(relative)} became shorter while it was copied")
                left -= len(data)
                digest.update(data)
                yield data
        self.size += size
        self.digests[relative] = digest.hexdigest()
        if mode == 0o755:
            self.executable.add(relative)


def _raise(error: OSError) -> None:
    raise error


class Collector:
    """Decides which files of the sandbox's manifest are wanted, and writes them below `root`.

    Args:
        root: `<out>/files`; made new, what an earlier run left there is removed.
        source: the tree that was copied in; None where nothing was.
        keep: glob patterns (see `RunSpec.keep`); `*` matches `/` too.
        budget: most bytes that are written.
        drop: glob patterns (see `RunSpec.drop`).
    """

    def __init__(
        self, root: Path, source: TreeSource | None, keep: tuple[str, ...], budget: int, drop: tuple[str, ...] = ()
    ) -> None:
        if root.exists():
            shutil.rmtree(root)
        root.mkdir(parents=True)
        self.root = root
        self.before: dict[bytes, str] = source.digests if source else {}
        self.executable_before: set[bytes] = source.executable if source else set()
        self.links_before: set[bytes] = source.links if source else set()
        self.keep = keep
        self.drop = drop
        self.budget = budget
        self.complete = True
        self.produced: list[ProducedFile] = []
        self.rewritten: list[ProducedFile] = []
        """What the run wrote again as it was."""
        self.problems: list[Problem] = []
        self.wanted: dict[bytes, str] = {}
        self._executable: set[bytes] = set()
        self._same: set[bytes] = set()
        self._seen: set[bytes] = set()
        self._left_out = 0
        self._names: set[str] = set()
        self._folders: set[str] = set()
        self._open: tuple[bytes, IO[bytes], Any] | None = None
        self._size = 0

    def offer(self, entry: dict[str, Any]) -> None:
        """Look at one entry of the manifest."""
        path = str(entry["path"]).encode("latin-1")
        kind = entry["kind"]
        executable = bool(entry.get("executable"))
        self._seen.add(path)
        if kind == "link" and path in self.links_before:
            return
        same_mode = executable == (path in self.executable_before)
        same = kind == "file" and same_mode and self.before.get(path) == entry["sha256"]
        if same and not (entry.get("written") and self._fits(path, entry)):
            return
        if kind == "too_many":
            self.complete = False
            self._problem(path, "too many files: the rest was not looked at", Severity.ERROR)
            return
        if not self._kept(shown(path)):
            return
        if kind != "file":
            texts = {
                "link": "a symbolic link: not copied out",
                "special": "not a regular file: not copied out",
                "too_big": f"{entry['size']} bytes are over the disk limit: not copied out",
            }
            self._problem(path, texts.get(kind, f"cannot be read: {entry.get('note', kind)}"))
        elif not _safe(path) or self._clashes(shown(path)):
            self._problem(path, "unsafe or ambiguous name: not copied out")
        elif len(self.wanted) >= _MAX_PRODUCED or entry["size"] > self.budget:
            self._problem(path, "over the limit of files or bytes: not copied out", Severity.ERROR)
        else:
            self.budget -= int(entry["size"])
            self.wanted[path] = str(entry["sha256"])
            if same:
                self._same.add(path)
            if executable:
                self._executable.add(path)
            self._names.add(shown(path))
            self._folders.update(str(parent) for parent in PurePosixPath(shown(path)).parents)

    def _fits(self, path: bytes, entry: dict[str, Any]) -> bool:
        """Is there room for a file that is as it was? One that is not copied out is no problem."""
        return self._kept(shown(path)) and len(self.wanted) < _MAX_PRODUCED and int(entry["size"]) <= self.budget

    def removed(self) -> tuple[str, ...]:
        """What was copied in and is not there any more; nothing where the manifest broke off."""
        if not self.complete:
            return ()
        gone = ({*self.before} | self.links_before) - self._seen
        return tuple(sorted(shown(path) for path in gone if not self._dropped(shown(path))))

    def wishes(self) -> bytes:
        """The frames that ask for the wanted files."""
        return b"".join(frame(b"W", path) for path in sorted(self.wanted)) + frame(b"Y")

    def begin(self, path: bytes) -> None:
        """A file arrives."""
        if path not in self.wanted or self._open is not None:
            raise ValueError(f"the sandbox sent a file that nobody asked for: {shown(path)}")
        target = self.root / shown(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        self._open = (path, target.open("xb"), hashlib.sha256())
        self._size = 0

    def data(self, data: bytes) -> None:
        """Bytes of the file that is open."""
        if self._open is None:
            raise ValueError("the sandbox sent bytes of no file")
        self._open[1].write(data)
        self._open[2].update(data)
        self._size += len(data)

    def end(self) -> None:
        """The open file is complete; its digest must be the manifest's (all processes had ended by then)."""
        if self._open is None:
            raise ValueError("the sandbox ended a file that it had not begun")
        path, stream, digest = self._open
        stream.close()
        self._open = None
        if digest.hexdigest() != self.wanted.pop(path):
            raise ValueError(f"{shown(path)} is not what the manifest said")
        executable = path in self._executable
        into = self.rewritten if path in self._same else self.produced
        into.append(ProducedFile(path=shown(path), size=self._size, sha256=digest.hexdigest(), executable=executable))

    def close(self) -> None:
        """Close what an interrupted transfer left open, and say how many problems were not listed."""
        if self._open is not None:
            self._open[1].close()
            self._open = None
        if self._left_out:
            message = f"{self._left_out} more files of this kind are not listed"
            self.problems.append(Problem(component="sandbox.copy", where="produced files", message=message))
            self._left_out = 0

    def _kept(self, path: str) -> bool:
        return not self._dropped(path) and (not self.keep or _matches(path, self.keep))

    def _dropped(self, path: str) -> bool:
        return _matches(path, self.drop)

    def _clashes(self, name: str) -> bool:
        r"""Would this name meet another one here, although they differ in the sandbox (`\xff` stands for two names)?"""
        return (
            name in self._names
            or name in self._folders
            or any(str(parent) in self._names for parent in PurePosixPath(name).parents)
        )

    def _problem(self, path: bytes, message: str, severity: Severity = Severity.WARNING) -> None:
        if len(self.problems) >= _MAX_PROBLEMS:
            self._left_out += 1
            return
        self.problems.append(Problem(component="sandbox.copy", where=shown(path), message=message, severity=severity))


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    """Does a glob pattern fit the path? A leading `**/` also stands for nothing."""
    return any(
        fnmatch.fnmatchcase(path, form)
        for pattern in patterns
        for form in ((pattern, pattern[3:]) if pattern.startswith("**/") else (pattern,))
    )


def _safe(path: bytes) -> bool:
    parts = path.split(b"/")
    fits = all(len(shown(part).encode()) <= _NAME_MAX for part in parts) and len(shown(path).encode()) <= _PATH_MAX
    return fits and b"\0" not in path and all(part not in {b"", b".", b".."} for part in parts)
