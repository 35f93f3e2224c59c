"""A plain directory as a snapshot: what lies there is what is searched. Nothing is followed, executed or changed.

For a repository at a commit there is `pipeline.repository.open_snapshot`; a directory has no history, and its identity
is the digest of what it holds. Non-goal: reading git.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from pathlib import Path
from typing import Final

from pipeline.digests import digest_of
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.locator.inventory import some_of
from pipeline.repository import RepositoryFile, RepositoryRef, Snapshot
from pipeline.schema import Problem, Severity

__all__ = ["directory_snapshot"]

_CHUNK: Final = 1 << 20
_LFS: Final = b"version https://git-lfs.github.com/spec/"
_LFS_SIZE: Final = 1024
"""Bytes of which a pointer has fewer, says its specification."""
_MODULES_SIZE: Final = 1_000_000
_SUBMODULE: Final = re.compile(r"^\s*path\s*=\s*\"?([^\"\n]+?)/?\"?\s*$", re.M)
_LEFT_OUT: Final = frozenset({".git", ".hg", ".svn"})


def directory_snapshot(root: Path) -> Snapshot:
    """The regular files below `root`, with their digests.

    Version control's own directories are left out. Symbolic links are not followed (those to directories may lead in
    circles or out of the tree) and devices, sockets and pipes are not read; each is a problem of the snapshot.

    Args:
        root: a directory, usually a work tree.

    Raises:
        ExpbenchError: `REPOSITORY_INVALID`: no such directory; `REPOSITORY_EMPTY`: no file in it.
    """
    if not root.is_dir():
        raise _invalid(FailureKind.REPOSITORY_INVALID, root, "no such directory")
    files: list[RepositoryFile] = []
    problems: list[Problem] = []

    def unreadable(error: OSError) -> None:
        problems.append(_unreadable(root, error))

    for directory, names, found in os.walk(root, onerror=unreadable):
        here = Path(directory)
        linked = [name for name in names if (here / name).is_symlink()]
        names[:] = sorted(name for name in names if name not in _LEFT_OUT and name not in linked)
        for name in sorted([*found, *linked]):
            if name == ".git":  # the file that leads from a submodule or a linked work tree to its repository
                continue
            file, problem = _file(root, here / name)
            files += [file] if file is not None else []
            problems += [problem] if problem is not None else []
    if not files:
        raise _invalid(FailureKind.REPOSITORY_EMPTY, root, "the directory holds no file")
    files.sort(key=lambda file: file.path)
    problems += [*_pointers(root, files), *_missing_submodules(root, files), *_part_of_more(root)]
    identity = digest_of([[file.path, file.sha256] for file in files])
    ref = RepositoryRef(url=root.absolute().name or "root", commit=identity[:40])
    return Snapshot(ref=ref, root=root.absolute(), files=tuple(files), problems=tuple(problems))


def _file(root: Path, path: Path) -> tuple[RepositoryFile | None, Problem | None]:
    name = _name(root, path)
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            return None, _problem(name, "not a regular file (a link or a device): not followed", Severity.INFO)
        digest, head = hashlib.sha256(), b""
        with path.open("rb") as stream:
            while block := stream.read(_CHUNK):
                head = head or block[:8192]
                digest.update(block)
    except OSError as error:
        return None, _problem(name, f"cannot be read ({error.strerror or error})", Severity.WARNING)
    file = RepositoryFile(
        path=name,
        size=status.st_size,
        sha256=digest.hexdigest(),
        executable=bool(status.st_mode & stat.S_IXUSR),
        binary=b"\0" in head,
    )
    return file, None


def _pointers(root: Path, files: list[RepositoryFile]) -> list[Problem]:
    """Data that `git lfs pull` would have brought."""
    found = [
        file.path for file in files if file.size < _LFS_SIZE and not file.binary and _starts(root, file.path, _LFS)
    ]
    if not found:
        return []
    message = f"{some_of(found)}: Git LFS pointers, whose contents are not here (`git lfs pull` gets them)"
    return [_problem(found[0], message, Severity.INFO)]


def _starts(root: Path, path: str, beginning: bytes) -> bool:
    try:
        with (root / path).open("rb") as stream:
            return stream.read(len(beginning)) == beginning
    except OSError:  # its name is not UTF-8, or it is gone: said elsewhere
        return False


def _missing_submodules(root: Path, files: list[RepositoryFile]) -> list[Problem]:
    """Directories of `.gitmodules` without a file."""
    listed = next((file for file in files if file.path == ".gitmodules" and file.size < _MODULES_SIZE), None)
    if listed is None:
        return []
    text = (root / listed.path).read_text(encoding="utf-8", errors="replace")
    held = {file.path for file in files}
    message = "a submodule that is not checked out: its files were not searched"
    return [
        _problem(path, message, Severity.WARNING)
        for path in sorted(set(_SUBMODULE.findall(text)))
        if not any(name.startswith(f"{path}/") for name in held)
    ]


def _part_of_more(root: Path) -> list[Problem]:
    """A directory inside of a work tree: what it imports from outside is not seen."""
    root = root.resolve()
    if (root / ".git").exists():
        return []
    above = next((parent for parent in root.parents if (parent / ".git").exists()), None)
    if above is None:
        return []
    place = root.relative_to(above).as_posix()
    message = f"only {place} of the git repository {above.name} was searched: what lies outside of it is not seen"
    return [_problem(".", message, Severity.INFO)]


def _name(root: Path, path: Path) -> str:
    """The path in the repository; bytes that are not UTF-8 are escaped, as in `RepositoryFile.path`."""
    return os.fsencode(path.relative_to(root).as_posix()).decode("utf-8", "backslashreplace")


def _unreadable(root: Path, error: OSError) -> Problem:
    name = _name(root, Path(str(error.filename))) if error.filename else "."
    return _problem(name, f"directory cannot be listed ({error.strerror or error})", Severity.WARNING)


def _problem(where: str, message: str, severity: Severity) -> Problem:
    return Problem(component="locator.directory", where=where, message=message, severity=severity)


def _invalid(kind: FailureKind, root: Path, cause: str) -> ExpbenchError:
    return ExpbenchError(
        kind,
        str(root),
        cause,
        consequence="Nothing was searched",
        next_step="Name a directory with the repository's files, a git repository or its URL",
    )
