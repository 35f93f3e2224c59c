"""Of which files the lines are cited: those of the chain and those that rank nearly as high, at a price.

A ranking does not say where to stop. What says it is the price of a file: how far it lies below the best one, less when
the chain runs it, more when it is long, because a long file that is wrong costs more precision than a short one. Files
up to `NEAR` are cited; those up to `FAR` may be looked into where nothing may be missed.

Non-goals: which lines of a file. Given the files that 103 published tasks name, neither what their functions share with
the task's words, nor whether they are reached from the entry point, nor their size or place tells cited lines from
others (area under the curve .49 to .61); by a model learnt without the paper at hand, precision stays at .55 whatever
is left out. So a file is cited with all that it defines.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Final

from pipeline.repository import Snapshot
from pipeline.schema import Record
from pipeline.task import Requirement
from pipeline.tracing.coverage import definitions_of, lines_of

__all__ = ["FAR", "NEAR", "CitedFile", "price", "priced"]

# Recall and precision of the lines that 102 published tasks cite in their own files, means over papers, scores out of
# fold, by the price up to which files are cited: 0: .45/.33, 0.6: .55/.30, 1: .63/.27, 1.5: .71/.23, 2: .77/.21,
# 2.5: .81/.19; the true files: .95/.54. Of the lines of a file with a price up to 1, .18 are cited; beyond it, .08.
# `benchmarks/locator/spans.py` prints the curve.
NEAR: Final = 1.0
"""Price up to which a file's lines are requirements."""
FAR: Final = 2.5
"""Price up to which they are listed apart."""
_CHAIN_BONUS: Final = 0.5
"""Of files whose score lies up to 0.6 below the best one's, 55% are sources of their task when the chain has them, 28%
when it does not; the chain is worth about as much as half a point of the score."""
_LENGTH: Final = 0.3
_LONG: Final = 150
"""Lines from which a file is long; half of the files that published tasks name have fewer than 80."""
_LOOKED_AT: Final = 12
"""Files of the ranking that are looked at; of those whose score lies more than 3 below, one in twenty is a source."""
_SHARES: Final = ((0.0, 0.34), (1.0, 0.18), (math.inf, 0.08))
"""(price up to, share of the lines that published requirements cite): means over papers, scores out of fold."""


class CitedFile(Record):
    """A file and what it defines."""

    path: str
    definitions: tuple[Requirement, ...]
    lines: int
    """Lines that the definitions span."""
    price: float
    in_chain: bool

    @property
    def likely(self) -> float:
        """Share of these lines that requirements of a task with this price cite, measured on published tasks."""
        return next(share for limit, share in _SHARES if self.price <= limit)


def price(gap: float, lines: int, *, in_chain: bool) -> float:
    """What citing a file costs; 0 for the best one.

    Args:
        gap: how far its score lies below the best one's.
        lines: how many lines it defines.
        in_chain: whether it was decided to belong to the answer.
    """
    if gap <= 0:
        return 0.0
    long = max(0.0, math.log(max(lines, 1) / _LONG))
    return max(0.0, gap - _CHAIN_BONUS * in_chain + _LENGTH * long)


def priced(snapshot: Snapshot, ranked: Sequence[tuple[str, float]], chain: Collection[str]) -> tuple[CitedFile, ...]:
    """The files of an answer with their prices: the chain in its order, then others in that of the ranking.

    Args:
        snapshot: the repository.
        ranked: (path, score), best first.
        chain: paths of the chain; one that is not ranked is never cited, only its steps are.

    Returns:
        Files with a price up to `FAR`; those that define nothing readable are left out.
    """
    if not ranked:
        return ()
    best = ranked[0][1]
    scores = dict(ranked)
    paths = dict.fromkeys([*chain, *(path for path, _ in ranked[:_LOOKED_AT])])
    found: list[CitedFile] = []
    for path in paths:
        gap = best - scores[path] if path in scores else math.inf
        if gap - _CHAIN_BONUS > FAR:
            continue  # before it is read
        definitions = definitions_of(snapshot, [path])
        lines = len(lines_of(definitions))
        cost = price(gap, lines, in_chain=path in chain)
        if definitions and cost <= FAR:
            found.append(CitedFile(path=path, definitions=definitions, lines=lines, price=cost, in_chain=path in chain))
    return tuple(found)
