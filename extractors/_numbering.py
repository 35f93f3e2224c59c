"""Section numbers as printed: reading them off a line, and which may follow which.

`1`, `3.1`, `A`, `Appendix B`, `IV`. Non-goal: whether a line is a heading (`extractors.sections`).
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["follows", "number_value", "parse_number", "roman_value"]

_NUMBERED: Final = re.compile(
    r"^(?:(?P<word>Appendix|APPENDIX|Section|Supplement(?:ary)?)\s+)?"
    r"(?P<number>(?:[IVX]{2,5}(?=[.\s])|[A-Z]|\d{1,2})(?:\.\d{1,2}){0,3})(?P<dot>[.:)_]?)\s*(?P<title>(?=\S).*)$"
)


def parse_number(text: str, *, set_off: bool = False) -> tuple[list[str], str] | None:
    """(number parts, title) of a numbered heading: `3.1 Data`, `A. Proofs`, `Appendix B: Data`, `IV. RESULTS`.

    A letter before a word in lower case is an article, unless it is `set_off` by more white than stands between words.
    """
    match = _NUMBERED.match(text)
    if match is None:
        return None
    number, title = match["number"], match["title"]
    if not re.match(r"[(“\"‘$\\\[]|[^\W\d_]|\d+\w*[ -][^\W\d_]", title):
        return None
    spaced = text[match.end("dot") : match.start("title")] != ""
    letter = number.isalpha() and len(number) == 1
    if letter and not match["word"] and not (spaced and (title[0].isupper() or set_off)):
        return None
    if not letter and not match["dot"] and not spaced and title[0].islower():
        return None
    if number.isalpha() and len(number) > 1 and not (match["dot"] or match["word"]):
        return None
    return number.split("."), title


def roman_value(text: str) -> int:
    """The value of a Roman number up to 39."""
    values = {"I": 1, "V": 5, "X": 10}
    total = 0
    for index, letter in enumerate(text):
        larger = index + 1 < len(text) and values[text[index + 1]] > values[letter]
        total += -values[letter] if larger else values[letter]
    return total


def number_value(part: str) -> int:
    """The value of one part of a section number: digits, or a letter's place in the alphabet."""
    return int(part) if part.isdigit() else ord(part[0]) - 64


def follows(before: list[str], after: list[str]) -> bool:
    """May `after` be the next section number after `before`? One number may be missing (a heading not read)."""
    if before[0].isdigit() != after[0].isdigit():
        return before[0].isdigit() and after == ["A"]
    old, new = [number_value(part) for part in before], [number_value(part) for part in after]
    if len(new) == len(old) + 1:
        return new[:-1] == old and new[-1] <= 2
    if len(new) > len(old):
        return False
    step = new[-1] - old[len(new) - 1]
    return new[:-1] == old[: len(new) - 1] and 1 <= step <= (2 if len(new) > 1 else 1)
