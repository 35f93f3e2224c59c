"""One request with the turn that answers it: what the endpoints' wire formats are built from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from tests.doubles.protocol_server.script import ErrorReply, ScriptedUsage, Turn

__all__ = ["CREATED", "Event", "Exchange", "Rejection", "Wire", "estimate_tokens", "pieces", "request_text"]

CREATED = 1_700_000_000
"""The `created` time of every answer: a constant, so that equal scripts give equal bytes."""

_CHARS_PER_TOKEN = 4
_IMAGE_TOKENS = 85
"""What OpenAI's documentation charges for one low-detail image."""


class Event(NamedTuple):
    """One server-sent event. `data` is sent as JSON, text as it is."""

    name: str | None
    data: Any


class Rejection(NamedTuple):
    """Why a request is invalid, as the endpoint would say it."""

    status: int
    message: str
    code: str | None = None
    param: str | None = None


@dataclass(frozen=True)
class Exchange:
    """A valid request and its turn."""

    number: int
    body: dict[str, Any]
    turn: Turn

    @property
    def model(self) -> str:
        """The model that was asked for."""
        return str(self.body.get("model", "scripted"))

    @property
    def text(self) -> str | None:
        """The text of the answer (a structured value as JSON text)."""
        if self.turn.structured is not None:
            return json.dumps(self.turn.structured, ensure_ascii=False)
        return self.turn.text

    @property
    def calls(self) -> list[tuple[str, str, str]]:
        """Function calls as (id, name, arguments text)."""
        return [
            (
                call.id or f"call_{self.number:06d}_{index}",
                call.name,
                call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False),
            )
            for index, call in enumerate(self.turn.tool_calls)
        ]

    @property
    def usage(self) -> ScriptedUsage | None:
        """Reported token counts."""
        if self.turn.omit_usage:
            return None
        if self.turn.usage is not None:
            return self.turn.usage
        answer = (self.text or "") + (self.turn.refusal or "") + "".join(name + text for _, name, text in self.calls)
        return ScriptedUsage(prompt=estimate_tokens(self.body), completion=max(1, len(answer) // _CHARS_PER_TOKEN))


class Wire(Protocol):
    """The format of one endpoint."""

    def check(self, body: dict[str, Any]) -> Rejection | None:
        """Why the request is invalid, or None."""

    def whole(self, exchange: Exchange) -> dict[str, Any]:
        """The body of an unstreamed answer."""

    def events(self, exchange: Exchange) -> Iterator[Event]:
        """The events of a streamed answer, the closing one included."""

    def error(self, reply: ErrorReply) -> dict[str, Any]:
        """The body of an error."""

    def error_event(self, reply: ErrorReply) -> Event:
        """An error inside a stream."""

    def assistant_turns(self, body: dict[str, Any]) -> int:
        """How many turns of the model the request holds already."""


def pieces(text: str, size: int) -> Iterator[str]:
    """The text in parts of `size` characters."""
    for start in range(0, len(text), size):
        yield text[start : start + size]


def _texts(value: Any) -> Iterator[str]:
    """Texts of a message tree. Identifiers, roles and image data are left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for key in ("content", "text", "output", "input", "refusal", "arguments"):
            if key in value:
                yield from _texts(value[key])


def request_text(body: dict[str, Any]) -> str:
    """All text of the request: system, instructions, messages, input."""
    parts = [body.get(key) for key in ("system", "instructions", "messages", "input")]
    return "\n".join(_texts([part for part in parts if part is not None]))


def _images(value: Any) -> int:
    if isinstance(value, list):
        return sum(_images(item) for item in value)
    if isinstance(value, dict):
        own = int(value.get("type") in ("image_url", "input_image", "image"))
        return own + sum(_images(value[key]) for key in ("content", "messages", "input") if key in value)
    return 0


def estimate_tokens(body: dict[str, Any]) -> int:
    """Tokens of a request by length: no model's tokenizer, but deterministic and of the right order."""
    tools = len(json.dumps(body["tools"])) if body.get("tools") else 0
    return max(1, (len(request_text(body)) + tools) // _CHARS_PER_TOKEN) + _IMAGE_TOKENS * _images(body)
