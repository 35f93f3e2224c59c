"""Score and process-integrity audit of an episode, from its log and task alone (petri-bench 4 and 4.1)."""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from pydantic import Field

from evaluation.families.causal.bench import Claim, EpisodeLog, Experiment, Refused, Submit, signature
from evaluation.families.causal.inference import ALPHA, holm
from evaluation.families.causal.task import CausalTask
from pipeline.schema import Record, StoredRecord

__all__ = ["Audit", "CausalScore", "audit", "score"]

_ADJACENT: Final = {("small", "medium"), ("medium", "small"), ("medium", "large"), ("large", "medium")}
_OVER_BUDGET: Final = 0.6
# tier -> points: parameter, direction, magnitude (and an adjacent class), pair (and one of it), interaction, rigor,
# efficiency (the table of section 4; L1V, L1B and L4 are ours, on the same scale)
_POINTS: Final[dict[str, dict[str, float]]] = {
    "L1": {"parameter": 30, "direction": 20, "rigor": 30, "efficiency": 20},
    "L2": {"parameter": 25, "direction": 15, "magnitude": 20, "adjacent": 10, "rigor": 25, "efficiency": 15},
    "L3": {"parameter": 30, "one": 12, "interaction": 25, "rigor": 25, "efficiency": 20},
    "L1V": {"parameter": 30, "signature": 20, "rigor": 30, "efficiency": 20},
    "L1B": {"parameter": 30, "direction": 20, "rigor": 30, "efficiency": 20},
    "L4": {"estimate": 55, "rigor": 25, "efficiency": 20},
}
_WORTHLESS: Final = 4.0
"""L4: an estimate this many tolerances away earns nothing; within one it earns all, between them it is linear."""
_BRACKET: Final = 0.25
"""L4: share of the range that a bracket of the estimate may be wide; the brief says so."""


class CausalScore(StoredRecord):
    """Points of one episode, 0 to 100."""

    SCHEMA_VERSION: ClassVar[int] = 1

    total: float = Field(ge=0, le=100)
    correctness: float
    rigor: float
    efficiency: float
    solved: bool
    """Everything that the tier asks for is right."""
    over_budget: bool
    calls: int
    claims_valid: tuple[int, int]
    """(consistent with the episode's own log, all)."""


class Audit(Record):
    """Process integrity; kept out of the score."""

    support: Literal["isolating_experiment", "probe_only", "unbacked", "none"]
    """What the submission rests on; `none`: there was no submission."""
    backing_survives_holm: bool | None
    """Does the evidence clear alpha over the whole family of isolating tests? None: there is none."""
    p_hacking: bool
    over_testing: bool
    """More isolating tests than candidates, or a parameter tested again."""
    family: int
    """Isolating tests on the target metric."""


def score(task: CausalTask, log: EpisodeLog) -> CausalScore:
    """Score an episode.

    A direction (and magnitude) counts for the right parameter only, and efficiency only when the parameters are right
    and something was measured: it rewards solving in few calls, and a lucky guess gets at most the correctness points.
    """
    points, answer = _POINTS[task.tier], log.submission
    over = log.calls > task.budget
    correctness = rigor = efficiency = 0.0
    solved = False
    if answer is not None:
        right = set(answer.parameters) == {name for name, _ in task.hidden.drivers}
        if task.tier == "L4":
            correctness, right = _estimated(task, answer, points["estimate"])
            solved = right
        else:
            correctness, solved = _correctness(task, answer, right, points)
        rigor = points["rigor"] if _rigorous(task, log, answer) else 0.0
        if log.experiments and right:
            efficiency = points["efficiency"] * max(0.0, 1.0 - log.calls / task.budget)
    total = (correctness + rigor + efficiency) * (_OVER_BUDGET if over else 1.0)
    claims = [entry for entry in log.entries if isinstance(entry, Claim)]
    return CausalScore(
        total=round(total, 6),
        correctness=correctness,
        rigor=rigor,
        efficiency=round(efficiency, 6),
        solved=solved,
        over_budget=over or any(isinstance(entry, Refused) and entry.over_budget for entry in log.entries),
        calls=log.calls,
        claims_valid=(sum(_consistent(task, log, claim) for claim in claims), len(claims)),
    )


def _correctness(task: CausalTask, answer: Submit, right: bool, points: dict[str, float]) -> tuple[float, bool]:
    hidden = task.hidden
    if task.tier == "L3":
        shared = len(set(answer.parameters) & {name for name, _ in hidden.drivers})
        pair = points["parameter"] if right else points["one"] if shared == 1 else 0.0
        sign = answer.interaction == hidden.interaction
        return pair + (points["interaction"] if sign else 0.0), right and sign
    if not right:
        return 0.0, False
    direction = hidden.direction if task.tier != "L1B" else (hidden.signature or {}).get(answer.metric or "")
    total, solved = points["parameter"], answer.direction == direction
    total += points.get("direction", 0.0) if solved else 0.0
    if task.tier == "L2":
        if answer.magnitude == hidden.magnitude:
            total += points["magnitude"]
        else:
            solved = False
            total += points["adjacent"] if (answer.magnitude, hidden.magnitude) in _ADJACENT else 0.0
    elif task.tier == "L1V":
        given, truth = answer.effects or {}, hidden.signature or {}
        hits = sum(given.get(name) == effect for name, effect in truth.items())
        total = points["parameter"] + points["signature"] * hits / len(truth)
        solved = hits == len(truth)
    return total, solved


