"""Question, expected outcome and instructions of a draft, composed from its plan.

Composed, not copied: a question names what was measured, on what, and what varied, and never the outcome; the expected
outcome gives ordering and numbers, and quotes the paper.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, Literal

from extractors.prose import capitalise, clean_name, join_names, lower_first, name_list, unmarked
from extractors.result_tables import Axis, Metric
from extractors.variables import Plan
from pipeline.task import NumericClaim

__all__ = [
    "agent_instructions",
    "closing_step",
    "comparisons",
    "compose_question",
    "expected_text",
    "metric_phrase",
    "ordered",
]

Comparison = tuple[str, Literal["<", ">", "="], str]
_MAX_COMPARISONS: Final = 40


def metric_phrase(metrics: Sequence[Metric], names: Mapping[str, str], limit: int = 4) -> str:
    """Metrics as a list in words, abbreviations spelt out where the paper does so."""
    shown: list[str] = []
    for metric in metrics:
        name = lower_first(names.get(metric.name, metric.name))
        parts = re.fullmatch(r"(.{6,}) \(([^()]+)\)", name)
        last = re.fullmatch(r"(.{6,}) \(([^()]+)\)", shown[-1]) if shown else None
        if parts and last and parts[1] == last[1]:
            shown[-1] = f"{parts[1]} ({last[2]}, {parts[2]})"
        elif name not in shown:
            shown.append(name)
    return name_list(shown, "metrics", limit)


def _plural(name: str) -> str:
    bare = clean_name(name)
    if bare.endswith("s") or re.search(r"\b\w$", bare):
        return bare if bare.endswith("s") else f"values of {bare}"
    return f"{bare[:-1]}ies" if re.search(r"[^aeiou]y$", bare) else f"{bare}s"


def _axis_phrase(axis: Axis) -> str:
    if axis.kind == "number" and len(axis.values) > 2:
        return f"{clean_name(axis.name)} ({axis.values[0]} to {axis.values[-1]})"
    noun = _plural(axis.name) if axis.name != "setting" else "settings"
    values = name_list([unmarked(value) for value in axis.values], noun, 3)
    if axis.kind == "dataset":
        return f"{noun} ({values})"
    return values if axis.name in ("setting", "group", "group of settings") else f"{clean_name(axis.name)} ({values})"


def _where(plan: Plan) -> str:
    """` on <data> at n = 50,000`, from the conditions that all claims share."""
    words = f" on {plan.data}" if plan.data else ""
    symbols = [
        f"{n} = {v}"
        for n, v in plan.fixed
        if re.fullmatch(r"[^\W\d_]{1,2}(?:max|min|\d)?", n) and re.match(r"[\d−-]", v)
    ]
    return f"{words} at {join_names(symbols)}" if symbols else words


def compose_question(plan: Plan, names: Mapping[str, str], topic: str) -> str:
    """Ask for the experiment's outcome in the way a person would.

    Args:
        plan: the experiment.
        names: metric -> how the paper spells it out.
        topic: what the experiment is about, for experiments that vary nothing the claims tell apart.
    """
    metrics = metric_phrase(plan.metrics, names)
    where = _where(plan)
    method = next((v for n, v in plan.fixed if n.lower() in _METHOD_NAMES), None)
    axes = [axis for axis in plan.axes if axis.name != "statistic"]
    if not axes:
        return _plain_question(plan, metrics, where, method, topic)
    first, others = axes[0], [axis for axis in axes[1:] if len(axis.values) > 1]
    others = [axis for axis in others if axis.name != "group"]
    tail = _tail(others)
    if first.kind == "number":
        subject = f"{metrics} of {method}" if method else metrics
        low, high = first.values[0], first.values[-1]
        verb = "do" if re.search(r" and ", metrics) else "does"
        across = tail.replace(" as ", " and as ", 1)
        return f"How {verb} {subject}{where} change as {clean_name(first.name)} varies from {low} to {high}{across}?"
    if first.kind == "dataset" and not re.match(r"train", first.name, re.IGNORECASE):
        values = name_list(first.values, _plural(first.name), 4)
        if method:
            return f"How well does {method} perform in terms of {metrics} on {values}{tail}?"
        return f"What {metrics} can be reached on {values}{tail}?"
    noun = "settings" if first.name in ("setting", "group", "group of settings") else _plural(first.name)
    values = name_list([unmarked(value) for value in first.values], noun, 4)
    generic = first.name.lower() in (*_METHOD_NAMES, "setting", "group", "group of settings")
    if generic:
        return f"How do {values} compare in {metrics}{where}{tail}?"
    return f"How does the choice of {clean_name(first.name)} ({values}) affect {metrics}{where}{tail}?"


def _tail(others: Sequence[Axis]) -> str:
    """What else varies: ` across <data sets> as <number> varies from .. to ..`."""
    named = [_axis_phrase(axis) for axis in others if axis.kind != "number"]
    numeric = [
        f"{clean_name(axis.name)} varies from {axis.values[0]} to {axis.values[-1]}"
        for axis in others if axis.kind == "number"
    ]  # fmt: skip
    across = f" across {join_names(named)}" if named else ""
    if len(others) > 1 and across:
        across = " across " + join_names([p if p.endswith(")") else f"settings ({p})" for p in named])
    return f"{across} as {join_names(numeric)}" if numeric else across


_METHOD_NAMES: Final = frozenset({
    "method", "methods", "model", "models", "approach", "algorithm", "estimator", "classifier", "system", "variant",
    "agent", "baseline", "learner", "optimizer", "strategy",
})  # fmt: skip


def _be(metrics: str) -> str:
    return "are" if " and " in metrics else "is"


def _plain_question(plan: Plan, metrics: str, where: str, method: str | None, topic: str) -> str:
    if any(axis.name == "statistic" for axis in plan.axes):
        sweep = next((f" over {n} ∈ {v}" for n, v in plan.fixed if v.startswith(("[", "{"))), "")
        return f"Over which range {'do' if ' and ' in metrics else 'does'} {metrics} vary{where}{sweep}{topic}?"
    sweeps = [f"{axis.name} ∈ {{{', '.join(axis.values)}}}" for axis in plan.sweeps if f"{axis.name} =" not in where]
    over = f" when varying {join_names(sweeps)}" if sweeps else ""
    if method:
        return f"What {metrics} does {method} reach{where}{over}{topic}?"
    return f"What {_be(metrics)} the {metrics} measured{where}{over}{topic}?"


# --- expected outcome ------------------------------------------------------------------------------------------------


def _value_of(claim: NumericClaim, axis: str) -> str | None:
    return next((c.value for c in claim.conditions if c.name == axis), None)


def _groups(plan: Plan, metric: Metric) -> dict[tuple[tuple[str, str], ...], list[NumericClaim]]:
    """The claims of a metric, grouped by the conditions other than the compared axis and its attributes."""
    first = plan.axes[0].name if plan.axes else ""
    aside = {first, *plan.attributes, *(name for name, _ in plan.fixed), "group"}
    groups: dict[tuple[tuple[str, str], ...], list[NumericClaim]] = {}
    for claim in plan.claims:
        if claim.metric == metric.name:
            key = tuple((c.name, c.value) for c in claim.conditions if c.name not in aside)
            groups.setdefault(key, []).append(claim)
    return groups


def _clearly(a: NumericClaim, b: NumericClaim) -> bool:
    """Do two claims differ by more than rounding and the stated uncertainties together?"""
    return a.band.low > b.band.high or b.band.low > a.band.high


def ordered(claims: Sequence[NumericClaim], direction: int) -> list[NumericClaim]:
    """Best first; where the metric does not say what is better, largest first. Ties keep the table's order."""
    return sorted(claims, key=lambda claim: -claim.value if direction >= 0 else claim.value)


