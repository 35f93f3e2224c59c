"""Bounded-confidence opinion dynamics (Deffuant et al., 2000): who is near enough in opinion moves together.

In every sweep the agents meet in random pairs; a pair whose opinions differ by less than the confidence bound moves
together by the convergence rate. The number of clusters goes like 1/(2 epsilon), with consensus at large bounds
(Deffuant et al., 2000, Advances in Complex Systems 3, 87-98; Hegselmann and Krause, 2002, JASSS 5(3)).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evaluation.families.causal.engines.base import Config, Engine, Metrics, Parameter, generators

__all__ = ["ENGINE", "opinions"]

_SWEEPS = 220
_GAP = 0.04
"""Neighbouring opinions further apart belong to different clusters; converged clusters are 2 epsilon apart."""
_SMALLEST = 0.03
"""Share of agents below which a cluster is a straggler, not counted (Deffuant et al. leave wings out the same way)."""


def opinions(config: Config, seeds: Sequence[int]) -> np.ndarray:
    """Final opinions in [0, 1], shape (replicates, agents)."""
    count = int(config["agents"]) // 2 * 2
    starts, meetings, resets = (generators(seeds, stream) for stream in range(3))
    half = 0.5 * config["initial_spread"]
    opinion = np.stack([rng.random(count) for rng in starts]) * (2.0 * half) + (0.5 - half)
    fixed = np.stack([rng.random(count) for rng in resets]) < config["stubborn"]
    order = np.stack([rng.random((_SWEEPS, count)).argsort(axis=1, kind="stable") for rng in meetings])
    jumps = np.stack([rng.random((_SWEEPS, 2, count)) for rng in resets])
    rows = np.arange(len(seeds))[:, None]
    for sweep in range(_SWEEPS):
        left, right = order[:, sweep, : count // 2], order[:, sweep, count // 2 :]
        first, second = opinion[rows, left], opinion[rows, right]
        change = config["mu"] * (second - first) * (np.abs(second - first) < config["epsilon"])
        opinion[rows, left] = np.where(fixed[rows, left], first, first + change)
        opinion[rows, right] = np.where(fixed[rows, right], second, second - change)
        pulled = opinion + config["media"] * (0.5 - opinion)
        opinion = np.where(fixed, opinion, pulled)
        jumping = (jumps[:, sweep, 0] < config["noise"]) & ~fixed
        opinion = np.where(jumping, jumps[:, sweep, 1], opinion)
    return opinion


def simulate(config: Config, seeds: Sequence[int]) -> Metrics:
    """Simulate `len(seeds)` populations.

    Returns:
        `clusters` (number of opinion clusters), `polarization` (twice the standard deviation of opinions),
        `largest_cluster` (its share of agents), `extremists` (share of opinions in the outer tenths).
    """
    final = np.sort(opinions(config, seeds), axis=1)
    replicates, count = final.shape
    clusters, largest = np.zeros(replicates), np.zeros(replicates)
    for row in range(replicates):
        edges = np.flatnonzero(np.diff(final[row]) > _GAP)
        sizes = np.diff(np.concatenate(([0], edges + 1, [count])))
        clusters[row] = float((sizes >= _SMALLEST * count).sum())
        largest[row] = float(sizes.max()) / count
    centred = final - final.mean(axis=1)[:, None]
    return {
        "clusters": clusters,
        "polarization": 2.0 * np.sqrt((centred * centred).mean(axis=1)),
        "largest_cluster": largest,
        "extremists": ((final < 0.1) | (final > 0.9)).mean(axis=1),
    }


ENGINE = Engine(
    name="social",
    version="2",
    domain="bounded-confidence opinion dynamics",
    parameters=(
        Parameter(name="epsilon", control=0.15, low=0.0, high=1.0, test_value=0.19, hidden=(0.162, 0.2),
                  published=(0.0, 1.0), source="NetLogo bounded confidence: .01 to .99",
                  meaning="confidence bound: larger differences of opinion are not bridged"),
        Parameter(name="mu", control=0.3, low=0.002, high=0.5, test_value=0.35, decoy=True,
                  published=(0.0, 0.5), source="Deffuant et al. (2000)",
                  meaning="share of the difference that each of a pair gives up"),
        Parameter(name="initial_spread", control=1.0, low=0.0, high=1.0, test_value=0.75, hidden=(0.69, 0.925),
                  published=(0.0, 1.0), source="a share of the opinions' interval",
                  meaning="width of the uniform start around 0.5"),
        Parameter(name="noise", control=0.0, low=0.0, high=1.0, test_value=0.0002, decoy=True,
                  published=(0.0, 0.5), source="NetLogo bounded confidence: independent opinions, 0 to .5",
                  meaning="probability per sweep that an agent takes a random opinion"),
        Parameter(name="stubborn", control=0.0, low=0.0, high=1.0, test_value=0.004, decoy=True,
                  published=(0.0, 1.0), source="a share",
                  meaning="share of agents who never move"),
        Parameter(name="media", control=0.0, low=0.0, high=1.0, test_value=0.0025, hidden=(0.00075, 0.0031),
                  published=(0.0, 1.0), source="a share",
                  meaning="pull towards 0.5 per sweep"),
        Parameter(name="agents", control=100, low=20, high=400, test_value=120, integer=True,
                  published=(1, 200), source="NetLogo bounded confidence: 5 to 1000, default 500",
                  meaning="number of agents"),
    ),
    metrics=("clusters", "polarization", "largest_cluster", "extremists"),
    target="clusters",
    interaction_target="polarization",
    simulate=simulate,
)  # fmt: skip
