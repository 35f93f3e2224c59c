"""Errors and broken transports, as the official client sees them."""

import hashlib
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.doubles.protocol_server import Cut, ErrorReply, ManualClock, ProtocolServer, Script, Turn, turns

USER = [{"role": "user", "content": "What is measured?"}]
TEXT = "one two three four five six seven"


def ask(client, **options):
    return client.chat.completions.create(model="m", messages=USER, **options).choices[0].message.content


def read_stream(client):
    parts = []
    for chunk in client.chat.completions.create(model="m", messages=USER, stream=True):
        parts.extend(choice.delta.content or "" for choice in chunk.choices)
    return "".join(parts)


@pytest.mark.parametrize(
    ("turn", "kind", "code"),
    [
        (turns.rate_limited(2), openai.RateLimitError, "rate_limit_exceeded"),
        (turns.quota_exceeded(), openai.RateLimitError, "insufficient_quota"),
        (turns.overloaded(), openai.InternalServerError, None),
        (turns.context_too_long(), openai.BadRequestError, "context_length_exceeded"),
        (turns.error(401, "bad key", code="invalid_api_key"), openai.AuthenticationError, "invalid_api_key"),
        (turns.error(403, "not yours"), openai.PermissionDeniedError, None),
        (turns.error(404, "no such model", code="model_not_found"), openai.NotFoundError, "model_not_found"),
        (turns.error(409, "conflict"), openai.ConflictError, None),
        (turns.error(422, "no"), openai.UnprocessableEntityError, None),
        (turns.error(500), openai.InternalServerError, None),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_statuses_become_the_clients_errors(protocol_server, connect, turn, kind, code, stream):
    server = protocol_server(turn)
    with pytest.raises(kind) as caught:
        ask(connect(server), stream=stream)
    assert caught.value.code == code
    assert caught.value.status_code == turn.error.status
    assert turn.error.message in str(caught.value)


@pytest.mark.parametrize("value", [7, 0.25, "Wed, 21 Oct 2015 07:28:00 GMT"])
def test_retry_after_is_sent(protocol_server, connect, value):
    server = protocol_server(turns.rate_limited(value))
    with pytest.raises(openai.RateLimitError) as caught:
        ask(connect(server))
    assert caught.value.response.headers["retry-after"] == str(value)


def test_the_client_honours_retry_after(protocol_server, connect, monkeypatch):
    server = protocol_server(turns.rate_limited(7), turns.rate_limited(9), turns.text("at last"))
    slept = []
    monkeypatch.setattr("openai._base_client.time.sleep", slept.append)
    assert ask(connect(server, max_retries=2)) == "at last"
    assert slept == [7, 9]
    assert [r.headers["x-stainless-retry-count"] for r in server.requests] == ["0", "1", "2"]


def test_a_key_that_must_match(protocol_server, connect):
    server = protocol_server(turns.text("in"), api_key="right-key")
    with pytest.raises(openai.AuthenticationError):
        ask(connect(server, api_key="wrong-key"))
    assert ask(connect(server, api_key="right-key")) == "in"
    digests = [hashlib.sha256(key).hexdigest() for key in (b"wrong-key", b"right-key")]
    assert [r.credential_digest for r in server.requests] == digests
    recorded = "".join(r.model_dump_json() for r in server.requests)
    assert "right-key" not in recorded
    assert "wrong-key" not in recorded
    assert all("authorization" not in r.headers and r.credential_sent for r in server.requests)


def test_unknown_models_and_addresses(protocol_server, connect):
    server = protocol_server(models=("known",), default=turns.text("x"))
    client = connect(server)
    with pytest.raises(openai.NotFoundError, match="'m' does not exist"):
        ask(client)
    assert [model.id for model in client.models.list()] == ["known"]
    assert client.models.retrieve("known").id == "known"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("unknown")
    with pytest.raises(openai.NotFoundError, match="Invalid URL"):
        client.post("/no/such", cast_to=object, body={})


def test_context_limit(protocol_server, connect):
    server = protocol_server(default=turns.text("fits"), context_tokens=50)
    client = connect(server)
    assert ask(client) == "fits"
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "word " * 100}])
    assert caught.value.code == "context_length_exceeded"


def test_abrupt_cut_is_a_connection_error(protocol_server, connect):
    server = protocol_server(turns.cut(turns.text(TEXT), 3))
    stream = iter(connect(server).chat.completions.create(model="m", messages=USER, stream=True))
    assert [next(stream).choices[0].delta.content for _ in range(3)] == ["", TEXT[:12], TEXT[12:24]]
    with pytest.raises(openai.APIConnectionError):
        next(stream)


def test_quiet_cut_ends_without_a_finish_reason(protocol_server, connect):
    """The client raises nothing: whoever reads the stream must look for the finish reason."""
    server = protocol_server(turns.cut(turns.text(TEXT), 2, quiet=True))
    chunks = list(connect(server).chat.completions.create(model="m", messages=USER, stream=True))
    assert len(chunks) == 2
    assert all(choice.finish_reason is None for chunk in chunks for choice in chunk.choices)


def test_error_inside_a_stream(protocol_server, connect):
    reply = ErrorReply(status=500, message="lost a worker", code="server_error")
    server = protocol_server(turns.text(TEXT, cut=Cut(after=2, how="error", error=reply)))
    with pytest.raises(openai.APIError, match="lost a worker"):
        read_stream(connect(server))


def test_malformed_event(protocol_server, connect):
    server = protocol_server(turns.malformed_sse(turns.text(TEXT), 2), turns.malformed_json())
    for _ in range(2):
        with pytest.raises(json.JSONDecodeError):
            read_stream(connect(server))


