"""Do the simulations show what their literatures established? Explicit checks, like petri-bench 6, and origin besides.

Every check is the qualitative result; where our engine differs from the cited model, the check's caveat says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from evaluation.families.causal.engines import ENGINES, market, morph, origin, social
from pipeline.schema import Record

__all__ = ["Check", "validate"]

_SEEDS: Final = tuple(range(7000, 7024))


class Check(Record):
    """One established result, and what our engine shows."""

    simulation: str
    name: str
    reference: str
    measured: float
    expected: str
    passed: bool
    caveat: str = ""


def validate(simulation: str | None = None) -> list[Check]:
    """Run the checks of one simulation, or of all; everything follows from fixed seeds.

    Raises:
        KeyError: no such simulation.
    """
    names = [simulation] if simulation else list(_CHECKS)
    return [check for name in names for check in _CHECKS[name]()]


def _check(
    simulation: str, name: str, reference: str, measured: float, low: float, high: float, caveat: str = ""
) -> Check:
    expected = f"{low:g} to {high:g}" if np.isfinite(high) else f"at least {low:g}"
    return Check(
        simulation=simulation, name=name, reference=reference, measured=float(f"{measured:.6g}"), expected=expected,
        passed=bool(low <= measured <= high), caveat=caveat,
    )  # fmt: skip


def _swarm() -> Iterator[Check]:
    source = "Vicsek et al. 1995"
    caveat = "vectorial noise, attraction and repulsion besides alignment: the transition, not its exponent"
    plain = {"cohesion": 0.0, "separation": 0.0, "inertia": 0.0}
    grid = (0.1, 0.3, 0.5, 0.7, 0.9)
    runs = [ENGINES["swarm"].run(plain | {"noise": noise}, _SEEDS)["polarization"] for noise in grid]
    means, spreads = [float(run.mean()) for run in runs], [float(run.std()) for run in runs]
    yield _check("swarm", "order at low noise", source, means[0], 0.9, 1.0, caveat)
    # 40 independent directions have a mean of length sqrt(pi / (4 * 40)) = 0.14
    yield _check("swarm", "disorder at high noise", source, means[-1], 0.05, 0.35, caveat)
    yield _check("swarm", "order falls with noise", source, float(-np.diff(means).max()), 0.0, np.inf, caveat)
    inside = float(np.argmax(spreads) not in {0})
    yield _check("swarm", "fluctuations peak away from order", source, inside, 1.0, 1.0, caveat)
    dense, thin = (
        float(ENGINES["swarm"].run(plain | {"noise": 0.6, "box": box}, _SEEDS)["polarization"].mean())
        for box in (3.0, 9.0)
    )
    yield _check("swarm", "density orders", source, dense - thin, 0.05, np.inf, caveat)


def _market() -> Iterator[Check]:
    source = "Cont 2001"
    moves, _ = market.returns(ENGINES["market"].control, _SEEDS, 4000)
    moves = moves[500:]
    centred = moves - moves.mean(axis=0)
    variance = (centred**2).mean(axis=0)
    kurtosis = (centred**4).mean(axis=0) / variance**2 - 3.0
    yield _check("market", "heavy tails: excess kurtosis", source, float(kurtosis.mean()), 1.0, np.inf)
    size = np.abs(moves) - np.abs(moves).mean(axis=0)
    slow = [(size[lag:] * size[:-lag]).mean(axis=0) / (size**2).mean(axis=0) for lag in range(1, 51)]
    yield _check("market", "volatility clustering: |r| correlates over 50 steps", source, float(np.mean(slow)), 0.05, 1)
    linear = [(centred[lag:] * centred[:-lag]).mean(axis=0) / variance for lag in range(1, 11)]
    largest = float(np.abs(np.mean(linear, axis=1)).max())
    yield _check("market", "no linear autocorrelation over 10 steps", source, largest, 0.0, 0.05)


def _social() -> Iterator[Check]:
    deffuant, hegselmann = "Deffuant et al. 2000", "Hegselmann and Krause 2002"
    caveat = "synchronous random pairs; clusters below 3 % of the agents are not counted"
    crowd = {"agents": 200.0}  # the results are those of many agents; tasks have fewer
    counts = {}
    for epsilon in (0.08, 0.1, 0.15, 0.25, 0.35):
        counts[epsilon] = float(ENGINES["social"].run({"epsilon": epsilon} | crowd, _SEEDS)["clusters"].mean())
    for epsilon in (0.1, 0.15, 0.25):
        expected = 1.0 / (2.0 * epsilon)
        yield _check(
            "social", f"clusters at epsilon {epsilon}: 1/(2 epsilon) = {expected:.1f}", deffuant, counts[epsilon],
            expected - 1.2, expected + 1.2, caveat,
        )  # fmt: skip
    falling = float(-np.diff(list(counts.values())).max())
    yield _check("social", "fewer clusters with more confidence", deffuant, falling, 0.0, np.inf, caveat)
    final = social.opinions(ENGINES["social"].control | {"epsilon": 0.35} | crowd, _SEEDS)
    yield _check("social", "consensus at large bounds", hegselmann, float(final.std(axis=1).max()), 0.0, 0.1, caveat)


def _morph() -> Iterator[Check]:
    source = "Pearson 1993"
    caveat = "48 x 48 torus, Du/Dv = 0.16/0.08, 2400 steps: the phases, not Pearson's coordinates"
    seeds = _SEEDS[:6]

    def cell(feed: float, kill: float) -> dict[str, float]:
        run = ENGINES["morph"].run({"feed": feed, "kill": kill}, seeds)
        return {name: float(values.mean()) for name, values in run.items()}

    washed, thin = cell(0.02, 0.07), cell(0.03, 0.072)
    spots, labyrinth, holes = cell(0.035, 0.065), cell(0.04, 0.06), cell(0.046, 0.058)
    yield _check("morph", "washout at high removal: no V", source, washed["mean_v"], 0.0, 1e-3, caveat)
    yield _check("morph", "washout at another place", source, thin["mean_v"], 0.0, 1e-3, caveat)
    yield _check("morph", "spots are many and apart", source, spots["blobs"], 6.0, np.inf, caveat)
    yield _check("morph", "spots cover little", source, spots["coverage"], 0.05, 0.3, caveat)
    yield _check("morph", "labyrinth covers more", source, labyrinth["coverage"] - spots["coverage"], 0.1, 1, caveat)
    yield _check("morph", "labyrinth is connected", source, labyrinth["blobs"], 1.0, spots["blobs"] - 2, caveat)
    yield _check("morph", "more feed, more V", source, holes["mean_v"] - spots["mean_v"], 0.02, 1.0, caveat)
    ground = morph.fields(ENGINES["morph"].control | {"seed_size": 2, "seed_patches": 1, "feed": 0.02}, seeds[:2])
    yield _check("morph", "ground state is stable against a small seed", source, float(ground.max()), 0, 0.05, caveat)


def _origin() -> Iterator[Check]:
    haldane, kimura = "Haldane 1937", "Kimura and Maruyama 1966"
    engine = ENGINES["origin"]
    calm = {"drought_rate": 0.0, "child_mortality": 0.0, "capacity": 1250.0, "mutation_rate": 0.0}
    still = engine.run(calm, _SEEDS)["population"].mean() / 1250.0
    yield _check(
        "origin", "without mutations the population is the capacity", "Beverton and Holt 1957", still, 0.97, 1.03
    )
    config = engine.control | calm | {"mutation_rate": 0.1, "selection": 0.2}
    final = origin.classes(config, _SEEDS)
    classes = np.arange(final.shape[1])
    fitness = 0.8**classes
    mean_fitness = float((final * fitness).sum() / final.sum())
    # counted after mutation and before selection, where the mean fitness at equilibrium is exp(-U)
    yield _check("origin", "mutation load: mean fitness exp(-U) = 0.905", haldane, mean_fitness, 0.88, 0.93)
    harsher = origin.classes(config | {"selection": 0.4}, _SEEDS)
    other = float((harsher * 0.6**classes).sum() / harsher.sum())
    yield _check("origin", "the load does not depend on selection", haldane, abs(other - mean_fitness), 0.0, 0.02)
    load = float((final * classes).sum() / final.sum())
    yield _check("origin", "mean number of mutations U/s = 0.5", kimura, load, 0.4, 0.6)
    share = final.sum(axis=0) / final.sum()
    variance = float((share * (classes - load) ** 2).sum())
    yield _check("origin", "classes are Poisson: variance over mean", kimura, variance / load, 0.85, 1.2)
    meltdown = engine.run({"mutation_rate": 0.25, "fertility": 1.2}, _SEEDS)["population"].mean()
    caveat = "a finite population of asexuals also loses its best class by drift (Muller 1964)"
    yield _check(
        "origin", "meltdown when the load exceeds the fertility", "Lynch and Gabriel 1990", meltdown, 0, 5, caveat
    )


_CHECKS: Final[dict[str, Callable[[], Iterator[Check]]]] = {
    "market": _market,
    "swarm": _swarm,
    "origin": _origin,
    "morph": _morph,
    "social": _social,
}
