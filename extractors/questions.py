"""Question, expected outcome and instructions of a draft, composed from its plan.

Composed, not copied: a question names what was measured, on what, and what varied, and never the outcome; the expected
outcome gives ordering and numbers, and quotes the paper.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from extractors.prose import (
    clean_name,
    join_names,
    lower_first,
    name_list,
    plain_number,
    plural,
    unmarked,
    with_article,
)
from extractors.result_tables import Axis, Metric
from extractors.variables import Plan
from pipeline.validation.numbers import parse_number

__all__ = [
    "METHOD_NAMES",
    "agent_instructions",
    "closing_step",
    "compose_question",
    "metric_phrase",
]


def metric_phrase(metrics: Sequence[Metric], names: Mapping[str, str], limit: int = 4) -> str:
    """Metrics as a list in words, abbreviations spelt out where the paper does so."""
    shown: list[str] = []
    for metric in metrics:
        name = lower_first(names.get(metric.name, metric.name))
        name = "accuracy" if re.fullmatch(r"acc\.?", name, re.IGNORECASE) else name
        parts = re.fullmatch(r"(.{6,}) \(([^()]+)\)", name)
        last = re.fullmatch(r"(.{6,}) \(([^()]+)\)", shown[-1]) if shown else None
        if parts and last and parts[1] == last[1]:
            shown[-1] = f"{parts[1]} ({last[2]}, {parts[2]})"
        elif name not in shown:
            shown.append(name)
    return name_list(shown, "metrics", limit)


def _ends(axis: Axis) -> tuple[str, str]:
    """Lowest and highest value of a numeric axis, whichever way the table lists them."""
    values = sorted(axis.values, key=lambda value: float(re.sub(r"[^\d.]", "", value.replace("−", "-")) or 0))
    if any(re.match(r"[−–-]", value) for value in axis.values):
        values = list(axis.values)  # signs: keep the table's order
    return plain_number(values[0]), plain_number(values[-1])


def _axis_phrase(plan: Plan, axis: Axis) -> str:
    """`problems (Moons and Rings)`, `symmetric and asymmetric noise`, `order m (0 to 5)`."""
    if axis.kind == "number" and len(axis.values) > 2:
        return f"{plan.name_of(axis.name)} ({' to '.join(_ends(axis))})"
    unnamed = axis.name in ("setting", "group", "condition")
    noun = "settings" if unnamed else plural(axis.name)
    kinds = [re.sub(rf"\s{re.escape(axis.name)}$", "", value, flags=re.IGNORECASE) for value in axis.values]
    if len(kinds) <= 4 and not unnamed and all(_KIND.fullmatch(kind) for kind in kinds):
        return f"{join_names([kind.lower() for kind in kinds])} {clean_name(axis.name)}"
    values = name_list([unmarked(value) for value in axis.values], noun, 3)
    whole = unnamed or axis.kind == "dataset" or re.fullmatch(r"[A-Za-z]{3,}(?: [a-z]{3,})?", axis.name)
    return f"{noun if whole else plan.name_of(axis.name)} ({values})"


_KIND: Final = re.compile(r"[A-Za-z]{3,}(?:ic|al|ed|ous|ive|ant|ent|ar)", re.IGNORECASE)
"""An adjective by its ending: `symmetric`, `additive`; the axis is then the noun that it belongs to."""


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
    method = next((unmarked(v) for n, v in plan.fixed if n.lower() in METHOD_NAMES), None)
    axes = [axis for axis in plan.axes if axis.name != "statistic"]
    if not axes:
        return _plain_question(plan, metrics, where, method, topic)
    first, others = axes[0], [axis for axis in axes[1:] if len(axis.values) > 1]
    tail = _tail(plan, others)
    if first.kind == "number":
        subject = f"{metrics} of {method}" if method else metrics
        low, high = _ends(first)
        verb = "do" if re.search(r" and ", metrics) else "does"
        across = tail.replace(" as ", " and as ", 1)
        what = with_article(plan.name_of(first.name))
        return f"How {verb} {subject}{where} change as {what} varies from {low} to {high}{across}?"
    if first.kind == "dataset" and not re.match(r"train", first.name, re.IGNORECASE):
        values = name_list(first.values, plural(first.name), 4)
        if method:
            return f"How well does {method} perform in terms of {metrics} on {values}{tail}?"
        return f"What {metrics}{_measured_of(plan)} can be reached on {values}{tail}?"
    noun = "settings" if first.name in ("setting", "group", "condition") else plural(first.name)
    values = name_list([unmarked(value) for value in first.values], noun, 4)
    generic = first.name.lower() in (*METHOD_NAMES, "setting", "group", "condition")
    if generic:
        return f"How do {values} compare in {metrics}{where}{tail}?"
    of = f" of {method}" if method else ""
    return f"How does the choice of {plan.name_of(first.name)} ({values}) affect {metrics}{of}{where}{tail}?"


def _measured_of(plan: Plan) -> str:
    """` of models trained on small clean datasets`, by the caption, where neither rows nor columns say what was run."""
    caption = re.sub(r"^\s*(?:TABLE|Table|Tab\.)\s*[\w.]+\s*[:.|–-]?\s*", "", plan.caption)
    match = re.match(
        r"[^.;:]{3,60}?\sof\s(?P<of>(?:the\s|our\s)?[a-z][^.;:()]{4,80}?)"
        r"(?=\s(?:in|of|from)\s(?:Alg|Sec|Eq|Tab|Fig|App)|\.(?:\s|$)|[;:(]|$)",
        caption,
    )
    return f" of {re.sub(r'^our', 'the', match['of'])}" if match else ""


def _tail(plan: Plan, others: Sequence[Axis]) -> str:
    """What else varies: ` across <data sets> as <number> varies from .. to ..`."""
    listed = [axis for axis in others if axis.kind != "number" or (axis.name == "setting" and len(axis.values) < 3)]
    named = [_axis_phrase(plan, axis) for axis in listed]
    numeric = [
        f"{with_article(plan.name_of(axis.name))} varies from {' to '.join(_ends(axis))}"
        for axis in others
        if axis not in listed
    ]
    across = f" across {join_names(named)}" if named else ""
    return f"{across} as {join_names(numeric)}" if numeric else across


METHOD_NAMES: Final = frozenset({
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


# --- instructions ----------------------------------------------------------------------------------------------------


def agent_instructions(plan: Plan, names: Mapping[str, str]) -> str:
    """The goal, the data and the form of the answer; the design is left to the agent.

    What is compared keeps its names, without which no answer could be compared. Levels of numeric sweeps, what is kept
    fixed and how often it is repeated are withheld: where they are spelt out, metric D measures copying.

    Args:
        plan: the experiment.
        names: metric -> how the paper spells it out.
    """
    lines = ["Plan, implement and run the experiment that answers the question, then report what you measured."]
    if plan.data:
        lines.append(f"- Data: {plan.data}.")
    lines += [f"- Compared: {plan.name_of(axis.name)} ({'; '.join(shown)})." for axis, shown in _compared(plan)]
    units = [
        f"{names.get(m.name, m.name)}{f' (in {m.unit})' if m.unit else ''}" for m in plan.metrics
    ]  # fmt: skip
    lines.append(f"- Measured: {'; '.join(dict.fromkeys(units))}.")
    lines.append("- Report one number for each metric and condition, with all the digits that were computed.")
    return "\n".join(lines)


def _compared(plan: Plan) -> list[tuple[Axis, list[str]]]:
    """Axes whose values are names, with these; an axis of numbers is a sweep whose levels are part of the design."""
    found = []
    for axis in (axis for axis in plan.axes if axis.name != "statistic"):
        shown = [unmarked(value) for value in axis.values]
        if any(parse_number(value) is None for value in shown):
            found.append((axis, shown))
    return found


def closing_step(plan: Plan, names: Mapping[str, str]) -> str:
    """The last sentence of a method: what is measured, and where."""
    method = next((f" of {unmarked(v)}" for n, v in plan.fixed if n.lower() in METHOD_NAMES), "")
    return f"Measure {metric_phrase(plan.metrics, names, 8)}{method}{_where(plan)}."
