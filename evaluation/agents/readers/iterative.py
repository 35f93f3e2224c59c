"""The log of our own loop (`iterative_program.log`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

from evaluation.agents.readers.events import Builder, JsonLines, as_list, as_number, as_text, tool_use
from evaluation.trajectory import Event, TokenUsage

__all__ = ["read_iterative"]

_REASONS: Final[dict[str, Literal["finished", "limit", "agent_error", "refused"]]] = {
    "finished": "finished",
    "limit": "limit",
    "refused": "refused",
}
_QUIET: Final = frozenset({"start", "phase"})


def read_iterative(log: Path, stderr: Path) -> Iterator[Event]:
    """Events of a run.

    Args:
        log: `events.jsonl` of its outbox.
        stderr: what it printed there.
    """
    build = Builder()
    lines = JsonLines(log)
    seen = False
    for record in lines:
        seen = True
        yield from _events(build, record)
    if complaint := lines.complaint():
        yield build.note(complaint)
    if not seen:
        yield build.no_log("iterative", stderr)


def _events(build: Builder, record: dict[str, Any]) -> Iterator[Event]:
    at = as_number(record.get("t")) or 0.0
    kind = as_text(record.get("type"))
    if kind == "utterance":
        yield build.utterance("system" if record.get("role") == "system" else "user", record.get("text"), at)
    elif kind == "model":
        uses = tuple(
            tool_use(use.get("id"), use.get("name"), use.get("arguments"))
            for use in as_list(record.get("tool_calls"))
            if isinstance(use, dict)
        )
        yield build.turn(
            record.get("text"),
            at=at,
            reasoning=record.get("reasoning"),
            tool_uses=uses,
            model=record.get("model"),
            usage=_usage(record.get("usage")),
        )
    elif kind == "tool":
        yield from _tool(build, record, at)
    elif kind in ("retry", "context"):
        yield build.note(f"{kind}: {as_text(record.get('reason') or record.get('text'))}", at)
    elif kind == "limit":
        yield build.limit("turns", record.get("detail"), at)
    elif kind == "end":
        reason = _REASONS.get(as_text(record.get("reason")), "agent_error")
        yield build.end(reason, record.get("detail"), at=at)
    elif kind not in _QUIET:
        yield build.note(f"unknown kind of event: {kind}", at)


def _tool(build: Builder, record: dict[str, Any], at: float) -> Iterator[Event]:
    call, name = record.get("call"), record.get("name")
    if "command" in record:
        yield build.command(
            record["command"],
            record.get("output"),
            at=at,
            call=call,
            exit_code=record.get("exit_code"),
            directory=record.get("directory"),
            truncated=bool(record.get("truncated")),
            duration_s=record.get("duration_s"),
        )
        return
    action = record.get("action")
    if action in ("created", "edited"):
        created = action == "created"
        yield build.change(record.get("path"), "created" if created else "edited", record.get("text"), at=at, call=call)
    yield build.result(call, name, record.get("output"), at=at, is_error=bool(record.get("is_error")))


def _usage(value: Any) -> TokenUsage | None:
    if not isinstance(value, dict):
        return None
    counts = {name: as_number(value.get(name)) for name in TokenUsage.model_fields}
    return TokenUsage(**{name: int(count or 0) for name, count in counts.items()})
