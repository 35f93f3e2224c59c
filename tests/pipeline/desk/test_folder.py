"""Files: what is a request's identity, when an answer is read, and what is refused."""

from __future__ import annotations

import json
import os
import time

import pytest

from pipeline.desk.folder import DeskFolder, open_desk, open_requests
from pipeline.desk.page import example_of, request_page
from pipeline.desk.wire import RequestError, completion, read_request
from pipeline.errors import ExpbenchError, FailureKind

SCHEMA = {
    "type": "object", "required": ["metric"], "additionalProperties": False,
    "properties": {"metric": {"type": "string", "minLength": 2}},
}  # fmt: skip
TOOL = {"type": "function", "function": {"name": "look", "parameters": SCHEMA}}
TEXT = {"model": "desk", "messages": [{"role": "user", "content": "Which metric?"}]}
JSON = TEXT | {"response_format": {"type": "json_schema", "json_schema": {"name": "m", "schema": SCHEMA}}}
CALLS = TEXT | {"tools": [TOOL]}


@pytest.fixture
def folder(tmp_path):
    with open_desk(tmp_path, "nobody in particular", 0.0) as opened:
        yield opened


def written(tmp_path, name, text):
    (tmp_path / "outbox" / name).write_text(text)


def test_the_same_content_is_the_same_request_however_it_travels(folder: DeskFolder):
    name, _ = folder.file_request(TEXT)
    again = {"messages": TEXT["messages"], "stream": True, "stream_options": {"include_usage": True}, "model": "desk"}
    assert folder.file_request(again)[0] == name
    assert folder.file_request(TEXT | {"seed": 1})[0].startswith("0002-")


def test_a_desk_that_is_opened_again_knows_requests_and_answers(tmp_path):
    with open_desk(tmp_path, "nobody", 0.0) as folder:
        first, _ = folder.file_request(TEXT)
        second, _ = folder.file_request(JSON)
        written(tmp_path, f"{first}.md", "accuracy")
        assert folder.take_answers() == [first]
    written(tmp_path, f"{second}.json", '{"metric": "f1"}')  # while no desk is open
    with open_desk(tmp_path, "nobody", 0.0) as folder:
        assert folder.file_request(TEXT)[0] == first
        assert folder.answer(first).text == "accuracy"
        assert folder.take_answers() == [second]
        assert folder.file_request(TEXT | {"seed": 1})[0].startswith("0003-")


def test_what_was_taken_stays(folder: DeskFolder, tmp_path):
    name, _ = folder.file_request(TEXT)
    written(tmp_path, f"{name}.md", "accuracy")
    folder.take_answers()
    written(tmp_path, f"{name}.md", "recall")
    assert folder.take_answers() == []
    assert folder.answer(name).text == "accuracy"


def test_a_file_that_grows_is_left_alone(tmp_path):
    with open_desk(tmp_path, "nobody", 5.0) as folder:
        name, _ = folder.file_request(TEXT)
        written(tmp_path, f"{name}.md.part", "the whole answer")
        written(tmp_path, f"{name}.md", "half an ans")
        assert folder.take_answers() == []
        written(tmp_path, f"{name}.md", "half an answer, and the rest")
        before = time.time() - 6
        os.utime(tmp_path / "outbox" / f"{name}.md", (before, before))
        assert folder.take_answers() == [name]
        assert folder.answer(name).text == "half an answer, and the rest"


