"""How the reference solvers play the tiers beyond the paper: by signature (L1V), blind (L1B), boundary (L4).

L1V: a probe of the control shows the hidden world's signature; the candidate whose isolated effect has the same one is
it. L1B: probe one metric after the other until one has moved, then sweep on it. As at the paper's tiers, a sweep that
finds none or several such candidates ends without an answer. L4: the two ends set the half-way
level; `ofat` measures an even grid and interpolates, `adaptive` cuts the interval into three with every pair of points;
both bracket their estimate with a last experiment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from evaluation.families.causal.bench import Bench, signature
from evaluation.families.causal.task import Effect

__all__ = ["BEYOND", "guess_beyond", "sweep_beyond"]

BEYOND: Final = frozenset({"L1V", "L1B", "L4"})
_GRID_CALLS: Final = 5
_CUTS: Final = 3
"""3^-3 of the range is 0.037, within the tolerance of 0.04; interpolation does the rest."""


def guess_beyond(bench: Bench, rng: np.random.Generator) -> None:
    """A seeded guess without any experiment."""
    task, metrics = bench.task, bench.engine.metrics
    chosen = task.candidates[int(rng.integers(len(task.candidates)))]
    answer: dict[str, Any]
    if task.sweep is not None:
        low, high = task.sweep
        answer = {"estimate": low + (high - low) * float(rng.random())}
    elif task.tier == "L1V":
        effects: Sequence[Effect] = ("up", "down", "none")
        answer = {"effects": {name: effects[int(rng.integers(3))] for name in metrics}}
    else:
        answer = {
            "metric": metrics[int(rng.integers(len(metrics)))],
            "direction": "up" if rng.random() < 0.5 else "down",
        }
    bench.submit((chosen,), **answer)


def sweep_beyond(
    bench: Bench, values: Mapping[str, float], *, early: bool, rng: np.random.Generator | None = None
) -> None:
    """Solve a task of these tiers.

    Args:
        bench: of the task.
        values: candidate -> value to intervene with.
        early: stop as soon as the answer shows.
        rng: draws the places of a boundary search; None: they are spaced.
    """
    {"L1V": _by_signature, "L1B": _blind}.get(bench.task.tier, _boundary)(bench, values, early, rng)


def _by_signature(bench: Bench, values: Mapping[str, float], early: bool, rng: np.random.Generator | None) -> None:
    hidden = signature(bench.probe({}))
    alike = []
    for name in bench.task.candidates:
        if signature(bench.experiment({}, {name: values[name]})) == hidden:
            alike.append(name)
            if early:
                break
    if len(alike) == 1:
        bench.submit((alike[0],), effects=hidden)


def _blind(bench: Bench, values: Mapping[str, float], early: bool, rng: np.random.Generator | None) -> None:
    metrics = bench.engine.metrics
    for metric in metrics:
        hidden = bench.probe({}, metric)
        if hidden.significant:
            break
    telling = []
    for name in bench.task.candidates:
        if bench.experiment({}, {name: values[name]}, metric).significant:
            telling.append(name)
            if early:
                break
    if len(telling) == 1:
        bench.submit((telling[0],), metric=metric, direction="up" if hidden.mean_b > hidden.mean_a else "down")


def _boundary(bench: Bench, values: Mapping[str, float], early: bool, rng: np.random.Generator | None) -> None:
    assert bench.task.sweep is not None
    name, (low, high) = bench.task.candidates[0], bench.task.sweep
    ends = bench.experiment({name: low}, {name: high})
    known = {low: ends.mean_a, high: ends.mean_b}
    level = (ends.mean_a + ends.mean_b) / 2
    if early:
        for _ in range(_CUTS):
            left, right = _crossing(known, level)
            _measure(bench, known, left + (right - left) / 3, right - (right - left) / 3)
    else:
        count = 2 * _GRID_CALLS
        places = (np.arange(1, count + 1) / (count + 1)) if rng is None else np.sort(rng.random(count))
        points = [low + (high - low) * float(place) for place in places]
        for first, second in zip(points[::2], points[1::2], strict=True):
            _measure(bench, known, first, second)
    left, right = _crossing(known, level)
    share = (level - known[left]) / (known[right] - known[left]) if known[right] != known[left] else 0.5
    estimate = left + (right - left) * share
    step = (high - low) / 8
    bench.experiment({name: max(low, estimate - step)}, {name: min(high, estimate + step)})
    bench.submit((name,), estimate=estimate)


def _measure(bench: Bench, known: dict[float, float], first: float, second: float) -> None:
    name = bench.task.candidates[0]
    found = bench.experiment({name: first}, {name: second})
    known |= {first: found.mean_a, second: found.mean_b}


def _crossing(known: Mapping[float, float], level: float) -> tuple[float, float]:
    """The first two neighbouring places between which the mean crosses the level."""
    places = sorted(known)
    pairs = list(pairwise(places))
    return next((pair for pair in pairs if (known[pair[0]] > level) != (known[pair[1]] > level)), pairs[0])
