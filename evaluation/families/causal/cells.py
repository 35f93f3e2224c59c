"""What generation simulates: one configuration is one cell, simulated once; and the random draws of an attempt."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Final

import numpy as np

from evaluation.families.causal.engines import Engine, Metrics, Parameter
from evaluation.families.causal.inference import ALPHA, cliffs_delta, holm, mann_whitney
from evaluation.families.causal.task import REPLICATES, Effect, Tier, replicate_seeds

__all__ = ["SEEDS", "Cells", "adjusted", "attempt_generator", "digits", "draw_hidden"]

SEEDS: Final = 36
"""Replicates per cell at generation: three times the bench's, so that subsamples differ (petri-bench 5)."""

_Key = tuple[tuple[str, float], ...]


class Cells:
    """Cells of one engine under the seeds of one task.

    Args:
        engine: the simulation.
        seed: of the task.
        base: overrides that every cell has (the drawn control of a boundary task).
        stream: which of the seed's sets of replicates.
    """

    def __init__(self, engine: Engine, seed: int, base: Mapping[str, float] | None = None, stream: int = 0) -> None:
        self.engine, self.stream = engine, stream
        self.base = dict(base or {})
        self.seeds = replicate_seeds(seed, engine.name, SEEDS, stream)
        self._known: dict[_Key, Metrics] = {}
        self._tested: dict[_Key, dict[str, float]] = {}

    def __call__(self, **overrides: float) -> Metrics:
        """Values of one configuration on the bench's replicates, shape (12,) a metric."""
        key = _key(overrides)
        if key not in self._known:
            self._known[key] = self.engine.run({**self.base, **overrides}, self.seeds[:REPLICATES])
        return self._known[key]

    def against_control(self, **overrides: float) -> dict[str, float]:
        """Metric -> Holm-adjusted p of one configuration against the control, as the bench reports it.

        Tested once: draws on one set of replicates ask for the same curated cells again and again, and then the tests,
        not the simulations, took nine tenths of an L1V task's time.
        """
        key = _key(overrides)
        if key not in self._tested:
            self._tested[key] = adjusted(self(), self(**overrides))
        return self._tested[key]

    def effects(self, **overrides: float) -> dict[str, Effect]:
        """Metric -> what the configuration shows against the control."""
        control, cell = self(), self(**overrides)
        return {
            name: "none" if p >= ALPHA else "up" if cliffs_delta(control[name], cell[name]) > 0 else "down"
            for name, p in self.against_control(**overrides).items()
        }

    def all_seeds(self, **overrides: float) -> Metrics:
        """The same on all of generation's replicates, shape (36,); only what passed is worth that."""
        rest = self.engine.run({**self.base, **overrides}, self.seeds[REPLICATES:])
        return {name: np.concatenate([values, rest[name]]) for name, values in self(**overrides).items()}


def adjusted(first: Metrics, second: Metrics) -> dict[str, float]:
    """Metric -> p of the Mann-Whitney test between two cells, adjusted by Holm over the metrics."""
    names = sorted(first)
    raw = [float(mann_whitney(first[name], second[name])[1]) for name in names]
    return dict(zip(names, holm(raw).tolist(), strict=True))


def _key(overrides: Mapping[str, float]) -> _Key:
    return tuple(sorted(overrides.items()))


def attempt_generator(seed: int, engine: Engine, tier: Tier, attempt: int) -> np.random.Generator:
    """The random numbers of one attempt at one task."""
    sequence = np.random.SeedSequence((seed, zlib.crc32(f"{engine.name} {tier}".encode()), attempt))
    return np.random.Generator(np.random.PCG64(sequence))


def draw_hidden(parameter: Parameter, rng: np.random.Generator) -> float:
    """A hidden value from the parameter's range."""
    low, high = parameter.hidden or (0.0, 0.0)
    value = low + (high - low) * float(rng.random())
    return float(round(value)) if parameter.integer else digits(value, 4)


def digits(value: float, count: int) -> float:
    """A value with so many significant digits: what is frozen does not depend on the last bits."""
    return float(f"{value:.{count}g}")
