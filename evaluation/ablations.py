"""Contamination ablation: leave out a part of how the experiment is set up (EXP-Bench 4.2, "Contamination").

An agent that does as well without half of the set-up knew it beforehand. What is left out is drawn by seed and task,
so that every agent and every repeat misses the same sentences; the ablated task has another digest and is never
compared with the whole one by accident. A tool ablation (Collider-Bench D.1) takes a tool out of the workspace of a
family that has tools instead; what that changes is the family's to say. `evaluation.closed_book` asks the other half
of the question: can a model state the conclusion without any repository?
"""

from __future__ import annotations

import math
import random
import re
from typing import ClassVar, Final

from pydantic import Field

from evaluation.families.base import FamilyRules
from evaluation.families.registry import family_rules
from evaluation.task import EvaluationTask
from extractors._sentences import split_sentences
from pipeline.digests import text_digest
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import Record
from pipeline.task import Family

__all__ = ["AblatedTask", "Ablation", "ablate", "parse_ablation", "units"]

_FIELDS: Final = ("method", "agent_instructions")
"""Where a task says how the experiment is set up: the instructions repeat the method step by step, so leaving a
sentence out of one and not of the other would leave out nothing."""
_ITEM: Final = re.compile(r"\s*(?:[-*\u2022]|\(?\d{1,2}[.)])\s+")


_TOOL: Final = re.compile(r"tool:([a-z0-9][a-z0-9._-]*)")


class Ablation(Record):
    """What is left out, and how much of it."""

    part: str = "method"
    """`method`, or `tool:NAME`."""
    share: float = Field(gt=0, le=1)
    seed: int = 0


class AblatedTask(Record):
    """A task with less set-up, and what it misses (for the graders' side only)."""

    task: EvaluationTask
    omitted: tuple[tuple[str, str], ...]
    """(field, sentence or step), in the order of the text."""
    total: int
    """Sentences and steps that there were."""


def parse_ablation(text: str, *, seed: int = 0) -> Ablation:
    """`method:0.5`: half of the sentences and steps of the method are left out; `tool:NAME`: a tool.

    Raises:
        ExpbenchError: `USAGE`, it is not of this form, or the share is not in (0, 1].
    """
    if _TOOL.fullmatch(text):
        return Ablation(part=text, share=1.0, seed=seed)
    part, _, share = text.partition(":")
    try:
        value = float(share)
    except ValueError:
        value = math.nan
    if part != "method" or not 0 < value <= 1:
        raise ExpbenchError(
            FailureKind.USAGE,
            f"ablation `{text}`",
            "it is not `method:SHARE` with a share above 0 and at most 1, and not `tool:NAME`",
            consequence="Nothing was evaluated",
            next_step="Say for example `--ablate method:0.5` to leave out half of the method",
        )
    return Ablation(part=part, share=value, seed=seed)


class _NoTools(FamilyRules):
    """Of the `experiment` family, whose workspaces are repositories."""

    family: ClassVar[Family] = Family.EXPERIMENT


def units(text: str) -> tuple[tuple[int, int], ...]:
    """Half-open spans of the sentences of a text; each line is split on its own, an item of a list is one step."""
    found: list[tuple[int, int]] = []
    position = 0
    for line in text.splitlines(keepends=True):
        content = line.strip()
        if content and _ITEM.match(line):
            start = position + len(line) - len(line.lstrip())
            found.append((start, start + len(content)))
        else:
            found += [(position + item.start, position + item.end) for item in split_sentences(line)]
        position += len(line)
    return tuple(found)


def ablate(task: EvaluationTask, ablation: Ablation) -> AblatedTask:
    """Leave out sentences and steps of the set-up.

    The number that is left out is the share of all units, rounded half up; which ones depends on the seed and the
    task's id only. Blank lines that an omission leaves behind are removed; everything else stays as it is.

    Args:
        task: the whole task.
        ablation: how much, with which seed.

    Raises:
        ExpbenchError: `USAGE`: the task's family cannot be ablated in this way.
    """
    rules = family_rules(task.public.family)
    if tool := _TOOL.fullmatch(ablation.part):
        changed_task = (rules or _NoTools()).without_tool(task, tool[1])
        return AblatedTask(task=changed_task, omitted=(("tool", tool[1]),), total=1)
    if rules is not None and not rules.text_ablation:
        raise ExpbenchError(
            FailureKind.USAGE,
            f"ablation `{ablation.part}`",
            f"the text of tasks of the {task.public.family.value} family is a file of their workspace",
            consequence="Nothing was evaluated",
            next_step="Leave out a tool instead, with `--ablate tool:NAME`",
        )
    texts = {field: str(getattr(task.public, field)) for field in _FIELDS}
    everything = [(field, span) for field in _FIELDS for span in units(texts[field])]
    count = math.floor(ablation.share * len(everything) + 0.5)
    # a draw of our own from a digest: `hash()` of a text differs from process to process
    drawn = random.Random(int(text_digest(f"{ablation.seed}\0{task.id}")[:16], 16))  # noqa: S311
    chosen = sorted(drawn.sample(range(len(everything)), count))
    omitted = [everything[index] for index in chosen]
    changed = {field: _without(texts[field], [span for name, span in omitted if name == field]) for field in _FIELDS}
    return AblatedTask(
        task=task.evolve(public=task.public.evolve(**changed)),
        omitted=tuple((field, texts[field][start:end]) for field, (start, end) in omitted),
        total=len(everything),
    )


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    if not spans:
        return text
    kept, position = [], 0
    for start, end in sorted(spans):
        kept.append(text[position:start])
        position = end
    kept.append(text[position:])
    lines = (re.sub(r"(?<=\S)[ \t]{2,}", " ", line).rstrip() for line in "".join(kept).splitlines())
    return "\n".join(line for line in lines if line.strip())
