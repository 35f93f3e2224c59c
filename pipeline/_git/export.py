"""Writes the tree of a commit as plain files: blobs one by one, no checkout, no filters, no attributes.

A tree object may name anything. What would be dangerous or impossible to write (`..`, `.git` in any disguise, a file
where a folder is, links out of the tree) is left out and reported. Links are made last, so that nothing is ever
written through one.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import subprocess
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from pipeline._git.run import command, environment, shown
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import Problem, Severity

__all__ = ["COMPONENT", "Entry", "ExportedFile", "Exporter", "hostile_part", "list_tree"]

COMPONENT = "repository"
_CHUNK = 1 << 20
# A tree object can name another ten times, over ten levels: a few kilobytes that unfold into 10^10 files. The largest
# repositories of papers that we know hold below 10^5.
_MAX_FILES = 500_000
_MAX_BYTES = 64 << 30
_MAX_LINK = 4095  # PATH_MAX of Linux
_MAX_HOPS = 40  # the kernel's own limit on links in one path
_LFS = b"version https://git-lfs.github.com/spec/v1\n"
_LFS_NAMED = 20
# Characters that HFS+ ignores in names: `.g<ZWNJ>it` is `.git` on such a disk (CVE-2014-9390).
_IGNORED = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])
_CODE = re.compile(r"\.(py|pyx|ipynb|sh|bash|zsh|ya?ml|toml|cfg|ini)$|(^|/)(requirements[^/]*\.txt|makefile)$")


class Entry(NamedTuple):
    """One line of a tree listing."""

    mode: str
    oid: str
    path: bytes


class ExportedFile(NamedTuple):
    """A regular file that was written."""

    path: bytes
    size: int
    sha256: str
    executable: bool
    binary: bool
    head: bytes
    """First bytes, for recognising scripts without a suffix."""
    submodule: bytes | None


def hostile_part(path: bytes) -> str | None:
    """Why a path of a tree must not be written, or None."""
    if len(path) > 3000:
        return "the path is longer than 3000 bytes"
    for part in path.split(b"/"):
        if part in (b"", b".", b".."):
            return "it has an empty, '.' or '..' component"
        if len(part) > 255:
            return "a component is longer than 255 bytes"
        for piece in part.split(b"\\"):  # a separator on other systems, where the masked repository may be unpacked
            if piece == b".." or _is_dot_git(piece):
                return "a component stands for .git or '..' on some file system"
    return None


def _is_dot_git(part: bytes) -> bool:
    name = unicodedata.normalize("NFKC", part.decode("utf-8", "replace").translate(_IGNORED)).lower()
    return re.fullmatch(r"(\.git|git~[0-9]+)[ .]*(:.*)?", name) is not None


def list_tree(git_dir: Path, commit: str, name: str) -> Iterator[Entry]:
    """The files, links and submodules of a commit, in git's order.

    Raises:
        ExpbenchError: `REPOSITORY_INVALID`: a tree object is missing or damaged.
    """
    vector = command(git_dir, ["ls-tree", "-r", "-z", "--full-tree", commit])
    with subprocess.Popen(
        vector, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        pending = b""
        count = 0
        try:
            while chunk := process.stdout.read1(_CHUNK):  # type: ignore[attr-defined]
                *lines, pending = (pending + chunk).split(b"\0")
                count += len(lines)
                if count > _MAX_FILES:
                    raise _too_large(f"it holds more than {_MAX_FILES} files")
                for line in lines:
                    head, _, path = line.partition(b"\t")
                    mode, _, oid = head.decode("ascii").split(" ")
                    yield Entry(mode, oid, path)
            said = process.stderr.read().decode("utf-8", "replace").strip()
        finally:
            process.kill()
    if pending or said:
        raise _damaged(name, said or "the listing of its files ends early")


def _damaged(name: str, cause: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.REPOSITORY_INVALID, name, f"objects of the commit are missing or damaged ({shown(cause)})",
        consequence="The snapshot was not made",
        next_step="It is a partial or damaged clone: run 'git fsck', clone it anew in full, or give its URL",
    )  # fmt: skip


def _too_large(cause: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.REPOSITORY_INVALID, "repository", cause, consequence="The snapshot was not made",
        next_step="Check that it is the paper's code and not a store of data",
    )  # fmt: skip


class Exporter:
    """Collects what is written below one root, submodules included.

    Args:
        root: empty directory to fill.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: list[ExportedFile] = []
        self.problems: list[Problem] = []
        self._links: dict[bytes, bytes] = {}
        self._seen: set[bytes] = set()
        self._bytes = 0
        self._lfs = 0

    def problem(self, path: bytes, message: str, severity: Severity = Severity.WARNING) -> None:
        """Report something about a path."""
        self.problems.append(Problem(component=COMPONENT, where=shown(path), message=message, severity=severity))

    def admit(self, path: bytes) -> bool:
        """May this path be written? Reports why not."""
        if reason := hostile_part(path):
            self.problem(path, f"not exported: {reason}", Severity.ERROR)
            return False
        if path in self._seen:
            self.problem(path, "not exported: the tree names it twice", Severity.ERROR)
            return False
        self._seen.add(path)
        if len(self._seen) > _MAX_FILES:
            raise _too_large(f"it holds more than {_MAX_FILES} files")
        return True

    def write(self, git_dir: Path, entries: list[Entry], prefix: bytes, submodule: bytes | None, name: str) -> None:
        """Write the files and remember the links among `entries` of one repository.

        Args:
            git_dir: repository that holds the blobs.
            entries: without submodules.
            prefix: directory below the root, empty or ending in `/`.
            submodule: path of the submodule that they belong to.
            name: of the repository, for messages.

        Raises:
            ExpbenchError: `REPOSITORY_INVALID` (missing blob), `DISK_FULL`.
        """
        vector = command(git_dir, ["cat-file", "--batch"])
        with subprocess.Popen(
            vector, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment()
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                for entry in entries:
                    path = prefix + entry.path
                    if not self.admit(path):
                        continue
                    process.stdin.write(entry.oid.encode("ascii") + b"\n")
                    process.stdin.flush()
                    header = process.stdout.readline().split(b" ")
                    if len(header) != 3:
                        self._missing(path, entry, name)
                        continue
                    if header[1] == b"blob":
                        self._one(process.stdout, entry, path, int(header[2]), submodule)
                    else:
                        self.problem(path, "not exported: the tree calls it a file, but it is none", Severity.ERROR)
                        _copy(process.stdout, int(header[2]), None)
                    process.stdout.read(1)
            except OSError as error:
                raise self._disk_error(error) from error
            finally:
                process.kill()

    def _missing(self, path: bytes, entry: Entry, name: str) -> None:
        """Partial clones lack large files: data may be missing, code may not."""
        if _CODE.search(os.fsdecode(path).lower()):
            raise _damaged(name, f"{shown(path)}: no blob {entry.oid}")
        self.problem(path, "not exported: its content is missing from this clone (partial or damaged)", Severity.ERROR)

    def _one(self, stream: IO[bytes], entry: Entry, path: bytes, size: int, submodule: bytes | None) -> None:
        self._bytes += size
        if self._bytes > _MAX_BYTES:
            raise _too_large(f"its files hold more than {_MAX_BYTES >> 30} GiB")
        if entry.mode == "120000":
            if size > _MAX_LINK:
                _copy(stream, size, None)
                self.problem(path, "symbolic link not exported: its target is longer than any path", Severity.ERROR)
            else:
                self._links[path] = stream.read(size)
            return
        executable = entry.mode == "100755"
        target = self._create(path, executable)
        if target is None:
            _copy(stream, size, None)
            return
        with os.fdopen(target, "wb") as out:
            sha256, head, binary = _copy(stream, size, out)
        if size < 1024 and head.startswith(_LFS):
            self._lfs += 1
            if self._lfs <= _LFS_NAMED:
                self.problem(path, "Git LFS pointer: the content itself is not in the repository")
        self.files.append(ExportedFile(path, size, sha256, executable, binary, head[:256], submodule))

    def _create(self, path: bytes, executable: bool) -> int | None:
        where = self.root / os.fsdecode(path)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            where.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(where, flags)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            self.problem(path, "not exported: the tree has a file and a folder of this name", Severity.ERROR)
            return None
        os.fchmod(handle, 0o755 if executable else 0o644)  # whatever the umask: equal commits give equal trees
        return handle

    def _disk_error(self, error: OSError) -> ExpbenchError:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        return ExpbenchError(
            FailureKind.DISK_FULL if full else FailureKind.REPOSITORY_INVALID,
            shown(str(error.filename or self.root)),
            f"the file cannot be written ({error.strerror})",
            consequence="The snapshot was not made",
            next_step="Free some space and try again" if full else "Give an output folder on an ordinary local disk",
        )

    def finish(self) -> None:
        """Make the links that stay inside, and sum up what was counted."""
        for path in sorted(self._links):
            reason = self._escape(path)
            if reason is None:
                reason = self._link(path)
            if reason is not None:
                self.problem(path, f"symbolic link to {shown(self._links[path])} not exported: {reason}")
        if self._lfs > _LFS_NAMED:
            self.problem(b".", f"{self._lfs} files are Git LFS pointers: their content is not in the repository")

    def _link(self, path: bytes) -> str | None:
        """Make a link that was found harmless; returns why it could not be made."""
        parts = path.split(b"/")
        if any(b"/".join(parts[:depth]) in self._links for depth in range(1, len(parts))):
            return "the tree has a folder and a link of one name"
        where = self.root / os.fsdecode(path)
        try:
            where.parent.mkdir(parents=True, exist_ok=True)
            where.symlink_to(os.fsdecode(self._links[path]))
        except (FileExistsError, NotADirectoryError):
            return "the tree has a file or folder of the same name"
        except OSError as error:
            raise self._disk_error(error) from error
        return None

    def _escape(self, link: bytes) -> str | None:
        """Why a link is not to be made: follow it through the other links of the tree, never through the disk."""
        place = link.split(b"/")[:-1]
        target = self._links[link]
        if not target or b"\0" in target or target.startswith(b"/"):
            return "it is absolute or empty"
        todo = list(reversed(target.split(b"/")))
        hops = 0
        while todo:
            part = todo.pop()
            if part in (b"", b"."):
                continue
            if _is_dot_git(part) or (part == b".." and not place):
                return "it leads outside the repository"
            if part == b"..":
                place.pop()
                continue
            place.append(part)
            if (through := self._links.get(b"/".join(place))) is not None:
                hops += 1
                if hops > _MAX_HOPS or through.startswith(b"/"):
                    return "it leads in a circle, or outside the repository through another link"
                place.pop()
                todo.extend(reversed(through.split(b"/")))
        return None


def _copy(stream: IO[bytes], size: int, out: IO[bytes] | None) -> tuple[str, bytes, bool]:
    """Move `size` bytes on; returns sha256, the first 8000 bytes and whether those hold NUL (git's own notion)."""
    digest = hashlib.sha256()
    head = b""
    while size:
        chunk = stream.read(min(size, _CHUNK))
        if not chunk:
            raise _damaged("repository", "an object ends early")
        size -= len(chunk)
        digest.update(chunk)
        if len(head) < 8000:
            head += chunk[: 8000 - len(head)]
        if out is not None:
            out.write(chunk)
    return digest.hexdigest(), head, b"\0" in head
