"""A causal task: a mystery world, frozen as JSON, in a half that the agent may see and a half that it may not."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from pipeline.schema import Record, StoredRecord

__all__ = [
    "BUDGET", "REPLICATES", "CausalTask", "Difficulty", "Direction", "Effect", "HiddenWorld", "Magnitude", "Tier",
    "Verification", "replicate_seeds",
]  # fmt: skip

Tier = Literal["L1", "L2", "L3", "L1V", "L1B", "L4"]
"""L1 to L3 are the paper's. Beyond it (its section 10): L1V identifies by the full metric vector, L1B does not reveal
the target metric, L4 asks for the location of a phase boundary."""
Direction = Literal["up", "down"]
Effect = Literal["up", "down", "none"]
Magnitude = Literal["small", "medium", "large"]

BUDGET = 8
"""Experiments and probes per episode (petri-bench 3.3)."""
REPLICATES = 12
"""Replicates per cell of an experiment (petri-bench 3.1)."""


class HiddenWorld(Record):
    """What only the graders know."""

    drivers: tuple[tuple[str, float], ...] = Field(min_length=1, max_length=2)
    """(parameter, hidden value); two at L3."""
    direction: Direction | None = None
    """Of the hidden world's target metric against the control; L1 and L2."""
    magnitude: Magnitude | None = None
    """L2: small 10-35 %, medium 35-75 %, large from 75 % on (petri-bench 3.2)."""
    interaction: Literal["positive", "negative"] | None = None
    """L3: sign of metric(AB) - metric(A) - metric(B) + metric(control)."""
    signature: dict[str, Effect] | None = None
    """L1V, L1B: metric -> effect of the hidden world against the control, as the bench's replicates show it."""
    tolerance: float | None = Field(default=None, gt=0)
    """L4: how far an estimate may be from the boundary (the driver's value) to count as right."""

    @property
    def overrides(self) -> dict[str, float]:
        """The hidden world as overrides on the control."""
        return dict(self.drivers)


class Verification(Record):
    """What generation measured before it let the task pass; values with 6 significant digits."""

    seeds: int
    """Replicates per cell at generation."""
    driver_p: tuple[float, ...]
    """Holm-adjusted p of each driver alone, at its curated test value, on the bench's replicates."""
    decoy_p: tuple[float, ...]
    relative_change: float
    """Of the target's mean, hidden world against control."""
    interaction_p: float | None = None


class Difficulty(Record):
    """petri-bench 5."""

    cliffs_delta: float
    """Of the binding (weakest) driver."""
    oracle_power: float = Field(ge=0, le=1)
    """Share of 2,000 subsamples in which every driver tests significant and no decoy does."""
    band: Literal["easy", "moderate", "hard"]


class CausalTask(StoredRecord):
    """One mystery world."""

    SCHEMA_VERSION: ClassVar[int] = 1

    id: str = Field(pattern=r"^causal-l(?:[1-4]|1[vb])-[a-z]+-\d+$")
    tier: Tier
    simulation: str
    engine_version: str
    seed: int = Field(ge=0)
    stream: int = Field(default=0, ge=0)
    """Which of the seed's sets of replicates: the next one, where no draw could be verified on the one before."""
    control: dict[str, float]
    """The engine's own; at L4 with some parameters drawn, so that the boundary lies elsewhere in every task."""
    target: str
    candidates: tuple[str, ...] = Field(min_length=1, max_length=4)
    """At L4 the one parameter that is swept."""
    sweep: tuple[float, float] | None = None
    """L4: the range in which the boundary is to be located."""
    budget: int = Field(default=BUDGET, ge=1)
    replicates: int = Field(default=REPLICATES, ge=2)
    hidden: HiddenWorld
    verification: Verification
    difficulty: Difficulty

    @model_validator(mode="after")
    def _drivers_are_candidates(self) -> CausalTask:
        missing = [name for name, _ in self.hidden.drivers if name not in self.candidates]
        if missing or len(set(self.candidates)) != len(self.candidates):
            raise ValueError(f"{self.id}: drivers {missing} are no candidates, or a candidate is there twice")
        if (self.tier == "L4") != (self.sweep is not None) or (self.tier != "L4" and len(self.candidates) < 3):
            raise ValueError(f"{self.id}: a boundary task has one candidate and a range, any other at least three")
        needed = {"L1": "direction", "L2": "magnitude", "L3": "interaction", "L4": "tolerance"}
        wanted = needed.get(self.tier, "signature")
        if getattr(self.hidden, wanted) is None or len(self.hidden.drivers) != (2 if self.tier == "L3" else 1):
            raise ValueError(f"{self.id}: its hidden world is not one of tier {self.tier}")
        return self

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of the bench's replicates; the first of those that generation used."""
        return replicate_seeds(self.seed, self.simulation, self.replicates, self.stream)


def replicate_seeds(seed: int, simulation: str, count: int, stream: int = 0) -> tuple[int, ...]:
    """Seeds of the first `count` replicates of a task."""
    import zlib

    import numpy as np

    words = (seed, zlib.crc32(simulation.encode()), *((stream,) if stream else ()))
    sequence = np.random.SeedSequence(words)
    return tuple(int(value) for value in sequence.generate_state(count, np.uint32))
