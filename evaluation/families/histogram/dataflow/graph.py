"""Which values are made of which others, across functions, modules and files of several programs.

Names, return values, parameters, attributes and files are the nodes of a graph. An edge of *data* says that a value is
computed from another, an edge of *control* that it was decided by another (`if pt > 30: count += 1`). What was drawn
from a distribution is not made by what it waited for: an edge of control into a node that only draws feed is not
followed, and how many numbers are drawn says nothing of what they are.

Non-goal: reading programs (`programs`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Final

__all__ = ["DRAWN", "SOURCE", "FlowGraph", "Key", "Sink", "file_key", "is_file_name", "name_key", "printed_key"]

Key = tuple[str, ...]
SOURCE: Final[Key] = ("source",)
"""Where the values that are followed begin."""
DRAWN: Final[Key] = ("drawn",)
"""A random generator of the program's own."""

_FILE_NAME: Final = re.compile(r"^[^\s:<>|]*\.[A-Za-z][\w]{0,9}(?:\.(?:gz|bz2|xz|zst))?$")


@dataclass(frozen=True)
class Sink:
    """A place that gives values away."""

    line: int
    keys: frozenset[Key]


class FlowGraph:
    """Nodes and edges; what reads and writes a file is joined with `join_files` when all programs were read."""

    def __init__(self) -> None:
        self.data: dict[Key, set[Key]] = defaultdict(set)
        self.control: dict[Key, set[Key]] = defaultdict(set)
        self.reads: list[tuple[Key, frozenset[Key]]] = []
        """(content that was read, what says which file)."""
        self.writes: list[tuple[Key, frozenset[Key], str]] = []
        """(what was written, what says which file and what goes into it, program)."""
        self.prints: dict[str, list[Sink]] = defaultdict(list)
        """Program -> places that print."""
        self._written: list[tuple[set[str], str]] = []

    def link(self, made: Key, of: Iterable[Key]) -> None:
        """A value is computed from others."""
        for key in of:
            self.data[key].add(made)

    def decide(self, made: Key, by: Iterable[Key]) -> None:
        """A value is decided by others."""
        for key in by:
            self.control[key].add(made)

    def reached(self, start: Key, *, control: bool = False) -> set[Key]:
        """Everything that is computed from a node; with `control` also what it decided, draws of their own excepted."""
        drawn = self.reached(DRAWN) - self.reached(start) if control else set()
        found, todo = {start}, [start]
        while todo:
            key = todo.pop()
            onward = set(self.data.get(key, ()))
            if control:
                onward |= self.control.get(key, set()) - drawn
            todo += onward - found
            found |= onward
        return found

    def join_files(self) -> None:
        """Lead what is written to a file to where it is read, by the file's name."""
        where = {key[1]: self._named(key) for key in [*self.data] if key[0] == "name"}
        for made, target, path in self.writes:
            files = {_plain(name) for name, found in where.items() if target & found}
            self._written.append((files, path))
            for file in files:
                self.link(file_key(file), [made])
        every = {_plain(name) for name in where}
        for made, given in self.reads:
            for pattern in {_plain(name) for name, found in where.items() if given & found}:
                self.link(made, [file_key(name) for name in {pattern, *every} if fnmatch(name, pattern)])

    def _named(self, name: Key) -> set[Key]:
        """Where a file's name gets to; what is read from the file or written to it does not carry the name on."""
        found, todo = {name}, [name]
        while todo:
            key = todo.pop()
            onward = set() if key[0] in {"read", "written"} else self.data.get(key, set())
            todo += onward - found
            found |= onward
        return found

    def writers(self, name: str) -> set[str]:
        """The programs that write a file; known after `join_files`."""
        return {path for files, path in self._written if any(fnmatch(_plain(name), file) for file in files)}

    def file_names(self) -> set[str]:
        """The files that are read or written, without directories; some are patterns."""
        return {_plain(key[1]) for key in self.data if key[0] == "name"}


def file_key(name: str) -> Key:
    """The content of a file, by its name without directories."""
    return ("file", _plain(name))


def name_key(name: str) -> Key:
    """The name of a file, as a text that programs hand on."""
    return ("name", name)


def printed_key(path: str) -> Key:
    """What a program prints."""
    return ("printed", path)


def is_file_name(text: str) -> bool:
    """Does a text look like the name of a file (or a pattern of names)?"""
    return bool(_FILE_NAME.match(_plain(text)))


def _plain(name: str) -> str:
    """Without directories, and without the tree that is named behind a file (`out/events.root:Delphes/HT`)."""
    whole = re.sub(r"(\.\w+):[^/].*$", r"\1", name)
    return whole.rsplit("/", 1)[-1]
