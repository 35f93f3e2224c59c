"""What a request must be before a turn is spent on it."""

from __future__ import annotations

import json
from typing import Any

from tests.doubles.protocol_server import _embeddings
from tests.doubles.protocol_server._exchange import Rejection, estimate_tokens
from tests.doubles.protocol_server._messages import MessagesWire
from tests.doubles.protocol_server._state import WIRES, Features, State
from tests.doubles.protocol_server.script import Endpoint

__all__ = ["find_problem"]


def find_problem(state: State, endpoint: Endpoint | None, body: dict[str, Any], what: str) -> Rejection | None:
    """Why the endpoint would reject the request, or None: its address, its model, its features, its form, its size."""
    if endpoint is None:
        return Rejection(404, f"Invalid URL ({what})", "unknown_url")
    try:
        return (
            _wrong_model(state, body)
            or _wrong_endpoint(state.features, endpoint)
            or _missing_feature(state.features, body)
            or _wrong_form(endpoint, body)
            or _too_long(state, endpoint, body)
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:  # a part of the body has another shape
        return Rejection(400, f"Invalid type or missing part of a parameter: {error!r}", "invalid_type")


def _wrong_model(state: State, body: dict[str, Any]) -> Rejection | None:
    model = body.get("model")
    if not isinstance(model, str):
        return Rejection(400, "you must provide a model parameter", "missing_required_parameter", "model")
    if state.models and model not in state.models:
        return Rejection(404, f"The model '{model}' does not exist", "model_not_found", "model")
    return None


def _wrong_endpoint(features: Features, endpoint: Endpoint) -> Rejection | None:
    if features.chat_completions or endpoint != "chat":
        return None
    message = "This model is only supported in v1/responses and not in v1/chat/completions."
    return Rejection(404, message, None, "model")


def _wrong_form(endpoint: Endpoint, body: dict[str, Any]) -> Rejection | None:
    if endpoint == "embeddings":
        return _embeddings.check(body)
    if endpoint == "count_tokens":
        return MessagesWire.check_messages(body)
    return WIRES[endpoint].check(body)


def _too_long(state: State, endpoint: Endpoint, body: dict[str, Any]) -> Rejection | None:
    limit = state.context_tokens
    if limit is None or endpoint in ("embeddings", "count_tokens") or (tokens := estimate_tokens(body)) <= limit:
        return None
    message = (
        f"This model's maximum context length is {limit} tokens. However, your messages resulted in {tokens} tokens. "
        "Please reduce the length of the messages."
    )
    return Rejection(400, message, "context_length_exceeded", "messages")


def _missing_feature(features: Features, body: dict[str, Any]) -> Rejection | None:
    requested = (body.get("response_format") or (body.get("text") or {}).get("format") or {}).get("type")
    text = "" if features.images else json.dumps(body.get("messages") or body.get("input") or "")
    wanted = {
        "response_format type 'json_schema'": not features.json_schema and requested == "json_schema",
        "response_format type 'json_object'": not features.json_object and requested == "json_object",
        "'tools'": not features.tools and bool(body.get("tools")),
        "image input": any(f'"type": "{kind}"' in text for kind in ("image_url", "input_image", "image")),
        "'stream'": not features.streaming and bool(body.get("stream")),
        "'stream_options'": not features.stream_usage and "stream_options" in body,
    }
    missing = [name for name, is_missing in wanted.items() if is_missing]
    return Rejection(400, f"{missing[0]} is not supported by this server", "unsupported_parameter") if missing else None
