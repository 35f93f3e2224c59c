"""Does an observation stand under the conditions of a claim? By names and settings, never by the value.

A condition is named (evidence up to 1), not named (0) or contradicted (None). One in which the task's claims differ
from each other has to be named.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

from pipeline.task import Condition
from pipeline.validation.forms import Axis, Profile, Question, is_numeric, setting
from pipeline.validation.numbers import find_numbers
from pipeline.validation.tokens import GENERIC, OPTIONAL, SPLITS, STATISTICS, agree, words

__all__ = ["CONTEXT_WEIGHT", "axes", "evidence_for"]

CONTEXT_WEIGHT: Final = 0.7
"""What a heading, a file name or the command line says counts less than a label at the number itself."""


def evidence_for(question: Question, condition: Condition, profile: Profile) -> float | None:
    """Evidence for a condition: 0 (not named) to 1, None when it is contradicted or needed and absent."""
    if set(words(condition.value)) <= STATISTICS and words(condition.value):
        return 1.0  # compared as the statistic
    bounds = _bounds(condition.value)
    if bounds is not None:
        return _inside(condition, bounds, profile)
    number = setting(condition.value)
    if number is not None:
        evidence = _numeric(question, condition, number, profile)
    else:
        evidence = _categorical(question, condition, profile)
    if evidence == 0.0 and question.discriminates(condition):
        return None
    return evidence


def _numeric(question: Question, condition: Condition, value: float, profile: Profile) -> float | None:
    name = frozenset(words(condition.name))
    alias = question.aliases.get(condition.name)
    if alias is not None:
        along = [pair.number for pair in profile.pairs if pair.name in alias.names and pair.number is not None]
        if along:
            return 0.9 if any(_equal(number, value * alias.factor) for number in along) else None
    named = [pair for pair in profile.pairs if pair.number is not None and _same_name(name, pair.name)]
    if named:
        if any(_equal(pair.number, value) for pair in named):
            return 1.0
        certain = any(pair.name == name or any(len(word) > 1 for word in pair.name & name) for pair in named)
        return None if certain else 0.0
    bare = [pair for pair in profile.pairs if not pair.name and _equal(pair.number, value)]
    alone = any(len(label) == 1 and is_numeric(label[0]) and _equal(float(label[0]), value) for label in profile.labels)
    if bare or alone:
        return 0.8
    for context in profile.contexts:
        for left, right in pairwise(context):
            if left in name and is_numeric(right):
                return CONTEXT_WEIGHT if _equal(float(right), value) else None
    return 0.0


def _bounds(value: str) -> tuple[float, float] | None:
    """The ends of a stated range (`[500, 100,000]`); None for anything else."""
    if not re.match(r"^\s*[\[(].*[\])]\s*$", value):
        return None
    numbers = [number.value for number in find_numbers(value)]
    return (numbers[0], numbers[1]) if len(numbers) == 2 and numbers[0] < numbers[1] else None


def _inside(condition: Condition, bounds: tuple[float, float], profile: Profile) -> float | None:
    name = frozenset(words(condition.name))
    named = [pair.number for pair in profile.pairs if pair.number is not None and _same_name(name, pair.name)]
    if not named:
        return 0.0
    return 1.0 if any(bounds[0] <= number <= bounds[1] for number in named) else None


def axes(asked: Sequence[Question], seen: Sequence[Profile]) -> dict[str, Axis]:
    """Numeric conditions that a run calls by another name, recognised by their values.

    The settings 0, 10, 20, 30, 40 of the paper's column `rho` are the program's `rate` 0.0 to 0.4 when that is the only
    coordinate that takes all of them (as they are, or as fractions of 100). Only settings are compared, never results.
    """
    claimed: dict[str, set[float]] = {}
    for question in asked:
        for condition in question.claim.conditions:
            number = setting(condition.value)
            claimed.setdefault(condition.name, set()).add(math.nan if number is None else number)
    wanted = {name: values for name, values in claimed.items() if len(values) >= 3 and not any(map(math.isnan, values))}
    if not wanted:
        return {}
    taken: dict[frozenset[str], set[float]] = {}
    for profile in seen:
        for pair in profile.pairs:
            if pair.number is not None and pair.name:
                taken.setdefault(pair.name, set()).add(round(pair.number, 9))
    found = {}
    for name, values in wanted.items():
        for factor in (1.0, 0.01):
            scaled = {round(value * factor, 9) for value in values}
            fitting = [axis for axis, numbers in taken.items() if scaled <= numbers and len(numbers) <= 2 * len(scaled)]
            if fitting and frozenset.intersection(*fitting):
                found[name] = Axis(frozenset(fitting), factor)
            if fitting:
                break
    return found


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

    Words that all values share, and the condition's own name, say nothing; nor does a reading that two values share.
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
    return CONTEXT_WEIGHT * max(
        (_overlap(claimed, text, ignored, prose=True) for text in profile.contexts), default=0.0
    )


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
