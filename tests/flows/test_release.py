"""`expbench release`: what is approved goes out, answers apart, with its history; nothing else does."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import tarfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from pyarrow import parquet
from typer.testing import CliRunner

from flows.cli import app
from flows.release import ReleaseOptions, ReleaseResult, release
from flows.release_gate import check_public
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.formats.huggingface import canary_of, read_head, read_release, read_tables
from pipeline.paper import Box
from pipeline.store import Workspace
from pipeline.task import (
    CodeEvidence,
    DesignVariable,
    Hyperparameter,
    Requirement,
    Review,
    SourceScript,
    Status,
    Task,
    TextEvidence,
    Usage,
    ValidationReport,
    Verdict,
)
from tests.flows.support import empty_workspace
from tests.pipeline.test_store import SECRET, make_task

PRIVATE = "zq-private"
"""Begins every text of the ground truth in these tests."""


def secret_task(task_id: str = "paper-table-1-accuracy") -> Task:
    """A task with a marked text in every private field."""
    task = make_task(task_id)
    quote = TextEvidence(page=2, box=Box(0, 0, 1, 1), quote=f"{PRIVATE} quote that was evidence")
    (claim,) = task.truth.expected.claims
    truth = task.truth.evolve(
        expected=task.truth.expected.evolve(
            text=f"{PRIVATE} outcome: ours reaches {SECRET}.", claims=(claim.evolve(evidence=(quote,)),)
        ),
        constant=(DesignVariable(name=f"{PRIVATE} constant", values=(f"{PRIVATE} value",)),),
        sources=(SourceScript(path=f"{PRIVATE}/run.py", role="entry", score=0.9, reasons=(f"{PRIVATE} reason",)),),
        requirements=(
            Requirement(
                text=f"{PRIVATE} requirement of the method",
                spans=(CodeEvidence(path=f"{PRIVATE}/run.py", start=1, end=9),),
            ),
        ),
        usage=(Usage(argv=("python", f"{PRIVATE}/run.py", "--flag", "no")),),
        hyperparameters=(Hyperparameter(name=f"{PRIVATE} rate", value=f"{PRIVATE} 0.1", source="default"),),
    )
    return task.evolve(
        truth=truth,
        confidence=0.5,
        evidence={"expected": (quote,)},
        reviews=(
            Review(reviewer="Ada", decision="send_back", comment=f"{PRIVATE} comment", at="2026-01-02T03:04:05+00:00",
                   changes=(("expected", f"{PRIVATE} change"),)),
        ),
        validation=ValidationReport(verdict=Verdict.PASS, reason=f"{PRIVATE} validation", sandbox="docker"),
    )  # fmt: skip


def add(workspace: Workspace, task: Task) -> Task:
    workspace.save_task(task)
    masked = workspace.masked_repository(task.id)
    masked.mkdir(exist_ok=True)
    (masked / "left.py").write_text("print('starter code')\n")
    (masked / ".git").mkdir(exist_ok=True)
    pictures = workspace.task_dir(task.id) / "evidence"
    pictures.mkdir(exist_ok=True)
    told = PngInfo()
    told.add_text("Comment", f"{PRIVATE} picture")
    Image.new("RGB", (8, 8), "red").save(pictures / "1.png", pnginfo=told)
    return task


def filled(root: Path) -> Workspace:
    workspace = empty_workspace(root)
    add(workspace, secret_task())
    add(workspace, make_task("paper-table-2-rejected", Status.REJECTED))
    unlicensed = make_task("paper-table-3-other")
    add(workspace, unlicensed.evolve(repository=unlicensed.repository.evolve(license=None)))
    return workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return filled(tmp_path / "work")


@pytest.fixture
def released(workspace: Workspace, tmp_path: Path) -> ReleaseResult:
    """A release of `workspace` that a test may change."""
    return release(workspace, out=tmp_path / "out", accept_all=True, name="demo")


class Made(NamedTuple):
    """A workspace and its release, only read."""

    workspace: Workspace
    result: ReleaseResult
    directory: Path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    root = tmp_path_factory.mktemp("made")
    workspace = filled(root / "work")
    result = release(workspace, out=root / "out", accept_all=True, name="demo")
    return Made(workspace, result, result.directory)


def load(directory: Path, config: str | None, cache: Path) -> Any:
    import datasets

    return datasets.load_dataset(str(directory), config, cache_dir=str(cache))["test"]


def test_nothing_is_released_that_nobody_approved(workspace: Workspace) -> None:
    with pytest.raises(ExpbenchError, match="2 release candidate") as caught:
        release(workspace, out=None, accept_all=False, name=None)
    assert caught.value.kind is FailureKind.NOTHING_TO_RELEASE
    assert not (workspace.root / "release").exists()


@pytest.mark.parametrize("accept_all", [False, True])
def test_a_task_without_a_method_is_refused(workspace: Workspace, accept_all: bool) -> None:
    status = Status.MASKED if accept_all else Status.APPROVED
    workspace.save_task(workspace.load_task("paper-table-3-other").evolve(method=" ", status=status))
    with pytest.raises(ExpbenchError, match="paper-table-3-other: its method is empty") as caught:
        release(workspace, out=None, accept_all=accept_all, name=None)
    assert caught.value.kind is FailureKind.RECORD_INVALID
    assert "expbench review" in (caught.value.next_step or "")
    assert not (workspace.root / "release").exists()


def test_the_data_set_is_read_by_datasets_with_the_answers_apart(made: Made, tmp_path: Path) -> None:
    released = made.result
    assert released.tasks == 2
    assert released.withheld == (("paper-table-2-rejected", "rejected"),)
    assert released.configs == ("tasks", "truth", "experiment", "experiment-truth")
    tasks = load(released.directory, None, tmp_path / "cache")
    truth = load(released.directory, "truth", tmp_path / "cache")
    assert tasks["id"] == truth["id"] == ["paper-table-1-accuracy", "paper-table-3-other"]
    assert tasks.features == load(released.directory, "experiment", tmp_path / "cache").features
    assert PRIVATE not in str(tasks.to_list())
    row = truth[0]
    assert row["claims"][0]["value"] == 87.3
    assert (row["claims"][0]["low"], row["claims"][0]["high"]) == (87.25, 87.35)
    assert row["source"] == [f"{PRIVATE}/run.py"]
    assert row["usage"][0]["argv"][-1] == "no"
    assert row["reviews"][-1]["reviewer"] == "rule: --accept-all"
    assert row["evidence_images"][0].size == (8, 8)
    assert row["evidence_images"][0].text["Comment"] == f"{PRIVATE} picture"


def test_what_is_read_back_equals_what_was_released(made: Made) -> None:
    workspace, released = made.workspace, made.result
    stored = [task for task in workspace.tasks() if task.status is Status.RELEASED]
    assert read_release(released.directory) == stored
    _, private = read_tables(released.directory)
    picture = workspace.task_dir("paper-table-1-accuracy") / "evidence" / "1.png"
    assert private["paper-table-1-accuracy"]["evidence_images"] == [{"bytes": picture.read_bytes(), "path": "1.png"}]


def test_a_release_is_imported_to_equal_tasks(made: Made, tmp_path: Path) -> None:
    arguments = ["import", "release", made.directory, "--out", tmp_path / "tasks", "--json"]
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    value = json.loads(result.stdout)
    assert (value["tasks"], value["papers"], value["version"], value["errors"]) == (2, 1, "1.0.0", 0)
    stored = [task for task in made.workspace.tasks() if task.status is Status.RELEASED]
    assert Workspace(tmp_path / "tasks").tasks() == stored
    first = stored[0].id
    picture = made.workspace.task_dir(first) / "evidence" / "1.png"
    assert (tmp_path / "tasks" / "tasks" / first / "evidence" / "1.png").read_bytes() == picture.read_bytes()
    again = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert json.loads(again.stdout) == value
    foreign = CliRunner().invoke(app, ["import", "release", str(made.directory), "--out", str(made.workspace.root)])
    assert isinstance(foreign.exception, ExpbenchError)
    assert foreign.exception.kind is FailureKind.WORKSPACE_CONFLICT


def readable(path: Path) -> list[bytes]:
    """The bytes of a file, and everything that is packed in it."""
    data = path.read_bytes()
    found = [data]
    if path.suffix == ".parquet":
        table = parquet.read_table(path)
        found += [json.dumps(table.to_pylist(), default=repr).encode(), str(table.schema.metadata).encode()]
    elif path.suffix == ".gz":
        found.append(gzip.decompress(data))
    elif path.suffix == ".png":
        with Image.open(io.BytesIO(data)) as picture:
            found += [str(picture.info).encode(), picture.tobytes()]
        chunks = data.split(b"IDAT")[1:]
        found.append(b"".join(zlib.decompressobj().decompress(chunk) for chunk in chunks[:1]))
    return found


def test_no_answer_is_in_the_public_part_card_images_or_metadata(made: Made) -> None:
    released = made.result
    wanted = [PRIVATE.encode(), canary_of("demo").encode(), SECRET.encode(), b"87.25"]
    files = [path for path in released.directory.rglob("*") if path.is_file()]
    public = [path for path in files if "private" not in path.relative_to(released.directory).parts]
    kinds = {path.suffix for path in public}
    assert {".md", ".json", ".parquet", ".gz", ".png"} <= kinds
    for path in public:
        for data in readable(path):
            assert not [text for text in wanted if text in data], path
    private = [path for path in files if path not in public]
    assert {path.name for path in private} == {"README.md", "expbench-release.json", "experiment.parquet"}
    for path in private:  # whoever finds one of these in the wild can tell what it is
        assert any(canary_of("demo").encode() in data for data in readable(path)), path


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("README.md", f"As it turns out, {PRIVATE} requirement of the method."),
        ("CHANGELOG.md", f"Now right: {PRIVATE} outcome:\n ours reaches {SECRET}."),
        ("README.md", f"Best accuracy of ours: {SECRET} %"),
        ("images/new.txt", canary_of("demo")),
        ("README.md", f"{PRIVATE} quote that was evidence"),
    ],
)
def test_the_gate_finds_an_answer_in_a_public_file(made: Made, tmp_path: Path, place: str, text: str) -> None:
    tasks = [made.workspace.load_task("paper-table-1-accuracy")]
    copy = tmp_path / "copy"
    shutil.copytree(made.directory, copy)
    check_public(copy, tasks, "demo")
    path = copy / place
    path.write_text((path.read_text() if path.exists() else "") + text)
    with pytest.raises(ExpbenchError) as caught:
        check_public(copy, tasks, "demo")
    assert caught.value.kind is FailureKind.LEAK_FOUND
    assert caught.value.object == place


def test_a_release_that_leaks_is_not_written_and_the_earlier_one_stays(
    workspace: Workspace, released: ReleaseResult
) -> None:
    before = (released.directory / "README.md").read_bytes()
    leaky = secret_task("paper-table-4-leaky")
    add(workspace, leaky.evolve(question=f"Does ours reach an accuracy of {SECRET}% with this method?"))
    with pytest.raises(ExpbenchError) as caught:
        release(workspace, out=released.directory, accept_all=True, name="demo")
    assert caught.value.kind is FailureKind.LEAK_FOUND
    assert (released.directory / "README.md").read_bytes() == before
    assert len(read_release(released.directory)) == 2


def test_a_masked_repository_is_shipped_only_where_its_licence_allows(made: Made) -> None:
    released = made.result
    archives = list((released.directory / "repositories").iterdir())
    assert [path.name for path in archives] == ["paper-table-1-accuracy.tar.gz"]
    with tarfile.open(archives[0]) as archive:
        assert archive.getnames() == ["left.py"]
    rows, _ = read_tables(released.directory)
    assert rows["paper-table-1-accuracy"]["masked_repository"] == "repositories/paper-table-1-accuracy.tar.gz"
    assert rows["paper-table-3-other"]["masked_repository"] is None


def test_a_second_release_replaces_the_first_and_nothing_else(workspace: Workspace, released: ReleaseResult) -> None:
    first = {path: path.read_bytes() for path in released.directory.rglob("*") if path.is_file()}
    second = release(workspace, out=released.directory, accept_all=False, name=None)
    assert second.tasks == 2
    assert second.version == "1.0.0"
    assert {path: path.read_bytes() for path in released.directory.rglob("*") if path.is_file()} == first
    assert {task.status for task in workspace.tasks()} == {Status.RELEASED, Status.REJECTED}
    foreign = workspace.root.parent / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("years of work")
    with pytest.raises(ExpbenchError) as caught:
        release(workspace, out=foreign, accept_all=False, name=None)
    assert caught.value.kind is FailureKind.WORKSPACE_CONFLICT
    assert (foreign / "thesis.tex").read_text() == "years of work"


def test_versions_say_what_was_added_repaired_and_withdrawn(workspace: Workspace, released: ReleaseResult) -> None:
    out = released.directory
    assert [change.task for change in released.added] == ["paper-table-1-accuracy", "paper-table-3-other"]
    other = workspace.load_task("paper-table-3-other")
    repaired = other.evolve(
        method="Train each method twice.", truth=secret_task().truth, reviews=(), status=Status.MASKED
    )
    workspace.save_task(repaired)
    second = release(workspace, out=out, accept_all=True, name=None)
    assert (second.version, second.added, second.withdrawn) == ("1.0.1", (), ())
    assert [(item.task, item.what) for item in second.repaired] == [(other.id, ("method", "ground truth"))]
    gone = workspace.load_task(other.id)
    workspace.save_task(gone.evolve(status=Status.WITHDRAWN, status_reason=f"{PRIVATE}: observed {SECRET} only"))
    add(workspace, make_task("paper-table-5-new"))
    third = release(workspace, out=out, accept_all=True, name=None)
    assert third.version == "1.1.0"
    assert [item.task for item in third.added] == ["paper-table-5-new"]
    assert [(item.task, item.what) for item in third.withdrawn] == [(other.id, ("withdrawn by its curators",))]
    log = (out / "CHANGELOG.md").read_text()
    assert log.index("## 1.1.0") < log.index("## 1.0.1") < log.index("## 1.0.0")
    assert PRIVATE not in log
    assert [entry.version for entry in read_head(out).versions] == ["1.1.0", "1.0.1", "1.0.0"]


def test_a_version_can_be_given_and_must_be_a_later_one(workspace: Workspace, released: ReleaseResult) -> None:
    for version in ("0.9.0", "two"):
        with pytest.raises(ExpbenchError) as caught:
            release(
                workspace, out=released.directory, accept_all=False, name=None, options=ReleaseOptions(version=version)
            )
        assert caught.value.kind is FailureKind.USAGE
    options = ReleaseOptions(version="2.0.0")
    assert release(workspace, out=released.directory, accept_all=False, name=None, options=options).version == "2.0.0"


def test_a_dry_run_changes_nothing(workspace: Workspace, tmp_path: Path) -> None:
    options = ReleaseOptions(dry_run=True)
    result = release(workspace, out=tmp_path / "out", accept_all=True, name="demo", options=options)
    assert (result.tasks, result.version, result.dry_run) == (2, "1.0.0", True)
    assert not (tmp_path / "out").exists()
    assert {task.status for task in workspace.tasks()} == {Status.MASKED, Status.REJECTED}


def test_an_open_set_is_one_part_and_says_so(workspace: Workspace, tmp_path: Path) -> None:
    options = ReleaseOptions(layout="open", images=False)
    result = release(workspace, out=tmp_path / "open", accept_all=True, name="demo", options=options)
    assert not (result.directory / "private").exists()
    assert load(result.directory, "truth", tmp_path / "cache")[0]["evidence_images"] == []
    assert len(read_release(result.directory)) == 2
    card = (result.directory / "README.md").read_text()
    assert canary_of("demo") in card
    assert "open set" in card
    with pytest.raises(ExpbenchError, match="no private part"):
        release(workspace, out=None, accept_all=False, name=None,
                options=ReleaseOptions(layout="open", push_private="me/x"))  # fmt: skip


def test_several_workspaces_become_one_data_set(workspace: Workspace, tmp_path: Path) -> None:
    other = empty_workspace(tmp_path / "second")
    task = make_task("second-table-1")
    add(other, task.evolve(paper=task.paper.evolve(id="second", title="Second | paper [x](http://evil)")))
    result = release([workspace, other], out=tmp_path / "bench", accept_all=True, name=None)
    assert result.tasks == 3
    card = (result.directory / "README.md").read_text()
    assert "# bench" in card
    assert "| papers | 2 |" in card
    assert "Second \\| paper \\[x\\](http://evil)" in card
    add(other, make_task("paper-table-1-accuracy"))
    with pytest.raises(ExpbenchError, match="is a task of both"):
        release([workspace, other], out=tmp_path / "bench", accept_all=True, name=None)


def test_the_card_says_licences_citation_and_how_the_tasks_were_approved(workspace: Workspace, tmp_path: Path) -> None:
    options = ReleaseOptions(license="CC-BY-4.0", paper_licenses={"paper": "CC-BY-SA-4.0"})
    result = release(workspace, out=tmp_path / "out", accept_all=True, name="demo", options=options)
    card = (result.directory / "README.md").read_text()
    assert "license: cc-by-4.0" in card
    assert "rule: --accept-all: 2 task(s)" in card
    assert "- Ada: 1 task(s)" in card
    assert "| CC-BY-SA-4.0 | code at `aaaaaaaaaaaa` | MIT | files included |" in card
    assert "@misc{demo," in card
    assert "title = {On: things that look like YAML - no, 1.0 #really}" in card
    for name in ("tasks-by-paper", "tasks-by-venue", "requirements-by-task"):
        assert f"images/{name}.png" in card
        with Image.open(result.directory / "images" / f"{name}.png") as picture:
            assert picture.width == 1440
