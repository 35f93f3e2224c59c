"""From an experiment's reported numbers to claims and design variables.

Independent is what varies between the claims, constant what all of them share, dependent what was measured (EXP-Bench
3.1). A condition that merely goes along with another one (the alphabet size of each method) is an attribute, not a
variable of its own.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from extractors._reading import Reading
from extractors._roles import roles_of
from extractors._vocabulary import direction_of
from extractors.claims import normalize, printed_band, symbols_in
from extractors.prose import spoken
from extractors.result_tables import Axis, Metric, ResultCell
from extractors.takeaways import Experiment
from pipeline.schema import Problem, Severity
from pipeline.task import Condition, DesignVariable, Evidence, NumericClaim, TableEvidence

__all__ = ["MAX_CLAIMS", "Plan", "design_variables", "plan_experiment"]

# What a reviewer can still read through. Of the 22 result tables of nine papers read here two hold more numbers (108
# and 264); a limit of 40 cut four of them, among these main tables of 48 and 60 numbers by one whole problem or metric.
MAX_CLAIMS: Final = 100


@dataclass
class Plan:
    """An experiment's claims with their conditions sorted into roles."""

    experiment: Experiment
    claims: tuple[NumericClaim, ...]
    metrics: tuple[Metric, ...]
    axes: tuple[Axis, ...]
    """Independent variables, the compared one first."""
    attributes: dict[str, tuple[str, dict[str, str]]]
    """Condition -> (the axis it goes along with, its value for each value of that axis)."""
    fixed: tuple[tuple[str, str], ...]
    data: str | None = None
    sweeps: tuple[Axis, ...] = field(default=())
    """Symbols that the text says were varied (`n ∈ {5,000; 20,000}`), when the claims do not resolve them."""
    shown: dict[str, str] = field(default_factory=dict)
    """Axis -> how it reads in a sentence, where its header is a bare symbol and the caption says what it stands for."""

    @property
    def caption(self) -> str:
        """The caption of the experiment's table; empty where it has none."""
        return self.experiment.table.table.caption if self.experiment.table is not None else ""

    def name_of(self, axis: str) -> str:
        """An axis as it reads in a sentence."""
        return self.shown.get(axis) or spoken(axis)


def plan_experiment(reading: Reading, experiment: Experiment, problems: list[Problem]) -> Plan:
    """Make an experiment's claims and sort their conditions.

    Args:
        reading: the paper.
        experiment: what the first pass stitched together.
        problems: receives what was left out and why.
    """
    if experiment.table is not None:
        cells = _preferred(experiment, problems)
        claims = tuple(_cell_claim(experiment, cell, f"c{i}") for i, cell in enumerate(cells, 1))
        metrics = tuple(dict.fromkeys(cell.metric for cell in cells))
    else:
        claims = tuple(_sentence_claim(reading, experiment, i) for i in range(len(experiment.claims)))
        metrics = tuple(dict.fromkeys(Metric(c.metric, c.unit, direction_of(c.metric)) for c in claims))
    kept = tuple(claim for claim in claims if _verified(reading, claim, problems))
    roles = roles_of(kept)
    attributes = {name: of for name, of in roles.attributes.items() if not _counts_the_result(kept, name)}
    plan = Plan(experiment, kept, metrics, roles.axes, attributes, roles.fixed)
    if experiment.table is None:
        plan.sweeps = _sweeps(reading, experiment, plan)
    return plan


def _counts_the_result(claims: Sequence[NumericClaim], name: str) -> bool:
    """Is a condition the result in other words: `46 flips` of 270 beside a flip rate of 17.0 %?

    Then its numbers stand to those of one metric in one ratio, as far as they are printed (rounding: 3 %).
    """
    ratios: dict[str, dict[str, float]] = {}
    for claim in claims:
        value = next((c.value for c in claim.conditions if c.name == name), "")
        if re.fullmatch(r"\d[\d,]*(?:\.\d+)?", value) and claim.value:
            ratios.setdefault(claim.metric, {})[value] = float(value.replace(",", "")) / abs(claim.value)
    return any(len(of) > 2 and min(of.values()) > 0.97 * max(of.values()) > 0 for of in ratios.values())


