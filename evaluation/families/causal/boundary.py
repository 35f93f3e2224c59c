"""Tier L4: the location of a phase boundary (petri-bench 10, item 4; its section 6 gives the transitions).

A task sweeps one parameter of a validated transition. Some other parameters of the control are drawn, so that the
boundary lies elsewhere in every task and is in no paper. The boundary is the value at which the metric's mean is
half-way between its means at the two ends of the range; it is located at generation with three times the bench's
replicates.

Kept are draws in which the mean crosses the half-way level once on a grid of 13, the bench's own replicates put the
boundary within half the tolerance of where all replicates put it (so that it can be found on the bench), and points an
eighth of the range to either side differ significantly.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from evaluation.families.causal.cells import SEEDS, Cells, adjusted, attempt_generator, digits
from evaluation.families.causal.difficulty import rate
from evaluation.families.causal.engines import Engine
from evaluation.families.causal.inference import ALPHA, relative_change
from evaluation.families.causal.task import REPLICATES, CausalTask, HiddenWorld, Verification

__all__ = ["SWEEPS", "Sweep", "boundary_task"]


class Sweep(NamedTuple):
    """The transition of a simulation, and what is drawn beside it."""

    parameter: str
    low: float
    high: float
    metric: str
    drawn: tuple[tuple[str, float, float], ...]
    """(parameter, least, greatest) of the control that a task draws."""


SWEEPS: Final[dict[str, Sweep]] = {
    "swarm": Sweep(
        "noise", 0.1, 1.5, "polarization", (("alignment", 0.7, 1.6), ("box", 4.0, 6.0), ("radius", 0.8, 1.4))
    ),
    "market": Sweep(
        "bias", -2.0, 2.0, "fundamentalists",
        (("misalignment", 10.0, 60.0), ("herding", 0.4, 1.4), ("fundamental_noise", 0.6, 1.2)),
    ),
    "origin": Sweep(
        "child_mortality", 0.0, 0.8, "population",
        (("fertility", 1.6, 4.0), ("mutation_rate", 0.02, 0.2), ("capacity", 400.0, 900.0)),
    ),
    "morph": Sweep(
        "kill", 0.055, 0.075, "coverage",
        (("feed", 0.03, 0.045), ("diffusion_u", 0.14, 0.18), ("diffusion_v", 0.065, 0.085)),
    ),
    "social": Sweep(
        "epsilon", 0.08, 0.4, "largest_cluster", (("initial_spread", 0.7, 1.0), ("mu", 0.2, 0.5), ("agents", 160, 240))
    ),
}  # fmt: skip
"""Vicsek et al. (1995); Franke and Westerhoff (2012); extinction when deaths outweigh births (Lynch and Gabriel, 1990);
washout (Pearson, 1993); consensus (Deffuant et al., 2000)."""

_TOLERANCE: Final = 0.04
"""Share of the range. Bisection by pairs on a budget of 8 reaches 3^-4 = 0.012 of it."""
_GRID: Final = 13
_REFINED: Final = 5


def boundary_task(engine: Engine, seed: int, attempt: int, stream: int = 0) -> CausalTask | None:
    """One draw; None when it cannot be verified."""
    sweep = SWEEPS[engine.name]
    rng = attempt_generator(seed, engine, "L4", attempt)
    drawn = {}
    for name, low, high in sweep.drawn:
        value = low + (high - low) * float(rng.random())
        drawn[name] = float(round(value)) if engine.parameter(name).integer else digits(value, 3)
    cells = Cells(engine, seed, drawn, stream)
    width, tolerance = sweep.high - sweep.low, digits(_TOLERANCE * (sweep.high - sweep.low), 6)
    found = _crossing(cells, sweep, bench=True)
    if found is None or not sweep.low + width / 8 < found < sweep.high - width / 8:
        return None
    located = _crossing(cells, sweep, bench=False)
    if located is None or abs(located - found) > tolerance / 2:
        return None
    boundary = digits(located, 6)
    near = [{sweep.parameter: digits(boundary + side * width / 8, 6)} for side in (-1, 1)]
    below, above = (cells(**values) for values in near)
    p = adjusted(below, above)[sweep.metric]
    if p >= ALPHA:
        return None
    ends = [float(cells(**{sweep.parameter: end})[sweep.metric].mean()) for end in (sweep.low, sweep.high)]
    change = digits(_finite(relative_change(*ends)), 6)
    return CausalTask(
        id=f"causal-l4-{engine.name}-{seed}",
        tier="L4",
        simulation=engine.name,
        engine_version=engine.version,
        seed=seed,
        stream=stream,
        control=engine.control | drawn,
        target=sweep.metric,
        candidates=(sweep.parameter,),
        sweep=(sweep.low, sweep.high),
        hidden=HiddenWorld(drivers=((sweep.parameter, boundary),), tolerance=tolerance),
        verification=Verification(
            seeds=SEEDS, driver_p=(digits(p, 6),), decoy_p=(), relative_change=change
        ),
        difficulty=rate(
            cells.all_seeds(**near[0]), [cells.all_seeds(**near[1])], [], target=sweep.metric, replicates=REPLICATES,
            seed=seed,
        ),
    )  # fmt: skip


def _crossing(cells: Cells, sweep: Sweep, *, bench: bool) -> float | None:
    """Where the mean crosses the half-way level; None when it does not do so exactly once on the grid."""
    measure = cells if bench else cells.all_seeds

    def mean(value: float) -> float:
        return float(measure(**{sweep.parameter: value})[sweep.metric].mean())

    grid = [digits(float(value), 6) for value in np.linspace(sweep.low, sweep.high, _GRID)]
    if not bench:  # the grid has shown that it crosses once: only the ends set the level anew
        grid = [grid[0], grid[-1]]
    means = [mean(value) for value in grid]
    level = (means[0] + means[-1]) / 2
    over = [value > level for value in means]
    changes = [index for index in range(len(grid) - 1) if over[index] != over[index + 1]]
    if len(changes) != 1 or means[0] == means[-1]:
        return None
    (low, high), (first, last) = (pair[changes[0] : changes[0] + 2] for pair in (grid, means))
    for _ in range(_REFINED if bench else _REFINED + 3):
        middle = digits((low + high) / 2, 6)
        value = mean(middle)
        if (value > level) == (first > level):
            low, first = middle, value
        else:
            high, last = middle, value
    return low + (high - low) * (level - first) / (last - first)


def _finite(value: float) -> float:
    return float(np.clip(value, -1e9, 1e9))
