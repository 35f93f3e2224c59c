"""The record of an agent's model calls: one JSON line an exchange, redacted, beside the trajectory.

A conversation repeats its whole past in every request; written out in full, the record of a run of 300 turns would be
quadratic in its length. Where the messages of a request begin with those of an earlier one, the line says so
(`same_as`, `same_messages`) and holds the rest; `read_calls` puts them together again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pydantic import JsonValue

from pipeline.digests import text_digest
from pipeline.llm.redact import redact_content, redact_value

__all__ = ["CallRecorder", "read_calls"]

_LISTS: Final = ("messages", "input")
_MOST_RESPONSE: Final = 8 << 20
"""Bytes of an answer that are kept; the longest answers of today's models are under 1 MB as a stream."""


class CallRecorder:
    """Appends exchanges to a file.

    Args:
        path: the file; replaced.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._stream = path.open("w", encoding="utf-8", buffering=1)
        self._number = 0
        self._known: dict[str, tuple[int, int]] = {}

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def write(self, exchange: dict[str, Any], request: JsonValue, response: bytes, *, stream: bool) -> None:
        """Write one exchange.

        Args:
            exchange: what is known of it (endpoint, status, usage, ...).
            request: the request's JSON value, as it was sent on.
            response: the answer's bytes.
            stream: were these server-sent events?
        """
        line = {"call": self._number, **exchange, "request": self._shortened(redact_value(request))}
        if len(response) > _MOST_RESPONSE:
            line["response_cut_at"] = _MOST_RESPONSE
            response = response[:_MOST_RESPONSE]
        line["response"] = _body(response, stream)
        self._stream.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._number += 1

    def _shortened(self, request: JsonValue) -> JsonValue:
        """The request without the messages that an earlier one began with."""
        if not isinstance(request, dict):
            return request
        name = next((name for name in _LISTS if isinstance(request.get(name), list)), None)
        if name is None:
            return request
        messages = request[name]
        assert isinstance(messages, list)
        chain, longest = "", None
        for count, message in enumerate(messages, 1):
            chain = text_digest(chain + json.dumps(message, sort_keys=True))
            if chain in self._known:
                longest = (*self._known[chain], chain)
            else:
                self._known[chain] = (self._number, count)
        if longest is None:
            return request
        earlier, shared, _ = longest
        return {**request, name: messages[shared:], "same_as": earlier, "same_messages": shared}


def _body(response: bytes, stream: bool) -> JsonValue:
    text = redact_content(response.decode("utf-8", "replace"))
    if stream:
        return {"events": text}
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        return {"text": text}
    return value


def read_calls(path: Path) -> Iterator[dict[str, Any]]:
    """The exchanges of a record with their requests whole; a last line that a crash cut is left out.

    Raises:
        OSError: the file cannot be read.
    """
    lists: list[list[JsonValue]] = []
    with path.open(encoding="utf-8") as stream:
        for line in stream:
            try:
                exchange = json.loads(line)
            except ValueError:
                return
            request = exchange["request"]
            name = next((n for n in _LISTS if isinstance(request, dict) and isinstance(request.get(n), list)), None)
            if name is not None and "same_as" in request:
                request[name] = lists[request.pop("same_as")][: request.pop("same_messages")] + request[name]
            lists.append(request[name] if name else [])
            yield exchange
