"""The expected outcome of a draft: orderings and a summary in words, composed from its claims alone.

Orderings say what is larger, not what is better. Everything here is computed from the claims, so that the same words
can be composed again when validation has dropped some of them (`restate_expected`): the text never states a number that
no remaining claim holds. Non-goal: listing all numbers; the claims hold them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, Literal

from extractors._roles import Axis, Roles, roles_of
from extractors.claims import Number, find_numbers, symbols_in
from extractors.prose import capitalise, join_names, plain_number
from pipeline.task import Expected, NumericClaim

__all__ = ["compose_expected", "repeats_claims", "restate_expected"]

Comparison = tuple[str, Literal["<", ">", "="], str]
_MAX_COMPARISONS: Final = 40
_MAX_SENTENCES: Final = 6
_MAX_QUOTES: Final = 3
_MAX_SERIES: Final = 4
_STATES: Final = "The paper states: "


def compose_expected(claims: Sequence[NumericClaim], statements: Sequence[str]) -> Expected:
    """Claims with their orderings, and a summary of at most six sentences.

    Args:
        claims: what the paper reports.
        statements: its own result sentences; the first ones that fit are quoted.
    """
    roles = roles_of(claims)
    sentences = _sentences(claims, roles)
    room = min(_MAX_QUOTES, _MAX_SENTENCES - len(sentences))
    quotes = [f"“{_unquoted(text)}”" for text in statements[:room]]
    parts = [*sentences, _STATES + " ".join(quotes)] if quotes else sentences
    return Expected(text="\n".join(parts), claims=tuple(claims), comparisons=_comparisons(claims, roles))


def restate_expected(expected: Expected, kept: Sequence[NumericClaim]) -> Expected:
    """The expected outcome of those claims that validation left (EXP-Bench 3.2, stage 3).

    Summary and orderings are composed anew from `kept` alone. A quoted statement stays when each of its result numbers
    is the value of a kept claim (or the difference of two such values that it gives as well); one without any number
    stays only when nothing was dropped, because it speaks of the whole.

    Args:
        expected: the outcome as drafted.
        kept: the claims that remain, possibly with bands learnt from repeats; at least one of `expected.claims`.

    Raises:
        ValueError: a kept claim is none of `expected.claims`.
    """
    known = {claim.id for claim in expected.claims}
    foreign = sorted({claim.id for claim in kept} - known)
    if foreign:
        raise ValueError(f"cannot restate the outcome: {', '.join(foreign)} is not among its claims")
    quoted = re.findall(r"“([^“”]+)”", expected.text.partition(_STATES)[2])
    if known - {claim.id for claim in kept}:
        conditions = _condition_numbers(expected.claims)
        quoted = [text for text in quoted if _is_held(text, kept, conditions)]
    return compose_expected(kept, quoted)


def repeats_claims(text: str, claims: Sequence[NumericClaim]) -> bool:
    """Is each result number of a statement the value of a claim, or the difference of two that it gives as well?"""
    return _is_held(text, claims, _condition_numbers(claims))


def _unquoted(text: str) -> str:
    return text.replace("“", "‘").replace("”", "’")


# --- statements ------------------------------------------------------------------------------------------------------


def _condition_numbers(claims: Sequence[NumericClaim]) -> frozenset[float]:
    texts = {f"{condition.name} {condition.value}" for claim in claims for condition in claim.conditions}
    return frozenset(abs(number.value) for text in texts for number in find_numbers(text))


def _is_held(text: str, kept: Sequence[NumericClaim], conditions: frozenset[float]) -> bool:
    """Does every result number of a statement belong to a kept claim?

    Conditions (`n = 400`), assigned symbols and bare counts (`four problems`, `5 folds`) are no results.
    """
    held = [number for number in find_numbers(text) if any(_is_value(number, claim) for claim in kept)]
    assigned = [(start, end) for _, _, start, end in symbols_in(text)]
    values = [abs(number.value) for number in held]
    for number in find_numbers(text):
        counted = number.decimals == 0 and (number.unit is None or abs(number.value) in conditions)
        setting = abs(number.value) in conditions or any(start <= number.start < end for start, end in assigned)
        if number in held or counted or setting:
            continue
        if not any(abs(abs(a - b) - abs(number.value)) < 1.01 * number.step for a in values for b in values if a != b):
            return False
    return bool(held)


def _is_value(number: Number, claim: NumericClaim) -> bool:
    """Is the printed number the claim's value, possibly as a percentage of it or rounded?"""
    value, target = abs(number.value), abs(claim.value)
    factors = (1.0, 100.0) if number.unit == "%" and claim.unit != "%" else (1.0,)
    if number.decimals == 0 and claim.decimals > 0 and number.unit != claim.unit:
        return False  # `4 rounds` is not the width 4.3
    return any(abs(value - target * factor) <= 0.51 * number.step for factor in factors)


