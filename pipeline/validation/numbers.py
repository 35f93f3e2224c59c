"""Numbers as people and programs print them: sign, thousands, exponent, percent, plus-minus; and how exact they are.

Non-goal: units other than the percent sign, and numbers inside names (`R2`, `exp1`), versions, dates and times.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

__all__ = ["Number", "absolute_values", "find_numbers", "half_unit", "is_number", "parse_number", "plain_exponents"]

_SIGN = "+\\-\u2212\u2013"
_BODY = r"(?:\d{1,3}(?:,\d{3})+(?![\d,])|\d+)(?:\.\d+)?|\.\d+"
_EXPONENT = rf"(?:[eE][{_SIGN}]?\d{{1,3}})?"
# Not part of a word, a version (1.2.3), a date (2024-01-02), a time (12:30:05), a path or a hexadecimal number. A sign
# counts only where no operand stands before it (`3-5` is two numbers, `= -5` and `(-5` one).
_NUMBER = re.compile(
    rf"(?<![\w./])(?P<sign>(?<![\w)\]])[{_SIGN}])?(?P<body>{_BODY})(?P<exponent>{_EXPONENT})(?P<percent>\s?(?:%|\\%))?"
    r"(?![\w]|\.\d|:\d|/[a-zA-Z])"
)
_UNCERTAIN = re.compile(
    rf"\s*+\$?\s*+[\[(]?\s*+(?:±|\+/-|\+-|\\pm)\s*(?P<value>(?:{_BODY}){_EXPONENT})\s*\$?\s*(?:%|\\%)?\s*[\])]?"
)
_TIMES_TEN = re.compile(
    rf"(?P<times>(?<=\d)\s?(?:[×·*x]|\\times|\\cdot)\s?)?(?<![\w.])10\s?(?:\^|\*\*)\s?"
    rf"\{{?(?P<sign>[{_SIGN}]?)(?P<digits>\d{{1,3}})\}}?(?!\d)"
)
_RAISED = re.compile("(?<=10)[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3}")
_LOWERED = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
_TIME = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?"
_DATE = re.compile(rf"\d{{4}}[-/]\d{{1,2}}[-/]\d{{1,2}}(?:[T ]{_TIME}Z?)?|\b{_TIME}\b")


class Number(NamedTuple):
    """A number found in a text."""

    value: float
    text: str
    """As printed, the part behind a plus-minus sign and the percent sign included."""
    decimals: int
    """Decimal position of the last printed digit; negative for `1.5e3` (1 decimal, exponent 3: -2)."""
    percent: bool
    uncertainty: float | None
    start: int
    end: int
    """Half-open span in the text."""


def half_unit(decimals: int) -> float:
    """Half a unit of the last printed digit: what rounding may have hidden."""
    return 0.5 * 10.0 ** min(-decimals, 308)  # `0e999` is a number, ten to that power is none


def plain_exponents(text: str) -> str:
    """A text with powers of ten as programs print them: `3.4 × 10^-5` as `3.4e-5`, `10⁶` as `1e6`."""
    text = _RAISED.sub(lambda match: f"^{match[0].translate(_LOWERED)}", text)
    return _TIMES_TEN.sub(
        lambda match: f"{'' if match['times'] else '1'}e{_ascii_sign(match['sign'])}{match['digits']}", text
    )


def absolute_values(text: str, *, fractions: bool = False) -> frozenset[float]:
    """The numbers of a text without their sign: of a program, what it sets.

    Args:
        text: any number of lines.
        fractions: only those that print with digits behind a point.
    """
    found = (number for line in text.splitlines() for number in find_numbers(line))
    return frozenset(abs(number.value) for number in found if not fractions or "." in number.text)


def find_numbers(text: str) -> Iterator[Number]:
    """The numbers of a line, left to right; dates, times and numbers that belong to a name are left out.

    Args:
        text: one line without line break.
    """
    blocked = [match.span() for match in _DATE.finditer(text)]
    position = 0
    while match := _NUMBER.search(text, position):
        position = match.end()
        if any(start <= match.start() < end for start, end in blocked):
            continue
        body, exponent = match["body"].replace(",", ""), match["exponent"]
        value = float(body + _ascii_sign(exponent))
        if match["sign"] and _ascii_sign(match["sign"]) == "-":
            value = -value
        if not math.isfinite(value):
            continue
        end = match.end()
        uncertainty = None
        if spread := _UNCERTAIN.match(text, end):
            uncertainty = float(_ascii_sign(spread["value"].replace(",", "")))
            end = position = spread.end()
        shift = int(_ascii_sign(exponent[1:])) if exponent else 0
        decimals = (len(body.partition(".")[2])) - shift
        percent = match["percent"] is not None or "%" in text[match.end() : end]
        yield Number(value, text[match.start() : end].strip(), decimals, percent, uncertainty, match.start(), end)


@lru_cache(maxsize=65536)  # finding tables in a text asks for each cell of a line several times
def parse_number(cell: str) -> Number | None:
    """The number that a cell consists of (white space, markup and emphasis apart); None when it is something else."""
    stripped = re.sub(r"\\(?:textbf|mathbf|underline|num|emph)\{([^{}]*)\}", r"\1", cell)
    stripped = stripped.strip().strip("*_$`'\" ~\t↑↓†‡")
    if stripped.startswith("(") and stripped.endswith(")"):
        stripped = stripped[1:-1].strip()
    numbers = list(find_numbers(stripped))
    if len(numbers) == 1 and numbers[0].start == 0 and numbers[0].end == len(stripped):
        return numbers[0]
    return None


def is_number(cell: str) -> bool:
    """Does a cell hold one number and nothing else?"""
    return parse_number(cell) is not None


def _ascii_sign(text: str) -> str:
    return text.replace("\u2212", "-").replace("\u2013", "-")
