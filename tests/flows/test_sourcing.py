"""`expbench sources`, as it is called."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli import app
from pipeline.errors import ExpbenchError, FailureKind
from tests.pipeline.sources.api_server import Services, api_server

PUBLISHED = Path(__file__).parents[3] / "shared" / "data" / "exp-bench"


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Services]:
    with api_server() as found:
        for name, value in found.environment().items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("EXPBENCH_CACHE_DIR", str(tmp_path / "cache"))
        yield found


def call(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(item) for item in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def export(tmp_path: Path) -> Path:
    path = tmp_path / "iclr2024" / "conference_data.jsonl"
    path.parent.mkdir()
    rows = [
        {"id": "1", "title": "Fast Weights for Slow Learners", "code_url": "https://github.com/lab/fast-weights"},
        {"id": "2", "title": "A Theory Without Any Code"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_list_is_made_and_written(services: Services, export: Path, tmp_path: Path) -> None:
    out = tmp_path / "list.jsonl"
    value = json.loads(call("sources", export, "--look-up", "github", "--out", out, "--json"))
    assert [row["id"] for row in value["candidates"]] == ["iclr2024-1"]
    assert value["candidates"][0]["stars"] == 412
    assert value["candidates"][0]["repository"] == "https://github.com/lab/fast-weights"
    assert value["rejected"][0]["reasons"][0]["filter"] == "code"
    assert value["asked"] == {"github": 2}
    assert [json.loads(line) for line in out.read_text().splitlines()] == value["candidates"]
    text = call("sources", export, "--look-up", "github", "--offline")
    assert "Fast Weights" in text
    assert "rejected iclr2024-2: no public code is known" in text
    assert len(services.requests) == 2


def test_a_dry_run_and_the_filters_are_shown(services: Services, export: Path, tmp_path: Path) -> None:
    out = tmp_path / "list.jsonl"
    plan = json.loads(call("sources", export, "--look-up", "openalex", "--out", out, "--dry-run", "--json"))
    assert plan["requests"] == {"openalex": 1}
    assert not out.exists()
    assert services.requests == []
    filters = tmp_path / "filters.yaml"
    filters.write_text(call("sources", "--print-filters").replace("min_stars: 100", "min_stars: 413"))
    with pytest.raises(ExpbenchError, match="none of 2 paper") as caught:
        call("sources", export, "--look-up", "github", "--filters", filters)
    assert caught.value.kind is FailureKind.NOTHING_TO_RELEASE


@pytest.mark.parametrize("arguments", [[], ["x.jsonl", "--out", "list.csv"], ["x.jsonl", "--download"]])
def test_bad_usage_is_said(arguments: list[str]) -> None:
    with pytest.raises(ExpbenchError) as caught:
        call("sources", *arguments)
    assert caught.value.kind is FailureKind.USAGE


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published data is not on this machine")
def test_the_published_lists_pass_the_filters_that_made_them() -> None:
    rows = sorted(PUBLISHED.glob("*/conference_data.jsonl"))
    value = json.loads(call("sources", *rows, "--json"))
    assert len(value["candidates"]) == 16
    assert value["rejected"] == []
    scores = [row["score"] for row in value["candidates"]]
    assert scores == sorted(scores, reverse=True)
