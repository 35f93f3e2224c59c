"""Usage, policy, order of events, launcher, egress: the harness's parts by themselves."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluation.harness.egress import Egress
from evaluation.harness.events import merge_events
from evaluation.harness.policy import forwarded_headers, rewrite, route, searches_by_itself
from evaluation.harness.recorder import CallRecorder, read_calls
from evaluation.harness.usage import EventMeter, usage_of
from evaluation.trajectory import CommandRun, Event, ModelCall, ModelTurn, Note

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)

ANY_SPEED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""What a test says does not depend on how busy the machine is."""

# --- usage


def test_anthropic_counts_its_cache_beside_the_input() -> None:
    stated = {"input_tokens": 10, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 5, "output_tokens": 7}
    usage = usage_of("messages", {"usage": stated})
    assert usage is not None
    assert (usage.input_tokens, usage.cached_input_tokens, usage.cache_write_tokens, usage.output_tokens) == (
        105,
        90,
        5,
        7,
    )


def test_anthropic_streams_state_it_in_two_parts() -> None:
    meter = EventMeter("messages")
    start = {"type": "message_start", "message": {"usage": {"input_tokens": 10, "output_tokens": 1}}}
    meter.feed(b"event: message_start\ndata: " + json.dumps(start).encode() + b"\n\n")
    assert meter.usage is None
    meter.feed(b'data: {"type": "message_delta", "usage": {"output_tokens": 42}}\r\n\r\n')
    meter.feed(b'data: {"type": "message_stop"}\n\n')
    assert meter.usage is not None
    assert (meter.usage.input_tokens, meter.usage.output_tokens, meter.complete) == (10, 42, True)


@pytest.mark.parametrize("kind", ["chat", "responses", "messages", "embeddings"])
@ANY_SPEED
@given(body=JSON)
def test_no_answer_makes_usage_up_or_fails(kind: Any, body: Any) -> None:
    for value in (body, {"usage": body}, {"usage": {"prompt_tokens": body, "completion_tokens": body}}):
        usage = usage_of(kind, value)
        assert usage is None or usage.input_tokens >= 0
    meter = EventMeter(kind)
    meter.feed(b"data: " + json.dumps(body).encode() + b"\n\n")


# --- policy


@pytest.mark.parametrize(
    ("method", "path", "found"),
    [
        ("POST", "/v1/chat/completions", ("openai", "chat")),
        ("POST", "/v1/messages", ("anthropic", "messages")),
        ("GET", "/v1/models", ("openai", "models")),
        ("GET", "/v1/chat/completions", None),
        ("POST", "/v1/files", None),
        ("POST", "/v1/responses/../files", None),
        ("GET", "/v1/responses/resp_123", None),
    ],
)
def test_routes(method: str, path: str, found: tuple[str, str] | None) -> None:
    got = route(method, path, {})
    assert (None if got is None else (got.provider, got.kind)) == found


def test_headers_that_carry_credentials_or_belong_to_the_connection_stay_here() -> None:
    sent = {"Authorization": "x", "X-Api-Key": "x", "Cookie": "x", "Connection": "close, X-Odd", "X-Odd": "x", "Host": "h",
            "OpenAI-Organization": "o", "Anthropic-Version": "v", "Content-Type": "application/json"}  # fmt: skip
    assert forwarded_headers(sent) == {"anthropic-version": "v", "content-type": "application/json"}


@pytest.mark.parametrize("model", ["gpt-4o-search-preview", "openai/gpt-5:online", "sonar-pro", "o3-deep-research"])
def test_models_that_search(model: str) -> None:
    assert searches_by_itself(model)
    assert not searches_by_itself("gpt-5-mini")


@pytest.mark.parametrize("tool", ["web_search", "web_search_preview", "web_fetch_20250910", "mcp", "code_interpreter",
                                  "code_execution_20250825", "file_search", "image_generation", "shell"])  # fmt: skip
def test_hosted_tools_go_and_own_tools_stay(tool: str) -> None:
    own = [{"type": "function", "name": "f"}, {"type": "custom", "name": "c"}, {"name": "bash", "input_schema": {}},
           {"type": "bash_20250124", "name": "bash"}, {"type": "local_shell"}]  # fmt: skip
    body, removed, _ = rewrite("responses", {"tools": [*own, {"type": tool}], "tool_choice": {"type": tool}})
    assert body["tools"] == own
    assert len(removed) == 1


@ANY_SPEED
@given(JSON)
def test_any_request_is_rewritten_without_failing(value: Any) -> None:
    for name in ("tools", "stream_options", "mcp_servers", "model"):
        body, _, _ = rewrite("chat", {name: value, "stream": True})
        assert body["stream_options"]["include_usage"]


# --- record


