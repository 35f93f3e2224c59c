"""The gateway before a real endpoint: what passes, what is counted, what is refused, and that no key comes through."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import httpx2
import openai
import pytest

from evaluation.harness.meter import GatewayTotals
from evaluation.harness.recorder import read_calls
from evaluation.trajectory import LimitHit, ModelCall, Note
from pipeline.digests import text_digest
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm import register_secret
from tests.doubles.protocol_server import Cut, ScriptedUsage, Turn
from tests.doubles.protocol_server import turns as scripted
from tests.evaluation.harness.support import KEY, PRICES, SMALL, Opened, gateway, upstreams
from tests.llm_fixtures import Serve, protocol_server  # noqa: F401

CHAT = {"model": "scripted", "messages": [{"role": "user", "content": "hi"}]}
COUNTED = ScriptedUsage(prompt=1000, completion=500, cached=200)


@pytest.fixture(autouse=True)
def _the_key_is_known() -> None:
    register_secret("OPENAI_API_KEY", KEY)


def sdk(opened: Opened) -> openai.OpenAI:
    return openai.OpenAI(base_url="http://gateway/v1", api_key="none", http_client=opened.client(), max_retries=0)


def calls(opened: Opened) -> list[ModelCall]:
    return [event for event in opened.events if isinstance(event, ModelCall)]


def settled(opened: Opened, count: int) -> GatewayTotals:
    """The totals once so many calls are recorded: that happens after the client has read the last byte of an answer."""
    wait_for(lambda: len(calls(opened)) == count)
    return opened.gateway.totals()


def test_a_chat_passes_with_our_key_and_is_counted_and_priced(protocol_server: Serve) -> None:  # noqa: F811
    server = protocol_server(scripted.text("hello", usage=COUNTED), api_key=KEY)
    with gateway(server) as opened:
        answer = sdk(opened).chat.completions.create(**CHAT)  # type: ignore[call-overload]
        assert answer.choices[0].message.content == "hello"
        totals = settled(opened, 1)
    assert (totals.calls, totals.cost_usd) == (1, (1000 * 1 + 500 * 2) / 1e6)
    assert totals.usage is not None
    assert (totals.usage.input_tokens, totals.usage.output_tokens, totals.usage.cached_input_tokens) == (1000, 500, 200)
    [call] = calls(opened)
    assert (call.endpoint, call.status, call.model, call.usage) == (
        "/v1/chat/completions",
        200,
        "scripted",
        totals.usage,
    )


@pytest.mark.parametrize("asked", [None, True])
def test_a_stream_is_counted_whether_or_not_the_agent_asks_for_usage(
    protocol_server: Serve,  # noqa: F811
    asked: bool | None,
) -> None:
    server = protocol_server(scripted.text("hello world", usage=COUNTED))
    options = {"stream_options": {"include_usage": True}} if asked else {}
    with gateway(server) as opened:
        chunks = list(sdk(opened).chat.completions.create(**CHAT, stream=True, **options))  # type: ignore[call-overload]
        totals = settled(opened, 1)
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "hello world"
    assert any(not chunk.choices for chunk in chunks) == bool(asked)
    assert totals.usage is not None
    assert totals.usage.input_tokens == 1000


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", ["responses", "messages"])
def test_the_other_protocols_are_counted_too(protocol_server: Serve, path: str, stream: bool) -> None:  # noqa: F811
    server = protocol_server(scripted.text("hello", usage=COUNTED))
    body = {"model": "scripted", "stream": stream} | (
        {"input": "hi"} if path == "responses" else {"max_tokens": 9, "messages": CHAT["messages"]}
    )
    with gateway(server) as opened, opened.client() as client:
        answer = client.post(f"/{path}", json=body, headers={"anthropic-version": "2023-06-01"})
        assert answer.status_code == 200
        assert "hello" in answer.text
        totals = settled(opened, 1)
    assert totals.usage is not None
    assert (totals.usage.input_tokens, totals.usage.output_tokens) == (1000, 500)


def test_unknown_stays_unknown(protocol_server: Serve) -> None:  # noqa: F811
    server = protocol_server(scripted.text("a", omit_usage=True), scripted.text("b"))
    with gateway(server) as opened, opened.client() as client:
        client.post("/chat/completions", json=CHAT)
        first = settled(opened, 1)
        client.post("/chat/completions", json=CHAT | {"model": "without-a-price"})
        second = settled(opened, 2)
    assert (first.calls, first.usage, first.cost_usd) == (1, None, None)
    assert (second.calls, second.cost_usd) == (2, None)
    assert [(call.usage is None, call.cost_usd) for call in calls(opened)] == [(True, None), (False, None)]


@pytest.mark.parametrize(
    ("limits", "name", "allowed"),
    [
        ({"model_calls": 2}, "model_calls", 2),
        ({"tokens": 2000}, "tokens", 2),
        ({"money_usd": 0.003}, "money", 2),
        ({"wall_s": 1e-9}, "wall_time", 0),
    ],
)
def test_limits_answer_402_that_is_not_to_be_retried(
    protocol_server: Serve,  # noqa: F811
    limits: dict[str, float],
    name: str,
    allowed: int,
) -> None:
    server = protocol_server(default=scripted.text("x", usage=COUNTED))
    with gateway(server, SMALL.evolve(**limits)) as opened, opened.client() as client:
        answers = [client.post("/chat/completions", json=CHAT) for _ in range(4)]
        totals = opened.gateway.totals()
    assert [answer.status_code for answer in answers] == [200] * allowed + [402] * (4 - allowed)
    assert answers[-1].headers["x-should-retry"] == "false"
    assert len(server.requests) == allowed
    assert totals.limits == (name,)
    assert [event.limit for event in opened.events if isinstance(event, LimitHit)] == [name]
    assert totals.calls == allowed


@pytest.mark.parametrize(("turn", "model"), [({}, "without-a-price"), ({"omit_usage": True}, "scripted")])
def test_a_limit_of_money_that_cannot_be_kept_refuses(
    protocol_server: Serve,  # noqa: F811
    turn: dict[str, bool],
    model: str,
) -> None:
    server = protocol_server(default=scripted.text("x", **turn))
    with gateway(server, SMALL.evolve(money_usd=5)) as opened, opened.client() as client:
        answers = [client.post("/chat/completions", json=CHAT | {"model": model}).status_code for _ in range(3)]
    assert answers[-1] == 402
    assert answers.count(200) <= 1


def test_calls_at_once_do_not_slip_past_the_limit(protocol_server: Serve) -> None:  # noqa: F811
    server = protocol_server(default=scripted.text("x"))
    statuses: list[int] = []
    with gateway(server, SMALL.evolve(model_calls=5)) as opened:

        def ask() -> None:
            with opened.client() as client:
                statuses.append(client.post("/chat/completions", json=CHAT).status_code)

        threads = [threading.Thread(target=ask) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(statuses) == [200] * 5 + [402] * 7
    assert len(server.requests) == 5


def test_a_stream_that_breaks_off_breaks_off_for_the_agent_and_the_next_call_works(
    protocol_server: Serve,  # noqa: F811
) -> None:
    server = protocol_server(scripted.text("a long answer in pieces", cut=Cut(after=2)), scripted.text("fine"))
    with gateway(server, SMALL.evolve(tokens=10**6)) as opened:
        with pytest.raises((openai.APIError, httpx2.HTTPError)):
            list(sdk(opened).chat.completions.create(**CHAT, stream=True))  # type: ignore[call-overload]
        assert sdk(opened).chat.completions.create(**CHAT).choices[0].message.content == "fine"  # type: ignore[call-overload]
        totals = settled(opened, 2)
    assert totals.usage is None
    assert [line.get("broken_off", False) for line in read_back(opened)] == [True, False]


def read_back(opened: Opened) -> list[dict[str, object]]:
    return [json.loads(line) for line in opened.lines]


def test_an_agent_that_leaves_a_stream_is_still_charged_exactly(protocol_server: Serve) -> None:  # noqa: F811
    server = protocol_server(scripted.text("one two three four", chunk_chars=3, hold="rest", hold_at=3, usage=COUNTED))
    with gateway(server) as opened:
        with (
            opened.client() as client,
            client.stream("POST", "/chat/completions", json=CHAT | {"stream": True}) as answer,
        ):
            next(answer.iter_raw())
        server.release("rest")
        wait_for(lambda: opened.gateway.totals().calls == 1)
        totals = opened.gateway.totals()
    assert totals.usage is not None
    assert totals.usage.output_tokens == 500


def wait_for(condition: object, seconds: float = 30.0) -> None:
    """Until another thread has got there; fails instead of hanging."""
    done = threading.Event()
    for _ in range(int(seconds / 0.01)):
        if condition():  # type: ignore[operator]
            return
        done.wait(0.01)
    raise AssertionError("it did not come about")


def test_endpoint_failures_are_passed_on_and_remembered(protocol_server: Serve) -> None:  # noqa: F811
    server = protocol_server(
        scripted.rate_limited(3), scripted.overloaded(), scripted.reset(), scripted.error(400, "bad")
    )
    with gateway(server) as opened, opened.client() as client:
        answers = [client.post("/chat/completions", json=CHAT) for _ in range(4)]
        totals = opened.gateway.totals()
    assert [answer.status_code for answer in answers] == [429, 503, 502, 400]
    assert answers[0].headers["retry-after"] == "3"
    assert (totals.calls, totals.failed, totals.last_failure) == (0, 3, FailureKind.NETWORK)
    assert totals.cost_usd == 0.0


def test_refused_credentials_are_ours_and_end_the_run(protocol_server: Serve) -> None:  # noqa: F811
    server = protocol_server(default=scripted.text("x"), api_key="another-key-that-we-do-not-have")
    with gateway(server) as opened, opened.client() as client:
        answer = client.post("/chat/completions", json=CHAT)
    assert answer.status_code == 502
    assert answer.headers["x-should-retry"] == "false"
    assert [kind for kind, _ in opened.broken] == [FailureKind.AUTHENTICATION]


def test_tools_that_the_provider_runs_are_taken_out(protocol_server: Serve) -> None:  # noqa: F811
    server = protocol_server(default=scripted.text("x"))
    own = {"type": "function", "name": "mine", "parameters": {"type": "object", "properties": {}}}
    with gateway(server) as opened, opened.client() as client:
        client.post("/responses", json={"model": "scripted", "input": "x", "tools": [own, {"type": "web_search"}]})
        client.post(
            "/messages",
            json={"model": "scripted", "max_tokens": 5, "messages": CHAT["messages"],
                  "tools": [{"type": "web_search_20250305", "name": "web_search"}], "tool_choice": {"type": "auto"}},
        )  # fmt: skip
        refused = client.post("/chat/completions", json=CHAT | {"model": "gpt-4o-search-preview"})
    sent = [request.body for request in server.requests]
    assert [tool["type"] for tool in sent[0]["tools"]] == ["function"]
    assert "tools" not in sent[1]
    assert refused.status_code == 403
    assert sum("taken out" in event.text for event in opened.events if isinstance(event, Note)) == 2


@pytest.mark.parametrize("path", ["/files", "/images/generations", "/../admin", "/responses/resp_1", "/threads"])
def test_other_paths_are_refused(protocol_server: Serve, path: str) -> None:  # noqa: F811
    server = protocol_server(default=scripted.text("x"))
    with gateway(server) as opened, opened.client() as client:
        for method in ("GET", "POST", "DELETE"):
            assert client.request(method, path).status_code in {404, 400}
    assert server.requests == []


@pytest.mark.parametrize("data", [b"", b"[]", b"no json", b"\xff"])
def test_what_is_no_request_is_refused(protocol_server: Serve, data: bytes) -> None:  # noqa: F811
    server = protocol_server(default=scripted.text("x"))
    with gateway(server) as opened, opened.client() as client:
        assert client.post("/chat/completions", content=data).status_code == 400
    assert server.requests == []


def test_free_endpoints_pass_and_count_nothing(protocol_server: Serve) -> None:  # noqa: F811
    server = protocol_server(default=scripted.text("x"))
    with gateway(server, SMALL.evolve(model_calls=0)) as opened, opened.client() as client:
        assert client.get("/models").status_code == 200
        body = {"model": "scripted", "messages": CHAT["messages"]}
        assert client.post("/messages/count_tokens", json=body).status_code == 200
        totals = opened.gateway.totals()
    assert (totals.calls, totals.usage, totals.limits) == (0, None, ())


def test_a_model_that_the_run_does_not_name_is_noted_once(protocol_server: Serve) -> None:  # noqa: F811
    server = protocol_server(default=scripted.text("x"))
    with gateway(server, model="another") as opened, opened.client() as client:
        for _ in range(3):
            client.post("/chat/completions", json=CHAT)
    assert sum(isinstance(event, Note) for event in opened.events) == 1


def test_the_key_is_in_nothing_that_the_agent_or_a_reader_can_see(protocol_server: Serve) -> None:  # noqa: F811
    """Also where the endpoint repeats it: in an error, in an answer, in a stream."""
    said = f"your key is {KEY}"
    server = protocol_server(
        scripted.text(said), scripted.text(said, chunk_chars=1000), scripted.error(400, f"bad key {KEY}"), api_key=KEY
    )
    with gateway(server) as opened, opened.client() as client:
        answers = [
            client.post("/chat/completions", json=CHAT, headers={"authorization": "Bearer mine", "x-api-key": "mine"}),
            client.post("/chat/completions", json=CHAT | {"stream": True}),
            client.post("/chat/completions", json=CHAT),
        ]
    assert {request.credential_digest for request in server.requests} == {text_digest(KEY)}
    for answer in answers:
        assert KEY not in answer.text + str(answer.headers)
    assert KEY not in "".join(opened.lines) + "".join(event.model_dump_json() for event in opened.events)
    assert "[redacted:OPENAI_API_KEY]" in answers[0].text


def test_the_record_holds_whole_exchanges(protocol_server: Serve) -> None:  # noqa: F811
    server = protocol_server(default=scripted.text("answer"))
    first = CHAT["messages"]
    longer = [*first, {"role": "assistant", "content": "answer"}, {"role": "user", "content": "more"}]
    with gateway(server) as opened, opened.client() as client:
        client.post("/chat/completions", json=CHAT)
        client.post("/chat/completions", json=CHAT | {"messages": longer})
    assert [call["request"]["messages"] for call in opened.whole] == [first, longer]
    assert json.loads(opened.lines[1])["request"]["same_messages"] == 1


def test_a_gateway_that_cannot_listen_says_so(tmp_path: Path, protocol_server: Serve) -> None:  # noqa: F811
    from evaluation.harness.gateway import Gateway

    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    server = protocol_server(default=Turn(text="x"))
    made = Gateway(
        deep, upstreams=upstreams(server), limits=SMALL, prices=PRICES, record=tmp_path / "c", emit=print, broken=print
    )
    with pytest.raises(ExpbenchError) as caught:
        made.__enter__()
    assert caught.value.kind is FailureKind.SANDBOX_BROKEN


def test_no_gateway_outlives_its_block(protocol_server: Serve) -> None:  # noqa: F811
    server = protocol_server(scripted.hang())
    with gateway(server) as opened:
        asking = threading.Thread(target=lambda: _swallow(opened))
        asking.start()
        wait_for(lambda: len(server.requests) == 1)
    asking.join(30)
    assert not asking.is_alive()
    assert not any(thread.name == "expbench-gateway" for thread in threading.enumerate())
    assert opened.totals.usage is None


def _swallow(opened: Opened) -> None:
    try:
        with opened.client() as client:
            client.post("/chat/completions", json=CHAT)
    except httpx2.HTTPError:
        return


def test_reading_a_record_that_breaks_off(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text('{"call": 0, "request": null}\n{"call": 1, "req')
    assert [call["call"] for call in read_calls(path)] == [0]
