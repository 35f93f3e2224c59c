"""The last traceback of a log, as Python and as notebooks print it: what was raised, and through which places."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

__all__ = ["Place", "Trace", "read_trace"]

_HEAD: Final = "Traceback (most recent call last)"
_PLACE: Final = re.compile(
    r'^[ \t]*File "(?P<path>[^"\n]+)", line (?P<line>\d+)(?:, in [^\n]*)?(?:\n[ \t]+(?P<code>[^\n]+))?'
    # of a notebook: a cell has no path, and an arrow marks the line
    r"|^(?:File )?(?P<file>[^\s:<]+\.py):(?P<number>\d+), in |^(?P<cell>(?:Cell|Input) In ?\[\d+\])[^\n]*"
    r"|^-+> ?(?P<at>\d+) (?P<shown>[^\n]*)",
    re.MULTILINE,
)
_RAISED: Final = re.compile(r"^(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*)(?::[ \t]|:?$)", re.MULTILINE)
_PACKAGE: Final = re.compile(r"/(?:site|dist)-packages/")
_PYTHON: Final = re.compile(r"/lib/python\d[^/]*/|^<")


class Place(NamedTuple):
    """A line that a traceback goes through."""

    path: str
    """As it is printed; empty for a cell of a notebook."""
    line: int
    code: str
    """Empty where it is not shown."""

    @property
    def in_package(self) -> bool:
        """Is it a line of an installed package?"""
        return _PACKAGE.search(self.path) is not None


class Trace(NamedTuple):
    """The last traceback of a log."""

    error: str
    """Name of the exception's class, without its module."""
    places: tuple[Place, ...]
    """Innermost last; those in Python's own library are left out: what they refuse comes from their caller."""
    text: str


def read_trace(log: str) -> Trace | None:
    """The last traceback; None without one, or where it does not say what was raised."""
    start = log.rfind(_HEAD)
    if start < 0:
        return None
    text = log[start:]
    places: list[Place] = []
    end = 0
    for match in _PLACE.finditer(text):
        end = match.end()
        if match["at"]:  # the line of the place above
            if places:
                places[-1] = places[-1]._replace(line=int(match["at"]), code=match["shown"].strip())
        else:
            path, line = match["path"] or match["file"] or "", match["line"] or match["number"] or 0
            places.append(Place(path, int(line), (match["code"] or "").strip()))
    raised = _RAISED.search(text, end)
    own = tuple(place for place in places if place.in_package or not _PYTHON.search(place.path))
    return Trace(raised[1], own, text) if raised is not None and own else None
