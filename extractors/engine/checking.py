"""From what a model said of a task to what the paper supports of it: every quote found, every number in its span.

What is not found is dropped with a problem that says where and why; nothing is repaired and nothing is kept on trust.
Numbers of tables are read from the grid, never from the answer: the answer says which cells, and proves with two
printed values that it counted rows and columns right.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from extractors.claims import Number, bound_or_range, find_numbers, normalize, parse_cell, printed_band
from extractors.drafting import MAX_CLAIMS
from extractors.engine.cells import unit_of, with_labels
from extractors.engine.evidence import Paper, Span, compact, contains, number_in, words_of
from extractors.engine.said import (
    SaidCells,
    SaidClaim,
    SaidCondition,
    SaidSetting,
    SaidStep,
    SaidTask,
    SaidVariable,
)
from pipeline.paper import Table
from pipeline.schema import Problem, Severity
from pipeline.task import Condition, DesignVariable, Evidence, Hyperparameter, NumericClaim, TableEvidence

__all__ = ["CheckedTask", "Checker", "Step", "Supported"]

_COMPONENT: Final = "extract.model.evidence"
_GENERIC: Final = frozenset(
    {"method", "model", "dataset", "data", "set", "setting", "variant", "group", "task", "metric"}
)


@dataclass(frozen=True)
class Step:
    """An instruction with the sentences that say so."""

    text: str
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class Supported:
    """A design variable with the spans that name it."""

    variable: DesignVariable
    evidence: tuple[Evidence, ...]


@dataclass
class CheckedTask:
    """What is left of a candidate task."""

    title: str
    question: str
    section: str
    """Title of the subsection it was drafted from."""
    where: str
    """Section and page, for problems."""
    takeaways: tuple[str, ...] = ()
    claims: list[NumericClaim] = field(default_factory=list)
    statements: list[Span] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    constant: list[Supported] = field(default_factory=list)
    independent: list[Supported] = field(default_factory=list)
    dependent: list[Supported] = field(default_factory=list)
    settings: list[Hyperparameter] = field(default_factory=list)
    dropped: int = 0
    """Things said about it that the paper does not support."""

    @property
    def claim_keys(self) -> frozenset[tuple[object, ...]]:
        """What the claims rest on: cells, or sentences with a number."""
        return frozenset(_key(claim) for claim in self.claims)

    @property
    def kept(self) -> int:
        """Things said about it that the paper supports."""
        variables = len(self.constant) + len(self.independent) + len(self.dependent)
        return len(self.claims) + len(self.statements) + len(self.steps) + variables + len(self.settings)


def _key(claim: NumericClaim) -> tuple[object, ...]:
    evidence = claim.evidence[0]
    if isinstance(evidence, TableEvidence):
        return ("cell", evidence.label, evidence.page, evidence.row, evidence.column)
    return ("text", getattr(evidence, "quote", ""), claim.text)


@dataclass
class Checker:
    """Checks what was said about one task.

    Args:
        paper: where everything is looked up.
        near: ids of the passages to prefer when words stand in several places.
        where: section and page, for problems.
        problems: receives what was dropped and why.
    """

    paper: Paper
    near: frozenset[str]
    where: str
    problems: list[Problem]
    dropped: int = 0

    def task(self, said: SaidTask, section: str) -> CheckedTask:
        """Everything of a candidate that the paper supports."""
        task = CheckedTask(title=said.title, question=said.question.strip(), section=section, where=self.where)
        task.takeaways = said.takeaways
        task.claims = self.claims(said)
        task.statements = self.statements(said.results)
        task.steps = self.steps(said.method)
        task.constant = self.variables(said.constant)
        task.independent = self.variables(said.independent)
        task.dependent = self.variables(said.dependent)
        task.settings = self.settings(said.settings)
        task.dropped = self.dropped
        return task

    def _drop(self, message: str, severity: Severity = Severity.WARNING) -> None:
        self.dropped += 1
        self.problems.append(Problem(component=_COMPONENT, where=self.where, message=message, severity=severity))

    def _spans(self, quote: str | None, of: str) -> tuple[Span, ...]:
        spans = self.paper.find(quote, near=self.near) if quote else ()
        if not spans:
            why = f"its quote is not in the paper: `{_short(quote)}`" if quote else "no quote supports it"
            self._drop(f"{of} dropped: {why}")
        return spans

    # --- claims ---

    def claims(self, said: SaidTask) -> list[NumericClaim]:
        """Cells first, then sentences; each place once."""
        found: list[NumericClaim] = []
        for cells in said.cells:
            found += self._block(cells)
        for item in said.claims:
            claim = self._cell_claim(item) if item.table is not None else self._sentence_claim(item)
            found += [claim] if claim is not None else []
        unique: dict[tuple[object, ...], NumericClaim] = {}
        for claim in found:
            unique.setdefault(_key(claim), claim)
        kept = list(unique.values())[:MAX_CLAIMS]
        if len(unique) > MAX_CLAIMS:
            message = f"{len(unique) - MAX_CLAIMS} claims left out: a task holds at most {MAX_CLAIMS}"
            self.problems.append(
                Problem(component=_COMPONENT, where=self.where, message=message, severity=Severity.INFO)
            )
        return [claim.evolve(id=f"c{number}") for number, claim in enumerate(kept, 1)]

    def _table(self, label: str, of: str) -> Table | None:
        table = self.paper.table(label)
        if table is None:
            self._drop(f"{of} dropped: the paper has no table that was read as `{label}`")
        return table

    def _block(self, said: SaidCells) -> list[NumericClaim]:
        of = f"cells of {said.table} ({said.metric})"
        table = self._table(said.table, of)
        if table is None or not said.rows or not said.columns or not self._is_metric(said.metric, of):
            return []
        corners = (
            (said.rows[0], said.columns[0], said.first_value),
            (said.rows[-1], said.columns[-1], said.last_value),
        )
        for row, column, value in corners:
            cell = self.paper.cell(table, row, column)
            if cell is None or not _prints(cell.quote, value):
                there = f"holds `{cell.quote}`" if cell else "is empty or does not exist"
                self._drop(f"{of} dropped: row {row}, column {column} {there}, not `{_short(value)}`")
                return []
        names = (said.row_conditions, said.column_conditions)
        cells = [(row, column) for row in dict.fromkeys(said.rows) for column in dict.fromkeys(said.columns)]

        def made(all_labels: bool) -> list[NumericClaim]:
            found = (self._from_cell(table, *c, said.metric, said.conditions, names, all_labels) for c in cells)
            return [claim for claim in found if claim is not None]

        dropped, told = self.dropped, len(self.problems)
        claims = made(False)
        if len({claim.conditions for claim in claims}) == len(claims):
            return claims
        # what the answer calls no condition tells claims apart after all: they get every label
        self.dropped = dropped
        del self.problems[told:]
        return made(True)

    def _cell_claim(self, said: SaidClaim) -> NumericClaim | None:
        of = f"claim {said.metric} = {said.value}"
        table = self._table(said.table or "", of)
        if table is None or not self._is_metric(said.metric, of):
            return None
        cell = None if said.row is None or said.column is None else self.paper.cell(table, said.row, said.column)
        if cell is None or not _prints(cell.quote, said.value):
            there = f"holds `{cell.quote}`" if cell else "does not exist"
            self._drop(f"{of} dropped: row {said.row}, column {said.column} of {table.label} {there}")
            return None
        assert said.row is not None
        assert said.column is not None
        return self._from_cell(table, said.row, said.column, said.metric, said.conditions, ((), ()), True)

    def _from_cell(
        self, table: Table, row: int, column: int, metric: str, conditions: Sequence[SaidCondition],
        names: tuple[Sequence[str], Sequence[str]], all_labels: bool,
    ) -> NumericClaim | None:  # fmt: skip
        cell = self.paper.cell(table, row, column)
        where = f"row {row}, column {column} of {table.label}"
        quantity = parse_cell(cell.quote) if cell is not None else None
        if cell is None or quantity is None or row < table.header_rows:
            self._drop(f"{where} dropped: it holds no single result number")
            return None
        unit = quantity.unit or unit_of(table, cell, metric)
        local = " ".join([table.caption, *cell.row_labels, *cell.column_headers])
        kept = self._conditions(conditions, local, f"{metric} in {where}")
        kept = with_labels(kept, table, (row, column), metric, names, all_labels)
        return NumericClaim(
            id="c0", metric=metric, value=quantity.value, text=normalize(quantity.text), decimals=quantity.decimals,
            unit=unit, uncertainty=quantity.uncertainty, conditions=kept,
            band=printed_band(quantity.value, 10.0**-quantity.decimals, quantity.uncertainty), evidence=(cell,),
        )  # fmt: skip

    def _sentence_claim(self, said: SaidClaim) -> NumericClaim | None:
        of = f"claim {said.metric} = {said.value}"
        spans = self._spans(said.quote, of)
        if not spans or not self._is_metric(said.metric, of):
            return None
        matches = [(span, number) for span in spans if (number := number_in(span.text, said.value)) is not None]
        if not matches:
            self._drop(f"{of} dropped: its quote does not hold this number: `{_short(spans[0].text)}`")
            return None
        span, number = matches[0]
        why = bound_or_range(number)
        if why is not None:
            self._drop(f"{of} dropped: the paper gives {why}")
            return None
        return _claim_of(said, number, span, self._conditions(said.conditions, span.text, of))

    def _is_metric(self, metric: str, of: str) -> bool:
        if metric.strip() and self.paper.knows(metric):
            return True
        self._drop(f"{of} dropped: the paper does not use the words of its metric `{_short(metric)}`")
        return False

    def _conditions(self, said: Iterable[SaidCondition], local: str, of: str) -> tuple[Condition, ...]:
        kept: dict[str, Condition] = {}
        for item in said:
            name, value = item.name.strip(), item.value.strip()
            if not value or not (contains(local, value) or self.paper.knows(value)):
                self._drop(f"condition {_short(name)} = `{_short(value)}` of {of} dropped: it is not in the paper")
                continue
            name = name if name and (words_of(name) <= _GENERIC or self.paper.knows(name)) else "setting"
            while name.lower() in kept:
                name += " (2)"
            kept[name.lower()] = Condition(name=name, value=value)
        return tuple(kept.values())

    # --- words ---

    def statements(self, quotes: Iterable[str]) -> list[Span]:
        """Result sentences, each once."""
        found: dict[str, Span] = {}
        for quote in quotes:
            for span in self._spans(quote, "result sentence"):
                found.setdefault(compact(span.text)[0], span)
        return list(found.values())

    def steps(self, said: Iterable[SaidStep]) -> list[Step]:
        """Instructions whose sentence stands in the paper and holds each of their numbers."""
        found = []
        for item in said:
            text = " ".join(item.text.split())
            spans = self._spans(item.quote, f"step `{_short(text)}`")
            if not spans or not text:
                continue
            missing = [n.text for n in find_numbers(text) if not any(contains(span.text, n.text) for span in spans)]
            if missing:
                self._drop(f"step `{_short(text)}` dropped: its quote does not hold {', '.join(missing)}")
                continue
            foreign = self.paper.foreign_names(text)
            if foreign:
                self._drop(f"step `{_short(text)}` dropped: the paper does not speak of {', '.join(foreign)}")
                continue
            found.append(Step(text, spans))
        return found

    def variables(self, said: Iterable[SaidVariable]) -> list[Supported]:
        """Variables whose values stand in their quote or table; values that do not are left out."""
        found = []
        for item in said:
            of = f"variable `{_short(item.name)}`"
            if item.table is not None:
                table = self._table(item.table, of)
                if table is None:
                    continue
                texts = [table.caption, *(cell for row in table.grid for cell in row)]
                evidence: tuple[Evidence, ...] = (self.paper.reading.caption_evidence(table),)
            else:
                spans = self._spans(item.quote, of)
                texts = [span.text for span in spans]
                evidence = tuple(span.evidence() for span in spans)
                if not spans:
                    continue
            kept = tuple(value.strip() for value in item.values if any(contains(text, value) for text in texts))
            lost = [value for value in item.values if value.strip() not in kept]
            if lost:
                self._drop(f"value(s) {', '.join(f'`{_short(v)}`' for v in lost)} of {of} dropped: not where it points")
            named = self.paper.knows(item.name) or words_of(item.name) <= _GENERIC
            if not named or (item.values and not kept):
                self._drop(f"{of} dropped: " + ("none of its values is there" if named else "not the paper's words"))
                continue
            variable = DesignVariable(name=item.name.strip(), values=tuple(dict.fromkeys(kept)))
            found.append(Supported(variable, evidence))
        return found

    def settings(self, said: Iterable[SaidSetting]) -> list[Hyperparameter]:
        """Hyper-parameters whose value stands in the quote, or in a cell that a label of the same name leads to."""
        found: dict[str, Hyperparameter] = {}
        for item in said:
            name, value = item.name.strip(), item.value.strip()
            of = f"setting {_short(name)} = {_short(value)}"
            evidence: tuple[Evidence, ...] = ()
            if item.table is not None:
                table = self._table(item.table, of)
                cell = self._setting_cell(table, name, value) if table is not None else None
                if table is not None and cell is None:
                    self._drop(f"{of} dropped: no cell of {table.label} gives it this value")
                evidence = (cell,) if cell is not None else ()
            else:
                spans = self._spans(item.quote, of)
                holding = [s for s in spans if contains(s.text, value) and words_of(name) & words_of(s.text)]
                if spans and not holding:
                    self._drop(f"{of} dropped: its quote does not give it this value")
                evidence = tuple(span.evidence() for span in holding)
            if evidence:
                found.setdefault(
                    name.lower(), Hyperparameter(name=name, value=value, source="paper", evidence=evidence)
                )
        return list(found.values())

    def _setting_cell(self, table: Table, name: str, value: str) -> TableEvidence | None:
        for row, cells in enumerate(table.grid):
            for column, text in enumerate(cells):
                cell = self.paper.cell(table, row, column) if _prints(text, value) else None
                if cell is not None:
                    labels = " ".join([*cell.row_labels, *cell.column_headers, *cells[:column]])
                    if words_of(name) & words_of(labels):
                        return cell
        return None


def _claim_of(said: SaidClaim, number: Number, span: Span, conditions: tuple[Condition, ...]) -> NumericClaim:
    return NumericClaim(
        id="c0", metric=said.metric.strip(), value=number.value, text=number.text,
        decimals=max(0, round(-math.log10(number.step))), unit=number.unit, uncertainty=number.uncertainty,
        conditions=conditions, band=printed_band(number.value, number.step, number.uncertainty),
        evidence=(span.evidence(),),
    )  # fmt: skip


def _prints(printed: str, said: str) -> bool:
    """Is the same printed, or the same number without its unit or plus-minus part?"""
    return bool(compact(printed)[0]) and (
        compact(printed)[0] == compact(said)[0] or number_in(printed, said) is not None
    )


def _short(text: str | None, limit: int = 120) -> str:
    line = " ".join((text or "").split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
