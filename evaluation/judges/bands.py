"""Are the numbers that were found the expected ones, each by itself and all together?

A band is what one run in twenty leaves by chance, where the spread over runs with other random streams is known. Of
many numbers a few may thus lie outside; what may not happen is that they are moved together by more than the numbers of
those runs are. How much numbers vary together is not assumed but seen: trials that share their draws make all numbers
of one level go up at once, and a rule that took them for independent failed honest runs. Without a known spread a
number lies in its band or it does not. Non-goal: which number is which (`lookup`).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from scipy import special

from evaluation.judges.lookup import Found
from pipeline.task import NumericClaim, Verdict
from pipeline.validation.numbers import half_unit
from pipeline.validation.outcome import prediction_reach
from pipeline.validation.tokens import TIMES, metric_name

__all__ = ["compare_numbers", "spread_of"]

_CHANCE: Final = 0.05
_CONFIDENCE: Final = 0.999
"""Numbers that vary together lie outside together: the count alone must not fail what the shifts allow."""
_FAR: Final = 0.01
"""Chance that a task of an honest run has any number farther off than that."""
_SHIFTED: Final = 0.02
"""Chance that any of the joint shifts of an honest run is larger than that."""
_FLOOR: Final = 0.1
"""Deviations that a joint shift varies by at least: in a few runs it may have hardly varied by chance."""
_COARSE: Final = 10.01
"""Units of the claim's last digit that one of the response's may be worth."""
_GROUP: Final = 3
"""Numbers of a condition's value from which on they are looked at together."""


def spread_of(claim: NumericClaim) -> float:
    """The deviation of the stated number over runs; 0 where it is not known."""
    return claim.band.deviation or 0.0


def compare_numbers(claims: Sequence[NumericClaim], found: Mapping[str, Found]) -> dict[str, tuple[Verdict, str]]:
    """Verdict and reason for each claim; a number that was not found is unknown, never wrong."""
    spread = [claim for claim in claims if claim.id in found and spread_of(claim)]
    outside, allowed = _outside(spread, found), _allowed(len(spread))
    too_many = f"{outside} numbers lie outside, chance allows {allowed}" if outside > allowed else ""
    moved = _moved(spread, found)
    judged = {}
    for claim in claims:
        if claim.id not in found:
            judged[claim.id] = (Verdict.UNKNOWN, "not found among the reported numbers")
            continue
        verdict, reason = _one(claim, found[claim.id], too_many, len(spread))
        if verdict is Verdict.PASS and claim.id in moved:
            verdict, reason = Verdict.FAIL, f"{reason}; {moved[claim.id]}"
        if verdict is Verdict.FAIL and found[claim.id].weak:
            verdict, reason = Verdict.UNKNOWN, f"{reason}; its name fits only in part"
        judged[claim.id] = (verdict, reason)
    return judged


def _one(claim: NumericClaim, given: Found, too_many: str, count: int) -> tuple[Verdict, str]:
    band, spread = claim.band, spread_of(claim)
    told = f"reported {given.value:.10g}, expected {claim.text} ({band.low:.10g} to {band.high:.10g})"
    room = 1e-9 * max(1.0, abs(claim.value))
    excess = max(band.low - given.value, given.value - band.high) - room
    if excess <= 0:
        return Verdict.PASS, told
    if metric_name(claim.metric).core & TIMES:
        return Verdict.UNKNOWN, f"{told}; time and memory depend on the machine"
    if excess <= given.slack:
        if given.slack > _COARSE * half_unit(claim.decimals):
            return Verdict.UNKNOWN, f"{told}; too few digits are reported to compare"
        return Verdict.PASS, f"{told}; equal to the digits that are reported"
    if spread and abs(_z(claim, given.value)) - given.slack / spread > _reach(len(claim.band.observed), _FAR / count):
        too_many = f"{_z(claim, given.value):+.1f} deviations off"
    by_chance = bool(spread) and not too_many
    return Verdict.PASS if by_chance else Verdict.FAIL, f"{told}; {too_many or 'outside'}"


def _z(claim: NumericClaim, value: float) -> float:
    """How many deviations a value lies from the middle of the runs."""
    seen = claim.band.observed
    middle = statistics.fmean(seen) if seen else (claim.band.low + claim.band.high) / 2
    return (value - middle) / spread_of(claim)


def _reach(runs: int, chance: float) -> float:
    """Deviations within which one more run lies but for this chance; of a band without its runs, as of three."""
    return prediction_reach(max(runs, 3), chance)


def _outside(claims: Sequence[NumericClaim], found: Mapping[str, Found]) -> int:
    """Numbers outside of their bands."""
    given = [(claim.band, found[claim.id]) for claim in claims]
    return sum(not band.low - item.slack <= item.value <= band.high + item.slack for band, item in given)


def _allowed(count: int) -> int:
    """The number outside that 999 of 1,000 honest tasks do not exceed; of a single number none."""
    if count < 2:
        return 0
    return next(k for k in range(count + 1) if float(special.bdtr(k, count, _CHANCE)) >= _CONFIDENCE)


class _Shift(NamedTuple):
    """Numbers that may be moved together: those of a value of a condition against the rest, or all."""

    name: str
    group: list[NumericClaim]
    rest: list[NumericClaim]

    def of(self, values: Mapping[str, float]) -> float:
        """By how many deviations, on average."""
        there = statistics.fmean(_z(claim, values[claim.id]) for claim in self.group)
        if not self.rest:
            return there
        return there - statistics.fmean(_z(claim, values[claim.id]) for claim in self.rest)


def _moved(claims: Sequence[NumericClaim], found: Mapping[str, Found]) -> dict[str, str]:
    """Claim id -> what it is moved together with, more than in any of the runs that the bands come from."""
    runs = len(claims[0].band.observed) if claims else 0
    if not runs or any(len(claim.band.observed) != runs for claim in claims):
        return {}
    shifts = [*_groups(claims), *([_Shift("all", list(claims), [])] if len(claims) >= _GROUP else [])]
    given = {claim.id: found[claim.id].value for claim in claims}
    moved: dict[str, str] = {}
    for shift in shifts:
        own = [shift.of({claim.id: claim.band.observed[run] for claim in claims}) for run in range(runs)]
        # deviations are those of these same runs: another run lies farther off, the more so the fewer there are
        varies = max(statistics.stdev(own), _FLOOR) * math.sqrt((runs - 1) / (runs - 3) if runs > 3 else 3.0)
        if abs(value := shift.of(given)) > _reach(runs, _SHIFTED / len(shifts)) * varies:
            told = f"the {len(shift.group)} numbers of {shift.name} are moved together by {value:+.1f} deviations"
            moved |= dict.fromkeys((claim.id for claim in shift.group), told)
    return moved


def _groups(claims: Sequence[NumericClaim]) -> list[_Shift]:
    """Values of conditions that several claims have, and not all."""
    groups: dict[str, list[NumericClaim]] = {}
    for claim in claims:
        for condition in claim.conditions:
            groups.setdefault(f"{condition.name} = {condition.value}", []).append(claim)
    return [
        _Shift(name, group, [claim for claim in claims if claim not in group])
        for name, group in groups.items()
        if _GROUP <= len(group) < len(claims)
    ]
