"""How probable is it that numbers agree by accident?

A printed number stands for an interval. What counts is how many of the numbers that could have stood in its place lie
in it: they crowd between .8 and .9, on whole numbers, on multiples of 1/30 (a test set of 30), on round values. All of
that is taken from the numbers themselves, at every width of the neighbourhood, and the least favourable one counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

__all__ = ["LEAST", "agreement_chances", "code_length", "find_spacing", "round_chances", "tail_bound"]

Array = np.ndarray[Any, Any]

_WIDTHS: Final = 10.0 ** np.arange(0, 6.5, 0.5)
_LEVELS: Final = np.concatenate([[0.001, 0.01, 0.1], np.arange(1, 401)])
_SLOPES: Final = np.array([0.25, 0.5, 0.7, 0.85, 1.0, 1.25, 1.6, 2.2, 3.5, 6.0])
_SAMPLE: Final = 64
LEAST: Final = 1e-6
"""No single number is worth more than six digits, however long it is."""


def round_chances(values: Array) -> Array:
    """That a number with as few digits as this one is just this one: first digits follow Benford's law.

    400 has one digit (0.1), 0.725 three (0.0006): round values are found everywhere.
    """
    result = np.ones(len(values))
    for index, value in enumerate(values):
        digits = f"{abs(float(value)):.12e}".partition("e")[0].replace(".", "").rstrip("0")
        if digits:
            result[index] = math.log10(1 + 1 / int(digits))
    return result


def find_spacing(values: Array, half: float) -> float:
    """The spacing of the grid that all values lie on (1/30 for shares of 30, 1 for counts); 0 when there is none.

    Args:
        values: numbers of one field.
        half: half a unit of the last digit they show.
    """
    distinct = np.unique(values)[:_SAMPLE]
    distinct = distinct[distinct != 0]
    if len(distinct) < 2:
        return 0.0
    scaled = np.outer(distinct, _LEVELS)
    slack = np.maximum(half * _LEVELS, 1e-9 * np.abs(scaled).max(axis=0)) * 1.001
    fits = (np.abs(scaled - np.round(scaled)).max(axis=0) <= slack) & (slack < 0.2)
    # that so many values lie on a grid by accident, with all coarser grids tried
    fits &= len(distinct) * np.log10(2 * np.minimum(slack, 0.5)) + np.log10(np.arange(1, len(_LEVELS) + 1)) < -2
    return float(1 / _LEVELS[np.argmax(fits)]) if fits.any() else 0.0


def agreement_chances(printed: Array, halves: Array, population: Array, others: Array, rounds: Array) -> Array:
    """For each printed number, that one number like those of `population` lies in its interval.

    Args:
        printed: the numbers.
        halves: half widths of their intervals.
        population: sorted numbers that could have stood in its place.
        others: how many of them are the number itself, its partner included; they tell nothing.
        rounds: their `round_chances`.
    """
    size = np.maximum(len(population) - others, 1)
    result = rounds
    reach = halves[:, None] * _WIDTHS
    near = np.searchsorted(population, printed[:, None] + reach * 1.000001, "right")
    near = near - np.searchsorted(population, printed[:, None] - reach * 1.000001, "left") - others[:, None]
    # one neighbour may be an accident itself; two at the same distance are a density
    result = np.maximum(result, np.where(near >= 2, near / size[:, None] / _WIDTHS, 0.0).max(axis=1))
    # without neighbours: anywhere within its order of magnitude
    return np.asarray(np.minimum(np.maximum(result, 2 * halves / np.maximum(np.abs(printed), halves)), 1.0))


def tail_bound(chances: Array, hits: Array) -> float:
    """log10 of a bound of the probability that independent events with these chances are as surprising as the hits.

    Chernoff's bound for the sum of the hits' surprisals: rare agreements count more than frequent ones.
    """
    chances = np.clip(chances, LEAST, 1.0)
    weights = -np.log(chances)
    total = float(weights[hits].sum())
    if total <= 0:
        return 0.0
    grown = np.log1p(chances * np.expm1(np.minimum(np.outer(_SLOPES, weights), 500.0))).sum(axis=1)
    return float(min(0.0, (grown - _SLOPES * total).min())) / math.log(10)


def code_length(counts: Sequence[int]) -> float:
    """Decimal digits that say which of n things belong to which of several kinds, when that many do."""
    total, kinds = sum(counts), len(counts)
    ways = math.lgamma(total + 1) - sum(math.lgamma(count + 1) for count in counts)
    return (ways + math.log(math.comb(total + kinds - 1, kinds - 1))) / math.log(10)
