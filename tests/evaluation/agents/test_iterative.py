"""The `iterative` program: really run as a process, against a server that speaks the endpoint's protocol."""

from __future__ import annotations

import ast
import json
import signal
import subprocess
import sys
import time
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.agents.iterative_program.config import load_config
from evaluation.agents.iterative_program.context import Conversation
from evaluation.agents.iterative_program.model import ContextTooLong, Endpoint, EndpointError, LimitReached
from evaluation.agents.iterative_program.processes import run
from evaluation.agents.iterative_program.tools import TOOLS, ToolBox
from evaluation.agents.registry import get_agent
from evaluation.trajectory import CommandRun, FileChange, LimitHit, ModelTurn, Note, Utterance
from pipeline.errors import ExpbenchError
from tests.doubles.protocol_server import ProtocolServer, Script, turns
from tests.evaluation.agents.support import PROGRAM, REPRODUCE, RESPONSE, context, run_iterative, start_of

T, TC, TOOL = turns.text, turns.tool_calls, turns.tool_call

WORK = (
    TC(TOOL("bash", command="ls -a"), text="I look around."),
    TC(TOOL("write_file", path="run.py", content=PROGRAM), TOOL("bash", command="python3 run.py")),
    TC(TOOL("write_file", path="response.json", content=RESPONSE)),
    TC(TOOL("write_file", path="reproduce.sh", content=REPRODUCE)),
)


def of(kind, events):
    return [event for event in events if isinstance(event, kind)]


# --- the whole program


def test_it_works_hands_in_and_says_so(tmp_path):
    with ProtocolServer(Script.of(*WORK, default=T("Done."))) as server:
        events = run_iterative(tmp_path, server.base_url, {"idle_turns": "2"})
        requests = server.requests
    assert (tmp_path / "code").read_text() == "0"
    assert (tmp_path / "stderr").read_bytes() == b""
    assert json.loads((tmp_path / "work" / "response.json").read_text())["conclusion"]["numbers"] == {"y": 42}
    assert (tmp_path / "work" / "result.txt").read_text() == "42"
    assert [run.output for run in of(CommandRun, events)][1] == "y = 42\n"
    assert [change.path.rpartition("/")[2] for change in of(FileChange, events)] == [
        "run.py",
        "response.json",
        "reproduce.sh",
    ]
    assert events[-1].reason == "finished"
    assert not requests[0].credential_sent or requests[0].headers.get("authorization") is None
    assert [tool["function"]["name"] for tool in requests[0].body["tools"]] == [t["function"]["name"] for t in TOOLS]


def test_it_does_not_stop_when_the_model_says_it_is_done(tmp_path):
    script = Script.of(T("Done."), T("Really done."), *WORK, default=T("Done."))
    with ProtocolServer(script) as server:
        events = run_iterative(tmp_path, server.base_url, {"idle_turns": "3"})
    assert (tmp_path / "work" / "response.json").is_file(), "the work after `Done.` was done"
    told = [utterance.text for utterance in of(Utterance, events)]
    assert sum("Take the next step" in text for text in told) == 4
    assert sum("The time is nearly over" in text for text in told) == 1


def test_what_is_missing_is_asked_for_in_the_last_turn(tmp_path):
    write = TC(TOOL("write_file", path="response.json", content=RESPONSE))
    rest = TC(TOOL("write_file", path="reproduce.sh", content=REPRODUCE))
    script = Script.of(T("Nothing to do."), write, T("Done."), rest, default=T("Done."))
    with ProtocolServer(script) as server:
        events = run_iterative(tmp_path, server.base_url, {"idle_turns": "1"})
    told = [utterance.text for utterance in of(Utterance, events)]
    assert any(text.startswith("reproduce.sh cannot be found") for text in told)
    assert (tmp_path / "work" / "reproduce.sh").is_file()
    assert events[-1].reason == "finished"


def test_its_own_limit_of_turns_leads_to_the_last_turn(tmp_path):
    with ProtocolServer(Script.of(*WORK[:1], *WORK[2:], default=T("Done."))) as server:
        events = run_iterative(tmp_path, server.base_url, {"max_turns": "1"})
    assert [hit.limit for hit in of(LimitHit, events)] == ["turns"]
    assert (tmp_path / "work" / "response.json").is_file()


def test_the_gateways_last_word_ends_it_as_a_limit(tmp_path):
    over = turns.error(402, "limit of this run reached: 2 calls", code="budget_exhausted", times=None)
    with ProtocolServer(Script(turns=WORK[:2], default=over)) as server:
        events = run_iterative(tmp_path, server.base_url)
        assert len(server.requests) == 3, "402 is not tried again"
    assert (tmp_path / "code").read_text() == "3"
    assert (events[-1].reason, "2 calls" in events[-1].detail) == ("limit", True)


