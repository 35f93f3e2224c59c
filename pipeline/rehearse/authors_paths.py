"""Places where a program looks for its author's files, and where it writes: `/home/somebody/project/data/points.csv`.

Nothing is there when somebody else runs it, although the file is committed. It is the same file where its name, or else
the longest end of the path, is that of exactly one file or folder of the repository, or one of several is nearest by
the rest of its path; the run then finds it there, and the report says so. A folder that the author wrote into is the
one of the repository that holds the files found so, else one of its name, else where the command runs.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pipeline.repository import Snapshot
from pipeline.validation.diagnosis import missing_path, read_tail
from pipeline.validation.tracebacks import refused_path

__all__ = ["Places", "place_authors_path"]

Places = tuple[tuple[str, str], ...]
"""(absolute path, file or folder of the repository that is found there)."""
_SYSTEM: Final = frozenset({
    "bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "opt", "proc", "run", "sbin", "sys", "tmp", "usr",
    "var", "work",
})  # fmt: skip
"""Folders of the sandbox itself: a log can name any path, and what is put there must not be in the run's way."""
_DEEP: Final = 2
"""Levels of a path from which on something can be put there: the root of the sandbox cannot be written."""


def place_authors_path(
    directory: Path, number: int, snapshot: Snapshot, cwd: str, placed: Places = ()
) -> Places | None:
    """What has to be found at the author's paths for a failed command to go on; None where that is not known.

    Args:
        directory: where the streams of the run lie.
        number: of the command that failed.
        snapshot: the repository.
        cwd: directory of the repository in which the command runs.
        placed: what was found so in earlier runs of the command.
    """
    for stream in ("stderr", "stdout"):
        log = read_tail(directory / f"{number}.{stream}")
        refused = refused_path(log, snapshot)
        if refused is not None and refused.rooted:
            return None
        path = refused.path if refused is not None else missing_path(log).strip("'\"` ")
        if posixpath.isabs(path):
            path = f"/{posixpath.normpath(path).lstrip('/')}"
            parts = path.split("/")[1:]
            if parts[0] in _SYSTEM:
                return None
            if refused is not None and refused.writing:
                return _writable(path if "." not in parts[-1] else posixpath.dirname(path), snapshot, cwd, placed)
            taken = any(f"{path}/".startswith(f"{other}/") or other.startswith(f"{path}/") for other, _ in placed)
            own = None if taken or len(parts) < _DEEP else _same(path, snapshot)
            return (*placed, (path, own)) if own is not None else None
    return None


def _writable(folder: str, snapshot: Snapshot, cwd: str, placed: Places) -> Places | None:
    """With a folder of the author's as one of the repository; what was placed inside it has to lie there as well."""
    if folder.count("/") < _DEEP or any(f"{folder}/".startswith(f"{other}/") for other, _ in placed):
        return None
    inside = [(path[len(folder) :], own) for path, own in placed if path.startswith(f"{folder}/")]
    homes = {own[: -len(end)] if f"/{own}".endswith(end) else None for end, own in inside}
    if None in homes or len(homes) > 1:
        return None
    home = next(iter(homes), None)
    if home is None:
        found = _same(folder, snapshot)
        home = found if found is not None and found not in {file.path for file in snapshot.files} else cwd
    rest = tuple(item for item in placed if not item[0].startswith(f"{folder}/"))
    return (*rest, (folder, home.strip("/") or "."))


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
            own = _nearest(path, found) if len({known[own] for own in found}) > 1 else found[0]
            # what a link leads to is not what the name says
            linked = own is not None and (snapshot.root / own).resolve() != snapshot.root.resolve() / own
            return None if linked else own
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
