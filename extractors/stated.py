"""Drafts from sentences: numbers that the paper's sentences state and that a run gave back.

What a number is, the program says: the name that it prints or stores the number under is the metric. The question names
these, and the sections that speak of them; the sentences themselves stay hidden, as they tell the outcome in words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from extractors._reading import Line, Reading
from extractors._roles import roles_of
from extractors.answers import states_answer
from extractors.claims import normalize, printed_band
from extractors.drafting import DraftResult, instructions, unique_slugs
from extractors.method import Method
from extractors.naming import is_numeric
from extractors.outcome import compose_expected
from extractors.prose import join_names, shown_names
from pipeline.match.records import ProseMatch
from pipeline.paper import Document
from pipeline.schema import Problem, Severity
from pipeline.task import Condition, DesignVariable, Draft, NumericClaim
from pipeline.text import slug
from pipeline.validation.observation import Observation

__all__ = ["Said", "draft_sentences"]

_COMPONENT: Final = "draft"
_FEWEST: Final = 2
"""Numbers of sentences from which on a task is worth anybody's time; each of them is rare by itself."""
_CONFIDENCE: Final = 0.4
"""Below a table's: nobody but the program has named the numbers."""


class Said(NamedTuple):
    """Numbers of sentences that one run gave."""

    source: str
    """Name of the run."""
    matches: tuple[ProseMatch, ...]
    seen: Mapping[str, Observation]
    """Place -> the number there, with what the program calls it."""
    code: str
    """Text of the files that ran for it."""


def draft_sentences(document: Document, said: Sequence[Said]) -> tuple[DraftResult, list[Said]]:
    """One draft for each run, in their order; where none can be made, the reason is among the problems.

    Args:
        document: the structured reading.
        said: what the runs gave.

    Returns:
        The drafts with problems; and those of `said` that they were made from.
    """
    reading = Reading(document)
    method = Method(reading)
    drafts: list[Draft] = []
    grounds: list[Said] = []
    problems: list[Problem] = []
    for ground in said:
        found = list(_claims(reading, ground))
        alone = Counter(claim.metric for claim, _ in found)
        # what else stands in a record may be an outcome: it is told only where names are needed to tell numbers apart
        found = [(c if alone[c.metric] > 1 else c.evolve(conditions=()), line) for c, line in found]
        named = Counter((claim.metric, claim.conditions) for claim, _ in found)
        kept = [(claim, line) for claim, line in found if named[claim.metric, claim.conditions] == 1]
        if len(kept) < _FEWEST:
            why = "what its program prints does not name the numbers of sentences that it gives"
            problems.append(_no_task(ground, why))
            continue
        draft = _draft(reading, method, ground, kept)
        given_away = states_answer(draft.question, draft) or states_answer(draft.agent_instructions, draft)
        if given_away:
            problems.append(_no_task(ground, f"its names would give the answer away ({given_away[0]})"))
            continue
        message = "to check: its numbers are named as the program names them; does the question say what they are?"
        problems.append(Problem(component=_COMPONENT, where=draft.slug, message=message))
        drafts.append(draft)
        grounds.append(ground)
    return DraftResult(drafts=tuple(unique_slugs(drafts)), problems=tuple(problems)), grounds


def _no_task(ground: Said, why: str) -> Problem:
    return Problem(component=_COMPONENT, where=ground.source, message=f"no task: {why}", severity=Severity.INFO)


def _claims(reading: Reading, ground: Said) -> Iterator[tuple[NumericClaim, Line]]:
    """The numbers that a program names, with their sentences."""
    passages = {passage.id: number for number, passage in enumerate(reading.document.passages)}
    for number, match in enumerate(ground.matches, 1):
        seen = ground.seen[match.place]
        within = passages.get(match.printed.rpartition(":")[0])
        line = next((item for item in reading.lines if item.passage == within and match.text in item.text), None)
        metric = normalize(" ".join(seen.labels[-1:]).replace("_", " ")).strip(" :=")
        if line is None or not any(letter.isalpha() for letter in metric):
            continue
        conditions = [(name, value) for name, value in seen.coordinates if name and value and not is_numeric(value)]
        told = {value for _, value in conditions}
        conditions += [("part", label) for label in seen.labels[:-1] if label and label not in told]
        once = dict(conditions)
        claim = NumericClaim(
            id=f"c{number}", metric=metric, value=match.value, text=match.text, decimals=match.decimals,
            unit=match.unit, conditions=tuple(Condition(name=name, value=value) for name, value in once.items()),
            band=printed_band(match.value, 10.0**-match.decimals, None), evidence=(reading.quote(line),),
            place=match.place, factor=match.factor,
        )  # fmt: skip
        yield claim, line


def _draft(reading: Reading, method: Method, ground: Said, kept: Sequence[tuple[NumericClaim, Line]]) -> Draft:
    claims = tuple(claim for claim, _ in kept)
    lines = list(dict.fromkeys(line for _, line in kept))
    titles = tuple(dict.fromkeys(filter(None, map(reading.section_title, lines))))
    expected = compose_expected(claims, [line.text for line in lines])
    metrics = tuple(dict.fromkeys(claim.metric for claim in claims))
    roles = roles_of(claims)
    steps = method.borne_out(ground.code, expected)
    where = f" of the paper's {join_names([f'“{title}”' for title in titles])}" if titles else ""
    return Draft(
        slug=slug(metrics[0], 60) or "experiment",
        question=f"What does the experiment{where} give for {shown_names(metrics)}?",
        method=" ".join(line.text for line in steps),
        agent_instructions=instructions(claims, roles),
        expected=expected,
        constant=tuple(DesignVariable(name=name, values=(value,)) for name, value in roles.fixed),
        independent=tuple(DesignVariable(name=axis.name, values=axis.values) for axis in roles.axes),
        dependent=tuple(DesignVariable(name=metric) for metric in metrics),
        evidence={
            "question": tuple(reading.quote(line) for line in lines[:1]),
            "method": tuple(reading.quote(line) for line in steps),
            "expected": tuple(reading.quote(line) for line in lines),
        },
        sections=titles,
        confidence=_CONFIDENCE,
    )  # fmt: skip
