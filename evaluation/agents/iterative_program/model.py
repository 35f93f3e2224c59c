"""One question to an OpenAI-compatible endpoint over plain HTTP, with retries by the kind of failure."""

from __future__ import annotations

import http.client
import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

__all__ = ["Answer", "ContextTooLong", "Endpoint", "EndpointError", "LimitReached"]

_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_FIRST_WAIT_S, _LONGEST_WAIT_S = 1.0, 60.0
_MOST_BYTES = 64 << 20
_TOO_LONG = ("context_length_exceeded", "maximum context length", "context window", "prompt is too long")


class EndpointError(Exception):
    """The endpoint gave no answer, and asking again does not help (any more)."""


class ContextTooLong(EndpointError):  # noqa: N818 - said of the request
    """The request does not fit the model."""


class LimitReached(EndpointError):  # noqa: N818 - an end, not an error
    """The harness's gateway gives no more answers: a limit of the episode is reached (402)."""


@dataclass
class Answer:
    """What the model said."""

    message: dict[str, Any]
    """To be sent back as it is: role, content, tool_calls."""
    text: str
    reasoning: str
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    refusal: str = ""
    finish_reason: str = ""
    model: str = ""
    usage: dict[str, int] | None = None


class Endpoint:
    """A chat-completions endpoint.

    Args:
        base_url: ends in `/v1`.
        timeout_s: of one attempt.
        retries: further attempts after failures that may pass.
        deadline: monotonic time after which nothing is tried any more.
        on_retry: told of each further attempt: attempt, reason, wait in seconds.
        sleep: where waits pass.
    """

    def __init__(
        self,
        base_url: str,
        *,
        timeout_s: float,
        retries: int,
        deadline: float,
        on_retry: Callable[[int, str, float], None],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"base_url {base_url!r} is no http(s) address")
        self._parts = parts
        self._path = parts.path.rstrip("/") + "/chat/completions"
        self._timeout_s, self._retries, self._deadline = timeout_s, retries, deadline
        self._on_retry, self._sleep = on_retry, sleep

    def ask(self, body: dict[str, Any]) -> Answer:
        """The answer to one request.

        Raises:
            LimitReached: the gateway refuses for good (402).
            ContextTooLong: the request has to be shortened.
            EndpointError: anything else that lasts, or the deadline.
        """
        data = json.dumps(body).encode()
        attempt = 0
        while True:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise EndpointError("no time is left for a model call")
            try:
                return _answer(self._once(data, min(self._timeout_s, left)))
            except _Passing as error:
                attempt += 1
                wait = error.wait_s if error.wait_s is not None else min(_FIRST_WAIT_S * 2 ** (attempt - 1), 30.0)
                wait = min(wait, _LONGEST_WAIT_S) * random.uniform(1.0, 1.1)  # noqa: S311 - spreads retries
                if attempt > self._retries or time.monotonic() + wait > self._deadline:
                    raise EndpointError(f"{error} (after {attempt} attempts)") from error
                self._on_retry(attempt, str(error), wait)
                self._sleep(wait)

    def _once(self, data: bytes, timeout_s: float) -> dict[str, Any]:
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(self._parts.hostname or "", self._parts.port, timeout=timeout_s)
        try:
            # no key: the gateway adds it outside; the header is there because some servers want one
            headers = {"content-type": "application/json", "authorization": "Bearer none"}
            connection.request("POST", self._path, data, headers)
            response = connection.getresponse()
            body = response.read(_MOST_BYTES)
            _raise_for(response.status, response.headers, body)
        except (OSError, http.client.HTTPException) as error:  # refused, reset, timed out, cut off
            raise _Passing(f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()
        try:
            parsed = json.loads(body)
        except ValueError as error:
            raise _Passing(f"the answer is no JSON ({len(body)} bytes)") from error
        if not isinstance(parsed, dict):
            raise _Passing("the answer is no JSON object")
        return parsed


class _Passing(Exception):  # noqa: N818
    """A failure that may pass."""

    def __init__(self, message: str, wait_s: float | None = None) -> None:
        self.wait_s = wait_s
        super().__init__(message)


def _raise_for(status: int, headers: Any, body: bytes) -> None:
    if status == 200:
        return
    text = body[:2000].decode("utf-8", "replace")
    if status == 402:
        raise LimitReached(text)
    lower = text.lower()
    if status in (400, 413) and any(mark in lower for mark in _TOO_LONG):
        raise ContextTooLong(text)
    if status in _PASSING and headers.get("x-should-retry") != "false" and "insufficient_quota" not in lower:
        raise _Passing(f"HTTP {status}: {text[:300]}", _seconds(headers.get("retry-after")))
    raise EndpointError(f"HTTP {status}: {text}")


def _seconds(value: str | None) -> float | None:
    """`Retry-After` in seconds; a date, or nonsense, counts as not given."""
    try:
        seconds = float(value or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None


def _answer(parsed: dict[str, Any]) -> Answer:
    choices = parsed.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    message = choice.get("message")
    if not isinstance(message, dict):
        raise _Passing(f"the answer has no message: {json.dumps(parsed)[:300]}")
    calls = [call for call in message.get("tool_calls") or [] if isinstance(call, dict) and call.get("function")]
    text = message.get("content")
    kept: dict[str, Any] = {"role": "assistant", "content": text if isinstance(text, str) else ""}
    if calls:
        kept["tool_calls"] = calls
    return Answer(
        message=kept,
        text=kept["content"],
        reasoning=str(message.get("reasoning_content") or message.get("reasoning") or ""),
        tool_calls=calls,
        refusal=str(message.get("refusal") or ""),
        finish_reason=str(choice.get("finish_reason") or ""),
        model=str(parsed.get("model") or ""),
        usage=_usage(parsed.get("usage")),
    )


def _usage(value: Any) -> dict[str, int] | None:
    if not isinstance(value, dict) or not isinstance(value.get("prompt_tokens"), int):
        return None
    details = value.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else 0
    return {
        "input_tokens": value["prompt_tokens"],
        "output_tokens": int(value.get("completion_tokens") or 0),
        "cached_input_tokens": int(cached or 0),
    }
