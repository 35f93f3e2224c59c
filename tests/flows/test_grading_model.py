"""The judging model of `expbench judge`: its options, its budget over several processes, its recorded answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli import app
from flows.engines import ModelOptions
from flows.grading_model import grading_model, recorded_model
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm import CacheMode, Request, user
from tests.doubles.protocol_server import Turn
from tests.llm_fixtures import Serve, no_ambient_model, protocol_server

__all__ = ["no_ambient_model", "protocol_server"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--budget-usd", "1"], "--budget-usd: means something with --judge model only"),
        (["--replay"], "Add --judge model"),
        (["--model", "m"], "--model: means"),
        (["--judge", "model", "--replay", "--refresh"], "only one of them"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: list[str], words: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["judge", str(tmp_path), *options])
    assert isinstance(result.exception, ExpbenchError)
    assert result.exception.kind is FailureKind.USAGE
    assert words in str(result.exception)


def test_the_keyless_judge_needs_no_model(tmp_path: Path, no_ambient_model: None) -> None:
    with grading_model("keyless", ModelOptions(), tmp_path) as client:
        assert client is None
    assert list(tmp_path.iterdir()) == []


def test_a_second_process_knows_what_the_first_one_spent_and_asked(
    protocol_server: Serve, no_ambient_model: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server = protocol_server(Turn(text="yes"), Turn(text="no"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test")
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    options = ModelOptions(name="scripted", max_calls=1)
    for _ in range(2):
        with grading_model("model", options, tmp_path) as client:
            assert client is not None
            assert client.chat(Request(messages=(user("Is it met?"),))).text == "yes"
    assert len(server.requests) == 1
    with (
        recorded_model(options, tmp_path / "judge", "judge") as client,
        pytest.raises(ExpbenchError) as caught,
    ):
        client.chat(Request(messages=(user("And this one?"),)))
    assert caught.value.kind is FailureKind.BUDGET_EXCEEDED
    replay = ModelOptions(name="scripted", cache=CacheMode.REPLAY)
    with recorded_model(replay, tmp_path / "judge", "judge") as client, pytest.raises(ExpbenchError) as caught:
        client.chat(Request(messages=(user("Never asked."),)))
    assert caught.value.kind is FailureKind.REPLAY_MISS
