"""Files of a snapshot as numbered lines, as readers cite them.

Lines of a notebook are the source lines of its
cells, with the numbers of the lines on which they are stored. Non-goal: parsing.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Final

from pipeline.repository import Snapshot
from pipeline.tracing.source import notebook_cells

__all__ = ["FileLines"]

_NOTEBOOK_LIMIT: Final = 40_000_000
_KEPT: Final = 20_000_000
"""Characters held in memory; a search through a repository of 10,000 files reads more than that."""


class FileLines:
    """Files as numbered lines: those of the file; for a notebook, the source lines of its cells where they are stored.

    Args:
        snapshot: the repository.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._files = {file.path: file for file in snapshot.files}
        self._directories = {parent for path in self._files for parent in _parents(path)}
        self._kept: dict[str, tuple[tuple[int, str], ...]] = {}
        self._size = 0

    def __contains__(self, path: str) -> bool:
        return path in self._files

    def is_directory(self, path: str) -> bool:
        """Is `path` a directory of the repository?"""
        return path == "." or path in self._directories

    def readable(self, path: str) -> bool:
        """Is it a text file of the repository?"""
        return path in self._files and not self._files[path].binary

    def lines(self, path: str) -> tuple[tuple[int, str], ...]:
        """(line number, text) pairs; empty for what is not text."""
        if path in self._kept:
            return self._kept[path]
        lines = self._lines(path) if self.readable(path) else ()
        self._size += sum(len(text) for _, text in lines)
        if self._size > _KEPT:
            self._kept.clear()
            self._size = sum(len(text) for _, text in lines)
        self._kept[path] = lines
        return lines

    def _lines(self, path: str) -> tuple[tuple[int, str], ...]:
        text = self.snapshot.text(path, _NOTEBOOK_LIMIT if path.endswith(".ipynb") else 2_000_000)
        if path.endswith(".ipynb"):
            try:
                cells = notebook_cells(text)
            except ValueError:
                return tuple(enumerate(text.splitlines(), 1))
            return tuple((stored, line) for cell in cells for stored, line in zip(cell.stored, cell.lines, strict=True))
        return tuple(enumerate(text.splitlines(), 1))


def _parents(path: str) -> Iterator[str]:
    while path := posixpath.dirname(path):
        yield path
