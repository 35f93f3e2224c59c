"""Claude Code: what `--output-format stream-json` prints, one JSON object a line."""

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
    as_list,
    as_text,
    hit_limit,
    joined,
    tool_use,
)
from evaluation.trajectory import Event, ToolUse

__all__ = ["read_claude_code"]

_EXIT_CODE: Final = re.compile(r"^Exit code (\d+)\n?")
_QUIET: Final = frozenset({"system", "stream_event", "rate_limit_event", "tool_progress"})


def read_claude_code(stdout: Path, stderr: Path) -> Iterator[Event]:
    """Events of a run.

    Args:
        stdout: what it printed.
        stderr: what it printed there.
    """
    build, reader, lines = Builder(), _Reader(), JsonLines(stdout)
    seen = False
    for record in lines:
        seen = True
        yield from reader.events(build, record)
    yield from reader.flush(build)
    if complaint := lines.complaint():
        yield build.note(complaint)
    if not seen:
        yield build.no_log("claude-code", stderr)


class _Reader:
    """Puts the blocks of one message together again: each is printed on its own."""

    def __init__(self) -> None:
        self._clock = Clock()
        self._message = ""
        self._blocks: list[dict[str, Any]] = []
        self._model: Any = None
        self._at = 0.0
        self._uses: dict[str, ToolUse] = {}

    def events(self, build: Builder, record: dict[str, Any]) -> Iterator[Event]:
        kind = as_text(record.get("type"))
        if kind == "assistant":
            message = as_dict(record.get("message"))
            if self._blocks and as_text(message.get("id")) != self._message:
                yield from self.flush(build)
            if not self._blocks:
                self._at = self._clock.at(record.get("timestamp"))
            self._message, self._model = as_text(message.get("id")), message.get("model")
            self._blocks += [block for block in as_list(message.get("content")) if isinstance(block, dict)]
            return
        yield from self.flush(build)
        at = self._clock.at(record.get("timestamp"))
        if kind == "user":
            yield from self._user(build, record, at)
        elif kind == "result":
            yield from _end(build, record)
        elif kind not in _QUIET:
            yield build.note(f"unknown kind of event: {kind}", at)

    def flush(self, build: Builder) -> Iterator[Event]:
        """The turn of the collected blocks.

        Its usage is left out: the stream says it before the answer is complete (one output token was seen for all);
        the gateway has it right.
        """
        if not self._blocks:
            return
        uses = []
        for block in self._blocks:
            if as_text(block.get("type")) in ("tool_use", "server_tool_use"):
                use = tool_use(block.get("id"), block.get("name"), block.get("input"))
                self._uses[use.id] = use
                uses.append(use)
        text = "\n".join(as_text(block.get("text")) for block in self._blocks if block.get("type") == "text")
        thoughts = [as_text(block.get("thinking")) for block in self._blocks if block.get("type") == "thinking"]
        yield build.turn(text, at=self._at, reasoning="\n".join(thoughts), tool_uses=tuple(uses), model=self._model)
        self._blocks = []

    def _user(self, build: Builder, record: dict[str, Any], at: float) -> Iterator[Event]:
        content = as_dict(record.get("message")).get("content")
        if not isinstance(content, list):
            yield build.utterance("user", content, at)
            return
        for block in content:
            part = as_dict(block)
            if part.get("type") == "tool_result":
                yield from self._result(build, part, as_dict(record.get("tool_use_result")), at)
            elif part.get("type") == "text":
                yield build.utterance("user", part.get("text"), at)

    def _result(self, build: Builder, part: dict[str, Any], more: dict[str, Any], at: float) -> Iterator[Event]:
        call = as_text(part.get("tool_use_id"))
        use = self._uses.get(call)
        name = use.name if use else ""
        text = joined(part.get("content"))
        failed = bool(part.get("is_error"))
        if use is not None and name == "Bash":
            code = _EXIT_CODE.match(text) if failed else None
            ended = (failed and code is None) or bool(more.get("interrupted"))
            background = bool(use.arguments.get("run_in_background"))
            yield build.command(
                use.arguments.get("command"),
                text[code.end() :] if code else text,
                at=at,
                call=call,
                exit_code=None if ended or background else int(code[1]) if code else 0,
            )
            return
        if use is not None and name in ("Write", "Edit", "MultiEdit", "NotebookEdit") and not failed:
            path = use.arguments.get("file_path") or use.arguments.get("notebook_path")
            created = more.get("type") == "create"
            new = more.get("content") if name == "Write" else more.get("newString")
            text_now = new if isinstance(new, str) else use.arguments.get("content") or use.arguments.get("new_string")
            yield build.change(path, "created" if created else "edited", text_now, at=at, call=call)
        yield build.result(call, name, text, at=at, is_error=failed)


def _end(build: Builder, record: dict[str, Any]) -> Iterator[Event]:
    subtype = as_text(record.get("subtype"))
    detail = as_text(record.get("result") or record.get("errors") or "")
    if subtype == "error_max_turns":
        yield build.limit("turns", "its own limit of turns")
        yield build.end("limit", subtype)
    elif record.get("is_error"):
        limit = hit_limit(f"{record.get('api_error_status')} {detail}")
        yield build.end("limit" if limit else "agent_error", f"{subtype}: {detail}")
    elif record.get("stop_reason") == "refusal":
        yield build.end("refused", detail)
    else:
        yield build.end("finished")
