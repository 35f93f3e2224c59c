"""Policy and order of events, exactly: each field that goes, each that stays, and each event's place and time."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluation.harness.events import merge_events
from evaluation.harness.policy import (
    forwarded_headers,
    refusal_body,
    returned_headers,
    rewrite,
    route,
    searches_by_itself,
)
from evaluation.trajectory import CommandRun, Event, ModelCall, ModelTurn, Note


@pytest.mark.parametrize(
    ("method", "path", "found"),
    [
        ("POST", "/v1/chat/completions", ("openai", "chat", "/chat/completions")), ("POST", "/v1/completions", ("openai", "completions", "/completions")),
        ("POST", "/v1/responses", ("openai", "responses", "/responses")), ("POST", "/v1/embeddings", ("openai", "embeddings", "/embeddings")),
        ("POST", "/v1/messages", ("anthropic", "messages", "/messages")), ("POST", "/v1/messages/count_tokens", ("anthropic", "count_tokens", "/messages/count_tokens")),
        ("GET", "/v1/models", ("openai", "models", "/models")), ("GET", "/v1/models/org/a.b:c", ("openai", "models", "/models/org/a.b:c")),
        ("GET", "/v1/models/a?b", None), ("POST", "/v1/models", None), ("POST", "/v2/messages", None), ("POST", "x/v1/messages", None),
        ("POST", "/v1/messages/", None),
    ],
)  # fmt: skip
def test_every_route(method: str, path: str, found: tuple[str, str, str] | None) -> None:
    assert route(method, path, {}) == found
    asked = route(method, path, {"anthropic-version": "1"})
    assert asked == (("anthropic", *found[1:]) if found and found[1] == "models" else found)


NEVER = ["host", "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "content-length", "expect", "accept-encoding", "authorization", "x-api-key", "api-key", "cookie", "proxy-authorization", "proxy-connection", "forwarded", "x-forwarded-for", "x-real-ip", "openai-organization", "openai-project"]  # fmt: skip


@pytest.mark.parametrize("name", NEVER)
def test_headers_that_are_never_sent_on(name: str) -> None:
    assert forwarded_headers({name.upper(): "x", "Accept": "a"}) == {"accept": "a"}
    assert forwarded_headers({"Connection": "close , Accept", "Accept": "a", "B": "b"}) == {"b": "b"}


def test_headers_that_an_agent_may_see() -> None:
    may = {"Content-Type": "j", "retry-after": "1", "retry-after-ms": "1", "request-id": "r", "x-request-id": "r",
           "anthropic-request-id": "r", "x-should-retry": "t", "openai-model": "m", "openai-version": "v",
           "openai-processing-ms": "1", "x-ratelimit-remaining": "1", "anthropic-ratelimit-x": "1"}  # fmt: skip
    mustnt = {"set-cookie": "x", "openai-organization": "o", "x-retry-after": "1", "content-types": "j", "server": "s"}
    assert returned_headers(may | mustnt) == {name.lower(): value for name, value in may.items()}


@pytest.mark.parametrize("name", ["web_search_options", "mcp_servers", "plugins", "container"])
def test_fields_of_the_provider_go(name: str) -> None:
    body = {name: {}, "other": 1}
    assert rewrite("chat", body) == ({"other": 1}, [name], False)
    assert rewrite("chat", {name: None}) == ({name: None}, [], False)
    assert body == {name: {}, "other": 1}  # the caller's is as it was


@pytest.mark.parametrize(
    ("tools", "choice", "left", "choice_left", "removed"),
    [
        ([{"type": "mcp"}], "auto", None, None, ["tools: mcp"]),
        ([{"type": "mcp"}, {"type": "function"}], {"type": "mcp"}, [{"type": "function"}], None, ["tools: mcp"]),
        ([{"type": "mcp"}, {"type": "function"}], {"type": "function"}, [{"type": "function"}], {"type": "function"}, ["tools: mcp"]),
        ([{"type": "function"}], {"type": "mcp"}, [{"type": "function"}], {"type": "mcp"}, []),
        ([{"type": "url_context_x"}, "odd", 3], "auto", ["odd", 3], "auto", ["tools: url_context_x"]),
        ([{"type": "shell", "environment": {"type": "local"}}], "a", [{"type": "shell", "environment": {"type": "local"}}], "a", []),
        ([{"type": "shell", "environment": {"type": "cloud"}}], "a", None, None, ["tools: shell"]),
        ([{"type": "shell", "environment": "local"}], "a", None, None, ["tools: shell"]),
        ([{"type": "computer_use_preview"}, {"type": "custom"}], "a", [{"type": "custom"}], "a", ["tools: computer_use_preview"]),
    ],
)  # fmt: skip
def test_tools_of_the_provider_go_with_the_choice_of_them(
    tools: list[Any], choice: Any, left: list[Any] | None, choice_left: Any, removed: list[str]
) -> None:
    body, gone, added = rewrite("responses", {"tools": tools, "tool_choice": choice})
    assert (body.get("tools"), body.get("tool_choice"), gone, added) == (left, choice_left, removed, False)


@pytest.mark.parametrize(
    ("kind", "body", "options", "added"),
    [
        ("chat", {"stream": True}, {"include_usage": True}, True),
        ("completions", {"stream": True, "stream_options": {"x": 1}}, {"x": 1, "include_usage": True}, True),
        ("chat", {"stream": True, "stream_options": {"include_usage": True}}, {"include_usage": True}, False),
        ("chat", {"stream": True, "stream_options": {"include_usage": False}}, {"include_usage": True}, True),
        ("chat", {"stream": True, "stream_options": 3}, {"include_usage": True}, True),
        ("chat", {"stream": False}, None, False), ("responses", {"stream": True}, None, False),
    ],
)  # fmt: skip
def test_usage_is_asked_for_where_a_stream_would_not_say(kind: Any, body: Any, options: Any, added: bool) -> None:
    found, _, told = rewrite(kind, body)
    assert (found.get("stream_options"), told) == (options, added)


@pytest.mark.parametrize(
    ("model", "searches"),
    [("gpt-4o-search-preview", True), ("x-search-api", True), ("a:online", True), ("a:online-x", False), ("perplexity/sonar", True),
     ("Sonar-Pro", True), ("my-sonar", False), ("o3-deep-research", True), ("research", False)],
)  # fmt: skip
def test_which_models_search(model: str, searches: bool) -> None:
    assert searches_by_itself(model) == searches


def test_refusals_in_both_forms() -> None:
    error = {"message": "m", "type": "c", "code": "c", "param": None}
    assert json.loads(refusal_body("openai", "c", "m")) == {"error": error}
    assert json.loads(refusal_body("anthropic", "c", "m")) == {"type": "error", "error": {"type": "c", "message": "m"}}


# --- order


def call(at: float, status: int = 200, took: float = 0.0) -> ModelCall:
    return ModelCall(seq=0, at=at, endpoint="e", status=status, duration_s=took)


def turn(at: float = 0.0) -> ModelTurn:
    return ModelTurn(seq=0, at=at, text="t")


def run(at: float = 0.0) -> CommandRun:
    return CommandRun(seq=0, at=at, command="ls")


def note(at: float = 0.0) -> Note:
    return Note(seq=0, at=at, text="n")


@pytest.mark.parametrize(
    ("gateway", "agent", "found"),
    [
        ([], [turn(1)], [("model_turn", 1)]),
        ([call(1)], [], [("model_call", 1)]),
        ([call(5)], [run()], [("model_call", 5), ("command", 0)]),  # an opaque agent
        # no times: turn by turn, after failures too, and what is left at the end
        ([call(1, 400), call(2, 399), call(3)], [turn(), run(), turn(), note()],
         [("model_call", 1), ("model_call", 2), ("model_turn", 0), ("command", 0), ("model_call", 3), ("model_turn", 0), ("note", 0)]),
        ([call(1)], [turn(), turn(), run()], [("model_call", 1), ("model_turn", 0), ("model_turn", 0), ("command", 0)]),
        # times and as many turns as answers: the agent's clock is moved behind the first answer
        ([call(6, took=2)], [note(0.5), turn(1), run(2)], [("note", 7.5), ("model_call", 6), ("model_turn", 8), ("command", 9)]),
        ([call(6), call(20)], [turn(1), run(2), turn(3)],
         [("model_call", 6), ("model_turn", 6), ("command", 7), ("model_call", 20), ("model_turn", 20)]),
        ([call(1)], [turn(5), run(4)], [("model_call", 1), ("model_turn", 5), ("command", 5)]),  # its clock went back
        # a refusal is no answer, so that there are as many turns as answers
        ([call(1, 400), call(9)], [run(3), turn(10)],
         [("command", 3), ("model_call", 1), ("model_call", 9), ("model_turn", 10)]),
        ([call(4, 400), call(9)], [turn(1), run(2)],
         [("model_call", 4), ("model_call", 9), ("model_turn", 9), ("command", 10)]),
        # times and other numbers of turns: by time; of equal times the gateway's first
        ([call(3), call(1), call(2, 500)], [run(1), turn(2), note(9)],
         [("model_call", 1), ("command", 1), ("model_call", 2), ("model_turn", 2), ("model_call", 3), ("note", 9)]),
        ([call(4, took=1), call(8)], [turn(1), run(0), run(2)],
         [("model_call", 4), ("model_turn", 5), ("command", 5), ("command", 6), ("model_call", 8)]),
        ([note(1), call(2, 500)], [turn(1), run(3)], [("note", 1), ("model_turn", 1), ("model_call", 2), ("command", 3)]),
    ],
)  # fmt: skip
def test_the_place_and_time_of_each_event(
    gateway: list[Event], agent: list[Event], found: list[tuple[str, float]]
) -> None:
    assert [(event.kind, event.at) for event in merge_events(gateway, agent)] == found
