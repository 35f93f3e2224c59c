"""Which planned experiments are worth a draft at all, and what about one a person should check first.

Refusing is the rule where the evidence is not enough: a doubtful draft costs its reviewer more than a missing one.
"""

from __future__ import annotations

import re
from statistics import median
from typing import Final

from extractors.prose import join_names
from extractors.questions import METHOD_NAMES
from extractors.result_tables import Axis
from extractors.takeaways import Experiment
from extractors.variables import Plan

__all__ = ["DOUBT", "doubts_of", "unfit_reason"]

DOUBT: Final = 0.05
"""What each thing to check takes off the confidence, by which reviewers' queues are ordered."""
_MAX_AXES: Final = 4
"""No experiment read so far varies more at once; a grid that seems to is one whose headers were misread."""


def doubts_of(experiment: Experiment, plan: Plan, method: int) -> list[str]:
    """What a reviewer should look at first, because the paper says it only indirectly or not at all.

    Args:
        experiment: the experiment.
        plan: its claims and variables.
        method: number of method sentences.
    """
    doubts = []
    if experiment.table is not None:
        table = experiment.table.table
        printed = " ".join([table.caption, *(text for row in table.grid for text in row)]).lower()
        unsaid = [
            m.name for m in plan.metrics if re.sub(r"(?:ies|y|s)$", "", m.name.lower().split()[-1]) not in printed
        ]
        if unsaid:
            doubts.append(f"the table does not name {join_names(unsaid)}; the text around it does")
        data = {name for name in (plan.data or "").split() if re.search(r"[A-Z]", name)}
        if data and not any(name.lower() in printed for name in data):
            doubts.append(f"that it runs on {plan.data} is taken from the paper's other tables")
        if not experiment.mentions:
            doubts.append("no sentence refers to its table")
    if plan.data is None and not any(axis.kind == "dataset" for axis in plan.axes):
        doubts.append("neither its table nor its caption names the data it runs on")
    if method == 1:
        doubts.append("its method is one sentence")
    return doubts


def unfit_reason(experiment: Experiment, plan: Plan) -> str | None:
    """Why the claims are no experiment that one can ask about; None when they are.

    Args:
        experiment: the experiment.
        plan: its claims and variables.
    """
    if not plan.claims:
        return "no claim of it has evidence that holds"
    misread = _misread(plan)
    if misread is not None:
        return misread
    return _unfit_sentences(plan) if experiment.table is None else None


def _misread(plan: Plan) -> str | None:
    """Signs that headers or columns were not understood, so that claims hold under other conditions than they say."""
    varied = [axis.name for axis in plan.axes if axis.name != "statistic"]
    garbled = [name for name in (*(axis.name for axis in plan.axes), *plan.attributes) if re.search(r"\d\.\d", name)]
    measured = [
        name for name, (_, of) in plan.attributes.items() if _is_unordered(Axis(name, tuple(of.values()), "number"))
    ]
    first = plan.axes[0] if plan.axes else None
    signs = (
        (len(varied) > _MAX_AXES, f"{len(varied)} things vary at once in it; its headers were not understood"),
        (first is not None and len(first.values) < 2, f"only one {first.name if first else ''} is left to compare"),
        (_other_measures(plan), "its columns differ a thousandfold: they cannot hold one measure"),
        (bool(garbled), f"a header holds a number ({join_names(garbled[:1])}): its grid was not understood"),
        (len(measured) > 1, f"columns that seem measured name no metric ({join_names(measured[:3])})"),
        (
            first is not None and _is_unordered(first),
            f"the values of {first.name if first else ''} come in no order: that column seems measured, not varied",
        ),
    )
    return next((reason for sign, reason in signs if sign), None)


def _unfit_sentences(plan: Plan) -> str | None:
    """Why numbers that only sentences give are no experiment; None when they are."""
    if not (plan.axes or plan.fixed or plan.data or plan.sweeps):
        return "its sentences do not say under which conditions the numbers hold"
    if len(plan.claims) == 1 and not _names_subject(plan):
        return "its one number stands in a sentence that does not say of what it holds"
    if len(plan.claims) == 2 and [axis.name for axis in plan.axes] == ["statistic"] and not plan.sweeps:
        return "its sentence gives the ends of a range, not what lies at them"
    return None


def _other_measures(plan: Plan) -> bool:
    """Are what looks like methods other measures (`Tokens`, `Mean MI`)? No method is a thousand times another one."""
    first = plan.axes[0] if plan.axes else None
    if first is None or first.kind != "method":
        return False
    for metric in {claim.metric for claim in plan.claims}:
        values: dict[str, list[float]] = {}
        for claim in plan.claims:
            label = next((c.value for c in claim.conditions if c.name == first.name), None)
            if claim.metric == metric and label is not None and claim.value:
                values.setdefault(label, []).append(abs(claim.value))
        sizes = [median(of) for of in values.values()]
        if len(sizes) > 1 and max(sizes) > 1000 * min(sizes):
            return True
    return False


def _is_unordered(axis: Axis) -> bool:
    """Are the values of a numeric variable decimals in no order? What is varied is listed rising or falling."""
    if axis.kind != "number" or len(axis.values) < 3 or not any("." in value for value in axis.values):
        return False
    numbers = [float(m[0]) for value in axis.values if (m := re.match(r"-?\d+(?:\.\d+)?", value.replace("−", "-")))]
    if 2 * len(numbers) < len(axis.values):
        return False
    return numbers not in (sorted(numbers), sorted(numbers, reverse=True))


def _names_subject(plan: Plan) -> bool:
    """Does a condition say what reached the number, and not only where?"""
    return any(name.lower() in METHOD_NAMES for name, _ in plan.fixed)
