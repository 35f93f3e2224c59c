"""A reader chooses where the tasks of one repository are carried out: all asked together, in one conversation.

It sees the map of the repository and asks for what it needs; the ranking by rules is one of its tools. Its answer is
checked (`pipeline.reader.gate`), sent back at most twice, and given up task by task: then the deterministic result
stands, with a problem that says so. How sure a chain is comes from the same calibrated measure as without a model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from pipeline.llm import TOOL_NOTICE, Message, ModelClient, TextPart, load_prompt, user
from pipeline.llm.prompts import Prompt, fence_of
from pipeline.locator.confidence import measure
from pipeline.locator.index import RepositoryIndex
from pipeline.locator.locate import Chain, Location
from pipeline.locator.query import QueryWords, TaskQuery
from pipeline.locator.ranking import rank
from pipeline.paper import Document
from pipeline.progress import Reporter
from pipeline.reader.gate import Choice, ChosenFile, Gate, TaskChoice, usage_of
from pipeline.reader.loop import Conversation, LoopLimits, converse
from pipeline.reader.map import repository_map
from pipeline.reader.tools import Toolbox
from pipeline.schema import Problem, Record, Severity
from pipeline.survey import list_candidates
from pipeline.task import NotFound, SourceScript
from pipeline.text import shorten
from pipeline.tracing.lines import FileLines

__all__ = ["Chosen", "batches", "choose", "choose_prompt", "choosing_limits"]

_COMPONENT: Final = "reader.choose"
_STAGE: Final = "locate"
_TOGETHER: Final = 8
_ORDER: Final = {"wrapper": 0, "config": 1, "entry": 2, "library": 3, "document": 4}


class Chosen(Record):
    """What was decided for one task."""

    location: Location
    accepted: bool
    """Is it the reader's decision? False: the deterministic one, because the reader's did not hold."""


def batches(count: int) -> list[range]:
    """Which of so many tasks are asked together: all, or parts of equal size of at most eight."""
    parts = math.ceil(count / _TOGETHER)
    return [range(count * part // parts, count * (part + 1) // parts) for part in range(parts)]


def choosing_limits(count: int) -> LoopLimits:
    """Limits for so many tasks together: every turn sends everything again, so what is read grows with the tasks."""
    return LoopLimits(turns=5, calls_per_turn=16, result_characters=12_000, characters=10_000 + 6_000 * count)


def choose_prompt() -> Prompt:
    """The prompt of a choice."""
    return load_prompt("pipeline.reader.prompts", "choose")


def choose(
    index: RepositoryIndex,
    tasks: Sequence[TaskQuery],
    rankings: Sequence[Location],
    *,
    client: ModelClient,
    document: Document | None,
    reporter: Reporter,
    limits: LoopLimits | None = None,
    keep: Callable[[Conversation[Choice], range], None] | None = None,
) -> list[Chosen]:
    """Let a reader choose the files and commands of the tasks of one repository.

    Args:
        index: the repository, from `build_index`.
        tasks: what to look for; asked together, in parts where they are many (`batches`).
        rankings: the deterministic result of each, from `locate`.
        client: the model; its calls count in the current budget.
        document: the paper for look-ups; None: none.
        reporter: notes of stage `locate`.
        limits: of one conversation: turns, calls, characters and money; None: those of `choosing_limits`.
        keep: told the whole way to some of the tasks, or what there is of one that is cut short.

    Returns:
        A decision for each task, in order: the reader's (reasons begin with `model:`), or the ranking's with a problem
        of component `reader.choose` where the model refused, had no room, or gave no answer that held.

    Raises:
        ModelError: the endpoint failed, which says nothing about the tasks.
        BudgetError: the budget does not allow the next call.
    """
    shown = repository_map(index, list_candidates(index, document))
    files = FileLines(index.snapshot)
    chosen: list[Chosen] = []
    for batch in batches(len(tasks)):
        asked = [tasks[number] for number in batch]
        toolbox = Toolbox(index, files, document)
        toolbox.flag("the map", shown)
        for number, task in enumerate(asked, 1):
            toolbox.flag(f"task {number}", task.text)
        gate = Gate(index, files, len(asked), toolbox.searched)
        told = _of(batch, keep)
        talk = converse(
            client, _beginning(shown, asked), tools=toolbox.tools, answer=Choice, check=gate.check,
            limits=limits or choosing_limits(len(asked)), prompt=choose_prompt().ref, reporter=reporter, stage=_STAGE,
            cut=told,
        )  # fmt: skip
        if talk.steps:
            told(talk)
        shared = [*toolbox.flagged, *([_shortened(talk.left_out)] if talk.left_out else [])]
        for number, (task, place) in enumerate(zip(asked, batch, strict=True), 1):
            ranking, answer = rankings[place], gate.held.get(number)
            if answer is None:
                message = f"the deterministic ranking stands, because the model gave no answer that held: {talk.reason}"
                problem = Problem(component=_COMPONENT, where="decision", message=message)
                reporter.note(_STAGE, message)
                location = ranking.evolve(problems=(*ranking.problems, problem, *shared))
            else:
                location = _location(answer, index, task, ranking, toolbox.searched, shared, client.config.model)
            chosen.append(Chosen(location=location, accepted=answer is not None))
    return chosen


def _of(
    batch: range, keep: Callable[[Conversation[Choice], range], None] | None
) -> Callable[[Conversation[Choice]], None]:
    return lambda talk: keep(talk, batch) if keep is not None else None


def _beginning(shown: str, tasks: Sequence[TaskQuery]) -> tuple[Message, ...]:
    """System and map first, the same for all tasks of a repository, then the tasks."""
    text = "\n\n".join(_task(number, task) for number, task in enumerate(tasks, 1))
    part = TextPart(text=text, fence=fence_of("tasks", text))
    return (
        *choose_prompt().render(notice=TOOL_NOTICE, map=shown),
        user(f"The tasks, {len(tasks)} of them; `submit` takes a decision on each:\n", part),
    )


def _task(number: int, query: TaskQuery) -> str:
    parts = [f"Task {number}. Question: {query.question}"]
    told = {"Method": query.method, "Expected outcome": query.expected, "Metrics": ", ".join(query.metrics),
            "In the paper": ", ".join(query.labels)}  # fmt: skip
    return "\n".join([*parts, *(f"{name}: {text}" for name, text in told.items() if text)])


# --- from the answer to the location ---------------------------------------------------------------------------------


def _location(
    answer: TaskChoice, index: RepositoryIndex, query: TaskQuery, ranking: Location, searched: Sequence[str],
    shared: Sequence[Problem], model: str,
) -> Location:  # fmt: skip
    own = ranking.chain.problems if ranking.chain is not None else ()  # of commands that the reader's replace
    problems = [*(problem for problem in ranking.problems if problem not in own), *shared]
    decided = ranking.chain.entries if ranking.chain is not None else ()
    if not answer.files:
        if decided:
            chance = ranking.chain.confidence if ranking.chain is not None else 0.0
            problems.append(_against(f"the deterministic search proposes {', '.join(decided)} (probability "
                                     f"{chance:.2f})"))  # fmt: skip
        reason = f"model {model}: {answer.not_found.strip()}"
        looked = (*searched, *(ranking.not_found.searched if ranking.not_found else ()))
        belongs = 1.0 - ranking.confidence if ranking.chain is not None else ranking.confidence
        return Location(
            ranked=ranking.ranked, chain=None, not_found=NotFound(reason=reason, searched=looked),
            confidence=round(belongs, 4), problems=tuple(problems),
        )  # fmt: skip
    scores = rank(index, QueryWords.of(query))
    chosen = [_source(file, scores.score(file.path)) for file in answer.files]
    run = [source for source in chosen if source.role != "document"]
    chain = Chain(
        sources=tuple(sorted(run or chosen, key=lambda source: _ORDER[source.role])),
        usage=tuple(usage_of(step) for step in answer.commands),
        confidence=round(measure(index, query).chance, 4),
    )
    others = [item for item in (ranking.chain, *ranking.alternatives) if item is not None]
    if set(decided) != set(chain.entries):
        named = ", ".join(decided) if decided else "not_found"
        told = ", ".join(source.path for source in chosen)
        problems.append(_against(f"the deterministic search decided {named}, the model {told}"))
    paths = {source.path for source in chosen}
    return Location(
        ranked=(*chosen, *(file for file in ranking.ranked if file.path not in paths)),
        chain=chain,
        alternatives=tuple(item for item in others if set(item.entries) != set(chain.entries)),
        confidence=chain.confidence,
        problems=tuple(problems),
    )


def _source(file: ChosenFile, score: float) -> SourceScript:
    return SourceScript(
        path=file.path, role=file.role, score=round(score, 4),
        reasons=(f"model: {shorten(file.why, 300)} ({', '.join(file.lines)})",),
    )  # fmt: skip


def _shortened(characters: int) -> Problem:
    message = f"{characters} characters of what the tools had shown were left out for the model's context window"
    return Problem(component=_COMPONENT, where="conversation", message=message, severity=Severity.INFO)


def _against(message: str) -> Problem:
    """Model and deterministic search disagree: the reviewer sees both."""
    return Problem(
        component=_COMPONENT, where="decision", message=f"engines disagree: {message}", severity=Severity.WARNING
    )
