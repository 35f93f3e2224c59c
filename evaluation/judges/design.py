"""The keyless judge of design (D): does the submission name the task's variables, in their roles, with their values?

One criterion per variable of the ground truth. Variables are assigned one to one, so that a submission cannot meet two
criteria with one word, and the assignment does not depend on the order in which anything is listed.
"""

from __future__ import annotations

import re
from typing import Final, Literal

import numpy as np
from scipy.optimize import linear_sum_assignment

from evaluation.judges.names import aliases_of, missing_values, name_score, value_in_text
from evaluation.submission import Response, ResponseDesign
from evaluation.verdicts import ItemVerdict
from pipeline.task import DesignVariable, ExperimentTruth, Verdict
from pipeline.text import shorten, slug
from pipeline.validation.numbers import parse_number

__all__ = ["design_items", "judge_design"]

Role = Literal["constant", "independent", "dependent"]
ROLES: Final[tuple[Role, ...]] = ("constant", "independent", "dependent")
_NAMED: Final = 0.5
"""From here all words of one name are in the other (`names.name_score`)."""
_DISTINCTIVE: Final = 3
"""Characters of a number that is unlikely to be somebody else's by chance: `0.002`, `600`, not `5`."""


def design_items(truth: ExperimentTruth) -> list[tuple[str, Role, DesignVariable]]:
    """(item id, role, variable) of every criterion, in the order of the ground truth."""
    return _unique(
        [
            (f"{role}:{slug(variable.name, 40) or 'variable'}", role, variable)
            for role in ROLES
            for variable in getattr(truth, role)
        ]
    )


def _unique(items: list[tuple[str, Role, DesignVariable]]) -> list[tuple[str, Role, DesignVariable]]:
    seen: dict[str, int] = {}
    result = []
    for name, role, variable in items:
        seen[name] = seen.get(name, 0) + 1
        result.append((name if seen[name] == 1 else f"{name}-{seen[name]}", role, variable))
    return result


def item_text(role: Role, variable: DesignVariable) -> str:
    """A criterion in words."""
    values = f" = {', '.join(variable.values)}" if variable.values else ""
    return f"{role} variable: {variable.name}{values}"


def judge_design(truth: ExperimentTruth, response: Response | None) -> tuple[ItemVerdict, ...]:
    """The verdict on each variable; none is met without a response."""
    items = design_items(truth)
    if response is None:
        return tuple(
            ItemVerdict(item=name, text=item_text(role, variable), verdict=Verdict.FAIL, reason="there is no response")
            for name, role, variable in items
        )
    aliases = aliases_of(truth)
    verdicts: dict[str, ItemVerdict] = {}
    for role in ROLES:
        wanted = [(name, variable) for name, own, variable in items if own == role]
        assigned = _assign(wanted, getattr(response.design, role), aliases)
        for name, variable in wanted:
            verdicts[name] = _verdict(name, role, variable, assigned.get(name), response.design, aliases)
    return tuple(verdicts[name] for name, _, _ in items)


