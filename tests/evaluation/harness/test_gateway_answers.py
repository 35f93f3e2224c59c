"""Each answer that an endpoint may give, exactly: what is sent to it, what the agent gets, what is counted and recorded."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from evaluation.harness import gateway as module
from evaluation.harness.upstream import Upstream
from evaluation.trajectory import LimitHit, ModelCall, Note
from pipeline.errors import FailureKind
from pipeline.llm import register_secret
from tests.evaluation.harness.support import KEY, SMALL, Opened, gateway

CHAT = {"model": "scripted", "messages": [{"role": "user", "content": "hi"}]}
JSON = {"content-type": "application/json"}
USAGE = {"prompt_tokens": 1000, "completion_tokens": 500}
WHOLE = json.dumps({"choices": [], "usage": USAGE}).encode()


class Endpoint:
    """Answers every request with the next of these: (status, headers, body); keeps what it was sent."""

    def __init__(self, *answers: tuple[int, dict[str, str], bytes]) -> None:
        self.answers = list(answers)
        self.got: list[tuple[str, str, dict[str, str], bytes]] = []

    @contextmanager
    def open(self, **options: Any) -> Iterator[Opened]:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                endpoint.got.append((self.command, self.path, headers, body))
                status, given, data = endpoint.answers.pop(0)
                self.send_response(status)
                for name, value in given.items():
                    self.send_header(name, value)
                if "content-length" not in given:
                    self.send_header("content-length", str(len(data)))
                self.send_header("connection", "close")  # said, or the gateway may ask again where nobody listens
                self.end_headers()
                self.wfile.write(data)
                self.close_connection = True

            do_GET = do_POST  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
            url = f"http://127.0.0.1:{server.server_port}/v1"
            one = Upstream(provider="openai", url=url, default=False, key=SecretStr(KEY))
            with gateway(None, **({"upstreams": (one,)} | options)) as opened:
                yield opened
            server.shutdown()


@pytest.fixture(autouse=True)
def _the_key_is_known() -> None:
    register_secret("OPENAI_API_KEY", KEY)


def calls(opened: Opened) -> list[ModelCall]:
    return [event for event in opened.events if isinstance(event, ModelCall)]


def line(opened: Opened) -> dict[str, Any]:
    [found] = opened.lines
    made: dict[str, Any] = json.loads(found)
    return made


def test_a_request_is_sent_on_as_it_is_with_our_key_and_readable() -> None:
    endpoint = Endpoint((200, JSON | {"x-request-id": "r", "set-cookie": "c"}, WHOLE))
    with endpoint.open() as opened, opened.client() as client:
        answer = client.post(
            "/chat/completions", json=CHAT, headers={"user-agent": "me", "authorization": "Bearer own"}
        )
    [(method, path, headers, body)] = endpoint.got
    assert (method, path, json.loads(body)) == ("POST", "/v1/chat/completions", CHAT)
    assert (headers["authorization"], headers["accept-encoding"], headers["user-agent"]) == (
        f"Bearer {KEY}", "identity", "me",
    )  # fmt: skip
    assert (answer.status_code, answer.content) == (200, WHOLE)
    assert answer.headers["x-request-id"] == "r"
    assert "set-cookie" not in answer.headers
    [call] = calls(opened)
    assert (call.status, call.cost_usd, call.model) == (200, (1000 + 2 * 500) / 1e6, "scripted")
    assert call.at <= call.at + call.duration_s < 60
    assert len(call.request_sha256) == 64
    told = line(opened)
    assert (told["status"], told["response"], told["request"]) == (200, json.loads(WHOLE), CHAT)
    assert "broken_off" not in told


def test_a_list_of_models_is_asked_for_without_a_body_and_counts_nothing() -> None:
    endpoint = Endpoint((200, JSON, b"{}"))
    with endpoint.open() as opened, opened.client() as client:
        assert client.get("/models").status_code == 200
    [(method, path, headers, body)] = endpoint.got
    assert (method, path, body) == ("GET", "/v1/models", b"")
    assert "content-type" not in headers
    assert (calls(opened), opened.totals.calls, line(opened)["request"]) == ([], 0, None)


STATUSES = [
    (400, None, 400), (422, None, 422), (403, FailureKind.REQUEST_REJECTED, 403), (404, FailureKind.REQUEST_REJECTED, 404),
    (408, FailureKind.MODEL_TIMEOUT, 408), (429, FailureKind.RATE_LIMIT, 429), (500, FailureKind.OVERLOADED, 500),
    (503, FailureKind.OVERLOADED, 503), (529, FailureKind.OVERLOADED, 529), (401, FailureKind.AUTHENTICATION, 502),
]  # fmt: skip


@pytest.mark.parametrize(("status", "kind", "passed_on"), STATUSES)
def test_what_an_endpoints_status_says_of_it(status: int, kind: FailureKind | None, passed_on: int) -> None:
    """Of 4xx only those that are about the endpoint: any other is the agent's request, and no failure."""
    endpoint = Endpoint((status, JSON | {"retry-after": "7"}, f"why, {KEY}".encode()), (200, JSON, WHOLE))
    with endpoint.open(limits=SMALL.evolve(model_calls=1)) as opened, opened.client() as client:
        answer = client.post("/chat/completions", json=CHAT)
        totals = opened.gateway.totals()
        again = client.post("/chat/completions", json=CHAT)
    assert answer.status_code == passed_on
    assert again.status_code == 200, "a call that failed is none of those that are allowed"
    assert (totals.last_failure, totals.failed, totals.failed_at_end) == (
        kind,
        int(kind is not None),
        int(kind is not None),
    )
    assert (opened.totals.calls, opened.totals.failed_at_end) == (1, 0)
    assert [(call.status, call.cost_usd) for call in calls(opened)] == [(passed_on, 0.0), (200, 0.002)]
    assert KEY not in "".join(opened.lines) + answer.text + totals.last_detail
    if kind is FailureKind.AUTHENTICATION:
        assert opened.broken == [(kind, "openai refused the credentials (401)")]
        assert totals.last_detail == "status 401"
        assert answer.headers["x-should-retry"] == "false"
        assert "endpoint could not be used" in answer.json()["error"]["message"]
    else:
        assert opened.broken == []
        assert answer.text.startswith("why, ")
        assert answer.headers["retry-after"] == "7"
        assert "x-should-retry" not in answer.headers
        if kind is not None:
            assert totals.last_detail.startswith(f"status {status}: why, ")


