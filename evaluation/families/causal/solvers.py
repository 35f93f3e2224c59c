"""Reference solvers that calibrate the scale of scores (petri-bench 7.1). All play through the same blind bench.

The paper says of `ofat` that it tests every candidate and submits "the significant driver", and of `adaptive` that it
is the same sweep with early stopping. With curated values there is one (two at L3), as generation verified. With values
drawn blindly there may be none or several, and then the sweep has shown nothing: one parameter was changed, and which
of the significant ones is not measured. It ends without an answer and without the follow-up (the probe of L2, the
combined cell of L3): "only conclude an effect when a result is significant" (its appendix A), and no unbacked guess
("none of the behavioral flags in any episode", 7.3). The paper does not print this rule; its figures for `ofat-rand`
speak for it. Over 17 draws on our frozen tasks it gives 39 points, 3.7 calls and 36 % solved (the paper: 40.5 to 47.7,
3.7, 33 to 37 %); taking the first significant candidate gives 58 points, 3.9 calls and 47 % solved over ten draws.

At L1 the direction is that of the tested value, and at L3 the interaction that of the tested factorial, also where a
blind value lies on the other side of the control than the hidden one: the same procedure, and no correction that the
paper's calls (3 and 5) would not pay for. At L2 direction and magnitude are read off the probe of the control. How the
tiers beyond the paper are solved is in `solvers_beyond`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from evaluation.families.causal.bench import Bench, EpisodeLog, Statistics
from evaluation.families.causal.generate import magnitude_class
from evaluation.families.causal.solvers_beyond import BEYOND, guess_beyond, sweep_beyond
from evaluation.families.causal.task import CausalTask

__all__ = ["SOLVERS", "adaptive", "ofat", "ofat_rand", "random_guess", "solve"]

Solver = Callable[[Bench, int], None]


def solve(task: CausalTask, solver: str, salt: int = 0) -> EpisodeLog:
    """Play one episode with a reference solver.

    Args:
        task: the mystery world.
        solver: name in `SOLVERS`.
        salt: number of the repeat; only solvers that draw depend on it.

    Raises:
        KeyError: no such solver.
    """
    bench = Bench(task)
    SOLVERS[solver](bench, salt)
    return bench.log


def random_guess(bench: Bench, salt: int) -> None:
    """A seeded guess without any experiment: the chance floor."""
    task, rng = bench.task, _rng(bench.task, salt, "random")
    if task.tier in BEYOND:
        guess_beyond(bench, rng)
        return
    count = 2 if task.tier == "L3" else 1
    chosen = tuple(task.candidates[int(index)] for index in rng.choice(len(task.candidates), count, replace=False))
    up, size, positive = rng.random() < 0.5, int(rng.integers(3)), rng.random() < 0.5
    if task.tier == "L3":
        bench.submit(chosen, interaction="positive" if positive else "negative")
    elif task.tier == "L2":
        sizes: Final = ("small", "medium", "large")
        bench.submit(chosen, direction="up" if up else "down", magnitude=sizes[size])
    else:
        bench.submit(chosen, direction="up" if up else "down")


def ofat(bench: Bench, salt: int) -> None:
    """One factor at a time with the curated test values; a full 2x2 factorial at L3."""
    _sweep(bench, _curated(bench), early=False)


def adaptive(bench: Bench, salt: int) -> None:
    """`ofat` that stops as soon as enough candidates are significant."""
    _sweep(bench, _curated(bench), early=True)


def ofat_rand(bench: Bench, salt: int) -> None:
    """`ofat` with test values drawn from each parameter's legal range: the ablation of knowing informative values."""
    rng, values = _rng(bench.task, salt, "ofat-rand"), {}
    for name in sorted(bench.task.candidates):
        low, high = bench.engine.parameter(name).legal
        values[name] = low + (high - low) * float(rng.random())
    _sweep(bench, values, early=False, rng=rng)


def _curated(bench: Bench) -> dict[str, float]:
    return {name: bench.engine.parameter(name).test_value for name in bench.task.candidates}


def _sweep(bench: Bench, values: Mapping[str, float], *, early: bool, rng: np.random.Generator | None = None) -> None:
    """The sweep with these test values; it answers when exactly as many candidates are significant as were changed.

    `rng` draws the places of a boundary search instead of spacing them.
    """
    task = bench.task
    if task.tier in BEYOND:
        sweep_beyond(bench, values, early=early, rng=rng)
        return
    wanted = 2 if task.tier == "L3" else 1
    seen: dict[str, Statistics] = {}
    for name in task.candidates:
        seen[name] = bench.experiment({}, {name: values[name]})
        if early and sum(result.significant for result in seen.values()) == wanted:
            break
    chosen = tuple(name for name, result in seen.items() if result.significant)
    if len(chosen) != wanted:
        return
    if task.tier == "L3":
        both = bench.experiment({}, {name: values[name] for name in chosen})
        alone = sum(seen[name].mean_b for name in chosen)
        contrast = both.mean_b - alone + both.mean_a
        bench.submit(chosen, interaction="positive" if contrast > 0 else "negative")
        return
    if task.tier == "L1":
        bench.submit(chosen, direction="up" if seen[chosen[0]].cliffs_delta > 0 else "down")
        return
    hidden = bench.probe({})
    change = hidden.relative_change
    magnitude = "large" if change is None else magnitude_class(change) or "small"
    bench.submit(chosen, direction="up" if hidden.mean_b > hidden.mean_a else "down", magnitude=magnitude)


def _rng(task: CausalTask, salt: int, name: str) -> np.random.Generator:
    sequence = np.random.SeedSequence((zlib.crc32(f"{task.id} {name}".encode()), salt))
    return np.random.Generator(np.random.PCG64(sequence))


SOLVERS: Final[dict[str, Solver]] = {
    "random": random_guess,
    "ofat": ofat,
    "adaptive": adaptive,
    "ofat-rand": ofat_rand,
}
