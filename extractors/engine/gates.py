"""From what a reader said of an experiment to what paper and repository bear out.

Every id exists, every number stands in its cell or sentence, every setting where its evidence says, commands run a file
of the chain, and nothing that an agent will read tells the outcome. What does not hold is said in words that the reader
can act on; where it does not mend it, that part is dropped and the same words become a problem for the reviewer.
Numbers of tables are read from the grid, never from the answer: the answer says which cells, and proves with two
printed values that it counted rows and columns right.
"""

from __future__ import annotations

import math
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from extractors.answers import states_answer
from extractors.claims import bound_or_range, find_numbers, normalize, parse_cell, printed_band
from extractors.drafting import MAX_CLAIMS
from extractors.engine.cells import labels_that_name_the_metric, unit_of, with_labels
from extractors.engine.evidence import compact, contains, number_in, printed_as, stands_in, words_of
from extractors.engine.listing import Cells, Listing
from extractors.engine.said import (
    Experiments,
    SaidCells,
    SaidCondition,
    SaidNumber,
    SaidResult,
    SaidTask,
)
from extractors.naming import split_unit
from extractors.outcome import compose_expected
from pipeline.reader.gate import command_problem, usage_of
from pipeline.task import (
    CodeEvidence,
    Condition,
    DesignVariable,
    Draft,
    Evidence,
    Hyperparameter,
    NumericClaim,
    Requirement,
    SourceScript,
    TableEvidence,
    TextEvidence,
    Usage,
)
from pipeline.text import shorten
from pipeline.tracing.lines import FileLines

__all__ = ["Checked", "Gates", "Step", "Supported"]

_SPAN: Final = re.compile(r"(?P<path>.+?):(?P<start>\d+)(?:\s?[-–]\s?(?P<end>\d+))?")
_LONGEST_SPAN: Final = 200
_FROM: Final = {"config": "config", "wrapper": "command"}


@dataclass(frozen=True)
class Step:
    """A step of the method with what it rests on."""

    text: str
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True)
class Supported:
    """A design variable with what names it."""

    variable: DesignVariable
    evidence: tuple[Evidence, ...]