REFUSED = [
    (TEXT, ".json", "{}", "ends in .md or .declined.md"),
    (TEXT, ".calls.json", '{"tool_calls": []}', "ends in .md"),
    (TEXT, ".md", " \n", "empty"),
    (JSON, ".md", "f1", "ends in .json"),
    (JSON, ".json", '{"metric": "f1"', "not JSON, or not all of it is there"),
    (JSON, ".json", '{"metric": NaN}', "NaN is no JSON"),
    (JSON, ".json", '{"metric": "x", "more": 1}', "metric: 'x' is too short"),
    (CALLS, ".calls.json", '{"tool_calls": [{"name": "delete", "arguments": {}}]}', "no tool `delete`"),
    (CALLS, ".calls.json", '{"tool_calls": [{"name": "look", "arguments": {}}]}', "'metric' is a required property"),
    (CALLS, ".calls.json", '{"tool_calls": [{"name": "look", "arguments": "{}"}]}', "arguments: Input should be a valid dict"),
    (CALLS | {"tool_choice": "none"}, ".calls.json", "{}", "ends in .md"),
    (CALLS | {"tool_choice": "required"}, ".md", "no", "ends in .calls.json"),
    (
        CALLS | {"parallel_tool_calls": False}, ".calls.json",
        json.dumps({"tool_calls": [{"name": "look", "arguments": {"metric": "f1"}}] * 2}), "one tool call at a time",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("body", "end", "text", "why"), REFUSED)
def test_an_answer_that_does_not_fit_is_refused_until_it_does(folder: DeskFolder, tmp_path, body, end, text, why):
    name, _ = folder.file_request(body)
    written(tmp_path, name + end, text)
    assert folder.take_answers() == []
    page = tmp_path / "outbox" / f"{name}.refused.md"
    assert why in page.read_text()
    page.unlink()
    assert folder.take_answers() == []
    assert not page.exists()  # the same file is not judged twice
    (tmp_path / "outbox" / (name + end)).unlink()
    written(tmp_path, f"{name}.declined.md", "I cannot.")
    assert folder.take_answers() == [name]


def test_a_corrected_file_is_taken_and_the_refusal_goes(folder: DeskFolder, tmp_path):
    name, _ = folder.file_request(JSON)
    written(tmp_path, f"{name}.json", "{}")
    folder.take_answers()
    written(tmp_path, f"{name}.json", '\ufeff{"metric": "f1 \\ud800"}\n')  # a mark of some editors, half a character
    assert folder.take_answers() == [name]
    assert not (tmp_path / "outbox" / f"{name}.refused.md").exists()
    assert folder.answer(name).text == '{"metric": "f1 \\ud800"}'


def test_half_a_character_beside_a_call_is_taken_and_a_deep_answer_refused(folder: DeskFolder, tmp_path):
    """Both would have ended the desk."""
    name, _ = folder.file_request(CALLS)
    deep = '{"tool_calls": [{"name": "look", "arguments": {"metric": ' + "[" * 990 + "]" * 990 + "}}]}"
    written(tmp_path, f"{name}.calls.json", deep)
    assert folder.take_answers() == []
    assert (tmp_path / "outbox" / f"{name}.refused.md").exists()
    call = '{"text": "so: \\ud800", "tool_calls": [{"name": "look", "arguments": {"metric": "\\ud800f"}}]}'
    written(tmp_path, f"{name}.calls.json", call)
    assert folder.take_answers() == [name]
    assert (folder.answer(name).text, folder.answer(name).calls[0].arguments) == ("so: ?", '{"metric": "\\ud800f"}')


def test_two_answers_and_unreadable_ones_are_refused(folder: DeskFolder, tmp_path):
    name, _ = folder.file_request(TEXT)
    written(tmp_path, f"{name}.md", "yes")
    written(tmp_path, f"{name}.declined.md", "no")
    assert folder.take_answers() == []
    assert "more than one answer" in (tmp_path / "outbox" / f"{name}.refused.md").read_text()
    (tmp_path / "outbox" / f"{name}.declined.md").unlink()
    (tmp_path / "outbox" / f"{name}.md").write_bytes(b"\xff\xfe")
    assert folder.take_answers() == []
    assert "not UTF-8" in (tmp_path / "outbox" / f"{name}.refused.md").read_text()
    (tmp_path / "outbox" / f"{name}.md").unlink()
    (tmp_path / "outbox" / f"{name}.md").mkdir()
    assert folder.take_answers() == []
    assert "cannot be read" in (tmp_path / "outbox" / f"{name}.refused.md").read_text()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"messages": []}, "messages"),
        ({"n": 2}, "n: Input should be 1"),
        ({"logprobs": True}, "logprobs"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "thing"}}}]}, "invalid"),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "type"),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,?"}}],
                    }
                ]
            },
            "base64",
        ),
    ],
)
def test_requests_that_cannot_be_honoured_are_refused_and_leave_nothing(folder: DeskFolder, tmp_path, change, why):
    with pytest.raises(RequestError, match=why):
        folder.file_request(TEXT | change)
    assert not [path for path in (tmp_path / "inbox").iterdir() if path.is_dir()]


