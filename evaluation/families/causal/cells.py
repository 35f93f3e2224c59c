"""What generation simulates: one configuration is one cell, simulated once; and the random draws of an attempt."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Final

import numpy as np

from evaluation.families.causal.engines import Engine, Metrics, Parameter
from evaluation.families.causal.task import REPLICATES, Tier, replicate_seeds

__all__ = ["SEEDS", "Cells", "attempt_generator", "digits", "draw_hidden"]

SEEDS: Final = 36
"""Replicates per cell at generation: three times the bench's, so that subsamples differ (petri-bench 5)."""


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
        self._known: dict[tuple[tuple[str, float], ...], Metrics] = {}

    def __call__(self, **overrides: float) -> Metrics:
        """Values of one configuration on the bench's replicates, shape (12,) a metric."""
        key = tuple(sorted(overrides.items()))
        if key not in self._known:
            self._known[key] = self.engine.run({**self.base, **overrides}, self.seeds[:REPLICATES])
        return self._known[key]

    def all_seeds(self, **overrides: float) -> Metrics:
        """The same on all of generation's replicates, shape (36,); only what passed is worth that."""
        rest = self.engine.run({**self.base, **overrides}, self.seeds[REPLICATES:])
        return {name: np.concatenate([values, rest[name]]) for name, values in self(**overrides).items()}


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
