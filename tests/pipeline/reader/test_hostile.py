"""What a model may answer that nobody should: over real HTTP, none of it crashes, hangs or changes the result silently."""

import json

import pytest

from pipeline.llm import BudgetError, BudgetLimits
from pipeline.locator import build_index, locate
from pipeline.progress import SilentReporter
from pipeline.reader.choose import choose
from pipeline.reader.loop import LoopLimits
from pipeline.reader.search import PatternSearch, SearchTime
from tests.doubles.protocol_server import turns
from tests.llm_fixtures import connect, no_ambient_model, protocol_server  # noqa: F401 - fixtures
from tests.pipeline.locator.repositories import PROJECT, make
from tests.pipeline.reader.test_choose import SPIRALS, TRAIN, ask, changed, index, submit  # noqa: F401

CALL = turns.tool_call


def raw(name, arguments):
    """A call whose arguments are this text."""
    return turns.tool_calls(CALL(name).evolve(arguments=arguments))


def test_arguments_of_wrong_types_and_sizes_are_answered_in_few_words(ask):  # noqa: F811
    (found,), talk, _ = ask(
        turns.tool_calls(
            CALL("read_file", path=3),
            CALL("grep", pattern=None),
            CALL("read_file", parts=[{"path": "x" * 100_000}]),
            CALL("read_file", parts=[{"path": "train.py"}] * 5_000),
            CALL("list_files", pattern="*a" * 50_000),
            CALL("grep", pattern="x", **{"k" * 50_000: 1}),
            CALL("readme", sections=["z" * 100_000]),
            CALL("z" * 64),
            CALL("references", paths=["../../etc/passwd"]),
        ),
        submit(TRAIN),
    )
    assert found.accepted
    assert max(map(len, talk.steps[0].results)) < 250
    assert "not a file of the repository" in talk.steps[0].results[-1]


def test_text_that_no_encoding_holds_and_numbers_that_json_does_not_know_are_survived(ask):  # noqa: F811
    (found,), talk, _ = ask(
        turns.text("a lone \ud800 surrogate"),
        raw("read_file", '{"parts": [{"path": "\\ud800.py"}]}'),
        raw("list_files", '{"start": NaN}'),
        raw("list_files", '{"start": 1e999}'),
        raw("list_files", '{"start": ' + "9" * 300 + "}"),
        submit(TRAIN),
        limits=LoopLimits(refusals=5),
    )
    assert found.accepted
    assert json.loads(talk.model_dump_json())
    assert "no valid JSON" in talk.steps[2].results[0]


def test_thousands_of_calls_in_a_turn_are_answered_and_few_are_run(ask):  # noqa: F811
    wrong = changed(TRAIN, ["files", 0, "path"], "main.py")
    (found,), talk, server = ask(
        turns.tool_calls(*[CALL("rank", query=f"spirals {number}") for number in range(1000)]),
        turns.tool_calls(*[CALL("submit", tasks=[wrong]) for _ in range(1000)]),
        turns.tool_calls(CALL("submit", tasks=[wrong] * 1000)),
        submit(wrong),
    )
    assert not found.accepted
    assert len(server.requests) == 4
    assert sum(not result.startswith("not run") for result in talk.steps[0].results) == 16
    assert sum(result.startswith("The answer does not hold") for result in talk.steps[1].results) == 1
    assert len(talk.steps[2].results[0]) < 300


def test_commands_of_megabytes_do_not_reach_the_model(protocol_server, connect, tmp_path):  # noqa: F811
    long = "python train.py --dataset spirals " + "--seeds 1 " * 50_000
    index = build_index(make(tmp_path / "long", PROJECT | {"run.sh": f"{long}\n", "README.md": f"# Spirals\n\n    {long}\n"}))  # noqa: F811 # fmt: skip
    ranking = locate(index, SPIRALS)
    assert any(len(" ".join(step.argv)) > 100_000 for step in ranking.chain.usage)
    look = turns.tool_calls(
        CALL("references", paths=["train.py"]), CALL("read_file", parts=[{"path": "run.sh"}]), CALL("readme")
    )
    server = protocol_server(look, turns.refusal())
    choose(
        index, [SPIRALS], [ranking], client=connect(server), document=None, reporter=SilentReporter()
    )  # fmt: skip
    assert max(len(json.dumps(request.body)) for request in server.requests) < 60_000


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(?:a{99999}){99999}", "repeat more than"),
        ("(a?){3000}a{3000}", "repeat more than"),
        ("(?R)", "calls a part of itself"),
        ("(?P<x>a)(?&x)", "calls a part of itself"),
        ("[[a--b]&&c", "bad character range"),
    ],
)
def test_patterns_that_need_memory_without_end_are_refused(pattern, words):
    with pytest.raises(ValueError, match=words):
        PatternSearch(pattern, ignore_case=True, together=SearchTime(1.0), seconds=1.0)


def test_slow_patterns_are_given_up_after_a_few_files_and_all_searches_share_a_time(monkeypatch):
    monkeypatch.setattr("pipeline.reader.search._FILE_SECONDS", 0.01)
    slow = PatternSearch("(a|a|aa)+$", ignore_case=True, together=SearchTime(100.0), seconds=10.0)
    files = 0
    while not slow.ended:
        files += 1
        assert slow.lines(f"{files}.txt", ["a" * 3000 + "!"]) == []
    assert files == 5
    assert "too slow for 1.txt, 2.txt, 3.txt and 2 more" in slow.told(300)
    assert "ended after 5 of 300 files" in slow.told(300)
    spent = SearchTime(0.0)
    assert PatternSearch("a", ignore_case=True, together=spent, seconds=10.0).ended


def test_what_a_cut_conversation_did_is_kept(index, protocol_server, connect):  # noqa: F811
    look = [turns.tool_calls(CALL("rank", query=word)) for word in ("one", "two")]
    kept = []
    with pytest.raises(BudgetError):
        choose(
            index, [SPIRALS], [locate(index, SPIRALS)], client=connect(protocol_server(*look)), document=None,
            reporter=SilentReporter(), limits=LoopLimits(budget=BudgetLimits(calls=2)), keep=lambda talk, _: kept.append(talk),
        )  # fmt: skip
    (talk,) = kept
    assert [step.calls[0][0] for step in talk.steps] == ["rank", "rank"]
    assert talk.value is None
    assert "calls are used" in talk.reason
