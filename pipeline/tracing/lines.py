"""Files of a snapshot as numbered lines, and the check that a quote stands where somebody says it does.

Models cite lines; a citation that does not hold is worth nothing. Lines of a notebook are the source lines of its
cells, with the numbers of the lines on which they are stored. Non-goal: parsing.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Final

from pipeline.repository import Snapshot
from pipeline.tracing.source import notebook_cells

__all__ = ["FileLines", "quote_problem"]

_NOTEBOOK_LIMIT: Final = 40_000_000
_QUOTE_LINES: Final = 80
_LEAST: Final = 3
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


def quote_problem(files: FileLines, path: str, start: int, end: int, quote: str) -> str | None:
    """Why a quote does not stand in the lines that are named, in words; None when it does.

    Args:
        files: where to look.
        path: the file.
        start: first line, from 1.
        end: last line, included.
        quote: the text; white space may differ, nothing else.
    """
    if not files.readable(path):
        return f"{path} is no text file of the repository"
    if end < start or end - start >= _QUOTE_LINES:
        return f"lines {start}-{end} are no range of at most {_QUOTE_LINES} lines"
    wanted = _plain(quote)
    if len(re.findall(r"\w", wanted)) < _LEAST:
        return "the quote says nothing: it has fewer than three letters or digits"
    held = _plain(" ".join(text for number, text in files.lines(path) if start <= number <= end))
    if wanted not in held:
        elsewhere = next((number for number, text in files.lines(path) if _first(quote) in _plain(text)), 0)
        hint = f"; a line like its first is line {elsewhere}" if elsewhere else ""
        return f"the quote does not stand in {path}:{start}-{end}{hint}"
    return None


def _plain(text: str) -> str:
    """White space made equal; nothing else may differ."""
    return " ".join(text.split())


def _first(quote: str) -> str:
    return next((plain for line in quote.splitlines() if (plain := _plain(line))), quote)
