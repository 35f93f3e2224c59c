"""Our client through `langchain-anthropic`, where the extra is installed: the other provider must behave as the first does.

`uv run --isolated --frozen --extra anthropic pytest tests/pipeline/llm/test_anthropic.py` runs it beside any environment.
"""

from __future__ import annotations

import importlib.util

import pytest
from pydantic import BaseModel

from pipeline.errors import FailureKind
from pipeline.llm import (
    CallLedger,
    FinishReason,
    ModelError,
    Parameters,
    Request,
    ToolSpec,
    assistant,
    system,
    tool_result,
    user,
)
from tests.doubles.protocol_server import ScriptedUsage, turns
from tests.llm_fixtures import Serve
from tests.pipeline.llm.conftest import KEY
from tests.pipeline.llm.test_client import Make

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("langchain_anthropic") is None,
    reason="langchain-anthropic comes with the extra [anthropic]",
)
ASK = Request(messages=(system("be brief"), user("question")))


class Number(BaseModel):
    n: int


TOOL = ToolSpec.of("double", "Double a number.", Number)


@pytest.fixture
def connect_anthropic(make_client: Make, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)

    def connected(server, **options):
        config = {"provider": "anthropic", "parameters": Parameters(max_output_tokens=100)}
        return make_client(server.origin, config=config | options.pop("config", {}), **options)

    return connected


def test_chat_and_its_tokens(protocol_server: Serve, connect_anthropic, ledger: CallLedger):
    server = protocol_server(turns.text("answer", usage=ScriptedUsage(prompt=11, completion=3)))
    reply = connect_anthropic(server).chat(ASK)
    assert (reply.text, reply.finish_reason, reply.usage.total) == ("answer", FinishReason.STOP, 14)
    assert server.requests[0].path == "/v1/messages"
    assert server.requests[0].body["max_tokens"] == 100
    (record,) = ledger.records()
    assert (record.outcome, record.provider, record.api) == ("done", "anthropic", None)


def test_streams(protocol_server: Serve, connect_anthropic):
    server = protocol_server(turns.text("one two three four", chunk_chars=4))
    *pieces, reply = connect_anthropic(server).stream(ASK)
    assert len(pieces) > 2
    assert "".join(piece.text for piece in pieces) == reply.text == "one two three four"


def test_tools_go_both_ways(protocol_server: Serve, connect_anthropic):
    server = protocol_server(turns.tool_calls(turns.tool_call("double", n=21)), turns.text("42"))
    client = connect_anthropic(server)
    first = ASK.evolve(tools=(TOOL,))
    reply = client.chat(first)
    assert (reply.finish_reason, reply.tool_calls[0].arguments) == (FinishReason.TOOL_CALLS, {"n": 21})
    again = first.evolve(messages=(*first.messages, reply.as_message(), tool_result(reply.tool_calls[0], "42")))
    assert client.chat(again).text == "42"
    assert server.requests[1].body["messages"][-1]["content"][0]["type"] == "tool_result"


def test_structured_output_is_instructed_and_repaired(protocol_server: Serve, connect_anthropic):
    server = protocol_server(turns.text("Sure: four"), turns.text('{"n": 4}'))
    found = connect_anthropic(server).structured(ASK, Number)
    assert (found.value.n, found.mode, found.repairs) == (4, "instructed", 1)


@pytest.mark.parametrize(
    ("turn", "kind"),
    [
        (turns.rate_limited(1), FailureKind.RATE_LIMIT),
        (turns.error(529, "Overloaded"), FailureKind.OVERLOADED),
        (turns.error(401, "invalid x-api-key"), FailureKind.AUTHENTICATION),
        (turns.error(400, "prompt is too long: 250000 tokens > 200000 maximum"), FailureKind.CONTEXT_TOO_LONG),
        (turns.error(400, "Your credit balance is too low"), FailureKind.QUOTA),
        (turns.refusal("no"), FailureKind.REFUSAL),
    ],
)
def test_errors_are_of_the_same_kinds(protocol_server: Serve, connect_anthropic, ledger: CallLedger, turn, kind):
    server = protocol_server(turn)
    with pytest.raises(ModelError) as caught:
        connect_anthropic(server, attempts=1).chat(ASK)
    assert caught.value.kind is kind
    assert KEY not in str(caught.value)
    assert len(ledger.records()) == 1


def test_what_the_provider_has_no_field_for_is_refused(protocol_server: Serve, connect_anthropic):
    server = protocol_server()
    with pytest.raises(ModelError) as caught:
        connect_anthropic(server, config={"parameters": Parameters(seed=1)}).chat(ASK)
    assert "a seed cannot be sent" in caught.value.cause
    assert server.requests == []


def test_earlier_turns_of_the_model_are_sent(protocol_server: Serve, connect_anthropic):
    server = protocol_server(turns.text("again"))
    connect_anthropic(server).chat(ASK.evolve(messages=(*ASK.messages, assistant("first"), user("and then?"))))
    assert [message["role"] for message in server.requests[0].body["messages"]] == ["user", "assistant", "user"]
