"""Requirements in words with a model: steps that ran are worded anew, their spans stay.

The model sees each step's own lines and returns one text a step. It cannot add, drop or move a step or a span; numbers
and names in backticks that stand neither in the lines nor in the wording of the code are sent back. Where no valid
answer comes, that wording stays and a problem says so. Failures of the endpoint or the budget are raised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from pydantic import Field

from pipeline.errors import FailureKind
from pipeline.llm import ContextPolicy, ModelClient, ModelError, PromptRef, Request, addressed_to_models, load_prompt
from pipeline.progress import Reporter
from pipeline.repository import Snapshot
from pipeline.schema import Problem, Record, Severity
from pipeline.task import CodeEvidence, Requirement
from pipeline.text import shorten
from pipeline.tracing.lines import FileLines

__all__ = ["Described", "StepWording", "StepWordings", "describe_requirements"]

_COMPONENT: Final = "requirements.wording"
_STAGE: Final = "validate"
_BATCH_STEPS: Final = 8
_BATCH_CHARACTERS: Final = 24_000
"""About 7,000 tokens of code a question: eight steps of a published task have 2,000 to 12,000 characters."""
_SPAN_LINES: Final = 150
_LONGEST: Final = 500
_NUMBER: Final = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*(?:e-?\d+)?(?![\w])", re.I)
_WORDS: Final = {"1", "2", "3"}
"""Numbers that prose uses for counting (`in 2 parts`)."""


class StepWording(Record):
    """What one step does."""

    number: int
    text: str = Field(min_length=10, max_length=_LONGEST)


class StepWordings(Record):
    """The steps that were asked for."""

    steps: tuple[StepWording, ...]


class Described(Record):
    """Requirements with the texts of a model, and where they come from."""

    requirements: tuple[Requirement, ...]
    """As many as were given, in the same order, with the same spans."""
    reworded: tuple[bool, ...]
    """For each: is the text the model's? False: that of the code."""
    model: str
    prompt: PromptRef
    """For the task's provenance."""
    problems: tuple[Problem, ...] = ()


def describe_requirements(
    requirements: Sequence[Requirement], snapshot: Snapshot, *, client: ModelClient, reporter: Reporter
) -> Described:
    """Word requirements anew with a model.

    Args:
        requirements: from `requirements_of_run`.
        snapshot: the repository that ran.
        client: the model; its calls count in the current budget.
        reporter: notes of stage `validate`.

    Returns:
        The requirements; those whose wording was not accepted keep that of the code, with a problem.

    Raises:
        ModelError: the endpoint failed (`INVALID_OUTPUT` and `REFUSAL` are not raised: the wording stays).
        BudgetError: the budget does not allow the next call.
    """
    prompt = load_prompt("pipeline.requirements.prompts", "describe_steps")
    files = FileLines(snapshot)
    shown = [_shown(number, step, files) for number, step in enumerate(requirements, 1)]
    texts: dict[int, str] = {}
    problems: list[Problem] = [problem for step in requirements for problem in _addressed(step, files)]
    for batch in _batches([text for text, _ in shown]):
        numbers = [number + 1 for number in batch]
        reporter.note(_STAGE, f"wording steps {numbers[0]} to {numbers[-1]} of {len(requirements)}")
        left_out = [f"step {number}: {shown[number - 1][1]} lines" for number in numbers if shown[number - 1][1]]
        request = Request(
            messages=prompt.render(steps=[shown[number][0] for number in batch], numbers=", ".join(map(str, numbers))),
            prompt=prompt.ref,
        )
        sources = {number: _source(requirements[number - 1], files) for number in numbers}
        try:
            answer = client.structured(
                request, StepWordings, check=partial(_check, sources=sources), policy=ContextPolicy.SHRINK
            )
        except ModelError as error:
            if error.kind not in {FailureKind.INVALID_OUTPUT, FailureKind.REFUSAL}:
                raise
            problems.append(_kept(numbers, error.cause))
            continue
        texts |= {step.number: " ".join(step.text.split()) for step in answer.value.steps}
        if answer.reply.left_out_characters:
            left_out.append(f"{answer.reply.left_out_characters} characters for the context window")
        if left_out:
            problems.append(_unread(numbers, "; ".join(left_out)))
    worded = tuple(step.evolve(text=texts.get(number, step.text)) for number, step in enumerate(requirements, 1))
    return Described(
        requirements=worded,
        reworded=tuple(number in texts for number in range(1, len(requirements) + 1)),
        model=client.config.model,
        prompt=prompt.ref,
        problems=tuple(dict.fromkeys(problems)),
    )


