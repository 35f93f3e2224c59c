"""A market of fundamentalists and chartists who switch by herding and misalignment (Franke and Westerhoff, 2012).

Structural stochastic volatility: when chartists, whose demand is the noisier one, are many, prices move much and drift
away from value, which brings fundamentalists back (Journal of Economic Dynamics and Control 36, 1193-1211). Known
stylised facts come out (Cont, 2001, Quantitative Finance 1(2), 223-236): heavy tails, volatility clustering, no linear
autocorrelation. The discrete choice uses x / (1 + |x|) in place of the logistic function, which is not exact on every
processor.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evaluation.families.causal.engines.base import Config, Engine, Metrics, Parameter, generators

__all__ = ["ENGINE", "returns"]

_STEPS = 800
_BURN_IN = 300
"""Mean volatility of 200 markets by steps, started at value: 1.11 % in 50-150, .94 in 150-300, then .89, .89 (450-800)
and .91 (800-1400); from a gap of 0.1 .87 in 300-450, then .89 and .90: nothing of the start is left by step 300."""


def returns(config: Config, seeds: Sequence[int], steps: int = _STEPS) -> tuple[np.ndarray, np.ndarray]:
    """Log returns, and the share of fundamentalists, both of shape (steps, replicates)."""
    noise = np.stack([rng.standard_normal((steps, 2)) for rng in generators(seeds, 0)], axis=2)
    gap = np.full(len(seeds), config["initial_gap"])  # log price minus log fundamental value
    before = gap
    fundamentalists = np.full(len(seeds), config["initial_fundamentalists"])
    moves, shares = np.empty((steps, len(seeds))), np.empty((steps, len(seeds)))
    for step in range(steps):
        chartists = 1.0 - fundamentalists
        steady = fundamentalists * (config["fundamental_noise"] * noise[step, 0] - config["pull"] * gap)
        eager = chartists * (config["chartist_noise"] * noise[step, 1] + config["trend"] * (gap - before))
        move = config["impact"] * (steady + eager)
        before, gap = gap, gap + move
        attraction = (
            config["bias"] + config["herding"] * (fundamentalists - chartists) + config["misalignment"] * gap * gap
        )
        pull = 0.5 * config["switching"] * attraction
        fundamentalists = 0.5 * (1.0 + pull / (1.0 + np.abs(pull)))
        moves[step], shares[step] = move, fundamentalists
    return moves, shares


def simulate(config: Config, seeds: Sequence[int]) -> Metrics:
    """Simulate `len(seeds)` markets.

    Returns:
        `volatility` (standard deviation of returns, in percent), `excess_kurtosis`, `clustering` (autocorrelation of
        absolute returns, mean over lags 1 to 10), `fundamentalists` (mean share).
    """
    # (replicates, steps), contiguous: how NumPy groups a sum depends on the layout, and with it the last bit would
    # depend on how many replicates are simulated together
    moves, shares = (np.ascontiguousarray(series[_BURN_IN:].T) for series in returns(config, seeds))
    centred = moves - moves.mean(axis=1)[:, None]
    variance = (centred * centred).mean(axis=1)
    size = np.abs(moves) - np.abs(moves).mean(axis=1)[:, None]
    spread = np.maximum((size * size).mean(axis=1), 1e-300)
    lags = [(size[:, lag:] * size[:, :-lag]).mean(axis=1) / spread for lag in range(1, 11)]
    fourth = (centred * centred * centred * centred).mean(axis=1)
    return {
        "volatility": 100.0 * np.sqrt(variance),
        "excess_kurtosis": fourth / np.maximum(variance * variance, 1e-300) - 3.0,
        "clustering": sum(lags[1:], lags[0]) / len(lags),
        "fundamentalists": shares.mean(axis=1),
    }


ENGINE = Engine(
    name="market",
    version="2",
    domain="heterogeneous-agent asset market",
    parameters=(
        Parameter(name="chartist_noise", control=2.1, low=0.0, high=4.8, test_value=3.8, hidden=(2.6, 4.2),
                  meaning="standard deviation of the chartists' demand"),
        Parameter(name="impact", control=0.01, low=0.001, high=0.02, test_value=0.0135, hidden=(0.011, 0.0144),
                  meaning="move of the log price per unit of demand"),
        Parameter(name="misalignment", control=30.0, low=0.0, high=190.0, test_value=150.0, hidden=(66.0, 180.0),
                  published=(0.0, 190.0), source="a gap of 10 % is to weigh up to 1.9, within herding's range",
                  meaning="how much a squared gap between price and value attracts fundamentalists"),
        Parameter(name="herding", control=1.2, low=-3.0, high=6.0, test_value=0.6, decoy=True,
                  published=(0.0, 4.0), source="never negative (Franke and Westerhoff, 2012); to SLIDER controls",
                  meaning="how much the majority attracts"),
        Parameter(name="switching", control=3.0, low=0.0, high=20.0, test_value=3.2, decoy=True,
                  meaning="how sharply agents choose the more attractive strategy"),
        Parameter(name="fundamental_noise", control=0.75, low=0.0, high=2.2, test_value=1.4, hidden=(0.95, 1.56),
                  meaning="standard deviation of the fundamentalists' demand"),
        Parameter(name="pull", control=0.12, low=0.0, high=6.0, test_value=0.15, decoy=True,
                  meaning="fundamentalists' demand per unit of gap"),
        Parameter(name="trend", control=1.5, low=-40.0, high=80.0, test_value=1.9,
                  published=(0.0, 5.0), source="never negative (Franke and Westerhoff, 2012); to SLIDER controls",
                  meaning="chartists' demand per unit of the last move"),
        Parameter(name="bias", control=-0.33, low=-2.4, high=2.4, test_value=-1.9, hidden=(-2.29, -0.8),
                  meaning="standing preference for the fundamentalists' strategy"),
        Parameter(name="initial_gap", control=0.0, low=-1.5, high=1.5, test_value=0.1, decoy=True,
                  meaning="log price minus log fundamental value at the start"),
        Parameter(name="initial_fundamentalists", control=0.5, low=0.0, high=1.0, test_value=0.8,
                  published=(0.0, 1.0), source="a share",
                  meaning="share of fundamentalists at the start"),
    ),
    metrics=("volatility", "excess_kurtosis", "clustering", "fundamentalists"),
    target="volatility",
    interaction_target="volatility",
    simulate=simulate,
)  # fmt: skip