def test_malformed_bodies(protocol_server, connect):
    server = protocol_server(
        turns.malformed_json(),
        Turn(fault="empty_body"),
        turns.cut(turns.text(TEXT), 20, quiet=True),
        turns.cut(turns.text(TEXT), 20),
    )
    client = connect(server)
    for _ in range(3):
        with pytest.raises((json.JSONDecodeError, openai.APIError)):
            ask(client)
    with pytest.raises(openai.APIConnectionError):
        ask(client)


def test_wrong_content_type_is_text_to_the_client(protocol_server, connect):
    """The client hands the page out as text: the caller must look at what it got."""
    server = protocol_server(turns.wrong_content_type())
    got = connect(server).chat.completions.create(model="m", messages=USER)
    assert isinstance(got, str)
    assert "It works!" in got


def test_reset_connection_and_the_next_call(protocol_server, connect):
    server = protocol_server(turns.reset(), turns.text("again"))
    client = connect(server)
    with pytest.raises(openai.APIConnectionError):
        ask(client)
    assert ask(client) == "again"


def test_time_out_of_a_server_that_hangs(protocol_server, connect):
    server = protocol_server(turns.hang(), turns.text("later"))
    client = connect(server, timeout=0.05)
    with pytest.raises(openai.APITimeoutError):
        ask(client)
    assert ask(client, timeout=30) == "later"


def test_time_out_in_the_middle_of_a_stream(protocol_server, connect):
    server = protocol_server(turns.text(TEXT, hold="never released", hold_at=2))
    with pytest.raises(openai.APITimeoutError):
        read_stream(connect(server, timeout=0.05))


def test_a_gate_holds_until_it_is_released(protocol_server, connect):
    server = protocol_server(turns.text("slow", hold="gate"), turns.text("quick"))
    client = connect(server)
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(ask, client)
        while not server.requests:
            threading.Event().wait(0.001)
        assert ask(client) == "quick"
        assert not held.done()
        server.release("gate")
        assert held.result(timeout=30) == "slow"


def test_delays_pass_on_the_servers_clock(protocol_server, connect):
    clock = ManualClock()
    server = protocol_server(turns.slow(turns.text("ab", chunk_chars=1), before_s=3600, between_s=60), clock=clock)
    client = connect(server)
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read_stream, client)
        clock.until_waiting()
        clock.advance(3600)
        for _ in range(5):  # role, a, b, finish, [DONE]
            clock.until_waiting()
            assert not reading.done()
            clock.advance(60)
        assert reading.result(timeout=30) == "ab"
    assert clock.now == 3600 + 5 * 60


def test_closing_ends_what_waits(connect):
    """No thread outlives the server, whatever its turns wait for."""
    before = threading.active_count()
    clock = ManualClock()
    waiting = (turns.hang(), turns.text("x", hold="never"), turns.slow(turns.text("x"), before_s=1e9))
    with ThreadPoolExecutor(3) as pool:
        with ProtocolServer(Script.of(*waiting), clock=clock) as server:
            client = connect(server)
            calls = [pool.submit(ask, client) for _ in waiting]
            clock.until_waiting()
            while len(server.requests) < 3:
                threading.Event().wait(0.001)
        for call in calls:
            assert isinstance(call.exception(timeout=30), openai.APIConnectionError)
    assert threading.active_count() == before


def test_a_client_that_leaves_is_no_defect(protocol_server, connect):
    server = protocol_server(turns.text("x" * 50, chunk_chars=1, hold="gate", hold_at=3), turns.text("fine"))
    client = connect(server)
    stream = client.chat.completions.create(model="m", messages=USER, stream=True)
    next(iter(stream))
    stream.close()
    server.release("gate")
    assert ask(client) == "fine"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
KEYS = ("messages", "input", "tools", "response_format", "stream_options", "text", "max_tokens", "system", "n")
BODY = st.dictionaries(st.sampled_from(KEYS), JSON | st.lists(st.fixed_dictionaries({"role": st.just("user")})))


@given(
    body=BODY,
    path=st.sampled_from(["chat/completions", "responses", "messages", "embeddings", "messages/count_tokens"]),
)
@settings(max_examples=150, deadline=None)
def test_no_body_breaks_the_server(fuzzed, body, path):
    client, server = fuzzed
    response = client._client.post(f"{server.base_url}/{path}", json={"model": "m", **body})
    assert response.status_code in (200, 400)
    response.json()


@pytest.fixture(scope="module")
def fuzzed():
    script = Script(default=turns.text("ok"))
    with ProtocolServer(script) as server, openai.OpenAI(base_url=server.base_url, api_key="k") as client:
        yield client, server


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b"\xff\xfe", b'"text"'])
def test_bodies_that_are_no_json_object(protocol_server, body):
    import http.client

    server = protocol_server(turns.text("never"))
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("POST", "/v1/chat/completions", body)
    response = connection.getresponse()
    assert response.status == 400
    assert "JSON" in json.load(response)["error"]["message"]
    connection.close()


@pytest.mark.parametrize("encode", ["gzip", "chunked"])
def test_encoded_requests(protocol_server, encode):
    import gzip
    import http.client

    server = protocol_server(turns.text("read"))
    body = json.dumps({"model": "m", "messages": USER}).encode()
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    if encode == "gzip":
        connection.request("POST", "/v1/chat/completions", gzip.compress(body), {"content-encoding": "gzip"})
    else:
        connection.request(
            "POST",
            "/v1/chat/completions",
            iter([body[:9], body[9:]]),
            encode_chunked=True,
            headers={"transfer-encoding": "chunked"},
        )
    answer = json.load(connection.getresponse())
    assert answer["choices"][0]["message"]["content"] == "read"
    assert server.requests[0].body == {"model": "m", "messages": USER}
    connection.close()
