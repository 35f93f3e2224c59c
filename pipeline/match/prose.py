"""Numbers of sentences against the numbers of runs, by value alone.

A number of two digits is found by accident somewhere; `174,762` is not. How probable it is that a source holds a number
like this one depends on its digits and on the source's own numbers. Those of the paper's numbers that are rare in this
sense are weighed together: how many would be found by accident, how many were. What the code that ran sets (an option,
a constant) is no outcome and does not take part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from pipeline.match.alignment import FACTORS, Grid, find_edges, make_pool, read_grid
from pipeline.match.chance import agreement_chances, tail_bound
from pipeline.match.printed import PrintedNumber, list_printed
from pipeline.match.records import ProseMatch, Source
from pipeline.match.views import Holding
from pipeline.paper import Document
from pipeline.validation.observation import Observation

__all__ = ["match_prose"]

Array = np.ndarray[Any, Any]

_ACCEPTED: Final = -4.0
"""log10 of the chance that a source holds so many of the paper's numbers by accident."""
_RARE: Final = 0.01
"""Chance from which down a number takes part; it depends on the number and the source, not on what matched."""
_FEWEST: Final = 2
_SHARE: Final = 1 / 400
"""A number between 0 and 1, or a percentage, may be a share of a few hundred: it is told apart no finer than this. Seen
in simulations: of foreign papers with shares of 30 every one was accepted, of 150 two thirds."""


def match_prose(
    document: Document, sources: Sequence[tuple[Source, Sequence[Observation]]],
    is_set: Callable[[Source, float], bool] = lambda source, value: False,
) -> tuple[ProseMatch, ...]:  # fmt: skip
    """The numbers of sentences that the sources hold, beyond chance; each at its first mention.

    Args:
        document: the paper.
        sources: each with its numbers in reading order.
        is_set: is a number one that the code behind a source sets? Asked of sources that hold numbers of sentences.
    """
    first: dict[tuple[float, int], PrintedNumber] = {}
    for number in list_printed(document):
        if number.sentence:
            first.setdefault((number.value, number.decimals), number)
    printed = list(first.values())
    holdings = [Holding([part], [index]) for index, part in enumerate(sources) if part[1] and printed]
    result: list[ProseMatch] = []
    for holding in holdings:
        source = holding.sources[0]
        if len(set(_agreeing(printed, holding)[1].tolist())) < _FEWEST:
            continue  # what its code sets has to be read only where it could be taken for a result
        numbers = [number for number in printed if not is_set(source, abs(number.value))]
        if numbers:
            result += _match_source(numbers, holding, math.log10(len(holdings)))
    order = {number.id: index for index, number in enumerate(printed)}
    return tuple(sorted(result, key=lambda match: (order[match.printed], match.chance)))


def _agreeing(numbers: Sequence[PrintedNumber], holding: Holding) -> tuple[Grid, Array, Array, Array]:
    """The numbers as one column, and the pairs that agree: of them, of the source's, and the factor between the two."""
    grid = read_grid([number.evolve(row=index, column=0) for index, number in enumerate(numbers)])
    edges = find_edges(grid, make_pool([holding]))
    percent = np.array([number.unit == "%" for number in numbers])
    plain = (edges.factors == FACTORS.index(1.0)) | ((edges.factors == FACTORS.index(100.0)) & percent[edges.cells])
    return grid, edges.cells[plain], edges.numbers[plain], edges.factors[plain]


def _match_source(numbers: Sequence[PrintedNumber], holding: Holding, tried: float) -> list[ProseMatch]:
    grid, cells, held, factors = _agreeing(numbers, holding)
    percent = np.array([number.unit == "%" for number in numbers])
    hits = np.isin(np.arange(len(numbers)), cells)
    values = np.unique(holding.values)
    share = np.where(percent, 100.0, 1.0)
    halves = np.where(np.abs(grid.values) <= share, np.maximum(grid.halves, share * _SHARE / 2), grid.halves)
    rounds = np.where(np.abs(grid.values) <= share, np.maximum(grid.rounds, _SHARE), grid.rounds)
    readings = np.where(percent, 2, 1)
    chances = np.ones(len(numbers))
    for factor in (1.0, 100.0):  # of a percentage both readings count
        alike = agreement_chances(grid.values, halves, np.sort(values * factor), hits.astype(int), rounds)
        chances = np.where(percent | (factor == 1.0), np.minimum(chances, alike * len(values) * readings), chances)
    rare = chances <= _RARE
    together = tail_bound(chances[rare], hits[rare]) + tried
    kept = np.flatnonzero(hits & rare)
    if together > _ACCEPTED or len(kept) < _FEWEST:
        return []
    best: dict[int, int] = {}
    for at in sorted(range(len(cells)), key=lambda at: not _is_named(holding.observations[held[at]])):
        best.setdefault(int(cells[at]), at)  # one that has a name, where there is one
    return [
        _write(numbers[cell], holding, int(held[best[cell]]), FACTORS[factors[best[cell]]], together)
        for cell in kept.tolist()
    ]


def _is_named(seen: Observation) -> bool:
    return any(letter.isalpha() for label in seen.labels[-1:] for letter in label)


def _write(printed: PrintedNumber, holding: Holding, number: int, factor: float, chance: float) -> ProseMatch:
    seen, source = holding.observations[number], holding.sources[0]
    return ProseMatch(
        printed=printed.id, text=printed.text, value=printed.value, decimals=printed.decimals, unit=printed.unit,
        page=printed.page, sentence=printed.sentence, source=source.name, origin=source.origin, command=source.command,
        place=holding.places[number], where=seen.where, observed=seen.value, factor=factor, chance=round(chance, 2),
    )  # fmt: skip
