"""The clients that people use, against a desk at which the test answers."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path

import openai
import pytest
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field

from extractors.engine.run import PaperReader, draft_with_model
from extractors.engine.runs import Rehearsed
from pipeline.llm import CallLedger, ModelClient, ModelConfig, ModelError, Parameters, Request, RetryPolicy
from pipeline.llm.types import ImagePart, Reply, ToolSpec, user
from pipeline.locator import build_index
from tests.extractors.engine.papers import paper
from tests.extractors.engine.reader import Reader
from tests.pipeline.desk.conftest import until
from tests.pipeline.locator.repositories import PROJECT, make

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Row(BaseModel):
    metric: str
    value: float = Field(ge=0)


class Table(BaseModel):
    rows: list[Row] = Field(min_length=1)


class Run(BaseModel):
    """Run a command."""

    command: str
    seed: int = 0


@pytest.fixture
def client(desk):
    with openai.OpenAI(base_url=desk.url, api_key="any", max_retries=0, timeout=5.0) as made:
        yield made


TOOLS = [
    {"type": "function", "function": {"name": "run", "description": "Runs.", "parameters": Run.model_json_schema()}}
]


def test_plain_text_and_who_said_it(desk, client, meanwhile):
    asked = meanwhile(
        client.chat.completions.create, model="desk", messages=[{"role": "user", "content": "Which metric?"}]
    )
    (name,) = desk.waiting()
    assert f"`{desk.directory}/outbox/{name}.md`" in desk.inbox(name, "request.md")
    desk.write(f"{name}.by", "A. Reader\n")
    desk.write(f"{name}.md", "Accuracy.\n")
    answer = asked.result()
    assert answer.choices[0].message.content == "Accuracy."
    assert (answer.model, answer.answered_by, answer.choices[0].finish_reason) == ("desk", "A. Reader", "stop")
    assert answer.usage.estimated is True
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 2
    assert json.loads(desk.inbox(name, "answer.json"))["by"] == "A. Reader"


def test_the_only_model_is_the_desk(client):
    assert [model.id for model in client.models.list()] == ["desk"]


def test_a_stream_has_signs_of_life_and_then_the_answer(desk, client, meanwhile):
    arrived = []

    def stream():
        asked = client.chat.completions.create(
            model="desk",
            messages=[{"role": "user", "content": "?"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        arrived.extend(asked)  # one by one, as they come

    asked = meanwhile(stream)
    (name,) = desk.waiting()
    until(lambda: len(arrived) > 2)
    assert not any(piece.choices[0].delta.content for piece in arrived)
    desk.write(f"{name}.md", "one\ntwo")
    asked.result()
    *pieces, last = arrived
    assert "".join(piece.choices[0].delta.content or "" for piece in pieces) == "one\ntwo"
    assert pieces[-1].choices[0].finish_reason == "stop"
    assert last.usage.completion_tokens > 0
    assert {piece.model for piece in pieces} == {"desk"}


def test_an_answer_may_take_longer_than_the_client_s_time_out(desk, meanwhile):
    """A piece arrives every 0.05 s, so that a client that waits 1 s for the next one waits on."""
    with openai.OpenAI(base_url=desk.url, api_key="any", max_retries=0, timeout=1.0) as client:
        asked = meanwhile(client.chat.completions.create, model="desk", messages=[{"role": "user", "content": "?"}])
        (name,) = desk.waiting()
        with pytest.raises(TimeoutError):
            asked.result(timeout=2.5)
        desk.write(f"{name}.md", "at last")
        assert asked.result().choices[0].message.content == "at last"


def test_an_image_lies_beside_the_page(desk, client, meanwhile):
    url = "data:image/png;base64," + base64.b64encode(PNG).decode()
    content = [{"type": "text", "text": "What is shown?"}, {"type": "image_url", "image_url": {"url": url}}]
    asked = meanwhile(client.chat.completions.create, model="desk", messages=[{"role": "user", "content": content}])
    (name,) = desk.waiting()
    assert (desk.directory / "inbox" / name / "image-1.png").read_bytes() == PNG
    assert "![image-1.png](image-1.png)" in desk.inbox(name, "request.md")
    assert "base64" not in desk.inbox(name, "request.json")
    desk.write(f"{name}.md", "A dot.")
    assert asked.result().choices[0].message.content == "A dot."


def test_a_conversation_with_tools(desk, client, meanwhile):
    messages = [{"role": "user", "content": "Run it."}]
    asked = meanwhile(client.chat.completions.create, model="desk", messages=messages, tools=TOOLS)
    (first,) = desk.waiting()
    page = desk.inbox(first, "request.md")
    assert '"name": "run"' in page
    assert '"command": "..."' in page  # an example with this request's own tool
    desk.write(
        f"{first}.calls.json",
        '{"text": "I run it.", "tool_calls": [{"name": "run", "arguments": {"command": "make"}}]}',
    )
    message = asked.result().choices[0].message
    assert asked.result().choices[0].finish_reason == "tool_calls"
    (call,) = message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("run", {"command": "make"})

    messages += [message.to_dict(), {"role": "tool", "tool_call_id": call.id, "content": "0.91"}]
    again = meanwhile(client.chat.completions.create, model="desk", messages=messages, tools=TOOLS)
    (second,) = desk.waiting(beside=first)
    page = desk.inbox(second, "request.md")
    assert f"The first 1 messages are those of request {first}." in page
    assert "## Message 3: tool, result of `run`" in page
    desk.write(f"{second}.md", "It is 0.91.")
    assert again.result().choices[0].message.content == "It is 0.91."


def test_structured_output_of_the_official_client(desk, client, meanwhile):
    asked = meanwhile(
        client.chat.completions.parse,
        model="desk",
        messages=[{"role": "user", "content": "Table 1?"}],
        response_format=Table,
    )
    (name,) = desk.waiting()
    assert json.loads(desk.inbox(name, "schema.json"))["required"] == ["rows"]
    desk.write(f"{name}.json", '{"rows": [{"metric": "accuracy", "value": 0.91}]}')
    assert asked.result().choices[0].message.parsed == Table(rows=[Row(metric="accuracy", value=0.91)])


def test_an_answer_can_be_declined(desk, client, meanwhile):
    asked = meanwhile(client.chat.completions.create, model="desk", messages=[{"role": "user", "content": "?"}])
    (name,) = desk.waiting()
    desk.write(f"{name}.declined.md", "The page is blank.")
    message = asked.result().choices[0].message
    assert (message.content, message.refusal) == (None, "The page is blank.")


def test_langchain_streams_calls_tools_and_parses(desk, meanwhile):
    model = ChatOpenAI(model="desk", base_url=desk.url, api_key="any", max_retries=0, timeout=5.0)
    streamed = meanwhile(lambda: list(model.bind_tools([Run]).stream("Run it.")))
    (name,) = desk.waiting()
    calls = [{"name": "Run", "arguments": {"command": "a"}}, {"name": "Run", "arguments": {"command": "b", "seed": 1}}]
    desk.write(f"{name}.calls.json", json.dumps({"tool_calls": calls}))
    whole = None
    for piece in streamed.result():
        whole = piece if whole is None else whole + piece
    assert [call["args"] for call in whole.tool_calls] == [{"command": "a"}, {"command": "b", "seed": 1}]

    parsed = meanwhile(model.with_structured_output(Table).invoke, "Table 1?")
    (name,) = desk.waiting()
    desk.write(f"{name}.json", '{"rows": [{"metric": "f1", "value": 1}]}')
    assert parsed.result() == Table(rows=[Row(metric="f1", value=1)])


# --- our own client


@pytest.fixture
def ours(desk, tmp_path):
    config = ModelConfig(
        model="desk", base_url=desk.url, endpoint="desk", schema_mode="json_schema", timeout_s=60.0,
        parameters=Parameters(max_output_tokens=100), retry=RetryPolicy(attempts=4, base_s=0.1),
    )  # fmt: skip
    with ModelClient(config, ledger=CallLedger(tmp_path / "calls.jsonl")) as made:
        yield made


def test_our_client_chats_streams_and_sees(desk, ours, meanwhile):
    asked = meanwhile(ours.chat, Request(messages=(user("Which?", ImagePart(data=PNG)),)))
    (name,) = desk.waiting()
    desk.write(f"{name}.md", "This.")
    reply = asked.result()
    assert (reply.text, reply.model) == ("This.", "desk")
    assert reply.usage is not None

    streamed = meanwhile(lambda: list(ours.stream(Request(messages=(user("And then?"),)))))
    (name,) = desk.waiting()
    desk.write(f"{name}.md", "That.")
    *pieces, last = streamed.result()
    assert "".join(piece.text for piece in pieces) == last.text == "That."


def test_our_client_calls_tools_and_hears_a_refusal(desk, ours, meanwhile):
    request = Request(messages=(user("Run it."),), tools=(ToolSpec.of("run", "Runs.", Run),))
    asked = meanwhile(ours.chat, request)
    (name,) = desk.waiting()
    desk.write(f"{name}.calls.json", '{"tool_calls": [{"name": "run", "arguments": {"command": "make"}}]}')
    (call,) = asked.result().tool_calls
    assert (call.name, call.arguments) == ("run", {"command": "make"})

    asked = meanwhile(ours.chat, Request(messages=(user("And this?"),)))
    (name,) = desk.waiting()
    desk.write(f"{name}.declined.md", "No.")
    with pytest.raises(ModelError, match="No\\."):
        asked.result()


def test_our_client_gets_values_and_sends_back_what_its_own_check_refuses(desk, ours, meanwhile):
    def check(table: Table) -> None:
        if table.rows[0].value > 1:
            raise ValueError("no such number in the paper")

    asked = meanwhile(ours.structured, Request(messages=(user("Table 1?"),)), Table, check=check)
    (first,) = desk.waiting()
    desk.write(f"{first}.json", '{"rows": [{"metric": "accuracy", "value": 91}]}')
    (second,) = desk.waiting(beside=first)
    assert "no such number in the paper" in desk.inbox(second, "request.md")
    desk.write(f"{second}.json", '{"rows": [{"metric": "accuracy", "value": 0.91}]}')
    found = asked.result()
    assert (found.value.rows[0].value, found.repairs, found.native) == (0.91, 1, True)


def test_many_requests_at_once_and_in_any_order(desk, ours, meanwhile):
    asked = [meanwhile(ours.chat, Request(messages=(user(f"Question {i}"),))) for i in range(8)]
    for name in reversed(desk.waiting(8)):
        question = json.loads(desk.inbox(name, "request.json"))["messages"][0]["content"]
        desk.write(f"{name}.md", f"answer to {question}")
    replies: list[Reply] = [future.result() for future in asked]
    assert [reply.text for reply in replies] == [f"answer to Question {i}" for i in range(8)]


def test_the_desk_is_restarted_while_our_client_waits(desk, ours, meanwhile, tmp_path: Path):
    """The client sees a broken connection and asks again; that finds the earlier entry, answered meanwhile."""
    asked = meanwhile(ours.chat, Request(messages=(user("Still there?"),)))
    (name,) = desk.waiting()
    desk.restart()
    desk.write(f"{name}.md", "Yes.")
    assert asked.result().text == "Yes."
    assert [path.name for path in (desk.directory / "inbox").glob("[0-9]*")] == [name]


def test_the_model_engine_reads_a_paper_at_the_desk(desk, ours, meanwhile, tmp_path: Path):
    """Several questions wait at once; each is read from its file, and answered in the file that its page names."""
    reader, answered = Reader(files=("train.py",)), set()
    index = build_index(make(tmp_path / "code", PROJECT))
    drafts = meanwhile(draft_with_model, PaperReader(paper(), index, Rehearsed(), ours), Rehearsed())
    while not drafts.done():
        for entry in sorted((desk.directory / "inbox").glob("[0-9]*")):
            if entry.name not in answered:
                turn = reader("chat", json.loads((entry / "request.json").read_text()))
                assert f"{entry.name}.calls.json`" in (entry / "request.md").read_text()
                calls = [call.model_dump(include={"name", "arguments"}) for call in turn.tool_calls]
                desk.write(f"{entry.name}.calls.json", json.dumps({"tool_calls": calls}))
                answered.add(entry.name)
        time.sleep(0.02)
    assert [draft.slug for draft in drafts.result().drafts.drafts] == [
        "table-1-mean-test-accuracy", "table-2-mean-test-accuracy",
    ]  # fmt: skip
    assert not list((desk.directory / "outbox").glob("*.refused.md"))
