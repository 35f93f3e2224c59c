"""Models that OpenAI offers through its Responses API only, and endpoints that take JSON in other forms."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, Field

from pipeline.errors import FailureKind
from pipeline.llm import (
    CacheMode,
    CallLedger,
    ExchangeStore,
    FinishReason,
    ImagePart,
    ModelError,
    Parameters,
    Request,
    ToolSpec,
    model_config_from_environment,
    system,
    tool_result,
    user,
)
from pipeline.llm.schemas import plain_schema, simple_schema
from tests.doubles.protocol_server import Cut, Features, ScriptedUsage, turns
from tests.llm_fixtures import Serve
from tests.pipeline.llm.test_client import Make

PLAIN = {"parameters": Parameters(max_output_tokens=100, temperature=0.2)}
ONLY = Features(chat_completions=False)
BY_CONFIG = {"config": PLAIN | {"api": "responses"}}


class Point(BaseModel):
    x: int
    label: str


class Number(BaseModel):
    n: int


TOOL = ToolSpec.of("double", "Double a number.", Number)


def ask(text: str = "question", **fields) -> Request:
    return Request(messages=(system("be brief"), user(text)), **fields)


def paths(server) -> list[str]:
    return [request.path for request in server.requests]


def test_by_configuration(protocol_server: Serve, make_client: Make, ledger: CallLedger):
    usage = ScriptedUsage(prompt=11, completion=7, cached=4, reasoning=2)
    server = protocol_server(turns.text("answer", usage=usage))
    reply = make_client(server, **BY_CONFIG).chat(ask())
    assert (reply.text, reply.finish_reason) == ("answer", FinishReason.STOP)
    assert (reply.usage.total, reply.usage.cached_input_tokens, reply.usage.reasoning_tokens) == (18, 4, 2)
    assert paths(server) == ["/v1/responses"]
    body = server.requests[0].body
    assert (body["max_output_tokens"], body["temperature"], body["store"]) == (100, 0.2, False)
    assert "max_tokens" not in body
    (record,) = ledger.records()
    assert (record.outcome, record.api) == ("done", "responses")


def test_the_endpoint_says_so_and_it_is_remembered(
    protocol_server: Serve, make_client: Make, tmp_path: Path, ledger: CallLedger
):
    server = protocol_server(turns.text("a"), turns.text("b"), turns.text("c"), features=ONLY)
    store = ExchangeStore(tmp_path / "cache")
    client = make_client(server, config=PLAIN, store=store)
    assert [client.chat(ask("1")).text, client.chat(ask("2")).text] == ["a", "b"]
    again = make_client(server, config=PLAIN, store=ExchangeStore(tmp_path / "cache"))
    assert again.chat(ask("3")).text == "c"
    assert paths(server) == ["/v1/chat/completions", *["/v1/responses"] * 3]
    assert [(record.outcome, record.api) for record in ledger.records()] == [
        ("request_rejected", "chat"),
        *[("done", "responses")] * 3,
    ]
    replay = make_client(server, config=PLAIN, store=ExchangeStore(tmp_path / "cache", CacheMode.REPLAY))
    assert replay.chat(ask("1")).text == "a"


def test_a_rejection_for_another_reason_or_a_fixed_interface_is_not_tried_again(
    protocol_server: Serve, make_client: Make
):
    server = protocol_server(turns.error(404, "no such model"))
    with pytest.raises(ModelError):
        make_client(server, config=PLAIN).chat(ask())
    assert paths(server) == ["/v1/chat/completions"]
    fixed = protocol_server(features=ONLY)
    with pytest.raises(ModelError) as caught:
        make_client(fixed, config=PLAIN | {"api": "chat"}).chat(ask())
    assert "v1/responses" in caught.value.cause
    assert paths(fixed) == ["/v1/chat/completions"]


def test_streams(protocol_server: Serve, make_client: Make):
    server = protocol_server(
        turns.text("one two three four", chunk_chars=4), turns.text("cut off", finish_reason="length")
    )
    client = make_client(server, **BY_CONFIG)
    *pieces, reply = client.stream(ask())
    assert len(pieces) > 2
    assert "".join(piece.text for piece in pieces) == reply.text == "one two three four"
    assert (reply.finish_reason, reply.usage is not None) == (FinishReason.STOP, True)
    assert list(client.stream(ask("more")))[-1].finish_reason is FinishReason.LENGTH


def test_a_stream_that_just_ends_is_no_short_answer(protocol_server: Serve, make_client: Make, ledger: CallLedger):
    cut = turns.text("one two three four", chunk_chars=4, cut=Cut(after=5, how="quiet"))
    server = protocol_server(cut, turns.text("whole"))
    assert list(make_client(server, **BY_CONFIG).stream(ask()))[-1].text == "whole"
    assert [record.outcome for record in ledger.records()] == ["network", "done"]


def test_tools_and_images_go_both_ways(protocol_server: Serve, make_client: Make):
    server = protocol_server(turns.tool_calls(turns.tool_call("double", n=21)), turns.text("42"))
    client = make_client(server, **BY_CONFIG)
    image = ImagePart(data=b"\x89PNG\r\n\x1a\n", media_type="image/png")
    first = Request(messages=(user("double it", image),), tools=(TOOL,))
    reply = client.chat(first)
    assert reply.finish_reason is FinishReason.TOOL_CALLS
    assert reply.tool_calls[0].arguments == {"n": 21}
    answered = first.evolve(messages=(*first.messages, reply.as_message(), tool_result(reply.tool_calls[0], "42")))
    assert client.chat(answered).text == "42"
    body = server.requests[1].body
    kinds = [item.get("type", item.get("role")) for item in body["input"]]
    assert kinds[-2:] == ["function_call", "function_call_output"]
    assert body["input"][-1]["output"] == "42"
    assert body["tools"][0]["name"] == "double"
    assert len(server.requests[0].images) == 1


def test_structured_output_is_enforced(protocol_server: Serve, make_client: Make):
    server = protocol_server(turns.structured({"x": 3, "label": "c"}))
    found = make_client(server, **BY_CONFIG).structured(ask(), Point)
    assert (found.value, found.mode) == (Point(x=3, label="c"), "json_schema")
    sent = server.requests[0].body["text"]["format"]
    assert (sent["type"], sent["name"], sent["strict"]) == ("json_schema", "Point", True)


def test_refusals_and_broken_calls(protocol_server: Serve, make_client: Make):
    broken = turns.tool_calls(turns.tool_call("double").evolve(arguments='{"n": '))
    server = protocol_server(turns.refusal("I will not."), broken)
    client = make_client(server, **BY_CONFIG)
    with pytest.raises(ModelError) as caught:
        client.chat(ask())
    assert (caught.value.kind, "I will not" in caught.value.cause) == (FailureKind.REFUSAL, True)
    reply = client.chat(ask("call").evolve(tools=(TOOL,)))
    assert reply.invalid_tool_calls[0].name == "double"


@pytest.mark.parametrize("parameters", [Parameters(seed=1), Parameters(stop=("x",))])
def test_what_the_interface_has_no_field_for_is_refused_and_not_dropped(protocol_server, make_client: Make, parameters):
    server = protocol_server()
    with pytest.raises(ModelError) as caught:
        make_client(server, config={"parameters": parameters, "api": "responses"}).chat(ask())
    assert "cannot be sent to the Responses API" in caught.value.cause
    assert server.requests == []


def test_reasoning_effort_is_sent_in_its_own_form(protocol_server: Serve, make_client: Make):
    server = protocol_server(turns.text("a"))
    parameters = Parameters(extra={"reasoning_effort": "low"})
    make_client(server, config={"parameters": parameters, "api": "responses"}).chat(ask())
    assert server.requests[0].body["reasoning"] == {"effort": "low"}


def test_parameters_of_the_interface_that_would_undo_privacy_or_budget_are_refused():
    for name in ("store", "max_output_tokens", "previous_response_id", "conversation", "background", "text"):
        with pytest.raises(ValueError, match=name):
            Parameters(extra={name: True})


def test_the_environment_names_interface_and_mode(monkeypatch: pytest.MonkeyPatch, no_ambient_model: None):
    monkeypatch.setenv("EXPBENCH_MODEL", "o9")
    monkeypatch.setenv("EXPBENCH_MODEL_API", "responses")
    monkeypatch.setenv("EXPBENCH_MODEL_SCHEMA_MODE", "instructed")
    config = model_config_from_environment()
    assert (config.api, config.schema_mode) == ("responses", "instructed")


# --- JSON in other forms ---

LLAMA_CPP = (
    "1 validation error: {'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': \"Input should be "
    "'text' or 'json_object'\", 'input': 'json_schema', 'ctx': {'expected': \"'text' or 'json_object'\"}}"
)


def test_a_server_that_knows_json_objects_gets_the_schema_in_both_places(
    protocol_server: Serve, make_client: Make, tmp_path: Path, ledger: CallLedger
):
    """What llama.cpp's Python server 0.3.36 says, with status 500: it was tried six times before this was told apart."""
    answer = turns.structured({"x": 1, "label": "a"}, times=None)
    server = protocol_server(turns.error(500, LLAMA_CPP), default=answer)
    client = make_client(server, store=ExchangeStore(tmp_path / "cache"))
    found = client.structured(ask(), Point)
    assert (found.value.x, found.mode, found.native) == (1, "json_object", False)
    sent = server.requests[1].body
    assert sent["response_format"]["type"] == "json_object"
    assert sent["response_format"]["schema"]["properties"]["x"] == {"type": "integer"}
    assert "JSON schema" in sent["messages"][0]["content"]
    assert make_client(server, store=ExchangeStore(tmp_path / "cache")).capabilities.schema_mode == "json_object"
    assert [record.outcome for record in ledger.records()] == ["request_rejected", "done"]


