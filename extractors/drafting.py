"""Drafts: each is made from one table of the paper and those of its cells that are claims.

What ran decides which cells are: those whose numbers a run gave back. Without a run it is those that a committed file
holds, or all that the table states; such a draft says so and is trusted little. Nothing here guesses what a sentence
means: names come from labels and fields (`extractors.naming`), the method is the paper's own sentences as far as the
code bears them out (`extractors.method`), and what stays open is asked of the reviewer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

from extractors._reading import Reading, label_key, references_in
from extractors._roles import Roles, roles_of
from extractors.answers import states_answer
from extractors.claims import normalize, printed_band
from extractors.method import Method
from extractors.naming import NO_NAME, ClaimedCell, Naming
from extractors.outcome import compose_expected, repeats_claims
from extractors.prose import shown_names
from pipeline.match.records import CellMatch, TableMatch
from pipeline.paper import Document, Quantity, Table
from pipeline.schema import Problem, Record, Severity
from pipeline.task import Condition, DesignVariable, Draft, Evidence, NumericClaim, TableEvidence
from pipeline.text import slug

__all__ = [
    "FEWEST", "MAX_CLAIMS", "DraftResult", "Drafted", "Ground", "as_stated", "draft_tables", "ground_of",
    "instructions", "stated", "unique_slugs", "why_no_results",
]  # fmt: skip

_COMPONENT: Final = "draft"
MAX_CLAIMS: Final = 100
"""What a reviewer can still read through: the largest result table of nine papers but two holds fewer."""
FEWEST: Final = 3
"""Numbers of a table from which on a task is worth anybody's time."""
_LISTED: Final = 6
_OF_A_FILE: Final = 0.5
"""What a committed file is worth beside a run that gives the same numbers: it tells where, and proves nothing."""
_OF_THE_PAPER: Final = 0.2
_OPEN: Final = 0.05
"""Off the confidence for each question that is left to the reviewer, where no run stands behind the draft."""


class DraftResult(Record):
    """Drafts, best first, and everything that was considered and refused."""

    drafts: tuple[Draft, ...]
    problems: tuple[Problem, ...] = ()


class Ground(NamedTuple):
    """Which cells of a table are claims, and on what ground."""

    table: int
    """Index into the document's tables."""
    cells: tuple[ClaimedCell, ...]
    origin: Literal["run", "committed", "paper"] = "paper"
    """Who holds the numbers: a run, a committed file, or the table alone."""
    source: str = ""
    """Name of the run or the file."""
    missed: tuple[CellMatch, ...] = ()
    """Cells for which the source has another number: no claims."""
    code: str = ""
    """Text of the files that ran for it: names, docstrings, comments."""
    keys: Mapping[str, str] = {}
    """Label of the paper (`extractors.naming.as_key`) -> name of the artefact's key that holds it (`method`)."""
    fields: frozenset[str] = frozenset()
    """Names of all fields of the artefact that the table's lines stand for, those of no claim included."""


def ground_of(
    match: TableMatch, code: str = "", keys: Mapping[str, str] | None = None,
    fields: Mapping[tuple[str, str], str] | None = None,
) -> Ground:  # fmt: skip
    """The numbers that matched as claims. A place in a committed file is no place in a run, and is left out.

    Args:
        match: as `as_stated` leaves it.
        code: text of the files that ran.
        keys: label of the paper (`extractors.naming.as_key`) -> name of the artefact's key that holds it.
        fields: (source, place) of a number -> what the artefact calls it.
    """
    ran, called = match.origin == "run", fields or {}
    cells = tuple(
        ClaimedCell(
            c.row, c.column, c.place if ran else "", c.factor if ran else 1.0, called.get((c.source, c.place), "")
        )
        for c in match.cells
    )
    named = frozenset(name for _, name in match.fields)
    return Ground(match.table, cells, match.origin, match.source, match.missed, code, keys or {}, named)


