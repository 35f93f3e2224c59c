"""Commands that the paper itself prints: an appendix that says which program draws which figure.

Typesetting loses underscores and hyphens (`python3 constant v momentum.py`), so that a program is recognised by the
letters and digits of its name, where these are the name of exactly one file.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from pipeline.locator import RepositoryIndex
from pipeline.locator.launch import is_python, normalise
from pipeline.locator.links import KnownCommand
from pipeline.paper import Document

__all__ = ["PrintedCommand", "read_printed_commands"]

_LONGEST: Final = 8
"""Words that a name without its underscores may be printed as."""
_PROGRAMS: Final = (".py", ".ipynb")
_MARKS: Final = ".,;:)”\"'`"


class PrintedCommand(NamedTuple):
    """A command of the paper that runs a file of the repository."""

    command: KnownCommand
    page: int
    text: str
    """The sentence, or the row of the table, that prints it."""


def read_printed_commands(index: RepositoryIndex, document: Document) -> Iterator[PrintedCommand]:
    """The commands of the paper, tables first, each in reading order.

    Args:
        index: the repository.
        document: the paper.
    """
    programs = _programs(index)
    for table in document.tables:
        for row, cells in enumerate(table.grid):
            page = table.place_of(row, 0)[0]  # a command may be read as two cells, where a column of them is aligned
            for command in _commands(" ".join(cells), programs, page):
                yield PrintedCommand(command, page, f"{table.label}: {' '.join(cells)}")
    for passage in document.passages:
        for command in _commands(passage.text, programs, passage.page):
            yield PrintedCommand(command, passage.page, passage.text)


def _programs(index: RepositoryIndex) -> dict[str, str]:
    """Letters and digits of a name -> the one file that has it."""
    found: dict[str, list[str]] = {}
    for path in index.position:
        if path.endswith(_PROGRAMS):
            found.setdefault(_letters(posixpath.basename(path)), []).append(path)
    return {letters: paths[0] for letters, paths in found.items() if len(paths) == 1}


def _letters(text: str) -> str:
    return "".join(char for char in text.lower() if char.isalnum())


def _commands(text: str, programs: dict[str, str], page: int) -> Iterator[KnownCommand]:
    words = text.split()
    for number, word in enumerate(words):
        if not is_python(word.strip(_MARKS)):
            continue
        for length in range(1, min(_LONGEST, len(words) - number - 1) + 1):
            name = words[number + 1 : number + 1 + length]
            last = name[-1].rstrip(_MARKS)
            path = programs.get(_letters(posixpath.basename("".join([*name[:-1], last]))))
            if path is not None and last.endswith(_PROGRAMS):
                rest = words[number + 1 + length :] if name[-1] == last else []
                launch = normalise(("python", posixpath.basename(path), *_options(rest)))
                if launch is not None:
                    yield KnownCommand(launch, path, posixpath.dirname(path) or ".", "", page, "paper", text)
                break


def _options(words: Sequence[str]) -> list[str]:
    """The options at the beginning of a text, each with its value: prose goes on after a command."""
    kept: list[str] = []
    for word in words:
        if not word.startswith("-") and not (kept and kept[-1].startswith("-") and "=" not in kept[-1]):
            break
        kept.append(word.rstrip(_MARKS))
        if word.endswith(tuple(_MARKS)):
            break
    return kept
