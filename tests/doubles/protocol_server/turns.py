"""Short names for the usual turns, for tests that script the protocol server in Python."""

from __future__ import annotations

from typing import Any

from tests.doubles.protocol_server.script import Cut, ErrorReply, ToolCall, Turn

__all__ = [
    "context_too_long",
    "cut",
    "error",
    "hang",
    "malformed_json",
    "malformed_sse",
    "overloaded",
    "quota_exceeded",
    "rate_limited",
    "refusal",
    "reset",
    "slow",
    "structured",
    "text",
    "tool_call",
    "tool_calls",
    "wrong_content_type",
]


def text(content: str, **options: Any) -> Turn:
    """A text answer; `options` are further fields of `Turn`."""
    return Turn(text=content, **options)


def tool_call(name: str, **arguments: Any) -> ToolCall:
    """One function call."""
    return ToolCall(name=name, arguments=arguments)


def tool_calls(*calls: ToolCall, **options: Any) -> Turn:
    """An answer that calls functions."""
    return Turn(tool_calls=calls, **options)


def structured(value: Any, **options: Any) -> Turn:
    """A JSON value as the text of the answer."""
    return Turn(structured=value, **options)


def refusal(message: str = "I cannot help with that.", **options: Any) -> Turn:
    """The model refuses."""
    return Turn(refusal=message, **options)


def error(
    status: int,
    message: str = "scripted error",
    *,
    code: str | None = None,
    retry_after: float | str | None = None,
    **options: Any,
) -> Turn:
    """An error status in the endpoint's own form."""
    return Turn(error=ErrorReply(status=status, message=message, code=code, retry_after=retry_after), **options)


def rate_limited(retry_after: float | str | None = None, **options: Any) -> Turn:
    """429 as OpenAI words it."""
    return error(429, "Rate limit reached for requests", code="rate_limit_exceeded", retry_after=retry_after, **options)


def quota_exceeded(**options: Any) -> Turn:
    """429 that no retry mends: the account's money is used up."""
    reply = ErrorReply(
        status=429,
        message="You exceeded your current quota, please check your plan and billing details.",
        code="insufficient_quota",
        type="insufficient_quota",
    )
    return Turn(error=reply, **options)


def overloaded(retry_after: float | str | None = None, **options: Any) -> Turn:
    """503, the endpoint has no capacity."""
    return error(503, "The engine is currently overloaded, please try again later", retry_after=retry_after, **options)


def context_too_long(limit: int = 8192, got: int = 10000, **options: Any) -> Turn:
    """400 for a request that does not fit the model's context."""
    message = (
        f"This model's maximum context length is {limit} tokens. However, your messages resulted in {got} tokens. "
        "Please reduce the length of the messages."
    )
    return error(400, message, code="context_length_exceeded", **options)


def slow(turn: Turn, *, before_s: float = 0.0, between_s: float = 0.0) -> Turn:
    """The turn, delayed on the server's clock (inject `ManualClock` and nothing sleeps)."""
    return turn.evolve(delay_s=before_s, between_s=between_s)


def cut(turn: Turn, after: int, *, quiet: bool = False) -> Turn:
    """The turn, ended after `after` events of its stream: the connection drops, or (`quiet`) it just ends."""
    return turn.evolve(cut=Cut(after=after, how="quiet" if quiet else "abrupt"))


def malformed_sse(turn: Turn, after: int = 1) -> Turn:
    """The turn, whose stream holds an event that is no JSON after `after` events."""
    return turn.evolve(cut=Cut(after=after, how="malformed"))


def malformed_json(**options: Any) -> Turn:
    """Status 200 with a body that is no JSON."""
    return Turn(fault="malformed_json", **options)


def wrong_content_type(**options: Any) -> Turn:
    """Status 200 with an HTML page, as a proxy or a wrong base URL gives."""
    return Turn(fault="wrong_content_type", **options)


def reset(**options: Any) -> Turn:
    """The connection is reset before any byte of the answer."""
    return Turn(fault="reset", **options)


def hang(**options: Any) -> Turn:
    """No byte until the server closes: the client's own time-out decides."""
    return Turn(fault="hang", **options)