def _assign(
    wanted: list[tuple[str, DesignVariable]], given: dict[str, tuple[str, ...]], aliases: dict[str, tuple[str, ...]]
) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Item id -> (given name, given values), one to one with the largest sum of scores; independent of any order."""
    left = sorted(wanted, key=lambda item: (item[1].name, item[1].values, item[0]))
    right = sorted(given.items())
    if not left or not right:
        return {}
    scores = np.array([[_fit(variable, name, values, aliases) for name, values in right] for _, variable in left])
    rows, columns = linear_sum_assignment(-scores)
    return {
        left[row][0]: right[column]
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True)
        if scores[row, column] >= _NAMED
    }


def _fit(variable: DesignVariable, name: str, values: tuple[str, ...], aliases: dict[str, tuple[str, ...]]) -> float:
    """Names decide; equal values break ties, and speak alone where the value is distinctive."""
    score = name_score(variable.name, name, aliases.get(variable.name, ()))
    agree = bool(variable.values) and bool(values) and not missing_values(variable.values, values)
    if agree and score < _NAMED and _distinctive(variable, values):
        score = max(score, _NAMED)
    return score + (0.2 if agree else 0.0)


def _distinctive(variable: DesignVariable, values: tuple[str, ...]) -> bool:
    """May the values alone tell the variable? One long number, or two and more values that are all there."""
    if len(variable.values) == 1:
        number = parse_number(variable.values[0])
        return number is not None and len(re.sub(r"[^\d.]", "", number.text)) >= _DISTINCTIVE and len(values) == 1
    return len(variable.values) >= 2


def _verdict(
    name: str,
    role: Role,
    variable: DesignVariable,
    assigned: tuple[str, tuple[str, ...]] | None,
    design: ResponseDesign,
    aliases: dict[str, tuple[str, ...]],
) -> ItemVerdict:
    text = item_text(role, variable)
    if assigned is None:
        return _unassigned(name, role, variable, design, aliases)
    given, values = assigned
    quote = given if not values else _stated(given, values)
    where = f"response.json: design.{role}"
    if role == "dependent":  # what is measured is a name; its unit and statistics are no values to set
        return ItemVerdict(
            item=name, text=text, verdict=Verdict.PASS, reason=f"named as `{given}`", quote=given, where=where
        )
    missing = missing_values(variable.values, (*values, given))
    if missing:
        return ItemVerdict(
            item=name,
            text=text,
            verdict=Verdict.FAIL,
            quote=quote,
            where=where,
            reason=f"named as `{given}`, but without the value(s) {shorten(', '.join(missing), 120)}",
        )
    return ItemVerdict(
        item=name,
        text=text,
        verdict=Verdict.PASS,
        reason=f"named as `{given}` with its value(s)",
        quote=quote,
        where=where,
    )


def _stated(given: str, values: tuple[str, ...]) -> str:
    """A quote that exists in the response: the value when it is one, else the name."""
    return values[0] if len(values) == 1 and len(values[0]) > 3 else given


def _unassigned(
    name: str, role: Role, variable: DesignVariable, design: ResponseDesign, aliases: dict[str, tuple[str, ...]]
) -> ItemVerdict:
    text = item_text(role, variable)
    if role == "constant" and len(variable.values) == 1 and (sentence := _in_procedure(variable, design, aliases)):
        return ItemVerdict(
            item=name,
            text=text,
            verdict=Verdict.PASS,
            reason="stated in the procedure",
            quote=shorten_exact(sentence),
            where="response.json: design.procedure",
        )
    for other in ROLES:
        for given in sorted(getattr(design, other)):
            if other != role and name_score(variable.name, given, aliases.get(variable.name, ())) >= _NAMED:
                return ItemVerdict(
                    item=name,
                    text=text,
                    verdict=Verdict.FAIL,
                    quote=given,
                    where=f"response.json: design.{other}",
                    reason=f"named as {other} variable `{given}`, not as {role} one",
                )
    return ItemVerdict(
        item=name, text=text, verdict=Verdict.FAIL, reason=f"no {role} variable of the response names it"
    )


def _in_procedure(variable: DesignVariable, design: ResponseDesign, aliases: dict[str, tuple[str, ...]]) -> str:
    """The sentence of the procedure that holds both the name and the value of a constant."""
    for sentence in re.split(r"(?<=[.;!?])\s+|\n", design.procedure):
        if value_in_text(variable.values[0], sentence) and any(
            name_score(known, sentence) >= _NAMED for known in (variable.name, *aliases.get(variable.name, ()))
        ):
            return sentence.strip()
    return ""


def shorten_exact(text: str, limit: int = 200) -> str:
    """The beginning of a text without an ellipsis, so that it exists in what it quotes."""
    return text[:limit]
