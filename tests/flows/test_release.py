from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from flows.release import release
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.store import Workspace
from pipeline.task import Status
from tests.flows.support import empty_workspace
from tests.pipeline.test_store import SECRET, make_task


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    workspace = empty_workspace(tmp_path / "work")
    for task in (
        make_task(),
        make_task("paper-table-2-rejected", Status.REJECTED),
        make_task("paper-table-3-other").evolve(
            repository=make_task().repository.evolve(license=None),
        ),
    ):
        workspace.save_task(task)
        masked = workspace.masked_repository(task.id)
        masked.mkdir()
        (masked / "left.py").write_text("print('starter code')\n")
        (masked / ".git").mkdir()
    return workspace


def load(directory: Path, config: str, cache: Path):  # type: ignore[no-untyped-def]
    import datasets

    return datasets.load_dataset(str(directory), config, cache_dir=str(cache))["test"]


def test_nothing_is_released_that_nobody_approved(workspace: Workspace) -> None:
    with pytest.raises(ExpbenchError, match="2 release candidate") as caught:
        release(workspace, out=None, accept_all=False, name=None)
    assert caught.value.kind is FailureKind.NOTHING_TO_RELEASE
    assert not (workspace.root / "release").exists()


def test_the_data_set_is_read_by_datasets_with_the_answers_apart(workspace: Workspace, tmp_path: Path) -> None:
    result = release(workspace, out=tmp_path / "out", accept_all=True, name="demo")
    assert result.tasks == 2
    assert result.withheld == (("paper-table-2-rejected", "rejected"),)
    tasks = load(result.directory, "tasks", tmp_path / "cache")
    truth = load(result.directory, "truth", tmp_path / "cache")
    assert tasks["id"] == truth["id"]
    assert sorted(tasks["id"]) == ["paper-table-1-accuracy", "paper-table-3-other"]
    assert SECRET not in str(tasks.to_list())
    assert "run secret.py" not in str(tasks.to_list())
    row = truth.to_list()[0]
    assert row["claims"][0]["value"] == 87.3
    assert (row["claims"][0]["low"], row["claims"][0]["high"]) == (87.25, 87.35)
    assert row["source"] == ["scripts/run secret.py"]
    assert row["usage"][0]["argv"][-1] == "no"
    assert row["reviews"][0]["reviewer"] == "rule: --accept-all"


def test_a_masked_repository_is_shipped_only_where_its_licence_allows(workspace: Workspace, tmp_path: Path) -> None:
    result = release(workspace, out=tmp_path / "out", accept_all=True, name=None)
    archives = list((result.directory / "repositories").iterdir())
    assert [path.name for path in archives] == ["paper-table-1-accuracy.tar.gz"]
    with tarfile.open(archives[0]) as archive:
        assert archive.getnames() == ["left.py"]
    rows = {row["id"]: row for row in load(result.directory, "tasks", tmp_path / "cache").to_list()}
    assert rows["paper-table-1-accuracy"]["masked_repository"] == "repositories/paper-table-1-accuracy.tar.gz"
    assert rows["paper-table-3-other"]["masked_repository"] is None


def test_a_second_release_replaces_the_first_and_nothing_else(workspace: Workspace, tmp_path: Path) -> None:
    first = release(workspace, out=tmp_path / "out", accept_all=True, name=None)
    second = release(workspace, out=tmp_path / "out", accept_all=False, name=None)
    assert first.tasks == second.tasks == 2
    assert {task.status for task in workspace.tasks()} == {Status.RELEASED, Status.REJECTED}
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("years of work")
    with pytest.raises(ExpbenchError) as caught:
        release(workspace, out=foreign, accept_all=False, name=None)
    assert caught.value.kind is FailureKind.WORKSPACE_CONFLICT
    assert (foreign / "thesis.tex").read_text() == "years of work"


def test_the_card_says_how_the_tasks_were_approved(workspace: Workspace, tmp_path: Path) -> None:
    release(workspace, out=tmp_path / "out", accept_all=True, name="demo")
    card = (tmp_path / "out" / "README.md").read_text()
    assert "rule: --accept-all: 2 task(s)" in card
    assert SECRET not in card
