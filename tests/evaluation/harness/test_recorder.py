"""The record of calls: whole, redacted, no longer than what was new, and readable after a crash."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.harness import recorder as module
from evaluation.harness.recorder import CallRecorder, read_calls
from pipeline.llm import register_secret


def record(path: Path, *exchanges: tuple[Any, bytes, bool]) -> list[dict[str, Any]]:
    """The lines of a record with these (request, response, stream)."""
    made = CallRecorder(path)
    for request, response, stream in exchanges:
        made.write({"status": 200}, request, response, stream=stream)
    made.close()
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "calls.jsonl"


@pytest.mark.parametrize(
    ("response", "stream", "kept"),
    [
        (b'{"a": "\xc3\xbc"}', False, {"a": "ü"}), (b"[1]", False, [1]), (b"no json", False, {"text": "no json"}),
        (b"", False, {"text": ""}), (b"\xff", False, {"text": "\ufffd"}), (b"data: 1\n\n", True, {"events": "data: 1\n\n"}),
        (b'{"a": 1}', True, {"events": '{"a": 1}'}),
    ],
)  # fmt: skip
def test_an_answer_is_kept_as_what_it_is(path: Path, response: bytes, stream: bool, kept: Any) -> None:
    [line] = record(path, ({"x": "ü"}, response, stream))
    assert line == {"call": 0, "status": 200, "request": {"x": "ü"}, "response": kept}
    assert "ü" in path.read_text(encoding="utf-8"), "readable by people"


def test_a_record_replaces_the_one_before_and_is_there_at_once(path: Path) -> None:
    record(path, (None, b"1", False), (None, b"2", False))
    made = CallRecorder(path)
    made.write({}, None, b"3", stream=False)
    assert [call["response"] for call in read_calls(path)] == [3], "before it is closed: a crash loses nothing"
    made.close()


@pytest.mark.parametrize(("over", "cut"), [(0, False), (1, True)])
def test_an_answer_is_kept_up_to_a_bound(path: Path, monkeypatch: pytest.MonkeyPatch, over: int, cut: bool) -> None:
    monkeypatch.setattr(module, "_MOST_RESPONSE", 5 - over)
    [line] = record(path, (None, b"abcde", False))
    assert line["response"] == {"text": "abcd" if cut else "abcde"}
    assert line.get("response_cut_at") == (4 if cut else None)


def test_no_key_of_ours_is_in_requests_or_answers(path: Path) -> None:
    register_secret("RECORDER_KEY", "CANARY-RECORDER-KEY-1")
    record(path, ({"messages": ["CANARY-RECORDER-KEY-1"]}, b'"CANARY-RECORDER-KEY-1"', False))
    assert "CANARY" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["messages", "input"])
def test_a_conversation_is_written_once(path: Path, name: str) -> None:
    first, second, third = ["a"], ["a", "b", "c"], ["a", "b", "x"]
    lines = record(path, *(({name: words, "n": 1}, b"1", False) for words in (first, second, third, second)))
    assert [line["request"] for line in lines] == [
        {name: ["a"], "n": 1},
        {name: ["b", "c"], "n": 1, "same_as": 0, "same_messages": 1},
        {name: ["x"], "n": 1, "same_as": 1, "same_messages": 2},
        {name: [], "n": 1, "same_as": 1, "same_messages": 3},
    ]
    assert [call["request"][name] for call in read_calls(path)] == [first, second, third, second]


def test_conversations_that_only_share_a_later_part_are_written_whole(path: Path) -> None:
    lines = record(path, ({"messages": ["a", "b"]}, b"1", False), ({"messages": ["x", "b"]}, b"1", False))
    assert lines[1]["request"] == {"messages": ["x", "b"]}


@pytest.mark.parametrize(
    "request_", [None, 3, "text", [1], {}, {"messages": "text"}, {"prompt": ["a"]}, {"messages": []}]
)
def test_what_is_no_conversation_is_written_as_it_is(path: Path, request_: Any) -> None:
    lines = record(path, (request_, b"1", False), (request_, b"1", False))
    assert [line["request"] for line in lines] == [request_, request_]
    assert [call["request"] for call in read_calls(path)] == [request_, request_]


def test_a_line_that_a_crash_cut_is_left_out(path: Path) -> None:
    record(path, (None, b"1", False), (None, b"2", False))
    path.write_text(path.read_text(encoding="utf-8")[:-4], encoding="utf-8")
    assert [call["response"] for call in read_calls(path)] == [1]
