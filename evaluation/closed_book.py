"""Closed-book probing (EXP-Bench 4.2): can a model state the outcome without repository, data or method?

The model is asked through `pipeline.llm` for the conclusion and for each expected number, by metric and conditions. A
number counts when it lies in the claim's band. What guessing gives is measured on the same answers: the share of hits
when every answer is held against the other claims of the same metric. Much more than that is evidence of memory; the
probe says nothing about a model that it did not ask, and there is no keyless form of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Final

from pydantic import Field

from evaluation.task import EvaluationTask
from evaluation.verdicts import Grader
from pipeline.llm import ModelClient, Request, load_prompt
from pipeline.schema import Record
from pipeline.task import NumericClaim, Verdict

__all__ = ["ClosedBookAnswer", "ClosedBookProbe", "RecalledNumber", "probe_closed_book"]

_PROMPT: Final = ("evaluation.prompts", "closed_book")
_NO_NUMBERS: Final = "(none; state the conclusion only)"


class RecalledNumber(Record):
    """One quantity of the answer."""

    id: str
    value: float | None = None


class ClosedBookAnswer(Record):
    """What the model is asked for."""

    remembered: bool
    conclusion: str
    numbers: tuple[RecalledNumber, ...] = ()


class ClosedBookProbe(Record):
    """The answer held against the ground truth."""

    task: str
    grader: Grader
    """Who was asked; `engine` is always `model`."""
    remembered: bool
    """What the model says of itself."""
    conclusion: str
    """To be judged like any conclusion."""
    numbers: tuple[tuple[str, float | None, Verdict], ...] = ()
    """(claim, answer, in the band?); unknown where the model gave none."""
    hits: float | None = Field(default=None, ge=0, le=1)
    """Share of all claims that were hit; None: the task has no numeric claims."""
    chance: float | None = Field(default=None, ge=0, le=1)
    """The same share when answers are held against other claims of the same metric; None: there are no others."""


def probe_closed_book(task: EvaluationTask, client: ModelClient) -> ClosedBookProbe:
    """Ask a model for the outcome of a task, and compare.

    Args:
        task: question and title are shown, and what the expected numbers measure; never their values.
        client: the model that is probed.

    Raises:
        ModelError: the model gave no answer, or none that fits; nothing is known then.
        BudgetError: a budget does not allow the call.
    """
    claims = task.claims
    prompt = load_prompt(*_PROMPT)
    messages = prompt.render(
        title=task.public.paper.title,
        question=task.public.question,
        items="\n".join(_item(claim) for claim in claims) or _NO_NUMBERS,
    )
    answer = client.structured(Request(messages=messages, prompt=prompt.ref), ClosedBookAnswer)
    given = {number.id: number.value for number in answer.value.numbers}
    return ClosedBookProbe(
        task=task.id,
        grader=Grader(engine="model", model=answer.reply.model, prompts=((prompt.name, prompt.digest),)),
        remembered=answer.value.remembered,
        conclusion=answer.value.conclusion,
        numbers=tuple((claim.id, given.get(claim.id), _verdict(claim, given.get(claim.id))) for claim in claims),
        hits=sum(_hit(claim, given.get(claim.id)) for claim in claims) / len(claims) if claims else None,
        chance=_chance(claims, given),
    )


def _item(claim: NumericClaim) -> str:
    conditions = ", ".join(f"{condition.name} = {condition.value}" for condition in claim.conditions)
    unit = f" in {claim.unit}" if claim.unit else ""
    return f"- {claim.id}: {claim.metric}{unit}" + (f" ({conditions})" if conditions else "")


def _hit(claim: NumericClaim, value: float | None) -> bool:
    return value is not None and claim.band.holds(value)


def _verdict(claim: NumericClaim, value: float | None) -> Verdict:
    if value is None:
        return Verdict.UNKNOWN
    return Verdict.PASS if claim.band.holds(value) else Verdict.FAIL


def _chance(claims: Sequence[NumericClaim], given: dict[str, float | None]) -> float | None:
    """Hits of each answer among the claims of the same metric that it was not given for."""
    pairs = [
        (one, other) for one, other in permutations(claims, 2) if one.metric == other.metric and one.unit == other.unit
    ]
    if not pairs:
        return None
    return sum(_hit(other, given.get(one.id)) for one, other in pairs) / len(pairs)
