"""Scripts as files, the command line, recordings, the fixtures' promises."""

import contextlib
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pipeline.errors import ExpbenchError, FailureKind
from tests.doubles.protocol_server import Cut, ErrorReply, ProtocolServer, Script, Turn, load_script, turns

ROOT = Path(__file__).resolve().parents[4]
SCRIPT = """
order: sequence
turns:
  - text: no
  - tool_calls:
      - {name: look, arguments: {page: 3, deep: true, day: 2024-01-01, version: "1.0", share: 0.5, none: null}}
  - structured: {metric: F1, value: 1e-1}
  - error: {status: 429, code: rate_limit_exceeded, retry_after: 2}
  - text: cut
    match: {contains: caller 7, stream: true}
    cut: {after: 1, how: quiet}
  - fault: reset
default: {text: the end}
"""


def test_a_script_from_a_file_has_the_types_of_json(tmp_path):
    path = tmp_path / "script.yaml"
    path.write_text(SCRIPT)
    script = load_script(path)
    assert script.turns[0].text == "no"
    expected = {"page": 3, "deep": True, "day": "2024-01-01", "version": "1.0", "share": 0.5, "none": None}
    assert script.turns[1].tool_calls[0].arguments == expected
    assert script.turns[2].structured == {"metric": "F1", "value": 0.1}
    assert script.turns[3].error == ErrorReply(status=429, code="rate_limit_exceeded", retry_after=2)
    assert script.turns[4].cut == Cut(after=1, how="quiet")
    assert script.default == turns.text("the end")


def test_the_script_in_the_documentation_is_one(tmp_path):
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "models.md").read_text(encoding="utf-8"), re.DOTALL)
    (text,) = [block for block in blocks if "turns:" in block]
    path = tmp_path / "script.yaml"
    path.write_text(text)
    script = load_script(path)
    assert len(script.turns) == 6
    assert script.turns[2].times == 3


@given(
    st.lists(
        st.builds(Turn, text=st.text())
        | st.builds(turns.structured, st.dictionaries(st.text(), st.integers(), min_size=1))
    )
)
def test_json_is_a_script_too(tmp_path_factory, some):
    path = tmp_path_factory.mktemp("script") / "script.json"
    script = Script(turns=tuple(some))
    path.write_text(script.model_dump_json(), encoding="utf-8")
    assert load_script(path) == script


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("turns: [{}]", "found nothing"),
        ("turns: [{text: a, refusal: b}]", "found refusal, text or tool_calls"),
        ("turns: [{txt: a}]", "txt"),
        ("turns: [{error: {status: 200}}]", "greater than or equal to 400"),
        ("turns: [{fault: reset, cut: {after: 1}}]", "only content can be cut"),
        ("turns: [{text: a, cut: {after: 1, how: error}}]", "`error` is given exactly when"),
        ("turns: [{text: a, match: {endpoint: embeddings}}]", "their content is computed"),
        ("{order: conversation, turns: [{text: a, times: 2}]}", "no `match`, no `times`"),
        ("turns: [", "not a script"),
    ],
)
def test_bad_scripts_name_the_reason(tmp_path, text, reason):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(ExpbenchError, match=str(path)) as caught:
        load_script(path)
    assert caught.value.kind is FailureKind.RECORD_INVALID
    assert reason in str(caught.value)


def test_turns_in_python_are_checked_too():
    with pytest.raises(ValidationError):
        Turn(text="a", structured={})


def test_command_line(tmp_path):
    script, record = tmp_path / "script.yaml", tmp_path / "requests.jsonl"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "tests.doubles.protocol_server", "--script", script, "--record", record]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            base_url = process.stdout.readline().strip()
            with openai.OpenAI(base_url=base_url, api_key="canary-key", max_retries=0) as client:
                answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
        finally:
            process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=30)
    assert answer.choices[0].message.content == "no"
    assert (process.returncode, output, errors) == (0, "", "")
    (line,) = record.read_text().splitlines()
    assert json.loads(line)["outcome"] == "turn 1"
    assert "canary-key" not in line


def test_command_line_says_what_is_wrong(tmp_path):
    command = [sys.executable, "-m", "tests.doubles.protocol_server", "--script", tmp_path / "missing.yaml"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    assert result.returncode == 5
    assert "missing.yaml" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_taken_port_is_named(tmp_path):
    script = tmp_path / "script.yaml"
    script.write_text("turns: []")
    with ProtocolServer() as server:
        command = [
            sys.executable,
            "-m",
            "tests.doubles.protocol_server",
            "--script",
            script,
            "--port",
            str(server.port),
        ]
        result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    assert result.returncode == 2
    assert f"port {server.port}: cannot be listened on" in result.stderr


def test_equal_scripts_give_equal_bytes():
    def run():
        import http.client

        answers = []
        with ProtocolServer(Script.of(turns.text("a b c"), turns.tool_calls(turns.tool_call("f", x=1)))) as server:
            for stream in (False, True):
                connection = http.client.HTTPConnection("127.0.0.1", server.port)
                body = {"model": "m", "stream": stream, "messages": [{"role": "user", "content": "x"}]}
                connection.request("POST", "/v1/chat/completions", json.dumps(body))
                answers.append(connection.getresponse().read())
                connection.close()
        return answers

    assert run() == run()


def test_it_listens_on_the_loopback_interface_only():
    with ProtocolServer() as server:
        assert server._server.server_address[0] == "127.0.0.1"
        assert server.base_url == f"{server.origin}/v1" == f"http://127.0.0.1:{server.port}/v1"


def test_a_defect_of_the_server_fails_the_test_that_met_it():
    def broken(endpoint, body):
        raise LookupError("the responder is wrong")

    def ask():
        with (
            ProtocolServer(broken) as server,
            openai.OpenAI(base_url=server.base_url, api_key="k", max_retries=0) as client,
            pytest.raises(openai.APIConnectionError),
        ):
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])

    with pytest.raises(RuntimeError, match="failed on a request") as caught:
        ask()
    assert isinstance(caught.value.__cause__, LookupError)


def test_a_responder_chooses_by_the_request():
    def respond(endpoint, body):
        return turns.text(f"{endpoint}: {body['messages'][-1]['content']}")

    with ProtocolServer(respond) as server, openai.OpenAI(base_url=server.base_url, api_key="k") as client:
        answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
    assert answer.choices[0].message.content == "chat: x"


@pytest.mark.parametrize("stream", [False, True])
def test_a_cut_behind_the_end_is_a_mistake_of_the_script(stream):
    def ask():
        with (
            ProtocolServer(Script.of(turns.cut(turns.text("short"), 10_000))) as server,
            openai.OpenAI(base_url=server.base_url, api_key="k", max_retries=0) as client,
            contextlib.suppress(openai.APIConnectionError),  # a stream's reader stops at its last event and sees none
        ):
            list(client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}], stream=stream))

    with pytest.raises(RuntimeError) as caught:
        ask()
    assert "cannot be cut after 10000" in str(caught.value.__cause__)
