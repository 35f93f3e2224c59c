"""Readers on logs that the agents really wrote (against the protocol server), on cut ones, and on junk."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from evaluation.agents.readers.events import Clock, JsonLines, clean, parse_arguments
from evaluation.agents.registry import get_agent
from evaluation.harness.events import merge_events
from evaluation.trajectory import CommandRun, End, Event, FileChange, ModelCall, ModelTurn, Note, ToolResult

LOGS = Path(__file__).parent / "logs"
EVENT: TypeAdapter[Event] = TypeAdapter(Event)
MAIN = {
    "iterative": "outbox/events.jsonl",
    "openhands": "outbox/events.jsonl",
    "mini-swe-agent": "outbox/trajectory.json",
    "claude-code": "stdout",
    "codex": "stdout",
    "aider": "outbox/chat.md",
}
"""Agent -> the file that its reader reads."""


def read(agent: str, folder: Path) -> list[Event]:
    events = list(get_agent(agent).read_events(folder / "outbox", folder / "stdout", folder / "stderr"))
    for event in events:  # what a reader makes can be stored and read again
        assert EVENT.validate_json(event.model_dump_json()) == event
    assert [event.seq for event in events] == list(range(len(events)))
    return events


def recorded(agent: str, kind: str = "") -> list[Event]:
    return read(agent, LOGS / (agent.replace("-", "_") + kind))


def of(kind, events):
    return [event for event in events if isinstance(event, kind)]


@pytest.mark.parametrize("agent", sorted(MAIN))
def test_a_finished_run_says_what_was_done(agent):
    events = recorded(agent)
    assert isinstance(events[-1], End)
    assert events[-1].reason == "finished"
    ran = of(CommandRun, events)
    assert any("y = 42" in run.output and run.exit_code is not None for run in ran), "the number has an origin"
    assert of(ModelTurn, events)
    assert not [note for note in of(Note, events) if "unknown" in note.text or "left out" in note.text]


@pytest.mark.parametrize(
    ("agent", "code"),
    [("iterative", 3), ("openhands", 1), ("mini-swe-agent", 1), ("claude-code", 4), ("codex", 3), ("aider", 3)],
)
def test_the_exit_code_of_a_failing_command_is_known(agent, code):
    codes = [run.exit_code for run in of(CommandRun, recorded(agent))]
    assert code in codes
    assert 0 in codes


@pytest.mark.parametrize("agent", ["iterative", "openhands", "claude-code", "aider"])
def test_changed_files_are_told(agent):
    changes = of(FileChange, recorded(agent))
    assert {Path(change.path).name: change.action for change in changes if change.action == "created"}.keys() >= {
        "run.py", "response.json", "reproduce.sh"
    }  # fmt: skip
    assert any(change.action == "edited" for change in changes)


@pytest.mark.parametrize("agent", ["iterative", "openhands", "mini-swe-agent", "claude-code"])
def test_results_belong_to_calls_that_were_made(agent):
    events = recorded(agent)
    asked = {use.id for turn in of(ModelTurn, events) for use in turn.tool_uses}
    answered = {event.call for event in events if isinstance(event, CommandRun | ToolResult)}
    assert answered
    assert answered <= asked


def test_several_tool_calls_of_one_answer_are_one_turn():
    for agent in ("openhands", "claude-code"):
        counts = [len(turn.tool_uses) for turn in of(ModelTurn, recorded(agent))]
        assert 2 in counts, "the agent logs each call on its own"


def test_terminal_escapes_of_openhands_are_not_output():
    assert not any("\x1b" in run.output for run in of(CommandRun, recorded("openhands")))


def test_the_shell_that_codex_puts_around_a_command_is_taken_off():
    assert of(CommandRun, recorded("codex"))[0].command.startswith("ls -la")


@pytest.mark.parametrize("agent", ["iterative", "openhands", "claude-code", "codex"])
def test_a_run_that_the_gateway_ended_says_so(agent):
    end = recorded(agent, "_limit")[-1]
    assert isinstance(end, End)
    assert end.reason == "limit"
    assert "budget exhausted" in end.detail


@pytest.mark.parametrize("agent", ["mini-swe-agent", "aider"])
def test_a_dead_endpoint_is_no_finished_run(agent):
    end = recorded(agent, "_dead")[-1]
    assert isinstance(end, End)
    assert end.reason == "agent_error"
    assert "Connection error" in end.detail or "servers are down" in end.detail


@pytest.mark.parametrize("agent", sorted(MAIN))
@pytest.mark.parametrize("said", ["", "error while loading shared libraries: libx.so"])
def test_a_missing_log_is_a_note_and_claims_no_end(agent, said, tmp_path):
    (tmp_path / "outbox").mkdir()
    (tmp_path / "stderr").write_text(said)
    [event] = read(agent, tmp_path)
    assert isinstance(event, Note)
    assert "left no log" in event.text
    assert event.text.endswith(said or "left no log")


@pytest.mark.parametrize("agent", sorted(MAIN))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0, 1))
def test_a_log_that_breaks_off_gives_what_came_before(agent, share, tmp_path):
    source = LOGS / agent.replace("-", "_")
    data = (source / MAIN[agent]).read_bytes()
    target = tmp_path / MAIN[agent]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data[: int(len(data) * share)])
    if (source / "outbox" / "runs").is_dir():
        shutil.copytree(source / "outbox" / "runs", tmp_path / "outbox" / "runs", dirs_exist_ok=True)
    whole = recorded(agent)
    events = read(agent, tmp_path)
    # what is read is the beginning of the whole; a notice, and what was under way, may come after it
    same = 0
    while same < min(len(events), len(whole)) and events[same].kind == whole[same].kind:
        same += 1
    assert len(events) - same <= 4


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["\ud800", "tool_use", "1e999"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ["type", "kind", "t", "timestamp", "message", "content", "item", "id", "observation", "action", "tool_calls",
     "tool_call", "text", "usage", "role", "extra", "command", "exit_code", "changes", "name", "arguments", "error",
     "result", "seconds", "llm_message", "thought", "path", "uuid", "model", "reason", "call", "prompt_tokens",
     "completion_tokens", "input_tokens", "response", "choices", "output"]
)  # fmt: skip
KINDS = st.sampled_from(
    ["utterance", "model", "tool", "end", "limit", "retry", "ActionEvent", "ObservationEvent", "MessageEvent",
     "AgentErrorEvent", "ConversationErrorEvent", "assistant", "user", "result", "item.completed", "item.started",
     "turn.failed", "command_execution", "file_change", "tool_result", "tool_use", "agent_message", "reasoning",
     "system", "exit", "TerminalObservation", "FileEditorObservation"]
)  # fmt: skip
RECORDS = st.dictionaries(NAMES, VALUES | KINDS | st.dictionaries(NAMES, VALUES | KINDS, max_size=4), max_size=7)


@pytest.mark.parametrize("agent", sorted(set(MAIN) - {"aider", "mini-swe-agent"}))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=st.lists(RECORDS, max_size=5))
def test_no_record_breaks_a_reader(agent, records, tmp_path):
    target = tmp_path / MAIN[agent]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("".join(json.dumps(record) + "\n" for record in records))
    (tmp_path / "outbox").mkdir(exist_ok=True)
    (tmp_path / "outbox" / "result.json").write_text(json.dumps(records[0] if records else {}))
    read(agent, tmp_path)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(messages=st.lists(RECORDS, max_size=4))
def test_no_message_breaks_the_reader_of_mini_swe_agent(messages, tmp_path):
    (tmp_path / "outbox").mkdir(exist_ok=True)
    (tmp_path / "outbox" / "trajectory.json").write_text(json.dumps({"messages": messages}))
    read("mini-swe-agent", tmp_path)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text())
@pytest.mark.parametrize("agent", sorted(MAIN))
def test_no_text_breaks_a_reader(agent, text, tmp_path):
    target = tmp_path / MAIN[agent]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    read(agent, tmp_path)


def test_unreadable_lines_and_unknown_kinds_are_told(tmp_path):
    (tmp_path / "outbox").mkdir()
    lines = ['{"type": "model", "text": "one"}', "garbage", '{"type": "novelty"}', '{"type": "model", "text": "tw']
    (tmp_path / "outbox" / "events.jsonl").write_text("\n".join(lines))
    events = read("iterative", tmp_path)
    assert [event.text for event in of(ModelTurn, events)] == ["one"]
    notes = " ".join(note.text for note in of(Note, events))
    assert "unknown kind of event: novelty" in notes
    assert "2 lines of events.jsonl cannot be read and were left out: 2, 4" in notes


def test_deep_nesting_is_a_broken_line(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text("[" * 100_000 + "\n" + '{"a": 1}\n')
    lines = JsonLines(path)
    assert list(lines) == [{"a": 1}]
    assert lines.unreadable == [1]


def test_output_is_bounded_and_says_so(tmp_path):
    (tmp_path / "outbox").mkdir()
    record = {"type": "tool", "name": "bash", "command": "yes", "output": "y" * 1_000_000, "exit_code": 0}
    (tmp_path / "outbox" / "events.jsonl").write_text(json.dumps(record) + "\n")
    run = of(CommandRun, read("iterative", tmp_path))[0]
    assert run.truncated
    assert len(run.output) < 300_000
    assert "characters left out" in run.output


@given(st.text(alphabet=st.characters()))
def test_clean_text_is_always_storable(text):
    assert clean(text).encode("utf-8").decode("utf-8") == clean(text)


@given(VALUES)
def test_arguments_are_always_an_object(value):
    assert isinstance(parse_arguments(value), dict)
    assert isinstance(parse_arguments(json.dumps(value)), dict)


def test_a_clock_starts_with_the_first_time_of_a_log():
    clock = Clock()
    assert clock.at("2026-01-01T00:00:05.500") == 0.0
    assert clock.at("2026-01-01T00:00:07.000Z") == 1.5
    assert clock.at("not a time") == 0.0
    assert clock.at("2026-01-01T00:00:01") == 0.0, "a clock that goes back"


@pytest.mark.parametrize("agent", ["iterative", "openhands", "mini-swe-agent", "claude-code", "codex", "aider"])
@given(start=st.floats(0, 50), gap=st.floats(0, 5))
@settings(max_examples=30, deadline=None)
def test_the_first_turn_comes_after_the_call_that_brought_it(agent, start, gap):
    """An agent's clock starts with its first event: OpenHands needed 6 s, on a busy machine 118 s, to get there."""
    calls = [
        ModelCall(seq=0, at=start + number * 60, endpoint="/v1", status=200, duration_s=gap) for number in range(3)
    ]
    told = [event for event in recorded(agent) if not isinstance(event, End)]
    merged = merge_events(calls, told)
    assert len(merged) == len(calls) + len(told)
    kinds = [event.kind for event in merged]
    assert kinds.index("model_call") < kinds.index("model_turn")
    assert [event.kind for event in merged if not isinstance(event, ModelCall)] == [event.kind for event in told]
