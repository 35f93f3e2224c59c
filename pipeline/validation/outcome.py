"""Does a re-execution reproduce what the paper states? Claims against what runs printed and wrote (EXP-Bench, stage 3).

Each claim is bound to one number of the first run (`binding`) and gets a three-valued verdict: pass (the number there
lies in the claim's band), fail (it does not), unknown (bound to none, gone in a repeat, dependent on the machine,
printed too coarsely to compare). How often an unrelated run would pass is measured in
`tests/pipeline/validation/test_chance.py`; see `decide` for the thresholds that follow from it.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

from scipy import special

from pipeline.sandbox.base import Command, RunResult
from pipeline.task import Band, ClaimMatch, NumericClaim, Task, Verdict
from pipeline.validation.binding import Bound, bind_claims
from pipeline.validation.numbers import half_unit
from pipeline.validation.observation import Observation
from pipeline.validation.outputs import read_run
from pipeline.validation.places import places_of, source_of

__all__ = [
    "Comparison",
    "Observation",
    "decide",
    "flakiness",
    "learn_bands",
    "match_claims",
    "prediction_reach",
    "read_outputs",
    "supported_claims",
]

Comparison = tuple[str, Literal["<", ">", "="], str]

_SHARE_FOUND: Final = 0.5
"""At least this share of a task's claims must be reproduced."""
_MIN_DIGITS: Final = 2.0
"""Decimal digits of information that the reproduced claims must carry together (`_digits`). A wrong value under the
right name falls into a band by chance with about 10 to the minus this (measured in `test_chance.py`)."""
_CHANCE: Final = 0.05
_MAX_SPREAD: Final = 0.25
"""A learnt interval wider than this share of the value says nothing and is not used."""
_MACHINE_UNITS: Final = frozenset({
    "s", "ms", "us", "µs", "ns", "min", "h", "sec", "seconds", "minutes", "hours", "fps", "x",
    "kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib",
})  # fmt: skip


def read_outputs(result: RunResult, out: Path, commands: Sequence[Command] = ()) -> tuple[Observation, ...]:
    """All numbers that a run printed or wrote, each with its labels (`pipeline.validation.outputs.read_run`)."""
    return read_run(result, out, commands)[0]


class _Found(NamedTuple):
    """The number of one run at a claim's place, or why there is none."""

    value: float | None
    """In the claim's scale."""
    decimals: int
    where: str
    reason: str


def match_claims(
    claims: Sequence[NumericClaim],
    runs: Sequence[Sequence[Observation]],
    *,
    comparisons: Sequence[Comparison] = (),
) -> tuple[ClaimMatch, ...]:
    """The verdict on each claim. One without a place is bound to one in the first run; all are read at their places.

    Args:
        claims: numeric claims of one task.
        runs: observations of each repeat, all of a run, in reading order.
        comparisons: (claim id, relation, claim id) that must hold among the reproduced values.

    Returns:
        One match per claim, in order; `observed` is in the claim's own scale (percent or fraction).
    """
    bound = bind_claims(claims, runs[0] if runs else ())
    places = [_Places(run) for run in runs]
    matches = [_judge(claim, bound[claim.id], [place.read(bound[claim.id]) for place in places]) for claim in claims]
    return tuple(_check_comparisons(claims, matches, comparisons))


class _Places:
    """The numbers of one run by their places."""

    def __init__(self, run: Sequence[Observation]) -> None:
        self._at = dict(zip(places_of(run), run, strict=True))
        self._finest: dict[tuple[str, tuple[str, ...]], int] = {}
        for seen in run:
            field = (seen.source, seen.labels[-1:])
            self._finest[field] = max(self._finest.get(field, seen.decimals), seen.decimals)

    def read(self, bound: Bound | str) -> _Found:
        """The number at a claim's place, in the claim's scale."""
        if isinstance(bound, str):
            return _Found(None, 0, "", bound)
        seen = self._at.get(bound.place)
        if seen is None:
            source = source_of(bound.place)
            there = any(other.source == source for other in self._at.values())
            reason = f"`{source}` holds no number at `{bound.place}`" if there else f"the run left no `{source}`"
            return _Found(None, 0, "", reason)
        # a file writes 0.5 for 0.5000: how exact a number is, its whole field says
        decimals = self._finest[seen.source, seen.labels[-1:]] - round(math.log10(abs(bound.factor)))
        return _Found(seen.value * bound.factor, decimals, seen.where, "")


