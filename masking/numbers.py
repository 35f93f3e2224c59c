"""Where a text states a claimed number: beside its metric's name, beside its condition, or bare.

A number matches a claim when it rounds to the printed value, as such or as percentage and fraction of each other
(87.3 and 0.873). How much a match means depends on what stands beside it:

====================================================  =====  ========
what stands beside it                                 score  blocking
====================================================  =====  ========
the metric's name and a condition, in the same line   1.0    yes
the metric's name, number with >= 3 digits            0.9    yes
a condition, number with >= 3 digits                  0.8    yes
metric and condition, number with fewer digits        0.75   yes
the metric's name, number with fewer digits           0.4    no
nothing, number with >= 3 digits and a decimal point  0.3    no
====================================================  =====  ========

**Data files.** A column of a thousand values holds any given three-digit number by chance. For each file with a match
the numbers that stand in the same kind of context are counted; when more than `CHANCE` chance matches are expected
(count x 2 forms x 10^-digits: from 100 numbers on for three digits), the score drops to 0.5: reported, not blocking.
Bare matches are reported only when fewer than 0.1 are expected among all numbers of the file, so a data file of more
than 50 numbers needs a number of more than three digits to be mentioned at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

import numpy as np

from pipeline.task import NumericClaim

__all__ = ["BLOCKING", "NumberHit", "NumberProbe", "TextKind", "significant_digits"]

BLOCKING: Final = 0.7
"""Hits at or above this score fail a leak scan (shared with the other checks)."""
CHANCE: Final = 0.2
"""Chance matches expected in a file above which a contextual match proves nothing."""
BARE_CHANCE: Final = 0.1
DEMOTED: Final = 0.5
SIDE: Final = 160
"""Characters to either side that count as the same line (minified JSON is one line)."""
MAX_CANDIDATES: Final = 2000
BLOCK: Final = 3000
"""Characters to either side within which a blank-line separated block of prose or a table is searched."""

TextKind = Literal["code", "prose", "table"]

_NUMBER: Final = re.compile(
    rb"(?<![\w.])(?:\d{1,9}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE][-+]?\d{1,3})?(?!\d|\.\d)(?![eE]\d)", re.ASCII
)
_WORD: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+(?:\.\d+)?|[^\W\d_a-zA-Z]+")
_STOP: Final = frozenset(
    re.findall(
        r"\w+",
        "a an and at average by final for from in is mean median metric number of on our over per reported result "
        "score std task test the to total train validation value values we with x y",
    )
)
_ALIASES: Final[dict[str, tuple[str, ...]]] = {
    "mse": ("mean", "squared", "error"),
    "rmse": ("root", "squared", "error"),
    "mae": ("absolute", "error"),
    "ppl": ("perplexity",),
    "ari": ("adjusted", "rand", "index"),
    "nll": ("negative", "log", "likelihood"),
    "auc": ("auroc",),
    "ece": ("expected", "calibration", "error"),
}


def significant_digits(text: str) -> int:
    """Significant digits of a printed number: leading zeros do not count, trailing ones do after a point."""
    mantissa = re.split(r"[eE]", text.strip().lstrip("+-"), maxsplit=1)[0]
    digits = mantissa.replace(".", "").replace(",", "").lstrip("0")
    return len(digits) if "." in mantissa else len(digits.rstrip("0"))


@lru_cache(maxsize=4096)
def _words(text: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in _WORD.findall(text))


def _same_word(wanted: str, seen: str) -> bool:
    """`accuracy` and `acc`, `error` and `errors`: one is a beginning of the other."""
    if wanted == seen:
        return True
    if wanted[:1].isdigit() or min(len(wanted), len(seen)) < 3:
        return False
    return wanted.startswith(seen) or (len(wanted) >= 4 and seen.startswith(wanted))


def _names(text: str) -> tuple[tuple[str, ...], ...]:
    """The ways to write a name, each as words that must all be near; empty for a name that says nothing."""
    words = tuple(word for word in _words(text) if word not in _STOP and (len(word) > 1 or word.isdigit()))
    ways = [words] if words else []
    for short, long in _ALIASES.items():
        if short in words:
            ways.append(long)
        elif set(long) <= set(_words(text)):
            ways.append((short,))
    return tuple(ways)


def _mentions(ways: tuple[tuple[str, ...], ...], words: Sequence[str]) -> bool:
    distinct = set(words)
    return any(all(any(_same_word(word, seen) for seen in distinct) for word in way) for way in ways)


@dataclass(frozen=True, slots=True)
class _Form:
    """One way to write a claim's value: matches x with |x - value| <= half a unit of the last digit."""

    value: float
    tolerance: float


