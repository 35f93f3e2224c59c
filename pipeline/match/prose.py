"""Numbers of sentences against the numbers of files and runs.

A single number of three digits is found by accident somewhere. So the numbers of a sentence are weighed together, and
each by how many of a source's numbers are named by the words of its sentence at least as well as the one that equals
it: among few candidates agreement is rare.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from scipy import special

from pipeline.match.alignment import FACTORS, Grid, find_edges, make_pool, read_grid
from pipeline.match.chance import LEAST, agreement_chances
from pipeline.match.printed import PrintedNumber, list_printed
from pipeline.match.records import ProseMatch, Source
from pipeline.match.views import Holding
from pipeline.paper import Document
from pipeline.validation.observation import Observation

__all__ = ["match_prose"]

Array = np.ndarray[Any, Any]

_ACCEPTED: Final = -3.5
"""log10 of the chance; a paper has many more sentences than tables."""
_OWN: Final = 0.01
"""Of an accepted sentence the numbers are kept that are as improbable by themselves."""
_WORD: Final = re.compile(r"[^\W_]+")


def match_prose(document: Document, sources: Sequence[tuple[Source, Sequence[Observation]]]) -> tuple[ProseMatch, ...]:
    """The numbers of sentences that the sources hold, beyond chance.

    Args:
        document: the paper.
        sources: files and streams, each with its numbers in reading order.
    """
    numbers = [number for number in list_printed(document) if number.sentence]
    holdings = [Holding([part], [index]) for index, part in enumerate(sources) if part[1]]
    if not numbers or not holdings:
        return ()
    grid = read_grid([number.evolve(row=index, column=0) for index, number in enumerate(numbers)])
    said = np.unique([f"{number.id.partition(':')[0]} {number.sentence}" for number in numbers], return_inverse=True)[1]
    edges = find_edges(grid, make_pool(holdings))
    start = 0
    result: list[ProseMatch] = []
    for holding in holdings:
        low, high = np.searchsorted(edges.numbers, [start, start + len(holding.values)])
        own = edges.cells[low:high], edges.numbers[low:high] - start, edges.factors[low:high]
        result += _match_source(grid, said, holding, *own, math.log10(len(holdings)))
        start += len(holding.values)
    order = {number.id: index for index, number in enumerate(numbers)}
    return tuple(sorted(result, key=lambda match: (order[match.printed], match.chance)))


def _match_source(
    grid: Grid, said: Array, holding: Holding, cells: Array, numbers: Array, factors: Array, tried: float
) -> list[ProseMatch]:
    words = _words_of(holding)
    chances = np.ones(len(grid.values))
    partner = np.full(len(grid.values), -1)
    # the same number twice in a sentence is one
    once = np.unique(said * len(grid.values) + grid.distinct, return_index=True)[1]
    for cell in np.intersect1d(once, cells):
        own = np.flatnonzero(cells == cell)
        names = _score(grid.numbers[cell].sentence, words, len(holding.values))
        best = own[np.argmax(names[numbers[own]] - 0.01 * factors[own])]
        if names[numbers[best]] <= 0:
            continue
        named_as_well = np.count_nonzero(names >= names[numbers[best]])
        factor = FACTORS[factors[best]]
        alike = np.sort(holding.values * factor)
        index = np.array([cell])
        agree = agreement_chances(grid.values[index], grid.halves[index], alike, np.array([1]), grid.rounds[index])
        plain = factor == 1 or (factor == 100 and grid.numbers[cell].unit == "%")
        readings = 2 if plain else 2 * len(FACTORS)
        chances[cell] = min(1.0, max(float(agree[0]), LEAST) * named_as_well * readings)
        partner[cell] = best
    result: list[ProseMatch] = []
    for sentence in np.unique(said[once]):
        members = once[said[once] == sentence]
        together = _combine(chances[members]) + tried
        if together <= _ACCEPTED:
            kept = members[chances[members] <= _OWN]
            result += [
                _write(grid.numbers[cell], holding, numbers[partner[cell]], factors[partner[cell]], words, together)
                for cell in kept
            ]
    return result


def _combine(chances: Array) -> float:
    """log10 of a bound of the chance that some of independent tests are together as surprising as the best of these.

    Fisher's method for the best one, the best two, ..., times the number of ways to choose as many.
    """
    total = len(chances)
    surprise = np.cumsum(-np.log(np.sort(chances)))
    best = 0.0
    for count in range(1, total + 1):
        tail = float(special.gammaincc(count, surprise[count - 1]))
        best = min(best, math.log10(max(tail, 1e-300) * math.comb(total, count) * total))
    return best


def _words_of(holding: Holding) -> dict[str, Array]:
    """Numbers by the words of their names, without words that all have."""
    found: dict[str, list[int]] = {}
    known: dict[str, tuple[str, ...]] = {}
    for index, seen in enumerate(holding.observations):
        texts = (*seen.labels, *(value for _, value in seen.coordinates), *seen.context[1:])
        names = [known.setdefault(text, tuple(_WORD.findall(text.casefold()))) for text in texts if text != seen.text]
        for word in {word for name in names for word in name if not word.isdigit()}:
            found.setdefault(word, []).append(index)
    return {word: np.array(at) for word, at in found.items() if len(at) < len(holding.values)}


def _score(sentence: str, words: dict[str, Array], count: int) -> Array:
    """How well each number is named by a sentence: rare words count more."""
    result = np.zeros(count)
    for word in set(_WORD.findall(sentence.casefold())):
        if word in words:
            result[words[word]] += math.log10(count / len(words[word]))
    return result


def _write(
    printed: PrintedNumber, holding: Holding, number: int, factor: int, words: dict[str, Array], chance: float
) -> ProseMatch:
    seen, source = holding.observations[number], holding.sources[0]
    shared = [
        word for word in dict.fromkeys(_WORD.findall(printed.sentence.casefold())) if number in words.get(word, ())
    ]
    return ProseMatch(
        printed=printed.id, text=printed.text, value=printed.value, decimals=printed.decimals, page=printed.page,
        sentence=printed.sentence, source=source.name, origin=source.origin, command=source.command,
        place=holding.places[number], where=seen.where, observed=seen.value, factor=FACTORS[factor],
        words=tuple(shared), chance=round(chance, 2),
    )  # fmt: skip
