"""Which printed number is meant by a claim: decided by names, conditions and units alone, never by the value.

A number fits a claim when its labels name the claim's metric (statistic and split included) and nothing of the claim's
conditions is contradicted; conditions in which the task's claims differ from each other must be named by the labels or
by what stands above the number. Looking for the value first would make almost every claim "reproduced": a run that
prints a few hundred numbers contains most two-digit values by chance.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

from pipeline.task import Condition, NumericClaim
from pipeline.validation.numbers import parse_number
from pipeline.validation.observation import Observation
from pipeline.validation.tokens import (
    COUNTERS,
    DERIVED,
    GENERIC,
    KNOWN_METRICS,
    OPTIONAL,
    REPLICATES,
    SPLITS,
    STATISTICS,
    MetricName,
    agree,
    metric_name,
    words,
)

__all__ = ["Fit", "Profile", "Question", "fit", "profiles", "questions"]

# What a heading, a file name or the command line says counts less than a label at the number itself.
_CONTEXT_WEIGHT: Final = 0.7
_METRIC_GATE: Final = 0.5


class Pair(NamedTuple):
    """A coordinate of an observation in comparable form."""

    name: frozenset[str]
    value: tuple[str, ...]
    number: float | None


@dataclass(frozen=True)
class Profile:
    """An observation in comparable form."""

    observation: Observation
    position: int
    """Order in which the run produced it."""

    @cached_property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """Words of each label, outermost first."""
        return tuple(found for label in self.observation.labels if (found := words(label)))

    @cached_property
    def name(self) -> frozenset[str]:
        """All words of the labels."""
        return frozenset(word for label in self.labels for word in label)

    @cached_property
    def context(self) -> frozenset[str]:
        """All words that stand further away."""
        return frozenset(word for text in self.observation.context for word in words(text))

    @cached_property
    def contexts(self) -> tuple[tuple[str, ...], ...]:
        """Words of each context text."""
        return tuple(found for text in self.observation.context if (found := words(text)))

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """Coordinates, those inside labels and headings (`Order 3`, `n=500`) and command-line options included."""
        found = [_pair(name, value) for name, value in self.observation.coordinates]
        for label in self.labels:
            found += [
                Pair(frozenset({left}), (right,), float(right))
                for left, right in zip(label, label[1:], strict=False)
                if _is_numeric(right) and not _is_numeric(left)
            ]
        return tuple(dict.fromkeys(found))

    @cached_property
    def statistic(self) -> str:
        """The statistic that the labels name, other than the mean."""
        for label in reversed(self.labels):
            nearest = label is self.labels[-1]
            if nearest or set(label) <= STATISTICS | GENERIC:
                for word in label:
                    if word in STATISTICS and word != "mean":
                        return word
        return ""

    @cached_property
    def split(self) -> str:
        """`train`, `val` or `test` when the labels (or else the context) name exactly one."""
        for source in (self.name, self.context):
            found = source & SPLITS
            if found:
                return next(iter(found)) if len(found) == 1 else ""
        return ""


def _pair(name: str, value: str) -> Pair:
    parsed = parse_number(value)
    return Pair(frozenset(words(name)), words(value), None if parsed is None else parsed.value)


def _is_numeric(word: str) -> bool:
    return word[0].isdigit() and word.replace(".", "").replace("e", "").replace("-", "").replace("+", "").isdigit()


@dataclass(frozen=True)
class Question:
    """A claim in comparable form, with what distinguishes it from the other claims of its task."""

    claim: NumericClaim
    metric: MetricName
    siblings: dict[str, frozenset[str]] = field(default_factory=dict)
    """Condition name -> other values that claims of this task have for it."""

    @cached_property
    def statistic(self) -> str:
        """The claimed statistic other than the mean, from the metric or from a condition."""
        if self.metric.statistic:
            return self.metric.statistic
        for condition in self.claim.conditions:
            found = set(words(condition.value))
            if found and found <= STATISTICS:
                return "" if found == {"mean"} else min(found)
        return ""

    def discriminates(self, condition: Condition) -> bool:
        """Do the task's claims differ in this condition?"""
        return bool(self.siblings.get(condition.name))


def questions(claims: Sequence[NumericClaim]) -> list[Question]:
    """The claims in comparable form, in their order."""
    values: dict[str, set[str]] = {}
    for claim in claims:
        for condition in claim.conditions:
            values.setdefault(condition.name, set()).add(condition.value)
    return [
        Question(
            claim,
            metric_name(claim.metric),
            {c.name: frozenset(values[c.name] - {c.value}) for c in claim.conditions},
        )
        for claim in claims
    ]


def profiles(observations: Iterable[Observation]) -> list[Profile]:
    """Observations in comparable form; those without any name are left out."""
    return [Profile(item, index) for index, item in enumerate(observations) if item.labels or item.context]


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
    conditions = [_condition(question, condition, profile) for condition in question.claim.conditions]
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
    strong = (
        complete and unexplained <= 1 and all(found >= 0.8 for found in evidences) and profile.split != "train"
    )
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
    if (core & KNOWN_METRICS) - inside - outside or (core & DERIVED) - inside or (profile.name & DERIVED) - explained:
        return None
    coverage = (len(inside) + _CONTEXT_WEIGHT * len(outside)) / len(core)
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


# --- conditions ------------------------------------------------------------------------------------------------------