def test_failures_that_pass_are_waited_for(tmp_path):
    script = Script.of(turns.reset(), turns.overloaded(0), turns.rate_limited(0), *WORK, default=T("Done."))
    with ProtocolServer(script) as server:
        events = run_iterative(tmp_path, server.base_url, {"idle_turns": "1"})
    notes = [note.text for note in of(Note, events)]
    assert sum(text.startswith("retry: HTTP") for text in notes) == 2
    assert len([text for text in notes if text.startswith("retry")]) == 3
    assert events[-1].reason == "finished"


def test_an_endpoint_that_rejects_is_an_error_and_not_an_end(tmp_path):
    with ProtocolServer(Script.of(default=turns.error(401, "no key", times=None))) as server:
        events = run_iterative(tmp_path, server.base_url)
    assert (events[-1].reason, (tmp_path / "code").read_text()) == ("agent_error", "1")
    assert "HTTP 401" in events[-1].detail


def test_a_model_that_refuses_is_taken_at_its_word(tmp_path):
    with ProtocolServer(Script.of(default=turns.refusal("I will not.", times=None))) as server:
        events = run_iterative(tmp_path, server.base_url)
    assert (events[-1].reason, events[-1].detail) == ("refused", "I will not.")
    assert len(of(ModelTurn, events)) == 3


def test_a_request_that_is_too_long_is_shortened_and_sent_again(tmp_path):
    noisy = TC(TOOL("bash", command="seq 1 3000"))
    script = Script.of(*[noisy] * 9, turns.context_too_long(), turns.context_too_long(), *WORK[2:], default=T("Done."))
    with ProtocolServer(script) as server:
        events = run_iterative(tmp_path, server.base_url, {"idle_turns": "1"})
        sizes = [len(json.dumps(request.body["messages"])) for request in server.requests]
    assert sizes[11] < sizes[10] < sizes[9], "each refusal of the endpoint halves what is sent"
    assert any("refused as too long" in note.text for note in of(Note, events))
    assert (tmp_path / "work" / "response.json").is_file()


def test_a_command_is_ended_when_its_time_is_over(tmp_path):
    script = Script.of(TC(TOOL("bash", command="echo begun; sleep 600", timeout_s=0.5)), default=T("Done."))
    with ProtocolServer(script) as server:
        events = run_iterative(tmp_path, server.base_url, {"idle_turns": "1"})
    (ran,) = of(CommandRun, events)
    assert (ran.exit_code, ran.output) == (None, "begun\n")


def test_asked_to_end_it_ends_its_command_and_says_so(tmp_path):
    """SIGTERM is what a harness sends first."""
    mark = tmp_path / "work" / "mark"
    hold = TC(TOOL("bash", command=f"echo $$ > {mark}; sleep 600"))
    with ProtocolServer(Script.of(hold, default=T("Done."))) as server:
        places = {name: tmp_path / name for name in ("inbox", "outbox", "work")}
        for path in places.values():
            path.mkdir()
        launch = start_of(get_agent("iterative"), context(
            workspace=str(places["work"]), inbox=str(places["inbox"]), outbox=str(places["outbox"]),
            base_url_openai=server.base_url,
        ))  # fmt: skip
        for name, text in launch.files.items():
            (places["inbox"] / name).parent.mkdir(exist_ok=True)
            (places["inbox"] / name).write_text(text)
        with subprocess.Popen([sys.executable, *launch.argv[1:]]) as process:
            until(lambda: mark.exists() and mark.read_text().strip())
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 143
    events = list(get_agent("iterative").read_events(places["outbox"], tmp_path / "o", tmp_path / "e"))
    assert events[-1].reason == "limit"
    sleeper = int(mark.read_text())
    until(lambda: not alive(sleeper))


def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def alive(pid):
    try:
        with Path(f"/proc/{pid}/stat").open() as stream:
            return stream.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_it_is_plain_standard_library():
    """It runs in images that hold nothing of ours: no import but the standard library's, no syntax after 3.9."""
    folder = resources.files("evaluation.agents.iterative_program")
    for item in folder.iterdir():
        if not item.name.endswith(".py"):
            continue
        tree = ast.parse(item.read_text(), feature_version=(3, 9))
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names.append(node.module)
            assert {name.partition(".")[0] for name in names} <= set(sys.stdlib_module_names), item.name


def test_modules_of_the_workspace_do_not_replace_its_own(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "json.py").write_text("raise SystemExit(99)")
    (tmp_path / "work" / "config.py").write_text("raise SystemExit(99)")
    inner = tmp_path / "inner"
    inner.mkdir()
    with ProtocolServer(Script.of(default=T("Done."))) as server:
        events = run_iterative(inner, server.base_url, {"idle_turns": "1"})
    assert events[-1].reason == "finished"


