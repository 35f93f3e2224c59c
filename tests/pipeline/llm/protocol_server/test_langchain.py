"""LangChain's models against the server."""

import openai
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel

from tests.doubles.protocol_server import ScriptedUsage, embedding, turns


class Claim(BaseModel):
    metric: str
    value: float


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.fixture
def chat(no_ambient_model):
    def make(server, **options):
        return ChatOpenAI(**{"base_url": server.base_url, "api_key": "k", "model": "m", "max_retries": 0, **options})

    return make


def test_invoke_and_stream(protocol_server, chat):
    usage = ScriptedUsage(prompt=5, completion=3)
    server = protocol_server(
        turns.text("hello there", usage=usage), turns.text("hello there", usage=usage, chunk_chars=2)
    )
    model = chat(server, stream_usage=True)
    whole = model.invoke("hi")
    assert (whole.content, whole.usage_metadata["total_tokens"]) == ("hello there", 8)
    parts = list(model.stream("hi"))
    total = parts[0]
    for part in parts[1:]:
        total += part
    assert len(parts) > 3
    assert (total.content, total.usage_metadata["total_tokens"]) == ("hello there", 8)


def test_tools(protocol_server, chat):
    server = protocol_server(turns.tool_calls(turns.tool_call("add", a=1, b=2)), turns.text("It is 3."))
    model = chat(server).bind_tools([add])
    question = HumanMessage("1 + 2?")
    first = model.invoke([question])
    assert isinstance(first, AIMessage)
    (call,) = first.tool_calls
    result = ToolMessage(str(add.invoke(call["args"])), tool_call_id=call["id"])
    assert model.invoke([question, first, result]).content == "It is 3."
    assert server.requests[1].body["messages"][-1] == {"role": "tool", "content": "3", "tool_call_id": call["id"]}


def test_agent_runs_to_its_end(protocol_server, chat):
    from langchain.agents import create_agent

    server = protocol_server(
        turns.tool_calls(turns.tool_call("add", a=20, b=22), turns.tool_call("add", a=1, b=1)), turns.text("42 and 2")
    )
    agent = create_agent(chat(server), [add])
    messages = agent.invoke({"messages": [HumanMessage("add")]})["messages"]
    assert messages[-1].content == "42 and 2"
    assert [m.content for m in messages if isinstance(m, ToolMessage)] == ["42", "2"]


@pytest.mark.parametrize("method", ["json_schema", "function_calling", "json_mode"])
def test_structured_output_by_each_method(protocol_server, chat, method):
    value = {"metric": "F1", "value": 0.5}
    turn = (
        turns.tool_calls(turns.tool_call("Claim", **value)) if method == "function_calling" else turns.structured(value)
    )
    server = protocol_server(turn)
    model = chat(server).with_structured_output(Claim, method=method)
    assert model.invoke("Answer in JSON.") == Claim(**value)


def test_errors_and_cut_streams(protocol_server, chat):
    server = protocol_server(
        turns.rate_limited(1),
        turns.cut(turns.text("one two three four five"), 2),
        turns.refusal("no"),
        turns.malformed_json(),
    )
    model = chat(server)
    with pytest.raises(openai.RateLimitError):
        model.invoke("x")
    with pytest.raises(openai.APIConnectionError):
        list(model.stream("x"))
    assert model.invoke("x").additional_kwargs["refusal"] == "no"
    with pytest.raises(ValueError, match=r"Expecting value|Unterminated|JSON"):
        model.invoke("x")


def test_embeddings(protocol_server, no_ambient_model):
    server = protocol_server()
    # the length check would fetch a tokenizer from the network
    model = OpenAIEmbeddings(base_url=server.base_url, api_key="k", model="e", check_embedding_ctx_length=False)
    assert model.embed_query("a b") == pytest.approx(embedding("a b"), abs=1e-6)


def test_responses_endpoint(protocol_server, chat):
    server = protocol_server(turns.text("hello", chunk_chars=2), turns.text("hello", chunk_chars=2))
    model = chat(server, use_responses_api=True)
    assert model.invoke("hi").text == "hello"
    assert "".join(part.text for part in model.stream("hi")) == "hello"
    assert {r.path for r in server.requests} == {"/v1/responses"}
