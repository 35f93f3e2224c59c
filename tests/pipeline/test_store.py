from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.paper import Box, Paper
from pipeline.repository import RepositoryRef
from pipeline.store import Workspace
from pipeline.task import (
    Band,
    Condition,
    Expected,
    ExperimentTruth,
    Family,
    LeakReport,
    MaskedPath,
    NumericClaim,
    Provenance,
    PublicTask,
    SourceScript,
    Status,
    TableEvidence,
    Task,
    Usage,
    Verdict,
)

SECRET = "87.3"


def make_task(task_id: str = "paper-table-1-accuracy", status: Status = Status.MASKED) -> Task:
    cell = TableEvidence(label="Table 1", page=3, box=Box(1, 2, 3, 4), row=2, column=1, quote=SECRET)
    claim = NumericClaim(
        id="c1",
        metric="accuracy",
        value=87.3,
        text=SECRET,
        decimals=1,
        unit="%",
        conditions=(Condition(name="method", value="ours"),),
        band=Band(low=87.25, high=87.35, source="printed precision"),
        evidence=(cell,),
    )
    return Task(
        id=task_id,
        family=Family.EXPERIMENT,
        status=status,
        paper=Paper(id="paper", title="On: things that look like YAML - no, 1.0 #really"),
        repository=RepositoryRef(url="code", commit="a" * 40, license="MIT"),
        question="How do the methods compare in accuracy?",
        method="Train each method.\nThen test it.",
        provenance=Provenance(engine="keyless", created_at="2026-01-01T00:00:00+00:00"),
        truth=ExperimentTruth(
            expected=Expected(text=f"Ours reaches {SECRET}.", claims=(claim,)),
            sources=(SourceScript(path="scripts/run secret.py", role="entry", score=0.9),),
            usage=(Usage(argv=("python", "scripts/run secret.py", "--flag", "no")),),
        ),
        evidence={"expected": (cell,)},
        masked=(MaskedPath(path="README.md", action="removed", reason="states the result"),),
        leaks=LeakReport(verdict=Verdict.PASS, files=1, bytes=10, git_objects=3, checks=("exact",)),
    )


def test_a_task_is_read_back_as_it_was_saved(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    task = make_task()
    workspace.save_task(task)
    assert workspace.load_task(task.id) == task
    assert workspace.task_ids() == [task.id]


def test_what_an_agent_may_see_holds_no_ground_truth(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    task = make_task()
    workspace.save_task(task)
    public = (workspace.task_dir(task.id) / "task.yaml").read_text()
    assert SECRET not in public
    assert "run secret.py" not in public
    assert set(PublicTask.model_fields).isdisjoint({"truth", "evidence", "masked", "leaks", "validation", "reviews"})


def test_saving_again_changes_no_file(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.save_task(make_task())
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    before = [(path, path.stat().st_mtime_ns, path.stat().st_ino) for path in files]
    workspace.save_task(make_task())
    assert [(path, path.stat().st_mtime_ns, path.stat().st_ino) for path in files] == before


def test_a_stage_is_finished_only_for_the_key_it_was_finished_with(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    task = make_task()
    assert workspace.finished("t/mask", {"input": 1}, Task) is None
    workspace.finish("t/mask", {"input": 1}, task)
    assert workspace.finished("t/mask", {"input": 1}, Task) == task
    assert workspace.finished("t/mask", {"input": 2}, Task) is None


def test_a_record_that_was_cut_off_counts_as_not_finished(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.finish("mask", {"input": 1}, make_task())
    path = tmp_path / ".stages" / "mask.json"
    path.write_text(path.read_text()[:100])
    assert workspace.finished("mask", {"input": 1}, Task) is None


def test_an_unknown_task_names_those_that_exist(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.save_task(make_task())
    with pytest.raises(ExpbenchError, match="paper-table-1-accuracy") as caught:
        workspace.load_task("nothing")
    assert caught.value.kind is FailureKind.RECORD_INVALID


def test_a_directory_that_is_no_workspace_is_named(tmp_path: Path) -> None:
    with pytest.raises(ExpbenchError, match=r"no workspace\.json") as caught:
        Workspace(tmp_path).info()
    assert caught.value.exit_code == 5


def test_a_record_of_a_newer_version_is_refused_with_the_reason(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.save_task(make_task())
    path = workspace.task_dir("paper-table-1-accuracy") / "leaks.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema_version": 99}))
    with pytest.raises(ExpbenchError) as caught:
        workspace.load_task("paper-table-1-accuracy")
    assert caught.value.object == str(path)
