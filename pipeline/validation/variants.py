"""A copy of a repository with files of ours (a model's script, a configuration of the smoke scale) or without some."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from pipeline.digests import text_digest
from pipeline.files import remove_tree, write_text
from pipeline.repository import RepositoryFile, Snapshot

__all__ = ["with_files", "without_files"]


def without_files(snapshot: Snapshot, paths: Collection[str], into: Path) -> Snapshot:
    """The repository without these files, as a snapshot of its own (not saved).

    Args:
        snapshot: the repository; it is not changed.
        paths: files of it.
        into: folder to make; what lies there is replaced.
    """
    remove_tree(into)
    shutil.copytree(snapshot.root, into, symlinks=True)
    for path in paths:
        (into / path).unlink()
    return snapshot.evolve(root=into, files=tuple(file for file in snapshot.files if file.path not in paths))


def with_files(snapshot: Snapshot, files: Mapping[str, str], into: Path) -> Snapshot:
    """The repository with these files added or replaced, as a snapshot of its own (not saved).

    Args:
        snapshot: the repository; it is not changed.
        files: path -> text.
        into: folder to make; what lies there is replaced.
    """
    remove_tree(into)
    shutil.copytree(snapshot.root, into, symlinks=True)
    known = {file.path: file for file in snapshot.files}
    for path, text in files.items():
        target = into / path
        if target.is_symlink():
            target.unlink()  # never through a link: it may lead out of the copy
        write_text(target, text)
        size, digest = len(text.encode("utf-8")), text_digest(text)
        old = known.get(path)
        known[path] = (
            old.evolve(size=size, sha256=digest) if old else RepositoryFile(path=path, size=size, sha256=digest)
        )
    return snapshot.evolve(root=into, files=tuple(known[path] for path in sorted(known)))