def stated(document: Document, table: int) -> Ground:
    """All numbers of a table as claims, on no other ground than that it states them.

    Args:
        document: the structured reading.
        table: index into its tables.
    """
    found = _stated_cells(document.tables[table])
    return Ground(table, tuple(ClaimedCell(row, column) for row, column in found))


def as_stated(document: Document, match: TableMatch) -> TableMatch:
    """The match as claims: what cells state, without second numbers (deviations, ends of intervals).

    Of a match with several runs only the numbers of the run that gave most of them: one task has one command.

    Args:
        document: the structured reading.
        match: of one of its tables.
    """
    known = _stated_cells(document.tables[match.table])

    def is_claim(cell: CellMatch) -> bool:
        own = match.origin == "committed" or cell.source == match.source
        return own and cell.part == 0 and (cell.row, cell.column) in known

    return match.evolve(cells=tuple(filter(is_claim, match.cells)), missed=tuple(filter(is_claim, match.missed)))


def _stated_cells(table: Table) -> dict[tuple[int, int], Quantity]:
    """The numbers of the body, in reading order."""
    return {
        (cell.row, cell.column): cell.quantity
        for cell in sorted(table.cells, key=lambda cell: (cell.row, cell.column))
        if cell.quantity is not None and cell.row >= table.header_rows and cell.column >= table.stub_columns
    }


def why_no_results(table: Table) -> str:
    """Why a table, by the form of its numbers, reports no results; empty when it may.

    Measurements of one kind print with equally many decimals (or a percent sign, or a deviation) along a column or a
    row; counts are whole, and settings of different kinds print each in its own way.

    Args:
        table: any table of a paper.
    """
    numbers = _stated_cells(table)
    if len(numbers) < FEWEST:
        return f"it states {len(numbers)} of the {FEWEST} numbers that a task needs"
    measured = max(_measured(numbers, axis) for axis in (0, 1))
    if 2 * measured <= len(numbers):
        return "most of its numbers are whole or print each with other digits, as counts and settings do"
    return ""


def _measured(numbers: Mapping[tuple[int, int], Quantity], axis: int) -> int:
    """How many numbers look like measurements, taken row by row (0) or column by column (1)."""
    lines: dict[int, list[Quantity]] = {}
    for place, number in numbers.items():
        lines.setdefault(place[axis], []).append(number)
    count = 0
    for line in lines.values():
        usual = Counter(number.decimals for number in line).most_common(1)[0][0] if len(line) > 1 else 0
        count += sum(
            number.unit == "%" or number.uncertainty is not None or 0 < number.decimals == usual for number in line
        )
    return count


# --- one draft -------------------------------------------------------------------------------------------------------


class Drafted(NamedTuple):
    """Drafts, and the grounds that they were made from, in the same order."""

    result: DraftResult
    grounds: tuple[Ground, ...]


def draft_tables(document: Document, grounds: Sequence[Ground]) -> Drafted:
    """One draft for each ground, in their order; where one cannot be made, the reason is among the problems.

    Args:
        document: the structured reading.
        grounds: which cells of which tables are claims; several grounds of one table share no cell.
    """
    drafter = _Drafter(document)
    made = [(draft, ground) for ground in grounds if (draft := drafter.draft(ground)) is not None]
    drafts = tuple(unique_slugs([draft for draft, _ in made]))
    return Drafted(DraftResult(drafts=drafts, problems=tuple(drafter.problems)), tuple(ground for _, ground in made))


