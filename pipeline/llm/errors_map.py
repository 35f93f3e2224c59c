"""What went wrong with a call: from the client libraries' exceptions to the one table of failures.

LangChain classifies the errors of all its providers; status and code refine that where providers disagree (429 for
"slow down" and for "pay first"). Of the original exception only redacted text is kept: those objects
carry requests.
"""

from __future__ import annotations

import asyncio
import email.utils
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from pipeline.errors import Cause, ExpbenchError, FailureKind
from pipeline.llm.redact import redact
from pipeline.schema import Record

__all__ = ["CallFailure", "CutStreamError", "ModelError", "classify", "provider_errors", "wants_responses_api"]

# OpenAI, vLLM, llama.cpp (server and Python bindings), Ollama, TGI, Anthropic
_TOO_LONG: Final = re.compile(
    r"context[ _]length|context window|context size|maximum context|prompt is too long|input tokens exceed"
    r"|too many tokens|ContextWindowExceeded|exceeds? (?:the )?(?:model's )?max(?:imum)?[ _](?:input|model)",
    re.I,
)
_NO_MONEY: Final = re.compile(r"insufficient_quota|billing|exceeded your current quota|credit balance", re.I)
_REFUSED: Final = re.compile(r"content_filter|content_policy|content management policy|safety system", re.I)
# llama.cpp's Python server (0.3.36) answers 500 for a body that its own schema does not allow, and 422 would be right.
_BODY_INVALID: Final = re.compile(r"validation errors?:\s.{0,200}'loc': \('body'", re.S)
_OTHER_API: Final = re.compile(r"\bv1/responses\b|\bresponses api\b", re.I)
_LONGEST_CAUSE: Final = 400

_NEXT: Final[dict[FailureKind, str]] = {
    FailureKind.RATE_LIMIT: "Wait and resume, lower the number of concurrent tasks, or ask the provider for more",
    FailureKind.OVERLOADED: "Wait and resume; if it persists, see the provider's status page or the server's log",
    FailureKind.MODEL_TIMEOUT: "Resume; raise EXPBENCH_MODEL_TIMEOUT_S if the model is slow",
    FailureKind.PROTOCOL_BROKEN: "Check that OPENAI_BASE_URL names an OpenAI-compatible API (it usually ends in /v1)",
    FailureKind.REQUEST_REJECTED: "Check the model's name and whether it takes what was asked (tools, images, seed)",
    FailureKind.CONTEXT_TOO_LONG: "Use a model with a larger context window, or allow the text to be split",
    FailureKind.REFUSAL: "Use another model for this task, or leave the task out",
    FailureKind.INVALID_OUTPUT: "Resume with --refresh, or use a model that follows JSON schemas",
    FailureKind.AUTHENTICATION: "Check the key in the environment or the keyring, and what it is allowed to do",
    FailureKind.QUOTA: "Add credit or raise the limit at the provider, then resume",
    FailureKind.NETWORK: "Check the address (OPENAI_BASE_URL) and the connection, then resume",
    FailureKind.REPLAY_MISS: "Run once without replay to record the exchange",
}


class CutStreamError(Exception):
    """A stream ended before the model had said that it was finished."""


class CallFailure(Record):
    """One failed attempt."""

    kind: FailureKind
    cause: str
    """Redacted."""
    status: int | None = None
    retry_after_s: float | None = None
    request_id: str | None = None
    maybe_billed: bool = False
    """May the endpoint have worked (and charge) although no answer arrived?"""


class ModelError(ExpbenchError):
    """A call that ended without an answer.

    Attributes:
        attempts: requests that were made.
        retry_after_s: what the endpoint asked to wait, if it did.
    """

    def __init__(
        self,
        kind: FailureKind,
        object_: str,
        cause: str,
        *,
        attempts: int = 0,
        retry_after_s: float | None = None,
        consequence: str = "There is no answer",
        next_step: str | None = None,
    ) -> None:
        self.attempts = attempts
        self.retry_after_s = retry_after_s
        cause = redact(cause).rstrip(". ")
        super().__init__(kind, redact(object_), cause, consequence=consequence, next_step=next_step or _NEXT[kind])

    @property
    def hits_every_call(self) -> bool:
        """Is the set-up wrong (key, quota, model), so that the next question fails alike?

        A context that is too long is the user's to mend too, but it is about this one question.
        """
        return self.failure.cause is Cause.USER and self.kind is not FailureKind.CONTEXT_TOO_LONG


def provider_errors() -> tuple[type[Exception], ...]:
    """What a provider call may raise; the built-in ones are how the libraries react to a broken protocol."""
    import httpx2
    import openai
    from langchain_core.exceptions import LangChainException
    from pydantic import ValidationError

    return (
        openai.OpenAIError, LangChainException, httpx2.HTTPError, httpx2.StreamError, OSError, CutStreamError,
        asyncio.TimeoutError, ValidationError, ValueError, KeyError, IndexError, TypeError, AttributeError,
    )  # fmt: skip


def classify(error: Exception) -> CallFailure:
    """The failure that an exception of a provider call stands for."""
    status = getattr(error, "status_code", None)
    status = status if isinstance(status, int) else None
    text = _text(error)
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    kind, billed = _kind(error, status, text)
    return CallFailure(
        kind=kind,
        cause=_brief(error, text),
        status=status,
        retry_after_s=retry_after(headers),
        request_id=redact(headers.get("x-request-id") or headers.get("request-id") or "")[:100] or None,
        maybe_billed=billed,
    )


