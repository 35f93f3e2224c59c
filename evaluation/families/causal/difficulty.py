"""How hard a task is: effect size of the binding driver, and oracle power (petri-bench 5)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evaluation.families.causal.engines import Metrics
from evaluation.families.causal.inference import ALPHA, cliffs_delta, holm, mann_whitney
from evaluation.families.causal.task import Difficulty

__all__ = ["rate"]

_SUBSAMPLES = 2000
_EASY, _MODERATE = 0.85, 0.55


def rate(
    control: Metrics, drivers: Sequence[Metrics], decoys: Sequence[Metrics], *, target: str, replicates: int, seed: int
) -> Difficulty:
    """Rate a task from the per-seed values of its cells.

    Args:
        control: metric -> values, shape (seeds,), of the control.
        drivers: the same of each driver alone at its hidden value.
        decoys: the same of each decoy alone at its test value.
        target: name of the target metric.
        replicates: size of a subsample, drawn without replacement; the bench's.
        seed: of the subsampling.
    """
    total = next(iter(control.values())).size
    rng = np.random.Generator(np.random.PCG64(seed))
    chosen = np.argsort(rng.random((_SUBSAMPLES, total)), axis=1, kind="stable")[:, :replicates]
    solved = np.ones(_SUBSAMPLES, dtype=bool)
    for cells, wanted in ((drivers, True), (decoys, False)):
        for cell in cells:
            solved &= (_adjusted(control, cell, target, chosen) < ALPHA) == wanted
    binding = min((cliffs_delta(control[target], cell[target]) for cell in drivers), key=abs)
    power = float(solved.mean())
    band = "easy" if power >= _EASY else "moderate" if power >= _MODERATE else "hard"
    return Difficulty.model_validate({"cliffs_delta": round(binding, 6), "oracle_power": round(power, 6), "band": band})


def _adjusted(control: Metrics, cell: Metrics, target: str, chosen: np.ndarray) -> np.ndarray:
    """Holm-adjusted p of the target metric in each subsample, shape (subsamples,)."""
    names = sorted(control)
    raw = np.stack([mann_whitney(control[name][chosen], cell[name][chosen])[1] for name in names])
    return np.asarray(holm(raw, axis=0)[names.index(target)])