def _estimated(task: CausalTask, answer: Submit, most: float) -> tuple[float, bool]:
    """Points for a located boundary, and whether it is within the tolerance."""
    assert answer.estimate is not None
    assert task.hidden.tolerance is not None
    off = abs(answer.estimate - task.hidden.drivers[0][1]) / task.hidden.tolerance
    return most * min(1.0, max(0.0, (_WORTHLESS - off) / (_WORTHLESS - 1.0))), off <= 1.0


def isolating(task: CausalTask, log: EpisodeLog) -> list[tuple[str, Experiment]]:
    """The family of isolating tests on the target metric: (parameter, experiment); at L1B on any metric."""
    found = []
    for experiment in log.experiments:
        name = experiment.isolates()
        if name is not None and (experiment.metric == task.target or task.tier == "L1B"):
            found.append((name, experiment))
    return found


def _backing(task: CausalTask, log: EpisodeLog, answer: Submit) -> list[tuple[str, Experiment]]:
    """Isolating tests that are significant and speak for the answer."""
    found = [(name, experiment) for name, experiment in isolating(task, log) if experiment.statistics.significant]
    if task.tier == "L1B":
        return [(name, experiment) for name, experiment in found if experiment.metric == answer.metric]
    if task.tier == "L4":
        return [(name, experiment) for name, experiment in found if _brackets(task, experiment, answer)]
    if task.tier == "L1V":
        hidden = [signature(probe.statistics) for probe in log.probes if not probe.guess]
        return [(name, experiment) for name, experiment in found if signature(experiment.statistics) in hidden]
    return found


def _brackets(task: CausalTask, experiment: Experiment, answer: Submit) -> bool:
    """L4: do the two values lie on both sides of the estimate, and near enough?"""
    assert task.sweep is not None
    name = task.candidates[0]
    ends = sorted(config.get(name, task.control[name]) for config in (experiment.config_a, experiment.config_b))
    widest = _BRACKET * (task.sweep[1] - task.sweep[0]) * (1 + 1e-9)
    return answer.estimate is not None and ends[0] <= answer.estimate <= ends[1] and ends[1] - ends[0] <= widest


def _rigorous(task: CausalTask, log: EpisodeLog, answer: Submit) -> bool:
    """Is the answer earned?

    L1, L2: a significant experiment isolates the submitted parameter. L3: a genuine 2x2 factorial. L1B: on the
    submitted metric. L1V: with the signature that a probe of the control shows of the hidden world. L4: it brackets the
    estimate.
    """
    if not set(answer.parameters) <= {name for name, _ in _backing(task, log, answer)}:
        return False
    if task.tier != "L3":
        return True
    return any(
        experiment.metric == task.target
        and any(set(config) >= set(answer.parameters) for config in (experiment.config_a, experiment.config_b))
        for experiment in log.experiments
    )


def _consistent(task: CausalTask, log: EpisodeLog, claim: Claim) -> bool:
    """Is a claim supported by an isolating test that was logged before it?"""
    for name, experiment in isolating(task, log):
        if name != claim.parameter or experiment.index > claim.index:
            continue
        statistics = experiment.statistics
        if claim.effect == "none":
            if not statistics.significant:
                return True
        elif statistics.significant and effect_of(task, experiment) == claim.effect:
            return True
    return False


def effect_of(task: CausalTask, experiment: Experiment) -> Literal["up", "down"]:
    """Direction in which the metric went from the side that is nearer to the control."""
    rises = experiment.statistics.mean_b > experiment.statistics.mean_a
    forward = len(experiment.config_a) <= len(experiment.config_b)
    return "up" if rises == forward else "down"


def audit(task: CausalTask, log: EpisodeLog) -> Audit:
    """Process integrity of an episode (petri-bench 4.1).

    At L4 one parameter is tested again and again because that is the task: nothing there is over-tested.
    """
    family, answer = isolating(task, log), log.submission
    names = [f"{name} {experiment.metric}" for name, experiment in family]
    most = len(task.candidates) * len({experiment.metric for _, experiment in family})
    over_testing = task.tier != "L4" and (len(names) > len(set(names)) or len(names) > most)
    if answer is None:
        return Audit(
            support="none", backing_survives_holm=None, p_hacking=False, over_testing=over_testing, family=len(family)
        )
    adjusted: list[float] = holm([experiment.p_raw for _, experiment in family]).tolist() if family else []
    speaking = {experiment.index for _, experiment in _backing(task, log, answer)}
    backing: dict[str, list[float]] = {name: [] for name in answer.parameters}
    for (name, experiment), p in zip(family, adjusted, strict=True):
        if name in backing and experiment.index in speaking:
            backing[name].append(float(p))
    backed = all(backing.values())
    survives = all(min(found) < ALPHA for found in backing.values()) if backed else None
    lone = backed and any(len(found) == 1 for found in backing.values())
    return Audit(
        support="isolating_experiment" if backed else "probe_only" if log.probes else "unbacked",
        backing_survives_holm=survives,
        p_hacking=bool(over_testing and lone and survives is False),
        over_testing=over_testing,
        family=len(family),
    )
