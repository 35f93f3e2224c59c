"""Files that a program looks for where its author had them: `/home/somebody/project/data/points.csv`.

Nothing is there when somebody else runs it, although the file is committed. It is the same file where its name, or else
the longest end of the path, is that of exactly one file or folder of the repository, or one of several is nearest by
the rest of its path; the run then sees it there, and the report says so.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pipeline.repository import Snapshot
from pipeline.validation.diagnosis import missing_path, read_tail
from pipeline.validation.plan import mapped_mounts
from pipeline.validation.tracebacks import refused_path

__all__ = ["find_committed"]

_SYSTEM: Final = frozenset({
    "bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "opt", "proc", "run", "sbin", "sys", "tmp", "usr",
    "work",
})  # fmt: skip
"""Folders of the sandbox itself: a log can name any path, and what is put there must not be in the run's way."""


def find_committed(
    directory: Path, number: int, snapshot: Snapshot, mapped: Sequence[tuple[str, str]] = ()
) -> tuple[str, str] | None:
    """The absolute path that a failed command did not find, and what of the repository it is; None without one.

    Args:
        directory: where the streams of the run lie.
        number: of the command that failed.
        snapshot: the repository.
        mapped: what was found so in earlier runs of the command.
    """
    for stream in ("stderr", "stdout"):
        log = read_tail(directory / f"{number}.{stream}")
        refused = refused_path(log, snapshot)
        if refused is not None and (refused.writing or refused.rooted):
            return None
        path = refused.path if refused is not None else missing_path(log).strip("'\"` ")
        if posixpath.isabs(path):
            path = f"/{posixpath.normpath(path).lstrip('/')}"
            taken = any(f"{path}/".startswith(f"{other}/") or other.startswith(f"{path}/") for other, _ in mapped)
            own = _same(path, snapshot) if not taken and path.split("/")[1] not in _SYSTEM else None
            return (path, own) if own is not None and mapped_mounts(snapshot.root, [(path, own)]) else None
    return None


def _same(path: str, snapshot: Snapshot) -> str | None:
    """The file or folder of the repository with the longest end of a path in common, where there is one such."""
    known = {file.path: file.sha256 for file in snapshot.files}
    for file in tuple(known):
        while file := posixpath.dirname(file):
            known.setdefault(file, file)
    parts = path.strip("/").split("/")
    for start in range(len(parts)):
        end = "/".join(parts[start:])
        found = sorted(own for own in known if own == end or own.endswith(f"/{end}"))
        if found:
            return _nearest(path, found) if len({known[own] for own in found}) > 1 else found[0]
    return None


def _nearest(path: str, found: Sequence[str]) -> str | None:
    """Of several the one that shares most parts of its path with it, where that is one alone.

    Seen: `.../iter_1/gen_art/gen_art_experiment_1/out.json`, and committed `round-1/experiment-1/src/out.json` and
    `round-2/experiment-1/src/out.json`.
    """
    wanted = _parts(path)
    shared = {own: (wanted & _parts(own)).total() for own in found}
    best = [own for own in found if shared[own] == max(shared.values())]
    return best[0] if len(best) == 1 else None


def _parts(path: str) -> Counter[str]:
    return Counter("".join(char if char.isalnum() else " " for char in path.lower()).split())
