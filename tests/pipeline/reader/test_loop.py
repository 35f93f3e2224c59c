"""The reader's conversation over real HTTP: what is answered, sent back, bounded, and how it ends."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import Field

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm import TOOL_NOTICE, BudgetError, BudgetLimits, ModelError, PromptRef, system, user
from pipeline.progress import SilentReporter
from pipeline.reader.loop import Conversation, LoopLimits, ReaderTool, converse
from pipeline.schema import Record
from tests.doubles.protocol_server import turns
from tests.llm_fixtures import connect, no_ambient_model, protocol_server  # noqa: F401 - fixtures

CALL = turns.tool_call
PROMPT = PromptRef(name="test", version="1", digest="0" * 64)


class Sum(Record):
    """An answer."""

    total: int
    why: str = ""


class Ask(Record):
    """Ask for a page."""

    page: int = Field(ge=1)


def read(wanted: Ask) -> str:
    """A page."""
    return f"page {wanted.page}: " + "x" * 100 * wanted.page


def is_four(value: Sum) -> list[str]:
    return [] if value.total == 4 else [f"{value.total} is not the sum"]


def submit(**values: Any) -> Any:
    return turns.tool_calls(CALL("submit", **values))


@pytest.fixture
def talk(protocol_server, connect):  # noqa: F811
    """`talk(*turns, limits=..., cut=..., **options)` -> (conversation, server)."""

    def talked(*script, limits=LoopLimits(), cut=None, **options):  # noqa: B008
        server = protocol_server(*script)
        found = converse(
            connect(server, **options), [system(TOOL_NOTICE), user("What is the sum?")],
            tools=[ReaderTool("read", "Read a page.", Ask, read)], answer=Sum, check=is_four, limits=limits,
            prompt=PROMPT, reporter=SilentReporter(), stage="test", cut=cut,
        )  # fmt: skip
        return found, server

    return talked


def results(server):
    return [m["content"] for m in server.requests[-1].body["messages"] if m["role"] == "tool"]


def offered(request):
    return [tool["function"]["name"] for tool in request.body["tools"]]


def test_many_calls_are_answered_at_once_and_the_answer_ends_it(talk):
    found, server = talk(turns.tool_calls(CALL("read", page=1), CALL("read", page=2)), submit(total=4))
    assert found.value == Sum(total=4)
    assert found.reason == ""
    assert [len(step.calls) for step in found.steps] == [2, 1]
    first, second = results(server)
    assert first.startswith('<untrusted name="read" id="')
    assert "page 2: " in second
    assert offered(server.requests[0]) == ["read", "submit"]
    assert type(found).model_validate_json(found.model_dump_json()) == found
    assert Conversation[Sum].model_validate_json(found.model_dump_json()).value == Sum(total=4)


def test_what_does_not_hold_goes_back_with_its_reasons_at_most_twice(talk):
    found, server = talk(submit(total=1), submit(total="many"), submit(total=3))
    assert found.value is None
    assert "3 is not the sum" in found.reason
    assert "1 is not the sum" in found.steps[0].results[0]
    assert "does not fit the schema: total" in found.steps[1].results[0]
    assert len(server.requests) == 3


def test_the_last_turn_only_takes_the_answer_and_what_is_refused_there_can_still_be_mended(talk):
    found, server = talk(
        turns.tool_calls(CALL("read", page=1)), turns.tool_calls(CALL("read", page=2)), submit(total=1),
        submit(total=4), limits=LoopLimits(turns=2),
    )  # fmt: skip
    assert [offered(request) for request in server.requests] == [["read", "submit"], *[["submit"]] * 3]
    assert "only `submit` is left" in found.steps[1].results[0]
    assert found.value == Sum(total=4)


def test_a_reader_that_never_submits_is_given_up(talk):
    found, server = talk(*[turns.tool_calls(CALL("read", page=n)) for n in range(1, 8)], limits=LoopLimits(turns=3))
    assert found.value is None
    assert "no answer was submitted" in found.reason
    assert len(server.requests) == 5


def test_text_without_a_call_is_sent_back(talk):
    found, server = talk(turns.text("four"), submit(total=4))
    assert found.value == Sum(total=4)
    assert server.requests[1].body["messages"][-1]["content"].startswith("Call tools")


def test_broken_calls_are_answered_and_do_not_end_it(talk):
    broken = turns.tool_calls(CALL("read").evolve(arguments='{"page": '))
    found, server = talk(
        broken, turns.tool_calls(CALL("read", page=0), CALL("write", page=1), CALL("read", page=1)), submit(total=4)
    )
    assert found.value == Sum(total=4)
    assert "no valid JSON" in found.steps[0].results[0]
    wrong, unknown, right = found.steps[1].results
    assert "does not fit read: page" in wrong
    assert "There is no tool 'write'. The tools are read, submit." in unknown
    assert right.startswith("page 1")
    assert len(server.requests) == 3


def test_results_have_one_allowance_and_nothing_is_sent_twice(talk):
    found, _ = talk(
        turns.tool_calls(CALL("read", page=9), CALL("read", page=9), CALL("read", page=3), CALL("read", page=1)),
        submit(total=4), limits=LoopLimits(result_characters=400, characters=600),
    )  # fmt: skip
    long, same, rest, none = found.steps[0].results
    assert "[508 more characters are not shown" in long
    assert "asked in turn 1" in same
    assert len(rest) < 300
    assert "allowance for reading is used up" in none
    assert found.value == Sum(total=4)


def test_hundreds_of_calls_and_answers_in_a_turn_are_bounded(talk):
    found, server = talk(
        turns.tool_calls(*[CALL("read", page=n) for n in range(1, 300)]),
        turns.tool_calls(*[CALL("submit", total=n) for n in range(100, 400)]),
        submit(total=4), limits=LoopLimits(calls_per_turn=5),
    )  # fmt: skip
    assert sum(not text.startswith("not run") for text in found.steps[0].results) == 5
    assert sum(not text.startswith("not looked at") for text in found.steps[1].results) == 1
    assert found.value == Sum(total=4)
    assert len(server.requests) == 3


def test_a_model_that_refuses_gives_no_value(talk):
    found, _ = talk(turns.refusal())
    assert found.value is None
    assert found.reason


def test_a_budget_that_ends_is_raised_and_the_way_is_told(talk):
    kept = []
    look = [turns.tool_calls(CALL("read", page=n)) for n in (1, 2, 3)]
    with pytest.raises(BudgetError):
        talk(*look, limits=LoopLimits(budget=BudgetLimits(calls=2)), cut=kept.append)
    (way,) = kept
    assert [step.turn for step in way.steps] == [1, 2]
    assert "calls are used" in way.reason
    assert json.loads(way.model_dump_json())


def test_an_endpoint_that_fails_is_raised(talk):
    with pytest.raises(ModelError) as caught:
        talk(turns.error(400, "no such model"))
    assert isinstance(caught.value, ExpbenchError)
    assert caught.value.kind is not FailureKind.REFUSAL
