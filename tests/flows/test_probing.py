"""`expbench probe` over real HTTP: answers are compared, refusals are unknown, nothing of the truth is sent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli import app
from pipeline.errors import ExpbenchError, FailureKind
from tests.doubles.protocol_server.turns import refusal, structured
from tests.llm_fixtures import Serve, no_ambient_model, protocol_server

__all__ = ["no_ambient_model", "protocol_server"]

RECORD = {
    "question": "Does it help?",
    "method": "CANARY-METHOD",
    "expected_outcome": "CANARY-TRUTH",
    "design_complexity": {"constant_variables": {"a": "1"}},
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    place = tmp_path / "data" / "iclr2024" / "7"
    place.mkdir(parents=True)
    (place / "7_complete_final.json").write_text(json.dumps({"questions": [RECORD, RECORD | {"question": "Another?"}]}))
    return tmp_path / "data"


def test_what_the_model_states_is_reported(
    source: Path, protocol_server: Serve, no_ambient_model: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answer = structured({"remembered": False, "conclusion": "I do not remember it.", "numbers": []})
    server = protocol_server(answer, refusal())
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test")
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    arguments = ["probe", str(source), "--model", "scripted", "--record", str(tmp_path / "record"), "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout.strip().splitlines()[-1])
    assert [probe["task"] for probe in value["probes"]] == ["iclr2024-7-00"]
    assert [task for task, _ in value["unknown"]] == ["iclr2024-7-01"]
    assert value["probes"][0]["grader"]["engine"] == "model"
    assert (value["hits"], value["chance"], value["remembered"]) == (None, None, 0)
    assert "CANARY" not in str([request.body for request in server.requests])


def test_a_pattern_without_tasks_is_refused(source: Path, no_ambient_model: None) -> None:
    result = CliRunner().invoke(app, ["probe", str(source), "--tasks", "x*", "--model", "m"])
    assert isinstance(result.exception, ExpbenchError)
    assert result.exception.kind is FailureKind.USAGE


def test_a_budget_stops_before_it_is_exceeded(
    source: Path, protocol_server: Serve, no_ambient_model: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answer = structured({"remembered": False, "conclusion": "I do not remember it.", "numbers": []})
    server = protocol_server(answer, answer)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test")
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    arguments = ["probe", str(source), "--model", "scripted", "--record", str(tmp_path / "record"), "--max-calls", "1"]
    for _ in range(2):  # the second time the first answer comes from the record, and its call counts
        result = CliRunner().invoke(app, arguments)
        assert isinstance(result.exception, ExpbenchError)
        assert result.exception.kind is FailureKind.BUDGET_EXCEEDED
    assert len(server.requests) == 1
