"""The key of an exchange differs when anything that decides the answer differs, and only then."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.llm import (
    ImagePart,
    Message,
    ModelConfig,
    Parameters,
    PromptRef,
    Request,
    RetryPolicy,
    TextPart,
    ToolCall,
    ToolSpec,
    request_key,
    user,
)
from pipeline.llm.cache import embedding_key

CONFIG = ModelConfig(model="m")
TOOL = ToolSpec(name="f", description="d", parameters={"type": "object", "properties": {"a": {}, "b": {}}})
BASE = Request(
    messages=(
        Message(role="system", content="s"),
        user("look", ImagePart(data=b"image")),
        Message(role="assistant", tool_calls=(ToolCall(id="1", name="f", arguments={"a": 1}),)),
        Message(role="tool", content="r", tool_call_id="1"),
    ),
    tools=(TOOL,),
    response_schema={"name": "S", "schema": {"type": "object", "properties": {"a": {}, "b": {}}}},
)


def key(request: Request = BASE, config: ModelConfig = CONFIG, **parameters: Any) -> str:
    return request_key(config, request, Parameters(**parameters))


def with_message(index: int, **changes: Any) -> Request:
    messages = list(BASE.messages)
    messages[index] = messages[index].evolve(**changes)
    return BASE.evolve(messages=tuple(messages))


MATTERS = {
    "model": key(config=CONFIG.evolve(model="n")),
    "provider": key(config=CONFIG.evolve(provider="anthropic")),
    "address": key(config=CONFIG.evolve(base_url="http://localhost:1/v1")),
    "temperature": key(temperature=0.0),
    "temperature 1": key(temperature=1.0),
    "top_p": key(top_p=0.5),
    "seed": key(seed=0),
    "seed 1": key(seed=1),
    "length": key(max_output_tokens=5),
    "stop": key(stop=("a",)),
    "stop order": key(stop=("a", "b")),
    "stop order 2": key(stop=("b", "a")),
    "tool choice": key(tool_choice="required"),
    "draw": key(sample=1),
    "extra": key(extra={"reasoning_effort": "low"}),
    "role": key(with_message(0, role="user")),
    "text": key(with_message(0, content="t")),
    "no message": key(BASE.evolve(messages=BASE.messages[:-1])),
    "order of messages": key(BASE.evolve(messages=BASE.messages[::-1])),
    "image": key(with_message(1, content=(TextPart(text="look"), ImagePart(data=b"Image")))),
    "image detail": key(with_message(1, content=(TextPart(text="look"), ImagePart(data=b"image", detail="low")))),
    "image type": key(
        with_message(1, content=(TextPart(text="look"), ImagePart(data=b"image", media_type="image/gif")))
    ),
    "image first": key(with_message(1, content=BASE.messages[1].content[::-1])),
    "call's arguments": key(with_message(2, tool_calls=(ToolCall(id="1", name="f", arguments={"a": "1"}),))),
    "call's id": key(with_message(2, tool_calls=(ToolCall(id="2", name="f", arguments={"a": 1}),))),
    "call answered": key(with_message(3, tool_call_id="2")),
    "no tools": key(BASE.evolve(tools=())),
    "tool's description": key(BASE.evolve(tools=(TOOL.evolve(description="e"),))),
    "tool's order of properties": key(
        BASE.evolve(tools=(TOOL.evolve(parameters={"type": "object", "properties": {"b": {}, "a": {}}}),))
    ),
    "no schema": key(BASE.evolve(response_schema=None)),
    "schema's order of properties": key(
        BASE.evolve(response_schema={"name": "S", "schema": {"type": "object", "properties": {"b": {}, "a": {}}}})
    ),
}


def test_whatever_matters_gives_another_key():
    assert len({key(), *MATTERS.values()}) == len(MATTERS) + 1


@pytest.mark.parametrize(
    ("request_", "config"),
    [
        (BASE, CONFIG.evolve(timeout_s=1.0)),
        (BASE, CONFIG.evolve(retry=RetryPolicy(attempts=1))),
        (BASE, CONFIG.evolve(concurrency=1)),
        (BASE, CONFIG.evolve(context_window=5)),
        (BASE, CONFIG.evolve(parameters=Parameters(seed=3))),  # only those that are sent count
        (BASE, CONFIG.evolve(base_url="https://api.openai.com/v1/")),  # the default, spelt out
        (BASE.evolve(prompt=PromptRef(name="p", version="1", digest="d")), CONFIG),
        (with_message(0, content=(TextPart(text="s", elastic=True),)), CONFIG),
    ],
)
def test_whatever_does_not_matter_gives_the_same_key(request_: Request, config: ModelConfig):
    assert key(request_, config) == key()


def test_a_named_endpoint_may_move():
    near = ModelConfig(model="m", base_url="http://localhost:1/v1", endpoint="lab")
    assert key(config=near) == key(config=near.evolve(base_url="http://localhost:2/v1"))


texts = st.text(max_size=20)
parts = st.one_of(
    texts.map(lambda text: TextPart(text=text)), st.binary(max_size=4).map(lambda data: ImagePart(data=data))
)
messages = st.builds(
    lambda role, content: Message(role=role, content=tuple(content)),
    st.sampled_from(["system", "user"]),
    st.lists(parts, max_size=3),
)
requests = st.builds(lambda found: Request(messages=tuple(found)), st.lists(messages, min_size=1, max_size=3))
parameters = st.builds(
    Parameters,
    temperature=st.none() | st.sampled_from([0.0, 0.5, 1.0]),
    seed=st.none() | st.integers(0, 2),
    max_output_tokens=st.integers(1, 3),
    sample=st.integers(0, 2),
)


@given(requests, requests, parameters, parameters)
def test_keys_are_equal_exactly_when_requests_are(a: Request, b: Request, p: Parameters, q: Parameters):
    assert (request_key(CONFIG, a, p) == request_key(CONFIG, b, q)) == ((a, p) == (b, q))


@given(requests, parameters)
def test_keys_survive_storing(request: Request, p: Parameters):
    copy = Request.model_validate_json(request.model_dump_json())
    assert request_key(CONFIG, copy, Parameters.model_validate_json(p.model_dump_json())) == request_key(
        CONFIG, request, p
    )


@given(texts, texts, st.none() | st.integers(1, 2), st.none() | st.integers(1, 2))
def test_embedding_keys(a: str, b: str, m: int | None, n: int | None):
    assert (embedding_key(CONFIG, a, m) == embedding_key(CONFIG, b, n)) == ((a, m) == (b, n))
