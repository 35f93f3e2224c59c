"""From fits to one number per claim: ties, series, replicates, percent scales, and claims that want the same number."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence
from typing import Final, NamedTuple

from pipeline.validation.matching import Axis, Fit, Profile, Question, axes, fit
from pipeline.validation.numbers import half_unit
from pipeline.validation.tokens import COUNTERS, REPLICATES, SHARES, agree, words

__all__ = ["Found", "assign"]

# Scores closer than this are a tie: it is less than what one unexplained word costs (0.15, `matching.fit`).
_MARGIN: Final = 0.1


class Found(NamedTuple):
    """The number that the names point to for one claim in one run, or why there is none."""

    value: float | None
    """In the claim's scale."""
    decimals: int
    where: str
    strong: bool
    reason: str


def _prepared(question: Question, aliases: dict[str, Axis], named: _Vocabulary) -> Question:
    """The question with the run's names for its settings; about a series, where the run does not print its extreme."""
    question = dataclasses.replace(question, aliases=aliases)
    if question.stated in {"min", "max"} and not any(fit(question, profile) for profile in named.about(question)):
        return dataclasses.replace(question, aggregate=True)
    return question


class _Vocabulary:
    """Observations by the words around them: a claim is compared with those only that say a word of its metric."""

    def __init__(self, seen: Sequence[Profile]) -> None:
        self._seen = seen
        self._by_word: dict[str, list[int]] = {}
        for index, profile in enumerate(seen):
            for word in profile.name | profile.context:
                self._by_word.setdefault(word, []).append(index)

    def about(self, question: Question) -> list[Profile]:
        wanted = question.metric.core or question.metric.generic
        hits = {i for word, places in self._by_word.items() if any(agree(w, (word,)) for w in wanted) for i in places}
        return [self._seen[index] for index in sorted(hits)]


class _Candidate(NamedTuple):
    profile: Profile
    fit: Fit


def assign(asked: Sequence[Question], seen: Sequence[Profile]) -> list[Found]:
    """For each claim the number of this run that its names point to.

    A number that fits another claim clearly better is not available; two different claims that end at one number cannot
    both mean it, and the weaker one (both, when they tie) stays unknown.
    """
    named = _Vocabulary(seen)
    aliases = axes(asked, seen)
    asked = [_prepared(question, aliases, named) for question in asked]
    fits = [
        [
            _Candidate(profile, found)
            for profile in named.about(question)
            if (found := fit(question, profile)) is not None
        ]
        for question in asked
    ]
    best: dict[int, float] = {}
    for candidates in fits:
        for candidate in candidates:
            key = candidate.profile.position
            best[key] = max(best.get(key, -math.inf), candidate.fit.score)
    percent = _percent_metrics(asked)
    chosen = [
        _choose(
            question, [c for c in candidates if c.fit.score > best[c.profile.position] - _MARGIN], candidates, percent
        )
        for question, candidates in zip(asked, fits, strict=True)
    ]
    return _without_clashes(asked, chosen)


class _Choice(NamedTuple):
    found: Found
    score: float
    positions: frozenset[int]


def _nothing(reason: str) -> _Choice:
    return _Choice(Found(None, 0, "", False, reason), -math.inf, frozenset())


def _choose(
    question: Question, free: list[_Candidate], candidates: list[_Candidate], percent: frozenset[frozenset[str]]
) -> _Choice:
    if not candidates:
        return _nothing(f"no printed number is named `{_name(question)}`")
    if not free:
        return _nothing(f"every number that could be `{_name(question)}` belongs to another claim")
    top = max(candidate.fit.score for candidate in free)
    tied = [candidate for candidate in free if candidate.fit.score > top - _MARGIN]
    scaled = {c.profile.position: _scaled(question, c.profile, candidates, percent) for c in tied}
    strong = any(candidate.fit.strong for candidate in tied)
    positions = frozenset(candidate.profile.position for candidate in tied)
    if question.aggregate:
        return _extreme(question, tied, scaled, top)
    if _one_value(list(scaled.values())):
        # the same number on the screen and in a file: the more exact one counts
        finest = max(tied, key=lambda c: (scaled[c.profile.position][1], c.fit.score, -c.profile.position))
        value, decimals = scaled[finest.profile.position]
        return _Choice(Found(value, decimals, finest.profile.observation.where, strong, ""), top, positions)
    return _series(question, tied, scaled, _Choice(Found(None, 0, "", False, ""), top, positions))


def _series(
    question: Question, tied: Sequence[_Candidate], scaled: dict[int, tuple[float, int]], tie: _Choice
) -> _Choice:
    """Several numbers of one name: the last along a counter, the mean over replicates, otherwise ambiguous."""
    series = _along_counter(tied)
    if series is not None:
        value, decimals = scaled[series.profile.position]
        where = f"{series.profile.observation.where} (last of {len(tied)})"
        return _Choice(Found(value, decimals, where, False, ""), tie.score, tie.positions)
    if name := _replicated(tied):
        values = [scaled[candidate.profile.position] for candidate in tied]
        where = f"mean over {len(tied)} x {name} from {tied[0].profile.observation.where}"
        mean = statistics.fmean(value for value, _ in values)
        return _Choice(Found(mean, max(d for _, d in values) + 1, where, False, ""), tie.score, tie.positions)
    places = ", ".join(candidate.profile.observation.where for candidate in tied[:3])
    return _nothing(f"{len(tied)} numbers fit `{_name(question)}` equally well ({places}): ambiguous")


