"""What the readers share: building events from foreign values, and reading JSON lines that may be broken."""

from __future__ import annotations

import io
import json
import os
import re
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

from pydantic import JsonValue

from evaluation.trajectory import (
    CommandRun,
    End,
    FileChange,
    LimitHit,
    ModelTurn,
    Note,
    TokenUsage,
    ToolResult,
    ToolUse,
    Utterance,
)

__all__ = [
    "Builder",
    "Clock",
    "JsonLines",
    "as_dict",
    "as_list",
    "as_number",
    "as_text",
    "clean",
    "hit_limit",
    "joined",
    "parse_arguments",
    "parse_json",
    "read_log",
    "tail",
    "tool_use",
]

MOST_CHARS: Final = 262_144
"""Of one text in the trajectory. Agents cut what their model sees at 10,000 to 30,000 characters."""
_MOST_DEPTH: Final = 40
_MOST_LOG: Final = 64 << 20
"""Bytes of a log that are read; an agent can write as much as its disk holds."""
_TAIL: Final = 2000
_PAYMENT: Final = re.compile(r"\b402\b|payment required|budget[_ ]exhausted|limit of this run reached", re.IGNORECASE)


class Builder:
    """Makes events, numbered from 0, from values of foreign types; texts are made storable and bounded."""

    def __init__(self) -> None:
        self._next = 0

    @property
    def count(self) -> int:
        """How many events were made."""
        return self._next

    def _seq(self) -> int:
        self._next += 1
        return self._next - 1

    def utterance(self, role: Literal["system", "user", "agent"], text: Any, at: float = 0.0) -> Utterance:
        """Text that is no model's turn."""
        return Utterance(seq=self._seq(), at=at, role=role, text=_text(text))

    def turn(
        self,
        text: Any,
        *,
        at: float = 0.0,
        reasoning: Any = "",
        tool_uses: tuple[ToolUse, ...] = (),
        model: Any = None,
        usage: TokenUsage | None = None,
    ) -> ModelTurn:
        """A turn of the model."""
        return ModelTurn(
            seq=self._seq(),
            at=at,
            text=_text(text),
            reasoning=_text(reasoning),
            tool_uses=tool_uses,
            model=clean(model) if isinstance(model, str) and model else None,
            usage=usage,
        )

    def command(
        self,
        command: Any,
        output: Any,
        *,
        at: float = 0.0,
        call: Any = None,
        exit_code: Any = None,
        directory: Any = None,
        truncated: bool = False,
        duration_s: Any = None,
    ) -> CommandRun:
        """A command that was run."""
        text = clean(as_text(output))
        return CommandRun(
            seq=self._seq(),
            at=at,
            call=_id(call),
            command=_text(command),
            directory=clean(directory) if isinstance(directory, str) and directory else None,
            output=_bounded(text),
            exit_code=exit_code if isinstance(exit_code, int) and not isinstance(exit_code, bool) else None,
            truncated=truncated or len(text) > MOST_CHARS,
            duration_s=as_number(duration_s),
        )

    def result(self, call: Any, name: Any, output: Any, *, at: float = 0.0, is_error: bool = False) -> ToolResult:
        """What a tool gave back."""
        return ToolResult(
            seq=self._seq(), at=at, call=_id(call) or "", name=_text(name), output=_text(output), is_error=is_error
        )

    def change(
        self,
        path: Any,
        action: Literal["created", "edited", "deleted"],
        text: Any,
        *,
        at: float = 0.0,
        call: Any = None,
    ) -> FileChange:
        """A file that a tool changed."""
        return FileChange(seq=self._seq(), at=at, call=_id(call), path=_text(path), action=action, text=_text(text))

    def limit(
        self,
        limit: Literal["wall_time", "model_calls", "tokens", "money", "output", "memory", "disk", "processes", "turns"],
        detail: Any,
        at: float = 0.0,
    ) -> LimitHit:
        """A limit that the agent keeps itself."""
        return LimitHit(seq=self._seq(), at=at, limit=limit, detail=_text(detail))

    def note(self, text: Any, at: float = 0.0) -> Note:
        """Something about the log, or something in it that has no kind of its own."""
        return Note(seq=self._seq(), at=at, text=_text(text))

    def end(
        self,
        reason: Literal["finished", "limit", "agent_error", "refused"],
        detail: Any = "",
        *,
        at: float = 0.0,
        exit_code: int | None = None,
    ) -> End:
        """The end as the agent's log tells it."""
        return End(seq=self._seq(), at=at, reason=reason, exit_code=exit_code, detail=_text(detail))

    def no_log(self, agent: str, stderr: Path) -> Note:
        """For a log that is not there or empty."""
        said = tail(stderr)
        return self.note(f"{agent} left no log" + (f", and printed: {said}" if said else ""))


