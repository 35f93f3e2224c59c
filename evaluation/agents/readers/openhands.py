"""OpenHands: events of its SDK, one JSON object a line, and the result file of our `openhands_program`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from evaluation.agents.readers.events import (
    Builder,
    Clock,
    JsonLines,
    as_dict,
    as_number,
    as_text,
    hit_limit,
    joined,
    parse_json,
    read_log,
    tool_use,
)
from evaluation.trajectory import End, Event

__all__ = ["read_openhands"]

_QUIET: Final = frozenset(
    {
        "ConversationStateUpdateEvent",
        "TokenEvent",
        "StreamingDeltaEvent",
        "LLMCompletionLogEvent",
        "CondensationRequest",
    }
)
# What a shell with line editing prints around every command
_PASTE_MODE: Final = re.compile(r"\x1b\[\?2004[hl]\r?")


def read_openhands(log: Path, result: Path, stderr: Path) -> Iterator[Event]:
    """Events of a run.

    Args:
        log: `events.jsonl`.
        result: `result.json`; missing when the run was killed.
        stderr: what it printed there.
    """
    build, reader, lines = Builder(), _Reader(), JsonLines(log)
    for record in lines:
        yield from reader.events(build, record)
    yield from reader.flush(build)
    if complaint := lines.complaint():
        yield build.note(complaint)
    if build.count == 0:
        yield build.no_log("openhands", stderr)
    yield from _end(build, result, reader.failure)


class _Reader:
    """Puts the actions of one answer of the model together again: the SDK logs each on its own."""

    def __init__(self) -> None:
        self._clock = Clock()
        self._actions: list[dict[str, Any]] = []
        self._commands: dict[str, dict[str, Any]] = {}
        self.failure = ""

    def events(self, build: Builder, record: dict[str, Any]) -> Iterator[Event]:
        kind = as_text(record.get("kind"))
        if kind == "ActionEvent":
            if self._actions and self._actions[-1].get("llm_response_id") != record.get("llm_response_id"):
                yield from self.flush(build)
            self._actions.append(record)
            self._commands[as_text(record.get("tool_call_id"))] = as_dict(record.get("action"))
            return
        yield from self.flush(build)
        at = self._clock.at(record.get("timestamp"))
        if kind == "SystemPromptEvent":
            yield build.utterance("system", as_dict(record.get("system_prompt")).get("text"), at)
        elif kind == "MessageEvent":
            text = joined(as_dict(record.get("llm_message")).get("content"))
            if record.get("source") == "agent":
                yield build.turn(text, at=at, reasoning=as_dict(record.get("llm_message")).get("reasoning_content"))
            else:
                yield build.utterance("user", text, at)
        elif kind == "ObservationEvent":
            yield from self._observation(build, record, at)
        elif kind in ("AgentErrorEvent", "UserRejectObservation"):
            said = record.get("error") or record.get("rejection_reason")
            yield build.result(record.get("tool_call_id"), record.get("tool_name"), said, at=at, is_error=True)
        elif kind not in _QUIET:
            yield self._other(build, record, at)

    def _other(self, build: Builder, record: dict[str, Any], at: float) -> Event:
        """What has no kind of its own in a trajectory."""
        kind = as_text(record.get("kind"))
        if kind == "ConversationErrorEvent":
            self.failure = f"{as_text(record.get('code'))}: {as_text(record.get('detail'))}"
            limit = "MaxIterations" in self.failure
            return build.limit("turns", self.failure, at) if limit else build.note(self.failure, at)
        if kind in ("Condensation", "CondensationSummaryEvent"):
            return build.note(f"the conversation was shortened: {as_text(record.get('summary'))}", at)
        if kind in ("InterruptEvent", "PauseEvent"):
            return build.note("interrupted", at)
        return build.note(f"unknown kind of event: {kind}", at)

    def flush(self, build: Builder) -> Iterator[Event]:
        """The model's turn that the collected actions belong to."""
        if not self._actions:
            return
        first = self._actions[0]
        uses = []
        for action in self._actions:
            call = as_dict(action.get("tool_call"))
            uses.append(tool_use(action.get("tool_call_id"), action.get("tool_name"), call.get("arguments")))
        yield build.turn(
            "\n".join(text for text in (joined(action.get("thought")) for action in self._actions) if text),
            at=self._clock.at(first.get("timestamp")),
            reasoning=first.get("reasoning_content"),
            tool_uses=tuple(uses),
        )
        self._actions = []

    def _observation(self, build: Builder, record: dict[str, Any], at: float) -> Iterator[Event]:
        call, name = record.get("tool_call_id"), record.get("tool_name")
        seen = as_dict(record.get("observation"))
        text = joined(seen.get("content"))
        if seen.get("kind") == "TerminalObservation":
            command = seen.get("command") or self._commands.get(as_text(call), {}).get("command")
            code = seen.get("exit_code")
            yield build.command(
                command,
                _PASTE_MODE.sub("", text),
                at=at,
                call=call,
                exit_code=None if code == -1 else code,  # -1: it still runs
                directory=as_dict(seen.get("metadata")).get("working_dir"),
            )
            return
        failed = bool(seen.get("is_error"))
        changed = seen.get("kind") == "FileEditorObservation" and seen.get("command") != "view"
        if changed and not failed and seen.get("path"):
            existed = bool(seen.get("prev_exist"))
            yield build.change(
                seen["path"], "edited" if existed else "created", seen.get("new_content"), at=at, call=call
            )
        yield build.result(call, name, text, at=at, is_error=failed)


def _end(build: Builder, path: Path, failure: str) -> Iterator[End]:
    """How the run ended, from the result file; nothing when it was killed."""
    result = parse_json(read_log(path).decode("utf-8", "replace"))
    if not isinstance(result, dict):
        return
    at = as_number(result.get("seconds")) or 0.0
    detail = as_text(result.get("error")) or failure
    if result.get("timed_out"):
        yield build.end("limit", "it ended itself shortly before its wall time", at=at)
    elif hit_limit(detail) or "MaxIterations" in detail:
        yield build.end("limit", detail, at=at)
    elif result.get("status") == "finished":
        yield build.end("finished", at=at)
    else:
        yield build.end("agent_error", f"{as_text(result.get('status'))}: {detail}", at=at)
