"""Which printed number is meant by a claim: decided by names, conditions and units alone, never by the value.

A number fits a claim when its labels name the claim's metric (statistic and split included) and nothing of the claim's
conditions is contradicted; conditions in which the task's claims differ from each other must be named by the labels or
by what stands above the number. Looking for the value first would make almost every claim "reproduced": a run that
prints a few hundred numbers contains most two-digit values by chance.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pipeline.validation.conditions import CONTEXT_WEIGHT, axes, evidence_for
from pipeline.validation.forms import Axis, Profile, Question, profiles, questions
from pipeline.validation.tokens import (
    COUNTERS,
    DERIVED,
    GENERIC,
    KNOWN_METRICS,
    REPLICATES,
    SPLITS,
    STATISTICS,
    agree,
    words,
)

__all__ = ["Axis", "Fit", "Profile", "Question", "axes", "fit", "profiles", "questions"]

_METRIC_GATE: Final = 0.5


class Fit(NamedTuple):
    """How well an observation's names fit a claim."""

    score: float
    strong: bool
    """The labels name everything and nothing else: a value that differs contradicts the claim."""


def fit(question: Question, profile: Profile) -> Fit | None:
    """How well the names of an observation fit a claim; None when they do not.

    The score adds two for the metric and one for each named condition and subtracts for words that nothing of the claim
    explains; it compares observations for one claim and claims for one observation.
    """
    if question.statistic != profile.statistic:
        return None
    if question.metric.split and profile.split and question.metric.split != profile.split:
        return None
    conditions = [evidence_for(question, condition, profile) for condition in question.claim.conditions]
    if any(found is None for found in conditions):
        return None
    explained = _explained(question, profile)
    metric = _metric(question, profile, explained)
    if metric is None:
        return None
    evidences = [found for found in conditions if found is not None]
    unexplained = len(profile.name - explained)
    missing = sum(found == 0.0 for found in evidences)
    if missing and unexplained > 2:
        return None  # it is named after something else than the claim's conditions
    # `epoch 3` or `seed 1`, but not `n_seeds 5`
    counters = sum(
        len(pair.name) == 1 and pair.name <= COUNTERS | REPLICATES and not pair.name <= explained
        for pair in profile.pairs
    )
    coverage, complete = metric
    score = 2 * coverage + sum(evidences) - 0.15 * min(unexplained, 4) - 0.3 * min(counters, 2)
    if question.metric.split:
        score += 0.3 if profile.split == question.metric.split else 0.0
    elif profile.split == "train":
        score -= 0.6
    elif profile.split == "val":
        score -= 0.3
    strong = complete and unexplained <= 1 and all(found >= 0.8 for found in evidences) and profile.split != "train"
    return Fit(round(score, 6), strong)


def _metric(question: Question, profile: Profile, explained: frozenset[str]) -> tuple[float, bool] | None:
    """(share of the metric's words that are named, are all of them?); None when it is another quantity."""
    core = question.metric.core or question.metric.generic
    if not core:
        return None
    nearest = profile.labels[-1] if profile.labels else ()
    inside = {word for word in core if agree(word, profile.name) or any(agree(word, label) for label in profile.labels)}
    outside = {word for word in core - inside if agree(word, profile.context)}
    others = {word for word in profile.name if word in KNOWN_METRICS} - inside - explained
    if not inside:
        # named only by a heading: then the nearest label must be one of the claim's conditions, not another quantity
        if not outside or others or not set(nearest) <= explained:
            return None
    elif others and not inside & KNOWN_METRICS:
        return None
    # `worst_fifth` is enough for `worst-fifth coverage`, `relative` is not for `relative error`
    most = 3 * len(inside) >= 2 * len(core)
    if (
        ((core & KNOWN_METRICS) - inside - outside and not most)
        or (core & DERIVED) - inside
        or (profile.name & DERIVED) - explained
    ):
        return None
    coverage = (len(inside) + CONTEXT_WEIGHT * len(outside)) / len(core)
    return (coverage, len(inside) + len(outside) == len(core)) if coverage >= _METRIC_GATE else None


def _explained(question: Question, profile: Profile) -> frozenset[str]:
    """Words of the observation's labels that the claim accounts for."""
    claimed = set(question.metric.core | question.metric.generic | GENERIC | STATISTICS | SPLITS)
    for condition in question.claim.conditions:
        claimed |= set(words(condition.name)) | set(words(condition.value))
    return frozenset(
        word
        for word in profile.name
        if word in claimed or any(agree(word, (other,)) for other in claimed if len(other) >= 3)
    )
