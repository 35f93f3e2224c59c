"""Python tracebacks in the logs of runs: where in the repository a program ended, and which path it could not have.

Logs are data: nothing of them is executed, and a log without a traceback is as good as one with.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection
from typing import Final, NamedTuple

from pipeline.repository import Snapshot

__all__ = ["TRACEBACK", "Frame", "Refused", "last_frame", "own_file", "refused_path"]

_FRAME: Final = re.compile(r'^[ \t]*File "([^"\n]+)", line (\d+), in ([^\n]+)\n(?:[ \t]+([^\n]+)\n)?', re.MULTILINE)
_NOT_OWN: Final = re.compile(r"/(?:site|dist)-packages/|/lib/python\d|^<")
TRACEBACK: Final = "Traceback (most recent call last):"
_REFUSED: Final = re.compile(
    r"^(?:\w+\.)*(FileNotFoundError|NotADirectoryError|PermissionError|OSError|IOError): [^\n]*?"
    r"['\"]([^'\"\n]+)['\"]\s*$",
    re.MULTILINE,
)
_NO_FOLDER: Final = re.compile(r"Cannot save file into a non-existent directory: ['\"]([^'\"\n]+)['\"]")
"""What pandas says in place of the path of the file."""
_WRITES: Final = re.compile(
    r"\bopen\([^\n]*['\"][wax]b?\+?b?['\"]|\b(?:os\.)?mkdir\(|\.(?:savefig|to_csv|to_json|to_excel|to_latex|to_parquet|"
    r"to_html|to_markdown|write_text|write_bytes|savetxt|savez|savez_compressed|save|imsave|imwrite)\("
)


class Frame(NamedTuple):
    """A place of the repository that stands in a traceback."""

    path: str
    """Of the repository."""
    line: int
    code: str
    """The line of code, as the traceback shows it; empty when it does not."""
    root: str
    """What stood before the path: where the repository lay when it ran."""


class Refused(NamedTuple):
    """A path that the system refused."""

    path: str
    """As the program named it, from the working directory of its command; from the repository's root when `rooted`."""
    writing: bool
    """Was it to be written, or made, there?"""
    rooted: bool = False
    """The program named it in full, and it lies inside the repository."""


def last_frame(log: str, snapshot: Snapshot) -> Frame | None:
    """The innermost place in the repository's own code of the last traceback; None without one."""
    files = {file.path for file in snapshot.files}
    for match in reversed(list(_FRAME.finditer(log[max(0, log.rfind(TRACEBACK)) :]))):
        own = None if _NOT_OWN.search(match[1]) else own_file(match[1], files)
        if own is not None:
            code = (match[4] or "").strip()
            return Frame(own, int(match[2]), code, match[1][: len(match[1]) - len(own)])
    return None


def own_file(path: str, files: Collection[str]) -> str | None:
    """The file of the repository that a path in a traceback means: the longest of its ends that is one."""
    parts = posixpath.normpath(path).split("/")
    ends = ("/".join(parts[start:]) for start in range(len(parts)))
    return next((end for end in ends if end in files), None)


def refused_path(log: str, snapshot: Snapshot) -> Refused | None:
    """The path for which the last traceback ended; None when the log ends otherwise."""
    tail = log[max(0, log.rfind(TRACEBACK)) :]
    frame = last_frame(log, snapshot)
    if folders := _NO_FOLDER.findall(tail):  # the last one: above it a frame of pandas shows the message unfilled
        return _told(posixpath.join(folders[-1], "file"), True, frame)
    found = list(_REFUSED.finditer(tail))
    if not found:
        return None
    refused = "Read-only file system" in found[-1][0] or found[-1][1] == "PermissionError"
    return _told(found[-1][2].strip(), refused or _WRITES.search(tail) is not None, frame)


def _told(path: str, writing: bool, frame: Frame | None) -> Refused:
    if frame is None or not posixpath.isabs(path) or not posixpath.isabs(frame.root):
        return Refused(path, writing)
    inside = posixpath.relpath(path, frame.root)
    return Refused(path, writing) if inside.startswith("..") else Refused(inside, writing, rooted=True)
