"""What a model call used, as the endpoint's own answer states it.

OpenAI's chat, completions, responses and embeddings, and Anthropic's messages, whole or streamed. A call whose answer
states no counts has unknown usage, never zero.
"""

from __future__ import annotations

import json
from typing import Any, Final, Literal

from pipeline.llm.types import Usage

__all__ = ["EventMeter", "Kind", "usage_of"]

Kind = Literal["chat", "completions", "responses", "embeddings", "messages", "models", "count_tokens"]

_NUMBERS: Final = (int, float)


def usage_of(kind: Kind, body: Any) -> Usage | None:
    """Usage that a whole (unstreamed) answer states.

    Args:
        kind: of the endpoint.
        body: the answer's JSON value.
    """
    if not isinstance(body, dict) or not isinstance(body.get("usage"), dict):
        return None
    return _usage(kind, body["usage"])


def _usage(kind: Kind, stated: dict[str, Any]) -> Usage | None:
    if kind == "messages":
        # Anthropic counts what went through its cache beside `input_tokens`, OpenAI within
        read = _number(stated, "cache_read_input_tokens") or 0
        written = _number(stated, "cache_creation_input_tokens") or 0
        fresh, output = _number(stated, "input_tokens"), _number(stated, "output_tokens")
        if fresh is None or output is None:
            return None
        return Usage(
            input_tokens=fresh + read + written, output_tokens=output, cached_input_tokens=read,
            cache_write_tokens=written,
        )  # fmt: skip
    names = ("input_tokens", "output_tokens") if kind == "responses" else ("prompt_tokens", "completion_tokens")
    given, made = _number(stated, names[0]), _number(stated, names[1])
    if kind == "embeddings":
        made = made or 0
    if given is None or made is None:
        return None
    inside = stated.get("input_tokens_details" if kind == "responses" else "prompt_tokens_details")
    made_of = stated.get("output_tokens_details" if kind == "responses" else "completion_tokens_details")
    return Usage(
        input_tokens=given,
        output_tokens=made,
        cached_input_tokens=min(given, _number(inside, "cached_tokens") or 0),
        reasoning_tokens=min(made, _number(made_of, "reasoning_tokens") or 0),
    )


def _number(stated: Any, name: str) -> int | None:
    value = stated.get(name) if isinstance(stated, dict) else None
    return int(value) if isinstance(value, _NUMBERS) and not isinstance(value, bool) and value >= 0 else None


class EventMeter:
    """Reads the usage out of a stream of server-sent events, whole events at a time.

    Args:
        kind: of the endpoint.
    """

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.usage: Usage | None = None
        self.complete = False
        """Did the stream say that it is over?"""
        self._anthropic: dict[str, Any] = {}

    def feed(self, event: bytes) -> bool:
        """Look at one event.

        Returns:
            Is it OpenAI's closing chunk that holds nothing but the usage?
        """
        data = b"\n".join(line[5:].strip() for line in event.splitlines() if line.startswith(b"data:"))
        self.complete = self.complete or data == b"[DONE]"
        try:
            value = json.loads(data) if data else None
        except ValueError:
            value = None
        if not isinstance(value, dict):
            return False
        if self.kind == "messages":
            self._message(value)
        elif self.kind == "responses":
            self._response(value)
        elif isinstance(value.get("usage"), dict):
            self.usage = _usage(self.kind, value["usage"]) or self.usage
            return value.get("choices") == []
        return False

    def _response(self, value: dict[str, Any]) -> None:
        if value.get("type") in {"response.completed", "response.incomplete", "response.failed"}:
            self.complete = True
            self.usage = usage_of("responses", value.get("response")) or self.usage

    def _message(self, value: dict[str, Any]) -> None:
        if value.get("type") == "message_start" and isinstance(value.get("message"), dict):
            stated = value["message"].get("usage")
        elif value.get("type") == "message_delta":
            stated = value.get("usage")
        else:
            self.complete = self.complete or value.get("type") == "message_stop"
            return
        if isinstance(stated, dict):
            self._anthropic.update({name: count for name, count in stated.items() if count is not None})
        if value.get("type") == "message_delta":  # before it the count of output tokens is a start value
            self.usage = _usage("messages", self._anthropic) or self.usage
