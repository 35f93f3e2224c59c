"""The model engine of the failure taxonomy: two passes by prompts (EXP-Bench 4.3).

First pass: batches of evidence of one phase become one-sentence insights. Second pass: batches of insights are assigned
to the failure types found so far, or to new ones. Every answer is checked: each note and each insight is accounted for
exactly as the prompt asks, or the answer is sent back. Texts that many episodes share are asked about once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeVar

from pydantic import Field

from evaluation.failure_evidence import PHASES, FailureEvidence, Phase
from evaluation.failure_rules import Grouped, template
from evaluation.verdicts import Grader
from pipeline.errors import FailureKind
from pipeline.llm import ModelClient, ModelError, Request, load_prompt
from pipeline.progress import Reporter
from pipeline.schema import Problem, Record

__all__ = ["Assignment", "Assignments", "InsightItem", "InsightList", "ModelOutcome", "NewType", "group_by_model"]

_COMPONENT: Final = "evaluation.failures"
_PROMPTS: Final = "evaluation.prompts"
_BATCH: Final = 25
"""Notes or insights a call: about 2,500 tokens, so that no context window is too short and no note is overlooked."""
_GOES_ON: Final = frozenset({FailureKind.REFUSAL, FailureKind.INVALID_OUTPUT, FailureKind.CONTEXT_TOO_LONG})
"""Failures that concern one batch; others (key, quota, network) end the work."""
ItemT = TypeVar("ItemT")


class InsightItem(Record):
    """What one note says."""

    note: int
    insight: str = Field(min_length=1, max_length=400)


class InsightList(Record):
    """Answer of the first pass."""

    insights: tuple[InsightItem, ...]


class NewType(Record):
    """A failure type that did not exist yet."""

    number: int
    name: str = Field(min_length=1, max_length=90)
    description: str = Field(min_length=1, max_length=300)


class Assignment(Record):
    """The type of one insight."""

    insight: int
    type: int


class Assignments(Record):
    """Answer of the second pass."""

    new_types: tuple[NewType, ...] = ()
    assignments: tuple[Assignment, ...]


class ModelOutcome(NamedTuple):
    """Groups, who made them, and what could not be grouped."""

    groups: list[Grouped]
    grader: Grader
    unassigned: int
    problems: tuple[Problem, ...]


class _Insight(NamedTuple):
    text: str
    evidence: tuple[FailureEvidence, ...]


def group_by_model(evidence: Sequence[FailureEvidence], client: ModelClient, reporter: Reporter) -> ModelOutcome:
    """Both passes, phase by phase.

    Raises:
        ModelError: nothing at all could be answered, or a failure that the next call would meet again.
        BudgetError: the budget does not allow the next call.
    """
    work = _Work(client, reporter)
    groups: list[Grouped] = []
    for phase in PHASES:
        own = [item for item in evidence if item.phase == phase]
        groups += work.types(phase, work.insights(phase, own))
    if evidence and not groups and work.last is not None:
        raise work.last
    prompts = tuple((name, load_prompt(_PROMPTS, name).digest) for name in ("failure_insights", "failure_types"))
    grader = Grader(engine="model", model=client.config.model, prompts=prompts)
    return ModelOutcome(groups, grader, work.unassigned, tuple(work.problems))


class _Work:
    """The calls of one taxonomy, and what went wrong in them."""

    def __init__(self, client: ModelClient, reporter: Reporter) -> None:
        self.client, self.reporter = client, reporter
        self.problems: list[Problem] = []
        self.unassigned = 0
        self.last: ModelError | None = None

    def insights(self, phase: Phase, evidence: Sequence[FailureEvidence]) -> list[_Insight]:
        """First pass over one phase."""
        shared: dict[str, list[FailureEvidence]] = {}
        for item in evidence:
            shared.setdefault(template(item.text), []).append(item)
        notes = [tuple(shared[text]) for text in sorted(shared)]
        found: list[_Insight] = []
        for batch in _batches(notes):
            self.reporter.note("failures", f"{phase}: insights from {len(batch)} notes")
            numbered = [f"[{number}] {items[0].text}" for number, items in enumerate(batch, 1)]
            request = Request(
                messages=load_prompt(_PROMPTS, "failure_insights").render(
                    phase=phase, count=str(len(batch)), analyses=numbered
                ),
                prompt=load_prompt(_PROMPTS, "failure_insights").ref,
            )
            try:
                answer = self.client.structured(
                    request, InsightList, check=partial(_check_insights, count=len(batch))
                ).value
            except ModelError as error:
                self._lost(error, phase, sum(len(items) for items in batch))
                continue
            found += [_Insight(item.insight, batch[item.note - 1]) for item in answer.insights]
        return found

    def types(self, phase: Phase, insights: Sequence[_Insight]) -> list[Grouped]:
        """Second pass over one phase."""
        types: dict[int, NewType] = {}
        members: dict[int, list[FailureEvidence]] = {}
        for batch in _batches(insights):
            self.reporter.note("failures", f"{phase}: {len(batch)} insights into types ({len(types)} so far)")
            known = [f"{item.number}. {item.name}: {item.description}" for item in types.values()] or ["(none yet)"]
            prompt = load_prompt(_PROMPTS, "failure_types")
            numbered = [f"[{number}] {insight.text}" for number, insight in enumerate(batch, 1)]
            request = Request(
                messages=prompt.render(phase=phase, count=str(len(batch)), types=known, insights=numbered),
                prompt=prompt.ref,
            )
            try:
                answer = self.client.structured(
                    request,
                    Assignments,
                    check=partial(_check_types, count=len(batch), old=frozenset(types)),
                ).value
            except ModelError as error:
                self._lost(error, phase, sum(len(insight.evidence) for insight in batch))
                continue
            types |= {item.number: item for item in answer.new_types}
            for item in answer.assignments:
                members.setdefault(item.type, []).extend(batch[item.insight - 1].evidence)
        return [
            Grouped(phase, types[number].name, types[number].description, False, tuple(items))
            for number, items in sorted(members.items())
        ]

    def _lost(self, error: ModelError, phase: Phase, count: int) -> None:
        if error.kind not in _GOES_ON:
            raise error
        self.last = error
        self.unassigned += count
        message = f"{count} pieces of evidence are in no failure type: {error.cause}"
        self.problems.append(Problem(component=_COMPONENT, where=phase, message=message))


def _check_insights(value: InsightList, *, count: int) -> None:
    said = {item.note for item in value.insights}
    strange = sorted(said - set(range(1, count + 1)))
    silent = sorted(set(range(1, count + 1)) - said)
    if strange:
        raise ValueError(f"there are no notes with the numbers {strange}")
    if silent:
        raise ValueError(f"the notes {silent} have no insight")


def _check_types(value: Assignments, *, count: int, old: frozenset[int]) -> None:
    new = [item.number for item in value.new_types]
    if len(set(new)) != len(new) or old & set(new):
        raise ValueError(f"new types need new, different numbers; taken: {sorted(old)}")
    given = [item.insight for item in value.assignments]
    if sorted(given) != list(range(1, count + 1)):
        raise ValueError(f"every insight from 1 to {count} must be assigned exactly once")
    used = {item.type for item in value.assignments}
    if used - old - set(new):
        raise ValueError(f"there are no types with the numbers {sorted(used - old - set(new))}")
    if set(new) - used:
        raise ValueError(f"the new types {sorted(set(new) - used)} are not used")


def _batches(items: Sequence[ItemT]) -> Iterator[Sequence[ItemT]]:
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]
