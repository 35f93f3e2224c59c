"""Drafts from evidence: one for each table of the paper whose numbers a run of the repository gives.

What was matched decides what is asked: which numbers are claims (those that came out), what they are called (as the
paper's header and the artefact's field do), what is compared (the labels of rows and columns). Nothing here guesses
what a sentence means: the method is the paper's own sentences in their order, those of whose words the code that ran
holds most; where labels do not say what is measured, the reviewer is asked one question.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from extractors._reading import Line, Reading, label_key, references_in
from extractors._roles import Roles, roles_of
from extractors._vocabulary import find_metric, is_metric_header
from extractors.answers import states_answer
from extractors.claims import normalize, printed_band
from extractors.drafting import unique_slugs
from extractors.keyless import DraftResult
from extractors.outcome import compose_expected, repeats_claims
from extractors.prose import join_names, slugify
from pipeline.locator.text import tokens
from pipeline.match.records import CellMatch, TableMatch
from pipeline.paper import Document, SectionKind, Table
from pipeline.schema import Problem, Severity
from pipeline.task import Condition, DesignVariable, Draft, Evidence, NumericClaim, TableEvidence

__all__ = ["Ran", "as_stated", "draft_matches"]

_COMPONENT: Final = "draft.matches"
_MAX_CLAIMS: Final = 100
"""What a reviewer can still read through: the largest result table of nine papers but two holds fewer."""
_METHOD_SENTENCES: Final = 8
_BORNE_OUT: Final = 0.5
"""Share of a sentence's information (in the paper's own word statistics) that stands in the code that ran."""
_FEWEST_WORDS: Final = 6
_LISTED: Final = 6


class Ran(NamedTuple):
    """A match with what is known of the run behind it."""

    match: TableMatch
    code: str
    """Text of the files that ran for it: names, docstrings, comments."""
    keys: Mapping[str, str]
    """Label of the paper -> name of the artefact's key that holds it (`method`), where one does."""
    fields: frozenset[str] = frozenset()
    """What the matched numbers are called in the artefact: columns, keys."""


def draft_matches(document: Document, ran: Sequence[Ran]) -> DraftResult:
    """One draft for each match, in the order of the paper.

    Args:
        document: the structured reading.
        ran: matches of its tables with runs, at most one a table.
    """
    reading = Reading(document)
    weights = _information(reading)
    problems: list[Problem] = []
    drafts = []
    for item in ran:
        table = document.tables[item.match.table]
        drafts.append(_draft(reading, table, item, weights, problems))
    return DraftResult(drafts=tuple(unique_slugs(drafts)), problems=tuple(problems))


def _draft(reading: Reading, table: Table, ran: Ran, weights: Mapping[str, float], problems: list[Problem]) -> Draft:
    where = f"{table.label} (page {table.page})"
    naming = _Naming(table, ran)
    claims = tuple(_claim(table, naming, cell, number) for number, cell in enumerate(ran.match.cells[:_MAX_CLAIMS], 1))
    _say_what_is_left_out(table, ran.match, where, problems)
    if naming.doubt:
        _say(problems, where, f"to check: {naming.doubt}", Severity.WARNING)
    said = [line for line in reading.lines if label_key(table.label) in references_in(line.text)]
    stated = [line for line in said if repeats_claims(line.text, claims)]
    expected = compose_expected(claims, [line.text for line in stated])
    probe = Draft(slug="probe", question="-", method="-", expected=expected, confidence=0)
    roles = roles_of(claims)
    metrics = tuple(dict.fromkeys(claim.metric for claim in claims))
    question = _question(table, metrics, roles, probe)
    steps = _borne_out(reading, ran.code, weights, probe)
    if not steps:
        _say(problems, where, "to check: no sentence of the paper is borne out by the code: say how it is done",
             Severity.WARNING)  # fmt: skip
    quoted: list[Evidence] = [reading.quote(line) for line in steps]
    result: list[Evidence] = [reading.caption_evidence(table)]
    return Draft(
        slug=_slug(table, metrics),
        question=question,
        method=" ".join(line.text for line in steps),
        agent_instructions=_instructions(metrics, roles),
        expected=expected,
        constant=tuple(DesignVariable(name=name, values=(value,)) for name, value in roles.fixed),
        independent=tuple(DesignVariable(name=axis.name, values=axis.values) for axis in roles.axes),
        dependent=tuple(DesignVariable(name=metric) for metric in metrics),
        evidence={
            "question": tuple(result),
            "method": tuple(quoted),
            "expected": (*result, *(reading.quote(line) for line in stated[:3])),
        },
        sections=tuple(dict.fromkeys(filter(None, (reading.section_title(line.block) for line in said)))),
        confidence=round(0.5 + 0.5 * len(ran.match.cells) / max(len(_stated_cells(table)), 1), 3),
    )


def _say(problems: list[Problem], where: str, message: str, severity: Severity = Severity.INFO) -> None:
    problems.append(Problem(component=_COMPONENT, where=where, message=message, severity=severity))


