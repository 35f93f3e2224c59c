"""The numbers of a line in every way that it may be meant: a number that is not seen would count as invented.

What was typed and what was printed are read alike, so that no spelling of a typed number makes a computed one of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pipeline.validation.numbers import Number, find_numbers

__all__ = ["every_number", "plain_units"]

_UNIT: Final = re.compile(r"(?<=\d)(?=(?![eE][-+]?\d)[A-Za-zµ]{1,3}\b)")
_LONGEST: Final = 20_000
"""Reading numbers takes time with the square of a line's length where it holds dates. Lines were cut here, once: of a
results file in one line of 50 kB the numbers behind counted as invented."""


def plain_units(line: str) -> str:
    """A line with units set apart from their numbers: `12.5s` is 12.5."""
    return _UNIT.sub(" ", line)


def every_number(line: str) -> Iterator[Number]:
    """The numbers of a line: `1,234` is 1 and 234, as in a table, and 1234; spans are those of a piece of the line."""
    for piece in _pieces(plain_units(re.sub(r"[;=]", " ", line))):
        yield from find_numbers(piece.replace(",", " , "))
        if "," in piece:
            yield from (number for number in find_numbers(piece) if "," in number.text)


def _pieces(line: str) -> Iterator[str]:
    """A line in pieces of at most `_LONGEST` characters, cut between numbers."""
    start = 0
    while len(line) - start > _LONGEST:
        end = start + _LONGEST
        cut = max(line.rfind(mark, start, end) for mark in " \t,") + 1 or end
        yield line[start:cut]
        start = cut
    yield line[start:]
