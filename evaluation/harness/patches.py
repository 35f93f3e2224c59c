"""The patch of a submission: what differs between two directories, as git would apply it.

Made on our side from copied-out files, never by a git of the agent: both versions of the changed files become two
commits of a scratch repository (`git fast-import` takes bytes as they are), and git compares those. No configuration,
hook, attribute, filter or ignore file of anybody takes part. Binary files are in it, as git's binary literals.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from evaluation.submission import ChangedFile
from pipeline._git.run import command, environment
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.scratch import scratch_directory

__all__ = ["Change", "compare", "make_patch"]

_CHUNK: Final = 1 << 20
_SNIFFED: Final = 8000
"""Bytes in which git, too, looks for a NUL."""
_AUTHOR: Final = b"expbench <expbench@localhost> 946684800 +0000"
# The highest precedence there is, so that a `.gitattributes` among the files decides nothing about the comparison.
_ATTRIBUTES: Final = "* -text -filter -ident -working-tree-encoding !diff !merge\n"


class Change(NamedTuple):
    """One file that differs; None: it is not there."""

    path: str
    before: Path | None
    after: Path | None

    @property
    def described(self) -> ChangedFile:
        """For people and graders."""
        action = "added" if self.before is None else "deleted" if self.after is None else "modified"
        shown = self.after or self.before
        assert shown is not None
        size = 0 if self.after is None else _size(self.after)
        return ChangedFile(path=self.path, action=action, size=size, binary=_is_binary(shown))


def _size(path: Path) -> int:
    return path.lstat().st_size


def _is_binary(path: Path) -> bool:
    if path.is_symlink():
        return False
    with path.open("rb") as stream:
        return b"\0" in stream.read(_SNIFFED)


def compare(before: Path, after: Path) -> list[Change]:
    """Files and links that differ between two directories, sorted by path; anything called `.git` is passed over."""
    old, new = _listing(before), _listing(after)
    changes = []
    for path in sorted(old.keys() | new.keys()):
        first, second = old.get(path), new.get(path)
        if first is None or second is None or not _same(first, second):
            changes.append(Change(path, first, second))
    return changes


def _listing(root: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for here, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not is_git(name))
        directory = Path(here)
        links = [name for name in folders if (directory / name).is_symlink()]
        for name in (*files, *links):
            path = directory / name
            if not is_git(name) and (path.is_symlink() or path.is_file()):
                found[path.relative_to(root).as_posix()] = path
    return found


def is_git(name: str) -> bool:
    """Would git take a file or directory of this name for its own?"""
    return name.rstrip(". ").lower() == ".git" or name.lower() == "git~1"


def _same(first: Path, second: Path) -> bool:
    if _mode(first) != _mode(second):
        return False
    if first.is_symlink():
        return first.readlink() == second.readlink()
    with first.open("rb") as one, second.open("rb") as other:
        while True:
            data = one.read(_CHUNK)
            if data != other.read(_CHUNK):
                return False
            if not data:
                return True


def _mode(path: Path) -> bytes:
    if path.is_symlink():
        return b"120000"
    return b"100755" if path.stat().st_mode & 0o100 else b"100644"


def make_patch(changes: Sequence[Change]) -> bytes:
    """A patch that `git apply` takes; empty where nothing changed.

    Raises:
        ExpbenchError: `TOOL_MISSING`, git is not installed; `INTERNAL`, it fails.
    """
    if not changes:
        return b""
    with scratch_directory() as folder:
        _git("init", "--quiet", "--bare", str(folder), directory=folder)
        (folder / "info").mkdir(exist_ok=True)
        (folder / "info" / "attributes").write_text(_ATTRIBUTES, encoding="utf-8")
        stream = b"".join(_commit(ref, changes, which) for ref, which in ((b"before", 1), (b"after", 2))) + b"done\n"
        _git("fast-import", "--quiet", "--done", "--force", "--date-format=raw", directory=folder, stdin=stream)
        options = (
            "--binary", "--full-index", "--no-color", "--no-renames", "--no-textconv", "--no-ext-diff",
            "--ignore-submodules=none", "--src-prefix=a/", "--dst-prefix=b/", "--unified=3", "--diff-algorithm=myers",
        )  # fmt: skip
        return _git("diff", *options, "refs/heads/before", "refs/heads/after", directory=folder)


def _commit(ref: bytes, changes: Sequence[Change], which: int) -> bytes:
    parts = [b"commit refs/heads/%s\nauthor %s\ncommitter %s\ndata 0\n" % (ref, _AUTHOR, _AUTHOR)]
    for change in changes:
        path = change[which]
        if isinstance(path, Path):
            data = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
            parts.append(b"M %s inline %s\ndata %d\n%s\n" % (_mode(path), _quoted(change.path), len(data), data))
    return b"".join([*parts, b"\n"])


def _quoted(path: str) -> bytes:
    """A path in fast-import's C style quotes, every byte as an octal escape: none of them can mean anything else."""
    return b'"' + b"".join(b"\\%03o" % byte for byte in os.fsencode(path)) + b'"'


def _git(*arguments: str, directory: Path, stdin: bytes = b"") -> bytes:
    git_dir = None if arguments[0] == "init" else directory
    try:
        done = subprocess.run(
            command(git_dir, arguments), cwd=directory, env=environment(), input=stdin, capture_output=True, check=False
        )
    except FileNotFoundError as error:
        raise ExpbenchError(
            FailureKind.TOOL_MISSING, "git", "the program is not installed",
            consequence="No submission can be taken", next_step="Install git 2.30 or newer and run with --resume",
        ) from error  # fmt: skip
    if done.returncode != 0:
        message = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise ExpbenchError(
            FailureKind.INTERNAL, f"git {arguments[0]}", message[-1] if message else "failed without a message",
            consequence="The submission was not taken", next_step="Report this with the message above",
        )  # fmt: skip
    return done.stdout