@dataclass(frozen=True, slots=True)
class _Target:
    claim: NumericClaim
    forms: tuple[_Form, ...]
    digits: int
    decimal: bool
    metric: tuple[tuple[str, ...], ...]
    conditions: tuple[tuple[tuple[str, ...], ...], ...]


def _target(claim: NumericClaim) -> _Target:
    printed = re.search(r"\d+(?:,\d{3})*(?:\.\d+)?", claim.text)
    digits = significant_digits(printed[0]) if printed else significant_digits(f"{claim.value:.{claim.decimals}f}")
    half = 0.5 * 10.0**-claim.decimals
    value = abs(claim.value)
    forms = [_Form(value, half)]
    if claim.unit == "%" or 1 < value <= 100:
        forms.append(_Form(value / 100, half / 100))
    elif 0 < value <= 1 and claim.unit is None:
        forms.append(_Form(value * 100, half * 100))
    ways = tuple(_names(condition.value) for condition in claim.conditions)
    return _Target(
        claim,
        tuple(forms),
        digits,
        claim.decimals > 0,
        _names(claim.metric),
        tuple(way for way in ways if way and any(not word.isdigit() for option in way for word in option)),
    )


@dataclass(frozen=True, slots=True)
class NumberHit:
    """One occurrence of a claimed number."""

    claim: str
    score: float
    start: int
    end: int
    """Byte offsets of the number in the searched text."""
    line: int
    detail: str
    distinctive: bool
    """Three or more digits with a decimal point: unlikely to be there by chance."""


@dataclass(frozen=True, slots=True)
class _Context:
    line: tuple[str, ...]
    around: tuple[str, ...]


class _Text:
    """A searched text with its lines, its blocks and, for a table file, its header."""

    def __init__(self, data: bytes, kind: TextKind) -> None:
        self.data = data
        self.kind = kind
        self.header: list[tuple[str, ...]] | None = None
        self.alike: dict[tuple[object, ...], int] = {}
        first = data[: data.find(b"\n") + 1] if b"\n" in data else b""
        self.separator = next((mark for mark in (b"\t", b";", b",") if mark in first), None)
        if kind == "table" and self.separator is not None:
            cells = first.strip().split(self.separator)
            self.header = [_words(cell.decode("utf-8", "replace")) for cell in cells]

    def context(self, start: int, end: int) -> _Context:
        """The words of the line of a number, and of what else belongs to it."""
        data = self.data
        low = max(data.rfind(b"\n", 0, start) + 1, start - SIDE)
        high = data.find(b"\n", end)
        high = min(len(data) if high < 0 else high, end + SIDE)
        line = _decoded(data[low:start]) + _decoded(data[end:high])
        if self.header is not None and self.separator is not None:
            row = data.rfind(b"\n", 0, start) + 1
            column = data.count(self.separator, row, start)
            return _Context(line, line + (self.header[column] if column < len(self.header) else ()))
        if self.kind == "prose":
            block = max(data.rfind(b"\n\n", 0, start), start - BLOCK, 0)
            stop = data.find(b"\n\n", end)
            stop = min(len(data) if stop < 0 else stop, end + BLOCK)
            return _Context(line, _decoded(data[block:start]) + _decoded(data[end:stop]))
        # Code, logs, JSON: a key may stand in the line above ("accuracy":\n  0.91).
        above = data.rfind(b"\n", 0, max(low - 1, 0)) + 1
        return _Context(line, _decoded(data[max(above, start - SIDE) : start]) + line)


def _decoded(data: bytes) -> tuple[str, ...]:
    return _words(data.decode("utf-8", "replace"))


