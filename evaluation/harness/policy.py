"""What of an agent's request goes through the gateway, and how it is changed on the way.

The agent's container has no network, and a model must not become one: tools that the *provider* runs (web search, page
fetching, code containers, remote MCP servers) would let an agent read the paper that its task withholds. They are taken
out of requests, which is recorded; tools that the agent runs itself pass. Models that search by themselves are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from evaluation.harness.usage import Kind

__all__ = [
    "METERED", "Route", "forwarded_headers", "refusal_body", "returned_headers", "rewrite", "route",
    "searches_by_itself",
]  # fmt: skip

Provider = Literal["openai", "anthropic"]

METERED: Final[frozenset[Kind]] = frozenset({"chat", "completions", "responses", "embeddings", "messages"})
"""Endpoints that cost something; the others are free and not counted."""

_ROUTES: Final[tuple[tuple[str, str, Provider, Kind], ...]] = (
    ("POST", r"/v1/chat/completions", "openai", "chat"),
    ("POST", r"/v1/completions", "openai", "completions"),
    ("POST", r"/v1/responses", "openai", "responses"),
    ("POST", r"/v1/embeddings", "openai", "embeddings"),
    ("POST", r"/v1/messages", "anthropic", "messages"),
    ("POST", r"/v1/messages/count_tokens", "anthropic", "count_tokens"),
    ("GET", r"/v1/models(?:/[\w.:/-]+)?", "openai", "models"),
)
# The first names what both sides of a connection settle by themselves, the rest what could carry a credential of the
# agent's own or change the account that is charged. The encoding is ours, so that what is recorded can be read.
_NOT_FORWARDED: Final = frozenset(
    {
        "host", "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "content-length", "expect",
        "accept-encoding", "authorization", "x-api-key", "api-key", "cookie", "proxy-authorization", "proxy-connection",
        "forwarded", "x-forwarded-for", "x-real-ip", "openai-organization", "openai-project",
    }
)  # fmt: skip
_RETURNED: Final = re.compile(
    r"content-type|retry-after(?:-ms)?|(?:x-|anthropic-)?request-id|x-should-retry|openai-(?:model|version|processing-ms)"
    r"|(?:x|anthropic)-ratelimit-[\w-]+"
)
_HOSTED: Final = re.compile(
    r"web_search|web_fetch|file_search|code_interpreter|code_execution|image_generation|mcp|computer_use|url_context"
)
_HOSTED_FIELDS: Final = ("web_search_options", "mcp_servers", "plugins", "container")
_SEARCHING_MODEL: Final = re.compile(r"-search-(?:preview|api)|:online$|^(?:perplexity/)?sonar|deep-research")


class Route(NamedTuple):
    """Where a request goes."""

    provider: Provider
    kind: Kind
    path: str
    """Below the upstream's base, without `/v1`."""


def route(method: str, path: str, headers: Mapping[str, str]) -> Route | None:
    """The route of a request; None: not one that agents may make."""
    for wanted, pattern, provider, kind in _ROUTES:
        if method == wanted and re.fullmatch(pattern, path):
            asked: Provider = "anthropic" if kind == "models" and "anthropic-version" in headers else provider
            return Route(asked, kind, path.removeprefix("/v1"))
    return None


def forwarded_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The agent's headers that the endpoint may see."""
    named = {name.lower(): value for name, value in headers.items()}
    listed = {name.strip().lower() for name in named.get("connection", "").split(",")}
    return {name: value for name, value in named.items() if name not in _NOT_FORWARDED | listed}


def returned_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The endpoint's headers that the agent may see."""
    return {name.lower(): value for name, value in headers.items() if _RETURNED.fullmatch(name.lower())}


def rewrite(kind: Kind, body: dict[str, Any]) -> tuple[dict[str, Any], list[str], bool]:
    """The request as it is sent on.

    Returns:
        The body; what was taken out of it; and whether usage was asked for on the agent's behalf (the closing chunk
        that brings it is then not handed on, because the agent did not ask for it).
    """
    body = dict(body)
    removed = [name for name in _HOSTED_FIELDS if body.get(name) is not None]
    for name in removed:
        del body[name]
    if isinstance(body.get("tools"), list):
        kept = [tool for tool in body["tools"] if not _hosted(tool)]
        removed += [f"tools: {tool.get('type')}" for tool in body["tools"] if _hosted(tool)]
        if len(kept) < len(body["tools"]):
            body["tools"] = kept
            if not kept:
                del body["tools"]
                body.pop("tool_choice", None)
            elif isinstance(body.get("tool_choice"), dict) and _hosted(body["tool_choice"]):
                del body["tool_choice"]
    added = False
    if kind in {"chat", "completions"} and body.get("stream"):
        options = body.get("stream_options")
        options = options if isinstance(options, dict) else {}
        if not options.get("include_usage"):
            body["stream_options"] = options | {"include_usage": True}
            added = True
    return body, removed, added


def searches_by_itself(model: str) -> bool:
    """Is it a model that looks things up on the web without being given a tool?"""
    return bool(_SEARCHING_MODEL.search(model.lower()))


def _hosted(tool: Any) -> bool:
    if not isinstance(tool, dict):
        return False
    kind = str(tool.get("type", ""))
    if kind == "shell":
        environment = tool.get("environment")
        return not (isinstance(environment, dict) and environment.get("type") == "local")
    return bool(_HOSTED.match(kind)) and kind != "custom"


def refusal_body(provider: str, code: str, message: str) -> bytes:
    """An error in the form that the provider's clients understand."""
    if provider == "anthropic":
        return json.dumps({"type": "error", "error": {"type": code, "message": message}}).encode()
    return json.dumps({"error": {"message": message, "type": code, "code": code, "param": None}}).encode()
