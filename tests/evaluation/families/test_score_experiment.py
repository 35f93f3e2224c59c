"""`expbench score experiment`: a submission of EXP-Bench's family judged without an episode."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evaluation.agents.oracle import oracle_response
from flows.cli import app
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.store import Inputs, Workspace, WorkspaceInfo
from pipeline.task import DesignVariable, Status, Task
from tests.evaluation.execution_support import make_task, public_task, truth


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """`tasks/<id>` of a workspace with one candidate."""
    found = Workspace(tmp_path / "workspace")
    inputs = Inputs(
        paper_sha256="0", repository="repository", commit="1" * 40, engine="keyless", sandbox="process", repeats=1,
        max_tasks=None,
    )  # fmt: skip
    found.write_info(WorkspaceInfo(inputs=inputs, paper_id="paper", created_at="2026-01-01", expbench="0"))
    facts = truth().evolve(independent=(DesignVariable(name="rule", values=("A", "B")),))
    public = public_task(id="paper-one", status=Status.MASKED)
    values = {field: getattr(public, field) for field in type(public).model_fields}
    found.save_task(Task.model_validate(values | {"truth": facts}))
    made = make_task(tmp_path / "made", {"library.py": "# kept\n"})
    assert made.masked_repository is not None
    made.masked_repository.rename(found.masked_repository("paper-one"))
    return found.task_dir("paper-one")


def test_a_response_is_judged(task: Path, tmp_path: Path) -> None:
    facts = Workspace(task.parent.parent).load_task("paper-one").truth
    submission = tmp_path / "submission"
    submission.mkdir()
    (submission / "response.json").write_text(oracle_response(facts).model_dump_json())
    (submission / "secret").symlink_to("/etc/passwd")
    for path in (submission, submission / "response.json"):
        arguments = ["score", "experiment", "--task", str(task), "--submission", str(path), "--json"]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        value = json.loads(result.stdout)
        # nothing of a bare response was run: what its design says is no evidence, where the task does not tell it
        assert (value["task"], value["family"], value["design"], value["conclusion"]) == (
            "paper-one", "experiment", None, 1,
        )  # fmt: skip
        assert value["judgement"]["grader"]["engine"] == "keyless"


def test_nothing_is_nothing_and_a_missing_file_is_said(task: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    base = ["score", "experiment", "--task", str(task), "--json", "--submission"]
    value = json.loads(CliRunner().invoke(app, [*base, str(tmp_path / "empty")]).stdout)
    assert (value["design"], value["conclusion"]) == (0, 0)
    assert any("there is none" in problem["message"] for problem in value["problems"])
    refused = CliRunner().invoke(app, [*base, str(tmp_path / "missing")])
    assert isinstance(refused.exception, ExpbenchError)
    assert refused.exception.kind is FailureKind.RECORD_INVALID