def comparisons(plan: Plan) -> tuple[Comparison, ...]:
    """Relations that must hold among reproduced values.

    Along a numeric axis from step to step, else best against second best and against the worst. Differences within the
    stated precision are no claim and are left out.
    """
    found: list[Comparison] = []
    if not plan.axes or plan.axes[0].name == "statistic":
        return ()
    for metric in plan.metrics:
        for claims in _groups(plan, metric).values():
            if len({_value_of(claim, plan.axes[0].name) for claim in claims}) < 2:
                continue
            if plan.axes[0].kind == "number":
                pairs = list(pairwise(claims))
            else:
                ranked = ordered(claims, metric.direction)
                pairs = [(ranked[0], ranked[1])] + ([(ranked[0], ranked[-1])] if len(ranked) > 2 else [])
            for a, b in pairs:
                if _clearly(a, b):
                    found.append((a.id, ">" if a.value > b.value else "<", b.id))
    return tuple(found[:_MAX_COMPARISONS])


def _shown(claim: NumericClaim) -> str:
    unit = claim.unit or ""
    if unit and unit in claim.text:
        return claim.text
    if unit.startswith("10"):
        return f"{claim.text} × {unit}"
    return f"{claim.text}{unit}" if unit in ("%", "") else f"{claim.text} {unit}"


