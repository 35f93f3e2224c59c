"""Tasks beyond the paper that rest on the whole metric vector (petri-bench 9 and 10): tiers L1V and L1B.

L1V, identification by signature. A probe of one metric can be matched by a parameter that was not changed. Here all
candidates move the target, and only the pattern over all metrics tells them apart: generation proves that no
confounder shows the hidden world's pattern at its curated value or at either end of the range that hidden values are
drawn from, and that in each of these places at least one metric tells it from the hidden world.

L1B, blind metric. The brief does not say which metric to look at. Decoys are inert on every metric, and on every metric
that the hidden change moves, the curated intervention moves it the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from evaluation.families.causal.cells import SEEDS, Cells, adjusted, attempt_generator, digits, draw_hidden
from evaluation.families.causal.difficulty import rate
from evaluation.families.causal.engines import Engine, Parameter
from evaluation.families.causal.inference import ALPHA, relative_change
from evaluation.families.causal.task import REPLICATES, CausalTask, Effect, HiddenWorld, Tier, Verification

__all__ = ["signature_task"]

_OTHERS: Final = 2
_Driver = tuple[Parameter, float]


def signature_task(cells: Cells, tier: Tier, seed: int, attempt: int) -> CausalTask | None:
    """One draw; None when it cannot be verified."""
    engine = cells.engine
    rng = attempt_generator(seed, engine, tier, attempt)
    pool = [parameter for parameter in engine.parameters if parameter.hidden]
    driver = pool[int(rng.integers(len(pool)))]
    value = draw_hidden(driver, rng)
    others = [one for one in (pool if tier == "L1V" else engine.parameters) if _other(one, driver, tier)]
    chosen = [others[int(index)] for index in rng.choice(len(others), size=_OTHERS, replace=False)]
    names = [driver.name, *(parameter.name for parameter in chosen)]
    order = tuple(names[int(index)] for index in rng.permutation(len(names)))
    verify = _by_signature if tier == "L1V" else _on_any_metric
    signature = verify(cells, (driver, value), chosen)
    if signature is None:
        return None
    target = _target(engine, signature, tier, rng)
    return _task(cells, tier, seed, (driver, value), chosen, order, signature, target)


def _other(parameter: Parameter, driver: Parameter, tier: str) -> bool:
    """L1B takes any parameter that drives no task: whether it is inert on every metric is verified."""
    return parameter.name != driver.name and (tier == "L1V" or not parameter.hidden)


def _target(engine: Engine, signature: dict[str, Effect], tier: str, rng: np.random.Generator) -> str:
    """L1V: the engine's own; L1B: one of the metrics that move, which nobody is told and no score depends on."""
    moved = sorted(name for name, effect in signature.items() if effect != "none")
    return engine.target if tier == "L1V" else moved[int(rng.integers(len(moved)))]


def _by_signature(cells: Cells, driver: _Driver, confounders: Sequence[Parameter]) -> dict[str, Effect] | None:
    """The hidden world's signature when it identifies the driver.

    It has to be the curated value's, so everything about cells that other draws share is asked before the hidden world
    is simulated.
    """
    target = cells.engine.target
    expected = cells.effects(**{driver[0].name: driver[0].test_value})
    if expected[target] == "none":
        return None
    if any(cells.effects(**{one.name: one.test_value})[target] == "none" for one in confounders):
        return None
    others = [
        {one.name: float(round(value)) if one.integer else value}
        for one in confounders
        for value in (one.test_value, *(one.hidden or ()))
    ]
    hidden = {driver[0].name: driver[1]}
    if any(cells.effects(**other) == expected for other in others) or cells.effects(**hidden) != expected:
        return None
    if any(min(adjusted(cells(**hidden), cells(**other)).values()) >= ALPHA for other in others):
        return None
    return expected


def _on_any_metric(cells: Cells, driver: _Driver, decoys: Sequence[Parameter]) -> dict[str, Effect] | None:
    """The hidden world's effects when an isolating sweep on any metric that it moves finds the driver."""
    if any(set(cells.effects(**{decoy.name: decoy.test_value}).values()) != {"none"} for decoy in decoys):
        return None
    shown = cells.effects(**{driver[0].name: driver[0].test_value})
    signature = cells.effects(**{driver[0].name: driver[1]})
    moved = [name for name, effect in signature.items() if effect != "none"]
    return signature if moved and all(shown[name] == signature[name] for name in moved) else None


def _task(
    cells: Cells, tier: Tier, seed: int, driver: _Driver, others: Sequence[Parameter],
    order: tuple[str, ...], signature: dict[str, Effect], target: str,
) -> CausalTask:  # fmt: skip
    engine, (parameter, value) = cells.engine, driver
    control, curated = cells(), {parameter.name: parameter.test_value}
    hidden = cells(**{parameter.name: value})
    change = relative_change(float(control[target].mean()), float(hidden[target].mean()))
    decoys = [] if tier == "L1V" else [cells.all_seeds(**{one.name: one.test_value}) for one in others]
    return CausalTask(
        id=f"causal-{tier.lower()}-{engine.name}-{seed}",
        tier=tier,
        simulation=engine.name,
        engine_version=engine.version,
        seed=seed,
        stream=cells.stream,
        control=engine.control,
        target=target,
        candidates=order,
        hidden=HiddenWorld(drivers=((parameter.name, value),), signature=dict(sorted(signature.items()))),
        verification=Verification(
            seeds=SEEDS,
            driver_p=(digits(cells.against_control(**curated)[target], 6),),
            decoy_p=tuple(digits(cells.against_control(**{one.name: one.test_value})[target], 6) for one in others),
            relative_change=digits(float(np.clip(change, -1e9, 1e9)), 6),
        ),
        difficulty=rate(
            cells.all_seeds(), [cells.all_seeds(**{parameter.name: value})], decoys, target=target,
            replicates=REPLICATES, seed=seed,
        ),
    )  # fmt: skip
