"""What is kept of one call: the line of the record, the event, what was odd, and answers that nobody asks for again."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pydantic import SecretStr

from evaluation.harness.call_records import call_event, exchange_record, final_answer, oddities
from evaluation.harness.exchange import Call
from evaluation.harness.policy import Route
from evaluation.harness.upstream import Upstream
from evaluation.trajectory import TokenUsage
from pipeline.llm import register_secret
from pipeline.llm.types import Usage

USED = Usage(input_tokens=10, output_tokens=4, cached_input_tokens=3, reasoning_tokens=2)


def call(**changes: Any) -> Call:
    upstream = Upstream(provider="openai", url="http://127.0.0.1:9/v1", default=False, key=SecretStr("k" * 12))
    made = Call(Route("openai", "chat", "/chat/completions"), upstream, "/v1/chat/completions", 1.5)
    made.model, made.digest = "m", "abc"
    for name, value in changes.items():
        assert hasattr(made, name)
        setattr(made, name, value)
    return made


def test_a_call_begins_with_nothing_known() -> None:
    upstream = Upstream(provider="openai", url="http://x/v1", default=False, key=SecretStr("k" * 12))
    made = Call(Route("openai", "chat", "/c"), upstream, "/v1/c", 2.0)
    assert (made.model, made.body, made.digest, made.removed, made.usage_added, made.stream, made.cost) == (
        None, None, "", [], False, False, None,
    )  # fmt: skip
    assert (made.endpoint, made.at, made.upstream) == ("/v1/c", 2.0, upstream)


def test_a_line_of_the_record() -> None:
    line = exchange_record(call(cost=Decimal("0.5")), 200, USED, 0.25, whole=True)
    assert line == {
        "at": 1.5, "endpoint": "/v1/chat/completions", "provider": "openai", "status": 200, "model": "m",
        "duration_s": 0.25, "usage": USED.model_dump(mode="json"), "cost_usd": 0.5, "request_sha256": "abc",
    }  # fmt: skip
    assert exchange_record(call(), 200, None, 0.25, whole=True)["usage"] is None


def test_what_was_taken_out_and_what_broke_off_is_in_its_line() -> None:
    line = exchange_record(call(removed=["tools: mcp"]), 200, USED, 0.25, whole=False)
    assert (line["taken_out"], line["broken_off"]) == (["tools: mcp"], True)
    assert not {"taken_out", "broken_off"} & set(exchange_record(call(), 200, USED, 0.25, whole=True))


@pytest.mark.parametrize(
    ("cost", "status", "stated"),
    [(Decimal("0.5"), 200, 0.5), (None, 200, None), (None, 399, None), (None, 400, 0.0), (Decimal("0.5"), 400, 0.0),
     (None, 402, 0.0), (None, 500, 0.0)],
)  # fmt: skip
def test_an_unknown_cost_is_unknown_and_a_refused_call_costs_nothing(
    cost: Decimal | None, status: int, stated: float | None
) -> None:
    for found in (
        exchange_record(call(cost=cost), status, None, 0.1, whole=True)["cost_usd"],
        call_event(call(cost=cost), status, None, 0.1).cost_usd,
    ):
        assert found == stated
        assert (found is None) == (stated is None)


def test_the_event_of_a_call() -> None:
    event = call_event(call(cost=Decimal("0.5")), 200, USED, 0.25)
    assert (event.seq, event.at, event.endpoint, event.status, event.model) == (
        0,
        1.5,
        "/v1/chat/completions",
        200,
        "m",
    )
    assert event.usage == TokenUsage(input_tokens=10, output_tokens=4, cached_input_tokens=3)
    assert (event.request_sha256, event.duration_s) == ("abc", 0.25)
    assert call_event(call(), 200, None, 0.1).usage is None
    assert call_event(call(model=None), 200, None, 0.1).model is None


def test_a_key_in_the_name_of_a_model_is_not_told() -> None:
    register_secret("CALL_RECORDS_KEY", "CANARY-CALL-RECORDS-77")
    assert "CANARY" not in (call_event(call(model="x CANARY-CALL-RECORDS-77"), 200, None, 0.1).model or "")


def test_what_is_odd_of_a_request() -> None:
    removed = call(removed=["tools: mcp", "plugins"])
    taken = [f"{what} was taken out of the agent's requests: the provider would run it" for what in removed.removed]
    assert oddities(removed, None) == taken
    assert oddities(removed, "m") == taken
    assert oddities(call(), "other") == ["the agent called the model m, the run states other"]
    assert oddities(call(model=None), "other") == []
    assert oddities(call(), None) == []


def test_an_answer_of_our_own_is_not_to_be_asked_for_again() -> None:
    answer = final_answer(b"{}", 402)
    assert (answer.status_code, answer.body) == (402, b"{}")
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-should-retry"] == "false"
