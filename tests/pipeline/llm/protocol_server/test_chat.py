"""Chat completions through the official client."""

import asyncio
import base64
import hashlib
import json
from typing import Literal

import openai
import pytest
from pydantic import BaseModel

from tests.doubles.protocol_server import Features, Match, ScriptedUsage, ToolCall, turns

USER = [{"role": "user", "content": "What is measured?"}]
ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
    },
}
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Claim(BaseModel):
    metric: str
    value: float
    direction: Literal["higher", "lower"]


def test_text_with_usage(protocol_server, connect):
    usage = ScriptedUsage(prompt=11, completion=7, cached=3, reasoning=2)
    server = protocol_server(turns.text("accuracy", usage=usage))
    answer = connect(server).chat.completions.create(model="m-1", messages=USER, temperature=0.5, seed=7)
    assert answer.choices[0].message.content == "accuracy"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.model == "m-1"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (11, 7, 18)
    assert answer.usage.prompt_tokens_details.cached_tokens == 3
    assert answer.usage.completion_tokens_details.reasoning_tokens == 2
    (request,) = server.requests
    assert request.body == {"model": "m-1", "messages": USER, "temperature": 0.5, "seed": 7}
    assert (request.number, request.method, request.path, request.outcome) == (
        1,
        "POST",
        "/v1/chat/completions",
        "turn 1",
    )


@pytest.mark.parametrize("chunk_chars", [1, 3, 1000])
def test_stream_gives_the_same_text_and_usage_when_asked(protocol_server, connect, chunk_chars):
    text = "Zahlen: 1,5 → 2 Größen\n\nand a second paragraph"
    server = protocol_server(turns.text(text, chunk_chars=chunk_chars), turns.text(text))
    client = connect(server)
    chunks = list(
        client.chat.completions.create(model="m", messages=USER, stream=True, stream_options={"include_usage": True})
    )
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == text
    assert chunks[-1].usage is not None
    assert chunks[-1].choices == []
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    plain = list(client.chat.completions.create(model="m", messages=USER, stream=True))
    assert all(chunk.usage is None for chunk in plain)


def test_omitted_usage(protocol_server, connect):
    server = protocol_server(turns.text("x", omit_usage=True))
    assert connect(server).chat.completions.create(model="m", messages=USER).usage is None


def test_tool_round_trip(protocol_server, connect):
    server = protocol_server(turns.tool_calls(turns.tool_call("add", a=1, b=2)), turns.text("3"))
    client = connect(server)
    first = client.chat.completions.create(model="m", messages=USER, tools=[ADD])
    (call,) = first.choices[0].message.tool_calls
    assert first.choices[0].finish_reason == "tool_calls"
    assert (call.function.name, json.loads(call.function.arguments)) == ("add", {"a": 1, "b": 2})
    messages = [*USER, first.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "3"}]
    assert client.chat.completions.create(model="m", messages=messages, tools=[ADD]).choices[0].message.content == "3"