# --- parts


def test_a_misspelt_setting_is_refused(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"model": "m", "wal_s": 3}')
    with pytest.raises(ValueError, match="unknown keys \\['wal_s'\\]"):
        load_config(str(path))
    path.write_text('{"model": "m"}')
    with pytest.raises(ValueError, match="missing"):
        load_config(str(path))


@pytest.mark.parametrize(("given", "part"), [({"nonsense": "1"}, "nonsense"), ({"max_turns": "many"}, "max_turns")])
def test_options_are_checked_before_anything_runs(given, part):
    with pytest.raises(ExpbenchError, match=part) as caught:
        get_agent("iterative", given)
    assert "context_tokens" in caught.value.next_step


def test_it_says_that_it_needs_a_model():
    with pytest.raises(ExpbenchError, match="it needs a model"):
        start_of(get_agent("iterative"), context(model=None))
    with pytest.raises(ExpbenchError, match="openai's protocol"):
        start_of(get_agent("iterative"), context(base_url_openai=None))


@pytest.fixture
def tools(tmp_path):
    return ToolBox(str(tmp_path), shown_chars=1000, logged_chars=5000, timeout_s=30, python=sys.executable)


def call(tools, name, **arguments):
    return tools.call(name, json.dumps(arguments), 60)


def test_long_output_is_cut_in_its_middle_for_the_model(tools):
    text, record = call(tools, "bash", command="seq 1 100000; exit 5")
    assert len(text) <= 1000
    assert text.startswith("1\n2\n")
    assert "100000\n" in text
    assert text.endswith("[exit code 5]")
    assert len(record["output"]) <= 5000
    assert record["truncated"]


def test_python_sees_the_workspace_and_leaves_nothing_there(tools, tmp_path):
    (tmp_path / "mine.py").write_text("value = 42")
    text, record = call(tools, "python", code="import mine, sys\nprint(mine.value, __name__, len(sys.argv))")
    assert text.startswith("42 __main__ 1\n")
    assert not list(tmp_path.glob("cell_*"))
    assert "import mine" in record["command"]


def test_files_are_written_edited_read_and_searched(tools, tmp_path):
    assert "Created" in call(tools, "write_file", path="a/b.txt", content="one\r\ntwo\n")[0]
    assert (tmp_path / "a" / "b.txt").read_bytes() == b"one\r\ntwo\n"
    assert call(tools, "edit_file", path="a/b.txt", old="two", new="three")[1]["action"] == "edited"
    assert "     2\tthree" in call(tools, "read_file", path="a/b.txt")[0]
    assert "[lines 2 to 2 of 2]" in call(tools, "read_file", path="a/b.txt", start_line=2)[0]
    assert "a/b.txt:2: three" in call(tools, "search_files", pattern="thr.e")[0]


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("nonsense", "{}", "there is no tool 'nonsense'; there are bash"),
        ("bash", "{broken", "no JSON"),
        ("bash", "[]", "no JSON object"),
        ("bash", "{}", "'command' must be given as text"),
        ("bash", '{"command": "a\\u0000b"}', "NUL"),
        ("bash", '{"command": "echo \\ud800"}', "Unicode"),
        ("read_file", '{"path": "/dev/zero"}', "is not a file"),
        ("read_file", '{"path": "missing"}', "is not a file"),
        ("edit_file", '{"path": "f", "old": "x", "new": "y"}', "occurs 2 times"),
        ("edit_file", '{"path": "f", "old": "z", "new": "y"}', "occurs 0 times"),
        ("search_files", '{"pattern": "("}', "unterminated"),
        ("search_files", '{"pattern": "a", "path": "missing"}', "does not exist"),
        ("write_file", '{"path": "f/g", "content": ""}', "Error"),
    ],
)
def test_a_call_that_cannot_be_carried_out_is_answered(tools, tmp_path, name, arguments, said):
    (tmp_path / "f").write_text("x x")
    text, record = tools.call(name, arguments, 60)
    assert text.startswith("ERROR: ")
    assert said in text
    assert record["is_error"]
    assert (tmp_path / "f").read_text() == "x x"


@given(st.text(max_size=30), st.text(max_size=60))
def test_no_call_breaks_the_toolbox(name, arguments):
    box = ToolBox("/nonexistent", shown_chars=1000, logged_chars=1000, timeout_s=1, python=sys.executable)
    text, record = box.call(name, arguments, 1)
    assert text.startswith("ERROR")
    assert record["is_error"]


def test_a_background_child_does_not_hold_the_agent_up(tmp_path):
    began = time.monotonic()
    finished = run(["/bin/sh", "-c", "sleep 300 & echo $!"], str(tmp_path), 250)
    assert finished.exit_code == 0
    assert time.monotonic() - began < 200, "the child still holds the output open"
    subprocess.run(["kill", finished.output.strip()], check=True)


