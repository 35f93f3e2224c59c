"""What a simulation is to the benchmark: named parameters with legal ranges, named metrics, one vectorised function.

Engines are deterministic per seed to the last bit, also on another processor: their loops use only operations that
IEEE 754 defines exactly (`+ - * /` and square root) on arrays, no matrix products (BLAS kernels differ) and no
transcendental functions (NumPy picks another implementation where it finds AVX-512, and a last bit grows into another
trajectory).
Replicates are simulated together, one array axis; what a replicate draws depends on its own seed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from pipeline.schema import Record

__all__ = ["SLIDER", "Config", "Engine", "Metrics", "Parameter", "generators"]

SLIDER: Final = 10 / 3
"""Greatest legal value, in controls, of a parameter for which no range is published: the median of 15 sliders of public
simulators of these models, greatest value over default. NetLogo Flocking (Wilensky, 1998): 3.3, 3.3, 4, 5, 6.7, 13.3;
NetLogo bounded confidence (Lorenz, 2015): 2, 4.3; The Coding Train's flocking (Shiffman, 2018): 2, 2, 2; a Gray-Scott
playground: 1.4, 1.8, 3.6, 4.3."""
Config = Mapping[str, float]
Metrics = dict[str, NDArray[np.float64]]


class Parameter(Record):
    """A parameter of a simulation."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    control: float
    low: float
    """Least value that the model is defined for."""
    high: float
    test_value: float
    """Curated value that is known to show the parameter's effect; what the reference solvers intervene with."""
    hidden: tuple[float, float] | None = None
    """Range that a hidden value is drawn from; None: the parameter never drives a task."""
    decoy: bool = False
    """May it be a decoy? What is inert at its curated value can be one; that it is inert there is verified per task."""
    integer: bool = False
    published: tuple[float, float] | None = None
    """Range that a published simulator's slider, a study of the model or the quantity's meaning gives it."""
    source: str = ""
    """Whose range that is."""
    meaning: str

    @model_validator(mode="after")
    def _is_consistent(self) -> Parameter:
        low, high = self.legal
        values = (self.control, self.test_value, *(self.hidden or ()))
        if not all(self.low <= low <= value <= high <= self.high for value in values):
            raise ValueError(f"{self.name}: a value lies outside [{low}, {high}]")
        if (self.published is None) != (not self.source):
            raise ValueError(f"{self.name}: a published range needs its source, and a source a range")
        return self

    @property
    def legal(self) -> tuple[float, float]:
        """Least and greatest value that an experiment may set, and that `ofat-rand` draws from.

        What a designer of such a simulator lets people set, wide on purpose: the published range where there is one;
        else a scale (no negative values, a control above 0) goes up to `SLIDER` controls, and what has no scale as far
        as the model is defined. Where the engine is not defined over all of that, it is cut. The range does not depend
        on whether a parameter drives tasks, so that a refused value does not tell.
        """
        if self.published is not None:
            return max(self.low, self.published[0]), min(self.high, self.published[1])
        if self.low < 0 or self.control <= 0:
            return self.low, self.high
        return self.low, min(self.high, self.control * SLIDER)


class Engine(Record):
    """One simulation."""

    name: str
    version: str
    """Raised with every change of what a seed gives; frozen tasks name it."""
    domain: str
    parameters: tuple[Parameter, ...]
    metrics: tuple[str, ...]
    target: str
    """Target metric at L1 and L2."""
    interaction_target: str
    """Target metric at L3."""
    simulate: Callable[[Config, Sequence[int]], Metrics] = Field(exclude=True)
    """(complete configuration, one seed per replicate) -> metric -> values, shape (replicates,)."""

    @property
    def control(self) -> dict[str, float]:
        """The revealed control configuration."""
        return {parameter.name: parameter.control for parameter in self.parameters}

    def parameter(self, name: str) -> Parameter:
        """The parameter of that name.

        Raises:
            KeyError: there is none.
        """
        return next_or_error(self, name)

    def run(self, overrides: Config, seeds: Sequence[int]) -> Metrics:
        """Simulate the control with some parameters changed.

        Args:
            overrides: parameter -> value; integers are rounded.
            seeds: one per replicate.

        Raises:
            KeyError: an unknown parameter.
            ValueError: a value that the model is not defined for.
        """
        config = self.control
        for name, value in overrides.items():
            parameter = self.parameter(name)
            if not parameter.low <= value <= parameter.high:  # false for NaN too
                raise ValueError(f"{name} = {value:g} is outside [{parameter.low:g}, {parameter.high:g}]")
            config[name] = float(round(value)) if parameter.integer else float(value)
        return self.simulate(config, seeds)


def next_or_error(engine: Engine, name: str) -> Parameter:
    """Look a parameter up."""
    for parameter in engine.parameters:
        if parameter.name == name:
            return parameter
    raise KeyError(f"{engine.name} has no parameter {name!r}; it has {', '.join(p.name for p in engine.parameters)}")


def generators(seeds: Sequence[int], stream: int) -> list[np.random.Generator]:
    """One generator per replicate, for one purpose (`stream`), so that draws of one purpose never shift another's."""
    return [np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, stream)))) for seed in seeds]
