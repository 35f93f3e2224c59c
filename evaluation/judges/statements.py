"""Sentences that a task's own names and numbers decide; every other sentence stays undecided.

Read is what is made of the task's names (`naming`), numbers, comparison words and words of grammar, and nothing else: a
word beyond these - a negation, an exception, a hedge, a cause - may turn the meaning, and makes the sentence undecided.
What counts as good is not known here: `higher` and `lowest` can be looked up, `better` and `best` cannot.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from evaluation.judges.naming import Reading, Token, Vocabulary, agree, tokens_of
from pipeline.task import NumericClaim, Verdict
from pipeline.validation.numbers import Number, find_numbers, half_unit

__all__ = ["Values", "judge_sentence", "sentences_of"]

_LONGEST: Final = 2_000
"""Characters of a sentence that are read: the longest of 155 published outcomes has 412."""
_SENTENCE: Final = re.compile(r"(?<=[.;!?])[”\"')]*\s+(?=[A-Z“\"(])|\n+|;\s+")
_KINDS: Final = {
    "above": re.compile(r"\b(?:higher|larger|greater|above|exceeds?|exceeded)\b", re.I),
    "below": re.compile(r"\b(?:lower|smaller|below)\b", re.I),
    "highest": re.compile(r"\b(?:highest|largest|greatest)\b", re.I),
    "lowest": re.compile(r"\b(?:lowest|smallest)\b", re.I),
    "equal": re.compile(r"\b(?:no difference|the same|equal|identical)\b", re.I),
    "rises": re.compile(r"\b(?:increas(?:es?|ed|ing)|ris(?:es?|ing)|rose|grow(?:s|ing)?|grew)\b", re.I),
    "falls": re.compile(r"\b(?:decreas(?:es?|ed|ing)|declin(?:es?|ed)|drop(?:s|ped)?|falls?|fell|shrinks?)\b", re.I),
}
_DRIVER: Final = re.compile(
    r"\b(?:(?:as|when)(?:\s+[^\s,;.]+){1,4}?\s+(?:increas\w+|grows?|ris\w+|decreas\w+|declin\w+|falls?)"
    r"|with\s+(?:increasing|growing|decreasing))\b",
    re.I,
)
"""`as p grows`: what drives a trend, not the trend."""
_PIVOT: Final = re.compile(r"\b(?:than|above|below|exceeds?|exceeded)\b", re.I)
_EVERY: Final = re.compile(r"\b(?:all|each|every|both)\b", re.I)
_SCOPE: Final = frozenset({"on", "in", "under", "at", "across", "over", "from", "to", "with"})
_BY: Final = frozenset({"by", "for", "is", "was", "are", "were", "of"})
_GRAMMAR: Final = re.compile(
    r"an?|all|and|as|be|between|both|d(?:id|ifference|o|oes)|each|every|g[ai]ves?|ha[sd]|have|it|its|reach(?:e[sd])?"
    r"|(?:achieve|obtain|score|yield|attain)(?:e?[sd])?|respectively|same|than|that|th(?:e|eir|ese|is)|using|we|when|where"
    r"|whereas|while|" + "|".join(sorted(_SCOPE | _BY))
)
"""Words that say nothing of their own beside those above."""

Values = Mapping[int, tuple[float, float]]
"""Index of a claim -> (value, what it may differ by)."""
_Check = bool | None


def sentences_of(text: str) -> list[str]:
    """The sentences of a text that say anything."""
    return [piece.strip() for piece in _SENTENCE.split(text) if re.search(r"\w", piece)]


def judge_sentence(
    sentence: str, vocabulary: Vocabulary, claims: Sequence[NumericClaim], own: Values, expected: Values
) -> Verdict:
    """Pass: it says what the numbers say; fail: it contradicts them; unknown: not understood, or too close to say.

    Args:
        sentence: one sentence of a conclusion.
        vocabulary: of the task's claims.
        claims: the expected numbers.
        own: the reported numbers in the claims' scale.
        expected: the expected ones; they decide where none is reported.
    """
    if len(sentence) > _LONGEST or "?" in sentence:
        return Verdict.UNKNOWN
    tokens = tokens_of(sentence)
    readings = vocabulary.read(tokens, several=True)
    taken = {tokens[i].start for reading in readings for i in reading.positions}
    numbers = [n for n in find_numbers(sentence) if not any(n.start <= start < n.end for start in taken)]
    read = _Sentence(sentence, tokens, readings, vocabulary, claims, own, expected, numbers)
    if any(reading.doubtful for reading in readings) or not read.understood(taken):
        return Verdict.UNKNOWN
    driver = _DRIVER.search(sentence)
    plain = sentence if driver is None else f"{sentence[: driver.start()]} {sentence[driver.end() :]}"
    cues = [(name, cue) for name, pattern in _KINDS.items() for cue in pattern.finditer(plain)]
    if len(cues) > 1:
        return Verdict.UNKNOWN  # which name belongs to which comparison is not known
    checks = [read.numbers_hold()] if numbers else []
    if cues:
        checks.append(read.comparison_holds(cues[0][0], cues[0][1], driver))
    if not checks or None in checks:
        return Verdict.UNKNOWN
    return Verdict.PASS if all(checks) else Verdict.FAIL


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    tokens: Sequence[Token]
    readings: Sequence[Reading]
    vocabulary: Vocabulary
    claims: Sequence[NumericClaim]
    own: Values
    expected: Values
    numbers: Sequence[Number]
    """Those that name no condition."""

    def understood(self, taken: set[int]) -> bool:
        """Is every word a name of the task, a comparison or grammar, and every number a number?"""
        known = {word for axis in self.vocabulary.axes for word in axis.vocabulary()}
        told = re.sub(
            r"\bno difference\b", "equal", " ".join(t.text for t in self.tokens if t.start not in taken), flags=re.I
        )
        held = sum(any(n.start <= t.start < n.end for n in self.numbers) for t in self.tokens if t.number is not None)
        words = [word for word in told.split() if not word[0].isdigit()]
        loose = sum(token.number is not None and token.start not in taken for token in self.tokens)
        return held == loose and all(
            _GRAMMAR.fullmatch(word)
            or any(pattern.fullmatch(word) for pattern in _KINDS.values())
            or any(agree(word, other) for other in known)
            for word in words
        )

    # --- numbers

    def numbers_hold(self) -> _Check:
        """Is every number that of the claim whose conditions are named? In order, where one condition has several."""
        open_ = [axis for axis, reading in enumerate(self.readings) if len(reading.values) > 1]
        if len(open_) > 1 or len(self.numbers) != (len(self.readings[open_[0]].values) if open_ else 1):
            return None
        if not open_:
            return self._number_holds(self._scope(-1), self.numbers[0])
        axis = open_[0]
        answers = [
            self._number_holds([i for i in self._scope(axis) if self.vocabulary.places[i][axis] == value], number)
            for value, number in zip(self.readings[axis].values, self.numbers, strict=True)
        ]
        if None in answers or all(answers):
            return None if None in answers else True
        marks = [(self._at(axis, value), 0) for value in self.readings[axis].values]
        marks = sorted(marks + [(number.start, 1) for number in self.numbers])
        return False if all(one[1] != two[1] for one, two in pairwise(marks)) else None  # each beside its own value

    def _number_holds(self, cells: Sequence[int], number: Number) -> _Check:
        if len(cells) != 1:
            return None
        claim = self.claims[cells[0]]
        value, room = self.own.get(cells[0], self.expected[cells[0]])
        scales = (1.0, 100.0, 0.01) if (claim.unit or "").strip() == "%" or number.percent else (1.0,)
        near = False
        for told, unit in ((number.value * s, half_unit(number.decimals) * s * 1.001) for s in scales):
            if abs(told - value) <= unit:
                return True
            near |= abs(told - value) <= unit + room or claim.band.holds(told)
        return None if near else False

    # --- comparisons

    def comparison_holds(self, kind: str, cue: re.Match[str], driver: re.Match[str] | None) -> _Check:
        """Does the one comparison of the sentence hold among the numbers?"""
        if kind in {"rises", "falls"}:
            backwards = (
                driver is not None and _KINDS["falls"].search(driver[0].replace("decreasing", "falls")) is not None
            )
            return self._trend("above" if (kind == "rises") != backwards else "below")
        if driver is not None:
            return None
        if kind in {"highest", "lowest"}:
            return self._extreme(kind, cue.start())
        return self._pair(kind)

    def _pair(self, kind: str) -> _Check:
        """`A is higher than B`, `A and B are equal`: the one condition with a value on either side of the pivot."""
        pivot = _PIVOT.search(self.text)
        if (pivot is None) != (kind == "equal"):
            return None
        found = []
        for axis, reading in enumerate(self.readings):
            border = pivot.start() if pivot else self._at(axis, reading.values[0]) + 1 if reading.values else 0
            left = [value for value in reading.values if self._at(axis, value) < border]
            if left and len(left) < len(reading.values):
                found.append((axis, left, [value for value in reading.values if value not in left]))
            elif len(left) > 1:
                return None
        if len(found) != 1 or len(found[0][1]) != 1 or found[0][0] == 0:
            return None
        axis, (one,), others = found[0]
        groups = [group for group in self._groups(axis) if one in group and set(others) <= set(group)]
        return self._over([[self._order(group[one], group[o], kind) for o in others] for group in groups])

    def _extreme(self, kind: str, at: int) -> _Check:
        """`A has the highest accuracy on D`, `the lowest on D is that of A`: A is what no preposition makes a scope."""
        named = [(self._at(a, v), a, v) for a, reading in enumerate(self.readings) if a for v in reading.values]
        bare = [one for one in named if self._word_before(one[1], one[2]) not in _SCOPE]
        first = [one for one in bare if one[0] < at] or [
            one for one in bare if self._word_before(one[1], one[2]) in _BY
        ]
        if len(first) != 1 or len(bare) > 1 or not self._one_metric():
            return None
        _, axis, one = first[0]
        groups = [group for group in self._groups(axis) if one in group and len(group) > 1]
        way = "above" if kind == "highest" else "below"
        return self._over([[self._order(g[one], g[other], way) for other in g if other != one] for g in groups])

    def _trend(self, way: str) -> _Check:
        """Along the one numeric condition that is named: every step goes that way, or the ends go the other."""
        words = {token.text for token in self.tokens}
        axes = [i for i, axis in enumerate(self.vocabulary.axes) if i and axis.numeric and words & set(axis.words)]
        if len(axes) != 1 or not self._one_metric():
            return None
        order = self.vocabulary.axes[axes[0]].numbers.__getitem__
        ends = sorted(map(order, self.readings[axes[0]].values))
        cells: list[list[_Check]] = []
        for group in self._groups(axes[0]):
            steps = [v for v in sorted(group, key=order) if not ends or ends[0] <= order(v) <= ends[-1]]
            if len(steps) > 1:
                whole = self._order(group[steps[-1]], group[steps[0]], way)
                straight = all(self._order(group[b], group[a], way) is not False for a, b in pairwise(steps))
                cells.append([whole if straight or not whole else None])
        return self._over(cells)

    def _order(self, one: int, two: int, kind: str) -> _Check:
        """A relation between two claims, by the reported numbers where both are there; None: too close to say."""
        both = one in self.own and two in self.own
        (a, room), (b, more) = (self.own[one], self.own[two]) if both else (self.expected[one], self.expected[two])
        if kind == "equal":
            return True if abs(a - b) <= min(room, more) else False if abs(a - b) > room + more else None
        high, low = (one, two) if kind == "above" else (two, one)
        holds = a > b if kind == "above" else a < b
        if both:
            return None if a == b else holds and self.claims[high].band.high >= self.claims[low].band.low
        return holds if abs(a - b) > room + more else None

    def _over(self, cells: Sequence[Sequence[_Check]]) -> _Check:
        """Over all cells in scope: holding in all is true, in none false; in some it is false where `all` is said."""
        answers: list[_Check] = [False if False in cell else None if None in cell else True for cell in cells]
        if not answers or all(answers):
            return True if answers else None
        none_holds = all(answer is False for answer in answers)
        return False if False in answers and (none_holds or _EVERY.search(self.text)) else None

    # --- names

    def _at(self, axis: int, value: str) -> int:
        return self.tokens[min(self.readings[axis].named[value])].start

    def _word_before(self, axis: int, value: str) -> str:
        """The word before a value, its condition's own words apart (`with weights none`, `at β = 3`)."""
        own = self.vocabulary.axes[axis].vocabulary() | {"the"}
        before = self.tokens[: min(self.readings[axis].named[value])]
        return next((token.text for token in reversed(before) if token.text not in own), "")

    def _one_metric(self) -> bool:
        return not self.vocabulary.telling(0) or len(self.readings[0].values) == 1

    def _scope(self, left_out: int) -> list[int]:
        """Claims that have, on every axis but one, a value that is named, or any where none is."""
        return [
            index
            for index, place in enumerate(self.vocabulary.places)
            if all(a == left_out or not r.values or place[a] in r.values for a, r in enumerate(self.readings))
        ]

    def _groups(self, axis: int) -> list[dict[str, int]]:
        """Claims in scope that differ in nothing but their value on an axis: value -> claim."""
        found: dict[tuple[str | None, ...], dict[str, int]] = {}
        for index in self._scope(axis):
            place = self.vocabulary.places[index]
            if (value := place[axis]) is not None:
                found.setdefault((*place[:axis], *place[axis + 1 :]), {})[value] = index
        return list(found.values())