def test_a_command_that_prints_without_end_is_ended(tmp_path, monkeypatch):
    from evaluation.agents.iterative_program import processes

    monkeypatch.setattr(processes, "_MOST_OUTPUT", 1 << 20)
    finished = run(["/bin/sh", "-c", "yes"], str(tmp_path), 120)
    assert finished.exit_code is None
    assert finished.note.startswith("ended: it printed more than 1 MB")


# --- the conversation


def turn(number, output, arguments="{}"):
    calls = [{"id": f"c{number}", "type": "function", "function": {"name": "bash", "arguments": arguments}}]
    message = {"role": "assistant", "content": "", "tool_calls": calls}
    return message, [{"role": "tool", "tool_call_id": f"c{number}", "content": output}]


@given(
    sizes=st.lists(st.integers(0, 20_000), max_size=30),
    writes=st.lists(st.integers(0, 20_000), max_size=30),
    ceiling=st.integers(2000, 20_000),
)
def test_a_request_never_breaks_the_protocol_and_fits_where_it_can(sizes, writes, ceiling):
    talk = Conversation("system", "the task", ceiling)
    for number, size in enumerate(sizes):
        written = writes[number] if number < len(writes) else 0
        talk.turn(*turn(number, "x" * size, json.dumps({"content": "y" * written})))
        if number % 7 == 3:
            talk.say("go on")
        messages, _ = talk.request()
        assert [message["content"] for message in messages[:2]] == ["system", "the task"]
        asked: list[str] = []
        for message in messages:
            if message["role"] == "assistant":
                asked = [item["id"] for item in message.get("tool_calls", [])]
            elif message["role"] == "tool":
                assert message["tool_call_id"] in asked, "a result without its call"
        # only a last round whose own call is longer than everything may be too long
        assert talk.estimate() <= ceiling or written * 2 > ceiling


def test_the_newest_outputs_stay_and_the_old_say_what_is_missing():
    talk = Conversation("s", "task", 10_000)
    for number in range(12):
        talk.turn(*turn(number, f"{number}:" + "x" * 4000))
    messages, done = talk.request()
    outputs = [message["content"] for message in messages if message["role"] == "tool"]
    assert outputs[0].startswith("[output of 4002 characters left out")
    assert [text.partition(":")[0] for text in outputs[-5:]] == ["7", "8", "9", "10", "11"]
    assert "old outputs left out" in done
    assert talk.request()[1] == "", "once shortened, the next turns need not be"


# --- the endpoint


def ask(server, waits=None, **changes):
    values = {"timeout_s": 30, "retries": 3, "deadline": time.monotonic() + 120, "sleep": lambda _s: None} | changes
    waits = [] if waits is None else waits
    endpoint = Endpoint(server.base_url, on_retry=lambda _n, _why, wait: waits.append(wait), **values)
    return endpoint.ask({"model": "m", "messages": [{"role": "user", "content": "hi"}]})


@pytest.mark.parametrize("fault", [turns.malformed_json, turns.wrong_content_type, turns.reset])
def test_broken_answers_are_asked_for_again(fault):
    with ProtocolServer(Script.of(fault(), fault(), T("fine"))) as server:
        assert ask(server).text == "fine"


def test_retry_after_is_kept_and_patience_ends():
    waits: list[float] = []
    with ProtocolServer(Script.of(default=turns.rate_limited(7, times=None))) as server:
        with pytest.raises(EndpointError, match="after 4 attempts"):
            ask(server, waits)
        assert len(server.requests) == 4
    assert all(7 <= wait <= 7.7 for wait in waits)


def test_kinds_of_refusal_are_told_apart():
    with ProtocolServer(
        Script.of(turns.context_too_long(), turns.error(402, "over"), turns.quota_exceeded())
    ) as server:
        with pytest.raises(ContextTooLong):
            ask(server)
        with pytest.raises(LimitReached):
            ask(server)
        with pytest.raises(EndpointError, match="insufficient_quota"):
            ask(server)
        assert len(server.requests) == 3


def test_after_the_deadline_nothing_is_asked():
    with ProtocolServer(Script.of(T("late"))) as server:
        with pytest.raises(EndpointError, match="no time is left"):
            ask(server, deadline=time.monotonic() - 1)
        assert server.requests == []


def test_usage_is_what_the_endpoint_counted():
    usage = turns.Turn(text="x", usage={"prompt": 70, "completion": 3, "cached": 20})
    with ProtocolServer(Script.of(usage, turns.text("y", omit_usage=True))) as server:
        assert ask(server).usage == {"input_tokens": 70, "output_tokens": 3, "cached_input_tokens": 20}
        assert ask(server).usage is None, "unknown is not 0"