def _condition(question: Question, condition: Condition, profile: Profile) -> float | None:
    """Evidence for a condition: 0 (not named) to 1, None when it is contradicted or needed and absent."""
    if set(words(condition.value)) <= STATISTICS and words(condition.value):
        return 1.0  # compared as the statistic
    number = parse_number(condition.value)
    if number is not None:
        evidence = _numeric(condition, number.value, profile)
    else:
        evidence = _categorical(question, condition, profile)
    if evidence == 0.0 and question.discriminates(condition):
        return None
    return evidence


def _numeric(condition: Condition, value: float, profile: Profile) -> float | None:
    name = frozenset(words(condition.name))
    named = [pair for pair in profile.pairs if pair.number is not None and _same_name(name, pair.name)]
    if named:
        if any(_equal(pair.number, value) for pair in named):
            return 1.0
        certain = any(pair.name == name or any(len(word) > 1 for word in pair.name & name) for pair in named)
        return None if certain else 0.0
    bare = [pair for pair in profile.pairs if not pair.name and _equal(pair.number, value)]
    alone = any(
        len(label) == 1 and _is_numeric(label[0]) and _equal(float(label[0]), value) for label in profile.labels
    )
    if bare or alone:
        return 0.8
    for context in profile.contexts:
        for left, right in zip(context, context[1:], strict=False):
            if left in name and _is_numeric(right):
                return _CONTEXT_WEIGHT if _equal(float(right), value) else None
    return 0.0


def _same_name(claimed: frozenset[str], seen: frozenset[str]) -> bool:
    if claimed == seen and claimed:
        return True
    if any(len(word) > 1 for word in claimed & seen):
        return True
    if any(agree(word, (other,)) for word in claimed for other in seen if min(len(word), len(other)) > 2):
        return True
    # a symbol alone (`n`) and the words around it (`sample size n`)
    return (len(seen) == 1 and seen <= claimed) or (len(claimed) == 1 and claimed <= seen)


def _equal(left: float | None, right: float) -> bool:
    return left is not None and abs(left - right) <= 1e-9 * max(1.0, abs(left), abs(right))


def _categorical(question: Question, condition: Condition, profile: Profile) -> float | None:
    siblings = sorted(question.siblings.get(condition.name, ()))
    own_words, *rival_words = _readings(condition, tuple(siblings))
    own = max((_similarity(words_, question, profile) for words_ in own_words), default=0.0)
    best = max((_similarity(words_, question, profile) for rival in rival_words for words_ in rival), default=0.0)
    if best > own + 1e-9:
        return None
    if own > 0 and abs(best - own) <= 1e-9:
        return 0.0  # the labels do not tell this value from another one of the same claim set
    if own == 0.0:
        name = frozenset(words(condition.name))
        known = {word for reading in own_words for word in reading}
        for pair in profile.pairs:
            if name and pair.name == name and pair.number is None and not set(pair.value) & known:
                return None
    return own


@lru_cache(maxsize=4096)
def _readings(condition: Condition, siblings: tuple[str, ...]) -> list[tuple[tuple[str, ...], ...]]:
    """How a value and its siblings may be called: as a whole, without a bracketed part, by that part, without `ours`.

    Words that all values share, and the condition's own name, say nothing; a reading that two values share says nothing.
    """
    values = (condition.value, *siblings)
    common = set(words(condition.name))
    if siblings:
        common |= set.intersection(*(set(words(value)) for value in values))
    found: list[set[tuple[str, ...]]] = []
    for value in values:
        outside, inside = re.sub(r"\([^()]*\)", " ", value), " ".join(re.findall(r"\(([^()]*)\)", value))
        parts = [words(part) for part in (value, outside, inside)]
        kept = {tuple(word for word in part if word not in common) for part in parts} | {words(value)}
        found.append({reading for part in kept for reading in (part, _without_optional(part)) if reading})
    counts = Counter(reading for readings in found for reading in readings)
    return [tuple(sorted(reading for reading in readings if counts[reading] == 1)) for readings in found]


def _without_optional(part: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for word in part if word not in OPTIONAL)


def _similarity(claimed: tuple[str, ...], question: Question, profile: Profile) -> float:
    """How well some label, coordinate or context text names a value: three quarters coverage, one quarter precision."""
    ignored = question.metric.core | question.metric.generic | STATISTICS | SPLITS | GENERIC
    ignored = ignored - set(claimed)
    near = [*profile.labels, *(pair.value for pair in profile.pairs if pair.number is None and pair.value)]
    best = max((_overlap(claimed, label, ignored) for label in near), default=0.0)
    if len(near) > 1 and best < 0.99:
        # `moons` and `sgd` in two labels name the value `SGD on moons`
        joined = tuple(word for label in profile.labels for word in label)
        best = max(best, _overlap(claimed, joined, ignored))
    if best:
        return best
    return _CONTEXT_WEIGHT * max((_overlap(claimed, text, ignored, prose=True) for text in profile.contexts), default=0.0)


def _overlap(claimed: tuple[str, ...], seen: tuple[str, ...], ignored: frozenset[str], prose: bool = False) -> float:
    rest = tuple(word for word in seen if word not in ignored)
    if not rest:
        return 0.0
    hit = [word for word in claimed if agree(word, rest)]
    if not hit or len(hit) * 2 < len(claimed) or (len(claimed) == 2 and len(hit) == 1 and prose):
        return 0.0
    coverage = len(hit) / len(claimed)
    if prose:
        return coverage if coverage > 0.99 else 0.0
    back = sum(agree(word, claimed) or word in hit for word in rest) / len(rest)
    return 0.75 * coverage + 0.25 * back