def test_streamed_tool_calls_are_put_together_by_the_clients_helper(protocol_server, connect):
    calls = (turns.tool_call("add", a=1, b=2), turns.tool_call("add", a=30, b=40))
    server = protocol_server(turns.tool_calls(*calls, chunk_chars=3))
    tool = {**ADD, "function": {**ADD["function"], "strict": True}}
    tool["function"]["parameters"] = {
        **ADD["function"]["parameters"],
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    with connect(server).chat.completions.stream(model="m", messages=USER, tools=[tool]) as stream:
        final = stream.get_final_completion()
    parsed = [call.function.parsed_arguments for call in final.choices[0].message.tool_calls]
    assert parsed == [{"a": 1, "b": 2}, {"a": 30, "b": 40}]


def test_broken_tool_arguments_arrive_as_they_are(protocol_server, connect):
    server = protocol_server(turns.tool_calls(ToolCall(name="add", arguments='{"a": 1,', id="call_x")))
    answer = connect(server).chat.completions.create(model="m", messages=USER, tools=[ADD])
    call = answer.choices[0].message.tool_calls[0]
    assert (call.id, call.function.arguments) == ("call_x", '{"a": 1,')


def test_unanswered_tool_calls_are_rejected_as_by_openai(protocol_server, connect):
    server = protocol_server(turns.text("never"))
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    assistant = {"role": "assistant", "content": None, "tool_calls": [call]}
    orphan = {"role": "tool", "tool_call_id": "c2", "content": "3"}
    for messages in ([*USER, assistant], [*USER, assistant, *USER], [*USER, orphan]):
        with pytest.raises(openai.BadRequestError, match="tool"):
            connect(server).chat.completions.create(model="m", messages=messages)
    assert [r.outcome for r in server.requests] == ["rejected 400"] * 3
    assert len(server.unused) == 1


def test_structured_output_is_parsed_by_the_client(protocol_server, connect):
    value = {"metric": "accuracy", "value": 0.91, "direction": "higher"}
    server = protocol_server(turns.structured(value))
    answer = connect(server).chat.completions.parse(model="m", messages=USER, response_format=Claim)
    assert answer.choices[0].message.parsed == Claim(**value)
    sent = server.requests[0].body["response_format"]
    assert sent["type"] == "json_schema"
    assert sent["json_schema"]["strict"] is True


def test_structured_output_streams_through_the_clients_helper(protocol_server, connect):
    value = {"metric": "F1", "value": 88.5, "direction": "higher"}
    server = protocol_server(turns.structured(value, chunk_chars=5))
    with connect(server).chat.completions.stream(model="m", messages=USER, response_format=Claim) as stream:
        kinds = {event.type for event in stream}
        assert stream.get_final_completion().choices[0].message.parsed == Claim(**value)
    assert {"content.delta", "content.done", "chunk"} <= kinds


def test_refusal(protocol_server, connect):
    server = protocol_server(turns.refusal("I will not."), turns.refusal("I will not.", chunk_chars=2))
    client = connect(server)
    whole = client.chat.completions.parse(model="m", messages=USER, response_format=Claim).choices[0].message
    assert (whole.refusal, whole.content, whole.parsed) == ("I will not.", None, None)
    with client.chat.completions.stream(model="m", messages=USER, response_format=Claim) as stream:
        assert stream.get_final_completion().choices[0].message.refusal == "I will not."


def test_truncated_answer_raises_in_parse(protocol_server, connect):
    server = protocol_server(turns.text('{"metric": "ac', finish_reason="length"))
    with pytest.raises(openai.LengthFinishReasonError):
        connect(server).chat.completions.parse(model="m", messages=USER, response_format=Claim)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, "additionalProperties"),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}, "Missing 'a'"),
        ({"type": "array", "items": {}}, 'type: "object"'),
        (
            {
                "type": "object",
                "properties": {"a": {"oneOf": [{"type": "string"}]}},
                "required": ["a"],
                "additionalProperties": False,
            },
            "oneOf",
        ),
    ],
)
def test_schemas_that_strict_mode_rejects(protocol_server, connect, schema, reason):
    server = protocol_server(turns.structured({"a": "x"}))
    given = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}}
    with pytest.raises(openai.BadRequestError, match=reason) as caught:
        connect(server).chat.completions.create(model="m", messages=USER, response_format=given)
    assert caught.value.param == "response_format"
    loose = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    assert connect(server).chat.completions.create(model="m", messages=USER, response_format=loose)


def test_json_object_wants_the_word_json(protocol_server, connect):
    server = protocol_server(turns.structured({"a": 1}))
    client = connect(server)
    with pytest.raises(openai.BadRequestError, match="must contain the word 'json'"):
        client.chat.completions.create(model="m", messages=USER, response_format={"type": "json_object"})
    asked = [{"role": "user", "content": "Answer in JSON."}]
    answer = client.chat.completions.create(model="m", messages=asked, response_format={"type": "json_object"})
    assert json.loads(answer.choices[0].message.content) == {"a": 1}


