"""Secrets never leave the process except in the header they are meant for.

Two circles. *Diagnostics* (exceptions, log records, ledger lines) lose everything that is a known secret or looks like
one. *Content* (what is sent to a model, answered by it, and recorded) loses only the exact values of the keys that this
layer itself holds, in plain, URL-quoted, JSON and base64 form: replacing whatever merely looks like a secret would
falsify what papers and repositories say.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import re
import threading
import urllib.parse
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = [
    "StreamRedactor",
    "protect_loggers",
    "redact",
    "redact_content",
    "redact_value",
    "register_environment",
    "register_secret",
]

_SECRET_NAME: Final = re.compile(
    r"(?:^|_)(?:API_?KEY|ACCESS_KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(?:_|$)", re.I
)
# The shapes of keys of the providers, of bearer headers, and of credentials inside URLs; servers echo keys half masked.
_SHAPES: Final = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|ghp|gho|ghs|glpat|AIza|r8)[-_][A-Za-z0-9*_.\-]{8,}"
    r"|\bAIza[A-Za-z0-9_\-]{20,}"
    r"|(?i:\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=\-]{8,}"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
)
# Shorter values are placeholders of local servers ("none", "EMPTY", "ollama") and ordinary words.
_SHORTEST_CONTENT: Final = 12
_SHORTEST_DIAGNOSTIC: Final = 8
# What the client libraries log at debug level: requests, answers, headers (`httpcore2.http11` and the like included).
_LOGGERS: Final = ("openai", "httpx", "httpcore", "langchain", "langsmith", "anthropic", "anyio", "asyncio", "expbench")

_URL_SAFE: Final = str.maketrans("+/", "-_")

_registered: dict[str, str] = {}
_guard = threading.Lock()


def register_secret(name: str, value: str) -> None:
    """Make a value known as a secret, under the name that will stand in its place."""
    if len(value.strip()) >= _SHORTEST_DIAGNOSTIC:
        with _guard:
            _registered[value.strip()] = name


def redact_content(text: str) -> str:
    """`text` without the keys that this layer holds, in any of their common encodings."""
    with _guard:
        known = [(value, name) for value, name in _registered.items() if len(value) >= _SHORTEST_CONTENT]
    return _without(text, known)


def redact(text: str) -> str:
    """`text` for people's eyes: without known secrets, without the environment's, without what looks like one."""
    with _guard:
        known = dict(_registered)
    for name, value in os.environ.items():
        if len(value) >= _SHORTEST_DIAGNOSTIC and _SECRET_NAME.search(name):
            known.setdefault(value, name)
    return _SHAPES.sub("[redacted]", _without(text, list(known.items())))


def redact_value(value: JsonValue) -> JsonValue:
    """`redact_content` for all text inside a JSON value, keys included."""
    if isinstance(value, str):
        return redact_content(value)
    if isinstance(value, list):
        return [redact_value(item) for item in value]
    if isinstance(value, dict):
        return {redact_content(key): redact_value(item) for key, item in value.items()}
    return value


def _without(text: str, known: list[tuple[str, str]]) -> str:
    for value, name in sorted(known, key=lambda pair: -len(pair[0])):  # a secret may contain a shorter one
        for form in _forms(value):
            if form in text:
                text = text.replace(form, f"[redacted:{name}]")
    return text


@lru_cache(maxsize=256)
def _forms(value: str) -> list[str]:
    """The value, and how it looks inside JSON, URLs, Python's repr and base64, longest first."""
    plain = value.encode("utf-8", "surrogateescape")
    forms = {value, json.dumps(value)[1:-1], repr(value)[1:-1], repr(plain)[2:-1]}
    forms |= {urllib.parse.quote(plain, safe=safe) for safe in ("", "/")} | {urllib.parse.quote_plus(plain)}
    for shift in range(3):  # inside a longer text the groups of base64 begin anywhere; the edges mix with neighbours
        groups = base64.b64encode(b"x" * shift + plain).decode("ascii").rstrip("=")
        inner = groups[4 if shift else 0 : len(groups) // 4 * 4 if shift else None]
        if len(inner) >= _SHORTEST_DIAGNOSTIC:
            forms |= {inner, inner.translate(_URL_SAFE)}
    return sorted(forms, key=lambda form: (-len(form), form))


def protect_loggers(*names: str) -> None:
    """Redact what the client libraries log, and whoever else is named (loggers that begin with the name).

    Done where records are made, because filters of a logger do not see the records of those below it, and handlers
    belong to the application.
    """
    with _guard:
        _protected.update(_LOGGERS, names)
        if getattr(logging.getLogRecordFactory(), "redacts", False):
            return
        logging.setLogRecordFactory(_redacting(logging.getLogRecordFactory()))


_protected: set[str] = set()


def _redacting(make: Callable[..., logging.LogRecord]) -> Callable[..., logging.LogRecord]:
    def record(*args: Any, **options: Any) -> logging.LogRecord:
        made = make(*args, **options)
        if made.name.startswith(tuple(_protected)):
            _redact_record(made)
        return made

    record.redacts = True  # type: ignore[attr-defined]
    return record


def _redact_record(record: logging.LogRecord) -> None:
    message = record.getMessage()
    clean = redact(message)
    if clean != message:
        record.msg, record.args = clean, ()
    if record.exc_info and record.exc_info[1] is not None:
        trace = logging.Formatter().formatException(record.exc_info)
        if redact(trace) != trace:
            record.exc_text, record.exc_info = redact(trace), None


class StreamRedactor:
    """Redacts a text that arrives in pieces: a piece that may be the beginning of a secret is held back."""

    def __init__(self) -> None:
        self._held = ""
        with _guard:
            known = [value for value in _registered if len(value) >= _SHORTEST_CONTENT]
        self._known = [form for value in known for form in _forms(value)]

    def feed(self, piece: str) -> str:
        """What can be shown after this piece."""
        text = redact_content(self._held + piece)
        held = 0
        for form in self._known:
            for size in range(min(len(form) - 1, len(text)), held, -1):
                if text.endswith(form[:size]):
                    held = size
                    break
        self._held = text[len(text) - held :]
        return text[: len(text) - held]

    def rest(self) -> str:
        """What was still held back at the end."""
        return self._held


def register_environment() -> None:
    """Register the API keys of the environment, so that they are unknown to content from the first request on."""
    for name, value in sorted(os.environ.items()):
        if name.upper().endswith("_API_KEY"):
            register_secret(name, value)
