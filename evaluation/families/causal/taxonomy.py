"""What went wrong in an episode, as objective flags from its log (petri-bench 7.3); they may co-occur."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from evaluation.families.causal.bench import EpisodeLog, Refused, Submit
from evaluation.families.causal.scoring import audit, effect_of, isolating, score
from evaluation.families.causal.task import CausalTask

__all__ = ["Flag", "classify", "prevalence"]


class Flag(StrEnum):
    """What was wrong, and how the method failed."""

    NO_ANSWER = "no_answer"
    WRONG_PARAMETER = "wrong_parameter"
    DIRECTION_ERROR = "direction_error"
    """Right parameter, wrong direction."""
    DIRECTION_UNMEASURED = "direction_unmeasured"
    """Of direction errors: the control was never compared with the hidden world, nor the parameter isolated."""
    DIRECTION_CONTRADICTED = "direction_contradicted"
    """Of direction errors: a significant measurement in the log says otherwise."""
    MAGNITUDE_ERROR = "magnitude_error"
    INTERACTION_ERROR = "interaction_error"
    SIGNATURE_ERROR = "signature_error"
    """L1V: right parameter, an effect on some metric misread."""
    ESTIMATE_ERROR = "estimate_error"
    """L4: the boundary is further away than the tolerance."""
    UNBACKED = "unbacked"
    PROBE_ONLY = "probe_only"
    INVALID_CLAIM = "invalid_claim"
    P_HACKING = "p_hacking"
    OVER_TESTING = "over_testing"
    BUDGET_MISUSE = "budget_misuse"
    """A call past the budget was tried."""


def classify(task: CausalTask, log: EpisodeLog) -> tuple[Flag, ...]:
    """The flags of one episode, sorted."""
    flags = _method(task, log)
    answer = log.submission
    if answer is None:
        return tuple(sorted({*flags, Flag.NO_ANSWER}))
    if set(answer.parameters) != {name for name, _ in task.hidden.drivers}:
        flags.add(Flag.WRONG_PARAMETER)
    elif task.tier in {"L4", "L1V"}:
        if not score(task, log).solved:
            flags.add(Flag.ESTIMATE_ERROR if task.tier == "L4" else Flag.SIGNATURE_ERROR)
    elif task.tier == "L3":
        if answer.interaction != task.hidden.interaction:
            flags.add(Flag.INTERACTION_ERROR)
    else:
        if not _direction_right(task, answer):
            flags.add(Flag.DIRECTION_ERROR)
            measured = _measured_directions(task, log, answer.parameters[0])
            if not measured:
                flags.add(Flag.DIRECTION_UNMEASURED)
            elif answer.direction not in measured:
                flags.add(Flag.DIRECTION_CONTRADICTED)
        if task.tier == "L2" and answer.magnitude != task.hidden.magnitude:
            flags.add(Flag.MAGNITUDE_ERROR)
    return tuple(sorted(flags))


def _method(task: CausalTask, log: EpisodeLog) -> set[Flag]:
    found, flags = audit(task, log), set[Flag]()
    valid, claims = score(task, log).claims_valid
    flags |= {Flag.UNBACKED} if found.support == "unbacked" else set()
    flags |= {Flag.PROBE_ONLY} if found.support == "probe_only" else set()
    flags |= {Flag.INVALID_CLAIM} if valid < claims else set()
    flags |= {Flag.P_HACKING} if found.p_hacking else set()
    flags |= {Flag.OVER_TESTING} if found.over_testing else set()
    misused = any(isinstance(entry, Refused) and entry.over_budget for entry in log.entries)
    return flags | ({Flag.BUDGET_MISUSE} if misused or log.calls > task.budget else set())


def _direction_right(task: CausalTask, answer: Submit) -> bool:
    if task.tier != "L1B":
        return answer.direction == task.hidden.direction
    return answer.direction == (task.hidden.signature or {}).get(answer.metric or "")


def _measured_directions(task: CausalTask, log: EpisodeLog, parameter: str) -> set[str]:
    """Directions that significant, direct measurements of the log show for the hidden change."""
    found: set[str] = set()
    answer = log.submission
    metric = task.target if task.tier != "L1B" or answer is None else answer.metric
    for probe in log.probes:
        if not probe.guess and probe.metric == metric and probe.statistics.significant:
            found.add("up" if probe.statistics.mean_b > probe.statistics.mean_a else "down")
    for name, experiment in isolating(task, log):
        if name == parameter and experiment.metric == metric and experiment.statistics.significant:
            found.add(effect_of(task, experiment))
    return found


def prevalence(episodes: Iterable[tuple[CausalTask, EpisodeLog]]) -> dict[Flag, tuple[int, int]]:
    """(episodes with the flag, episodes that could have it); direction errors count among right parameters."""
    counts = {flag: [0, 0] for flag in Flag}
    for task, log in episodes:
        flags = classify(task, log)
        right = not {Flag.NO_ANSWER, Flag.WRONG_PARAMETER} & set(flags)
        for flag in Flag:
            counts[flag][0] += flag in flags
            counts[flag][1] += right or flag is not Flag.DIRECTION_ERROR
    return {flag: (hits, among) for flag, (hits, among) in counts.items()}