def test_a_long_complaint_is_told_in_short() -> None:
    endpoint = Endpoint((500, JSON, b"x" * 1000))
    with endpoint.open() as opened, opened.client() as client:
        assert client.post("/chat/completions", json=CHAT).text == "x" * 1000
    assert opened.totals.last_detail == "status 500: " + "x" * 300


def test_errors_of_free_endpoints_are_no_calls() -> None:
    endpoint = Endpoint((500, JSON, b"x"), (400, JSON, b"y"), (200, JSON, WHOLE), (200, JSON, WHOLE))
    with endpoint.open(limits=SMALL.evolve(model_calls=1)) as opened, opened.client() as client:
        assert [client.get("/models").status_code for _ in range(2)] == [500, 400]
        assert [client.post("/chat/completions", json=CHAT).status_code for _ in range(2)] == [200, 402]
    assert [call.status for call in calls(opened)] == [200, 402]


def test_an_endpoint_that_is_not_there_is_a_failure_of_the_network() -> None:
    gone = Upstream(provider="openai", url="http://127.0.0.1:9/v1", default=False, key=SecretStr(KEY))
    with Endpoint().open(upstreams=(gone,)) as opened, opened.client() as client:
        answer = client.post("/chat/completions", json=CHAT)
    assert answer.status_code == 502
    assert answer.json()["error"]["code"] == "upstream_unavailable"
    assert "x-should-retry" not in answer.headers, "it may come back"
    assert answer.headers["content-type"] == "application/json"
    assert (opened.totals.last_failure, opened.totals.failed) == (FailureKind.NETWORK, 1)
    assert "ConnectError: " in opened.totals.last_detail
    assert line(opened)["status"] == 502


