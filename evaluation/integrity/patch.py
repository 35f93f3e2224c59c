"""A patch as values: which files it touches, which lines it adds, and what a file looks like with it applied.

Reads what `git diff` writes (renames, deletions, quoted paths, binary markers). Nothing is executed, no path is ever
opened: applying is done on texts. Non-goals: fuzzy application, decoding of binary deltas.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

__all__ = ["Hunk", "PatchFile", "PatchLine", "apply_hunks", "parse_patch"]

Action = Literal["added", "modified", "deleted"]

_HEADER: Final = re.compile(r"^diff --git (?P<paths>.+)$")
_HUNK: Final = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ESCAPE: Final = re.compile(r"\\([0-7]{3}|.)")
_SIMPLE: Final = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


@dataclass(frozen=True, slots=True)
class PatchLine:
    """A line that the patch adds, with its number (from 1) in the new file."""

    number: int
    text: str


@dataclass(slots=True)
class Hunk:
    """One `@@` block: where it starts in the old file, and its lines with their sign."""

    old_start: int
    new_start: int
    lines: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class PatchFile:
    """What a patch does to one file."""

    path: str
    action: Action = "modified"
    binary: bool = False
    hunks: list[Hunk] = field(default_factory=list)

    @property
    def added(self) -> tuple[PatchLine, ...]:
        """Added lines, in order."""
        found = []
        for hunk in self.hunks:
            number = hunk.new_start
            for sign, text in hunk.lines:
                if sign == "+":
                    found.append(PatchLine(number, text))
                if sign != "-":
                    number += 1
        return tuple(found)

    @property
    def added_text(self) -> str:
        """Added lines as one text; of a new file, its content."""
        return "\n".join(line.text for line in self.added)


def parse_patch(text: str) -> list[PatchFile]:
    """The files of a patch, sorted by path. Lines that belong to no file are ignored; never raises."""
    files: list[PatchFile] = []
    current: PatchFile | None = None
    hunk: Hunk | None = None
    remaining = [0, 0]  # lines of the old and the new file that the hunk still has to show
    for line in text.split("\n"):
        if hunk is not None and any(remaining) and line[:1] in {" ", "+", "-", ""}:
            sign = line[:1] or " "
            hunk.lines.append((sign, line[1:].removesuffix("\r")))
            remaining[0] -= sign != "+"
            remaining[1] -= sign != "-"
            continue
        if head := _HEADER.match(line):
            current, hunk = PatchFile(_path_of(head["paths"])), None
            files.append(current)
        elif current is not None:
            if start := _HUNK.match(line):
                hunk = Hunk(int(start[1]), int(start[3]))
                remaining = [int(start[2] or 1), int(start[4] or 1)]
                current.hunks.append(hunk)
            else:
                _extended(current, line)
    return sorted(files, key=lambda item: item.path)


def _extended(file: PatchFile, line: str) -> None:
    """Header lines between `diff --git` and the first hunk."""
    if line.startswith("new file mode"):
        file.action = "added"
    elif line.startswith("deleted file mode"):
        file.action = "deleted"
    elif line.startswith(("Binary files ", "GIT binary patch")):
        file.binary = True
    elif line.startswith("rename to "):
        file.path = _unquoted(line.removeprefix("rename to "))
    elif line.startswith("+++ ") and line[4:] != "/dev/null":
        file.path = _stripped(_unquoted(line[4:].split("\t", maxsplit=1)[0]))


def _path_of(paths: str) -> str:
    """The new path of `a/x b/x`; exact where both are equal or quoted, corrected by later header lines otherwise."""
    if paths.endswith('"') and (start := paths.rfind(' "')) >= 0:
        return _stripped(_unquoted(paths[start + 1 :]))
    half = (len(paths) - 1) // 2
    if paths[:half].removeprefix("a/") == paths[half + 1 :].removeprefix("b/"):
        return _stripped(paths[half + 1 :])
    return _stripped(paths.rpartition(" b/")[2])


def _stripped(path: str) -> str:
    return path[2:] if path[:2] in {"a/", "b/"} else path


def _unquoted(path: str) -> str:
    """Undo git's C-style quoting: octal escapes are bytes of UTF-8."""
    path = path.strip()
    if len(path) < 2 or path[0] != '"' or path[-1] != '"':
        return path
    data = bytearray()
    position = 0
    body = path[1:-1]
    for match in _ESCAPE.finditer(body):
        data += body[position : match.start()].encode("utf-8", "surrogateescape")
        escaped = match[1]
        if len(escaped) == 3:
            data.append(int(escaped, 8) & 0xFF)
        else:
            data += _SIMPLE.get(escaped, escaped).encode()
        position = match.end()
    data += body[position:].encode("utf-8", "surrogateescape")
    return data.decode("utf-8", "replace")


def apply_hunks(original: str, hunks: Iterable[Hunk]) -> str | None:
    """The new text of a file; None when a hunk does not fit the original exactly where it says."""
    old = original.split("\n")
    result: list[str] = []
    position = 0
    for hunk in hunks:
        start = max(hunk.old_start - 1, 0) if _touches_old(hunk.lines) else hunk.old_start
        if start < position or start > len(old):
            return None
        result += old[position:start]
        position = start
        for sign, text in hunk.lines:
            if sign == "+":
                result.append(text)
                continue
            if position >= len(old) or old[position].removesuffix("\r") != text:
                return None
            if sign == " ":
                result.append(old[position])
            position += 1
    return "\n".join(result + old[position:])


def _touches_old(lines: Sequence[tuple[str, str]]) -> bool:
    """Does a hunk show lines of the old file? `@@ -5,0 +6,2 @@` inserts *after* line 5."""
    return any(sign != "+" for sign, _ in lines)
