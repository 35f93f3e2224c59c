"""Grading analysis and code with a model, by the task's own rubric (PRBench 4.1).

One question per draw; a panel's score is the median of its draws. Tables and completeness are never asked about: they
are computed. A score without a quote that exists is no score; a failure of the endpoint leaves a dimension unknown.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from evaluation.families.table.answers import DimensionAnswer, RubricAnswer
from evaluation.families.table.handed_in import HandedIn
from evaluation.families.table.records import Dimension, Kind, TableTask
from evaluation.integrity.material import normalised
from evaluation.judges.answers import refuse_other_items
from evaluation.verdicts import Finding, Grader, ViolationKind
from pipeline.llm import ModelClient, ModelError, Prompt, Request, load_prompt
from pipeline.progress import Reporter
from pipeline.schema import Problem
from pipeline.task import Verdict

__all__ = ["ModelGrades", "asked_of_model", "grade_with_model"]

_PROMPT: Final = "grade_rubric"
_EMPTY: Final = "(nothing)"


@dataclass(slots=True)
class ModelGrades:
    """What the model said."""

    scores: dict[str, tuple[float | None, str]] = field(default_factory=dict)
    """Dimension -> (score, why); None: unknown."""
    findings: list[Finding] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def asked_of_model(dimensions: Sequence[Dimension]) -> tuple[Dimension, ...]:
    """The dimensions that need a reader."""
    return tuple(item for item in dimensions if item.kind not in {Kind.DATA, Kind.COMPLETENESS})


def grader_of(client: ModelClient, panel: int, version: str) -> Grader:
    """Who grades."""
    prompt = _prompt().ref
    return Grader(
        engine="panel" if panel > 1 else "model", model=client.config.model, prompts=((prompt.name, prompt.digest),),
        version=version,
    )  # fmt: skip


def grade_with_model(
    task: TableTask, handed_in: HandedIn, tables: str, client: ModelClient, panel: int, reporter: Reporter
) -> ModelGrades:
    """Ask for the grades of all dimensions that need a reader.

    Args:
        task: rubric and reference.
        handed_in: analysis and code.
        tables: in words, how the tables compare.
        client: the model.
        panel: draws.
        reporter: progress.

    Raises:
        BudgetError, ModelError: see `ModelClient.structured`; failures of the endpoint become unknown scores.
    """
    asked = asked_of_model(task.dimensions)
    result = ModelGrades()
    if not asked:
        return result
    inputs = _inputs(task, asked, handed_in, tables)
    quoted = normalised("\n".join([inputs["analysis"], inputs["code"]]))
    answers: list[RubricAnswer] = []
    reporter.start("judge", panel)
    for draw in range(panel):
        answers += _draw(asked, inputs, client, draw, result)
        reporter.step("judge", f"rubric, draw {draw + 1} of {panel}")
    reporter.end("judge", f"{len(answers)} answer(s)")
    for dimension in asked:
        given = [item for answer in answers for item in answer.grades if item.dimension == dimension.name]
        result.scores[dimension.name] = _decided(dimension.name, given, quoted, result)
    result.findings += _fabrication(answers, panel, quoted)
    return result


def _prompt() -> Prompt:
    return load_prompt("evaluation.families.table.prompts", _PROMPT)


def _inputs(task: TableTask, asked: Sequence[Dimension], handed_in: HandedIn, tables: str) -> dict[str, str]:
    programs = handed_in.programs
    documents = handed_in.of(task.expected.analysis) or {
        path: text for path, text in sorted(handed_in.texts.items()) if path.endswith(".md")
    }
    return {
        "rubric": "\n\n".join(f"{item.name} (weight {item.weight:g})\n{item.description.strip()}" for item in asked),
        "reference": task.metadata or _EMPTY,
        "reference_code": _files(task.reference_code()),
        "analysis": _files(documents),
        "code": _files(programs),
        "data": tables or _EMPTY,
    }


def _files(texts: Mapping[str, str]) -> str:
    return "\n\n".join(f"--- {path}\n{text}" for path, text in sorted(texts.items())) or _EMPTY


def _draw(
    asked: Sequence[Dimension], inputs: Mapping[str, str], client: ModelClient, draw: int, result: ModelGrades
) -> list[RubricAnswer]:
    prompt = _prompt()
    request = Request(
        messages=prompt.render(**inputs), parameters=client.config.parameters.evolve(sample=draw), prompt=prompt.ref
    )
    names = frozenset(item.name for item in asked)
    try:
        value = client.structured(request, RubricAnswer, check=partial(_complete, wanted=names)).value
    except ModelError as error:
        if error.hits_every_call:
            raise
        result.problems.append(_problem(f"draw {draw + 1}", f"no answer of the model: {error.cause}"))
        return []
    return [value]


def _complete(value: RubricAnswer, wanted: frozenset[str]) -> None:
    refuse_other_items((item.dimension for item in value.grades), wanted, "dimensions")


def _decided(name: str, given: Sequence[DimensionAnswer], quoted: str, result: ModelGrades) -> tuple[float | None, str]:
    sound = []
    for item in given:
        quote = normalised(item.quote)
        if item.score > 0 and (not quote or quote not in quoted):
            result.problems.append(
                _problem(name, "a score was not counted: its quote does not occur in what was graded")
            )
        else:
            sound.append(item)
    if not sound:
        return None, "the model gave no score that can be counted"
    score = float(statistics.median(item.score for item in sound))
    nearest = min(sound, key=lambda item: abs(item.score - score))
    draws = f" (median of {len(sound)} draws)" if len(sound) > 1 else ""
    return score, f"{nearest.justification.strip()}{draws}"


def _fabrication(answers: Sequence[RubricAnswer], panel: int, quoted: str) -> list[Finding]:
    """A violation when most draws say so and quote a line that exists; otherwise a suspicion."""
    said = [answer for answer in answers if answer.fabricated]
    shown = [answer for answer in said if (quote := normalised(answer.fabrication_quote)) and quote in quoted]
    if not said:
        return []
    first = (shown or said)[0]
    return [
        Finding(
            kind=ViolationKind.FABRICATED_RESULT,
            verdict=Verdict.FAIL if len(shown) * 2 > max(panel, len(answers)) else Verdict.UNKNOWN,
            where="judge: rubric",
            quote=first.fabrication_quote[:200] if shown else "",
            reason=first.fabrication_reason.strip() or "the judging model says that data were not computed",
            engine="model",
        )
    ]


def _problem(where: str, message: str) -> Problem:
    return Problem(component="families.table.judge", where=where, message=message)
