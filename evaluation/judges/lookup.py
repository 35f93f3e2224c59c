"""Which reported number is which expected one? By their names alone, never by their values.

A name belongs to the one claim that fits all it names (`naming`). Of several names for a claim the one is taken that
adds least and says the metric best; where that does not decide, the number is not found. Scale (percent or fraction) is
settled once for each metric.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from evaluation.judges.naming import Reading, Token, Vocabulary, agree, tokens_of, vocabulary_of
from pipeline.task import NumericClaim
from pipeline.validation.numbers import half_unit
from pipeline.validation.tokens import DERIVED, SHARES, STATISTICS, metric_name, words

__all__ = ["Found", "look_up"]

_PLAIN: Final = frozenset({"mean"})
"""The statistic that a number is where its name says none."""
_LONGEST: Final = 300
"""Characters of a name; what is longer is a text."""
_SURE: Final = 4
"""Numbers that must all be near a hundred times (or a hundredth of) the expected ones, where no unit says a share."""


class Found(NamedTuple):
    """An expected number as it was reported."""

    name: str
    value: float
    """In the claim's scale."""
    slack: float
    """Half a unit of the last digit that the response reports of this metric."""
    weak: bool
    """The name says more than is understood, or fits by elimination: its value may confirm and cannot contradict."""


class _Candidate(NamedTuple):
    name: str
    claims: frozenset[int]
    rank: tuple[int, int]
    weak: bool


def look_up(claims: Sequence[NumericClaim], numbers: Mapping[str, float]) -> dict[str, Found]:
    """Claim id -> the number that the response reports for it; claims that were not found are left out."""
    if not claims:
        return {}
    vocabulary = vocabulary_of(claims)
    candidates = [_candidate(name, claims, vocabulary) for name in sorted(numbers) if len(name) <= _LONGEST]
    chosen: dict[int, _Candidate] = {}
    blocked: set[int] = set()
    for index in range(len(claims)):
        own = [c for c in candidates if c is not None and c.claims == {index}]
        best = min((c.rank for c in own), default=None)
        first = [c for c in own if c.rank == best]
        if first and len({numbers[c.name] for c in first}) == 1:
            chosen[index] = first[0]
        elif first:
            blocked.add(index)
    for index, candidate in _left_over(candidates, set(chosen) | blocked).items():
        chosen[index] = candidate._replace(weak=True)
    return _scaled(claims, {index: (c, numbers[c.name]) for index, c in chosen.items()})


def _left_over(candidates: Sequence[_Candidate | None], taken: set[int]) -> dict[int, _Candidate]:
    """Names that fit several claims, all but one of which are reported under names of their own."""
    found: dict[int, list[_Candidate]] = {}
    for candidate in candidates:
        if candidate is not None and len(candidate.claims) > 1 and len(rest := candidate.claims - taken) == 1:
            found.setdefault(min(rest), []).append(candidate)
    return {index: own[0] for index, own in found.items() if len(own) == 1}


def _candidate(name: str, claims: Sequence[NumericClaim], vocabulary: Vocabulary) -> _Candidate | None:
    tokens = tokens_of(re.sub(r"\s*\(c\d+\)$", "", name))  # claims' ids keep equal names apart
    readings = vocabulary.read(tokens)
    if any(len(reading.values) > 1 for reading in readings):
        return None
    fitting = [index for index, place in enumerate(vocabulary.places) if _fits(place, readings, vocabulary)]
    if len(fitting) > 1:  # the same conditions twice: then the claim's id may be a part of the name
        same = {vocabulary.places[index] for index in fitting}
        by_id = [index for index in fitting if f"({claims[index].id})" in name]
        fitting = by_id if len(same) == 1 and len(by_id) == 1 else fitting
    if not fitting or _other_statistic(name, claims[fitting[0]]):
        return None
    metric = [token.text for token in tokens_of(claims[fitting[0]].metric)]
    said = sum(any(agree(token.text, word) for token in tokens) for word in metric)
    extra = _unexplained(tokens, readings, vocabulary, claims[fitting[0]])
    doubtful = any(reading.doubtful for reading in readings)
    weak = bool(extra) and (doubtful or not said)
    return _Candidate(name, frozenset(fitting), (len(extra) + doubtful, -said), weak)


def _fits(place: tuple[str | None, ...], readings: Sequence[Reading], vocabulary: Vocabulary) -> bool:
    """Does a claim have every value that is named? Axes on which claims do not differ need no name."""
    return all(
        not reading.values or reading.values[0] == value or not vocabulary.telling(index)
        for index, (value, reading) in enumerate(zip(place, readings, strict=True))
    )


def _other_statistic(name: str, claim: NumericClaim) -> bool:
    """Is it the spread, the extreme or the difference of what the claim states?"""
    own = {word for text in (claim.metric, *(c.value for c in claim.conditions)) for word in words(text)}
    return bool((set(words(name)) & (STATISTICS | DERIVED)) - _PLAIN - own)


def _unexplained(
    tokens: Sequence[Token], readings: Sequence[Reading], vocabulary: Vocabulary, claim: NumericClaim
) -> list[Token]:
    taken = {i for reading in readings for i in reading.positions}
    known = {word for axis in vocabulary.axes for word in axis.vocabulary()} | _PLAIN | {"avg", "average"}
    known |= {token.text for token in tokens_of(f"{claim.id} {claim.unit or ''} in")}
    return [
        token for i, token in enumerate(tokens)
        if i not in taken and token.number is None and not any(agree(token.text, word) for word in known)
    ]  # fmt: skip


# --- scale and digits -----------------------------------------------------------------------------------------------


def _scaled(claims: Sequence[NumericClaim], raw: Mapping[int, tuple[_Candidate, float]]) -> dict[str, Found]:
    found = {}
    for metric in dict.fromkeys(claim.metric for claim in claims):
        own = [index for index in sorted(raw) if claims[index].metric == metric]
        pairs = [(claims[index].value, raw[index][1]) for index in own]
        scale = _scale([claims[index] for index in own], pairs)
        slack = scale * half_unit(max((_decimals(value) for _, value in pairs), default=0))
        for index in own:
            candidate, value = raw[index]
            found[claims[index].id] = Found(candidate.name, value * scale, slack, candidate.weak)
    return found


def _scale(claims: Sequence[NumericClaim], pairs: Sequence[tuple[float, float]]) -> float:
    """One, a hundred or a hundredth, whichever brings the numbers nearest to the expected ones."""
    off = [math.log(abs(given / wanted)) for wanted, given in pairs if given and wanted]
    if not off:
        return 1.0
    share = any((c.unit or "").strip() == "%" or metric_name(c.metric).core & SHARES for c in claims)
    sure = len(off) >= _SURE and max(off) - min(off) < 1.0
    scales = (1.0, 100.0, 0.01) if share or sure else (1.0,)
    return min(scales, key=lambda scale: abs(statistics.median(off) + math.log(scale)))


def _decimals(value: float) -> int:
    text = f"{value:.12g}"
    return 12 if "e" in text else len(text.partition(".")[2])
