"""The files of a masked repository as an archive: without `.git`, and the same bytes for the same files."""

from __future__ import annotations

import gzip
import os
import tarfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

__all__ = ["write_archive"]


def write_archive(
    path: Path, repository: Path, *, names: Iterable[str] | None = None, comment: str | None = None
) -> None:
    """Pack a work tree as `.tar.gz`; contents, links and the executable bit are kept, owners and times are not.

    Args:
        path: to write; its directory is made.
        repository: the work tree.
        names: pack only these paths of it, those that are there; None: all.
        comment: kept in the archive's header.
    """

    def neutral(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if entry.name == ".git" or entry.name.startswith(".git/"):
            return None
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o111 else 0o644
        return entry

    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        path.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed,
        tarfile.open(
            fileobj=packed, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"comment": comment} if comment else None
        ) as archive,
    ):
        chosen = [entry.name for entry in repository.iterdir()] if names is None else list(names)
        for name in sorted(chosen, key=os.fsencode):
            entry = repository / name
            inside = not PurePosixPath(name).is_absolute() and ".." not in PurePosixPath(name).parts
            if inside and (entry.exists() or entry.is_symlink()):
                archive.add(entry, arcname=name, filter=neutral)
