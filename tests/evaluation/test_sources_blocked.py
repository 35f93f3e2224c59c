"""Published tasks without a repository at hand, evaluated for real with a scripted agent: blocked, never 0."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evaluation.scores import EpisodeScores, EpisodeStatus
from flows.cli import app

PUBLISHED = Path(__file__).parents[3] / "shared" / "data" / "exp-bench"


@pytest.mark.docker
@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published data is not at hand")
def test_published_tasks_are_blocked_not_zero(tmp_path: Path) -> None:
    script = tmp_path / "agent.sh"
    script.write_text("echo nothing to do\n")
    out = str(tmp_path / "tasks")
    imported = CliRunner().invoke(app, ["import", "exp-bench", str(PUBLISHED), "--out", out, "--json"])
    assert imported.exit_code == 0, imported.output
    arguments = ["evaluate", out, "--agent", "command", "--agent-option", f"script={script}", "--json"]
    arguments += ["--tasks", "iclr2024-17666-*", "--out", str(tmp_path / "run")]
    result = CliRunner().invoke(app, arguments)
    value = json.loads(result.stdout.strip().splitlines()[-1])
    assert value["blocked"] == value["episodes"] > 0
    rows = [EpisodeScores.model_validate(row) for row in value["rows"]]
    for row in rows:
        assert row.status is EpisodeStatus.BLOCKED
        assert "not at hand" in row.reason
        assert (row.monitor, row.design, row.implementation, row.execution, row.conclusion) == (None,) * 5
