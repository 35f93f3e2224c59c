"""A git repository at one commit, exported to plain files without running anything that the repository brought along.

The snapshot is read object by object (`git ls-tree`, `git cat-file`), never checked out: no hooks, no filters, no
attributes, no configuration of the repository takes effect. Submodules are exported in place, at the commit that the
parent records.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from pipeline.schema import Problem, Record

__all__ = ["RepositoryFile", "RepositoryRef", "Snapshot"]


class RepositoryRef(Record):
    """Where a repository came from, and which commit."""

    url: str
    """URL, or the directory's name for a local path (absolute paths of a machine do not belong into a task)."""
    commit: str = Field(pattern=r"^[0-9a-f]{40,64}$")
    license: str | None = None
    """SPDX identifier recognised in its licence file, or None."""


class RepositoryFile(Record):
    """One file of a snapshot."""

    path: str
    """POSIX path relative to the root; bytes that are not UTF-8 are shown as `\\xNN`, such files are never sources."""
    size: int
    sha256: str
    executable: bool = False
    binary: bool = False
    submodule: str | None = None
    """Path of the submodule that the file belongs to."""


class Snapshot(Record):
    """A repository at one commit as plain files under `root` (no `.git`)."""

    ref: RepositoryRef
    root: Path
    files: tuple[RepositoryFile, ...]
    """Sorted by path. Symbolic links are not listed; those that lead outside are not exported and are in `problems`."""
    submodules: tuple[tuple[str, str], ...] = ()
    """(path, commit)."""
    problems: tuple[Problem, ...] = ()

    def text(self, path: str, limit: int = 2_000_000) -> str:
        """The text of a file (UTF-8, undecodable bytes replaced), at most `limit` bytes.

        Raises:
            FileNotFoundError: no such file in the snapshot.
        """
        with (self.root / path).open("rb") as stream:
            return stream.read(limit).decode("utf-8", "replace")