def _judge(claim: NumericClaim, bound: Bound | str, found: Sequence[_Found]) -> ClaimMatch:
    match = ClaimMatch(claim=claim.id, verdict=Verdict.UNKNOWN, reason="there was no run")
    if isinstance(bound, Bound):
        match = match.evolve(place=bound.place, factor=bound.factor)
    missing = [item for item in found if item.value is None]
    if missing or not found:
        reason = missing[0].reason if missing else match.reason
        if missing and len(missing) < len(found):
            reason = f"found in {len(found) - len(missing)} of {len(found)} runs only: {reason}"
        return match.evolve(reason=reason)
    observed = tuple(item.value for item in found if item.value is not None)
    match = match.evolve(observed=observed, where=found[0].where)
    if _depends_on_machine(claim):
        return match.evolve(reason="time and memory depend on the machine and are not compared")
    verdict, reason = _compare(claim, found, observed)
    return match.evolve(verdict=verdict, reason=reason)


def _depends_on_machine(claim: NumericClaim) -> bool:
    """Does the claim's unit, which its metric's name may carry in brackets, measure time or memory?"""
    in_brackets = re.findall(r"[(\[]([^()\[\]]+)[)\]]", claim.metric)
    return any(unit.strip().lower() in _MACHINE_UNITS for unit in (claim.unit or "", *in_brackets))


def _compare(claim: NumericClaim, found: Sequence[_Found], observed: tuple[float, ...]) -> tuple[Verdict, str]:
    shown = ", ".join(f"{value:.10g}" for value in observed)
    stated = f"the paper states {claim.text}"
    slack = 1e-9 * max(1.0, abs(claim.value))
    if all(claim.band.low - slack <= value <= claim.band.high + slack for value in observed):
        return Verdict.PASS, f"observed {shown}, {stated}"
    exact = half_unit(claim.decimals)
    coarse = max(half_unit(item.decimals) for item in found)
    if coarse > 10.01 * exact:
        return Verdict.UNKNOWN, f"observed {shown}, {stated}: the run prints too few digits to compare"
    agreement = _agreement(claim, observed, exact, coarse)
    if agreement:
        return Verdict.PASS, f"observed {shown}, {stated}: {agreement}"
    if len(set(observed)) > 1 and _interval(observed) is None:
        return Verdict.UNKNOWN, f"observed {shown}, {stated}: the repeats differ too much to compare"
    return Verdict.FAIL, f"observed {shown}, {stated} (accepted: {claim.band.low:.10g} to {claim.band.high:.10g})"


def _agreement(claim: NumericClaim, observed: tuple[float, ...], exact: float, coarse: float) -> str:
    """How observed values outside the band still agree with the claim; empty when they do not."""
    low, high = claim.band.low - coarse, claim.band.high + coarse
    if coarse > 1.01 * exact and all(low <= value <= high for value in observed):
        return "equal to the digits that the run prints"
    if claim.uncertainty and all(abs(value - claim.value) <= claim.uncertainty + exact for value in observed):
        return "within the uncertainty that the paper states"
    interval = _interval(observed) if len(set(observed)) > 1 else None
    if interval and interval[0] - exact <= claim.value <= interval[1] + exact:
        return f"within the spread of the repeats (n={len(observed)})"
    return ""


def _interval(observed: Sequence[float]) -> tuple[float, float] | None:
    """Prediction interval of one more run from n >= 3 repeats (after CORE-Bench), the range of two; None when too wide.

    With n = 2 Student's factor is 15.6 standard deviations and the interval would accept nearly everything.
    """
    mean = statistics.fmean(observed)
    if len(observed) == 2:
        low, high = min(observed), max(observed)
    else:
        half = prediction_reach(len(observed), _CHANCE) * statistics.stdev(observed)
        low, high = mean - half, mean + half
    return (low, high) if high - low <= 2 * _MAX_SPREAD * abs(mean) else None


def prediction_reach(count: int, chance: float) -> float:
    """Standard deviations of `count` >= 2 runs within which one more run lies, but for this chance (Student)."""
    return float(special.stdtrit(count - 1, 1 - chance / 2)) * math.sqrt(1 + 1 / count)


def _check_comparisons(
    claims: Sequence[NumericClaim], matches: list[ClaimMatch], comparisons: Sequence[Comparison]
) -> list[ClaimMatch]:
    by_id = {claim.id: index for index, claim in enumerate(claims)}
    for violated in _violated(matches, comparisons):
        for claim in (violated[0], violated[2]):
            index = by_id[claim]
            matches[index] = matches[index].evolve(
                verdict=Verdict.FAIL, reason=f"{matches[index].reason}; {' '.join(violated)} does not hold in the run"
            )
    return matches


