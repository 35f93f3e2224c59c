"""Exports a repository and, in their places, its submodules and theirs."""

from __future__ import annotations

from pathlib import Path

from pipeline._git.export import Entry, Exporter, list_tree
from pipeline._git.mirror import Mirror
from pipeline._git.run import run_git, shown
from pipeline._git.submodules import declared_submodules, open_submodule
from pipeline.errors import ExpbenchError, FailureKind

__all__ = ["commit_date", "export_repository"]

# Ids are hashes, so submodules cannot contain themselves; deep chains are possible and nobody needs them.
_MAX_DEPTH = 8
_GITLINK = "160000"


def export_repository(
    mirror: Mirror,
    commit: str,
    exporter: Exporter,
    *,
    allow_missing: bool,
    prefix: bytes = b"",
    depth: int = 0,
) -> list[tuple[str, str]]:
    """Write the files of `commit` and of its submodules.

    Args:
        mirror: repository.
        commit: full id.
        exporter: receives files and problems.
        allow_missing: report submodules that cannot be had instead of failing.
        prefix: where this repository belongs below the root, empty or ending in `/`.
        depth: levels of submodules above.

    Returns:
        (path, commit) of each submodule that was exported, sorted.

    Raises:
        ExpbenchError: `SUBMODULE_UNAVAILABLE`, `REPOSITORY_INVALID`, `DISK_FULL`.
    """
    plain: list[Entry] = []
    links: list[Entry] = []
    gitmodules: str | None = None
    for entry in list_tree(mirror.git_dir, commit, mirror.name):
        (links if entry.mode == _GITLINK else plain).append(entry)
        if entry.path == b".gitmodules" and entry.mode.startswith("100"):
            gitmodules = entry.oid
    exporter.write(mirror.git_dir, plain, prefix, prefix.rstrip(b"/") or None, mirror.name)
    declared = declared_submodules(mirror.git_dir, gitmodules) if links else {}
    found: list[tuple[str, str]] = []
    for number, link in enumerate(links):
        path = prefix + link.path
        if not exporter.admit(path):
            continue
        where = Path(f"{mirror.git_dir}.{number}")
        try:
            if depth >= _MAX_DEPTH:
                raise ExpbenchError(
                    FailureKind.SUBMODULE_UNAVAILABLE, f"submodule {shown(path)}",
                    f"it lies more than {_MAX_DEPTH} levels deep", consequence="The snapshot was not made",
                    next_step="Allow missing submodules (--allow-missing-submodules)",
                )  # fmt: skip
            child = open_submodule(mirror, link.path, link.oid, declared.get(link.path), where)
        except ExpbenchError as error:
            if not allow_missing or error.kind is not FailureKind.SUBMODULE_UNAVAILABLE:
                raise
            exporter.problem(path, f"submodule left out, as allowed: {error.cause}")
            continue
        found.append((path.decode("utf-8", "backslashreplace"), link.oid))
        found += export_repository(
            child, link.oid, exporter, allow_missing=allow_missing, prefix=path + b"/", depth=depth + 1
        )
    return sorted(found)


def commit_date(mirror: Mirror, commit: str) -> str | None:
    """When a commit was made: ISO 8601 with offset, or None where its header is damaged."""
    result = run_git(mirror.git_dir, "log", "-1", "--format=%cI", commit, "--")
    return result.stdout.decode("ascii", "replace").strip() or None
