"""Do the numbers of a conclusion occur in what a run printed or wrote?

A reported number occurs when a printed one rounds to it at the digits that were reported; reporting more digits than
were printed is reporting something that nobody printed. Percent and share are the same number where the name or the
print says percent, or where three digits agree.

Non-goal: whether the number is the right one (the judge), or was computed honestly (the monitor).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final

from evaluation.verdicts import NumberTrace
from pipeline.task import Verdict
from pipeline.validation.numbers import half_unit
from pipeline.validation.observation import Observation
from pipeline.validation.tokens import words

__all__ = ["occurs", "reported_digits", "trace_numbers"]

_MAX_PLACES: Final = 3
_SCALED_DIGITS: Final = 3
"""Two digits agree by chance in any longer log once a factor of 100 is allowed too."""
_SLACK: Final = 1e-9
"""Relative: 0.285 is 0.28499999999999998 as a float, and half a unit away from 0.29 all the same."""


def reported_digits(value: float) -> tuple[int, int]:
    """(decimal places, significant digits) of a number as its shortest text has them; `87.0` has (0, 2)."""
    number = Decimal(repr(float(value))).normalize()
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int), "only finite numbers are asked for"
    return max(0, -exponent), max(1, len(digits) + max(0, exponent))


def occurs(name: str, value: float, seen: Observation) -> bool:
    """Is `seen` the reported number, at the digits that were reported?

    Args:
        name: the number's name in the conclusion; says whether it is a percentage.
        value: the reported number.
        seen: a number of the run.
    """
    if not math.isfinite(value):
        return False
    places, significant = reported_digits(value)
    if _rounds_to(seen.value, seen.decimals, value, places, significant):
        return True
    percent = seen.percent or "%" in name or "percent" in name.lower()
    if not percent and significant < _SCALED_DIGITS:
        return False
    return _rounds_to(seen.value * 100, seen.decimals - 2, value, places, significant) or _rounds_to(
        seen.value / 100, seen.decimals + 2, value, places, significant
    )


def _rounds_to(seen: float, seen_places: int, value: float, places: int, significant: int) -> bool:
    distance = abs(seen - value)
    exact = distance <= _SLACK * max(1.0, abs(value))
    if exact:
        return True
    if seen_places < places or significant < 2:
        return False  # the print has fewer digits than the report, or the report is a single digit: equal or not at all
    return distance <= half_unit(places) * (1 + _SLACK) + _SLACK * abs(value)


def trace_numbers(
    numbers: Mapping[str, float], seen: Sequence[Observation], *, complete: bool
) -> tuple[NumberTrace, ...]:
    """Where each number of the conclusion occurs, in the order of the names.

    Args:
        numbers: name -> value, as reported.
        seen: all numbers of the run.
        complete: was everything that the run left behind read? If not, a number that is not found is unknown.
    """
    missing = Verdict.FAIL if complete else Verdict.UNKNOWN
    traces = []
    for name, value in sorted(numbers.items()):
        places = _places(name, (item for item in seen if occurs(name, value, item)))
        traces.append(NumberTrace(name=name, value=value, files=places, verdict=Verdict.PASS if places else missing))
    return tuple(traces)


def _places(name: str, found: Iterable[Observation]) -> tuple[str, ...]:
    """Where it was found: places whose labels share words with the name come first."""
    wanted = set(words(name))

    def shared(item: Observation) -> int:
        around = " ".join((*item.labels, *(part for pair in item.coordinates for part in pair), *item.context))
        return len(wanted & set(words(around)))

    ranked = sorted(enumerate(found), key=lambda pair: (-shared(pair[1]), pair[0]))
    return tuple(dict.fromkeys(item.where for _, item in ranked))[:_MAX_PLACES]
