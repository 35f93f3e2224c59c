"""The locator's agent (DESIGN 5.3; EXP-Bench 3.2, stage 2.2): a model checks the ranking with tools of its own.

It starts from that ranking and must justify what it keeps and drops with quotes that exist. Its answer is checked
against the repository, sent back a bounded number of times, and otherwise given up: then the deterministic result
stands, with a problem that says so. How sure the chain is comes from the same calibrated measure as without a model,
never from the model. Failures of the endpoint or the budget are raised: they say nothing about the task. Only with a
sandbox, which the caller gives, can the agent run commands, within a budget of their own; the other tools read.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from typing import Final

from pydantic import Field, ValidationError

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm import (
    TOOL_NOTICE,
    BudgetLimits,
    ContextPolicy,
    Message,
    ModelClient,
    ModelError,
    PromptRef,
    Reply,
    Request,
    ToolCall,
    load_prompt,
    tool_output,
    tool_result,
    user,
)
from pipeline.locator.agent_answer import AgentAnswer, complaints_about, usage_of
from pipeline.locator.agent_runs import AgentSandbox, RunsRecord
from pipeline.locator.agent_tools import SUBMIT, Toolbox, describe_ranking, said
from pipeline.locator.confidence import measure
from pipeline.locator.index import RepositoryIndex
from pipeline.locator.locate import Chain, Location
from pipeline.locator.query import QueryWords, TaskQuery
from pipeline.locator.ranking import rank
from pipeline.paper import Document
from pipeline.progress import Reporter
from pipeline.repository import Snapshot
from pipeline.schema import Problem, Record, Severity, StoredRecord
from pipeline.task import NotFound, SourceScript
from pipeline.text import shorten
from pipeline.tracing.lines import FileLines

__all__ = ["AgentLimits", "AgentRun", "AgentStep", "run_agent"]

_COMPONENT: Final = "locator.agent"
_STAGE: Final = "locate"
_TOP: Final = 15


class AgentLimits(Record):
    """What the agent may do for one task."""

    turns: int = Field(default=24, ge=2)
    """Questions to the model, the last of which only takes the answer. Following one chain by hand (README, entry
    point, configuration, two candidates beside it) takes about ten."""
    calls_per_turn: int = Field(default=8, ge=1)
    repairs: int = Field(default=3, ge=0)
    """How often an answer that does not hold (or a turn without any call) is sent back."""
    result_characters: int = Field(default=12_000, ge=500)
    """Longest result of one tool call; what is left out is said."""
    budget: BudgetLimits = BudgetLimits()
    """Inside the budget that is current."""


class AgentStep(Record):
    """One turn: what the model said and called, and what came back."""

    turn: int
    text: str
    calls: tuple[tuple[str, str], ...]
    """(tool, arguments as JSON)."""
    results: tuple[str, ...]
    exchange: str
    """Key of the recorded exchange."""


class AgentRun(StoredRecord):
    """The result with the way to it."""

    location: Location
    accepted: bool
    """Is the result the model's? False: the deterministic one, because the model's did not hold."""
    model: str
    prompt: PromptRef
    steps: tuple[AgentStep, ...]
    runs: RunsRecord | None = None
    """None: nothing could be executed."""
    ended: str = ""
    """What cut it short (the endpoint, the budget, the user); empty: it came to its own end."""


def run_agent(
    index: RepositoryIndex,
    query: TaskQuery,
    *,
    client: ModelClient,
    snapshot: Snapshot,
    document: Document | None,
    ranking: Location,
    limits: AgentLimits,
    reporter: Reporter,
    runner: AgentSandbox | None = None,
    cut: Callable[[AgentRun], None] | None = None,
) -> AgentRun:
    """Find the chain of scripts that answers a task, with a model.

    Args:
        index: the repository, from `build_index`.
        query: the task.
        client: the model; its calls count in the current budget.
        snapshot: the repository that `index` was made from.
        document: the paper for look-ups; None: none.
        ranking: the deterministic result for the same task, from `locate`.
        limits: turns, calls, repairs and money.
        reporter: notes of stage `locate`.
        runner: a sandbox with a budget, for the tool `run`; None: the agent only reads.
        cut: told the way so far, with `ranking` as its result, where it ends before its time; what is raised follows.

    Returns:
        The trajectory, and in `location` the model's chain or `not_found` (reasons begin with `model:`), or `ranking`
        with a problem of component `locator.agent` when the model's answer did not hold.

    Raises:
        ModelError: the endpoint failed (a refusal is an answer that does not hold, and is not raised).
        BudgetError: the budget does not allow the next call.
    """
    files = FileLines(snapshot)
    toolbox = Toolbox(index, files, ranking, document, limits.result_characters, runner)
    conversation = _Conversation(index, query, client, files, toolbox, ranking, limits, reporter, runner)
    with contextlib.ExitStack() as stack:
        if limits.budget != BudgetLimits():
            stack.enter_context(client.scope("stage", "locate agent", limits.budget))
        try:
            answer, reason = conversation.hold()
        except (ExpbenchError, KeyboardInterrupt) as error:
            if cut is not None and conversation.steps:
                ended = error.cause if isinstance(error, ExpbenchError) else "interrupted"
                cut(conversation.run(ranking, accepted=False, ended=ended))
            raise
    if runner is not None and runner.problems:
        ranking = ranking.evolve(problems=(*ranking.problems, *runner.problems))
    if conversation.left_out:
        ranking = ranking.evolve(problems=(*ranking.problems, _shortened(conversation.left_out)))
    if answer is None:
        message = f"the deterministic ranking stands, because the model's answer was not accepted: {reason}"
        problem = Problem(component=_COMPONENT, where="decision", message=message)
        location = ranking.evolve(problems=(*ranking.problems, problem, *toolbox.flagged))
        reporter.note(_STAGE, message)
    else:
        location = _location(answer, index, query, ranking, toolbox, client.config.model)
    return conversation.run(location, accepted=answer is not None)


class _Conversation:
    """The turns of one task, until an answer holds or the limits are reached."""

    def __init__(
        self,
        index: RepositoryIndex,
        query: TaskQuery,
        client: ModelClient,
        files: FileLines,
        toolbox: Toolbox,
        ranking: Location,
        limits: AgentLimits,
        reporter: Reporter,
        runner: AgentSandbox | None,
    ) -> None:
        self.prompt = load_prompt("pipeline.locator.prompts", "locate_agent")
        self.steps: list[AgentStep] = []
        self._client, self._files, self._toolbox = client, files, toolbox
        self._limits, self._reporter, self._runner = limits, reporter, runner
        self._candidates = ranking.chain.entries if ranking.chain is not None else ()
        self._repairs = 0
        self._complaint = ""
        self.left_out = 0
        """Characters that the context window had no room for, at most in one question."""
        shown = describe_ranking(ranking, _TOP)
        toolbox.flag("the task", query.text)
        self._messages: list[Message] = [
            *self.prompt.render(
                notice=TOOL_NOTICE,
                turns=str(limits.turns),
                run_tool="`run` executes a command in a sandbox, a few times."
                if toolbox.runs
                else "Nothing is executed.",
                paper_tool="`paper` looks things up in the paper." if toolbox.has_paper else "",
                task=_task(query),
                overview=_overview(index),
                ranking=shown,
            )
        ]

    def run(self, location: Location, *, accepted: bool, ended: str = "") -> AgentRun:
        """The way so far, with its result."""
        return AgentRun(
            location=location, accepted=accepted, model=self._client.config.model, prompt=self.prompt.ref,
            steps=tuple(self.steps), runs=self._runner.record if self._runner is not None else None, ended=ended,
        )  # fmt: skip

    def hold(self) -> tuple[AgentAnswer | None, str]:
        """The accepted answer, or None and why there is none."""
        for turn in range(1, self._limits.turns + 1):
            last = turn == self._limits.turns
            if last:
                self._messages.append(user("This is your last turn: call `submit` now."))
            try:
                reply = self._ask(last)
            except ModelError as error:
                if error.kind is not FailureKind.REFUSAL:
                    raise
                return None, error.cause
            self.left_out = max(self.left_out, reply.left_out_characters)
            self._messages.append(reply.as_message())
            answer = self._answered(turn, reply)
            if answer is not None:
                return answer, ""
            if self._repairs > self._limits.repairs:
                return None, f"it did not hold after {self._limits.repairs} repairs: {self._complaint}"
        return None, f"no answer held within {self._limits.turns} turns"

    def _ask(self, last: bool) -> Reply:
        tools = (self._toolbox.submit,) if last else self._toolbox.specs
        request = Request(messages=tuple(self._messages), tools=tools, prompt=self.prompt.ref)
        return self._client.chat(request, policy=ContextPolicy.SHRINK)

    def _answered(self, turn: int, reply: Reply) -> AgentAnswer | None:
        """Answer all calls of a reply; the submitted answer, if it holds."""
        answer: AgentAnswer | None = None
        results: list[str] = []
        for number, call in enumerate(reply.tool_calls):
            if answer is not None:
                text = "not looked at: an answer was accepted"
            elif self._repairs > self._limits.repairs:
                text = "not looked at: too many answers did not hold"
            elif call.name == SUBMIT:
                answer, text = self._submitted(call)
            elif number >= self._limits.calls_per_turn:
                text = f"not run: at most {self._limits.calls_per_turn} calls are run in a turn"
            else:
                text = self._toolbox.call(call)
                results.append(text)
                self._messages.append(tool_output(call, text))
                continue
            results.append(text)
            self._messages.append(tool_result(call, text))  # ours, and to be heeded: not delimited as data
        for broken in reply.invalid_tool_calls:
            text = f"The arguments are no valid JSON: {broken.error[:300]}"
            results.append(text)
            self._messages.append(tool_result(broken, text))
            self._repair(text)
        if not reply.tool_calls and not reply.invalid_tool_calls:
            self._repair("no tool was called")
            self._messages.append(user("Call a tool: one that reads, or `submit` with your answer."))
        self._keep(turn, reply, results)
        return answer

    def _submitted(self, call: ToolCall) -> tuple[AgentAnswer | None, str]:
        try:
            answer = AgentAnswer.model_validate(call.arguments)
        except ValidationError as error:
            return None, self._repair(f"The answer does not fit the schema: {said(error)}")
        wrong = complaints_about(answer, self._files, self._candidates, len(self._toolbox.searched))
        if wrong:
            shown = "\n".join(f"- {shorten(complaint, 600)}" for complaint in wrong[:12])
            return None, self._repair(f"The answer does not hold:\n{shown}\nCorrect it and submit again.")
        return answer, "accepted"

    def _repair(self, complaint: str) -> str:
        self._repairs += 1
        self._complaint = shorten(complaint, 300)
        return complaint

    def _keep(self, turn: int, reply: Reply, results: Sequence[str]) -> None:
        calls = [(call.name, json.dumps(call.arguments, sort_keys=True)) for call in reply.tool_calls]
        calls += [(call.name, call.arguments) for call in reply.invalid_tool_calls]
        self.steps.append(
            AgentStep(
                turn=turn, text=reply.text, calls=tuple(calls), results=tuple(results),
                exchange=reply.key,
            )
        )  # fmt: skip
        names = ", ".join(f"{name} {shorten(arguments, 60)}" for name, arguments in calls) or "no call"
        self._reporter.note(_STAGE, f"turn {turn} of at most {self._limits.turns}: {names}")


def _task(query: TaskQuery) -> str:
    parts = [f"Question: {query.question}", f"Method: {query.method}"]
    if query.expected:
        parts.append(f"Expected outcome: {query.expected}")
    if query.metrics:
        parts.append(f"Metrics: {', '.join(query.metrics)}")
    if query.labels:
        parts.append(f"In the paper: {', '.join(query.labels)}")
    return "\n".join(parts)


def _overview(index: RepositoryIndex) -> str:
    directories: dict[str, int] = {}
    for file in index.snapshot.files:
        head, slash, _ = file.path.partition("/")
        name = f"{head}/" if slash else "(root)"
        directories[name] = directories.get(name, 0) + 1
    listed = [f"{name} {count} files" for name, count in sorted(directories.items())]
    more = f"\n[{len(listed) - 60} more directories]" if len(listed) > 60 else ""
    return (
        f"{len(index.snapshot.files)} files, {index.size} of them code or configuration\n"
        + "\n".join(listed[:60])
        + more
    )


# --- from the answer to the location ---------------------------------------------------------------------------------


def _location(
    answer: AgentAnswer, index: RepositoryIndex, query: TaskQuery, ranking: Location, toolbox: Toolbox, model: str
) -> Location:
    found = rank(index, QueryWords.of(query))
    base = [problem for problem in ranking.problems if not _of_chain(problem, ranking)]
    dropped = [_dropped(file.path, file.why) for file in answer.dropped]
    decided = ranking.chain.entries if ranking.chain is not None else ()
    if not answer.chain:
        searched = (*toolbox.searched, *(ranking.not_found.searched if ranking.not_found else ()))
        problems = [*base, *toolbox.flagged, *dropped]
        if ranking.chain is not None and ranking.chain.entries:
            problems.append(_against(f"the deterministic search proposes {', '.join(decided)} "
                                     f"(probability {ranking.chain.confidence:.2f})"))  # fmt: skip
        reason = f"model {model}: {answer.not_found.strip()}"
        belongs = 1.0 - ranking.confidence if ranking.chain is not None else ranking.confidence
        return Location(
            ranked=ranking.ranked, chain=None, not_found=NotFound(reason=reason, searched=searched),
            confidence=round(belongs, 4), problems=tuple(problems),
        )  # fmt: skip
    sources = tuple(
        SourceScript(
            path=file.path,
            role=file.role,
            score=round(found.score(file.path), 4),
            reasons=(f"model: {file.why}",
                     *(f"{q.path}:{q.start}-{q.end} {shorten(q.quote, 160)!r}" for q in file.evidence)),
        )
        for file in sorted(answer.chain, key=lambda file: _ORDER[file.role])
    )  # fmt: skip
    chain = Chain(
        sources=sources,
        usage=tuple(usage_of(step) for step in answer.commands),
        confidence=round(measure(index, query).chance, 4),
    )
    others = [item for item in (ranking.chain, *ranking.alternatives) if item is not None]
    alternatives = tuple(item for item in others if set(item.entries) != set(chain.entries))
    problems = [*base, *toolbox.flagged, *dropped, *_left_unsaid(answer, ranking)]
    if set(decided) != set(chain.entries):
        named = ", ".join(decided) if decided else "not_found"
        problems.append(_against(f"the deterministic search decided {named}, the model {', '.join(chain.entries)}"))
    chosen = {source.path for source in sources}
    return Location(
        ranked=(*sources, *(file for file in ranking.ranked if file.path not in chosen)),
        chain=chain, alternatives=alternatives, confidence=chain.confidence,
        problems=tuple(problems),
    )  # fmt: skip


_ORDER: Final = {"wrapper": 0, "config": 1, "entry": 2, "library": 3}


def _of_chain(problem: Problem, ranking: Location) -> bool:
    """Is it a problem of the deterministic chain's own commands, which the model's replace?"""
    return ranking.chain is not None and problem in ranking.chain.problems


def _dropped(path: str, why: str) -> Problem:
    return Problem(component=_COMPONENT, where=path, message=f"model: not kept: {why}", severity=Severity.INFO)


def _left_unsaid(answer: AgentAnswer, ranking: Location) -> list[Problem]:
    """Wrappers and configurations of the deterministic chain that the model says nothing of."""
    said = {file.path for file in answer.chain} | {file.path for file in answer.dropped}
    sources = ranking.chain.sources if ranking.chain is not None else ()
    return [_dropped(source.path, "no reason is given") for source in sources if source.path not in said]


def _shortened(characters: int) -> Problem:
    message = f"{characters} characters of what the tools had shown were left out for the model's context window"
    return Problem(component=_COMPONENT, where="conversation", message=message, severity=Severity.INFO)


def _against(message: str) -> Problem:
    """Model and deterministic search disagree: the reviewer sees both."""
    return Problem(
        component=_COMPONENT, where="decision", message=f"engines disagree: {message}", severity=Severity.WARNING
    )
