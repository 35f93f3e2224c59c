"""The client against the protocol server: real HTTP, the real client libraries."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm import (
    Budget,
    BudgetError,
    BudgetLimits,
    CacheMode,
    CallLedger,
    CancelToken,
    Delta,
    ExchangeStore,
    FinishReason,
    ImagePart,
    ModelClient,
    ModelError,
    Parameters,
    Price,
    PriceList,
    Reply,
    Request,
    TextPart,
    ToolSpec,
    assistant,
    system,
    tool_result,
    user,
)
from tests.doubles.protocol_server import Cut, ScriptedUsage, Turn, embedding, turns
from tests.llm_fixtures import Serve
from tests.pipeline.llm.conftest import KEY, FakeClock

Make = Callable[..., ModelClient]


def ask(text: str = "question", **fields: Any) -> Request:
    return Request(messages=(system("be brief"), user(text)), **fields)


def outcomes(ledger: CallLedger) -> list[tuple[str, int, bool]]:
    return [(record.outcome, record.attempt, record.sent) for record in ledger.records()]


class Point(BaseModel):
    x: int
    label: str


# --- chat, tools, images, streams ---


def test_chat_sends_what_was_asked_and_records_it(protocol_server: Serve, make_client: Make, ledger: CallLedger):
    server = protocol_server(turns.text("answer", usage=ScriptedUsage(prompt=11, completion=3, cached=4)))
    reply = make_client(server).chat(ask())
    assert reply.text == "answer"
    assert reply.finish_reason is FinishReason.STOP
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cached_input_tokens) == (11, 3, 4)
    body = server.requests[0].body
    assert body["messages"] == [{"role": "system", "content": "be brief"}, {"role": "user", "content": "question"}]
    assert (body["temperature"], body["seed"], body["max_tokens"]) == (0.0, 7, 100)
    assert server.requests[0].credential_sent
    (record,) = ledger.records()
    assert (record.temperature, record.seed, record.model, record.key) == (0.0, 7, "scripted", reply.key)
    assert record.cost_usd is None  # nobody said what it costs


def test_tool_round_trip(protocol_server: Serve, make_client: Make):
    server = protocol_server(
        turns.tool_calls(turns.tool_call("look", x=1, label="a"), turns.tool_call("look", x=2, label="b")),
        turns.text("done"),
    )
    client = make_client(server)
    request = ask(tools=(ToolSpec.of("look", "look at a point", Point),))
    reply = client.chat(request)
    assert reply.finish_reason is FinishReason.TOOL_CALLS
    assert [call.arguments for call in reply.tool_calls] == [{"x": 1, "label": "a"}, {"x": 2, "label": "b"}]
    results = tuple(tool_result(call, "seen") for call in reply.tool_calls)
    final = client.chat(request.evolve(messages=(*request.messages, reply.as_message(), *results)))
    assert final.text == "done"
    sent = server.requests[1].body["messages"]
    assert [call["id"] for call in sent[2]["tool_calls"]] == [message["tool_call_id"] for message in sent[3:]]
    assert server.requests[0].body["tools"][0]["function"]["parameters"]["required"] == ["x", "label"]


def test_malformed_tool_arguments_reach_the_caller(protocol_server: Serve, make_client: Make):
    from tests.doubles.protocol_server import ToolCall

    server = protocol_server(Turn(tool_calls=(ToolCall(name="look", arguments='{"x": '),)))
    reply = make_client(server).chat(ask(tools=(ToolSpec.of("look", "look", Point),)))
    assert not reply.tool_calls
    assert reply.invalid_tool_calls[0].arguments == '{"x": '
    assert reply.as_message().tool_calls[0].id == reply.invalid_tool_calls[0].id


def test_images_are_sent(protocol_server: Serve, make_client: Make):
    server = protocol_server(turns.text("a plot"))
    image = ImagePart(data=b"\x89PNG\r\n\x1a\n....")
    make_client(server).chat(Request(messages=(user("what is it?", image),)))
    assert [seen.sha256 for seen in server.requests[0].images] == [image.digest]


def test_stream(protocol_server: Serve, make_client: Make):
    server = protocol_server(turns.text("a longer answer in pieces", chunk_chars=5))
    *deltas, reply = make_client(server).stream(ask())
    assert len(deltas) >= 5
    assert "".join(delta.text for delta in deltas) == "a longer answer in pieces" == reply.text
    assert reply.usage is not None


@pytest.mark.parametrize("how", ["quiet", "abrupt", "malformed", "error"])
def test_broken_streams_start_anew(protocol_server: Serve, make_client: Make, ledger: CallLedger, how: Any):
    cut = Cut(after=2, how=how, error=turns.overloaded().error if how == "error" else None)
    server = protocol_server(turns.text("lost in the middle of it", cut=cut), turns.text("whole"))
    *deltas, reply = make_client(server).stream(ask())
    assert reply.text == "whole"
    last = max(delta.attempt for delta in deltas)
    assert "".join(delta.text for delta in deltas if delta.attempt == last) == "whole"
    first, second = ledger.records()
    assert (first.outcome == "done", second.outcome, first.call == second.call) == (False, "done", True)
    assert first.usage is None  # the endpoint may have charged for it: unknown, not nothing


def test_closing_a_stream_aborts_the_call(protocol_server: Serve, make_client: Make, ledger: CallLedger):
    server = protocol_server(turns.text("one two three four", chunk_chars=4, hold="never", hold_at=3))
    stream = make_client(server).stream(ask())
    assert isinstance(next(stream), Delta)
    stream.close()
    assert [record.outcome for record in ledger.records()] == ["interrupted"]


# --- failures ---


@pytest.mark.parametrize(
    ("turn", "kind"),
    [
        (turns.error(401, "no"), FailureKind.AUTHENTICATION),
        (turns.error(403, "no"), FailureKind.AUTHENTICATION),
        (turns.error(402, "pay"), FailureKind.QUOTA),
        (turns.quota_exceeded(), FailureKind.QUOTA),
        (turns.context_too_long(), FailureKind.CONTEXT_TOO_LONG),
        (turns.error(400, "This model's maximum context length is 8 tokens"), FailureKind.CONTEXT_TOO_LONG),
        (turns.error(404, "no such model"), FailureKind.REQUEST_REJECTED),
        (turns.error(422, "unknown field"), FailureKind.REQUEST_REJECTED),
        (turns.refusal("I will not"), FailureKind.REFUSAL),
        (turns.text("half", finish_reason="content_filter"), FailureKind.REFUSAL),
        (turns.error(400, "filtered", code="content_filter"), FailureKind.REFUSAL),
    ],
)
def test_failures_that_are_not_retried(
    protocol_server: Serve, make_client: Make, ledger: CallLedger, clock: FakeClock, turn: Turn, kind: FailureKind
):
    with pytest.raises(ModelError) as caught:
        make_client(protocol_server(turn)).chat(ask())
    assert caught.value.kind is kind
    assert len(ledger.records()) == 1
    assert clock.slept == []


@pytest.mark.parametrize(
    ("turn", "kind"),
    [
        (turns.rate_limited(), FailureKind.RATE_LIMIT),
        (turns.overloaded(), FailureKind.OVERLOADED),
        (turns.error(500), FailureKind.OVERLOADED),
        (turns.error(504), FailureKind.MODEL_TIMEOUT),
        (turns.malformed_json(), FailureKind.PROTOCOL_BROKEN),
        (turns.wrong_content_type(), FailureKind.PROTOCOL_BROKEN),
        (turns.reset(), FailureKind.NETWORK),
    ],
)
def test_failures_that_pass(
    protocol_server: Serve, make_client: Make, ledger: CallLedger, turn: Turn, kind: FailureKind
):
    server = protocol_server(turn, turns.text("at last"))
    assert make_client(server).chat(ask()).text == "at last"
    assert [record.outcome for record in ledger.records()] == [kind.value, "done"]


def test_retries_are_bounded(protocol_server: Serve, make_client: Make, ledger: CallLedger, clock: FakeClock):
    server = protocol_server(default=turns.overloaded(times=None))
    with pytest.raises(ModelError) as caught:
        make_client(server, attempts=3).chat(ask())
    assert (caught.value.kind, caught.value.attempts, len(server.requests)) == (FailureKind.OVERLOADED, 3, 3)
    assert len(clock.slept) == 2
    assert all(
        record.wait_s == round(slept, 3) for record, slept in zip(ledger.records()[1:], clock.slept, strict=True)
    )


def test_retry_after_is_honoured(protocol_server: Serve, make_client: Make, ledger: CallLedger, clock: FakeClock):
    server = protocol_server(turns.error(429, retry_after=17), turns.text("ok"))
    make_client(server).chat(ask())
    assert 17 <= clock.slept[0] <= 17 * 1.1
    assert ledger.records()[0].retry_after_s == 17


def test_an_excessive_retry_after_ends_the_call(protocol_server: Serve, make_client: Make, clock: FakeClock):
    server = protocol_server(turns.error(429, retry_after=86_400))
    with pytest.raises(ModelError) as caught:
        make_client(server).chat(ask())
    assert (caught.value.kind, caught.value.retry_after_s, clock.slept) == (FailureKind.RATE_LIMIT, 86_400, [])


def test_nobody_listens(make_client: Make, ledger: CallLedger):
    with pytest.raises(ModelError) as caught:
        make_client("http://127.0.0.1:1/v1", attempts=2).chat(ask())
    assert caught.value.kind is FailureKind.NETWORK
    assert [record.cost_usd for record in ledger.records()] == [Decimal(0)] * 2  # it certainly cost nothing


def test_a_silent_endpoint_meets_the_deadline(protocol_server: Serve, make_client: Make):
    server = protocol_server(turns.text("late", hold="never"))
    with pytest.raises(ModelError) as caught:
        make_client(server, attempts=1, config={"timeout_s": 0.2}).chat(ask())
    assert caught.value.kind is FailureKind.MODEL_TIMEOUT


def test_cancelling_a_call_under_way(protocol_server: Serve, make_client: Make, ledger: CallLedger):
    server = protocol_server(turns.text("late", hold="never"))
    token, client = CancelToken(), make_client(server)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(client.chat, ask(), cancel=token)
        while not server.requests:
            threading.Event().wait(0.005)
        token.cancel()
        with pytest.raises(ExpbenchError) as caught:
            future.result(timeout=20)
    assert caught.value.kind is FailureKind.INTERRUPTED
    assert outcomes(ledger) == [("interrupted", 1, True)]
    assert ledger.records()[0].cost_usd is None
    with pytest.raises(ExpbenchError):  # and nothing new is begun
        client.chat(ask("another"), cancel=token)
    assert len(server.requests) == 1


def test_no_exception_keeps_the_key_or_the_request(protocol_server: Serve, make_client: Make):
    server = protocol_server(turns.error(401, f"Incorrect API key provided: {KEY}"))
    with pytest.raises(ModelError) as caught:
        make_client(server).chat(ask())
    seen: BaseException | None = caught.value
    while seen is not None:
        assert KEY not in f"{seen!r} {seen} {vars(seen)}"
        assert not hasattr(seen, "request")
        seen = seen.__cause__ or seen.__context__


def test_no_key(protocol_server: Serve, make_client: Make, monkeypatch: pytest.MonkeyPatch):
    server = protocol_server(turns.text("hello"))
    local, remote = make_client(server), make_client("https://api.openai.com/v1")
    monkeypatch.delenv("OPENAI_API_KEY")
    assert local.chat(ask()).text == "hello"  # a server of one's own may want none
    with pytest.raises(ExpbenchError) as caught:
        remote.chat(ask())
    assert caught.value.kind is FailureKind.AUTHENTICATION


# --- cache and replay ---


def test_cached_answers_are_equal_and_free(
    protocol_server: Serve, make_client: Make, tmp_path: Path, ledger: CallLedger
):
    server = protocol_server(turns.text("once"))
    client = make_client(server, store=ExchangeStore(tmp_path / "cache"))
    first, second = client.chat(ask()), client.chat(ask())
    assert second == first.evolve(cached=True)
    *deltas, streamed = client.stream(ask())
    assert ([delta.text for delta in deltas], streamed) == (["once"], second)
    assert outcomes(ledger) == [("done", 1, True), ("cached", 0, False), ("cached", 0, False)]
    totals = ledger.totals()
    assert (totals.calls, totals.cached) == (1, 2)


def test_refresh_asks_again_and_off_keeps_nothing(protocol_server: Serve, make_client: Make, tmp_path: Path):
    server = protocol_server(turns.text("old"), turns.text("other"), turns.text("new"))
    root = tmp_path / "cache"
    assert make_client(server, store=ExchangeStore(root)).chat(ask()).text == "old"
    assert make_client(server, store=ExchangeStore(root, CacheMode.OFF)).chat(ask()).text == "other"
    assert make_client(server, store=ExchangeStore(root)).chat(ask()).text == "old"
    assert make_client(server, store=ExchangeStore(root, CacheMode.REFRESH)).chat(ask()).text == "new"
    assert make_client(server, store=ExchangeStore(root)).chat(ask()).text == "new"


def test_replay_never_calls_out(
    protocol_server: Serve, make_client: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    server = protocol_server(turns.text("recorded"))
    root = tmp_path / "cache"
    make_client(server, store=ExchangeStore(root)).chat(ask())
    monkeypatch.delenv("OPENAI_API_KEY")
    client = make_client(server, store=ExchangeStore(root, CacheMode.REPLAY))
    assert client.chat(ask()).text == "recorded"
    with pytest.raises(ModelError) as caught:
        client.chat(ask("something new"))
    assert caught.value.kind is FailureKind.REPLAY_MISS
    assert len(server.requests) == 1


def test_replay_takes_the_same_turns(protocol_server: Serve, make_client: Make, tmp_path: Path):
    """Repairs, a rejected schema and a text that had to be shortened are replayed as they were recorded."""
    server = protocol_server(
        turns.error(400, "response_format is not supported"),
        turns.text("no json here"),
        turns.text('```json\n{"x": 1, "label": "a"}\n```'),
        turns.context_too_long(),
        turns.text("short enough"),
    )
    root = tmp_path / "cache"
    long = Request(messages=(user(TextPart(text="word " * 4000, elastic=True)),))

    def work(client: ModelClient) -> tuple[Any, ...]:
        from pipeline.llm import ContextPolicy

        found = client.structured(ask(), Point)
        reply = client.chat(long, policy=ContextPolicy.SHRINK)
        return found.value, found.repairs, found.native, reply.text, reply.left_out_characters

    recorded = work(make_client(server, store=ExchangeStore(root)))
    assert recorded[:4] == (Point(x=1, label="a"), 1, False, "short enough")
    assert recorded[4] > 0
    assert work(make_client(server, store=ExchangeStore(root, CacheMode.REPLAY))) == recorded
    assert len(server.requests) == 5


def test_concurrent_askers_pay_once(protocol_server: Serve, make_client: Make, tmp_path: Path, ledger: CallLedger):
    server = protocol_server(turns.text("shared", hold="go"))
    clients = [make_client(server, store=ExchangeStore(tmp_path / "cache")) for _ in range(4)]
    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(clients[i % 4].chat, ask()) for i in range(8)]
        while not server.requests:
            threading.Event().wait(0.005)
        server.release("go")
        assert {future.result(timeout=20).text for future in futures} == {"shared"}
    assert len(server.requests) == 1
    assert sorted(record.outcome for record in ledger.records()) == ["cached"] * 7 + ["done"]
    assert list((tmp_path / "cache" / "locks").iterdir()) == []


def test_an_unreadable_entry_counts_as_missing(protocol_server: Serve, make_client: Make, tmp_path: Path):
    server = protocol_server(turns.text("a"), turns.text("b"))
    store = ExchangeStore(tmp_path / "cache")
    client = make_client(server, store=store)
    path = store.path(client.chat(ask()).key)
    path.write_text(path.read_text()[:-40])
    assert client.chat(ask()).text == "b"


# --- structured output ---


def test_native_schema(protocol_server: Serve, make_client: Make, tmp_path: Path):
    server = protocol_server(turns.structured({"x": 3, "label": "c"}))
    client = make_client(server, store=ExchangeStore(tmp_path / "cache"))
    found = client.structured(ask(), Point)
    assert (found.value, found.native, found.repairs) == (Point(x=3, label="c"), True, 0)
    sent = server.requests[0].body["response_format"]
    assert (sent["type"], sent["json_schema"]["strict"]) == ("json_schema", True)
    assert make_client(server, store=ExchangeStore(tmp_path / "cache")).capabilities.schema_mode == "json_schema"


def test_an_endpoint_without_schemas_is_remembered(protocol_server: Serve, make_client: Make, tmp_path: Path):
    answer = turns.text('Sure! {"x": 1, "label": "a"} Anything else?', times=None)
    server = protocol_server(turns.error(400, "response_format"), default=answer)
    first = make_client(server, store=ExchangeStore(tmp_path / "cache"))
    assert first.structured(ask("1"), Point).native is False
    second = make_client(server, store=ExchangeStore(tmp_path / "cache"))
    assert second.structured(ask("2"), Point).value.x == 1
    assert ["response_format" in request.body for request in server.requests] == [True, False, False]
    assert "JSON schema" in server.requests[2].body["messages"][0]["content"]


def test_a_rejection_for_another_reason_is_not_blamed_on_the_schema(
    protocol_server: Serve, make_client: Make, tmp_path: Path
):
    server = protocol_server(default=turns.error(404, "no such model", times=None))
    client = make_client(server, store=ExchangeStore(tmp_path / "cache"))
    with pytest.raises(ModelError) as caught:
        client.structured(ask(), Point)
    assert caught.value.kind is FailureKind.REQUEST_REJECTED
    assert client.capabilities.schema_mode is None


def test_repair_feeds_the_error_back(protocol_server: Serve, make_client: Make, ledger: CallLedger):
    server = protocol_server(turns.structured({"x": "many", "label": "a"}), turns.structured({"x": 5, "label": "a"}))
    found = make_client(server).structured(ask(), Point)
    assert (found.value.x, found.repairs) == (5, 1)
    complaint = server.requests[1].body["messages"][-1]["content"]
    assert "x: Input should be a valid integer" in complaint
    assert [record.repair for record in ledger.records()] == [0, 1]


def test_repair_is_bounded(protocol_server: Serve, make_client: Make, ledger: CallLedger):
    server = protocol_server(default=turns.structured({"x": "never"}, times=None))
    with pytest.raises(ModelError) as caught:
        make_client(server).structured(ask(), Point, repairs=2)
    assert (caught.value.kind, caught.value.attempts) == (FailureKind.INVALID_OUTPUT, 3)
    assert len(ledger.records()) == 3


def test_a_check_of_the_caller_takes_part(protocol_server: Serve, make_client: Make):
    def positive(point: Point) -> None:
        if point.x < 0:
            raise ValueError("x must not be negative")

    server = protocol_server(turns.structured({"x": -1, "label": ""}), turns.structured({"x": 1, "label": ""}))
    assert make_client(server).structured(ask(), Point, check=positive).value.x == 1
    assert "x must not be negative" in server.requests[1].body["messages"][-1]["content"]


def test_a_truncated_answer_is_not_taken_for_whole(protocol_server: Serve, make_client: Make):
    server = protocol_server(
        turns.text('{"x": 1, "label": "a"}', finish_reason="length"), turns.structured({"x": 2, "label": "b"})
    )
    found = make_client(server).structured(ask(), Point)
    assert (found.value.x, found.repairs) == (2, 1)


# --- context ---


def test_a_request_that_is_too_long_is_not_sent(protocol_server: Serve, make_client: Make):
    server = protocol_server()
    client = make_client(server, config={"context_window": 500})
    with pytest.raises(ModelError) as caught:
        client.chat(ask("word " * 2000))
    assert caught.value.kind is FailureKind.CONTEXT_TOO_LONG
    assert server.requests == []


def test_split_asks_once_per_piece(protocol_server: Serve, make_client: Make):
    server = protocol_server(default=turns.text("part", times=None))
    client = make_client(server, config={"context_window": 1000})
    text = "".join(f"Sentence number {i}. " for i in range(600))
    replies = client.chat_split(Request(messages=(user("summarise", TextPart(text=text, elastic=True)),)))
    assert len(replies) == len(server.requests) > 3
    sent = "".join(request.body["messages"][0]["content"].split("]\n", 1)[1] for request in server.requests)
    assert sent == text  # nothing is lost and nothing is doubled


def test_structured_values_per_piece(protocol_server: Serve, make_client: Make):
    server = protocol_server(default=turns.structured({"x": 1, "label": "a"}, times=None))
    client = make_client(server, config={"context_window": 1000})
    request = Request(messages=(user("read", TextPart(text="word. " * 2000, elastic=True)),))
    found = client.structured_split(request, Point)
    assert len(found) == len(server.requests) > 2
    assert {one.value.x for one in found} == {1}


def test_what_cannot_be_split_is_refused(protocol_server: Serve, make_client: Make):
    client = make_client(protocol_server(), config={"context_window": 200})
    with pytest.raises(ModelError) as caught:
        client.chat_split(Request(messages=(user("x " * 2000, TextPart(text="word. " * 2000, elastic=True)),)))
    assert caught.value.kind is FailureKind.CONTEXT_TOO_LONG


def test_split_goes_on_when_the_endpoint_counts_more(protocol_server: Serve, make_client: Make):
    server = protocol_server(turns.context_too_long(), default=turns.text("part", times=None))
    replies = make_client(server).chat_split(
        Request(messages=(user("summarise", TextPart(text="word. " * 3000, elastic=True)),))
    )
    assert len(replies) >= 2


# --- budgets ---

PRICES = PriceList(as_of="2026-01-01", models=(Price(model="scripted", input="2", output="10"),))


def test_the_budget_stops_before_a_call(protocol_server: Serve, make_client: Make, ledger: CallLedger):
    server = protocol_server(default=turns.text("x", times=None, usage=ScriptedUsage(prompt=50, completion=10)))
    budget = Budget(limits=BudgetLimits(usd="0.003"))
    client = make_client(server, budget=budget, prices=PRICES)
    # worst case: 100 answer tokens and about 120 bytes of question, 0.0013; each call really takes 0.0002

    def spend() -> None:
        for number in range(100):
            client.chat(ask(str(number)))

    with pytest.raises(BudgetError) as caught:
        spend()
    assert caught.value.limit == "usd"
    assert caught.value.exit_code == 9
    spent = budget.spent
    assert spent.calls == len(server.requests) == len(ledger.records()) > 5
    assert spent.usd == ledger.totals().cost_usd == Decimal("0.0002") * spent.calls
    assert spent.usd <= Decimal("0.003")


def test_money_needs_a_price(protocol_server: Serve, make_client: Make):
    server = protocol_server()
    client = make_client(server, budget=Budget(limits=BudgetLimits(usd=5)))
    with pytest.raises(BudgetError, match="price of the model is unknown"):
        client.chat(ask())
    assert server.requests == []


def test_scopes_nest_and_label(protocol_server: Serve, make_client: Make, ledger: CallLedger):
    server = protocol_server(default=turns.text("x", times=None))
    run = Budget("night", BudgetLimits(calls=3))
    client = make_client(server, budget=run)
    with run.scope("stage", "extract") as stage, stage.scope("task", "t1", BudgetLimits(calls=1)):
        client.chat(ask("1"))
        with pytest.raises(BudgetError, match="task t1"):
            client.chat(ask("2"))
    with run.scope("stage", "locate"):
        client.chat(ask("3"))
        client.chat(ask("4"))
        with pytest.raises(BudgetError, match="run night"):
            client.chat(ask("5"))
    done = Counter((record.stage, record.task) for record in ledger.records() if record.outcome == "done")
    assert done == {("extract", "t1"): 1, ("locate", None): 2}


def test_what_nobody_counted_is_charged_at_its_worst(protocol_server: Serve, make_client: Make, ledger: CallLedger):
    server = protocol_server(turns.reset(), turns.text("ok", omit_usage=True))
    budget = Budget(limits=BudgetLimits(usd=1))
    make_client(server, budget=budget, prices=PRICES).chat(ask())
    records = ledger.records()
    assert [record.cost_usd for record in records] == [None, None]
    assert budget.spent.usd == sum(record.bound_usd for record in records) > 0
    assert ledger.spent() == budget.spent  # what a resumed run begins with
    assert ledger.totals().cost_usd is None


def test_waiting_never_passes_the_wall_limit(
    protocol_server: Serve, make_client: Make, clock: FakeClock, ledger: CallLedger
):
    server = protocol_server(turns.error(429, retry_after=50))
    budget = Budget(limits=BudgetLimits(wall_s=30), clock=clock)
    with pytest.raises(BudgetError) as caught:
        make_client(server, budget=budget).chat(ask())
    assert (caught.value.limit, clock.slept, len(ledger.records())) == ("wall_s", [], 1)


def test_a_stream_counts_in_the_scope_of_its_caller(protocol_server: Serve, make_client: Make, ledger: CallLedger):
    server = protocol_server(turns.text("x"))
    with Budget("b").scope("stage", "extract"):
        list(make_client(server).stream(ask()))
    assert ledger.records()[0].stage == "extract"


# --- embeddings ---


def test_embeddings_are_cached_per_text(protocol_server: Serve, make_client: Make, tmp_path: Path, ledger: CallLedger):
    server = protocol_server()
    client = make_client(server, store=ExchangeStore(tmp_path / "cache"))
    first = client.embed(["alpha beta", "gamma delta", "alpha beta"])
    assert first[0] == first[2] != first[1]
    assert first[0] == pytest.approx(tuple(embedding("alpha beta", len(first[0]))))
    assert client.embed(["gamma delta", "a new text"])[0] == first[1]
    assert [request.body["input"] for request in server.requests] == [
        sorted(["alpha beta", "gamma delta"], key=server.requests[0].body["input"].index),
        ["a new text"],
    ]
    assert [outcome for outcome, _, _ in outcomes(ledger)] == ["done", "cached", "done"]


# --- secrets ---


def test_the_key_is_in_no_artefact(
    protocol_server: Serve, make_client: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level("DEBUG")
    server = protocol_server(
        turns.text(f"you sent {KEY}, thanks", chunk_chars=3), turns.error(400, f"bad {KEY}"), turns.text(f"again {KEY}")
    )
    client = make_client(server, store=ExchangeStore(tmp_path / "cache"))
    *deltas, reply = client.stream(ask(f"my key is {KEY}"))
    assert isinstance(reply, Reply)
    shown = "".join(delta.text for delta in deltas)
    with pytest.raises(ModelError) as caught:
        client.chat(ask("error"))
    client.chat(Request(messages=(user("x"), assistant(KEY), user("y"))))
    everything = shown + reply.text + str(caught.value) + caplog.text + repr(client.config)
    everything += "".join(str(request.body) for request in server.requests)
    everything += "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    assert KEY not in everything
    assert "[redacted:OPENAI_API_KEY]" in shown


def test_parameters_of_a_request_take_the_place_of_the_configured(protocol_server: Serve, make_client: Make):
    server = protocol_server(turns.text("x"))
    extra = {"reasoning_effort": "low"}
    make_client(server).chat(
        ask(parameters=Parameters(temperature=0.5, max_output_tokens=9, stop=("END",), extra=extra))
    )
    body = server.requests[0].body
    assert (body["temperature"], body["max_tokens"], body["stop"], body["reasoning_effort"]) == (0.5, 9, ["END"], "low")
    assert "seed" not in body
