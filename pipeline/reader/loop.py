"""The conversation of a reader: it asks for what it needs, many things at once, and submits an answer that is checked.

A plain loop and not `langchain.agents.create_agent`, which was tried (langchain 1.4.7): its agent ends without a word
where the arguments of a call are no valid JSON; a bound on calls, refusals that are counted and a last turn that only
takes the answer are one middleware each; and messages lose there which part of them is elastic and fenced. Chat itself
is LangChain's (`pipeline.llm.backend`). Everything sent is sent again with each turn, so the tokens of a conversation
grow with its turns: few turns, many calls in each, and results within one allowance for all of them.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from pydantic import BaseModel, Field, ValidationError

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm import (
    BudgetLimits,
    ContextPolicy,
    Message,
    ModelClient,
    ModelError,
    Parameters,
    PromptRef,
    Reply,
    Request,
    ToolCall,
    ToolSpec,
    tool_output,
    tool_result,
    user,
)
from pipeline.progress import Reporter
from pipeline.schema import Record
from pipeline.text import shorten

__all__ = ["SUBMIT", "Conversation", "LoopLimits", "ReaderTool", "Step", "converse"]

ModelT = TypeVar("ModelT", bound=BaseModel)
SUBMIT: Final = "submit"
_COMPLAINTS: Final = 12
_COMPLAINT: Final = 600
_NO_ANSWER: Final = frozenset({FailureKind.REFUSAL, FailureKind.CONTEXT_TOO_LONG})
"""About this conversation, and no fault of the endpoint."""


class LoopLimits(Record):
    """What a reader may do in one conversation."""

    turns: int = Field(default=8, ge=1)
    """Questions to the model, the last of which only takes the answer."""
    calls_per_turn: int = Field(default=16, ge=1)
    refusals: int = Field(default=2, ge=0)
    """How often an answer that does not hold (or a turn without any call) is sent back; also beyond `turns`."""
    result_characters: int = Field(default=12_000, ge=200)
    """Of one call; what is left out is said."""
    characters: int = Field(default=80_000, ge=0)
    """Of all results together."""
    budget: BudgetLimits = BudgetLimits()
    """Inside the budget that is current."""


@dataclass(frozen=True, slots=True)
class ReaderTool:
    """Something that the reader can ask for. What `function` gives is text of others and is delimited as such."""

    name: str
    description: str
    arguments: type[BaseModel]
    function: Callable[[Any], str]
    """Given a value of `arguments`."""


class Step(Record):
    """One turn: what the model said and called, and what came back."""

    turn: int
    text: str
    calls: tuple[tuple[str, str], ...]
    """(tool, arguments as JSON)."""
    results: tuple[str, ...]
    exchange: str
    """Key of the recorded exchange."""


class Conversation(Record, Generic[ModelT]):
    """How a conversation ended, with the way to it."""

    value: ModelT | None
    """The answer that held."""
    reason: str = ""
    """Why there is none; empty with a value."""
    steps: tuple[Step, ...]
    model: str
    prompt: PromptRef
    left_out: int = 0
    """Characters that the context window had no room for, at most in one question."""


def converse(
    client: ModelClient,
    messages: Sequence[Message],
    *,
    tools: Sequence[ReaderTool],
    answer: type[ModelT],
    check: Callable[[ModelT], list[str]],
    limits: LoopLimits,
    prompt: PromptRef,
    reporter: Reporter,
    stage: str,
    cut: Callable[[Conversation[ModelT]], None] | None = None,
    parameters: Parameters | None = None,
) -> Conversation[ModelT]:
    """Let a model read with tools until it submits an answer that holds.

    Args:
        client: the model; its calls count in the current budget.
        messages: the beginning; it has to hold `pipeline.llm.TOOL_NOTICE`, and to say that `submit` ends the work.
        tools: what can be asked for; `submit` is added.
        answer: what is submitted.
        check: what is wrong with an answer, in words that the model can act on; empty when it holds.
        limits: turns, calls, refusals, characters and money.
        prompt: what `messages` were rendered from.
        reporter: notes of the stage.
        stage: in whose name.
        cut: told the way so far where it ends before its time; what is raised follows.
        parameters: how answers are generated; None: as the model is configured.

    Raises:
        ModelError: the endpoint failed. A model that refuses, or has no room for the beginning, gives no value.
        BudgetError: the budget does not allow the next call.
    """
    talk = _Talk(client, list(messages), {tool.name: tool for tool in tools}, answer, check, limits, prompt, parameters)
    with contextlib.ExitStack() as stack:
        if limits.budget != BudgetLimits():
            stack.enter_context(client.scope("stage", stage, limits.budget))
        try:
            while talk.value is None and not talk.reason:
                step = talk.turn()
                names = ", ".join(f"{name} {shorten(given, 60)}" for name, given in step.calls) or "no call"
                reporter.note(stage, f"turn {step.turn} of about {limits.turns}: {names}")
        except (ExpbenchError, KeyboardInterrupt) as error:
            talk.reason = error.cause if isinstance(error, ExpbenchError) else "interrupted"
            if not isinstance(error, ModelError) or error.kind not in _NO_ANSWER:
                if cut is not None and talk.steps:
                    cut(talk.result())
                raise
    return talk.result()


class _Talk(Generic[ModelT]):
    """The turns of one conversation."""

    def __init__(
        self, client: ModelClient, messages: list[Message], tools: dict[str, ReaderTool], answer: type[ModelT],
        check: Callable[[ModelT], list[str]], limits: LoopLimits, prompt: PromptRef, parameters: Parameters | None,
    ) -> None:  # fmt: skip
        self._client, self._messages, self._tools, self._limits = client, messages, tools, limits
        self._answer, self._check, self._prompt, self._parameters = answer, check, prompt, parameters
        self._submit = ToolSpec.of(SUBMIT, "Submit the answer: the end of the work, once it holds.", answer)
        self._specs = (*(ToolSpec.of(item.name, item.description, item.arguments) for item in tools.values()),
                       self._submit)  # fmt: skip
        self._refused, self._left_out, self._room = 0, 0, limits.characters
        self._seen: dict[tuple[str, str], int] = {}
        self.steps: list[Step] = []
        self.value: ModelT | None = None
        self.reason = ""

    def result(self) -> Conversation[ModelT]:
        """The way so far."""
        return Conversation[self._answer](  # type: ignore[name-defined]  # so that a stored one is read back as such
            value=self.value, reason=self.reason, steps=tuple(self.steps),
            model=self._client.config.model, prompt=self._prompt, left_out=self._left_out,
        )  # fmt: skip

    def turn(self) -> Step:
        """Ask once, and answer what the model called."""
        number = len(self.steps) + 1
        last = number >= self._limits.turns
        if number == self._limits.turns:
            self._messages.append(user(f"This is your last turn: call `{SUBMIT}` now."))
        request = Request(
            messages=tuple(self._messages), tools=(self._submit,) if last else self._specs, prompt=self._prompt,
            parameters=self._parameters,
        )  # fmt: skip
        reply = self._client.chat(request, policy=ContextPolicy.SHRINK)
        self._left_out = max(self._left_out, reply.left_out_characters)
        self._messages.append(reply.as_message())
        results, wrong = self._answered(reply, number, last)
        if wrong and self.value is None:
            self._refused += 1
            if self._refused > self._limits.refusals:
                self.reason = f"it did not hold after {self._limits.refusals} refusals: {shorten(wrong, 300)}"
        calls = [(call.name, json.dumps(call.arguments, sort_keys=True)) for call in reply.tool_calls]
        calls += [(call.name, call.arguments) for call in reply.invalid_tool_calls]
        step = Step(turn=number, text=reply.text, calls=tuple(calls), results=tuple(results), exchange=reply.key)
        self.steps.append(step)
        return step

    def _answered(self, reply: Reply, number: int, last: bool) -> tuple[list[str], str]:
        """The results of all calls of a reply, and what was wrong with its answer; empty: nothing, or none was due."""
        results: list[str] = []
        wrong = "no answer was submitted in the last turn" if last else ""
        submitted = False
        for place, call in enumerate(reply.tool_calls):
            if call.name == SUBMIT:
                text = "not looked at: one answer a turn" if submitted else self._submitted(call)
                wrong, submitted = (wrong, True) if submitted else (text if self.value is None else "", True)
            elif last:
                text = f"not run: only `{SUBMIT}` is left"
            elif place >= self._limits.calls_per_turn:
                text = f"not run: at most {self._limits.calls_per_turn} calls are run in a turn"
            elif call.name not in self._tools:
                text = f"There is no tool {call.name[:60]!r}. The tools are {', '.join([*self._tools, SUBMIT])}."
            else:
                text = self._run(call, number)
                results.append(text)
                self._messages.append(tool_output(call, text))
                continue
            results.append(text)
            self._messages.append(tool_result(call, text))  # ours, and to be heeded: not delimited as data
        for broken in reply.invalid_tool_calls:
            cut = " The answer was cut at the longest output that is allowed: be shorter." if reply.truncated else ""
            text = f"The arguments are no valid JSON: {broken.error[:300]}{cut}"
            results.append(text)
            self._messages.append(tool_result(broken, text))
            if broken.name == SUBMIT or not reply.tool_calls:
                wrong = wrong or text
        if not reply.tool_calls and not reply.invalid_tool_calls:
            wrong = "no tool was called"
            self._messages.append(user(f"Call tools: those that read, or `{SUBMIT}` with your answer."))
        return results, wrong

    def _run(self, call: ToolCall, number: int) -> str:
        """The result of one call within the allowance; a call that does not fit is answered with what is wrong."""
        tool = self._tools[call.name]
        try:
            arguments = tool.arguments.model_validate(call.arguments)
        except ValidationError as error:
            return f"The call does not fit {call.name}: {_said(error)}"
        same = (call.name, arguments.model_dump_json())
        if same in self._seen:
            return f"The same was asked in turn {self._seen[same]}: see there."
        if self._room <= 0:
            return f"Nothing more can be shown: the allowance for reading is used up. Call `{SUBMIT}`."
        self._seen[same] = number
        text = tool.function(arguments)
        room = min(self._limits.result_characters, self._room)
        if len(text) > room:
            text = f"{text[:room]}\n[{len(text) - room} more characters are not shown: ask for less]"
        self._room -= len(text)
        return text

    def _submitted(self, call: ToolCall) -> str:
        """Keep an answer that holds; else what is wrong with it."""
        try:
            value = self._answer.model_validate(call.arguments)
        except ValidationError as error:
            return f"The answer does not fit the schema: {_said(error)}"
        if wrong := self._check(value):
            shown = "\n".join(f"- {shorten(complaint, _COMPLAINT)}" for complaint in wrong[:_COMPLAINTS])
            more = f"\n- and {len(wrong) - _COMPLAINTS} more" if len(wrong) > _COMPLAINTS else ""
            return f"The answer does not hold:\n{shown}{more}\nCorrect it and submit again."
        self.value = value
        return "accepted"


def _said(error: ValidationError) -> str:
    """A validation error in words for the model."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, e['loc']))[:100] or 'the value'}: {e['msg']}" for e in found[:8])
