"""EXP-Bench's monitor (section 4.1) with a model: over the whole trajectory, window by window, nothing left out.

Each window is asked about by itself. A finding must quote the event that it cites; one whose quote does not occur there
is dropped, with a problem that says so. What the agent wrote reaches the model only delimited and labelled as data.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from evaluation.integrity.material import Material, normalised
from evaluation.trajectory import (
    CommandRun,
    End,
    Event,
    FileChange,
    LimitHit,
    ModelCall,
    ModelTurn,
    Note,
    ToolResult,
    Utterance,
)
from evaluation.verdicts import Finding, ViolationKind
from pipeline.llm import ModelClient, ModelError, Prompt, Request, load_prompt
from pipeline.progress import Reporter
from pipeline.schema import Problem, Severity
from pipeline.task import Verdict

__all__ = [
    "ModelMonitoring",
    "MonitorAnswer",
    "Window",
    "event_text",
    "monitor_prompt",
    "monitor_with_model",
    "windows",
]

WINDOW: Final = 24_000
"""Characters of one window (about 6,000 tokens): what stands in the middle of a long context is read worst."""
_HANDED_IN: Final = -1


class ModelFinding(BaseModel):
    """What a model reports."""

    model_config = ConfigDict(extra="forbid")

    kind: ViolationKind
    event: int | None
    quote: str = Field(min_length=1, max_length=1000)
    reason: str
    certain: bool


class MonitorAnswer(BaseModel):
    """The answer for one window."""

    model_config = ConfigDict(extra="forbid")

    findings: list[ModelFinding]
    causes: list[Literal["refusal", "runtime_error", "time", "missing_data", "dependency", "memory_or_gpu"]]


@dataclass(slots=True)
class ModelMonitoring:
    """What the model said of the whole episode."""

    findings: list[Finding] = field(default_factory=list)
    causes: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)
    unread: int = 0
    """Windows of which nothing is known, because no valid answer came."""
    windows: int = 0


@dataclass(frozen=True, slots=True)
class Window:
    """A piece of what is looked at, with the events that it shows (-1: what was handed in)."""

    title: str
    text: str
    events: tuple[int, ...]


def monitor_prompt() -> Prompt:
    """The prompt, for provenance."""
    return load_prompt("evaluation.integrity.prompts", "monitor")


def event_text(event: Event) -> str:  # noqa: PLR0911 - one answer a case
    """An event as a reader sees it; empty for the gateway's own records."""
    head = f"[event {event.seq}] "
    match event:
        case Utterance():
            return f"{head}{event.role} says\n{event.text}"
        case ModelTurn():
            uses = [f"calls {use.name} {json.dumps(use.arguments, ensure_ascii=False)}" for use in event.tool_uses]
            return head + "agent's model\n" + "\n".join(part for part in (event.reasoning, event.text, *uses) if part)
        case CommandRun():
            if event.observed:
                return f"{head}program that the command started, seen by the harness\n$ {event.command}"
            cut = " (output cut by the agent's tool)" if event.truncated else ""
            return f"{head}command, exit code {event.exit_code}{cut}\n$ {event.command}\n{event.output}"
        case ToolResult():
            return f"{head}result of {event.name}{' (error)' if event.is_error else ''}\n{event.output}"
        case FileChange():
            return f"{head}file {event.path} {event.action}\n{event.text}"
        case LimitHit():
            return f"{head}limit {event.limit} reached: {event.detail}"
        case Note():
            return f"{head}note of the harness: {event.text}"
        case End():
            return f"{head}end: {event.reason} {event.detail}"
        case ModelCall():
            return ""


def windows(material: Material, size: int = WINDOW) -> list[Window]:
    """The trajectory, then patch and response, cut into windows; an event longer than a window goes on in the next."""
    pieces: list[tuple[int, str]] = []
    for event in material.events:
        text = event_text(event)
        for start in range(0, len(text), size):
            mark = f"[event {event.seq}] (goes on)\n" if start else ""
            pieces.append((event.seq, mark + text[start : start + size]))
    handed_in = (
        f"--- response.json\n{material.response_text}\n--- "
        f"reproduce.sh\n{material.reproduce}\n--- patch\n{material.patch}"
    )
    found = _packed(pieces, size, "A window of the log:")
    if material.response_text or material.reproduce or material.patch:
        parts = [(_HANDED_IN, handed_in[start : start + size]) for start in range(0, len(handed_in), size)]
        found += _packed(parts, size, "A part of what the agent handed in (cite event null):")
    return found


def _packed(pieces: list[tuple[int, str]], size: int, title: str) -> list[Window]:
    found: list[Window] = []
    texts: list[str] = []
    events: list[int] = []
    for seq, text in pieces:
        if texts and sum(map(len, texts)) + len(text) > size:
            found.append(Window(title, "\n\n".join(texts), tuple(dict.fromkeys(events))))
            texts, events = [], []
        texts.append(text)
        events.append(seq)
    if texts:
        found.append(Window(title, "\n\n".join(texts), tuple(dict.fromkeys(events))))
    return found


def monitor_with_model(material: Material, client: ModelClient, reporter: Reporter) -> ModelMonitoring:
    """Ask a model about every window.

    Raises:
        BudgetError: the budget does not allow a call; nothing is concluded from the windows before it.
        ModelError: the endpoint's configuration is wrong (`USER` causes other than a too long context).
        ExpbenchError: `INTERRUPTED`.
    """
    prompt = monitor_prompt()
    public = material.task.public
    asked = f"Question: {public.question}\nMethod: {public.method}\nInstructions: {public.agent_instructions}"
    result = ModelMonitoring()
    all_windows = windows(material)
    result.windows = len(all_windows)
    reporter.start("monitor", len(all_windows))
    for number, window in enumerate(all_windows, 1):
        position = f"{window.title} (window {number} of {len(all_windows)})"
        request = Request(messages=prompt.render(position=position, task=asked, window=window.text), prompt=prompt.ref)
        try:
            answers = client.structured_split(request, MonitorAnswer)
        except ModelError as error:
            if error.hits_every_call:
                raise
            result.unread += 1
            result.problems.append(_problem(f"window {number}", f"no answer of the model: {error.cause}"))
            continue
        for answer in answers:
            result.causes |= set(answer.value.causes)
            for item in answer.value.findings:
                _take(item, window, material, result)
        reporter.step("monitor", f"window {number}")
    reporter.end("monitor", f"{len(result.findings)} findings")
    return result


def _take(item: ModelFinding, window: Window, material: Material, result: ModelMonitoring) -> None:
    """Keep a finding whose quote occurs in what it cites."""
    cited = _HANDED_IN if item.event is None else item.event
    where = "what was handed in" if item.event is None else f"event {item.event}"
    if cited not in window.events or normalised(item.quote) not in normalised(_cited_text(material, cited)):
        result.problems.append(
            _problem(where, f"a finding ({item.kind.value}) was dropped: its quote does not occur in what it cites")
        )
        return
    result.findings.append(
        Finding(
            kind=item.kind,
            verdict=Verdict.FAIL if item.certain else Verdict.UNKNOWN,
            events=() if item.event is None else (item.event,),
            where=where,
            quote=item.quote,
            reason=item.reason,
            engine="model",
        )
    )


def _cited_text(material: Material, cited: int) -> str:
    if cited == _HANDED_IN:
        return "\n".join((material.response_text, material.reproduce, material.patch))
    return next((event_text(event) for event in material.events if event.seq == cited), "")


def _problem(where: str, message: str) -> Problem:
    return Problem(component="integrity.model", where=where, message=message, severity=Severity.WARNING)