# --- orderings -------------------------------------------------------------------------------------------------------


_Key = tuple[tuple[str, str], ...]
_Groups = dict[_Key, list[NumericClaim]]
_THOUSANDS: Final = {"K": 1e3, "M": 1e6, "B": 1e9}


def _value_of(claim: NumericClaim, axis: str) -> str | None:
    return next((c.value for c in claim.conditions if c.name == axis), None)


def _metrics(claims: Sequence[NumericClaim]) -> list[str]:
    return list(dict.fromkeys(claim.metric for claim in claims))


def _groups(claims: Sequence[NumericClaim], metric: str, roles: Roles, along: str) -> _Groups:
    """The claims of a metric that differ only in the variable `along` (and in what goes along with it)."""
    aside = {along, *roles.attributes, *(name for name, _ in roles.fixed)}
    groups: _Groups = {}
    for claim in claims:
        if claim.metric == metric:
            key = tuple((c.name, c.value) for c in claim.conditions if c.name not in aside)
            groups.setdefault(key, []).append(claim)
    return groups


def _size(claim: NumericClaim) -> float:
    """The value for comparing: `1.7K` tokens are more than 980."""
    return claim.value * _THOUSANDS.get(claim.unit or "", 1.0)


def _ordered(claims: Sequence[NumericClaim]) -> list[NumericClaim]:
    """Largest first; ties keep the table's order."""
    return sorted(claims, key=lambda claim: -_size(claim))


def _comparisons(claims: Sequence[NumericClaim], roles: Roles) -> tuple[Comparison, ...]:
    """Relations that must hold among reproduced values.

    Along a numeric axis from step to step, else largest against second largest and against the smallest. Differences
    within the bands of the two claims are no claim and are left out.
    """
    found: list[Comparison] = []
    first = next(iter(roles.axes), None)
    for metric in _metrics(claims) if first is not None else ():
        assert first is not None
        for members in _groups(claims, metric, roles, first.name).values():
            if len({_value_of(claim, first.name) for claim in members}) < 2:
                continue
            if len({_THOUSANDS.get(claim.unit or "") for claim in members}) > 1:
                continue  # their values are not comparable as they are printed
            if first.kind == "number":
                pairs = list(pairwise(members))
            else:
                ranked = _ordered(members)
                pairs = [(ranked[0], ranked[1])] + ([(ranked[0], ranked[-1])] if len(ranked) > 2 else [])
            for a, b in pairs:
                if a.band.low > b.band.high or b.band.low > a.band.high:
                    found.append((a.id, ">" if a.value > b.value else "<", b.id))
    return tuple(found[:_MAX_COMPARISONS])


# --- summary ---------------------------------------------------------------------------------------------------------


def _shown(claim: NumericClaim) -> str:
    unit = claim.unit or ""
    if unit and unit in claim.text:
        return claim.text
    if unit.startswith("10"):
        return f"{claim.text} × {unit}"
    return f"{claim.text}{unit}" if unit in ("%", "") else f"{claim.text} {unit}"


def _under(key: Sequence[tuple[str, str]]) -> str:
    """Conditions as they stand in a sentence: `Spirals, asymmetric noise` or `n = 200`."""
    return ", ".join(
        value if re.search(r"[^\W\d_].?[^\W\d_]", value) else f"{name} = {plain_number(value)}" for name, value in key
    )


def _begun(sentence: str) -> str:
    """A sentence with its first letter upper case, unless it begins with a symbol or an odd name (`ϵ`, `iBLEU`)."""
    return capitalise(sentence) if re.match(r"[a-z]{2,}\b|a\b", sentence) else sentence


def _sentences(claims: Sequence[NumericClaim], roles: Roles) -> list[str]:
    metrics = _metrics(claims)
    shown, rest = metrics[: _MAX_SENTENCES - 2], metrics[_MAX_SENTENCES - 2 :]
    sentences: list[str] = []
    for metric in shown:
        told = _of_metric(claims, metric, roles)
        sentences += told if len(metrics) <= 2 else told[:1]
    if rest:
        sentences.append(f"The claims also give {join_names(rest)}.")
    return [_begun(sentence) for sentence in sentences]


def _of_metric(claims: Sequence[NumericClaim], metric: str, roles: Roles) -> list[str]:
    own = [claim for claim in claims if claim.metric == metric]
    axes = [axis for axis in roles.axes if len({_value_of(claim, axis.name) for claim in own} - {None}) > 1]
    if len(own) == 1 or not axes:
        values = join_names([_shown(claim) for claim in own])
        shared = [(c.name, c.value) for c in own[0].conditions if all(c in other.conditions for other in own)]
        where = f" ({_under(shared)})" if shared else ""
        return [f"{metric} is {values}{where}."]
    numeric = next((axis for axis in axes if axis.kind == "number" and len(axis.values) > 2), None)
    return _ranking(claims, metric, roles, axes[0]) if numeric is None else _trend(claims, metric, roles, numeric)


