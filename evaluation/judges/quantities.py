"""The numbers of a sentence with what they are numbers of: value, unit, exactness, and the words beside them.

Two statements of a number agree when they may be the same number at the precision at which they were printed, in
percent or as a fraction. Non-goal: numbers that a response reports by name (`conclusion.claim_item`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from evaluation.judges.lexicon import content
from pipeline.validation.numbers import find_numbers, half_unit, plain_exponents
from pipeline.validation.tokens import SHARES

__all__ = ["Quantity", "agreement", "quantities_in", "reported_quantity"]

Unit = Literal["", "%", "x", "points"]
_ABOUT: Final = re.compile(
    r"(?:about|around|approximately|approx\.?|roughly|nearly|near|close to|~|≈|circa|some|almost)\s*$", re.I
)
_ABOVE: Final = re.compile(
    r"(?:above|over|more than|at least|exceed\w*|greater than|higher than|surpass\w*|>|≥|>=)\s*$", re.I
)
_BELOW: Final = re.compile(
    r"(?:below|under|less than|at most|lower than|fewer than|smaller than|within|up to|<|≤|<=)\s*$", re.I
)
_TIMES: Final = re.compile(r"^\s*(?:×|x\b|times\b|-?fold\b)", re.I)
_POINTS: Final = re.compile(r"^\s*(?:percentage points?|points?|pp\b|p\.p\.)", re.I)
_RANGE: Final = re.compile(r"^\s*(?:%\s*)?(?:-|–|to)\s*$")
_WORDS: Final = (
    (r"\b(?:twice|twofold|doubl(?:e|es|ed|ing))\b", 2.0),
    (r"\b(?:thrice|threefold|tripl(?:e|es|ed|ing))\b", 3.0),
                 (r"\b(?:half|halv(?:e|es|ed|ing))\b", 0.5))  # fmt: skip
_REFERENCE: Final = re.compile(
    r"(?:\b(?:fig(?:ure)?s?|tab(?:le)?s?|sections?|sec|eq(?:uation)?s?|appendix|seeds?|step)\.?|"
    r"#)\s*(?:\d+[\s,&-]+(?:and )?)*$",
    re.I,
)
_REFERRED: Final = 80
"""Characters before a number in which a figure or section is named that it is the number of."""

_NAME: Final = re.compile(r"[A-Za-z][-‐‑]?$")
"""`U-NET-128`: part of a name."""

RELATIVE: Final = 0.02
"""A re-run of an experiment is taken to reproduce a printed number within 2 %: above the spread of seeds of most
published accuracies, below the differences that papers report as findings."""
RELATIVE_ABOUT: Final = 0.05
"""`around 95 %` leaves more room."""
DOUBT: Final = 2.0
"""Between one and this many tolerances nothing is decided."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its neighbourhood."""

    low: float
    """The number; of a range its lower end."""
    high: float
    unit: Unit
    bound: Literal["", "above", "below"]
    tolerance: float
    near: frozenset[str]
    """Telling words beside it."""
    text: str


_ONES: Final = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_SPELT: Final = {word: str(n) for n, word in enumerate(_ONES, 2)}
_SPELT_NUMBER: Final = re.compile(rf"\b({'|'.join(_SPELT)})(?=[ -](?:times|fold|percent|points|percentage))", re.I)


def reported_quantity(name: str, value: float) -> Quantity:
    """A number of `conclusion.numbers`."""
    return Quantity(value, value, "", "", abs(value) * RELATIVE, content(name), f"{value:.12g}")


def _spaced(sentence: str) -> str:
    """`2x` and `six times` with their numbers apart, in digits."""
    sentence = re.sub(r"(?<=\d)(?=[x×]\b|×)", " ", plain_exponents(sentence))
    sentence = re.sub(r"(?<=\d)\s*percent\b", "%", sentence)
    return _SPELT_NUMBER.sub(lambda m: _SPELT[m[1].lower()], sentence)


