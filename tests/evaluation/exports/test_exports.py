"""Exports: what the other harness shows its agent holds no ground truth, and its verifier grades as ours would."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from evaluation.exports.parts import CANARY
from evaluation.sources import load_tasks
from evaluation.trajectory import End, TrajectoryHead, Utterance
from evaluation.trajectory_io import TrajectoryWriter
from flows.cli import app
from flows.release import release
from pipeline.digests import tree_digest
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.formats.expbench import read_published
from pipeline.formats.huggingface import canary_of
from pipeline.progress import SilentReporter
from pipeline.store import Workspace
from tests.evaluation.exports.support import HIDDEN, RUN, small_workspace


def call(*arguments: object) -> Any:
    result = CliRunner().invoke(app, [str(item) for item in arguments] + ["--json"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return small_workspace(tmp_path_factory.mktemp("exports") / "work")


@pytest.fixture(scope="module")
def harbor(workspace: Workspace) -> Path:
    out = workspace.root.parent / "harbor"
    report = call("export", "harbor", workspace.root, out)
    assert report["tasks"] == ["paper-sound"]
    assert report["skipped"] == [
        ["paper-words", "its expected outcome states no number: nothing to verify without a judge"]
    ]
    assert report["without_oracle"] == []
    return out / "paper-sound"


def test_a_harbor_task_is_complete_and_its_agent_sees_no_ground_truth(harbor: Path) -> None:
    config = tomllib.loads((harbor / "task.toml").read_text())
    assert config["task"]["name"] == "expbench/paper-sound"
    assert config["environment"]["network_mode"] == "no-network"
    assert config["verifier"]["timeout_sec"] > config["agent"]["timeout_sec"] == 2400.0
    build = (harbor / "environment" / "Dockerfile").read_text().splitlines()
    assert build[0] == "FROM python:3.11-slim"
    assert "libgomp1" in build[2]
    assert "Which rule scores higher?" in (harbor / "instruction.md").read_text()
    with tarfile.open(harbor / "environment" / "repository.tar.gz") as archive:
        assert archive.getnames() == ["library.py"]
    private = {"tests", "solution"}
    for path in sorted(item for item in harbor.rglob("*") if item.is_file()):
        data = path.read_bytes()
        shown = path.relative_to(harbor).parts[0] not in private
        assert not (shown and (HIDDEN.encode() in data or CANARY.encode() in data or b"0.75" in data)), path
    for name in ("tests/expected.json", "tests/test.sh", "solution/solve.sh"):
        assert CANARY in (harbor / name).read_text()


def test_an_environment_that_exists_is_built_on(workspace: Workspace, tmp_path: Path) -> None:
    call("export", "harbor", workspace.root, tmp_path, "--task", "paper-sound", "--base-image", "me/env:1", "--installed",
         "--network", "public")  # fmt: skip
    lines = (tmp_path / "paper-sound" / "environment" / "Dockerfile").read_text().splitlines()
    assert lines[0] == "FROM me/env:1"
    assert not any("apt-get" in line or "pip" in line for line in lines)


def in_container(task: Path, tmp_path: Path) -> Path:
    """The workspace of a container of the task, as its build file makes it."""
    root = tmp_path / "workspace"
    with tarfile.open(task / "environment" / "repository.tar.gz") as archive:
        archive.extractall(root, filter="data")
    return root


def verify(task: Path, root: Path, out: Path) -> dict[str, Any]:
    program = [sys.executable, "-I", task / "tests" / "verify.py", "--workspace", root, "--out", out,
               "--expected", task / "tests" / "expected.json"]  # fmt: skip
    done = subprocess.run([str(item) for item in program], capture_output=True, text=True, check=True)
    details: dict[str, Any] = json.loads(done.stdout)
    assert json.loads((out / "reward.json").read_text()) == details["rewards"]
    return details


def test_the_oracle_gets_full_marks_and_doing_nothing_gets_none(harbor: Path, tmp_path: Path) -> None:
    root = in_container(harbor, tmp_path)
    nothing = verify(harbor, root, tmp_path / "out")
    assert nothing["rewards"] == {"reward": 0.0, "execution": 0.0, "conclusion": 0.0}
    assert "response.json cannot be read" in nothing["problem"]
    shutil.copytree(harbor / "solution" / "files", root, dirs_exist_ok=True)
    oracle = verify(harbor, root, tmp_path / "out")
    assert oracle["rewards"] == {"reward": 1.0, "execution": 1.0, "conclusion": 1.0}, oracle


GOOD = {"score of rule A": 0.75, "score of rule B": 0.5}
SCRIPT = "mkdir -p results && echo 'A 0.75, B 0.5' | tee results/table.txt\n"


@pytest.mark.parametrize(
    ("numbers", "script", "outputs", "rewards"),
    [
        (GOOD, SCRIPT, ["results/table.txt"], (1, 1, 1)),
        ({"A score": 0.752, "B score": 0.5}, "echo 0.752 0.5", [], (1, 1, 1)),
        ({"score of rule A": 0.75, "score of rule B": 0.9}, "echo 0.75 0.9", [], (0, 1, 0.5)),
        ({"score of rule A": 0.75}, "echo 0.75", [], (0, 1, 0.5)),
        (GOOD, "echo 0.75", [], (0, 0, 1)),  # a number that does not come out
        (GOOD, SCRIPT + "exit 3", [], (0, 0, 1)),
        (GOOD, "echo 0.75 0.5", ["results/table.txt"], (0, 0, 1)),  # the shipped output does not count
        (GOOD, "cat response.json", [], (0, 0, 1)),  # nor does printing the response
        ({"first": 0.75, "second": 0.5}, "echo 0.75 0.5", [], (0, 1, 0)),
        ({"A, run 1": 0.75, "A, run 2": 0.2, "rule B": 0.5}, "echo 0.75 0.2 0.5", [], (0, 1, 0.5)),
        (GOOD, "sleep 60 & sleep 60; true", [], (0, 0, 1)),
        (GOOD, SCRIPT, ["../../etc/passwd", "/etc/passwd"], (1, 1, 1)),  # outside names are no outputs
    ],
)
def test_the_verifier_judges_execution_and_numbers(
    harbor: Path, tmp_path: Path, numbers: dict[str, float], script: str, outputs: list[str], rewards: tuple[float, ...]
) -> None:
    task = tmp_path / "task"
    shutil.copytree(harbor, task)
    expected = json.loads((task / "tests" / "expected.json").read_text())
    (task / "tests" / "expected.json").write_text(json.dumps(expected | {"seconds": 2 if "sleep" in script else 60}))
    root = in_container(task, tmp_path)
    (root / "results").mkdir()
    (root / "results" / "table.txt").write_text("A 0.75, B 0.5\n")
    (root / "reproduce.sh").write_text(script)
    response = {"conclusion": {"text": "A", "numbers": numbers}, "outputs": outputs}
    (root / "response.json").write_text(json.dumps(response))
    found = verify(task, root, tmp_path / "out")
    assert tuple(found["rewards"].values()) == rewards, found
    assert (root / "results" / "table.txt").exists()  # the submission itself is left alone


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"conclusion": 3, "outputs": "x"}', '{"conclusion": {"numbers": {"a": true}}}']
)
def test_a_response_that_is_none_gets_nothing(harbor: Path, tmp_path: Path, text: str) -> None:
    root = in_container(harbor, tmp_path)
    (root / "reproduce.sh").write_text("echo 0.75 0.5")
    (root / "response.json").write_text(text)
    assert set(verify(harbor, root, tmp_path / "out")["rewards"].values()) == {0.0}


def test_inspect_tasks_keep_ground_truth_apart(workspace: Workspace, tmp_path: Path) -> None:
    out = tmp_path / "inspect"
    report = call("export", "inspect", workspace.root, out)
    assert report["tasks"] == ["paper-sound"]
    (row,) = [json.loads(line) for line in (out / "samples.jsonl").read_text().splitlines()]
    assert row["id"] == "paper-sound"
    assert "The repository is in the directory `workspace`" in row["input"]
    compose = yaml.safe_load((out / "environments" / "paper-sound" / "compose.yaml").read_text())
    assert compose["services"]["default"]["network_mode"] == "none"
    assert compose["services"]["default"]["mem_limit"] == "4096mb"
    for path in (item for item in out.rglob("*") if item.is_file()):
        data = path.read_bytes()
        shown = path.relative_to(out).parts[0] != "private"
        assert not (shown and (HIDDEN.encode() in data or CANARY.encode() in data or b"0.75" in data)), path
    assert sorted(path.name for path in (out / "private" / "paper-sound" / "solution").iterdir()) == [
        "reproduce.sh", "response.json", "run.py",
    ]  # fmt: skip
    compile((out / "expbench_inspect.py").read_text(), "expbench_inspect.py", "exec")
    assert call("export", "inspect", workspace.root, out)["tasks"] == ["paper-sound"]  # replaced as a whole
    with pytest.raises(ExpbenchError) as caught:
        call("export", "inspect", workspace.root, workspace.root)
    assert caught.value.kind is FailureKind.WORKSPACE_CONFLICT


def test_a_release_is_exported_with_what_its_parts_hold(tmp_path: Path) -> None:
    workspace = small_workspace(tmp_path / "work")
    source = tmp_path / "release"
    release(workspace, out=source, accept_all=True, name="demo")
    report = call("export", "harbor", source, tmp_path / "harbor")
    assert (report["tasks"], report["without_oracle"]) == (["paper-sound"], [])
    assert (tmp_path / "harbor" / "paper-sound" / "solution" / "files" / "run.py").read_text() == RUN
    tasks, _ = load_tasks(source, scratch=tmp_path / "scratch", reporter=SilentReporter())
    assert tasks[0].original_tree is not None
    assert tree_digest(tasks[0].original_tree) == tree_digest(workspace.root / "repository")
    originals = source / "private" / "originals"
    assert sorted(path.name for path in originals.iterdir()) == ["paper-sound.tar.gz", "paper-words.tar.gz"]
    assert canary_of("demo").encode() in gzip.decompress((originals / "paper-sound.tar.gz").read_bytes())
    shutil.rmtree(originals)
    report = call("export", "harbor", source, tmp_path / "harbor")
    assert report["without_oracle"][0][1].startswith("the original files are not at hand")
    assert not (tmp_path / "harbor" / "paper-sound" / "solution" / "solve.sh").exists()
    shutil.rmtree(source / "private")
    with pytest.raises(ExpbenchError, match="no ground truth") as caught:
        call("export", "inspect", source, tmp_path / "inspect")
    assert caught.value.kind is FailureKind.NOTHING_TO_RELEASE


def test_a_workspace_is_written_in_the_published_form_and_read_again(workspace: Workspace, tmp_path: Path) -> None:
    report = call("export", "exp-bench", workspace.root, tmp_path / "data", "--conference", "iclr2026")
    assert (report["tasks"], report["papers"], report["left"]) == (2, 1, 1)
    assert report["files"] == ["iclr2026/paper/paper_complete_final.json", "iclr2026/conference_data.jsonl"]
    found = read_published(tmp_path / "data")
    for item, task in zip(found.tasks, workspace.tasks(), strict=True):
        assert item.task.question == task.question
        assert item.task.method == task.method
        assert item.task.truth.usage[0].argv == task.truth.usage[0].argv
        assert item.task.truth.independent == task.truth.independent
        assert item.task.truth.expected.text == task.truth.expected.text
    with pytest.raises(ExpbenchError) as caught:
        call("export", "exp-bench", workspace.root / "tasks", tmp_path / "x")
    assert caught.value.kind is FailureKind.RECORD_INVALID


def test_trajectories_are_written_as_atif(tmp_path: Path) -> None:
    for number in (0, 1):
        path = tmp_path / "run" / "episodes" / "paper-sound" / str(number) / "trajectory.jsonl"
        path.parent.mkdir(parents=True)
        with TrajectoryWriter(path, TrajectoryHead(episode=f"paper-sound/{number}", agent="x", model="m")) as writer:
            writer.append(Utterance(seq=0, at=0.0, role="user", text="Do it."))
            writer.append(End(seq=1, at=1.0, reason="finished"))
    report = call("export", "atif", tmp_path / "run", tmp_path / "out")
    assert [Path(name).name for name in report["written"]] == ["paper-sound.0.json", "paper-sound.1.json"]
    value = json.loads((tmp_path / "out" / "paper-sound.1.json").read_text())
    assert (value["schema_version"], value["session_id"]) == ("ATIF-v1.7", "paper-sound/1")
    single = call("export", "atif", tmp_path / "run" / "episodes" / "paper-sound" / "0", tmp_path / "one.json")
    assert single["written"] == [str(tmp_path / "one.json")]
    with pytest.raises(ExpbenchError, match="no trajectory") as caught:
        call("export", "atif", tmp_path / "out", tmp_path / "x")
    assert caught.value.kind is FailureKind.RECORD_INVALID