def _shown(number: int, step: Requirement, files: FileLines) -> tuple[str, int]:
    """A step as the model sees it, and how many of its lines are left out."""
    parts = [f"step {number}, in the words of its code: {step.text}"]
    left_out = 0
    for span in step.spans:
        lines = _lines(span, files)
        parts += lines[:_SPAN_LINES]
        if len(lines) > _SPAN_LINES:
            left_out += len(lines) - _SPAN_LINES
            parts.append(f"[{len(lines) - _SPAN_LINES} more lines of this step are not shown]")
    return "\n".join(parts), left_out


def _lines(span: CodeEvidence, files: FileLines) -> list[str]:
    return [text for number, text in files.lines(span.path) if span.start <= number <= span.end]


def _source(step: Requirement, files: FileLines) -> str:
    return "\n".join([step.text, *(line for span in step.spans for line in _lines(span, files))])


def _batches(texts: Sequence[str]) -> Iterator[range]:
    start, size = 0, 0
    for number, text in enumerate(texts):
        if number > start and (number - start >= _BATCH_STEPS or size + len(text) > _BATCH_CHARACTERS):
            yield range(start, number)
            start, size = number, 0
        size += len(text)
    if texts:
        yield range(start, len(texts))


def _check(value: StepWordings, *, sources: dict[int, str]) -> None:
    """See `describe_requirements`: what is wrong with the texts, as a ValueError for the model."""
    given = [step.number for step in value.steps]
    if sorted(given) != sorted(sources):
        raise ValueError(f"exactly the steps {sorted(sources)} are wanted, once each; given were {sorted(given)}")
    wrong = []
    for step in value.steps:
        source = sources[step.number]
        known = set(_NUMBER.findall(source)) | _WORDS
        invented = sorted({number.rstrip(".,") for number in _NUMBER.findall(step.text)} - known)
        if invented:
            wrong.append(f"step {step.number} states {', '.join(invented)}, which its lines do not hold")
        low = source.lower()
        names = sorted({name for name in re.findall(r"`([^`]+)`", step.text) if name.lower() not in low})
        if names:
            wrong.append(f"step {step.number} names {', '.join(names)}, which its lines do not hold")
    if wrong:
        raise ValueError("; ".join(wrong[:8]))


def _addressed(step: Requirement, files: FileLines) -> Iterator[Problem]:
    for span in step.spans:
        for found in addressed_to_models("\n".join(_lines(span, files))):
            message = f"text that {found.kind} reached the model as data: {found.quote!r}"
            yield Problem(component=_COMPONENT, where=f"{span.path}:{span.start + found.line - 1}", message=message)


def _kept(numbers: Sequence[int], cause: str) -> Problem:
    message = f"the wording of the code stays, because the model gave no valid one: {shorten(cause, 300)}"
    return Problem(component=_COMPONENT, where=_where(numbers), message=message)


def _unread(numbers: Sequence[int], what: str) -> Problem:
    message = f"the model did not see all lines of these steps ({what})"
    return Problem(component=_COMPONENT, where=_where(numbers), message=message, severity=Severity.INFO)


def _where(numbers: Sequence[int]) -> str:
    return f"requirements {numbers[0]} to {numbers[-1]}"