def as_stated(document: Document, match: TableMatch) -> TableMatch:
    """The match as claims: what cells state, without second numbers (deviations, ends of intervals).

    Of a match with several runs only the numbers of the run that gave most of them: one task has one command.

    Args:
        document: the structured reading.
        match: of one of its tables.
    """
    stated = _stated_cells(document.tables[match.table])

    def is_claim(cell: CellMatch) -> bool:
        own = match.origin == "committed" or cell.source == match.source
        return own and cell.part == 0 and (cell.row, cell.column) in stated

    return match.evolve(cells=tuple(filter(is_claim, match.cells)), missed=tuple(filter(is_claim, match.missed)))


def _stated_cells(table: Table) -> frozenset[tuple[int, int]]:
    return frozenset(
        (cell.row, cell.column)
        for cell in table.cells
        if cell.quantity is not None and cell.row >= table.header_rows and cell.column >= table.stub_columns
    )


def _say_what_is_left_out(table: Table, match: TableMatch, where: str, problems: list[Problem]) -> None:
    for cell in match.missed[:_LISTED]:
        shown = f"{cell.where} {cell.observed * cell.factor:.6g}"
        _say(problems, where, f"left out: row {cell.row}, column {cell.column} prints {cell.text}, {shown}")
    count = len(match.cells) + len(match.missed)
    total = len(_stated_cells(table))
    if total > count:
        _say(problems, where, f"left out: {total - count} more of its {total} numbers, which this run does not hold")
    if len(match.cells) > _MAX_CLAIMS:
        _say(problems, where, f"left out: {len(match.cells) - _MAX_CLAIMS} more numbers: a task holds {_MAX_CLAIMS}")


# --- what the numbers are called -------------------------------------------------------------------------------------


class _Naming:
    """Which labels of a matched table name the metric and which the conditions.

    A level of headers or labels whose names are mostly those of known measures is the metric's; else the measure that
    the caption names is that of all numbers; else the one field of the artefact that holds all of them. Where nothing
    of it holds, the reviewer is asked.
    """

    def __init__(self, table: Table, ran: Ran) -> None:
        self.table, self.keys = table, ran.keys
        self.doubt = ""
        cells = ran.match.cells
        self.level = next(
            (level for level in (*self._levels("column"), *self._levels("row")) if self._measures(level, cells)), None
        )
        told = find_metric(table.caption)
        fields = {_spoken(name) for name in ran.fields}
        self.metric = told[0][2] if told else fields.pop() if len(fields) == 1 else ""
        if self.level is None and not self.metric:
            self._ask(cells)

    def _levels(self, axis: str) -> list[tuple[str, int]]:
        return [
            (axis, level) for level in range(self.table.header_rows if axis == "column" else self.table.stub_columns)
        ]

    def _labels(self, cell: CellMatch, axis: str) -> tuple[str, ...]:
        found = self.table.column_headers(cell.column) if axis == "column" else self.table.row_labels(cell.row)
        return tuple(normalize(text) for text in found)

    def _measures(self, level: tuple[str, int], cells: Sequence[CellMatch]) -> bool:
        axis, depth = level
        names = {labels[depth] for cell in cells if len(labels := self._labels(cell, axis)) > depth}
        return 2 * sum(is_metric_header(name) or bool(find_metric(name)) for name in names) > len(names)

    def _ask(self, cells: Sequence[CellMatch]) -> None:
        """Take the columns for measures, and let the reviewer say whether they are."""
        depth = min((len(self._labels(cell, "column")) for cell in cells), default=0)
        if not depth:
            self.metric = "value"
            self.doubt = "what do its numbers measure? Neither its labels nor the caption say it"
            return
        self.level = ("column", depth - 1)
        names = list(dict.fromkeys(self._labels(cell, "column")[depth - 1] for cell in cells))
        if len(names) > 1:
            self.doubt = (
                f"are {join_names([repr(text) for text in names[:4]])} measures of their own, or conditions of one "
                "measure? Neither table nor caption says it"
            )

    def of(self, cell: CellMatch) -> tuple[str, tuple[Condition, ...]]:
        """Metric and conditions of a matched cell."""
        metric = self.metric or "value"
        pairs: list[tuple[str, str]] = []
        names = self._stub_names()
        for axis in ("row", "column"):
            for depth, text in enumerate(self._labels(cell, axis)):
                if self.level == (axis, depth):
                    metric = text
                    continue
                header = names[depth] if axis == "row" and depth < len(names) else ""
                pairs.append((header or self.keys.get(text, "") or ("row" if axis == "row" else "setting"), text))
        seen: Counter[str] = Counter()
        conditions = []
        for name, text in pairs:
            seen[name] += 1
            conditions.append(Condition(name=name if seen[name] == 1 else f"{name} {seen[name]}", value=text))
        return metric, tuple(conditions)

    def _stub_names(self) -> tuple[str, ...]:
        table = self.table
        rows = table.grid[: table.header_rows]
        return tuple(
            normalize(next((row[column] for row in reversed(rows) if column < len(row) and row[column].strip()), ""))
            for column in range(table.stub_columns)
        )