def test_images_are_recorded_by_digest(protocol_server, connect):
    server = protocol_server(turns.text("a pixel"))
    url = "data:image/png;base64," + base64.b64encode(PIXEL).decode()
    parts = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": url, "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "http://host.invalid/figure.png"}},
    ]
    connect(server).chat.completions.create(model="m", messages=[{"role": "user", "content": parts}])
    (request,) = server.requests
    sent, linked = request.images
    assert (sent.media_type, sent.size, sent.sha256) == ("image/png", len(PIXEL), hashlib.sha256(PIXEL).hexdigest())
    assert (linked.media_type, linked.size) == (None, 0)
    assert url not in request.model_dump_json()
    assert sent.sha256 in request.body["messages"][0]["content"][1]["image_url"]["url"]


@pytest.mark.parametrize(
    ("feature", "arguments"),
    [
        ("json_schema", {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}}),
        ("json_object", {"response_format": {"type": "json_object"}}),
        ("tools", {"tools": [ADD]}),
        ("streaming", {"stream": True}),
        ("stream_usage", {"stream": True, "stream_options": {"include_usage": True}}),
        (
            "images",
            {
                "messages": [
                    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://a.invalid"}}]}
                ]
            },
        ),
    ],
)
def test_features_that_are_off_are_rejected(protocol_server, connect, feature, arguments):
    server = protocol_server(turns.text("never"), features=Features(**{feature: False}))
    with pytest.raises(openai.BadRequestError, match="not supported"):
        connect(server).chat.completions.create(**{"model": "m", "messages": USER, **arguments})


def test_turns_find_their_requests(protocol_server, connect):
    server = protocol_server(
        turns.text("for b", match=Match(contains="caller b")),
        turns.text("for tools", match=Match(has_tools=True)),
        turns.text("streams", match=Match(stream=True), times=2),
        turns.text("other model", match=Match(model="m-2"), times=None),
        turns.text("first come"),
        default=turns.text("rest"),
    )
    client = connect(server)

    def ask(text, **options):
        answer = client.chat.completions.create(
            **{"model": "m", "messages": [{"role": "user", "content": text}], **options}
        )
        return answer.choices[0].message.content

    assert ask("I am caller a") == "first come"
    assert ask("I am caller b") == "for b"
    assert ask("I am caller b") == "rest"
    assert ask("x", tools=[ADD]) == "for tools"
    assert [ask("x", model="m-2") for _ in range(3)] == ["other model"] * 3
    assert [r.outcome for r in server.requests] == [
        "turn 5",
        "turn 1",
        "default",
        "turn 2",
        "turn 4",
        "turn 4",
        "turn 4",
    ]
    assert [turn.text for turn in server.unused] == ["streams"]


def test_conversation_order_gives_the_same_answer_to_a_repeated_request(protocol_server, connect):
    server = protocol_server(turns.text("one"), turns.text("two"), order="conversation", default=turns.text("end"))
    client = connect(server)

    def ask(assistants):
        history = [message for i in range(assistants) for message in (*USER, {"role": "assistant", "content": str(i)})]
        return client.chat.completions.create(model="m", messages=[*history, *USER]).choices[0].message.content

    assert [ask(0), ask(0), ask(1), ask(0), ask(2)] == ["one", "one", "two", "one", "end"]


def test_an_exhausted_script_says_so_and_is_not_tried_again(protocol_server, connect):
    server = protocol_server(turns.text("only"))
    client = connect(server, max_retries=5)
    client.chat.completions.create(model="m", messages=USER)
    with pytest.raises(openai.InternalServerError, match=r"no turn is left for request 2 \(chat\)"):
        client.chat.completions.create(model="m", messages=USER)
    assert len(server.requests) == 2
    server.enqueue(turns.text("more"))
    assert client.chat.completions.create(model="m", messages=USER).choices[0].message.content == "more"


def test_async_client_with_concurrent_calls(protocol_server, no_ambient_model):
    server = protocol_server(*[turns.text(f"answer {i}", match=Match(contains=f"question {i}.")) for i in range(32)])

    async def ask_all():
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key="k") as client:

            async def ask(i):
                stream = await client.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": f"question {i}."}], stream=True
                )
                return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

            return await asyncio.gather(*[ask(i) for i in range(32)])

    assert asyncio.run(ask_all()) == [f"answer {i}" for i in range(32)]
    assert server.unused == []
    assert [r.number for r in server.requests] == list(range(1, 33))
