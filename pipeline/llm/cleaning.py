"""What is taken out of a request before it is keyed, sent and recorded."""

from __future__ import annotations

from pipeline.llm.redact import redact_content, redact_value
from pipeline.llm.types import Message, Request, TextPart

__all__ = ["clean_request", "clean_text"]


def clean_request(request: Request) -> Request:
    """Without our keys, and without lone surrogates, which no endpoint accepts."""
    return request.evolve(messages=tuple(_clean_message(message) for message in request.messages))


def _clean_message(message: Message) -> Message:
    content = tuple(
        part.evolve(text=clean_text(part.text)) if isinstance(part, TextPart) else part for part in message.content
    )
    calls = tuple(call.evolve(arguments=redact_value(dict(call.arguments))) for call in message.tool_calls)
    return message.evolve(content=content, tool_calls=calls)


def clean_text(text: str) -> str:
    """One text, in the same way."""
    return redact_content(text.encode("utf-8", "replace").decode("utf-8"))