def _trend(claims: Sequence[NumericClaim], metric: str, roles: Roles, axis: Axis) -> list[str]:
    """How a metric runs along a numeric axis: first and last value of each series, and an extreme between them."""
    series = [(key, members) for key, members in _groups(claims, metric, roles, axis.name).items() if len(members) > 1]
    if not series:
        return _ranking(claims, metric, roles, axis)
    runs: dict[tuple[str, str], list[str]] = {}
    for key, members in sorted(series, key=lambda item: -abs(item[1][-1].value - item[1][0].value))[:_MAX_SERIES]:
        of = f" for {_under(key)}" if key else ""
        run = f"from {_shown(members[0])} to {_shown(members[-1])}{of}{_extreme(members, axis)}"
        runs.setdefault(_ends(members, axis), []).append(run)  # not every series runs over the same stretch
    told = [
        f"as {axis.name} goes from {low} to {high}, {metric} goes {join_names(own)}."
        for (low, high), own in runs.items()
    ]
    left = len(series) - sum(len(own) for own in runs.values())
    more = [f"The other {left} series change less." if left > 1 else "The other series changes less."] if left else []
    return [*told, *more]


def _ends(members: Sequence[NumericClaim], axis: Axis) -> tuple[str, str]:
    low, high = (plain_number(_value_of(claim, axis.name) or "") for claim in (members[0], members[-1]))
    return low, high


def _extreme(members: Sequence[NumericClaim], axis: Axis) -> str:
    """The turning point of a series that ends neither at its highest nor at its lowest value."""
    low, high = min(members, key=lambda c: c.value), max(members, key=lambda c: c.value)
    ends = {members[0].value, members[-1].value}
    for word, claim in (("lowest", low), ("highest", high)):
        clear = all(not (claim.band.low <= end <= claim.band.high) for end in ends)
        if claim.value not in ends and clear:
            return f" ({word}, {_shown(claim)}, at {_value_of(claim, axis.name)})"
    return ""


def _ranking(claims: Sequence[NumericClaim], metric: str, roles: Roles, axis: Axis) -> list[str]:
    """What has the largest value in how many of the groups, and where the values lie furthest apart."""
    groups = [(key, members) for key, members in _groups(claims, metric, roles, axis.name).items() if len(members) > 1]
    if not groups:
        own = [claim for claim in claims if claim.metric == metric]
        told = [f"{_shown(claim)} for {_under([(c.name, c.value) for c in claim.conditions])}" for claim in own]
        return [f"{metric} is {join_names(told[:_MAX_SERIES])}."]
    if len(groups) == 1:
        key, members = groups[0]
        where = f", for {_under(key)}" if key else ""
        what = "the same" if len(set(map(_size, members))) == 1 else "highest"
        return [f"{metric} is {what} for {_listed(_ordered(members), axis)}{where}."]
    leads: Counter[str] = Counter()
    for _, members in groups:
        top = max(map(_size, members))
        leads.update(_value_of(claim, axis.name) or "the rest" for claim in members if _size(claim) == top)
    told = [f"for {label} in {count}" for label, count in leads.most_common(3)]
    names = join_names([name for name, _ in groups[0][0]]) or "settings"
    ties = " (ties counted for each)" if sum(leads.values()) > len(groups) else ""
    spread = max(groups, key=lambda item: max(map(_size, item[1])) - min(map(_size, item[1])))
    where = f" for {_under(spread[0])}" if spread[0] else ""
    return [
        f"{metric} is highest {join_names(told)} of {len(groups)} ({names}){ties}.",
        f"The values lie furthest apart{where}: {_listed(_ordered(spread[1]), axis)}.",
    ]


def _listed(ranked: Sequence[NumericClaim], axis: Axis) -> str:
    """Ranked values with their labels; of many the first four and the last one."""
    told = [f"{_value_of(claim, axis.name) or 'the rest'} ({_shown(claim)})" for claim in ranked]
    first = [claim for claim in ranked if _size(claim) == _size(ranked[0])]
    if 1 < len(first) < 5:  # a tie has no first
        names = join_names([_value_of(claim, axis.name) or "the rest" for claim in first])
        told = [f"{names} ({_shown(first[0])} each)", *told[len(first) :]]
        if len(told) == 1:
            return told[0]
    if len(told) <= 6:
        return f"{told[0]}, then {join_names(told[1:])}"
    return f"{told[0]}, then {join_names(told[1:4])}; last is {told[-1]}"