class Finding(BaseModel):
    kind: Literal["mock", "real"]
    quote: str = Field(max_length=500, description="word for word")
    properties: int | None = None


class Findings(BaseModel):
    findings: list[Finding] = Field(max_length=20)


class Tree(BaseModel):
    children: list[Tree]


def test_in_json_mode_only_the_shape_of_a_schema_is_sent():
    """With references or a bound of 500 characters llama.cpp's Python server 0.3.36 died: its grammar did not parse."""
    assert simple_schema(plain_schema(Findings)) == {
        "type": "object",
        "required": ["findings"],
        "properties": {
            "findings": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["kind", "quote"],
                    "properties": {
                        "kind": {"type": "string", "enum": ["mock", "real"]},
                        "quote": {"type": "string"},
                        "properties": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                    },
                },
            }
        },
    }
    assert simple_schema(plain_schema(Tree)) is None


def test_a_server_that_takes_neither_is_instructed(protocol_server: Serve, make_client: Make):
    server = protocol_server(
        turns.error(400, "response_format must be text or json_object"), turns.error(400, "response_format"),
        default=turns.structured({"x": 1, "label": "a"}, times=None),
    )  # fmt: skip
    client = make_client(server)
    assert client.structured(ask(), Point).mode == "instructed"
    assert client.capabilities.schema_mode == "instructed"
    assert "response_format" not in server.requests[-1].body


def test_a_configured_mode_is_taken(protocol_server: Serve, make_client: Make):
    server = protocol_server(default=turns.structured({"x": 1, "label": "a"}, times=None))
    client = make_client(server, config={"schema_mode": "instructed"})
    assert client.structured(ask(), Point).mode == "instructed"
    assert len(server.requests) == 1


def test_a_recorded_run_in_json_mode_is_replayed(protocol_server: Serve, make_client: Make, tmp_path: Path):
    server = protocol_server(turns.error(500, LLAMA_CPP), default=turns.structured({"x": 1, "label": "a"}, times=None))
    make_client(server, store=ExchangeStore(tmp_path / "cache")).structured(ask(), Point)
    for path in (tmp_path / "cache" / "endpoints").iterdir():
        path.unlink()  # what a run knew by then is not needed to follow it
    replay = make_client(server, store=ExchangeStore(tmp_path / "cache", CacheMode.REPLAY))
    assert replay.structured(ask(), Point).mode == "json_object"
    assert len(server.requests) == 2