def expected_text(plan: Plan, statements: Sequence[str], names: Mapping[str, str]) -> str:
    """Ordering and key numbers per metric, then what the paper itself says.

    Args:
        plan: the experiment.
        statements: result sentences to quote.
        names: metric -> how the paper spells it out.
    """
    parts: list[str] = []
    for metric in plan.metrics[:8]:
        name = capitalise(names.get(metric.name, metric.name))
        groups = list(_groups(plan, metric).items())
        for key, claims in groups[:6]:
            under = f" ({join_names([f'{n} {v}' if len(n) > 2 else f'{n} = {v}' for n, v in key])})" if key else ""
            parts.append(f"{name}{under}: {_ranking(plan, metric, claims)}.")
        if len(groups) > 6:
            parts.append(f"{name} is also given for {len(groups) - 6} more conditions, see the claims.")
    if len(plan.metrics) > 8:
        parts.append(f"{len(plan.metrics) - 8} more metrics are given in the claims.")
    if statements:
        parts.append("The paper states: " + " ".join(f"“{text}”" for text in statements[:5]))
    return "\n".join(parts)


def _ranking(plan: Plan, metric: Metric, claims: list[NumericClaim]) -> str:
    first = plan.axes[0] if plan.axes else None
    if first is None or all(_value_of(claim, first.name) is None for claim in claims) or len(claims) == 1:
        return join_names([_shown(claim) for claim in claims])
    label = {claim.id: _value_of(claim, first.name) or "otherwise" for claim in claims}
    if first.name == "statistic":
        return join_names([f"{label[claim.id]} {_shown(claim)}" for claim in claims])
    if first.kind == "number":
        return ", ".join(f"{_shown(claim)} at {clean_name(first.name)} {label[claim.id]}" for claim in claims)
    ranked = ordered(claims, metric.direction)
    word = {1: "best", -1: "best (lowest)", 0: "largest"}[metric.direction]
    listed = [f"{label[claim.id]} with {_shown(claim)}" for claim in ranked]
    if len(listed) <= 6:
        return f"{word} is {', then '.join(listed)}"
    return f"{word} is {', then '.join(listed[:4])}; last is {listed[-1]}"


# --- instructions ----------------------------------------------------------------------------------------------------


def agent_instructions(plan: Plan, names: Mapping[str, str], settings: Sequence[tuple[str, str]]) -> str:
    """What to run and what to report, without saying what comes out.

    Args:
        plan: the experiment.
        names: metric -> how the paper spells it out.
        settings: (name, value) pairs that the paper fixes.
    """
    lines = ["Implement and run the experiment, then report the measured values."]
    if plan.data:
        lines.append(f"- Data: {plan.data}.")
    if plan.axes:
        first = plan.axes[0]
        values = [_with_attributes(plan, value, first.name) for value in first.values]
        lines.append(f"- Run each {clean_name(first.name)}: {'; '.join(values)}.")
    more = [axis for axis in (*plan.axes[1:], *plan.sweeps) if axis.name not in ("group", "statistic")]
    lines += [f"- Vary {clean_name(axis.name)}: {'; '.join(axis.values)}." for axis in more]
    fixed = [f"{clean_name(n)}: {v}" for n, v in plan.fixed if n not in ("data", "statistic")]
    fixed += [f"{n} = {v}" for n, v in settings]
    if fixed:
        lines.append(f"- Keep fixed: {'; '.join(fixed)}.")
    units = [
        f"{names.get(m.name, m.name)}{f' (in {m.unit})' if m.unit else ''}" for m in plan.metrics
    ]  # fmt: skip
    lines.append(f"- Measure: {'; '.join(dict.fromkeys(units))}.")
    lines.append("- Print each value beside its metric and its conditions, with all the digits that were computed.")
    return "\n".join(lines)


def closing_step(plan: Plan, names: Mapping[str, str]) -> str:
    """The last sentence of a method: what is run against what, and what is measured."""
    metrics = metric_phrase(plan.metrics, names, 8)
    axes = [axis for axis in plan.axes if axis.name not in ("group", "statistic")]
    runs = [
        f"{clean_name(axis.name)} ({'; '.join(_with_attributes(plan, v, axis.name) for v in axis.values)})"
        for axis in axes[:1]
    ]
    runs += [
        f"{clean_name(axis.name)} ({'; '.join(_with_attributes(plan, v, axis.name) for v in axis.values)})"
        for axis in (*axes[1:], *plan.sweeps)
    ]
    over = f" for each {join_names(runs)}" if runs else ""
    method = next((f" of {v}" for n, v in plan.fixed if n.lower() in _METHOD_NAMES), "")
    return f"Measure {metrics}{method}{_where(plan)}{over}."


def _with_attributes(plan: Plan, value: str, axis: str) -> str:
    extra = [
        f"{clean_name(n)} {m[value]}"
        for n, (of, m) in plan.attributes.items() if of == axis and m.get(value) and n != "group"
    ]  # fmt: skip
    value = unmarked(value)
    return f"{value} ({', '.join(extra)})" if extra else value