def _spoken(name: str) -> str:
    return name.replace("_", " ").strip()


def _claim(table: Table, naming: _Naming, cell: CellMatch, number: int) -> NumericClaim:
    metric, conditions = naming.of(cell)
    page, box = table.place_of(cell.row, cell.column)
    evidence = TableEvidence(
        label=table.label, page=page, box=box, row=cell.row, column=cell.column,
        quote=table.grid[cell.row][cell.column], row_labels=table.row_labels(cell.row),
        column_headers=table.column_headers(cell.column),
    )  # fmt: skip
    quantity = next((item.quantity for item in table.cells if (item.row, item.column) == (cell.row, cell.column)), None)
    return NumericClaim(
        id=f"c{number}", metric=metric, value=cell.value, text=normalize(cell.text), decimals=cell.decimals,
        unit=quantity.unit if quantity is not None else None, uncertainty=cell.uncertainty, conditions=conditions,
        band=printed_band(cell.value, 10.0**-cell.decimals), evidence=(evidence,), place=cell.place,
        factor=cell.factor,
    )  # fmt: skip


# --- words -----------------------------------------------------------------------------------------------------------


def _question(table: Table, metrics: Sequence[str], roles: Roles, probe: Draft) -> str:
    """What is compared, on what, by which measure, as the labels say; with the caption where it tells no result."""
    measured = _listed(metrics)
    axes = [axis for axis in roles.axes if axis.name != "statistic"]
    named = [axis for axis in axes if axis.kind != "number"]
    swept = [axis for axis in axes if axis.kind == "number"]
    over = "".join(f" as {axis.name} goes from {axis.values[0]} to {axis.values[-1]}" for axis in swept)
    if named:
        first, others = named[0], named[1:]
        across = "".join(f", for each of {_listed(axis.values)}" for axis in others)
        text = f"How do {_listed(first.values)} compare in {measured}{across}{over}?"
    elif swept:
        text = f"How does {measured} change{over}?"
    else:
        text = f"What is the {measured}?"
    caption = normalize(table.caption)
    context = f"{text} The experiment is the one of the paper's {table.label}: “{caption}”"
    return context if caption and not states_answer(context, probe) else text


def _listed(values: Sequence[str]) -> str:
    shown = list(dict.fromkeys(values))
    if len(shown) > _LISTED:
        return f"{', '.join(shown[:_LISTED])} and {len(shown) - _LISTED} more"
    return join_names(shown)


def _instructions(metrics: Sequence[str], roles: Roles) -> str:
    """The goal and the form of the answer; levels of numeric sweeps are design and left to the agent."""
    lines = ["Plan, implement and run the experiment that answers the question, then report what you measured."]
    lines += [f"- Compared: {axis.name} ({'; '.join(axis.values)})." for axis in roles.axes if axis.kind != "number"]
    lines.append(f"- Measured: {'; '.join(metrics)}.")
    lines.append("- Report one number for each metric and condition, with all the digits that were computed.")
    return "\n".join(lines)


def _slug(table: Table, metrics: Sequence[str]) -> str:
    slug = f"{slugify(table.label)[:30].strip('-')}-{slugify(metrics[0]) if metrics else ''}"
    return slug[:60].strip("-") or "experiment"


# --- method ----------------------------------------------------------------------------------------------------------


def _information(reading: Reading) -> dict[str, float]:
    """Bits that a word of this paper carries: the rarer among its sentences, the more."""
    counts: Counter[str] = Counter(word for line in reading.lines for word in set(tokens(line.text)))
    total = max(len(reading.lines), 1)
    return {word: math.log2((total + 1) / count) for word, count in counts.items()}


def _borne_out(reading: Reading, code: str, weights: Mapping[str, float], probe: Draft) -> list[Line]:
    """The sentences of the paper that the code bears out most, in reading order; none that tells a result."""
    spoken = set(tokens(code))
    scored: list[tuple[float, Line]] = []
    for line in reading.lines:
        words = set(tokens(line.text))
        section = reading.document.section_of(reading.document.passages[line.passage])
        if len(words) < _FEWEST_WORDS or reading.role(line) == "skip" or references_in(line.text):
            continue
        if section is not None and section.kind in (SectionKind.REFERENCES, SectionKind.ABSTRACT):
            continue
        held = _sum(weights, words & spoken)
        if held >= _BORNE_OUT * _sum(weights, words) and not states_answer(line.text, probe):
            scored.append((held, line))
    best = sorted(scored, key=lambda item: (-item[0], item[1].order))[:_METHOD_SENTENCES]
    return sorted((line for _, line in best), key=lambda line: line.order)


def _sum(weights: Mapping[str, float], words: Iterable[str]) -> float:
    return sum(weights.get(word, 0.0) for word in words)
