"""Events of a trajectory as a page shows them: one line, and folded behind it the parts. All text is escaped here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from markupsafe import escape

from evaluation.report.diffs import diff_lines
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
    Utterance,
)
from pipeline.text import shorten

__all__ = ["KIND_NAMES", "events_html"]

KIND_NAMES: Final = {
    "utterance": "message",
    "model_turn": "model",
    "command": "command",
    "tool_result": "tool result",
    "file_change": "file",
    "model_call": "API call",
    "limit": "limit",
    "note": "note",
    "end": "end",
}
_HEAD, _TAIL = 12_000, 6_000
"""Characters of a text that are shown from its beginning and its end. A command that prints a megabyte would
otherwise make a page of a hundred such commands unreadable and slow."""
_LINE: Final = 180

Clean = Callable[[str], str]


def events_html(events: Iterable[Event], clean: Clean) -> list[str]:
    """Events as folded blocks of HTML, each with the anchor `e<seq>`.

    Built here and not by a template: a trajectory has thousands of events, and this is four times as fast.

    Args:
        clean: what is done with a text of others before it is escaped.
    """
    return [_event_html(event, clean) for event in events]


def _event_html(event: Event, clean: Clean) -> str:
    line, parts, facts, bad = _describe(event)
    shown = "".join(_part(title, text, is_diff, clean) for title, text, is_diff in parts if text)
    if facts:
        shown += f'<p class="soft">{escape(clean(facts))}</p>'
    at, kind = _clock(event.at), KIND_NAMES[event.kind]
    return (
        f'<details class="event {event.kind}{" bad" if bad else ""}" data-kind="{event.kind}" id="e{event.seq}">'
        f'<summary><span class="no">#{event.seq}{" " if at else ""}{at}</span><span class="kind">{kind}</span>'
        f'<span class="line">{escape(shorten(clean(line[: 4 * _LINE]), _LINE))}</span></summary>'
        f'<div class="body">{shown}</div></details>\n'
    )


Described = tuple[str, list[tuple[str, str, bool]], str, bool]


def _describe(event: Event) -> Described:  # noqa: PLR0911 - one line a kind
    """(line, (title, text, is it a diff?) of each part, facts, is it bad news?)."""
    match event:
        case Utterance():
            return f"{event.role}: {event.text}", [("", event.text, False)], "", False
        case ModelTurn():
            return _turn(event)
        case ToolResult():
            text = ("error: " if event.is_error else "") + event.output
            return f"{event.name}: {text}", [("", event.output, False)], "", event.is_error
        case CommandRun():
            return _command(event)
        case FileChange():
            is_diff = event.text.startswith(("+", "-", "@@", "diff --git"))
            return f"{event.action} {event.path}", [("", event.text, is_diff)], "", False
        case ModelCall():
            return _call(event)
        case LimitHit():
            return f"{event.limit}: {event.detail}", [("", event.detail, False)], "", True
        case Note():
            return event.text, [("", event.text, False)], "", False
        case End():
            code = "" if event.exit_code is None else f", exit code {event.exit_code}"
            return f"{event.reason}{code}", [("", event.detail, False)], "", event.reason != "finished"


def _turn(event: ModelTurn) -> Described:
    calls = [(use.name, json.dumps(use.arguments, ensure_ascii=False, indent=1)) for use in event.tool_uses]
    named = ", ".join(f"{use.name}({_brief(use.arguments)})" for use in event.tool_uses)
    line = " → ".join(part for part in (event.text, named) if part) or event.reasoning or "(empty)"
    parts = [("Reasoning", event.reasoning, False), ("", event.text, False)]
    parts += [(f"Calls {name}", text, False) for name, text in calls]
    return line, parts, " · ".join(part for part in (event.model or "", _tokens(event.usage)) if part), False


def _command(event: CommandRun) -> Described:
    if event.observed:
        return event.command, [("", event.command, False)], f"seen by the harness · in {event.directory}", False
    code = "still running" if event.exit_code is None else f"exit code {event.exit_code}"
    facts = [code]
    if event.duration_s is not None:
        facts.append(f"{event.duration_s:.1f} s")
    if event.directory:
        facts.append(f"in {event.directory}")
    if event.truncated:
        facts.append("output was cut off when it was recorded")
    failed = event.exit_code not in (0, None)
    line = event.command if not failed else f"[{event.exit_code}] {event.command}"
    return line, [("", event.command, False), ("Output", event.output, False)], " · ".join(facts), failed


def _call(event: ModelCall) -> Described:
    cost = "unknown cost" if event.cost_usd is None else f"${event.cost_usd:.4f}"
    line = f"{event.endpoint} → {event.status} · {_tokens(event.usage) or 'unknown tokens'} · {cost}"
    return line, [], f"{event.model or ''} {event.duration_s:.1f} s".strip(), event.status >= 400


def _brief(arguments: dict[str, Any]) -> str:
    return shorten(", ".join(str(value) for value in arguments.values())[:400], 100)


def _tokens(usage: TokenUsage | None) -> str:
    return "" if usage is None else f"{usage.input_tokens:,} in, {usage.output_tokens:,} out"


def _part(title: str, text: str, is_diff: bool, clean: Clean) -> str:
    left_out = max(0, len(text) - _HEAD - _TAIL)
    if left_out:
        text = f"{text[:_HEAD]}\n[… {left_out:,} characters …]\n{text[-_TAIL:]}"
    shown = f"<h4>{escape(clean(title))}</h4>" if title else ""
    shown += str(diff_lines(text.rstrip("\n"), clean)) if is_diff else f"<pre>{escape(clean(text))}</pre>"
    if left_out:
        shown += (
            f'<p class="soft">{left_out:,} characters are left out in the middle; trajectory.jsonl has all of it.</p>'
        )
    return shown


def _clock(seconds: float) -> str:
    return "" if seconds <= 0 else f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