class JsonLines:
    """The objects of a JSON-lines file that can be read; counts what cannot.

    Args:
        path: the file; one that cannot be read (`read_log`) is empty.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._cut = False
        self.unreadable: list[int] = []
        """Numbers of the lines that are no JSON objects (blank ones left out)."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for number, line in self.lines():
            value = parse_json(line.decode("utf-8", "replace"))
            if isinstance(value, dict):
                yield value
            else:
                self.unreadable.append(number)

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Number and bytes of each line that is not blank."""
        data = read_log(self._path)
        self._cut = len(data) >= _MOST_LOG
        for number, line in enumerate(io.BytesIO(data), 1):
            if line.strip():
                yield number, line

    def complaint(self) -> str:
        """What could not be read; empty when everything could."""
        said = [f"{self._path.name} is longer than {_MOST_LOG >> 20} MB: the rest was left out"] if self._cut else []
        if self.unreadable:
            shown = ", ".join(map(str, self.unreadable[:10])) + (", ..." if len(self.unreadable) > 10 else "")
            said.append(f"{len(self.unreadable)} lines of {self._path.name} cannot be read and were left out: {shown}")
        return "; ".join(said)


def _open_plain(path: Path) -> BinaryIO:
    """Open a regular file. What an agent left may be anything: a link is not followed, and nobody waits for a pipe.

    Raises:
        OSError: it is none, or cannot be opened.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(f"{path.name} is no regular file")
    return os.fdopen(handle, "rb")


def read_log(path: Path) -> bytes:
    """A log, as far as it is read; empty where there is none, or something that is no regular file."""
    try:
        with _open_plain(path) as stream:
            return stream.read(_MOST_LOG)
    except OSError:
        return b""


def parse_json(text: str) -> Any:
    """The value, or None for what is no JSON (or nested beyond reason)."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def clean(text: str) -> str:
    """The text with what UTF-8 cannot hold (lone surrogates out of JSON escapes) spelt out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _bounded(text: str) -> str:
    if len(text) <= MOST_CHARS:
        return text
    half = MOST_CHARS // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def _text(value: Any) -> str:
    return _bounded(clean(as_text(value)))


def _id(value: Any) -> str | None:
    return clean(value)[:200] if isinstance(value, str) and value else None


def tool_use(call: Any, name: Any, arguments: Any) -> ToolUse:
    """A tool call that a turn asked for; `arguments` as `parse_arguments` takes them."""
    return ToolUse(id=_id(call) or "", name=_text(name), arguments=parse_arguments(arguments))


def as_text(value: Any) -> str:
    """Text as it is, nothing as empty, anything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def as_dict(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def as_number(value: Any) -> float | None:
    """A finite number that is not negative, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e12 else None


def joined(content: Any) -> str:
    """The text of a message's content: text itself, or its text parts."""
    if isinstance(content, list):
        return "\n".join(as_text(as_dict(part).get("text")) for part in content if as_dict(part).get("text"))
    return as_text(content)


def parse_arguments(value: Any) -> dict[str, JsonValue]:
    """Arguments of a tool call: an object, or the JSON text of one; anything else under `input`."""
    parsed = parse_json(value) if isinstance(value, str) else value
    if not isinstance(parsed, dict):
        parsed = {} if value in (None, "") else {"input": value}
    return {clean(as_text(key)): _storable(item, 0) for key, item in parsed.items()}


def _storable(value: Any, depth: int) -> JsonValue:
    if depth > _MOST_DEPTH:
        return _text(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return [_storable(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {clean(as_text(key)): _storable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, float) and not -1e308 < value < 1e308:
        return str(value)  # JSON has neither infinity nor NaN
    return value if value is None or isinstance(value, bool | int | float) else _text(value)


def tail(path: Path) -> str:
    """The end of a text file, for a message; empty where there is none."""
    try:
        with _open_plain(path) as stream:
            stream.seek(0, 2)
            stream.seek(max(stream.tell() - _TAIL, 0))
            return clean(stream.read().decode("utf-8", "replace")).strip()
    except OSError:
        return ""


class Clock:
    """Seconds since the first time that a log gives."""

    def __init__(self) -> None:
        self._first: float | None = None

    def at(self, value: Any) -> float:
        """Seconds since the first call; 0 for what is no time.

        Args:
            value: ISO 8601 text, or seconds of any epoch.
        """
        seconds = as_number(value)
        if isinstance(value, str):
            try:
                moment = datetime.fromisoformat(value)
            except ValueError:
                return 0.0
            # which zone a log means does not matter: only differences are used
            seconds = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
        if seconds is None:
            return 0.0
        if self._first is None:
            self._first = seconds
        return round(max(seconds - self._first, 0.0), 3)


def hit_limit(text: str) -> bool:
    """Does an agent's error say that the gateway gave no more answers (402)?"""
    return bool(_PAYMENT.search(text))
