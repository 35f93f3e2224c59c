"""Bearer tokens: asked for by the server, sent to one address, refused without, and never on an open address."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from a2a.types import TaskState
from typer.testing import CliRunner

from evaluation.a2a.access import BearerAuth, declare_bearer, new_token, require_token_for, token_from
from evaluation.a2a.client import ask, card_of, state_name
from evaluation.a2a.messages import text_message
from evaluation.a2a.server import address, agent_card, running
from flows.cli import app
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.network.listening import listen
from tests.evaluation.a2a.test_exchange import Stranger, files

TOKEN = "a-token-of-enough-characters"


def test_a_request_without_the_token_is_refused_and_one_with_it_is_carried_out() -> None:
    listener = listen("127.0.0.1", 0)
    url = address(listener, "127.0.0.1")
    card = agent_card("gated", "a test", "none", ("test",), url)
    stranger = Stranger(files({"a.txt": "x"}))
    with running(stranger, card, listener, TOKEN):
        assert card_of(url).security_schemes["bearer"].http_auth_security_scheme.scheme == "bearer"
        for wrong in (None, "another-token-of-that-length", TOKEN + "x"):
            with pytest.raises(ExpbenchError) as caught:
                ask(url, text_message("work"), poll_s=0.05, most_s=20, token=wrong)
            assert caught.value.kind is FailureKind.AUTHENTICATION
        assert httpx.post(url, json={}).status_code == 401
        assert httpx.post(url, json={}, headers={"Authorization": f"Basic {TOKEN}"}).status_code == 401
        doubled = [("Authorization", f"Bearer {TOKEN}"), ("Authorization", "Bearer no")]
        assert httpx.post(url, json={}, headers=doubled).status_code == 401
        assert stranger.messages == []
        done = ask(url, text_message("work"), poll_s=0.05, most_s=20, token=TOKEN)
    assert state_name(done) == "completed"
    assert done.status.state == TaskState.TASK_STATE_COMPLETED


def test_a_token_goes_to_its_own_address_and_to_no_other() -> None:
    auth = BearerAuth("http://solver:9002/", TOKEN)
    sent = {}
    for url in ("http://solver:9002/x", "http://solver:9003/", "https://solver:9002/", "http://solver.evil:9002/"):
        request = next(auth.auth_flow(httpx.Request("POST", url)))
        sent[url] = request.headers.get("Authorization")
    assert [value for value in sent.values() if value] == [f"Bearer {TOKEN}"]
    assert sent["http://solver:9002/x"]


def test_an_open_address_needs_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for host in ("127.0.0.1", "localhost", "::1"):
        require_token_for(host, None)
    for host in ("0.0.0.0", "192.0.2.1", "solver.example", ""):
        require_token_for(host, TOKEN)
        with pytest.raises(ExpbenchError, match="can be reached by others"):
            require_token_for(host, None)
    monkeypatch.delenv("EXPBENCH_A2A_TOKEN", raising=False)
    (tmp_path / "source").mkdir()
    command = ["a2a", "green", str(tmp_path / "source"), "--out", str(tmp_path / "out"), "--port", "0"]
    refused = CliRunner().invoke(app, [*command, "--host", "0.0.0.0"])
    assert isinstance(refused.exception, ExpbenchError)
    assert refused.exception.kind is FailureKind.USAGE
    assert "EXPBENCH_A2A_TOKEN" in str(refused.exception)
    monkeypatch.setenv("EXPBENCH_A2A_WHITE_TOKEN", TOKEN)
    leaky = CliRunner().invoke(app, command)
    assert isinstance(leaky.exception, ExpbenchError)
    assert leaky.exception.kind is FailureKind.USAGE
    assert TOKEN not in f"{leaky.exception}{leaky.output}"


def test_where_a_token_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EXPBENCH_A2A_TOKEN", raising=False)
    assert token_from("EXPBENCH_A2A_TOKEN") is None
    monkeypatch.setenv("EXPBENCH_A2A_TOKEN", TOKEN)
    assert token_from("EXPBENCH_A2A_TOKEN") == TOKEN
    (tmp_path / "token").write_text(f"{TOKEN}2\n")
    assert token_from("EXPBENCH_A2A_TOKEN", tmp_path / "token") == f"{TOKEN}2"
    for bad in ("short", "", "with a space in the middle of it", "\u00e9" * 20):
        (tmp_path / "bad").write_text(bad)
        with pytest.raises(ExpbenchError) as caught:
            token_from("EXPBENCH_A2A_TOKEN", tmp_path / "bad")
        assert caught.value.kind is FailureKind.USAGE
        assert not bad or bad not in str(caught.value)
    with pytest.raises(ExpbenchError, match="cannot be read"):
        token_from("EXPBENCH_A2A_TOKEN", tmp_path / "none")
    assert len({new_token() for _ in range(5)}) == 5


def test_a_card_without_a_token_declares_none() -> None:
    plain = agent_card("plain", "a test", "none", ("test",), "http://x/")
    assert not plain.security_requirements
    declare_bearer(plain)
    assert list(plain.security_requirements[0].schemes) == ["bearer"]
