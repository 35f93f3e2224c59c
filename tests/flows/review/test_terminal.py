"""`expbench review` as its users meet it, and that the commands around Prefect start without importing it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from flows.cli import app
from pipeline.errors import ExpbenchError
from pipeline.store import Workspace
from pipeline.task import Status
from tests.flows.review.support import candidate, review_workspace

ROOT = Path(__file__).resolve().parents[3]
FIRST, SECOND = "paper-table-1-accuracy", "paper-table-2-f1"


def expbench(*arguments: object, stdin: str = "") -> Any:
    """A command, in this process: starting another one for each took longer than all of them."""
    done = CliRunner().invoke(app, [str(item) for item in arguments], input=stdin)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return review_workspace(tmp_path / "work", candidate(FIRST), candidate(SECOND, confidence=0.4))


@pytest.mark.parametrize("command", ["up", "down", "review"])
def test_every_command_explains_itself_with_an_example(command: str) -> None:
    done = expbench(command, "--help")
    assert done.exit_code == 0
    assert f"expbench {command}" in done.stdout


def test_the_command_line_starts_without_prefect() -> None:
    code = "import sys, flows.cli; print([name for name in sys.modules if name.split('.')[0] == 'prefect'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_the_queue_is_listed_by_risk(workspace: Workspace) -> None:
    shown = expbench("review", workspace.root, "--list")
    assert shown.exit_code == 0
    assert shown.stdout.index(SECOND) < shown.stdout.index(FIRST)
    assert "confidence 0.40" in shown.stdout
    told = json.loads(expbench("review", workspace.root, "--json").stdout)
    assert [entry["task"] for entry in told] == [SECOND, FIRST]


def test_a_decision_with_options_and_one_that_is_asked_for(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ExpbenchError, match="needs a comment") as caught:
        expbench("review", workspace.root, FIRST, "--decision", "reject", "--reviewer", "Ada")
    assert caught.value.exit_code == 2
    question = "question=Which method is best?"
    done = expbench("review", workspace.root, FIRST, "--decision", "edit", "--reviewer", "Ada", "--edit", question)
    assert done.exit_code == 0
    assert workspace.load_task(FIRST).question == "Which method is best?"
    monkeypatch.chdir(workspace.root)
    inside = expbench("review", "table-2-f1", stdin="reject\nwrong table\nGrace\n")
    assert "87.3" in inside.stderr, "the task is shown with its truth before the decision is asked for"
    assert workspace.load_task(SECOND).status is Status.REJECTED
    assert workspace.load_task(SECOND).reviews[0].reviewer == "Grace"


@pytest.mark.parametrize("edit", ["question", "answer=x", "=x"])
def test_an_edit_names_a_field_and_a_text(workspace: Workspace, edit: str) -> None:
    with pytest.raises(ExpbenchError, match="is not FIELD=TEXT"):
        expbench("review", workspace.root, FIRST, "--decision", "edit", "--reviewer", "Ada", "--edit", edit)


def test_bulk_approval_says_its_rule(workspace: Workspace) -> None:
    done = expbench("review", workspace.root, "--approve-where", "confidence>=0.9", "--json")
    assert json.loads(done.stdout) == {"rule": "confidence>=0.9", "approved": [FIRST], "waiting": [SECOND]}


def test_the_number_of_reviewers_is_kept(workspace: Workspace) -> None:
    shown = expbench("review", workspace.root, "--reviewers", "2")
    assert "2 reviewers must agree" in shown.stdout
    expbench("review", workspace.root, FIRST, "--decision", "approve", "--reviewer", "Ada")
    assert workspace.load_task(FIRST).status is Status.MASKED