@pytest.mark.parametrize("body", [b"no json", b"", b"[]", b'{"usage": {}}'])
def test_an_answer_that_states_no_usage_passes_and_is_of_unknown_cost(body: bytes) -> None:
    with Endpoint((200, JSON, body)).open() as opened, opened.client() as client:
        assert client.post("/chat/completions", json=CHAT).content == body
    assert (opened.totals.calls, opened.totals.usage, opened.totals.cost_usd) == (1, None, None)


def test_an_answer_that_breaks_off_is_a_failure_of_the_endpoint() -> None:
    with Endpoint((200, JSON | {"content-length": "999"}, b"{")).open() as opened, opened.client() as client:
        assert client.post("/chat/completions", json=CHAT).status_code == 502
    assert (opened.totals.last_failure, opened.totals.calls) == (FailureKind.PROTOCOL_BROKEN, 0)


@pytest.mark.parametrize(("over", "status"), [(0, 200), (1, 502)])
def test_an_answer_has_a_longest_length(monkeypatch: pytest.MonkeyPatch, over: int, status: int) -> None:
    monkeypatch.setattr(module, "_MOST_ANSWER", len(WHOLE) - over)
    with Endpoint((200, JSON, WHOLE)).open() as opened, opened.client() as client:
        assert client.post("/chat/completions", json=CHAT).status_code == status
    detail = "the answer is too long" if over else ""
    assert (opened.totals.last_detail, opened.totals.calls) == (detail, 1 - over)


@pytest.mark.parametrize(("over", "status"), [(0, 200), (1, 413)])
def test_a_request_has_a_longest_length(monkeypatch: pytest.MonkeyPatch, over: int, status: int) -> None:
    data = json.dumps(CHAT).encode()
    monkeypatch.setattr(module, "_MOST_REQUEST", len(data) - over)
    endpoint = Endpoint((200, JSON, WHOLE))
    with endpoint.open() as opened, opened.client() as client:
        answer = client.post("/chat/completions", content=data)
    assert (answer.status_code, len(endpoint.got)) == (status, 1 - over)


@pytest.mark.parametrize(
    ("path", "content", "status", "code", "words"),
    [
        ("/files", b"{}", 404, "not_allowed", "/v1/files is not offered here"),
        ("/messages", b"{}", 404, "not_configured", "no anthropic endpoint is configured"),
        ("/chat/completions", b"no", 400, "invalid_request_error", "the request is no JSON"),
        ("/chat/completions", b"[1]", 400, "invalid_request_error", "the request is no JSON object"),
        ("/chat/completions", b'{"model": "sonar"}', 403, "invalid_request_error", "sonar searches the web by itself, which this run does not allow"),
    ],
)  # fmt: skip
def test_refusals_are_told_recorded_and_never_sent_on(
    path: str, content: bytes, status: int, code: str, words: str
) -> None:
    endpoint = Endpoint()
    with endpoint.open() as opened, opened.client() as client:
        answer = client.post(path, content=content)
    assert (answer.status_code, answer.headers["x-should-retry"]) == (status, "false")
    assert answer.json()["error"]["message"] == words
    told = line(opened)
    assert (told["endpoint"], told["method"], told["status"], told["refused"]) == (f"/v1{path}", "POST", status, code)
    assert 0 <= told["at"] < 60
    [call] = calls(opened)
    assert (call.endpoint, call.status, call.cost_usd) == (f"/v1{path}", status, 0.0)
    assert (endpoint.got, opened.totals.calls, opened.totals.failed) == ([], 0, 0)


def test_a_limit_is_told_once_with_what_it_is_and_recorded_each_time() -> None:
    with Endpoint().open(limits=SMALL.evolve(model_calls=0)) as opened, opened.client() as client:
        answers = [client.post("/chat/completions", json=CHAT) for _ in range(2)]
    assert {answer.json()["error"]["message"] for answer in answers} == {"limit of this run reached: 0 calls"}
    assert {answer.json()["error"]["code"] for answer in answers} == {"budget_exhausted"}
    [hit] = [event for event in opened.events if isinstance(event, LimitHit)]
    assert (hit.limit, hit.detail) == ("model_calls", "0 calls")
    assert [(call.status, call.cost_usd) for call in calls(opened)] == [(402, 0.0)] * 2
    assert [json.loads(told)["status"] for told in opened.lines] == [402, 402]