def _cell_claim(experiment: Experiment, cell: ResultCell, name: str) -> NumericClaim:
    assert experiment.table is not None
    table, quantity = experiment.table.table, cell.quantity
    page, box = table.place_of(cell.row, cell.column)
    evidence = TableEvidence(
        label=table.label, page=page, box=box, row=cell.row, column=cell.column, quote=cell.text,
        row_labels=table.row_labels(cell.row), column_headers=table.column_headers(cell.column),
    )  # fmt: skip
    return NumericClaim(
        id=name, metric=cell.metric.name, value=quantity.value, text=normalize(quantity.text),
        decimals=quantity.decimals,
        unit=quantity.unit, uncertainty=quantity.uncertainty,
        conditions=tuple(Condition(name=n, value=v) for n, v in cell.conditions),
        band=printed_band(quantity.value, 10.0**-quantity.decimals, quantity.uncertainty), evidence=(evidence,),
    )  # fmt: skip


def _sentence_claim(reading: Reading, experiment: Experiment, position: int) -> NumericClaim:
    item = experiment.claims[position]
    number = item.claim.number
    decimals = max(0, round(-math.log10(number.step)))
    return NumericClaim(
        id=f"c{position + 1}", metric=item.claim.metric, value=number.value, text=number.text, decimals=decimals,
        unit=number.unit, uncertainty=number.uncertainty,
        conditions=tuple(Condition(name=n, value=v) for n, v in item.conditions),
        band=printed_band(number.value, number.step, number.uncertainty), evidence=(reading.quote(item.line),),
    )  # fmt: skip


def _verified(reading: Reading, claim: NumericClaim, problems: list[Problem]) -> bool:
    """Every quote must stand where it is said to, and the number in its quote."""
    for evidence in claim.evidence:
        quote = normalize(getattr(evidence, "quote", ""))
        if not reading.supports(evidence) or normalize(claim.text) not in quote:
            message = f"claim {claim.metric} = {claim.text} refused: its evidence does not hold the number"
            problems.append(
                Problem(component="extract.claims", where=f"page {getattr(evidence, 'page', '?')}", message=message,
                        severity=Severity.WARNING)
            )  # fmt: skip
            return False
    return True


def _preferred(experiment: Experiment, problems: list[Problem]) -> tuple[ResultCell, ...]:
    """All result cells, or of a large table those that the text speaks about.

    Whole lines are kept, so that what is compared stays comparable: whole columns where at least two of them fit, else
    one metric with as many of its rows as fit.
    """
    assert experiment.table is not None
    cells = experiment.table.cells
    if len(cells) <= MAX_CLAIMS:
        return cells
    said = " ".join(line.text for line in [*experiment.statements, *experiment.mentions, *experiment.headlines]).lower()
    scores = [_mentioned(cell, said) for cell in cells]
    by_column = Counter(cell.column for cell in cells)
    by_metric = Counter(cell.metric.name for cell in cells)
    if len(by_metric) > 1 and min(by_metric.values()) <= MAX_CLAIMS:
        order = list(by_metric)  # whole metrics: so no compared method or data set is lost
        chosen = _whole_lines([order.index(cell.metric.name) for cell in cells], scores)
    elif max(by_column.values()) * 2 <= MAX_CLAIMS:
        chosen = _whole_lines([cell.column for cell in cells], scores)
    else:
        metrics = [cell.metric.name for cell in cells]
        best = min(dict.fromkeys(metrics), key=lambda name: (-_mean(scores, metrics, name), metrics.index(name)))
        rows = [cell.row if cell.metric.name == best else -1 for cell in cells]
        chosen = _whole_lines(rows, scores)
    left = len(cells) - len(chosen)
    message = (
        f"{left} of its {len(cells)} numbers left out: a task holds at most {MAX_CLAIMS} claims, those that the text "
        "speaks about first"
    )
    where = f"{experiment.label} (page {experiment.table.table.page})"
    problems.append(Problem(component="extract.claims", where=where, message=message, severity=Severity.INFO))
    return tuple(cells[index] for index in chosen)


