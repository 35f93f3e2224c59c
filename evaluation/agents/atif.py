"""Trajectories as ATIF v1.7 (Agent Trajectory Interchange Format, harbor's RFC 0001), for the tools that read it.

The records below are the part of the format that we write, with the rules that its own validator applies. What ATIF has
no place for is kept under `extra`: times are seconds since the start of the episode, because a trajectory holds no
dates; what the harness says (limits, notes) becomes `system` steps. Non-goal: reading ATIF.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Literal, Self

from pydantic import Field, JsonValue, model_validator

from evaluation.trajectory import (
    CommandRun,
    End,
    Event,
    FileChange,
    LimitHit,
    ModelCall,
    ModelTurn,
    Note,
    TokenUsage,
    ToolResult,
    TrajectoryHead,
    Utterance,
)
from evaluation.trajectory_io import read_trajectory
from pipeline.files import write_text
from pipeline.schema import Problem, Record

__all__ = ["AtifTrajectory", "export_atif", "to_atif"]

VERSION: Final = "ATIF-v1.7"
Extra = dict[str, JsonValue]


class AtifToolCall(Record):
    """A tool call of a step."""

    tool_call_id: str
    function_name: str
    arguments: dict[str, JsonValue]


class AtifResult(Record):
    """What a tool call gave."""

    source_call_id: str | None = None
    content: str | None = None
    extra: Extra | None = None


class AtifObservation(Record):
    """What the tool calls of a step gave."""

    results: tuple[AtifResult, ...]


class AtifMetrics(Record):
    """Tokens of a step."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None


class AtifStep(Record):
    """One step: a message, or a turn of the agent with its tool calls and what they gave."""

    step_id: int = Field(ge=1)
    source: Literal["system", "user", "agent"]
    model_name: str | None = None
    message: str
    reasoning_content: str | None = None
    tool_calls: tuple[AtifToolCall, ...] | None = None
    observation: AtifObservation | None = None
    metrics: AtifMetrics | None = None
    llm_call_count: int | None = Field(default=None, ge=0)
    extra: Extra | None = None

    @model_validator(mode="after")
    def _rules(self) -> Self:
        own = (self.model_name, self.reasoning_content, self.tool_calls, self.metrics)
        if self.source != "agent" and any(value is not None for value in own):
            raise ValueError("model, reasoning, tool calls and metrics belong to steps of the agent")
        if self.llm_call_count == 0 and (self.metrics is not None or self.reasoning_content is not None):
            raise ValueError("a step without a model call has neither metrics nor reasoning")
        known = {call.tool_call_id for call in self.tool_calls or ()}
        for result in self.observation.results if self.observation else ():
            if result.source_call_id is not None and result.source_call_id not in known:
                raise ValueError(f"result of {result.source_call_id!r}, which is no tool call of step {self.step_id}")
        return self


class AtifAgent(Record):
    """Who acted."""

    name: str
    version: str
    model_name: str | None = None


class AtifFinalMetrics(Record):
    """Totals."""

    total_prompt_tokens: int | None = None
    total_completion_tokens: int | None = None
    total_cached_tokens: int | None = None
    total_cost_usd: float | None = None
    """None: unknown, for one call at least."""
    total_steps: int = Field(ge=0)
    extra: Extra | None = None


class AtifTrajectory(Record):
    """A whole trajectory."""

    schema_version: Literal["ATIF-v1.7"] = VERSION
    session_id: str
    agent: AtifAgent
    steps: tuple[AtifStep, ...] = Field(min_length=1)
    final_metrics: AtifFinalMetrics
    extra: Extra | None = None

    @model_validator(mode="after")
    def _numbered(self) -> Self:
        if [step.step_id for step in self.steps] != list(range(1, len(self.steps) + 1)):
            raise ValueError("steps are numbered from 1 without gaps")
        return self

    def to_json(self) -> str:
        """The file's content."""
        return json.dumps(self.model_dump(mode="json", exclude_none=True), ensure_ascii=False, indent=1) + "\n"


def to_atif(head: TrajectoryHead, events: Iterable[Event]) -> AtifTrajectory:
    """The trajectory in ATIF's terms.

    Args:
        head: of the trajectory.
        events: in their order.

    Returns:
        A valid trajectory; one without events has a single step that says so.
    """
    steps = _Steps()
    calls: list[ModelCall] = []
    turns: list[ModelTurn] = []
    end: End | None = None
    for event in events:
        if isinstance(event, ModelCall):
            calls.append(event)
        elif isinstance(event, End):
            end = event
        else:
            if isinstance(event, ModelTurn):
                turns.append(event)
            steps.add(event)
    if not steps.drafts:
        steps.start("system", "The trajectory has no events.")
    built = tuple(AtifStep.model_validate({"step_id": n, **draft}) for n, draft in enumerate(steps.drafts, 1))
    return AtifTrajectory(
        session_id=head.episode,
        agent=AtifAgent(name=head.agent, version=head.agent_version or "unknown", model_name=head.model),
        steps=built,
        final_metrics=_totals(calls, turns, len(built)),
        extra={"end": end.model_dump(mode="json", exclude={"kind", "seq"})} if end else None,
    )


