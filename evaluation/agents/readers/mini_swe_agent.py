"""mini-SWE-agent: one JSON file that it writes anew after every step, so a killed run can leave half of one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evaluation.agents.readers.events import (
    Builder,
    Clock,
    as_dict,
    as_list,
    as_text,
    hit_limit,
    joined,
    parse_json,
    read_log,
    tool_use,
)
from evaluation.trajectory import Event, TokenUsage

__all__ = ["read_mini_swe_agent"]


def read_mini_swe_agent(trajectory: Path, stderr: Path) -> Iterator[Event]:
    """Events of a run.

    Args:
        trajectory: its trajectory file.
        stderr: what it printed there.
    """
    build, clock = Builder(), Clock()
    messages, complaint = _messages(trajectory)
    commands: dict[str, str] = {}
    for message in messages:
        yield from _events(build, clock, message, commands)
    if complaint:
        yield build.note(complaint)
    if not messages:
        yield build.no_log("mini-swe-agent", stderr)


def _messages(path: Path) -> tuple[list[dict[str, Any]], str]:
    """Its messages, as many as can be read, and what could not be."""
    text = read_log(path).decode("utf-8", "replace")
    if not text:
        return [], ""
    whole = parse_json(text)
    if isinstance(whole, dict):
        return [message for message in as_list(whole.get("messages")) if isinstance(message, dict)], ""
    start = text.find('"messages": [')
    found: list[dict[str, Any]] = []
    position = start + len('"messages": [') if start >= 0 else len(text)
    decoder = json.JSONDecoder()
    while position < len(text):
        while position < len(text) and text[position] in " \n\r\t,":
            position += 1
        try:
            message, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):  # here it was cut
            break
        if isinstance(message, dict):
            found.append(message)
    return found, f"{path.name} breaks off: {len(found)} messages could be read"


def _events(build: Builder, clock: Clock, message: dict[str, Any], commands: dict[str, str]) -> Iterator[Event]:
    extra = as_dict(message.get("extra"))
    at = clock.at(extra.get("timestamp"))
    role = as_text(message.get("role"))
    if role == "system":
        yield build.utterance("system", joined(message.get("content")), at)
    elif role == "user":
        rejected = _answer(as_dict(extra.get("response")))
        if rejected:  # an answer without a tool call is kept beside the complaint about it only
            yield build.turn(rejected.get("content"), at=at, usage=_usage(as_dict(extra.get("response"))))
        yield build.utterance("user", joined(message.get("content")), at)
    elif role == "assistant":
        uses = []
        for call in as_list(message.get("tool_calls")):
            function = as_dict(as_dict(call).get("function"))
            use = tool_use(as_dict(call).get("id"), function.get("name"), function.get("arguments"))
            commands[use.id] = as_text(use.arguments.get("command"))
            uses.append(use)
        response = as_dict(extra.get("response"))
        yield build.turn(
            joined(message.get("content")),
            at=at,
            reasoning=message.get("reasoning_content"),
            tool_uses=tuple(uses),
            model=response.get("model"),
            usage=_usage(response),
        )
    elif role == "tool":
        call = as_text(message.get("tool_call_id"))
        said = as_text(extra.get("exception_info"))
        output = as_text(extra.get("raw_output")) or ("" if "raw_output" in extra else joined(message.get("content")))
        yield build.command(
            commands.get(call, ""),
            f"{output}\n[{said}]".lstrip() if said else output,
            at=at,
            call=call,
            exit_code=None if said else extra.get("returncode"),  # ended, or (its last command) not run at all
        )
    elif role == "exit":
        yield from _exit(build, extra, joined(message.get("content")), at)
    else:
        yield build.note(f"unknown role: {role}", at)


def _exit(build: Builder, extra: dict[str, Any], content: str, at: float) -> Iterator[Event]:
    status = as_text(extra.get("exit_status"))
    if status == "Submitted":
        yield build.end("finished", at=at)
    elif status in ("LimitsExceeded", "TimeExceeded"):
        yield build.limit("wall_time" if status == "TimeExceeded" else "turns", status, at)
        yield build.end("limit", status, at=at)
    else:
        detail = f"{status}: {content}"
        yield build.end("limit" if hit_limit(detail) else "agent_error", detail, at=at)


def _answer(response: dict[str, Any]) -> dict[str, Any]:
    choices = as_list(response.get("choices"))
    return as_dict(as_dict(choices[0]).get("message")) if choices else {}


def _usage(response: dict[str, Any]) -> TokenUsage | None:
    usage = as_dict(response.get("usage"))
    sent, got = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if not isinstance(sent, int) or not isinstance(got, int) or sent < 0 or got < 0:
        return None
    cached = as_dict(usage.get("prompt_tokens_details")).get("cached_tokens")
    return TokenUsage(
        input_tokens=sent,
        output_tokens=got,
        cached_input_tokens=cached if isinstance(cached, int) and cached > 0 else 0,
    )