def _mentioned(cell: ResultCell, said: str) -> float:
    """How much the text speaks of a cell: its number weighs most, then its metric and its conditions."""
    number = f"{cell.quantity.value:.{cell.quantity.decimals}f}"
    score = 3.0 * (cell.quantity.decimals > 0 and number in said) + 1.0 * (cell.metric.name.lower() in said)
    return score + sum(value.lower() in said for _, value in cell.conditions if len(value) > 2) + 0.5 * cell.bold


def _mean(scores: Sequence[float], groups: Sequence[object], group: object) -> float:
    own = [score for score, member in zip(scores, groups, strict=True) if member == group]
    return sum(own) / len(own)


def _whole_lines(lines: Sequence[int], scores: Sequence[float]) -> list[int]:
    """Positions of the cells of the best lines that fit into `MAX_CLAIMS` together; line -1 is out."""
    kept: set[int] = set()
    room = MAX_CLAIMS
    for line in sorted(set(lines) - {-1}, key=lambda line: (-_mean(scores, lines, line), line)):
        size = sum(member == line for member in lines)
        if size <= room:
            kept.add(line)
            room -= size
    return [index for index, line in enumerate(lines) if line in kept] or list(range(MAX_CLAIMS))


def _sweeps(reading: Reading, experiment: Experiment, plan: Plan) -> tuple[Axis, ...]:
    """Sets such as `α ∈ {2, 4, 8}` in the experiment's own blocks."""
    known = {axis.name for axis in plan.axes} | {name for name, _ in plan.fixed}
    found: dict[str, Axis] = {}
    sections = {reading.blocks[block].section for block in experiment.blocks}
    stated = {line.order for line in experiment.statements}
    for line in reading.lines:
        if reading.blocks[line.block].section not in sections or line.order in stated:
            continue
        for name, value, _, _ in symbols_in(line.text):
            separator = ";" if ";" in value else ","
            members = tuple(part.strip() for part in value.strip("{}").split(separator) if part.strip())
            indexed = len(name) > 1 and name[-1] in "ijk"
            swept = value.startswith("{") and name not in known and len(members) > 1 and not indexed
            if swept and len(members) > len(found[name].values if name in found else ()):
                found[name] = Axis(name, members, "number")
    return tuple(found.values())


def design_variables(
    plan: Plan, settings: Sequence[tuple[str, str, tuple[Evidence, ...]]]
) -> dict[str, tuple[DesignVariable, ...]]:
    """The plan's design: `constant`, `independent` and `dependent` variables.

    Args:
        plan: the experiment.
        settings: (name, value, evidence) of the settings that the third pass found.
    """
    varying = {axis.name.lower() for axis in (*plan.axes, *plan.sweeps)} | {name.lower() for name in plan.attributes}
    constant = [DesignVariable(name=name, values=(value,)) for name, value in plan.fixed]
    if plan.data and not any(re.match(r"data", v.name, re.IGNORECASE) for v in constant):
        constant.insert(0, DesignVariable(name="data", values=(plan.data,)))
    names = {variable.name.lower() for variable in constant}
    for name, value, _ in settings:
        if name.lower() not in varying and name.lower() not in names:
            names.add(name.lower())
            constant.append(DesignVariable(name=name, values=(value,)))
    independent = [DesignVariable(name=axis.name, values=axis.values) for axis in (*plan.axes, *plan.sweeps)]
    units: dict[str, str | None] = {}
    for metric in plan.metrics:  # `980` and `1.7K` are of one metric
        units[metric.name] = units.get(metric.name) or metric.unit
    dependent = [DesignVariable(name=name, values=(unit,) if unit else ()) for name, unit in units.items()]
    return {"constant": tuple(constant), "independent": tuple(independent), "dependent": tuple(dependent)}
