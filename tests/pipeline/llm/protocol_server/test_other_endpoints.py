"""Embeddings, responses (official client) and Anthropic's messages (raw HTTP after its documentation, or its client)."""

import http.client
import importlib.util
import json
import math

import openai
import pytest
from pydantic import BaseModel

from tests.doubles.protocol_server import Cut, ErrorReply, Match, ScriptedUsage, embedding, turns

MESSAGES = [{"role": "user", "content": "What is measured?"}]
HAS_ANTHROPIC = importlib.util.find_spec("anthropic") is not None


class Claim(BaseModel):
    metric: str
    value: float


def test_embeddings_in_both_encodings(protocol_server, connect):
    client = connect(protocol_server())
    texts = ["the accuracy of the model", "model accuracy", "unrelated words entirely"]
    packed = client.embeddings.create(model="e", input=texts)
    plain = client.embeddings.create(model="e", input=texts, encoding_format="float", dimensions=64)
    for text, one, two in zip(texts, packed.data, plain.data, strict=True):
        assert one.embedding == pytest.approx(embedding(text), abs=1e-6)
        assert two.embedding == embedding(text)
        assert math.hypot(*two.embedding) == pytest.approx(1)
    assert packed.usage.prompt_tokens > 0
    near, far = (
        sum(a * b for a, b in zip(plain.data[0].embedding, plain.data[i].embedding, strict=True)) for i in (1, 2)
    )
    assert near > far


def test_embeddings_do_not_use_up_turns(protocol_server, connect):
    limited = turns.rate_limited(match=Match(endpoint="embeddings"))
    server = protocol_server(turns.text("for chat"), limited)
    client = connect(server)
    with pytest.raises(openai.RateLimitError):
        client.embeddings.create(model="e", input="x")
    assert client.embeddings.create(model="e", input="x").data
    assert client.chat.completions.create(model="m", messages=MESSAGES).choices[0].message.content == "for chat"
    assert [r.outcome for r in server.requests] == ["turn 2", "computed", "turn 1"]


@pytest.mark.parametrize("given", ["", [], [""], ["a"] * 2049])
def test_invalid_embedding_input(protocol_server, connect, given):
    with pytest.raises(openai.BadRequestError):
        connect(protocol_server()).embeddings.create(model="e", input=given)


def test_responses_text_and_usage(protocol_server, connect):
    server = protocol_server(turns.text("hello", usage=ScriptedUsage(prompt=5, completion=2)))
    answer = connect(server).responses.create(model="m", input="hi")
    assert (answer.output_text, answer.status) == ("hello", "completed")
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (5, 2)


def test_responses_stream_helper(protocol_server, connect):
    value = {"metric": "F1", "value": 1.5}
    call = turns.tool_call("look", page=3)
    server = protocol_server(
        turns.structured(value, chunk_chars=4), turns.tool_calls(call, text="I look.", chunk_chars=4)
    )
    client = connect(server)
    with client.responses.stream(model="m", input="hi", text_format=Claim) as stream:
        numbers = [event.sequence_number for event in stream]
        assert stream.get_final_response().output_parsed == Claim(**value)
    assert numbers == list(range(len(numbers)))
    with client.responses.stream(model="m", input="hi") as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    assert "response.function_call_arguments.done" in kinds
    assert final.output_text == "I look."
    assert json.loads(final.output[1].arguments) == {"page": 3}


