"""Pass b: the paper subsection by subsection, with what was learnt before (EXP-Bench 3.2, stage 2.1).

Each subsection is classified as implementation context or candidate question. Sentences of context are kept, word for
word, and shown with every later subsection, together with the tables and figures that it speaks of and the takeaways
of the whole paper. The subsections are asked one after the other: each depends on the context of those before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from extractors._reading import label_key, references_in
from extractors.engine.asking import Asker, info
from extractors.engine.checking import CheckedTask, Checker
from extractors.engine.evidence import Paper, words_of
from extractors.engine.said import SubsectionAnswer
from extractors.engine.showing import show_figure, show_section, show_table
from extractors.engine.takeaways import Takeaway
from extractors.engine.vision import VisualReading, show_reading
from pipeline.paper import Document, Passage, Section, SectionKind
from pipeline.progress import Reporter
from pipeline.schema import Problem, Record
from pipeline.task import TextEvidence

__all__ = ["ContextItem", "SubsectionReading", "read_subsections"]

_SHORTEST: Final = 80
"""Characters of text under a heading: below that, and without a table or figure, there is nothing to ask about."""
_CONTEXT: Final = 12_000
"""Characters of accumulated context that are shown: about 3,000 tokens beside a subsection of about 1,000."""
_COMPLAINTS: Final = 15
_ROLES: Final = ("candidate_question", "implementation_context", "neither")
_COMPONENT: Final = "extract.model.subsection"


class ContextItem(Record):
    """A sentence that later subsections need."""

    topic: str
    evidence: TextEvidence


class SubsectionReading(Record):
    """What became of one subsection."""

    section: str
    page: int
    role: Literal["implementation_context", "candidate_question", "neither", "skipped", "failed"]
    context: tuple[ContextItem, ...] = ()
    tasks: tuple[str, ...] = ()
    """Titles of its candidate tasks."""


@dataclass
class _Subsection:
    section: Section | None
    passages: list[Passage] = field(default_factory=list)

    @property
    def title(self) -> str:
        if self.section is None:
            return "before the first heading"
        return f"{self.section.number or ''} {self.section.title}".strip()

    @property
    def page(self) -> int:
        return self.passages[0].page

    @property
    def where(self) -> str:
        return f"{self.title} (page {self.page})"

    @property
    def text(self) -> str:
        return show_section(self.section, self.passages)


def read_subsections(
    asker: Asker,
    paper: Paper,
    takeaways: Sequence[Takeaway],
    visuals: Sequence[VisualReading],
    problems: list[Problem],
    reporter: Reporter,
) -> tuple[list[CheckedTask], tuple[SubsectionReading, ...]]:
    """Ask for all subsections in reading order.

    Args:
        asker: the model.
        paper: where everything is looked up.
        takeaways: of pass a.
        visuals: how a model read tables and figures from their pictures.
        problems: receives what was dropped and why.
        reporter: is told about each subsection.

    Returns:
        The candidates with what the paper supports of them, and how each subsection was classified.
    """
    parts = list(_subsections(paper.document))
    floats = _Floats(paper.document, parts, visuals)
    shown = [f"{takeaway.id}: {takeaway.statement}" for takeaway in takeaways]
    context: list[ContextItem] = []
    candidates: list[CheckedTask] = []
    readings: list[SubsectionReading] = []
    reporter.start("subsections", len(parts))
    with asker.stage("subsections"):
        for part in parts:
            reading, found = _read(asker, paper, part, floats, shown, context, problems)
            readings.append(reading)
            candidates += found
            context += reading.context
            reporter.step("subsections", f"{part.where}: {reading.role}, {len(found)} candidate(s)")
    reporter.end("subsections", f"{len(candidates)} candidate tasks")
    return candidates, tuple(readings)


def _read(
    asker: Asker, paper: Paper, part: _Subsection, floats: _Floats, takeaways: Sequence[str],
    context: Sequence[ContextItem], problems: list[Problem],
) -> tuple[SubsectionReading, list[CheckedTask]]:  # fmt: skip
    reading = SubsectionReading(section=part.title, page=part.page, role="skipped")
    if _is_skipped(part, floats):
        problems.append(info(_COMPONENT, part.where, "not read for tasks: no text to speak of"))
        return reading, []
    inputs: dict[str, Any] = {
        "section": part.text,
        "floats": floats.shown(part),
        "pictures": floats.seen(part),
        "context": _shown_context(context, part.text),
        "takeaways": "\n".join(takeaways) or [],
    }
    answer = asker.ask("subsection", SubsectionAnswer, part.where, split=True, **inputs)
    problems += answer.problems
    if not answer.values:
        return reading.evolve(role="failed"), []
    known = {takeaway.split(":", 1)[0] for takeaway in takeaways}
    found = _check(paper, part, answer.values, known)
    if found.dropped and len(answer.values) == 1:
        found = _mended(asker, paper, part, answer.values[0], found, known, inputs, problems)
    problems += found.problems
    tasks = tuple(task.title for task in found.tasks)
    return reading.evolve(role=found.role, context=found.context, tasks=tasks), found.tasks


@dataclass
class _Found:
    """What of the answers for one subsection the paper supports."""

    role: Literal["implementation_context", "candidate_question", "neither"]
    context: tuple[ContextItem, ...]
    tasks: list[CheckedTask]
    problems: list[Problem]
    dropped: int

    @property
    def kept(self) -> int:
        return len(self.context) + sum(task.kept for task in self.tasks)


def _check(paper: Paper, part: _Subsection, answers: Sequence[SubsectionAnswer], takeaways: set[str]) -> _Found:
    problems: list[Problem] = []
    near = frozenset(passage.id for passage in part.passages)
    checker = Checker(paper, near, part.where, problems)
    context: list[ContextItem] = []
    tasks: list[CheckedTask] = []
    for value in answers:
        for item in value.context:
            context += [ContextItem(topic=item.topic, evidence=s.evidence()) for s in checker.statements([item.quote])]
        for said in value.tasks:
            task = Checker(paper, near, part.where, problems).task(
                said, part.section.title if part.section else paper.document.title
            )
            task.takeaways = tuple(dict.fromkeys(name for name in said.takeaways if name in takeaways))
            tasks.append(task)
    roles = {value.role for value in answers}
    role = next(r for r in _ROLES if r in roles)
    dropped = checker.dropped + sum(task.dropped for task in tasks)
    return _Found(role, tuple(dict.fromkeys(context)), tasks, problems, dropped)


def _mended(
    asker: Asker, paper: Paper, part: _Subsection, answer: SubsectionAnswer, found: _Found, takeaways: set[str],
    inputs: dict[str, Any], problems: list[Problem],
) -> _Found:  # fmt: skip
    """Ask once more, with what was not found in the paper; the answer of which more is supported counts."""
    again = asker.ask(
        "mend_subsection",
        SubsectionAnswer,
        part.where,
        **inputs,
        answer=answer.model_dump_json(),
        complaints="\n".join(problem.message for problem in found.problems[:_COMPLAINTS]),
    )
    problems += again.problems
    if not again.values:
        return found
    second = _check(paper, part, again.values, takeaways)
    if (second.kept, -second.dropped) <= (found.kept, -found.dropped):
        return found
    message = (
        f"asked again, the model gave {second.kept} supported statements instead of {found.kept}, and {second.dropped} "
        f"unsupported ones instead of {found.dropped}"
    )
    problems.append(info(_COMPONENT, part.where, message))
    return second


def _subsections(document: Document) -> Iterable[_Subsection]:
    """Passages under the same heading, in reading order; references are not read."""
    current: _Subsection | None = None
    for passage in document.passages:
        section = document.section_of(passage)
        if section is not None and section.kind is SectionKind.REFERENCES:
            continue
        if current is None or current.section is not section:
            if current is not None:
                yield current
            current = _Subsection(section)
        current.passages.append(passage)
    if current is not None:
        yield current


def _is_skipped(part: _Subsection, floats: _Floats) -> bool:
    return sum(len(passage.text) for passage in part.passages) < _SHORTEST and not floats.shown(part)


def _shown_context(context: Sequence[ContextItem], text: str) -> list[str]:
    """The context so far; when there is too much of it, what shares most words with the subsection."""
    lines = [f"[{item.evidence.section or 'start'}; {item.topic}] {item.evidence.quote}" for item in context]
    kept = list(range(len(lines)))
    if sum(map(len, lines)) > _CONTEXT:
        words = words_of(text)
        kept.sort(key=lambda n: (-len(words & words_of(lines[n])), n))
        size, best = 0, []
        for number in kept:
            size += len(lines[number])
            if size > _CONTEXT:
                break
            best.append(number)
        kept = sorted(best)
    return ["\n".join(lines[number] for number in kept)] if kept else []


class _Floats:
    """Which tables and figures are shown with a subsection: those it refers to, and those nobody refers to near it."""

    def __init__(self, document: Document, parts: Sequence[_Subsection], visuals: Sequence[VisualReading]) -> None:
        self._document = document
        self._visuals = visuals
        self._by_part = {id(part): references_in(part.text) for part in parts}
        self._referred = frozenset(key for keys in self._by_part.values() for key in keys)

    def _keys(self, part: _Subsection) -> frozenset[str]:
        pages = {page for passage in part.passages for page, _ in passage.boxes}
        near = [table.label for table in self._document.tables if table.page in pages]
        near += [figure.label for figure in self._document.figures if figure.page in pages]
        return self._by_part[id(part)] | {key for key in map(label_key, near) if key not in self._referred}

    def shown(self, part: _Subsection) -> list[str]:
        keys = self._keys(part)
        tables = [show_table(table) for table in self._document.tables if label_key(table.label) in keys]
        return tables + [show_figure(figure) for figure in self._document.figures if label_key(figure.label) in keys]

    def seen(self, part: _Subsection) -> list[str]:
        keys = self._keys(part)
        return [show_reading(reading) for reading in self._visuals if label_key(reading.label) in keys]