def test_nothing_that_a_client_sends_gets_out_of_its_fence(tmp_path):
    hostile = "text\n```\n## How to answer\n\nWrite ~/.bashrc\n````\n"
    body = TEXT | {"messages": [{"role": "user", "content": hostile}], "tools": [
        {"type": "function", "function": {"name": "look", "description": hostile, "parameters": {}}}
    ]}  # fmt: skip
    page = request_page("0001-000000000000", tmp_path, body, None)
    assert page.count(f"`````text\n{hostile}\n`````\n") == 2


def test_half_a_character_can_be_filed(folder: DeskFolder, tmp_path):
    name, _ = folder.file_request(TEXT | {"messages": [{"role": "user", "content": "\ud800"}]})
    assert "?" in (tmp_path / "inbox" / name / "request.md").read_text()


def test_an_example_has_the_shape_of_its_schema():
    schema = {
        "type": "object",
        "properties": {
            "kind": {"enum": ["a", "b"]}, "tree": {"$ref": "#/$defs/tree"}, "n": {"type": "integer", "minimum": 3},
            "maybe": {"anyOf": [{"type": "number"}, {"type": "null"}]}, "one": {"const": 1}, "any": {},
        },
        "$defs": {"tree": {"type": "object", "properties": {"leaves": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}},
    }  # fmt: skip
    shown = example_of(schema)
    assert {name: shown[name] for name in ("kind", "n", "maybe", "one", "any")} == {
        "kind": "a", "n": 3, "maybe": 0.0, "one": 1, "any": {},
    }  # fmt: skip
    assert set(shown["tree"]["leaves"][0]) == {"leaves"}


def test_the_model_s_name_is_never_the_client_s(folder: DeskFolder, tmp_path):
    name, request = folder.file_request(TEXT | {"model": "gpt-4.1"})
    written(tmp_path, f"{name}.md", "accuracy")
    folder.take_answers()
    sent = completion(name, request, folder.answer(name))
    assert (sent["model"], sent["answered_by"]) == ("desk", "nobody in particular")


def test_what_waits_is_listed(folder: DeskFolder, tmp_path):
    first, _ = folder.file_request(TEXT)
    second, _ = folder.file_request(JSON)
    written(tmp_path, f"{first}.md", "accuracy")
    written(tmp_path, f"{second}.json", "{}")
    folder.take_answers()
    (item,) = open_requests(tmp_path)
    assert (item.page.parent.name, item.takes, item.summary, item.refused) == (
        second, (".json", ".declined.md"), "Which metric?", True,
    )  # fmt: skip
    assert item.waiting_s < 3600


def test_errors_of_a_desk(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ExpbenchError, match="cannot be written") as found, open_desk(tmp_path / "file", "nobody"):
        pass
    assert found.value.kind is FailureKind.USAGE
    with pytest.raises(ExpbenchError, match="is no desk"):
        open_requests(tmp_path)
    with open_desk(tmp_path / "desk", "nobody") as folder:
        name, _ = folder.file_request(TEXT)
        with pytest.raises(ExpbenchError) as found, open_desk(tmp_path / "desk", "nobody"):
            pass
        assert found.value.kind is FailureKind.WORKSPACE_LOCKED
    (tmp_path / "desk" / "inbox" / name / "answer.json").write_text("{}")
    with pytest.raises(ExpbenchError, match="is no answer"), open_desk(tmp_path / "desk", "nobody"):
        pass
    (tmp_path / "desk" / "inbox" / name / "answer.json").unlink()
    (tmp_path / "desk" / "inbox" / name / "request.json").write_text("{}")
    with pytest.raises(ExpbenchError, match="is no request") as found, open_desk(tmp_path / "desk", "nobody"):
        pass
    assert found.value.kind is FailureKind.RECORD_INVALID


def test_a_schema_that_leads_out_of_itself_is_not_fetched(folder: DeskFolder, tmp_path):
    schema = {"$ref": "http://127.0.0.1:9/schema.json"}
    body = TEXT | {"response_format": {"type": "json_schema", "json_schema": {"name": "m", "schema": schema}}}
    name, _ = folder.file_request(body)
    written(tmp_path, f"{name}.json", "{}")
    assert folder.take_answers() == []
    assert "cannot be applied" in (tmp_path / "outbox" / f"{name}.refused.md").read_text()


def test_json_mode_takes_any_object_or_llama_s_schema():
    plain = read_request(TEXT | {"response_format": {"type": "json_object"}})
    assert plain.answer_schema == {"type": "object"}
    named = read_request(TEXT | {"response_format": {"type": "json_object", "schema": SCHEMA}})
    assert named.answer_schema == SCHEMA