class NumberProbe:
    """Looks for the numbers of some claims.

    Args:
        claims: the expected outcome's numbers.
    """

    def __init__(self, claims: Iterable[NumericClaim]) -> None:
        self.targets = tuple(_target(claim) for claim in claims)
        forms = [(form, number) for number, target in enumerate(self.targets) for form in target.forms]
        self._values = np.sort(np.array([form.value for form, _ in forms], dtype=np.float64))
        self._widest = max((form.tolerance for form, _ in forms), default=0.0)
        self._form_values = np.array([form.value for form, _ in forms], dtype=np.float64)
        self._form_tolerances = np.array([form.tolerance * (1 - 1e-9) for form, _ in forms], dtype=np.float64)
        self._form_targets = np.array([number for _, number in forms], dtype=np.intp)

    def _candidates(self, data: bytes) -> tuple[dict[int, list[int]], int]:
        """(position in the order of numbers -> targets that it matches, how many numbers there are), vectorised.

        Of more than MAX_CANDIDATES near ones the first serve: so many matches are a data file's, and chance.
        """
        tokens = _NUMBER.findall(data)
        if not tokens or not len(self._values):
            return {}, len(tokens)
        numbers = np.array(tokens).astype(np.float64)
        place = np.searchsorted(self._values, numbers)
        below = np.abs(numbers - self._values[np.maximum(place - 1, 0)])
        above = np.abs(numbers - self._values[np.minimum(place, len(self._values) - 1)])
        near = np.flatnonzero(np.minimum(below, above) <= self._widest)[:MAX_CANDIDATES]
        distance = np.abs(numbers[near][:, None] - self._form_values[None, :])
        found: dict[int, list[int]] = {}
        for row, form in zip(*np.nonzero(distance <= self._form_tolerances[None, :]), strict=True):
            targets = found.setdefault(int(near[row]), [])
            target = int(self._form_targets[form])
            if target not in targets:
                targets.append(target)
        return found, len(tokens)

    def _matches(self, data: bytes, found: dict[int, list[int]]) -> Iterator[tuple[re.Match[bytes], _Target]]:
        for index, match in enumerate(_NUMBER.finditer(data)):
            for target in found.get(index, ()):
                yield match, self.targets[target]

    def find(self, data: bytes, kind: TextKind) -> list[NumberHit]:
        """All occurrences worth reporting, best first, then by place.

        Args:
            data: text in an ASCII-compatible encoding.
            kind: `prose` associates a number with its whole block, `table` with its column's header.
        """
        candidates, total = self._candidates(data)
        if not candidates:
            return []
        text = _Text(data, kind)
        hits: list[NumberHit] = []
        for match, target in self._matches(data, candidates):
            digits = min(target.digits, significant_digits(match[0].decode()))
            hit = self._judge(text, match, target, digits, total)
            if hit is not None:
                hits.append(hit)
        return sorted(hits, key=lambda hit: (-hit.score, hit.start, hit.claim))

    def among(self, values: Iterable[float]) -> list[NumericClaim]:
        """The claims of at least three digits that a set of bare values states."""
        known = list(values)
        return [
            target.claim
            for target in self.targets
            if target.digits >= 3 and any(abs(v - form.value) <= form.tolerance for form in target.forms for v in known)
        ]

    def _judge(self, text: _Text, match: re.Match[bytes], target: _Target, digits: int, total: int) -> NumberHit | None:
        context = text.context(match.start(), match.end())
        metric = _mentions(target.metric, context.around)
        named = [way for way in target.conditions if _mentions(way, context.line)]
        score, beside = _score(metric, bool(named), digits, b"." in match[0] and target.decimal)
        if score == 0:
            return None
        if score >= BLOCKING:
            few = int(CHANCE / 2 * 10.0**digits)
            if self._alike(text, target, few, metric=metric, named=bool(named)) > few:
                score = DEMOTED
                beside += f"; more than {few} numbers of this file stand like that, so one may match by chance"
        elif score < 0.4 and total * 2 * 10.0**-digits > BARE_CHANCE:
            return None
        claim = target.claim
        detail = f"`{match[0].decode()}` states claim {claim.id} ({claim.metric} = {claim.text}) {beside}"
        return NumberHit(
            claim.id, score, match.start(), match.end(), text.data.count(b"\n", 0, match.start()) + 1, detail,
            digits >= 3 and b"." in match[0],
        )  # fmt: skip

    def _alike(self, text: _Text, target: _Target, enough: int, *, metric: bool, named: bool) -> int:
        """How many numbers of the text stand in the same kind of context, counted to `enough` and one more."""
        key = (target.metric, target.conditions if named else (), enough, metric)
        if key in text.alike:
            return text.alike[key]
        count = 0
        for match in _NUMBER.finditer(text.data):
            if count > enough:
                break
            context = text.context(match.start(), match.end())
            same = not metric or _mentions(target.metric, context.around)
            if same and named:
                same = any(_mentions(way, context.line) for way in target.conditions)
            count += same
        text.alike[key] = count
        return count


def _score(metric: bool, condition: bool, digits: int, decimal: bool) -> tuple[float, str]:
    """The table of the module's docstring."""
    distinctive = digits >= 3
    if metric and condition:
        return (1.0 if distinctive else 0.75), "beside the metric's name and a condition"
    if metric:
        return (0.9 if distinctive else 0.4), "beside the metric's name"
    if condition and distinctive:
        return 0.8, "beside a condition of the claim"
    if distinctive and decimal:
        return 0.3, "on its own"
    return 0.0, ""