def _extreme(
    question: Question, tied: Sequence[_Candidate], scaled: dict[int, tuple[float, int]], top: float
) -> _Choice:
    """The minimum or maximum over a series that the run prints term by term (`ranges from 0.83 to 1.49`)."""
    if len(tied) < 2:
        return _nothing(f"the run prints no series of `{_name(question)}`")
    pick = min if question.stated == "min" else max
    value, decimals = pick(scaled[candidate.profile.position] for candidate in tied)
    where = f"{question.stated} over {len(tied)} numbers from {tied[0].profile.observation.where}"
    return _Choice(Found(value, decimals, where, False, ""), top, frozenset())


def _name(question: Question) -> str:
    conditions = ", ".join(f"{c.name}={c.value}" for c in question.claim.conditions)
    return f"{question.claim.metric} [{conditions}]" if conditions else question.claim.metric


def _one_value(values: Sequence[tuple[float, int]]) -> bool:
    """Are all values equal to the digits of the coarser one of each pair?"""
    finest = max(values, key=lambda item: item[1])
    return all(abs(value - finest[0]) <= half_unit(decimals) * 1.000001 for value, decimals in values)


# --- percent and fractions -------------------------------------------------------------------------------------------


def _percent_metrics(asked: Sequence[Question]) -> frozenset[frozenset[str]]:
    """Metrics that the paper states in percent: by unit, or because a share exceeds one."""
    return frozenset(
        question.metric.core
        for question in asked
        if "%" in (question.claim.unit or "")
        or "%" in question.claim.metric
        or (question.metric.core & SHARES and abs(question.claim.value) > 1)
    )


def _scaled(
    question: Question, profile: Profile, candidates: Sequence[_Candidate], percent: frozenset[frozenset[str]]
) -> tuple[float, int]:
    """Value and decimals of an observation in the claim's scale.

    Decided by signs, names and the range of the observation's own column, not by which scale would agree.
    """
    observation = profile.observation
    claimed = question.metric.core in percent
    if not claimed and not (question.metric.core & SHARES):
        return observation.value, observation.decimals
    column = [
        abs(other.profile.observation.value)
        for other in candidates
        if other.profile.labels[-1:] == profile.labels[-1:] and _source(other.profile) == _source(profile)
    ]
    seen = observation.percent or max(column, default=0.0) > 1
    if claimed and not seen:
        return observation.value * 100, observation.decimals - 2
    if seen and not claimed:
        return observation.value / 100, observation.decimals + 2
    return observation.value, observation.decimals


def _source(profile: Profile) -> str:
    return profile.observation.where.partition(":")[0].partition(" row ")[0]


# --- series and replicates -------------------------------------------------------------------------------------------


def _differing(tied: Sequence[_Candidate]) -> set[frozenset[str]] | None:
    """Names of the coordinates in which tied observations differ, metrics aside; None when their labels differ too."""
    plain = {
        tuple(" ".join(word for word in label if not word[0].isdigit()) for label in candidate.profile.labels)
        for candidate in tied
    }
    if len(plain) != 1 or len({_source(candidate.profile) for candidate in tied}) != 1:
        return None
    values: dict[frozenset[str], set[tuple[str, ...]]] = {}
    for candidate in tied:
        for pair in candidate.profile.pairs:
            if pair.name & (COUNTERS | REPLICATES) or pair.number is None or float(pair.number).is_integer():
                values.setdefault(pair.name, set()).add(pair.value)
    return {name for name, found in values.items() if len(found) > 1}


def _along_counter(tied: Sequence[_Candidate]) -> _Candidate | None:
    """The last of a series that runs along epochs, steps or iterations only."""
    names = _differing(tied)
    if names and all(name & COUNTERS for name in names):
        return max(tied, key=lambda candidate: candidate.profile.position)
    return None


def _replicated(tied: Sequence[_Candidate]) -> str:
    """The name of the coordinate (seed, fold, run) over which tied observations are replicates of each other."""
    names = _differing(tied)
    if names and len(tied) >= 2 and len(names) == 1:
        found = next(iter(names)) & REPLICATES
        if found:
            return min(found)
    return ""


# --- clashes ---------------------------------------------------------------------------------------------------------


def _without_clashes(asked: Sequence[Question], chosen: Sequence[_Choice]) -> list[Found]:
    result = []
    for index, choice in enumerate(chosen):
        found = choice.found
        for other, rival in enumerate(chosen):
            if other == index or not choice.positions & rival.positions or _same_claim(asked[index], asked[other]):
                continue
            if rival.score > choice.score - _MARGIN:
                reason = f"{found.where} could be `{_name(asked[index])}` or `{_name(asked[other])}`: ambiguous"
                found = Found(None, 0, "", False, reason)
                break
        result.append(found)
    return result


def _same_claim(left: Question, right: Question) -> bool:
    """Does the paper state the same number twice?"""
    return (
        left.metric == right.metric
        and left.statistic == right.statistic
        and {(words(c.name), words(c.value)) for c in left.claim.conditions}
        == {(words(c.name), words(c.value)) for c in right.claim.conditions}
    )