def wants_responses_api(error: ModelError) -> bool:
    """Does an endpoint say that it offers a model (or what was asked) through the Responses API only?"""
    return error.kind is FailureKind.REQUEST_REJECTED and _OTHER_API.search(error.cause) is not None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait according to `retry-after-ms` or `retry-after` (seconds or a date); None without a valid one."""
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) / scale
        except ValueError:
            seconds = _until(value)
        if 0 <= seconds < float("inf"):
            return seconds
    return None


def _until(date: str) -> float:
    try:
        moment = email.utils.parsedate_to_datetime(date)
    except ValueError:
        return -1.0
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _kind(error: Exception, status: int | None, text: str) -> tuple[FailureKind, bool]:
    """The kind, and whether the endpoint may have worked nevertheless."""
    import openai
    from langchain_core import exceptions as core

    if isinstance(error, core.ContextOverflowError):
        return FailureKind.CONTEXT_TOO_LONG, False
    if status is not None:
        return _kind_of_status(status, text), False
    for classes, kind in _transport_classes():
        if isinstance(error, classes):
            return kind, not _never_connected(error)
    if isinstance(error, openai.APIError):  # an error event inside a stream: it has a code, but no status
        return _kind_of_code(str(error.code or ""), text), True
    for base, kind in (
        (core.ModelAuthenticationError, FailureKind.AUTHENTICATION),
        (core.ModelPermissionDeniedError, FailureKind.AUTHENTICATION),
        (core.ModelRateLimitError, FailureKind.RATE_LIMIT),
        (core.ModelAPIError, FailureKind.OVERLOADED),
        (core.ModelNotFoundError, FailureKind.REQUEST_REJECTED),
        (core.ModelInvalidRequestError, FailureKind.REQUEST_REJECTED),
    ):
        if isinstance(error, base):
            return kind, False
    return FailureKind.PROTOCOL_BROKEN, True


def _transport_classes() -> tuple[tuple[tuple[type[Exception], ...], FailureKind], ...]:
    import httpx2
    import openai
    from langchain_core import exceptions as core

    timeouts = (core.ModelTimeoutError, openai.APITimeoutError, httpx2.TimeoutException, TimeoutError)
    broken = (core.ModelConnectionError, openai.APIConnectionError, httpx2.TransportError, OSError, CutStreamError)
    return (timeouts, FailureKind.MODEL_TIMEOUT), (broken, FailureKind.NETWORK)


def _kind_of_status(status: int, text: str) -> FailureKind:
    if status in {400, 413, 422, 500} and _TOO_LONG.search(text):  # llama.cpp answers 500
        return FailureKind.CONTEXT_TOO_LONG
    if status in {400, 403, 422} and _REFUSED.search(text):
        return FailureKind.REFUSAL
    if status == 402 or (status in {400, 403, 429} and _NO_MONEY.search(text)):
        return FailureKind.QUOTA
    exact = {
        401: FailureKind.AUTHENTICATION, 403: FailureKind.AUTHENTICATION, 407: FailureKind.AUTHENTICATION,
        408: FailureKind.MODEL_TIMEOUT, 409: FailureKind.OVERLOADED, 413: FailureKind.CONTEXT_TOO_LONG,
        425: FailureKind.OVERLOADED, 429: FailureKind.RATE_LIMIT, 504: FailureKind.MODEL_TIMEOUT,
    }  # fmt: skip
    if status in exact:
        return exact[status]
    if status == 500 and _BODY_INVALID.search(text):
        return FailureKind.REQUEST_REJECTED
    return FailureKind.OVERLOADED if status >= 500 else FailureKind.REQUEST_REJECTED


def _kind_of_code(code: str, text: str) -> FailureKind:
    if _TOO_LONG.search(text):
        return FailureKind.CONTEXT_TOO_LONG
    if _NO_MONEY.search(text) or code == "insufficient_quota":
        return FailureKind.QUOTA
    if code in {"rate_limit_exceeded", "429"}:
        return FailureKind.RATE_LIMIT
    if _REFUSED.search(text):
        return FailureKind.REFUSAL
    return FailureKind.OVERLOADED


def _never_connected(error: BaseException) -> bool:
    """Did the request not even reach the endpoint?"""
    import httpx2

    seen: BaseException | None = error
    for _ in range(8):
        if seen is None:
            return False
        if isinstance(seen, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout | ConnectionRefusedError):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def _text(error: Exception) -> str:
    body: Any = getattr(error, "body", None)
    return f"{error} {body}" if body is not None else str(error)


def _brief(error: Exception, text: str) -> str:
    body: Any = getattr(error, "body", None)
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        body = body["error"]  # Anthropic's envelope
    message = body.get("message") if isinstance(body, dict) else None
    said = message if isinstance(message, str) and message else text
    said = " ".join(redact(said).split())[:_LONGEST_CAUSE]
    name = type(error).__name__
    under = error.__cause__
    if under is not None and getattr(error, "status_code", None) is None:  # "Connection error." alone says nothing
        while under.__cause__ is not None:
            under = under.__cause__
        said = f"{said} ({' '.join(redact(f'{type(under).__name__}: {under}').split())[:_LONGEST_CAUSE]})"
    return f"{name}: {said}" if said else name
