"""When are two names of a variable, or two values of it, the same? By words, numbers and units, never by guessing.

Names are compared as sets of canonical words (`pipeline.validation.tokens`: synonyms, abbreviations, Greek letters).
The task's own evidence adds synonyms: a setting that its code calls `ridge` and its paper `Regularisation strength` has
both names. Non-goal: meaning beyond that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from pipeline.task import ExperimentTruth
from pipeline.validation.numbers import find_numbers, parse_number
from pipeline.validation.tokens import GENERIC, OPTIONAL, agree, words

__all__ = ["aliases_of", "core_words", "name_score", "same_value", "value_in_text"]

_NAMING: Final = frozenset(
    {
        "number",
        "size",
        "parameter",
        "strength",
        "value",
        "type",
        "kind",
        "level",
        "setting",
        "constant",
        "fixed",
        "used",
    }
)
"""Words that say little: `number of folds` and `folds` are one variable."""
_UNIT: Final = re.compile(
    r"^\s*([-+]?[\d.,]+(?:[eE][-+]?\d+)?)\s*(%|percent|ms|s|sec|seconds?|h|hours?|epochs?|steps?|x|k|points?|samples?|runs?|seeds?|folds?|rounds?|iterations?)?\s*$",
    re.I,
)
_CLOSE: Final = 1e-6


def core_words(name: str) -> frozenset[str]:
    """The words that tell a variable from others; all words where nothing else is left."""
    found = frozenset(words(name))
    core = frozenset(
        word for word in found - OPTIONAL - GENERIC - _NAMING if len(word) > 1 or word.isdigit() or len(found) == 1
    )
    return core or found


def name_score(wanted: str, given: str, aliases: Iterable[str] = ()) -> float:
    """How well `given` names `wanted` (or an alias of it), in [0, 1]; from 0.5 on one holds all words of the other."""
    return max((_score(name, given) for name in (wanted, *aliases)), default=0.0)


def _score(wanted: str, given: str) -> float:
    left, right = core_words(wanted), core_words(given)
    if not left or not right:
        return 0.0
    if left == right:
        return 1.0
    hit = {word for word in left if agree(word, tuple(sorted(right)))}
    back = {word for word in right if agree(word, tuple(sorted(left)))}
    if hit == left or back == right:
        return 0.5 + 0.4 * (len(hit) + len(back)) / (len(left) + len(right))
    return 0.45 * (len(hit) + len(back)) / (len(left) + len(right))


def aliases_of(truth: ExperimentTruth) -> dict[str, tuple[str, ...]]:
    """Further names of each constant: settings of the code that have its value, where no other has it.

    `Regularisation strength` = 0.002 in the paper and `ridge` = 0.002 in the configuration are one thing when 0.002
    occurs once on either side.
    """
    values: dict[str, list[str]] = {}
    for variable in truth.constant:
        if len(variable.values) == 1:
            values.setdefault(_canonical(variable.values[0]), []).append(variable.name)
    settings: dict[str, list[str]] = {}
    for setting in truth.hyperparameters:
        settings.setdefault(_canonical(setting.value), []).append(setting.name)
    return {
        names[0]: tuple(sorted(set(settings[value])))
        for value, names in values.items()
        if len(names) == 1 and len(set(settings.get(value, ()))) == 1
    }


def _canonical(value: str) -> str:
    number = parse_number(value)
    return f"{number.value:.12g}" if number else " ".join(words(value))


def same_value(wanted: str, given: str) -> bool:
    """Are two values equal: as numbers (percent and fraction alike where one has a sign), or as names?"""
    left, right = _UNIT.match(wanted), _UNIT.match(given)
    if left and right:
        one, two = parse_number(left[1]), parse_number(right[1])
        if one and two:
            scales = (1.0, 100.0, 0.01) if "%" in wanted + given or "percent" in (wanted + given).lower() else (1.0,)
            return any(abs(one.value - two.value * scale) <= _CLOSE * max(1.0, abs(one.value)) for scale in scales)
    if bool(left) != bool(right):
        # `0.3` is said by `rate 0.3` and by `p = 0.3`, not by `0.3 to 0.4`
        plain, other = (wanted, given) if left else (given, wanted)
        numbers = list(find_numbers(other.replace("=", " = ")))
        match = _UNIT.match(plain)
        only = parse_number(match[1]) if match else None
        return (
            only is not None
            and len(numbers) == 1
            and abs(numbers[0].value - only.value) <= _CLOSE * max(1.0, abs(only.value))
        )
    return _same_name(wanted, given)


def _same_name(wanted: str, given: str) -> bool:
    left, right = core_words(wanted), core_words(given)
    if not left or not right:
        return wanted.strip().lower() == given.strip().lower()
    # without cross-fitting is not cross-fitting
    negated = {"without", "no", "non", "not"}
    if bool(set(words(wanted)) & negated) != bool(set(words(given)) & negated):
        return False
    numbers = {word for word in left ^ right if word[0].isdigit()}
    return not numbers and name_score(wanted, given) >= 0.6


def value_in_text(value: str, text: str) -> str:
    """The piece of `text` that states `value`; empty when none does."""
    wanted = parse_number(value)
    for sentence in re.split(r"(?<=[.;!?])\s+|\n", text):
        if wanted is not None:
            for number in find_numbers(sentence.replace("=", " = ")):
                if abs(number.value - wanted.value) <= _CLOSE * max(1.0, abs(wanted.value)):
                    return sentence.strip()
        elif core_words(value) <= {w for word in words(sentence) for w in (word,)}:
            return sentence.strip()
    return ""


def missing_values(wanted: Sequence[str], given: Sequence[str]) -> list[str]:
    """The wanted values that nothing given says."""
    pieces = [piece for item in given for piece in _pieces(item)]
    return [value for value in wanted if not any(same_value(value, piece) for piece in pieces)]


def _pieces(item: str) -> list[str]:
    """A value, and its parts when it is a list in words (`Plain, Huber and ENN`)."""
    parts = [part.strip() for part in re.split(r"[,;/|]|\band\b|\bvs\.?\b", item) if part.strip()]
    return [item, *parts] if len(parts) > 1 else [item]