def test_responses_incomplete_refused_and_failed(protocol_server, connect):
    server = protocol_server(
        turns.text("cut", finish_reason="length"),
        turns.refusal("no"),
        turns.rate_limited(1),
        turns.text("long " * 20, cut=Cut(after=4, how="error", error=ErrorReply(status=500, message="lost"))),
    )
    client = connect(server)
    incomplete = client.responses.create(model="m", input="hi")
    assert (incomplete.status, incomplete.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert client.responses.create(model="m", input="hi").output[0].content[0].refusal == "no"
    with pytest.raises(openai.RateLimitError):
        client.responses.create(model="m", input="hi")
    events = list(client.responses.create(model="m", input="hi", stream=True))
    assert (events[-1].type, events[-1].message) == ("error", "lost")


def test_responses_conversation_order_counts_runs_of_the_model(protocol_server, connect):
    server = protocol_server(turns.text("zero"), turns.text("one"), turns.text("two"), order="conversation")
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": "1"}
    user = {"role": "user", "content": "go"}
    said = {"role": "assistant", "content": "I call."}
    client = connect(server)
    histories = [[user], [user, said, call, output], [user, said, call, output, call, output]]
    assert [client.responses.create(model="m", input=h).output_text for h in histories] == ["zero", "one", "two"]


# --- Anthropic


def post(server, body, path="/v1/messages"):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    headers = {"content-type": "application/json", "x-api-key": "test-key", "anthropic-version": "2023-06-01"}
    connection.request("POST", path, json.dumps({"model": "c", "messages": MESSAGES, **body}), headers)
    response = connection.getresponse()
    data = response.read().decode()
    connection.close()
    return response.status, response.headers, data


def events_of(data):
    for block in data.strip().split("\n\n"):
        name, payload = block.split("\n")
        parsed = json.loads(payload.removeprefix("data: "))
        assert name == f"event: {parsed['type']}"
        yield parsed


def test_messages_text_and_tool_use(protocol_server):
    turn = turns.tool_calls(
        turns.tool_call("add", a=1), text="I add.", usage=ScriptedUsage(prompt=9, completion=4, cached=3)
    )
    server = protocol_server(turn)
    status, _, data = post(server, {"max_tokens": 100})
    answer = json.loads(data)
    assert status == 200
    assert [block["type"] for block in answer["content"]] == ["text", "tool_use"]
    assert answer["content"][1]["input"] == {"a": 1}
    assert answer["stop_reason"] == "tool_use"
    usage = answer["usage"]
    assert (usage["input_tokens"], usage["cache_read_input_tokens"], usage["output_tokens"]) == (6, 3, 4)
    (request,) = server.requests
    assert request.credential_sent
    assert "test-key" not in request.model_dump_json()


def test_messages_stream(protocol_server):
    server = protocol_server(turns.tool_calls(turns.tool_call("add", a=1, b=[2]), text="I add.", chunk_chars=2))
    status, headers, data = post(server, {"max_tokens": 100, "stream": True})
    events = list(events_of(data))
    assert status == 200
    assert headers["content-type"].startswith("text/event-stream")
    assert events[0]["type"] == "message_start"
    assert events[-1]["type"] == "message_stop"
    deltas = [e["delta"] for e in events if e["type"] == "content_block_delta"]
    assert "".join(d["text"] for d in deltas if d["type"] == "text_delta") == "I add."
    assert json.loads("".join(d["partial_json"] for d in deltas if d["type"] == "input_json_delta")) == {
        "a": 1,
        "b": [2],
    }
    starts = [e["index"] for e in events if e["type"] == "content_block_start"]
    stops = [e["index"] for e in events if e["type"] == "content_block_stop"]
    assert starts == stops == [0, 1]
    assert next(e for e in events if e["type"] == "message_delta")["delta"]["stop_reason"] == "tool_use"


def test_messages_errors_and_validation(protocol_server):
    server = protocol_server(turns.error(529, "busy", retry_after=3), turns.refusal("no"))
    status, headers, data = post(server, {"max_tokens": 1})
    assert (status, headers["retry-after"]) == (529, "3")
    assert json.loads(data)["error"] == {"type": "overloaded_error", "message": "busy"}
    assert json.loads(post(server, {"max_tokens": 1})[2])["stop_reason"] == "refusal"
    assert post(server, {})[0] == 400
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "add", "input": {}}]}
    for messages in ([*MESSAGES, use, *MESSAGES], [{"role": "system", "content": "x"}], []):
        status, _, data = post(server, {"max_tokens": 1, "messages": messages})
        assert (status, json.loads(data)["error"]["type"]) == (400, "invalid_request_error")
    assert json.loads(post(server, {}, "/v1/messages/count_tokens")[2])["input_tokens"] > 0


@pytest.mark.skipif(not HAS_ANTHROPIC, reason="the anthropic client comes with the extra [anthropic]")
def test_anthropics_own_client(protocol_server, no_ambient_model):
    import anthropic

    server = protocol_server(
        turns.text("hello"), turns.tool_calls(turns.tool_call("add", a=1), chunk_chars=2), turns.rate_limited(1)
    )
    with anthropic.Anthropic(base_url=server.origin, api_key="k", max_retries=0) as client:
        assert client.messages.create(model="c", max_tokens=10, messages=MESSAGES).content[0].text == "hello"
        with client.messages.stream(model="c", max_tokens=10, messages=MESSAGES) as stream:
            assert stream.get_final_message().content[0].input == {"a": 1}
        with pytest.raises(anthropic.RateLimitError):
            client.messages.create(model="c", max_tokens=10, messages=MESSAGES)