def _violated(matches: Sequence[ClaimMatch], comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Comparisons between two reproduced claims that the observed means contradict."""
    seen = {match.claim: match for match in matches}
    result: list[Comparison] = []
    for left, relation, right in comparisons:
        one, two = seen.get(left), seen.get(right)
        if one is None or two is None or Verdict.PASS not in (one.verdict, two.verdict):
            continue
        if not one.observed or not two.observed or Verdict.UNKNOWN in (one.verdict, two.verdict):
            continue
        a, b = statistics.fmean(one.observed), statistics.fmean(two.observed)
        if (relation == "<" and a >= b) or (relation == ">" and a <= b):
            result.append((left, relation, right))
    return result


def decide(
    claims: Sequence[NumericClaim], matches: Sequence[ClaimMatch], *, comparisons: Sequence[Comparison] = ()
) -> tuple[Verdict, str]:
    """The verdict on the whole outcome, and why.

    Pass: no claim is contradicted, at least half of the claims are reproduced, and these carry at least two decimal
    digits of information together. Fail: a claim or comparison is contradicted. Unknown: too little could be observed.
    """
    texts = {claim.id: claim for claim in claims}
    passed = [match for match in matches if match.verdict is Verdict.PASS]
    failed = [match for match in matches if match.verdict is Verdict.FAIL]
    if not claims:
        return Verdict.UNKNOWN, "the task states no number to compare"
    if failed:
        first = failed[0]
        return Verdict.FAIL, f"{len(failed)} of {len(claims)} claims are contradicted: {first.claim}: {first.reason}"
    if violated := _violated(matches, comparisons):
        return Verdict.FAIL, f"{' '.join(violated[0])} does not hold among the reproduced values"
    if not passed or len(passed) < _SHARE_FOUND * len(claims):
        missing = next(match for match in matches if match.verdict is Verdict.UNKNOWN)
        return (
            Verdict.UNKNOWN,
            f"{len(passed)} of {len(claims)} claims were reproduced; {missing.claim}: {missing.reason}",
        )
    digits = sum(_digits(texts[match.claim]) for match in passed)
    if digits < _MIN_DIGITS:
        return Verdict.UNKNOWN, (
            f"{len(passed)} of {len(claims)} claims were reproduced, but their bands are so wide ({digits:.1f} digits "
            f"together, {_MIN_DIGITS:.0f} are needed) that this can be chance"
        )
    return Verdict.PASS, f"{len(passed)} of {len(claims)} claims were reproduced, none is contradicted"


def _digits(claim: NumericClaim) -> float:
    """Decimal digits that lying in the claim's band is worth: the claim's magnitude over the width of the band."""
    width = claim.band.high - claim.band.low
    return max(0.0, math.log10(abs(claim.value) / width)) if width > 0 and claim.value else 0.0


def supported_claims(task: Task, matches: Sequence[ClaimMatch]) -> Task:
    """The task without the claims that its runs could not show, the others with the places at which they were read.

    Comparisons that need a dropped claim go with it. Contradicted claims stay: dropping them would turn a failed
    reproduction into a pass.
    """
    unknown = {match.claim for match in matches if match.verdict is Verdict.UNKNOWN}
    places = {match.claim: {"place": match.place, "factor": match.factor} for match in matches if match.place}
    expected = task.truth.expected
    kept = tuple(claim.evolve(**places.get(claim.id, {})) for claim in expected.claims if claim.id not in unknown)
    comparisons = tuple(item for item in expected.comparisons if item[0] not in unknown and item[2] not in unknown)
    return task.evolve(truth=task.truth.evolve(expected=expected.evolve(claims=kept, comparisons=comparisons)))


def learn_bands(claims: Sequence[NumericClaim], matches: Sequence[ClaimMatch]) -> tuple[NumericClaim, ...]:
    """Claims with bands widened by what their repeats showed; those whose repeats are equal keep theirs.

    Args:
        claims: claims of one task.
        matches: their matches; only reproduced ones with two repeats or more teach anything.
    """
    seen = {match.claim: match for match in matches}
    result = []
    for claim in claims:
        match = seen.get(claim.id)
        learnt = None
        if match is not None and match.verdict is Verdict.PASS and len(set(match.observed)) > 1:
            learnt = _interval(match.observed)
        if match is None or learnt is None:
            result.append(claim)
            continue
        band = Band(
            low=min(claim.band.low, learnt[0]),
            high=max(claim.band.high, learnt[1]),
            source=f"repeats (n={len(match.observed)})",
        )
        result.append(claim.evolve(band=band))
    return tuple(result)


def flakiness(claims: Sequence[NumericClaim], matches: Sequence[ClaimMatch]) -> float | None:
    """Share of observed claims whose repeats are not all inside, or all outside, the claim's band.

    None with fewer than two repeats or nothing observed.
    """
    bands = {claim.id: claim.band for claim in claims}
    repeated = [match for match in matches if len(match.observed) >= 2 and match.claim in bands]
    if not repeated:
        return None
    unsteady = sum(len({bands[match.claim].holds(value) for value in match.observed}) > 1 for match in repeated)
    return unsteady / len(repeated)