@dataclass
class Checked:
    """What holds of an answer, and in words what does not."""

    question: str = ""
    """Empty where it tells the outcome."""
    instructions: str = ""
    claims: tuple[NumericClaim, ...] = ()
    results: tuple[TextEvidence, ...] = ()
    steps: tuple[Step, ...] = ()
    constant: tuple[Supported, ...] = ()
    independent: tuple[Supported, ...] = ()
    dependent: tuple[Supported, ...] = ()
    settings: tuple[Hyperparameter, ...] = ()
    sources: tuple[SourceScript, ...] = ()
    usage: tuple[Usage, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    not_found: str = ""
    complaints: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What a reviewer should know of it, and the reader need not mend."""

    @property
    def kept(self) -> int:
        """Things that hold."""
        design = len(self.constant) + len(self.independent) + len(self.dependent)
        return len(self.claims) + len(self.steps) + design + len(self.settings) + len(self.requirements)


class Gates:
    """The checks for one paper and one repository.

    Args:
        listing: the paper.
        files: the repository.
        by: who answers, for the reasons of files and commands.
    """

    def __init__(self, listing: Listing, files: FileLines, by: str) -> None:
        self.listing, self._files, self._by = listing, files, by
        document = listing.document
        printed = [listing.text(name) for name in (*listing.passages, *listing.tables, *listing.captions)]
        printed += [document.title, *(text for figure in document.figures for text in figure.texts)]
        self._words = frozenset(word for text in printed for word in words_of(text))

    # --- pass 1 ---

    def experiments(self, said: Experiments) -> tuple[Experiments, list[str]]:
        """The experiments with those ids and files that exist, and what is wrong with the others."""
        wrong: list[str] = []
        kept = []
        for item in said.experiments:
            claims = tuple(claim for claim in item.claims if self._names_a_number(claim))
            wrong += [f"`{item.title}`: {self._no_number(claim)}" for claim in item.claims if claim not in claims]
            files = tuple(path for path in item.files if self._files.readable(path))
            missing = [path for path in item.files if path not in files]
            wrong += [f"`{item.title}`: {path} is no text file of the repository" for path in missing]
            if not item.claims:
                wrong.append(f"`{item.title}` names no number of the paper under `claims`")
            if claims:
                kept.append(item.evolve(claims=claims, files=files, runs_here=item.runs_here and bool(files)))
        return Experiments(experiments=tuple(kept)), wrong

    def _names_a_number(self, claim: str) -> bool:
        block, colon, printed = claim.partition(":")
        if colon:
            return number_in(self.listing.text(block), printed) is not None
        return self.listing.cells(claim) is not None

    def _no_number(self, claim: str) -> str:
        block, colon, printed = claim.partition(":")
        if not colon:
            return self._no_cells(claim)
        text = self.listing.text(block)
        return f"{block} does not print the number `{printed.strip()}`" if text else f"there is no {block}"

    def _no_cells(self, name: str) -> str:
        table = self.listing.tables.get(name.partition(".r")[0])
        if table is None:
            return f"`{name}` names no cells of the paper, as `T3.r1-4c2-5` does; it has {self.listing.ids}"
        last = f"r{len(table.grid) - 1}c{max(map(len, table.grid), default=0) - 1}"
        return f"`{name}` is not within its table, whose last cell is {last}"

    # --- pass 2 ---

    def task(self, said: SaidTask, listed: Sequence[str] = ()) -> Checked:
        """Everything of a task that holds.

        Args:
            said: what was submitted.
            listed: the claims that its experiment was listed with; a task shares a table or a block with them.
        """
        found = Checked()
        wrong = found.complaints
        asked = {claim.partition(":")[0].partition(".r")[0] for claim in listed}
        given = {item.cells.partition(".r")[0] for item in said.cells} | {item.block for item in said.numbers}
        if asked and given and not asked & given:  # two tasks under way at once were answered in each other's place
            wrong.append(f"its numbers are of another experiment: this one's are in {', '.join(sorted(asked))}")
            return found
        found.claims = self._claims(said, found)
        if not found.claims:
            wrong.append("no claim of it holds: a task needs numbers of the paper")
        self._chain(said, found)
        found.results = tuple(item for result in said.results if (item := self._result(result, found)) is not None)
        expected = compose_expected(found.claims, [item.quote for item in found.results])
        probe = Draft(slug="probe", question="-", method="-", expected=expected, confidence=0)
        names = [posixpath.basename(source.path) for source in found.sources]
        tells = _Tells(probe, names)
        found.question = self._told("the question", said.question, tells, wrong)
        found.instructions = self._told("instructions", said.instructions, tells, wrong)
        found.steps = tuple(
            step for item in said.method if (step := self._step(item.text, item.evidence, tells, wrong))
        )
        for kind in ("constant", "independent", "dependent"):
            kept = [self._variable(item.name, item.values, item.evidence, kind, wrong) for item in getattr(said, kind)]
            setattr(found, kind, tuple(item for item in kept if item is not None))
        self._settings(said, found)
        self._requirements(said, found)
        if said.left_out.strip():
            found.notes.append(f"left out: {said.left_out.strip()}")
        return found

    # --- what an id stands for ---

    def _evidence(self, name: str) -> tuple[Evidence | None, str]:
        """What stands behind an id or a span, and its text."""
        if (own := self.listing.evidence(name)) is not None:
            return own, self.listing.text(name)
        span, text = self._span(name)
        return span, text

    def _span(self, name: str) -> tuple[CodeEvidence | None, str]:
        match = _SPAN.fullmatch(name.strip().strip("`[]"))
        if match is None or not self._files.readable(match["path"]):
            return None, ""
        start, end = int(match["start"]), int(match["end"] or match["start"])
        lines = [text for number, text in self._files.lines(match["path"]) if start <= number <= end]
        if not 1 <= start <= end < start + _LONGEST_SPAN or not lines:
            return None, ""
        return CodeEvidence(path=match["path"], start=start, end=end), "\n".join(lines)

    def _supports(self, names: Sequence[str], of: str, wrong: list[str]) -> tuple[tuple[Evidence, ...], list[str]]:
        """The evidence that exists, with the text of each."""
        found: list[Evidence] = []
        texts: list[str] = []
        for name in names:
            evidence, text = self._evidence(name)
            if evidence is None:
                wrong.append(
                    f"{of}: there is no `{name}`; evidence is an id of the paper ({self.listing.ids}) or lines "
                    f"of a file, at most {_LONGEST_SPAN} (`path:first-last`)"
                )
            else:
                found.append(evidence)
                texts.append(text)
        if not found and not names:
            wrong.append(f"{of}: nothing is given as evidence")
        return tuple(found), texts

    # --- claims ---

    def _claims(self, said: SaidTask, found: Checked) -> tuple[NumericClaim, ...]:
        """Cells first, then sentences; each place once, and none that nothing tells from another."""
        claims = [claim for block in said.cells for claim in self._block(block, found)]
        claims += [claim for item in said.numbers if (claim := self._number(item, found.complaints)) is not None]
        places: dict[object, NumericClaim] = {}
        for claim in claims:
            places.setdefault((claim.evidence, claim.text), claim)
        alike = Counter((claim.metric, claim.conditions) for claim in places.values())
        same = [claim for claim in places.values() if alike[claim.metric, claim.conditions] > 1]
        if same:
            shown = ", ".join(claim.text for claim in same[:6])
            found.complaints.append(
                f"the claims {shown} have the same metric and conditions ({_under(same[0])}): name what tells them "
                "apart, in `row_names` and `column_names` or in the metric"
            )
        kept = [claim for claim in places.values() if alike[claim.metric, claim.conditions] == 1]
        if len(kept) > MAX_CLAIMS:
            found.notes.append(f"left out: {len(kept) - MAX_CLAIMS} more numbers: a task holds {MAX_CLAIMS}")
        return tuple(claim.evolve(id=f"c{number}") for number, claim in enumerate(kept[:MAX_CLAIMS], 1))

    def _block(self, said: SaidCells, found: Checked) -> list[NumericClaim]:
        wrong = found.complaints
        cells = self.listing.cells(said.cells)
        if cells is None:
            wrong.append(self._no_cells(said.cells))
            return []
        table = cells.table
        for row, column, printed in (
            (cells.rows[0], cells.columns[0], said.first),
            (cells.rows[-1], cells.columns[-1], said.last),
        ):
            text = table.grid[row][column] if column < len(table.grid[row]) else ""
            if not _prints(text, printed):
                wrong.append(f"`{said.cells}`: r{row}c{column} prints `{text}`, not `{shorten(printed, 60)}`")
                return []
        metric, unit = split_unit(said.metric)
        unit = said.unit or unit or ""
        if not self._is_metric(said, metric, cells, unit, wrong):
            return []
        names = (said.row_names, said.column_names)
        claims = self._from_cells(cells, metric, unit, said.conditions, names, found, all_labels=False)
        if len({claim.conditions for claim in claims}) < len(claims):
            # what the answer calls no condition tells claims apart after all: they get every label
            claims = self._from_cells(cells, metric, unit, said.conditions, names, Checked(), all_labels=True)
        if not claims:
            wrong.append(f"`{said.cells}` holds no result number")
        return claims

    def _from_cells(
        self, cells: Cells, metric: str, unit: str, shared: Sequence[SaidCondition],
        names: tuple[Sequence[str], Sequence[str]], found: Checked, *, all_labels: bool,
    ) -> list[NumericClaim]:  # fmt: skip
        table, claims, skipped = cells.table, [], []
        kept = self._conditions(shared, self.listing.name_of(table), found.complaints)
        for row in cells.rows:
            for column in cells.columns:
                cell = self.listing.cell(table, row, column)
                quantity = parse_cell(cell.quote) if cell is not None else None
                if cell is None or quantity is None or row < table.header_rows or column < table.stub_columns:
                    skipped.append(f"r{row}c{column} (`{cell.quote if cell else ''}`)")
                    continue
                claims.append(NumericClaim(
                    id="c0", metric=metric, value=quantity.value, text=normalize(quantity.text),
                    decimals=quantity.decimals, unit=quantity.unit or unit or unit_of(table, cell, metric),
                    uncertainty=quantity.uncertainty,
                    conditions=with_labels(kept, table, (row, column), metric, names, all_labels),
                    band=printed_band(quantity.value, 10.0**-quantity.decimals, quantity.uncertainty), evidence=(cell,),
                ))  # fmt: skip
        if skipped:
            found.notes.append(f"no single result number stands in {self.listing.name_of(table)}: {', '.join(skipped)}")
        return claims

    def _is_metric(self, said: SaidCells, metric: str, cells: Cells, unit: str, wrong: list[str]) -> bool:
        """Is the metric named where the answer says, and by nothing that heads the cells contradicted?"""
        evidence, text = self._evidence(said.metric_from)
        if evidence is None:
            wrong.append(f"metric `{metric}` of {said.cells}: there is no `{said.metric_from}`")
            return False
        if not words_of(metric) or not words_of(metric) <= self._words | words_of(text) | words_of(said.output):
            wrong.append(f"neither the paper nor {said.metric_from} uses the words of the metric `{metric}`")
            return False
        if not words_of(metric) & words_of(f"{text} {said.output}"):
            wrong.append(f"{said.metric_from} does not name the metric `{metric}` of {said.cells}")
            return False
        corner = self.listing.cell(cells.table, cells.rows[0], cells.columns[0])
        assert corner is not None, "its text was compared"
        units = {
            _unit(found) for label in (*corner.column_headers, *corner.row_labels) if (found := split_unit(label)[1])
        }
        own = parse_cell(corner.quote)
        units |= {_unit(own.unit)} if own is not None and own.unit else set()
        if unit and units and _unit(unit) not in units:
            wrong.append(f"metric `{metric}` of {said.cells} is in `{unit}`, and its labels say `{', '.join(units)}`")
            return False
        for label in labels_that_name_the_metric(cells, said.row_names, said.column_names):
            plain = split_unit(label)[0] or label
            said_so = not isinstance(evidence, TableEvidence) and contains(text, plain)  # prose that puts them together
            if not (words_of(plain) & words_of(metric) or _abbreviates(plain, metric) or said_so):
                wrong.append(
                    f"`{label}` heads {said.cells}, and you say that it names the metric, which you call `{metric}`: "
                    "say in `row_names` or `column_names` what it names, or name the metric as it does"
                )
                return False
        return True

    def _number(self, said: SaidNumber, wrong: list[str]) -> NumericClaim | None:
        of = f"claim {said.printed} of {said.block}"
        evidence, text = self._evidence(said.block)
        number = number_in(text, said.printed) if isinstance(evidence, TextEvidence) else None
        if number is None or not isinstance(evidence, TextEvidence):
            wrong.append(f"{of}: no block of that id prints this number")
            return None
        if (why := bound_or_range(number)) is not None:
            wrong.append(f"{of}: the paper gives {why}, which is no number to compare with")
            return None
        metric, unit = split_unit(said.metric)
        if not words_of(metric) or not words_of(metric) <= self._words | words_of(said.output):
            wrong.append(f"{of}: neither the paper nor its output uses the words of the metric `{metric}`")
            return None
        return NumericClaim(
            id="c0", metric=metric, value=number.value, text=number.text,
            decimals=max(0, round(-math.log10(number.step))), unit=number.unit or unit, uncertainty=number.uncertainty,
            conditions=self._conditions(said.conditions, said.block, wrong),
            band=printed_band(number.value, number.step, number.uncertainty), evidence=(evidence,),
        )  # fmt: skip

    def _conditions(self, said: Iterable[SaidCondition], where: str, wrong: list[str]) -> tuple[Condition, ...]:
        kept: dict[str, Condition] = {}
        near = self.listing.text(where)
        for item in said:
            name, value = item.name.strip() or "setting", item.value.strip()
            if not value or not (contains(near, value) or words_of(value) <= self._words):
                wrong.append(f"condition {name} = `{value}` of {where}: the paper has no such words")
                continue
            while name.lower() in kept:
                name += " (2)"
            kept[name.lower()] = Condition(name=name, value=value)
        return tuple(kept.values())

    def _result(self, said: SaidResult, found: Checked) -> TextEvidence | None:
        """A sentence that the claims bear out; of one that they contradict the reviewer is told."""
        evidence = self.listing.evidence(said.block)
        quote = printed_as(evidence.quote, said.quote) if isinstance(evidence, TextEvidence) else None
        if quote is None or not isinstance(evidence, TextEvidence):
            found.complaints.append(f"result `{shorten(said.quote, 80)}`: {said.block} does not say so, word for word")
            return None
        if not said.holds:
            why = said.why_not.strip() or "the reader says so"
            found.notes.append(f"the paper says “{quote}” ({said.block}), which its own numbers contradict: {why}")
            return None
        return evidence.evolve(quote=quote)

    # --- words ---

    def _told(self, what: str, text: str, tells: _Tells, wrong: list[str]) -> str:
        text = " ".join(text.split())
        reasons = tells(text)
        wrong += [f"{what}: it {reason}" for reason in reasons]
        return "" if reasons else text

    def _step(self, text: str, names: Sequence[str], tells: _Tells, wrong: list[str]) -> Step | None:
        of = f"step `{shorten(' '.join(text.split()), 80)}`"
        evidence, texts = self._supports(names, of, wrong)
        missing = [n.text for n in find_numbers(text) if not any(stands_in(shown, n.text) for shown in texts)]
        if evidence and missing:
            wrong.append(f"{of}: its evidence does not hold {', '.join(missing)}")
        kept = self._told(of, text, tells, wrong)
        return Step(kept, evidence) if evidence and not missing and kept else None

    def _variable(
        self, name: str, values: Sequence[str], names: Sequence[str], kind: str, wrong: list[str]
    ) -> Supported | None:
        of = f"{kind} variable `{shorten(name, 60)}`"
        evidence, texts = self._supports(names, of, wrong)
        lost = [value for value in values if not any(stands_in(text, value) for text in texts)]
        if evidence and lost:
            wrong.append(
                f"{of}: {', '.join(f'`{shorten(value, 40)}`' for value in lost)} does not stand in its evidence"
            )
        kept = tuple(dict.fromkeys(value.strip() for value in values if value not in lost))
        if not evidence or not name.strip() or (values and not kept):
            return None
        return Supported(DesignVariable(name=name.strip(), values=kept), evidence)

    def _settings(self, said: SaidTask, found: Checked) -> None:
        roles = {source.path: source.role for source in found.sources}
        kept: dict[str, Hyperparameter] = {}
        for item in said.settings:
            of = f"setting {shorten(item.name, 60)} = `{shorten(item.value, 40)}`"
            evidence, texts = self._supports(item.evidence, of, found.complaints)
            if not any(stands_in(text, item.value) for text in texts):
                found.complaints.append(f"{of}: the value does not stand in its evidence")
                continue
            first = evidence[0]
            source = _FROM.get(roles.get(first.path, ""), "default") if isinstance(first, CodeEvidence) else "paper"
            kept.setdefault(item.name.lower(), Hyperparameter.model_validate(
                {"name": item.name.strip(), "value": item.value.strip(), "source": source, "evidence": evidence}
            ))  # fmt: skip
        found.settings = tuple(kept.values())

    # --- code ---

    def _chain(self, said: SaidTask, found: Checked) -> None:
        wrong = found.complaints
        found.not_found = said.not_found.strip()
        if bool(said.files) == bool(found.not_found):
            wrong.append("give either `files` with `commands`, or under `not_found` why there are none, and not both")
        files: dict[str, SourceScript] = {}
        for item in said.files:
            if not self._files.readable(item.path):
                wrong.append(f"{item.path} is no text file of the repository")
                continue
            why = f"{self._by}: {item.why}"
            files.setdefault(item.path, SourceScript(path=item.path, role=item.role, score=1.0, reasons=(why,)))
        roles: dict[str, str] = {path: source.role for path, source in files.items()}
        usage = []
        for command in said.commands:
            problem, _ = command_problem(self._files, command, roles)
            if problem:
                wrong.append(f"command `{shorten(' '.join(command.argv), 100)}`: {problem}")
            else:
                usage.append(usage_of(command))
        if files and not said.commands:
            wrong.append("there are files, and no command that runs them")
        if usage:
            found.sources, found.usage = tuple(files.values()), tuple(usage)

    def _requirements(self, said: SaidTask, found: Checked) -> None:
        kept = []
        for item in said.requirements:
            spans = [span for name in item.spans if (span := self._span(name)[0]) is not None]
            missing = [name for name in item.spans if self._span(name)[0] is None]
            if missing:
                found.complaints.append(
                    f"requirement `{shorten(item.text, 80)}`: {', '.join(missing)} names no lines of a file, at most "
                    f"{_LONGEST_SPAN} (`path:first-last`)"
                )
            if spans:
                kept.append(Requirement(text=" ".join(item.text.split()), spans=tuple(dict.fromkeys(spans))))
        found.requirements = tuple(kept)


@dataclass(frozen=True)
class _Tells:
    """How a text that an agent reads would give the answer, or its place, away."""

    probe: Draft
    files: Sequence[str]

    def __call__(self, text: str) -> list[str]:
        named = [name for name in self.files if contains(text, name)]
        return [
            *states_answer(text, self.probe),
            *(f"names {name}, which an agent does not have: say what it does" for name in named),
        ]


def _under(claim: NumericClaim) -> str:
    return ", ".join([claim.metric, *(f"{item.name} = {item.value}" for item in claim.conditions)])


def _unit(text: str) -> str:
    plain = compact(text)[0]
    return "%" if plain in {"percent", "pct", "pp"} else plain


def _abbreviates(short: str, long: str) -> bool:
    """`IS` is short for `interval score`, `Acc.` for `accuracy`."""
    plain = compact(short)[0].strip(".")
    words = [word for word in re.split(r"[\W_]+", long.casefold()) if word]
    return bool(plain) and (plain == "".join(word[0] for word in words) or any(w.startswith(plain) for w in words))


def _prints(printed: str, said: str) -> bool:
    """Is the same printed, or the same number without its unit or plus-minus part?"""
    plain = compact(printed)[0]
    return bool(plain) and (plain == compact(said)[0] or number_in(printed, said) is not None)
