"""The account of a run's model calls, and the usage that answers state: exact at every bound, unknown where unsaid."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from evaluation.episode import EpisodeLimits
from evaluation.harness.meter import GatewayTotals, Meter, OverLimit
from evaluation.harness.usage import EventMeter, usage_of
from evaluation.trajectory import TokenUsage
from pipeline.errors import FailureKind
from pipeline.llm.types import Usage

USED = Usage(input_tokens=6, output_tokens=4, cached_input_tokens=2)


def meter(**limits: Any) -> Meter:
    return Meter(EpisodeLimits(wall_s=100, **limits))


def ask(made: Meter, now: float = 0.0, priced: bool = True) -> OverLimit | None:
    return made.admit(now, model="m", priced=priced)


def answered(
    made: Meter, usage: Usage | None = USED, cost: Decimal | None = Decimal("0.5"), whole: bool = True
) -> None:
    assert ask(made) is None
    made.succeeded(usage, cost, whole=whole)


def test_nothing_was_counted_at_the_beginning() -> None:
    assert meter().totals() == GatewayTotals(cost_usd=0.0)


def test_calls_tokens_and_money_are_summed() -> None:
    made = meter()
    answered(made)
    answered(made)
    usage = TokenUsage(input_tokens=12, output_tokens=8, cached_input_tokens=4)
    assert made.totals() == GatewayTotals(calls=2, usage=usage, cost_usd=1.0)


def test_one_answer_that_does_not_say_makes_the_sum_unknown() -> None:
    made = meter()
    answered(made)
    answered(made, usage=None)
    assert made.totals() == GatewayTotals(calls=2, usage=None, cost_usd=1.0)
    answered(made, cost=None)
    assert made.totals().cost_usd is None
    answered(made)
    assert (made.totals().usage, made.totals().cost_usd) == (None, None)


def test_the_wall_time_ends_at_its_second() -> None:
    made = meter()
    made.start(1000.0)
    assert ask(made, 1099.999) is None
    assert ask(made, 1100.0) == OverLimit("wall_time", "100 s", True)
    assert ask(made, 1101.0) == OverLimit("wall_time", "100 s", False)
    assert made.totals().limits == ("wall_time",)
    assert ask(meter(), 1e9) is None  # not begun


def test_calls_under_way_count_towards_their_limit() -> None:
    made = meter(model_calls=2)
    assert [ask(made), ask(made)] == [None, None]
    assert ask(made) == OverLimit("model_calls", "2 calls", True)
    made.rejected()  # that one cost nothing
    assert ask(made) is None
    made.failed(FailureKind.NETWORK, "d", admitted=True)
    answered(made)
    made.succeeded(USED, None, whole=True)
    assert ask(made) == OverLimit("model_calls", "2 calls", False)


def test_tokens_of_both_directions_count() -> None:
    made = meter(tokens=20)
    answered(made)
    answered(made, Usage(input_tokens=6, output_tokens=3))
    assert ask(made) is None
    made.succeeded(Usage(input_tokens=1, output_tokens=0), None, whole=True)
    assert ask(made) == OverLimit("tokens", "20 tokens (20 used)", True)


def test_money_is_spent_to_the_cent() -> None:
    made = meter(money_usd=1.0)
    answered(made, cost=Decimal("0.9999"))
    answered(made, cost=Decimal("0.0001"))
    assert ask(made) == OverLimit("money", "1 USD (1.0000 spent)", True)


def test_what_cannot_be_kept_is_refused_and_only_where_there_is_such_a_limit() -> None:
    silent = "the endpoint does not state what it uses, so no limit of {} can be kept"
    for limits, name in (({"tokens": 100}, "tokens"), ({"money_usd": 5.0}, "money")):
        made = meter(**limits)
        answered(made, usage=None, whole=False)  # broken off: no case of an endpoint that never says
        assert ask(made) is None
        made.succeeded(None, None, whole=True)
        assert ask(made) == OverLimit(name, silent.format(name), True)  # type: ignore[arg-type]
    free = meter()
    answered(free, usage=None)
    assert ask(free, priced=False) is None
    made = meter(money_usd=5.0)
    assert ask(made, priced=False) == OverLimit(
        "money", "the price of m is unknown, so no limit of money can be kept", True
    )


def test_tokens_are_named_before_money() -> None:
    made = meter(tokens=5, money_usd=0.1)
    answered(made)
    found = ask(made)
    assert found is not None
    assert found.limit == "tokens"


def test_failures_are_counted_since_the_last_success() -> None:
    made = meter()
    made.failed(FailureKind.RATE_LIMIT, "first", admitted=False)
    made.failed(FailureKind.NETWORK, "last", admitted=False)
    found = made.totals()
    assert (found.failed, found.failed_at_end, found.last_failure, found.last_detail) == (
        2,
        2,
        FailureKind.NETWORK,
        "last",
    )
    answered(made)
    assert (made.totals().failed, made.totals().failed_at_end) == (2, 0)


# --- usage

CHAT = {"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 3},
        "completion_tokens_details": {"reasoning_tokens": 2}}  # fmt: skip
RESPONSES = {"input_tokens": 10, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 3},
             "output_tokens_details": {"reasoning_tokens": 2}}  # fmt: skip
WHOLE = Usage(input_tokens=10, output_tokens=4, cached_input_tokens=3, reasoning_tokens=2)


@pytest.mark.parametrize(
    ("kind", "stated", "found"),
    [
        ("chat", CHAT, WHOLE), ("completions", CHAT, WHOLE), ("responses", RESPONSES, WHOLE),
        ("chat", RESPONSES, None), ("responses", CHAT, None),
        ("embeddings", {"prompt_tokens": 5}, Usage(input_tokens=5, output_tokens=0)),
        ("embeddings", {"prompt_tokens": 5, "completion_tokens": 1}, Usage(input_tokens=5, output_tokens=1)),
        ("embeddings", {}, None), ("chat", {"prompt_tokens": 5}, None), ("chat", {"completion_tokens": 5}, None),
        ("chat", {"prompt_tokens": -1, "completion_tokens": 5}, None), ("chat", {"prompt_tokens": True, "completion_tokens": 5}, None),
        ("chat", {"prompt_tokens": "5", "completion_tokens": 5}, None),
        ("chat", {"prompt_tokens": 0, "completion_tokens": 0}, Usage(input_tokens=0, output_tokens=0)),
        ("chat", {"prompt_tokens": 2.0, "completion_tokens": 1}, Usage(input_tokens=2, output_tokens=1)),
        ("chat", CHAT | {"prompt_tokens": 2, "completion_tokens": 1},  # no more of a part than of the whole
         Usage(input_tokens=2, output_tokens=1, cached_input_tokens=2, reasoning_tokens=1)),
        ("chat", CHAT | {"prompt_tokens_details": [], "completion_tokens_details": None}, Usage(input_tokens=10, output_tokens=4)),
        ("messages", {"input_tokens": 1, "output_tokens": 2, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 8},
         Usage(input_tokens=13, output_tokens=2, cached_input_tokens=4, cache_write_tokens=8)),
        ("messages", {"input_tokens": 1, "output_tokens": 2}, Usage(input_tokens=1, output_tokens=2)),
        ("messages", {"input_tokens": 1}, None), ("messages", {"output_tokens": 1}, None),
    ],
)  # fmt: skip
def test_what_an_answer_states(kind: Any, stated: dict[str, Any], found: Usage | None) -> None:
    assert usage_of(kind, {"usage": stated}) == found
    assert usage_of(kind, {"usage": [stated]}) is None
    assert usage_of(kind, [stated]) is None


def fed(kind: Any, *events: Any) -> tuple[EventMeter, list[bool]]:
    made = EventMeter(kind)
    return made, [
        made.feed(e if isinstance(e, bytes) else b"data: " + json.dumps(e).encode() + b"\n\n") for e in events
    ]


def test_a_chat_stream_states_it_in_its_closing_chunk() -> None:
    made, closing = fed(
        "chat", {"choices": [{}]}, {"choices": [{}], "usage": CHAT}, {"choices": [], "usage": CHAT},
        {"choices": [], "usage": {}}, {"choices": []},
    )  # fmt: skip
    assert closing == [False, False, True, True, False]
    assert (made.usage, made.complete) == (WHOLE, False)
    assert made.feed(b"data: [DONE]\n\n") is False
    assert made.complete
    made.feed(b"data: {}\n\n")
    assert (made.usage, made.complete) == (WHOLE, True)


@pytest.mark.parametrize("kind", ["response.completed", "response.incomplete", "response.failed"])
def test_a_response_stream_ends_with_its_response(kind: str) -> None:
    made, closing = fed("responses", {"type": "response.created", "response": {"usage": RESPONSES}})
    assert (made.usage, made.complete, closing) == (None, False, [False])
    made.feed(b"data: " + json.dumps({"type": kind, "response": {"usage": RESPONSES}}).encode())
    assert (made.usage, made.complete) == (WHOLE, True)
    made.feed(b"data: " + json.dumps({"type": kind, "response": {}}).encode())
    assert made.usage == WHOLE


def test_a_message_stream_is_known_from_its_delta_on() -> None:
    start = {"type": "message_start", "message": {"usage": {"input_tokens": 10, "output_tokens": 1}}}
    made, _ = fed("messages", start)
    assert (made.usage, made.complete) == (None, False)
    made.feed(b'data: {"type": "message_delta", "usage": {"output_tokens": 7, "input_tokens": null}}\n\n')
    assert made.usage == Usage(input_tokens=10, output_tokens=7)
    made.feed(b'data: {"type": "message_delta", "usage": 3}\n\n')
    assert (made.usage, made.complete) == (Usage(input_tokens=10, output_tokens=7), False)
    complete = []
    for kind in ("ping", "message_stop", "ping"):
        made.feed(b"data: " + json.dumps({"type": kind}).encode())
        complete.append(made.complete)
    assert complete == [False, True, True]
    broken, _ = fed(
        "messages", {"type": "message_start", "message": []}, {"type": "message_delta", "usage": {"output_tokens": 7}}
    )
    assert broken.usage is None


def test_an_event_over_several_lines_is_put_together() -> None:
    made, _ = fed("chat", b'event: x\r\ndata: {"usage":\r\ndata: ' + json.dumps(CHAT).encode() + b"}\r\n\r\n")
    assert made.usage == WHOLE
    assert fed("chat", b"data: {broken\n\n", b": comment\n\n", b"data: [1]\n\n")[1] == [False] * 3