def export_atif(trajectory: Path, target: Path) -> list[Problem]:
    """Write a trajectory file as ATIF.

    Args:
        trajectory: `trajectory.jsonl` of an episode.
        target: the JSON file to write (atomically).

    Returns:
        What of the trajectory could not be read.

    Raises:
        ExpbenchError: `RECORD_INVALID`: it is no trajectory.
    """
    head, events, problems = read_trajectory(trajectory)
    write_text(target, to_atif(head, events).to_json())
    return problems


class _Steps:
    """Collects steps; results go to the step whose call they answer."""

    def __init__(self) -> None:
        self.drafts: list[dict[str, Any]] = []
        self._step_of: dict[str, dict[str, Any]] = {}

    def start(self, source: str, message: str, **values: Any) -> dict[str, Any]:
        """A further step."""
        draft: dict[str, Any] = {"source": source, "message": message, **values}
        self.drafts.append(draft)
        return draft

    def add(self, event: Event) -> None:
        """Put an event in its place."""
        if isinstance(event, Utterance):
            extra = {"llm_call_count": 0} if event.role == "agent" else {}
            self.start(event.role, event.text, extra={"at_s": event.at}, **extra)
        elif isinstance(event, ModelTurn):
            self._turn(event)
        elif isinstance(event, CommandRun):
            facts = event.model_dump(mode="json", include={"exit_code", "truncated", "duration_s", "directory"})
            kept: Extra = {name: value for name, value in facts.items() if value is not None}
            arguments = {"command": event.command}
            self._observe(event, event.call, "command", arguments, event.output, {**kept, "kind": "command"})
        elif isinstance(event, ToolResult):
            self._observe(event, event.call or None, event.name, {}, event.output, {"is_error": event.is_error})
        elif isinstance(event, FileChange):
            facts = {"path": event.path, "action": event.action, "text": event.text}
            self._observe(event, event.call, "file_change", facts, None, {"file_change": facts})
        elif isinstance(event, LimitHit):
            self.start("system", f"Limit of the harness reached: {event.limit}. {event.detail}", extra=_about(event))
        elif isinstance(event, Note):
            self.start("system", event.text, extra=_about(event))

    def _turn(self, event: ModelTurn) -> None:
        usage = event.usage
        draft = self.start("agent", event.text, llm_call_count=1, extra={"at_s": event.at})
        if event.model:
            draft["model_name"] = event.model
        if event.reasoning:
            draft["reasoning_content"] = event.reasoning
        if usage is not None:
            draft["metrics"] = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens,
                                "cached_tokens": usage.cached_input_tokens}  # fmt: skip
        if event.tool_uses:
            draft["tool_calls"] = [
                {"tool_call_id": use.id, "function_name": use.name, "arguments": use.arguments}
                for use in event.tool_uses
            ]
            # an agent may number its calls anew in every turn: the latest of a name is meant
            self._step_of.update(dict.fromkeys((use.id for use in event.tool_uses), draft))

    def _observe(
        self, event: Event, call: str | None, name: str, arguments: dict[str, Any], content: str | None, extra: Extra
    ) -> None:
        draft = self._step_of.get(call) if call else None
        if draft is None or call is None:
            # not asked for by a turn that the log shows: a step of its own, without a model call
            call = call or f"event-{event.seq}"
            use = {"tool_call_id": call, "function_name": name or "tool", "arguments": arguments}
            draft = self.start("agent", "", llm_call_count=0, tool_calls=[use], extra={"at_s": event.at})
            self._step_of[call] = draft
        result = {"source_call_id": call, "content": content, "extra": {"at_s": event.at, **extra}}
        draft.setdefault("observation", {"results": []})["results"].append(result)


def _about(event: Event) -> Extra:
    return {"at_s": event.at, "kind": event.kind}


def _totals(calls: list[ModelCall], turns: list[ModelTurn], steps: int) -> AtifFinalMetrics:
    """Totals as the gateway counted them; from the agent's own log where there was no gateway."""
    usages: list[TokenUsage | None] = [call.usage for call in calls] or [turn.usage for turn in turns]
    known = [usage for usage in usages if usage is not None]
    costs = [call.cost_usd for call in calls]
    extra: Extra = {"model_calls": len(calls) or len(turns), "calls_without_usage": len(usages) - len(known)}
    return AtifFinalMetrics(
        total_prompt_tokens=sum(usage.input_tokens for usage in known) if known else None,
        total_completion_tokens=sum(usage.output_tokens for usage in known) if known else None,
        total_cached_tokens=sum(usage.cached_input_tokens for usage in known) if known else None,
        total_cost_usd=_sum(costs),
        total_steps=steps,
        extra=extra,
    )


def _sum(costs: list[float | None]) -> float | None:
    """None: no call, or one whose price is not known; unknown is not 0."""
    known = [cost for cost in costs if cost is not None]
    return sum(known) if costs and len(known) == len(costs) else None