class _Drafter:
    """Makes the drafts of one paper and collects what is left out and what is asked."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.reading = Reading(document)
        self.method = Method(self.reading)
        self.problems: list[Problem] = []

    def draft(self, ground: Ground) -> Draft | None:
        table = self.document.tables[ground.table]
        where = f"{table.label} (page {table.page})"
        reading = self.reading
        naming = Naming(table, ground.cells[:MAX_CLAIMS], ground.keys, ground.fields)
        claims = self._claims(table, naming, ground, where)
        if len(claims) < FEWEST:
            self._say(where, "no task: its labels do not tell its numbers apart")
            return None
        said = [line for line in reading.lines if label_key(table.label) in references_in(line.text)]
        results = [line for line in said if repeats_claims(line.text, claims)]
        expected = compose_expected(claims, [line.text for line in results])
        probe = Draft(slug="probe", question="-", method="-", expected=expected, confidence=0)
        roles = roles_of(claims)
        metrics = tuple(dict.fromkeys(claim.metric for claim in claims))
        question, told = _question(table, metrics, roles, probe), instructions(claims, roles)
        given_away = states_answer(question, probe) or states_answer(told, probe)
        if given_away:
            self._say(where, f"no task: its labels would give the answer away ({given_away[0]})")
            return None
        steps = self.method.borne_out(ground.code, expected)
        open_ = self._ask(where, ground, naming, bool(steps))
        self._say_what_is_left_out(table, ground, where)
        result: list[Evidence] = [reading.caption_evidence(table)]
        return Draft(
            slug=slug(f"{slug(table.label, 30)} {metrics[0]}", 60) or "experiment",
            question=question,
            method=" ".join(line.text for line in steps),
            agent_instructions=told,
            expected=expected,
            constant=tuple(DesignVariable(name=name, values=(value,)) for name, value in roles.fixed),
            independent=tuple(DesignVariable(name=axis.name, values=axis.values) for axis in roles.axes),
            dependent=tuple(DesignVariable(name=metric) for metric in metrics),
            evidence={
                "question": tuple(result),
                "method": tuple(reading.quote(line) for line in steps),
                "expected": (*result, *(reading.quote(line) for line in results[:3])),
            },
            sections=tuple(dict.fromkeys(filter(None, map(reading.section_title, said)))),
            confidence=_confidence(table, ground, open_),
        )

    def _claims(self, table: Table, naming: Naming, ground: Ground, where: str) -> tuple[NumericClaim, ...]:
        """The claims, without those that nothing tells apart: whoever answers could not name them."""
        quantities = _stated_cells(table)
        named = [(cell, naming.of(cell)) for cell in ground.cells[:MAX_CLAIMS]]
        alike = Counter((metric, conditions) for _, (metric, _, conditions) in named)
        kept = [(cell, names) for cell, names in named if alike[names[0], names[2]] == 1]
        if len(kept) < len(named):
            self._say(where, f"left out: {len(named) - len(kept)} numbers that its labels do not tell apart")
        return tuple(
            _claim(table, cell, names, quantities[cell.row, cell.column], number, ran=ground.origin == "run")
            for number, (cell, names) in enumerate(kept, 1)
        )

    def _say(self, where: str, message: str, severity: Severity = Severity.INFO) -> None:
        self.problems.append(Problem(component=_COMPONENT, where=where, message=message, severity=severity))

    def _ask(self, where: str, ground: Ground, naming: Naming, has_method: bool) -> int:
        """What the reviewer has to say, one question each; returns how many."""
        questions = [naming.doubt] if naming.doubt else []
        if not has_method:
            why = "no sentence of the paper is borne out by the code" if ground.code else "no code is known to give it"
            questions.append(f"how is it done? Its method is empty, because {why}")
        if ground.origin == "committed":
            self._say(where, f"no run gives its numbers; {len(ground.cells)} stand in {ground.source}")
        elif ground.origin == "paper":
            self._say(where, "no run gives its numbers: all that the table states are claims")
        for question in questions:
            self._say(where, f"to check: {question}", Severity.WARNING)
        return len(questions)

    def _say_what_is_left_out(self, table: Table, ground: Ground, where: str) -> None:
        for cell in ground.missed[:_LISTED]:
            shown = f"{cell.where} {cell.observed * cell.factor:.6g}"
            self._say(where, f"left out: row {cell.row}, column {cell.column} prints {cell.text}, {shown}")
        count, total = len(ground.cells) + len(ground.missed), len(_stated_cells(table))
        if total > count:
            whose = "this run does" if ground.origin == "run" else f"{ground.source} does"
            self._say(where, f"left out: {total - count} more of its {total} numbers, which {whose} not hold")
        if len(ground.cells) > MAX_CLAIMS:
            self._say(where, f"left out: {len(ground.cells) - MAX_CLAIMS} more numbers: a task holds {MAX_CLAIMS}")


def _claim(
    table: Table, cell: ClaimedCell, names: tuple[str, str | None, tuple[Condition, ...]], quantity: Quantity,
    number: int, *, ran: bool,
) -> NumericClaim:  # fmt: skip
    metric, unit, conditions = names
    page, box = table.place_of(cell.row, cell.column)
    evidence = TableEvidence(
        label=table.label, page=page, box=box, row=cell.row, column=cell.column,
        quote=table.grid[cell.row][cell.column], row_labels=table.row_labels(cell.row),
        column_headers=table.column_headers(cell.column),
    )  # fmt: skip
    # what ran gave the number itself; where nothing did, the paper's own deviation says how far off one may be
    spread = None if ran else quantity.uncertainty
    return NumericClaim(
        id=f"c{number}", metric=metric, value=quantity.value, text=normalize(table.grid[cell.row][cell.column]),
        decimals=quantity.decimals, unit=quantity.unit or unit, uncertainty=quantity.uncertainty,
        conditions=conditions, band=printed_band(quantity.value, 10.0**-quantity.decimals, spread),
        evidence=(evidence,), place=cell.place, factor=cell.factor,
    )  # fmt: skip


def _confidence(table: Table, ground: Ground, questions: int) -> float:
    share = len(ground.cells) / max(len(_stated_cells(table)), 1)
    if ground.origin == "run":
        return round(0.5 + 0.5 * share, 3)
    sure = _OF_A_FILE * share if ground.origin == "committed" else _OF_THE_PAPER * table.confidence
    return round(max(0.0, sure - _OPEN * questions), 3)


# --- words -----------------------------------------------------------------------------------------------------------


def _question(table: Table, metrics: Sequence[str], roles: Roles, probe: Draft) -> str:
    """What is compared, on what, by which measure, as the labels say; with the caption where it tells no result."""
    measured = shown_names(metrics)
    in_ = "" if metrics == (NO_NAME,) else f" in {measured}"
    named = [axis for axis in roles.axes if axis.kind == "name"]
    swept = [axis for axis in roles.axes if axis.kind == "number"]
    over = "".join(f" as {axis.name} goes from {axis.values[0]} to {axis.values[-1]}" for axis in swept)
    if named:
        first, others = named[0], named[1:]
        across = "".join(f", for each of {shown_names(axis.values)}" for axis in others)
        text = f"How do {shown_names(first.values)} compare{in_}{across}{over}?"
    elif swept:
        text = f"How does {measured} change{over}?"
    else:
        text = f"What is the {measured}?"
    caption = normalize(table.caption)
    context = f"{text} The experiment is the one of the paper's {table.label}: “{caption}”"
    return context if caption and not states_answer(context, probe) else text


def instructions(claims: Sequence[NumericClaim], roles: Roles) -> str:
    """The goal and the form of the answer; levels of numeric sweeps are design and left to the agent.

    Args:
        claims: what is to be measured.
        roles: of their conditions.
    """
    measures = dict.fromkeys(f"{c.metric} (in {c.unit})" if c.unit else c.metric for c in claims)
    lines = ["Plan, implement and run the experiment that answers the question, then report what you measured."]
    lines += [f"- Compared: {axis.name} ({'; '.join(axis.values)})." for axis in roles.axes if axis.kind == "name"]
    lines.append(f"- Measured: {'; '.join(measures)}.")
    lines.append("- Report one number for each metric and condition, with all the digits that were computed.")
    return "\n".join(lines)


def unique_slugs(drafts: Sequence[Draft]) -> list[Draft]:
    """The drafts with slugs made unique in the order given: the second `x` becomes `x-2`."""
    seen: dict[str, int] = {}
    result = []
    for draft in drafts:
        count = seen[draft.slug] = seen.get(draft.slug, 0) + 1
        result.append(draft if count == 1 else draft.evolve(slug=f"{draft.slug[:56]}-{count}"))
    return result
