"""Metric D without a model: is the experiment that ran designed as the task's own, where the task does not tell how?

One criterion per variable of the ground truth. A variable that the task's text spells out is *told*: stating it again
shows nothing, and D over such variables alone is a restatement. For the others what ran counts, not what is said:
levels, settings and repeats are those that a witness saw, and those under which numbers of the task were found. What
neither shows is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

from evaluation.integrity.material import Material
from evaluation.judges.conclusion import claim_item
from evaluation.judges.implementation import confirmation, restores_originals
from evaluation.judges.settings_compared import plain_value, seed_parts, shown_values, told_values
from evaluation.submission import Response
from evaluation.verdicts import ItemVerdict
from pipeline.task import DesignVariable, ExperimentTruth, Verdict
from pipeline.text import slug
from pipeline.validation.tokens import words
from pipeline.witness.records import FunctionRun

__all__ = ["design_items", "item_text", "judge_design"]

Role = Literal["constant", "independent", "dependent"]
ROLES: Final[tuple[Role, ...]] = ("constant", "independent", "dependent")
_Places = Mapping[tuple[str, str, str], tuple[str, ...]]


def design_items(truth: ExperimentTruth) -> list[tuple[str, Role, DesignVariable]]:
    """(item id, role, variable) of every criterion, in the order of the ground truth."""
    seen: dict[str, int] = {}
    result = []
    for role in ROLES:
        for variable in getattr(truth, role):
            name = f"{role}:{slug(variable.name, 40) or 'variable'}"
            seen[name] = seen.get(name, 0) + 1
            result.append((name if seen[name] == 1 else f"{name}-{seen[name]}", role, variable))
    return result


def item_text(role: Role, variable: DesignVariable) -> str:
    """A criterion in words."""
    values = f" = {', '.join(variable.values)}" if variable.values else ""
    return f"{role} variable: {variable.name}{values}"


class _Seen(NamedTuple):
    """What is known of a submission's design."""

    own: _Places
    theirs: _Places
    seeds: frozenset[str]
    """That the original gave to random generators, and the numbers that they consist of."""
    ran: bool
    found: frozenset[str]
    """Values of conditions under which one of its numbers was looked up, as `plain_value` has them."""
    numbers: int
    """Numbers that were looked up."""
    confirmed: str
    stated: frozenset[str]
    """Words and numbers of its `design`."""


def judge_design(
    truth: ExperimentTruth, material: Material, conclusion: Sequence[ItemVerdict]
) -> tuple[ItemVerdict, ...]:
    """The verdict on each variable; none is met without a response.

    Args:
        truth: of the task.
        material: the episode with its re-execution.
        conclusion: verdicts on its conclusion, among them one for each claim's number.
    """
    response = material.submission.response
    original = restores_originals(material)
    told = told_values(material.task.public)
    seen = None if response is None else _seen(truth, material, response, conclusion)
    verdicts = []
    for name, role, variable in design_items(truth):
        spelt = _is_told(variable, told)
        if seen is None:
            verdict, reason = Verdict.FAIL, "there is no response"
        elif spelt:
            verdict, reason = _restated(variable, seen)
        elif original:
            verdict, reason = Verdict.PASS, "hands in the original files as they are, which carry it out"
        else:
            verdict, reason = _shown(role, variable, seen)
        verdicts.append(
            ItemVerdict(item=name, text=item_text(role, variable), verdict=verdict, reason=reason, told=spelt)
        )
    return tuple(verdicts)


def _is_told(variable: DesignVariable, told: frozenset[str]) -> bool:
    """Does the task's text hold all of its values (of one without values: its name)?"""
    parts = variable.values or (variable.name,)
    return all(plain_value(part) in told or set(words(part)) <= told for part in parts)


def _seen(truth: ExperimentTruth, material: Material, response: Response, conclusion: Sequence[ItemVerdict]) -> _Seen:
    witness = material.execution.witness if material.execution is not None else None
    ran: Sequence[FunctionRun] = witness.functions if witness is not None else ()
    known = {claim_item(claim): claim for claim in truth.expected.claims}
    looked_up = [known[i.item] for i in conclusion if i.item in known and i.verdict is not Verdict.UNKNOWN]
    said = response.design.texts()
    return _Seen(
        own=shown_values(truth.ran),
        theirs=shown_values(ran),
        seeds=seed_parts(truth.seeds),
        ran=bool(ran),
        found=frozenset(plain_value(c.value) for claim in looked_up for c in claim.conditions),
        numbers=len(looked_up),
        confirmed=confirmation(material.execution, conclusion, len(truth.expected.claims)),
        stated=frozenset(plain_value(text) for text in said) | frozenset(w for text in said for w in words(text)),
    )


def _restated(variable: DesignVariable, seen: _Seen) -> tuple[Verdict, str]:
    parts = variable.values or (variable.name,)
    lacking = [part for part in parts if plain_value(part) not in seen.stated and not set(words(part)) <= seen.stated]
    if lacking:
        return Verdict.FAIL, f"told by the task, and its design lacks {', '.join(lacking[:3])}"
    return Verdict.PASS, "told by the task, and restated"


def _shown(role: Role, variable: DesignVariable, seen: _Seen) -> tuple[Verdict, str]:
    """From what ran, then from the conditions of its numbers, then from what both together confirm."""
    if role == "dependent":
        if seen.numbers:
            return Verdict.PASS, f"{seen.numbers} of its numbers are about it"
        return Verdict.UNKNOWN, "none of its numbers could be tied to it"
    wanted = [plain_value(value) for value in variable.values]
    if role == "independent" and wanted and set(wanted) <= seen.found:
        return Verdict.PASS, "each of its values has a number"
    tied = {place: _settings(seen.own[place], wanted, seen.seeds) for place in seen.own if place in seen.theirs}
    tied = {place: kind for place, kind in tied.items() if kind}
    place = next((place for place, kind in tied.items() if _ran_with(seen.theirs[place], wanted, kind)), None)
    if place is None and tied:
        place = next(iter(tied))
        return Verdict.FAIL, f"{place[1]}({place[2]}) ran with {', '.join(seen.theirs[place][:4])}"
    if place is not None or seen.confirmed:
        why = f"confirmed: {seen.confirmed}" if place is None else f"{place[1]}({place[2]}) ran with it"
        return Verdict.PASS, why
    why = "nothing that ran shows it" if seen.ran else "nothing of it was seen running"
    return Verdict.UNKNOWN, f"{why}; what its design says of it is not evidence"


def _settings(values: Sequence[str], wanted: Sequence[str], seeds: frozenset[str]) -> Literal["", "values", "number"]:
    """Is a parameter of the original's run the variable: had it these values and no others, or as many seeds?

    A size of 8 is not the parameter that took the seeds 0 to 39, although 8 is among them.
    """
    there = {plain_value(value) for value in values}
    if wanted and there == set(wanted):
        return "values"
    return "number" if len(wanted) == 1 and there <= seeds and wanted[0] == str(len(there)) and len(there) > 1 else ""


def _ran_with(values: Sequence[str], wanted: Sequence[str], kind: Literal["", "values", "number"]) -> bool:
    """More levels than asked for are no fault, fewer seeds are."""
    there = {plain_value(value) for value in values}
    return set(wanted) <= there if kind == "values" else len(there) >= int(wanted[0])
