"""A git repository at one commit, exported to plain files without running anything that the repository brought along.

The snapshot is read object by object (`git ls-tree`, `git cat-file`), never checked out: no hooks, no filters, no
attributes, no configuration of the repository takes effect. Submodules are exported in place, at the commit that the
parent records.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic import Field, ValidationError

from pipeline.digests import tree_digest
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import remove_tree, write_text
from pipeline.progress import Reporter, SilentReporter
from pipeline.schema import Problem, Record, Severity, StoredRecord

if TYPE_CHECKING:
    from pipeline._git.mirror import Mirror

__all__ = ["RepositoryFile", "RepositoryRef", "Snapshot", "check_source", "open_snapshot"]


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
    committed_at: str | None = None
    """When the commit was made (ISO 8601 with offset, as the committer's clock said)."""

    def text(self, path: str, limit: int = 2_000_000) -> str:
        """The text of a file (UTF-8, its byte order mark left out, undecodable bytes replaced), at most `limit` bytes.

        Raises:
            FileNotFoundError: no such file in the snapshot.
        """
        with (self.root / path).open("rb") as stream:
            return stream.read(limit).decode("utf-8-sig", "replace")

    def save(self, *, requested: str | None = None) -> Path:
        """Write everything but `root` beside it, as `<root>.json`; the mark of a finished export.

        Args:
            requested: the commit that was asked for, where it was not the full id.

        Returns:
            The file's path.
        """
        record = _StoredSnapshot(
            ref=self.ref, files=self.files, submodules=self.submodules, problems=self.problems,
            committed_at=self.committed_at, requested=requested, tree=tree_digest(self.root),
        )  # fmt: skip
        path = _metadata_path(self.root)
        write_text(path, record.model_dump_json(indent=1) + "\n")
        return path

    @classmethod
    def load(cls, into: Path) -> Self:
        """The snapshot that an earlier `open_snapshot(..., into=into)` finished.

        Raises:
            ExpbenchError: `RECORD_INVALID`: there is none, or its files were changed since.
        """
        stored = _read_metadata(into)
        if stored is None:
            raise _not_a_snapshot(into, "it holds no finished snapshot")
        if not into.is_dir() or tree_digest(into) != stored.tree:
            raise _not_a_snapshot(into, "its files are not those that were exported")
        return cls(
            ref=stored.ref, root=into, files=stored.files, submodules=stored.submodules, problems=stored.problems,
            committed_at=stored.committed_at,
        )  # fmt: skip


class _StoredSnapshot(StoredRecord):
    """`<root>.json`. No absolute path, so that equal snapshots are equal files wherever they lie."""

    ref: RepositoryRef
    requested: str | None
    committed_at: str | None
    tree: str
    """`tree_digest` of the exported files."""
    submodules: tuple[tuple[str, str], ...]
    problems: tuple[Problem, ...]
    files: tuple[RepositoryFile, ...]


def _metadata_path(into: Path) -> Path:
    return into.with_name(f"{into.name}.json")


def _not_a_snapshot(into: Path, cause: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.RECORD_INVALID, str(into), cause, consequence="The snapshot cannot be used",
        next_step="Open the repository again, into the same or another folder",
    )  # fmt: skip


def _read_metadata(into: Path) -> _StoredSnapshot | None:
    try:
        return _StoredSnapshot.model_validate_json(_metadata_path(into).read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise _not_a_snapshot(
            _metadata_path(into), f"it is not a snapshot's record ({error.error_count()} errors)"
        ) from (error)


def check_source(source: str | Path) -> None:
    """Check what a user names as a repository, without contacting or reading it.

    Args:
        source: as for `open_snapshot`.

    Raises:
        ExpbenchError: `REPOSITORY_INVALID`: a path where no repository is, or no address that git may be given.
    """
    from pipeline._git.source import parse_source

    parse_source(source)


def open_snapshot(
    source: str | Path,
    *,
    commit: str | None = None,
    into: Path,
    allow_missing_submodules: bool = False,
    reporter: Reporter = SilentReporter(),  # noqa: B008 - stateless
) -> Snapshot:
    """Export a repository at one commit into a folder of plain files.

    A finished snapshot in `into` is used again when it is the one asked for and its files are unchanged; what an
    interrupted call left is removed and done again. A remote repository without `commit` stays at the commit that the
    first call found.

    Args:
        source: path of a work tree, a bare repository or a `.git` file; URL (https, http, ssh, git, file);
            `user@host:path`; `github:owner/name`.
        commit: full or abbreviated id, branch or tag; None for HEAD.
        into: folder to make; its record is written beside it (`<into>.json`).
        allow_missing_submodules: leave submodules out that cannot be had, with a problem, instead of failing.
        reporter: progress, as steps of stage `repository`.

    Raises:
        ExpbenchError: `REPOSITORY_INVALID`, `REPOSITORY_EMPTY`, `REPOSITORY_NO_CODE`, `COMMIT_UNKNOWN`,
            `SUBMODULE_UNAVAILABLE`, `NETWORK`, `DISK_FULL`, `TOOL_MISSING`; `WORKSPACE_CONFLICT` when `into` holds
            something else.
    """
    from pipeline._git.mirror import mirror_local, mirror_remote, resolve_commit
    from pipeline._git.run import redact, shown
    from pipeline._git.source import LocalSource, parse_source, public_url

    into = into.absolute()
    origin = parse_source(source)
    stored = _read_metadata(into)
    staging = into.with_name(f".{into.name}.partial")
    if stored is None:
        _clear(into, staging)
    remove_tree(staging)
    try:
        if isinstance(origin, LocalSource):
            mirror = mirror_local(origin, staging / "git")
            oid = resolve_commit(mirror, commit)
            url = public_url(mirror.origin or "") or shown(origin.path.name)
        else:
            url = public_url(origin.url) or redact(origin.url)
            if stored is not None and stored.ref.url == url and _same_request(stored, commit):
                if reused := _reuse(into, reporter):
                    return reused
                commit = stored.ref.commit
            reporter.step("repository", f"fetching {url}")
            mirror, oid = mirror_remote(origin, staging / "git", commit)
        if stored is not None:
            if (stored.ref.url, stored.ref.commit) != (url, oid):
                raise _conflict(into, f"it holds {stored.ref.url} at {stored.ref.commit[:12]}, not {url} at {oid[:12]}")
            if reused := _reuse(into, reporter):
                return reused
            remove_tree(_metadata_path(into))
            remove_tree(into)
        reporter.step("repository", f"exporting {url} at {oid[:12]}")
        snapshot = _export(mirror, oid, url, staging / "tree", allow_missing_submodules=allow_missing_submodules)
        (staging / "tree").replace(into)
        snapshot = snapshot.evolve(root=into)
        snapshot.save(requested=commit)
        return snapshot
    finally:
        remove_tree(staging)


def _clear(into: Path, staging: Path) -> None:
    """Remove an unfinished export; never a folder that somebody else made."""
    if staging.exists():
        remove_tree(into)
    if into.is_symlink() or (into.exists() and (not into.is_dir() or any(into.iterdir()))):
        raise _conflict(into, "it exists and is not a snapshot of ours")
    remove_tree(into)


def _conflict(into: Path, cause: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.WORKSPACE_CONFLICT, str(into), cause, consequence="Nothing was changed there",
        next_step="Name another output folder, or the commit that it holds",
    )  # fmt: skip


def _same_request(stored: _StoredSnapshot, commit: str | None) -> bool:
    if commit is None or commit == stored.requested:
        return True
    return len(commit) >= 4 and stored.ref.commit.startswith(commit)


def _reuse(into: Path, reporter: Reporter) -> Snapshot | None:
    try:
        snapshot = Snapshot.load(into)
    except ExpbenchError as error:
        reporter.warn(f"The snapshot in {into} is made again: {error.cause}")
        return None
    reporter.step("repository", "already exported")
    return snapshot


_CODE = re.compile(r"\.(py|ipynb|sh|bash|zsh)$")
_SHEBANG = re.compile(rb"#![^\n]*\b(python[0-9.]*|bash|sh|zsh|dash)\b")


def _export(mirror: Mirror, commit: str, url: str, root: Path, *, allow_missing_submodules: bool) -> Snapshot:
    from pipeline._git.export import COMPONENT, Exporter
    from pipeline._git.mirror import reject
    from pipeline._git.recursion import commit_date, export_repository
    from pipeline._git.worktree import uncommitted

    root.mkdir(parents=True)
    exporter = Exporter(root)
    submodules = export_repository(mirror, commit, exporter, allow_missing=allow_missing_submodules)
    exporter.finish()
    if not exporter.files and not submodules:
        raise reject(
            FailureKind.REPOSITORY_EMPTY, mirror.name, f"commit {commit[:12]} holds no files",
            "Name a commit that does, or check that this is the right repository",
        )  # fmt: skip
    if not any(_CODE.search(os.fsdecode(f.path).lower()) or _SHEBANG.match(f.head) for f in exporter.files):
        raise reject(
            FailureKind.REPOSITORY_NO_CODE, mirror.name,
            f"none of the {len(exporter.files)} files of commit {commit[:12]} is Python, a notebook or a shell script",
            "Check that this is the paper's code repository; other languages are not supported yet",
        )  # fmt: skip
    problems = [*uncommitted(mirror, commit), *exporter.problems]
    files: dict[str, RepositoryFile] = {}
    for file in exporter.files:
        path = file.path.decode("utf-8", "backslashreplace")
        if path in files:
            message = "another file has the same name once bytes that are not UTF-8 are escaped: not listed"
            problems.append(Problem(component=COMPONENT, where=path, message=message))
            continue
        files[path] = RepositoryFile(
            path=path, size=file.size, sha256=file.sha256, executable=file.executable, binary=file.binary,
            submodule=None if file.submodule is None else file.submodule.decode("utf-8", "backslashreplace"),
        )  # fmt: skip
    spdx = _license(root, list(files), problems)
    return Snapshot(
        ref=RepositoryRef(url=url, commit=commit, license=spdx),
        root=root,
        files=tuple(files[path] for path in sorted(files)),
        submodules=tuple(submodules),
        problems=tuple(problems),
        committed_at=commit_date(mirror, commit),
    )


def _license(root: Path, paths: list[str], problems: list[Problem]) -> str | None:
    from pipeline._git.export import COMPONENT
    from pipeline._git.licence import is_licence_name, recognise_all

    names = sorted(path for path in paths if "/" not in path and is_licence_name(path))
    spdx = recognise_all({name: (root / name).read_bytes()[:100_000].decode("utf-8", "replace") for name in names})
    if spdx is None:
        message = f"no single known licence was recognised in {', '.join(names)}" if names else "it has no licence file"
        where = names[0] if names else "."
        problems.append(
            Problem(component=COMPONENT, where=where, severity=Severity.INFO, message=f"{message}: not redistributable")
        )
    return spdx
