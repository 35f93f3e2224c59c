"""Claims and observations in comparable form: words instead of texts, coordinates as (name, value) pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from pipeline.task import Condition, NumericClaim
from pipeline.validation.numbers import parse_number
from pipeline.validation.observation import Observation
from pipeline.validation.tokens import GENERIC, SPLITS, STATISTICS, MetricName, metric_name, words

__all__ = ["Axis", "Pair", "Profile", "Question", "is_numeric", "profiles", "questions", "setting"]


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
                for left, right in pairwise(label)
                if is_numeric(right) and not is_numeric(left)
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
    return Pair(frozenset(words(name)), words(value), setting(value))


def setting(text: str) -> float | None:
    """The number that a setting states (`0.1`, `50,000`, `50K`); None for one that is a name."""
    parsed = parse_number(text)
    if parsed is not None:
        return parsed.value
    found = words(text)
    return float(found[0]) if len(found) == 1 and is_numeric(found[0]) and text.strip()[-1:] in "kKM" else None


def is_numeric(word: str) -> bool:
    """Is a word a number in canonical form?"""
    return word[0].isdigit() and word.replace(".", "").replace("e", "").replace("-", "").replace("+", "").isdigit()


class Axis(NamedTuple):
    """A coordinate of a run, and the factor from a claim's values to its own."""

    names: frozenset[frozenset[str]]
    """Names of one coordinate (`n_cal` in a file, `cal` in a line); any two share a word."""
    factor: float


@dataclass(frozen=True)
class Question:
    """A claim in comparable form, with what distinguishes it from the other claims of its task."""

    claim: NumericClaim
    metric: MetricName
    siblings: dict[str, frozenset[str]] = field(default_factory=dict)
    """Condition name -> other values that claims of this task have for it."""
    aliases: dict[str, Axis] = field(default_factory=dict)
    """Condition name -> the coordinate that runs through the same values under another name (`axes`)."""
    aggregate: bool = False
    """Match the numbers whose minimum or maximum the claim states, not that extreme itself."""

    @cached_property
    def statistic(self) -> str:
        """The claimed statistic other than the mean, from the metric or from a condition."""
        if self.aggregate:
            return ""
        return self.stated

    @cached_property
    def stated(self) -> str:
        """The statistic as the paper states it."""
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
