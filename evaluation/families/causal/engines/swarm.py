"""Collective motion: self-propelled agents that align, attract and repel on a torus, with vectorial noise.

The order-disorder transition is that of Vicsek et al. (1995), Physical Review Letters 75(6), 1226-1229; the noise is
added to the mean direction as a vector (Gregoire and Chate, 2004), which needs no trigonometry. The claim is the
qualitative transition, not the critical exponent.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evaluation.families.causal.engines.base import Config, Engine, Metrics, Parameter, generators

__all__ = ["ENGINE"]

_STEPS = 100
_MEASURED = 10
"""Steps at the end that are averaged; few, because the order parameter is to be a noisy one (petri-bench 5)."""
_TINY = 1e-12


def simulate(config: Config, seeds: Sequence[int]) -> Metrics:
    """Simulate `len(seeds)` flocks.

    Returns:
        `polarization` (length of the mean direction, 0..1), `neighbours` (mean number within the radius), `spacing`
        (mean distance to the nearest neighbour), `turning` (mean length of the change of direction per step).
    """
    count, box = int(config["agents"]), config["box"]
    starts = generators(seeds, 0)
    position = np.stack([rng.random((2, count)) for rng in starts]) * box  # (replicates, axis, agents)
    heading = _unit(np.stack([rng.standard_normal((2, count)) for rng in starts]))
    noise = np.stack([rng.standard_normal((_STEPS, 2, count)) for rng in generators(seeds, 1)])
    totals = np.zeros((4, len(seeds)))
    for step in range(_STEPS):
        apart = position[:, :, None, :] - position[:, :, :, None]  # [r, axis, i, j]: from i to j
        apart -= box * np.rint(apart / box)
        squared = apart[:, 0] * apart[:, 0] + apart[:, 1] * apart[:, 1]
        near = (squared <= config["radius"] ** 2).astype(np.float64)
        number = near.sum(axis=-1)[:, None, :]
        mean_heading = (near[:, None] * heading[:, :, None, :]).sum(axis=-1) / number
        towards = (near[:, None] * apart).sum(axis=-1) / number
        close = (squared < config["personal_space"] ** 2).astype(np.float64)
        away = -(close[:, None] * apart).sum(axis=-1)
        wanted = (
            config["alignment"] * mean_heading
            + config["cohesion"] * towards
            + config["separation"] * away
            + config["noise"] * _unit(noise[:, step])
        )
        turned = _unit(config["inertia"] * heading + wanted)
        if step >= _STEPS - _MEASURED:
            diagonal = np.arange(count)
            squared[:, diagonal, diagonal] = np.inf
            change = turned - heading
            totals[0] += np.sqrt((turned.mean(axis=-1) ** 2).sum(axis=-1))
            totals[1] += number[:, 0].mean(axis=-1) - 1.0
            totals[2] += np.sqrt(squared.min(axis=-1)).mean(axis=-1)
            totals[3] += np.sqrt((change**2).sum(axis=1)).mean(axis=-1)
        heading = turned
        position = (position + config["speed"] * heading) % box
    polarization, neighbours, spacing, turning = totals / _MEASURED
    return {"polarization": polarization, "neighbours": neighbours, "spacing": spacing, "turning": turning}


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors (replicates, axis, agents) scaled to length 1."""
    length = np.sqrt(vectors[:, 0] * vectors[:, 0] + vectors[:, 1] * vectors[:, 1])
    return np.asarray(vectors / np.maximum(length, _TINY)[:, None])


ENGINE = Engine(
    name="swarm",
    version="2",
    domain="flocking, collective motion",
    parameters=(
        Parameter(name="noise", control=0.5, low=0.0, high=2.0, test_value=0.62, hidden=(0.535, 0.65),
                  published=(0.0, 1.0), source="Gregoire and Chate (2004)",
                  meaning="length of the random vector that is added to the wanted direction"),
        Parameter(name="alignment", control=1.0, low=0.0, high=10.0, test_value=0.8, hidden=(0.75, 0.94),
                  published=(0.0, 4.0), source="NetLogo Flocking: 0 to 4 times the default turn",
                  meaning="weight of the neighbours' mean direction"),
        Parameter(name="radius", control=1.0, low=0.3, high=2.5, test_value=0.6, hidden=(0.5, 0.88),
                  published=(0.0, 10 / 3), source="NetLogo Flocking: vision 0 to 10, default 3",
                  meaning="how far an agent sees"),
        Parameter(name="cohesion", control=0.1, low=0.0, high=10.0, test_value=0.2, decoy=True,
                  published=(0.0, 2 / 3), source="NetLogo Flocking: 0 to 20 degrees, default 3",
                  meaning="weight of the way to the neighbours' centre"),
        Parameter(name="separation", control=0.2, low=0.0, high=10.0, test_value=0.4, decoy=True,
                  published=(0.0, 8 / 3), source="NetLogo Flocking: 0 to 20 degrees, default 1.5",
                  meaning="weight of the way out of the personal space"),
        Parameter(name="personal_space", control=0.2, low=0.02, high=1.5, test_value=0.26, decoy=True,
                  published=(0.0, 1.0), source="NetLogo Flocking: 0 to 5, default 1",
                  meaning="distance below which agents repel"),
        Parameter(name="speed", control=0.1, low=0.01, high=2.0, test_value=0.12,
                  published=(0.003, 0.3), source="Vicsek et al. (1995)",
                  meaning="way per step"),
        Parameter(name="inertia", control=0.1, low=0.0, high=10.0, test_value=0.12, decoy=True,
                  meaning="weight of the present direction"),
        Parameter(name="agents", control=40, low=16, high=128, test_value=44, decoy=True, integer=True,
                  published=(0, 133), source="NetLogo Flocking: 1 to 1000, default 300",
                  meaning="number of agents"),
        Parameter(name="box", control=5.0, low=2.0, high=9.0, test_value=7.5, hidden=(5.75, 8.1),
                  published=(1.8, 9.1), source="densities .48 to 12 of Vicsek et al. (1995), figure 1",
                  meaning="side of the torus"),
    ),
    metrics=("polarization", "neighbours", "spacing", "turning"),
    target="polarization",
    interaction_target="polarization",
    simulate=simulate,
)  # fmt: skip