@ANY_SPEED
@given(st.lists(st.lists(st.sampled_from("abc"), max_size=6), max_size=6))
def test_shortened_requests_come_back_whole(conversations: list[list[str]]) -> None:
    requests = [{"messages": [{"role": "user", "content": word} for word in words], "n": 1} for words in conversations]
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "calls.jsonl"
        recorder = CallRecorder(path)
        for request in requests:
            recorder.write({"status": 200}, request, b"{}", stream=False)  # type: ignore[arg-type]
        recorder.close()
        assert [call["request"] for call in read_calls(path)] == requests


# --- order of events


def call(at: float, status: int = 200) -> ModelCall:
    return ModelCall(seq=0, at=at, endpoint="/v1/chat/completions", status=status)


def test_events_with_times_are_sorted_by_them() -> None:
    agent: list[Event] = [ModelTurn(seq=0, at=2, text="a"), CommandRun(seq=0, at=3, command="ls")]
    assert [event.at for event in merge_events([call(1), call(2.5)], agent)] == [1, 2, 2.5, 3]


def test_turns_without_times_follow_their_calls() -> None:
    agent: list[Event] = [
        ModelTurn(seq=0, at=0, text="a"),
        CommandRun(seq=0, at=0, command="ls"),
        ModelTurn(seq=0, at=0, text="b"),
    ]
    merged = merge_events([call(1, 429), call(2), call(3), call(4)], agent)
    assert [event.kind for event in merged] == ["model_call", "model_call", "model_turn", "command", "model_call", "model_turn", "model_call"]  # fmt: skip


@ANY_SPEED
@given(st.lists(st.floats(0, 10), max_size=8), st.lists(st.floats(0, 10), max_size=8))
def test_merging_loses_nothing_and_keeps_the_agents_order(first: list[float], second: list[float]) -> None:
    gateway = [call(at) for at in first]
    agent: list[Event] = [Note(seq=0, at=at, text=str(index)) for index, at in enumerate(second)]
    merged = merge_events(gateway, agent)
    assert len(merged) == len(gateway) + len(agent)
    assert [event.text for event in merged if isinstance(event, Note)] == [str(index) for index in range(len(second))]


# --- launcher

LAUNCHER = resources.files("pipeline.network._inside").joinpath("launch.py").read_text(encoding="utf-8")
CLIENT = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as s:
    s.sendall(b"x" * 300000)
    s.shutdown(socket.SHUT_WR)
    total = 0
    while True:
        data = s.recv(65536)
        if not data: break
        total += len(data)
print(total)
"""


@pytest.fixture
def echo() -> Iterator[str]:
    """A unix socket that sends back what it gets."""
    with tempfile.TemporaryDirectory(prefix="echo-") as name, socket.socket(socket.AF_UNIX) as listener:
        path = f"{name}/s"
        listener.bind(path)
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                while data := connection.recv(65536):
                    connection.sendall(data)

        thread = threading.Thread(target=serve)
        thread.start()
        yield path
        thread.join(30)
        assert not thread.is_alive()


def test_the_launcher_forwards_and_becomes_the_agent(echo: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-I",
        "-S",
        "-c",
        LAUNCHER,
        f"{port}={echo}",
        "--",
        sys.executable,
        "-c",
        CLIENT,
        str(port),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"300000\n"
        assert process.wait(30) == 0
        os.killpg(process.pid, 9)  # the forwarder, as the sandbox's supervisor ends it


def test_a_command_that_does_not_exist_says_so() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", LAUNCHER, "--", "/no/such/agent"], capture_output=True, check=False
    )
    assert done.returncode == 127
    assert b"cannot be started" in done.stderr


# --- egress


@pytest.mark.parametrize(
    ("host", "port", "allowed"),
    [("pypi.org", 443, True), ("PyPI.org.", 443, True), ("files.pythonhosted.org", 443, True), ("pypi.org", 80, False),
     ("pythonhosted.org.evil.com", 443, False), ("evil.com", 443, False), ("pythonhosted.org", 443, False)],
)  # fmt: skip
def test_the_allow_list(host: str, port: int, allowed: bool) -> None:
    assert Egress(("pypi.org", "*.pythonhosted.org"), print).allowed(host, port) == allowed


@pytest.mark.parametrize("request_", [b"CONNECT localhost:443 HTTP/1.1\r\n\r\n", b"CONNECT evil.com:443 HTTP/1.1\r\n\r\n",
                                      b"GET http://localhost/ HTTP/1.1\r\n\r\n", b"CONNECT 127.0.0.1:443 HTTP/1.1\r\n\r\n"])  # fmt: skip
def test_this_machine_cannot_be_reached_whatever_is_allowed(request_: bytes) -> None:
    said: list[str] = []

    async def ask() -> bytes:
        with tempfile.TemporaryDirectory(prefix="eg-") as name:
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(f"{name}/s")
            server = await Egress(("localhost", "127.0.0.1"), said.append).start(listener)
            reader, writer = await asyncio.open_unix_connection(f"{name}/s")
            writer.write(request_)
            answer = await reader.read()
            writer.close()
            server.close()
            await server.wait_closed()
            return answer

    assert b" 403 " in asyncio.run(ask())
    assert len(said) == 1