def quantities_in(sentence: str) -> list[Quantity]:
    """The quantities of a sentence, left to right; numbers of figures, tables and sections are none."""
    found: list[Quantity] = []
    sentence = _spaced(sentence)
    numbers = list(find_numbers(sentence))
    last_near: frozenset[str] = frozenset()
    skip = False
    for index, number in enumerate(numbers):
        if skip:
            skip = False
            continue
        before = sentence[numbers[index - 1].end if index else 0 : number.start]
        if _REFERENCE.search(sentence[max(0, number.start - _REFERRED) : number.start]):
            continue
        if _NAME.search(sentence[max(0, number.start - 2) : number.start]):
            continue
        last, high = number, number.value
        following = numbers[index + 1] if index + 1 < len(numbers) else None
        if following and _RANGE.match(sentence[number.end : following.start]) and "from" not in before[-8:].lower():
            last, high, skip = following, abs(following.value) if following.text[0] in "-–" else following.value, True
        end = (
            numbers[index + 2 if skip else index + 1].start
            if index + (2 if skip else 1) < len(numbers)
            else len(sentence)
        )
        after = sentence[last.end : end]
        unit: Unit = (
            "x"
            if _TIMES.match(after)
            else "points"
            if _POINTS.match(after)
            else "%"
            if number.percent or last.percent
            else ""
        )
        bound: Literal["", "above", "below"] = (
            "above" if _ABOVE.search(before) else "below" if _BELOW.search(before) else ""
        )
        about = bool(_ABOUT.search(before)) or skip
        size = max(abs(number.value), abs(high))
        tolerance = max(half_unit(number.decimals), size * (RELATIVE_ABOUT if about else RELATIVE))
        # `from 45.0 to 72.1`: the second is of what the first is of
        near = _near(before, after)
        near = near if content(before) else near | last_near
        last_near = near
        found.append(
            Quantity(min(number.value, high), max(number.value, high), unit, bound, tolerance, near, number.text)
        )
    for pattern, factor in _WORDS:
        for match in re.finditer(pattern, sentence, re.I):
            near = _near(sentence[: match.start()], sentence[match.end() :])
            found.append(Quantity(factor, factor, "x", "", 0.05 * factor, near, match[0]))
    return found


def _near(before: str, after: str) -> frozenset[str]:
    """Words that say what a number is of: up to eight before it in its own phrase, and the three behind it."""
    behind = re.split(r"[,;:.()]|\b(?:and|as|when|while|with|from|to|for|on|in|than|by)\b", after, maxsplit=1)[0]
    front = next((piece for piece in reversed(re.split(r"[;()]", before)) if content(piece)), "")
    return content(" ".join(front.split()[-8:])) | content(" ".join(behind.split()[:3]))


def agreement(one: Quantity, two: Quantity) -> bool | None:
    """Same number (True), another (False), or too close to say (None)? None also where the units cannot be compared."""
    if (one.unit == "x") != (two.unit == "x") or {one.unit, two.unit} == {"", "points"}:
        return None
    shares = "%" in (one.unit, two.unit) or bool(one.near & two.near & SHARES)
    scales = (1.0, 100.0, 0.01) if shares and not one.unit == two.unit == "%" else (1.0,)
    answers = [_compare(one, two, scale) for scale in scales]
    return True if True in answers else None if None in answers else False


def _compare(one: Quantity, two: Quantity, scale: float) -> bool | None:
    tolerance = max(one.tolerance, two.tolerance * scale)
    if one.bound and two.bound and one.bound != two.bound:
        low, high = (one.low, two.high * scale) if one.bound == "above" else (two.low * scale, one.high)
        return True if high >= low else False  # noqa: SIM210 - three-valued beside its siblings
    if bool(one.bound) != bool(two.bound):
        limit, value = (one.low, two.high * scale) if one.bound else (two.low * scale, one.high)
        bound = one.bound or two.bound
        if bound == "below":
            value = two.low * scale if one.bound else one.low
        excess = limit - value if bound == "above" else value - limit
        return True if excess <= tolerance / 2 else None if excess <= tolerance else False
    gap = max(one.low - two.high * scale, two.low * scale - one.high, 0.0)
    return True if gap <= tolerance else None if gap <= DOUBT * tolerance else False
