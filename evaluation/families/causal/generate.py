"""Generate mystery worlds: draw a hidden change, verify it and its decoys, rate it, freeze it (petri-bench 3.2, 5).

A draw is kept only when the driver tests significant on the target (at its hidden and at its curated value, in the same
direction) and the decoys do not; at L3 the interaction must be real too. Everything follows from the seed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evaluation.families.causal.boundary import boundary_task
from evaluation.families.causal.cells import SEEDS, Cells, attempt_generator, digits, draw_hidden
from evaluation.families.causal.difficulty import rate
from evaluation.families.causal.engines import ENGINES, Engine, Metrics
from evaluation.families.causal.inference import ALPHA, relative_change, sign_flip
from evaluation.families.causal.signatures import signature_task
from evaluation.families.causal.task import (
    REPLICATES,
    CausalTask,
    HiddenWorld,
    Magnitude,
    Tier,
    Verification,
)
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.progress import Reporter

__all__ = ["generate", "magnitude_class", "to_json"]

_ATTEMPTS = 120
_STREAMS = 12
"""Sets of replicates. Curated values are tested on the seed's own replicates, so a control that happens to be extreme
there refuses every draw; another set is drawn then, by number, and frozen with the task."""
_MAGNITUDES: tuple[tuple[float, Magnitude], ...] = ((0.75, "large"), (0.35, "medium"), (0.10, "small"))


def magnitude_class(change: float) -> Magnitude | None:
    """Class of a relative change (petri-bench 3.2); None below 10 %."""
    return next((name for least, name in _MAGNITUDES if abs(change) >= least), None)


def generate(simulation: str, tier: Tier, seed: int, reporter: Reporter | None = None) -> CausalTask:
    """The task of this seed.

    Args:
        simulation: name of an engine.
        tier: of the task.
        seed: not negative.
        reporter: is told of every set of replicates on which nothing could be verified.

    Raises:
        ExpbenchError: `USAGE` (no such simulation), `DATA_UNAVAILABLE` (no draw could be verified: another seed may
            do).
    """
    if simulation not in ENGINES:
        raise ExpbenchError(
            FailureKind.USAGE,
            f"simulation {simulation!r}",
            "is not known",
            consequence="No task was generated",
            next_step=f"Choose one of {', '.join(ENGINES)}",
        )
    for stream in range(_STREAMS):
        attempt = _attempts(ENGINES[simulation], tier, seed, stream)
        for number in range(_ATTEMPTS):
            task = attempt(number)
            if task is not None:
                return task
        if reporter is not None:
            tried = f"none of {_ATTEMPTS} draws verified on {stream + 1} of {_STREAMS} sets of replicates"
            reporter.note("generate", f"{simulation} {tier} seed {seed}: {tried}")
    raise ExpbenchError(
        FailureKind.DATA_UNAVAILABLE,
        f"{simulation} {tier} seed {seed}",
        f"none of {_ATTEMPTS} draws could be verified on any of {_STREAMS} sets of replicates",
        consequence="No task was generated",
        next_step="Use another seed",
    )


def _attempts(engine: Engine, tier: Tier, seed: int, stream: int) -> Callable[[int], CausalTask | None]:
    """What makes one draw of a tier."""
    if tier == "L4":
        return lambda number: boundary_task(engine, seed, number, stream)
    cells = Cells(engine, seed, stream=stream)
    if tier in {"L1V", "L1B"}:
        return lambda number: signature_task(cells, tier, seed, number)
    return _Draws(cells, tier, seed).attempt


def to_json(task: CausalTask) -> str:
    """The frozen form: equal tasks give equal bytes. What a tier does not have is left out of the newer fields."""
    hidden = {name for name in ("signature", "tolerance") if getattr(task.hidden, name) is None}
    left_out: dict[str, bool | set[str]] = {"hidden": hidden} if hidden else {}
    if task.sweep is None:
        left_out["sweep"] = True
    if task.stream == 0:
        left_out["stream"] = True
    return task.model_dump_json(indent=2, exclude=left_out) + "\n"


class _Draws:
    """Draws of the paper's tiers."""

    def __init__(self, cells: Cells, tier: Tier, seed: int) -> None:
        self.cell, self.all_seeds, self.engine, self.tier, self.seed = cells, cells.all_seeds, cells.engine, tier, seed
        self.stream = cells.stream
        self.target = self.engine.interaction_target if tier == "L3" else self.engine.target

    def attempt(self, number: int) -> CausalTask | None:
        """One draw; None when it cannot be verified."""
        rng = attempt_generator(self.seed, self.engine, self.tier, number)
        pool = [parameter for parameter in self.engine.parameters if parameter.hidden]
        inert = [parameter.name for parameter in self.engine.parameters if parameter.decoy]
        count = 2 if self.tier == "L3" else 1
        chosen = [pool[int(index)] for index in rng.choice(len(pool), size=count, replace=False)]
        ordered = sorted(chosen, key=lambda one: one.name)
        drivers = [(parameter.name, draw_hidden(parameter, rng)) for parameter in ordered]
        decoys = [inert[int(index)] for index in rng.choice(len(inert), size=2, replace=False)]
        candidates = [name for name, _ in drivers] + decoys
        order = [candidates[int(index)] for index in rng.permutation(len(candidates))]
        return self._verified(drivers, decoys, tuple(order))

    def _verified(
        self, drivers: list[tuple[str, float]], decoys: list[str], candidates: tuple[str, ...]
    ) -> CausalTask | None:
        curated = {name: self.engine.parameter(name).test_value for name in candidates}
        decoy_p = [self._p(**{name: curated[name]}) for name in decoys]
        driver_p = [self._p(**{name: curated[name]}) for name, _ in drivers]
        if min(decoy_p) < ALPHA or max(driver_p) >= ALPHA:  # of known cells: before a new one is simulated
            return None
        if self._p(**dict(drivers)) >= ALPHA:
            return None
        change = self._change(**dict(drivers))
        if not np.isfinite(change):
            return None
        if self.tier == "L3":
            world = self._interacting(drivers, {name: curated[name] for name, _ in drivers})
        else:
            world = self._single(drivers, change, self._change(**{drivers[0][0]: curated[drivers[0][0]]}))
        if world is None:
            return None
        sign, interaction_p = world
        return CausalTask(
            id=f"causal-{self.tier.lower()}-{self.engine.name}-{self.seed}",
            tier=self.tier,
            simulation=self.engine.name,
            engine_version=self.engine.version,
            seed=self.seed,
            stream=self.stream,
            control=self.engine.control,
            target=self.target,
            candidates=candidates,
            hidden=sign,
            verification=Verification(
                seeds=SEEDS,
                driver_p=tuple(digits(p, 6) for p in driver_p),
                decoy_p=tuple(digits(p, 6) for p in decoy_p),
                relative_change=digits(change, 6),
                interaction_p=None if interaction_p is None else digits(interaction_p, 6),
            ),
            difficulty=rate(
                self.all_seeds(),
                [self.all_seeds(**{name: value}) for name, value in drivers],
                [self.all_seeds(**{name: self.engine.parameter(name).test_value}) for name in decoys],
                target=self.target,
                replicates=REPLICATES,
                seed=self.seed,
            ),
        )

    def _single(
        self, drivers: list[tuple[str, float]], change: float, test_change: float
    ) -> tuple[HiddenWorld, float | None] | None:
        magnitude = magnitude_class(change) if self.tier == "L2" else None
        if change * test_change <= 0 or (self.tier == "L2" and magnitude is None):
            return None
        direction = "up" if change > 0 else "down"
        return HiddenWorld.model_validate(
            {"drivers": tuple(drivers), "direction": direction, "magnitude": magnitude}
        ), None

    def _interacting(
        self, drivers: list[tuple[str, float]], curated: dict[str, float]
    ) -> tuple[HiddenWorld, float | None] | None:
        names = [name for name, _ in drivers]
        worst, signs = 0.0, set()
        for values in (curated, dict(drivers)):  # cells that other draws had come first
            both = self._bench(self.cell(**values))
            alone = [self._bench(self.cell(**{name: values[name]})) for name in names]
            contrast = both - alone[0] - alone[1] + self._bench(self.cell())
            worst = max(worst, sign_flip(contrast, self.seed))
            if worst >= ALPHA:
                return None
            signs.add("positive" if contrast.mean() > 0 else "negative")
        hidden_alone = [self._p(**{name: value}) for name, value in drivers]
        if len(signs) != 1 or max(hidden_alone) >= ALPHA:
            return None
        return HiddenWorld.model_validate({"drivers": tuple(drivers), "interaction": signs.pop()}), worst

    def _bench(self, cell: Metrics) -> np.ndarray:
        return cell[self.target]

    def _p(self, **overrides: float) -> float:
        """Holm-adjusted p of the target on the bench's replicates, against the control."""
        return self.cell.against_control(**overrides)[self.target]

    def _change(self, **overrides: float) -> float:
        """Relative change of the target's mean against the control."""
        before, after = self._bench(self.cell()), self._bench(self.cell(**overrides))
        return relative_change(float(before.mean()), float(after.mean()))
