"""Do comparative statements agree with the claims of the expected outcome? Values of claims against each other.

`A is best at p = 20` is looked up: among the claims that differ in nothing but the variable that A is a value of, at
p = 20, is A's value the best? Non-goal: outcomes that are told in words alone (`evaluation.judges.propositions`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from evaluation.judges.lexicon import LOWER_IS_BETTER
from evaluation.judges.quantities import agreement, reported_quantity
from evaluation.judges.statements import Statement, read_statements
from pipeline.task import ClaimMatch, ExperimentTruth, NumericClaim
from pipeline.validation.numbers import parse_number
from pipeline.validation.tokens import metric_name

__all__ = ["axes_of", "holds", "orderings", "told"]

_SHARE: Final = 0.5
"""Share of the conditions that a statement is about in which it must hold; statements sum up, and ties are common."""


def told(statement: Statement) -> str:
    """A statement in a few words."""
    other = f" {statement.other}" if statement.other else ""
    return f"{statement.subject} {statement.relation}{other}"


def axes_of(truth: ExperimentTruth) -> dict[str, str]:
    """Known name -> its variable: values of the independent variables, coordinates of the claims, variables' names."""
    found = {variable.name: variable.name for variable in truth.independent}
    found |= {value: variable.name for variable in truth.independent for value in variable.values}
    found |= {c.name: c.name for claim in truth.expected.claims for c in claim.conditions}
    found |= {c.value: c.name for claim in truth.expected.claims for c in claim.conditions}
    return dict(sorted(found.items()))


def orderings(truth: ExperimentTruth, matches: Sequence[ClaimMatch]) -> tuple[int, list[str]]:
    """(comparisons that the reported numbers keep, those that they break)."""
    values = {match.claim: match.observed[0] for match in matches if match.observed}
    kept, broken = 0, []
    for left, relation, right in truth.expected.comparisons:
        if left in values and right in values:
            holds = _keeps(values[left], relation, values[right])
            kept += holds is True
            if holds is False:
                broken.append(f"{left} {relation} {right}")
    return kept, broken


def _keeps(one: float, relation: str, two: float) -> bool | None:
    """Do two numbers keep a comparison? Equality as exactly as a re-run repeats a number; None: too close to say."""
    if relation == "=":
        return agreement(reported_quantity("", one), reported_quantity("", two))
    return one < two if relation == "<" else one > two


def holds(statement: Statement, truth: ExperimentTruth, axes: Mapping[str, str]) -> bool | None:
    """Does a statement agree with the claims? None where the claims, or the expected text, do not say."""
    if _expected(statement, truth, axes):
        return True
    claims = truth.expected.claims
    answer = _by_claims(statement, claims, axes) if claims else None
    if answer is None:
        return None
    return not answer if statement.negated else answer


def _expected(statement: Statement, truth: ExperimentTruth, axes: Mapping[str, str]) -> bool:
    """Does the expected outcome say the same, read by the same patterns?"""
    return any(
        (own.subject, own.relation, own.other, own.negated)
        == (statement.subject, statement.relation, statement.other, statement.negated)
        and set(own.where) == set(statement.where)
        for own in read_statements(truth.expected.text, axes)
    )


def _by_claims(statement: Statement, claims: Sequence[NumericClaim], axes: Mapping[str, str]) -> bool | None:
    """Compare values between claims that differ only in the coordinate that the subject is a value of.

    A statement without conditions sums up: it is right when it holds in half of the conditions, wrong when it holds in
    none; between the two it may be about conditions that it names in other words, and nothing is said.
    """
    axis = axes.get(statement.subject, "")
    if statement.relation in {"rises", "falls"}:
        return _trend(statement, claims, axes)
    groups: dict[tuple[str, tuple[tuple[str, str], ...]], dict[str, float]] = {}
    for claim in claims:
        here = next((c.value for c in claim.conditions if c.name == axis), None)
        rest = tuple(sorted((c.name, c.value) for c in claim.conditions if c.name != axis))
        if here is not None and _applies(statement, rest, axes):
            groups.setdefault((claim.metric, rest), {})[here] = claim.value
    votes = [v for (metric, _), group in sorted(groups.items()) if (v := _vote(statement, group, metric)) is not None]
    if not votes:
        return None
    share = sum(votes) / len(votes)
    return True if share >= _SHARE else False if share == 0 else None


def _applies(statement: Statement, rest: tuple[tuple[str, str], ...], axes: Mapping[str, str]) -> bool:
    """Is a group of claims among those that the statement is about? A named value narrows its own variable."""
    wanted: dict[str, set[str]] = {}
    for name in statement.where:
        if axes.get(name, name) != name:
            wanted.setdefault(axes[name], set()).add(name)
    return all(value in wanted[name] for name, value in rest if name in wanted)


def _vote(statement: Statement, group: dict[str, float], metric: str) -> bool | None:
    subject = next((value for name, value in sorted(group.items()) if _same(name, statement.subject)), None)
    if subject is None or len(group) < 2:
        return None
    lower = bool(metric_name(metric).core & LOWER_IS_BETTER)
    literal = re.search(r"\b(?:high|low|larg|small|great|above|below|exceed)\w*", statement.quote, re.I) is not None
    sign = -1.0 if lower and not literal else 1.0  # `better` depends on the metric, `higher` does not
    if statement.relation in {"best", "worst"}:
        values = [sign * v for name, v in group.items() if not any(_same(name, out) for out in statement.left_out)]
        extreme = sign * subject >= max(values) if statement.relation == "best" else sign * subject <= min(values)
        # the best of the methods `without labels` may well be second of all: which they are, nobody can say here
        return extreme or (None if statement.limited and not statement.left_out else False)
    other = next((value for name, value in sorted(group.items()) if _same(name, statement.other)), None)
    if other is None or other == subject:
        return None
    above = sign * subject > sign * other
    return above if statement.relation == "above" else not above


def _trend(statement: Statement, claims: Sequence[NumericClaim], axes: Mapping[str, str]) -> bool | None:
    """`accuracy falls as p grows`: first against last value along a numeric coordinate."""
    named = {axes[name] for name in (statement.subject, *statement.where) if axes.get(name) == name}
    narrowed = [name for name in (statement.subject, *statement.where) if axes.get(name, name) != name]
    groups: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
    for claim in claims:
        for condition in claim.conditions:
            number = parse_number(condition.value)
            if number is None or (named and condition.name not in named):
                continue
            rest = tuple(sorted((c.name, c.value) for c in claim.conditions if c is not condition))
            plain = Statement("", "rises", "", tuple(n for n in narrowed if axes[n] != condition.name), "")
            if _applies(plain, rest, axes):
                key = (("", claim.metric), ("axis", condition.name), *rest)
                groups.setdefault(key, []).append((number.value, claim.value))
    votes = []
    for _, series in sorted(groups.items()):
        ordered = sorted(series)
        if len(ordered) >= 2 and ordered[0][1] != ordered[-1][1]:
            votes.append(ordered[-1][1] > ordered[0][1])
    if not votes:
        return None
    rising = sum(votes) / len(votes)
    share = rising if statement.relation == "rises" else 1 - rising
    return True if share >= _SHARE else False if share == 0 else None


def _same(left: str, right: str) -> bool:
    return " ".join(re.sub(r"\s*\((?:ours|full|proposed)\)", "", left).lower().split()) == " ".join(
        re.sub(r"\s*\((?:ours|full|proposed)\)", "", right).lower().split()
    )
