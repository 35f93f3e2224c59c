"""One score a file from signals and weights, with the signals' contributions kept for the reader."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.locator.dense import Embed, likeness
from pipeline.locator.index import RepositoryIndex
from pipeline.locator.query import QueryWords
from pipeline.locator.signals import later_signals, query_signals
from pipeline.locator.weights import ALIKE, FIXED, SIGNALS, Signal

__all__ = ["Ranking", "rank"]

Vector = npt.NDArray[np.float64]
_COMPARED = 15
"""Files that an embedding model compares with the task."""
_SHOWN = 5
"""Reasons given a file: more are not read."""


@dataclass(slots=True)
class Ranking:
    """Files in the order of their score."""

    index: RepositoryIndex
    scores: Vector
    """In the order of `index.facts`."""
    signals: dict[str, Vector]
    weights: Mapping[str, Signal]
    order: list[int]
    """Positions, best first; ties by path."""

    def reasons(self, position: int) -> tuple[str, ...]:
        """The strongest signals of a file in words, with what each adds to (or takes from) the score."""
        parts = []
        for name, signal in self.weights.items():
            value = float(self.signals[name][position]) * signal.weight
            if abs(value) >= 0.05:
                parts.append((abs(value), value, signal.says))
        parts.sort(key=lambda part: (-part[0], part[2]))
        return tuple(f"{value:+.2f} {says}" for _, value, says in parts[:_SHOWN])

    def score(self, path: str) -> float:
        """The score of a path."""
        return float(self.scores[self.index.position[path]])


def rank(
    index: RepositoryIndex,
    words: QueryWords,
    *,
    weights: Mapping[str, Signal] | None = None,
    without: Collection[str] = (),
    documents: bool = True,
    embed: Embed | None = None,
    text: str = "",
) -> Ranking:
    """Rank all files of `index` for a task.

    Args:
        index: the repository.
        words: the task.
        weights: other weights than those of `weights.SIGNALS` and `weights.FIXED` (for learning and ablations).
        without: names of signals to leave out.
        documents: whether README and documentation may be used.
        embed: makes vectors, by which the best files are compared with `text` too; None: no such model.
        text: the task in words, for `embed`.
    """
    table = {name: signal for name, signal in (weights or {**SIGNALS, **FIXED}).items() if name not in without}
    values = dict(index.static)
    if not documents:
        values["documented"] = values["mentioned"] = np.zeros(index.size)
    values.update(query_signals(index, words, documents=documents))
    first = np.zeros(index.size)
    for name, signal in table.items():
        if name in values:
            first += signal.first * values[name]
    values.update(later_signals(index, words, first, documents=documents))
    final = np.zeros(index.size)
    for name, signal in table.items():
        final += signal.weight * values[name]
    order = _order(index, final)
    if embed is not None:
        best = order[:_COMPARED]
        values["alike"] = np.zeros(index.size)
        values["alike"][best] = likeness(embed, text, [index.facts[number] for number in best])
        table["alike"] = ALIKE
        lifted = final + ALIKE.weight * values["alike"]
        rest = order[_COMPARED:]
        if rest:  # files that were not compared stay below those that were
            lifted[best] = np.maximum(lifted[best], final[rest].max() + 1e-6)
        final = lifted
        order = _order(index, final)
    return Ranking(index, final, values, table, order)


def _order(index: RepositoryIndex, scores: Vector) -> list[int]:
    return sorted(range(index.size), key=lambda number: (-round(float(scores[number]), 9), index.facts[number].path))