def stream(*chunks: dict[str, Any] | str) -> bytes:
    texts = [chunk if isinstance(chunk, str) else json.dumps(chunk) for chunk in chunks]
    return b"".join(b"data: " + text.encode() + b"\n\n" for text in texts)


EVENTS = {"content-type": "text/event-stream; charset=utf-8"}
TEXT, CLOSING = {"choices": [{"delta": {"content": "hello"}}]}, {"choices": [], "usage": USAGE}


@pytest.mark.parametrize("asked", [False, True])
def test_a_stream_comes_through_with_usage_only_for_those_who_asked(asked: bool) -> None:
    endpoint = Endpoint((200, EVENTS, stream(TEXT, CLOSING, "[DONE]")))
    body = CHAT | {"stream": True} | ({"stream_options": {"include_usage": True}} if asked else {})
    with endpoint.open() as opened, opened.client() as client:
        answer = client.post("/chat/completions", json=body)
    assert answer.content == (stream(TEXT, CLOSING, "[DONE]") if asked else stream(TEXT, "[DONE]"))
    assert answer.headers["content-type"] == EVENTS["content-type"]
    sent = json.loads(endpoint.got[0][3])
    assert sent["stream_options"] == {"include_usage": True}
    told = line(opened)
    assert told["response"] == {"events": stream(TEXT, CLOSING, "[DONE]").decode()}, "the record holds all of it"
    assert told["usage"]["input_tokens"] == 1000
    assert "broken_off" not in told
    assert (opened.totals.calls, opened.totals.cost_usd) == (1, 0.002)


def test_a_stream_without_its_end_is_broken_off_in_the_record() -> None:
    endpoint = Endpoint((200, EVENTS, stream(TEXT)))
    with endpoint.open(limits=SMALL.evolve(tokens=10)) as opened, opened.client() as client:
        assert client.post("/chat/completions", json=CHAT | {"stream": True}).content == stream(TEXT)
    assert line(opened)["broken_off"] is True
    assert (opened.totals.calls, opened.totals.usage) == (1, None)


def test_an_error_of_a_stream_is_recorded_as_what_it_is() -> None:
    with Endpoint((400, JSON, b'{"why": 1}')).open() as opened, opened.client() as client:
        client.post("/chat/completions", json=CHAT | {"stream": True})
    assert line(opened)["response"] == {"why": 1}


def test_an_odd_request_is_noted_once() -> None:
    endpoint = Endpoint(*[(200, JSON, WHOLE)] * 3)
    with endpoint.open(model="stated") as opened, opened.client() as client:
        for _ in range(3):
            client.post("/chat/completions", json=CHAT | {"plugins": [1]})
    notes = [event.text for event in opened.events if isinstance(event, Note)]
    assert notes == [
        "plugins was taken out of the agent's requests: the provider would run it",
        "the agent called the model scripted, the run states stated",
    ]
    assert all("plugins" not in json.loads(body) for _, _, _, body in endpoint.got)
    assert {tuple(json.loads(told)["taken_out"]) for told in opened.lines} == {("plugins",)}


def test_sockets_are_gone_with_the_gateway_and_its_thread_too() -> None:
    with Endpoint().open(allow=("a.org",)) as opened:
        assert (opened.folder / "model.sock").is_socket()
        assert (opened.folder / "egress.sock").is_socket()
        folder = opened.folder
        transport = httpx2.HTTPTransport(uds=str(folder / "egress.sock"))
        with httpx2.Client(transport=transport) as client, pytest.raises(httpx2.HTTPError):
            client.get("http://elsewhere/").raise_for_status()
    assert any("refused" in event.text for event in opened.events if isinstance(event, Note))
    assert not any(thread.name == "expbench-gateway" for thread in threading.enumerate())
    assert not folder.exists()
