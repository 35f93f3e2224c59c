"""Histograms and tables as harbor task directories and Inspect tasks: the same score as `expbench score`, no truth told."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from evaluation.exports.forms import scorer_packages, write_scorer
from evaluation.exports.parts import CANARY
from evaluation.families.causal.store import load_tasks, write_tasks
from flows.export import export_tasks
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.progress import SilentReporter
from tests.evaluation.exports.test_real_packages import LOADS_TASKS, environment, run
from tests.evaluation.families.histogram.support import FILE, TRUTH, publish, series
from tests.evaluation.families.table.support import honest, truth_text, write_submission, write_task

ROOT = Path(__file__).parents[3]
HISTOGRAM, TABLE = "p-1_sim-T5Wg", "task_decay_1999"
EXPBENCH = f"{sys.executable} -m flows.cli"


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("sources")
    publish(root / "collider")
    write_task(root / "prbench")
    return {HISTOGRAM: root / "collider", TABLE: root / "prbench"}


@pytest.fixture(scope="module")
def harbor_tasks(sources: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("harbor")
    for name, source in sources.items():
        report = export_tasks("harbor", source, out, reporter=SilentReporter())
        assert (report.tasks, report.skipped, report.without_oracle) == ((name,), (), ())
    return out


def workspace(task: Path, root: Path) -> Path:
    with tarfile.open(task / "environment" / "repository.tar.gz") as archive:
        archive.extractall(root, filter="data")
    return root


def reward(task: Path, submission: Path, out: Path) -> dict[str, Any]:
    """What `tests/test.sh` does, with this interpreter in the place of the container's."""
    program = [sys.executable, task / "tests" / "score.py", "--score", task / "tests" / "score.json"]
    done = subprocess.run(
        [str(item) for item in [*program, "--submission", submission, "--out", out]], capture_output=True, text=True,
        check=False, cwd=out.parent, env={**os.environ, "PYTHONPATH": "", "EXPBENCH": "false"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads((out / "reward.json").read_text())
    return found


@pytest.mark.parametrize("name", [HISTOGRAM, TABLE])
def test_the_oracle_passes_and_an_untouched_workspace_does_not(harbor_tasks: Path, tmp_path: Path, name: str) -> None:
    task = harbor_tasks / name
    root = workspace(task, tmp_path / "workspace")
    nothing = reward(task, root, tmp_path / "nothing")
    assert nothing["reward"] == 0.0
    shutil.copytree(task / "solution" / "files", root, dirs_exist_ok=True)
    oracle = reward(task, root, tmp_path / "oracle")
    assert set(oracle.values()) == {1.0}, oracle


def test_a_submission_gets_what_its_benchmark_says(harbor_tasks: Path, tmp_path: Path) -> None:
    histogram, table = harbor_tasks / HISTOGRAM, harbor_tasks / TABLE
    root = workspace(histogram, tmp_path / "histogram")
    (root / "results" / FILE).write_text(series([value * 1.2 for value in TRUTH]))
    found = reward(histogram, root, tmp_path / "one")
    assert (found["reward"], round(found["closeness"], 3), found["valid"]) == (1.0, 0.8, 1.0)
    root = write_submission(workspace(table, tmp_path / "table"), honest())
    (root / "data" / "fig1.csv").write_text(truth_text().replace("0.9", "0.5"))
    found = reward(table, root, tmp_path / "two")
    assert 0 < found["reward"] < found["data_accuracy"] < 1


@pytest.mark.parametrize("name", [HISTOGRAM, TABLE])
def test_the_agent_sees_no_ground_truth(harbor_tasks: Path, tmp_path: Path, name: str) -> None:
    task = harbor_tasks / name
    given = [task / "instruction.md", task / "task.toml", *(task / "environment").iterdir()]
    seen = b"".join(path.read_bytes() for path in given if path.suffix != ".gz")
    root = workspace(task, tmp_path / "workspace")
    seen += b"".join(path.read_bytes() for path in root.rglob("*") if path.is_file())
    for text in (CANARY, "46.48", truth_text().splitlines()[4], "Propagator splitting", "Suzuki"):
        assert text.encode() not in seen, text
    assert CANARY in (task / "tests" / "score.json").read_text()
    lines = (task / "environment" / "Dockerfile").read_text().splitlines()
    assert any("/opt/expbench-scorer" in line and scorer_packages()[0] in line for line in lines)


def test_a_scorer_that_fails_gives_no_reward(harbor_tasks: Path, tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    shutil.copytree(harbor_tasks / TABLE / "tests", tests)
    (tests / "truth" / "task" / "task.yaml").unlink()
    done = subprocess.run(
        [sys.executable, str(tests / "score.py"), "--score", str(tests / "score.json"), "--submission", str(tmp_path),
         "--out", str(tmp_path / "out")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "the scorer did not run" in done.stderr
    assert not (tmp_path / "out").exists()


def test_the_scorer_is_the_same_bytes_each_time(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_scorer(tmp_path / name)
    assert (tmp_path / "one" / "expbench.zip").read_bytes() == (tmp_path / "two" / "expbench.zip").read_bytes()


def test_a_world_is_not_exported_and_says_why(tmp_path: Path) -> None:
    found, _ = load_tasks(ROOT / "datasets")
    write_tasks(found[:1], tmp_path / "causal")
    with pytest.raises(ExpbenchError, match="beside the container") as caught:
        export_tasks("harbor", tmp_path / "causal", tmp_path / "out", reporter=SilentReporter())
    assert caught.value.kind is FailureKind.NOTHING_TO_RELEASE


@pytest.mark.slow
def test_harbor_loads_the_tasks_of_other_families(harbor_tasks: Path) -> None:
    harbor = environment("harbor", "3.12")
    for name in (HISTOGRAM, TABLE):
        found = json.loads(run(harbor, "-c", LOADS_TASKS, harbor_tasks / name))
        assert (found["name"], found["solution"], found["tests"]) == (f"expbench/{name}", True, True)


@pytest.mark.slow
def test_inspect_runs_them_and_the_oracle_passes(sources: dict[str, Path], tmp_path: Path) -> None:
    inspect_ai = environment("inspect-ai", "3.11")
    export_tasks("inspect", sources[TABLE], tmp_path / "tasks", reporter=SilentReporter())
    logs = tmp_path / "logs"
    run(
        inspect_ai, "-m", "inspect_ai", "eval", "expbench_inspect.py", "-T", "sandbox=local", "--solver", "oracle",
        "--model", "mockllm/model", "--display", "none", "--log-dir", logs, "--log-format", "json",
        cwd=tmp_path / "tasks", HOME=str(tmp_path), EXPBENCH=EXPBENCH, PYTHONPATH=str(ROOT),
    )  # fmt: skip
    (log,) = [json.loads(path.read_text()) for path in logs.glob("*.json")]
    assert log["status"] == "success", log.get("error")
    (sample,) = log["samples"]
    assert set(sample["scores"]["verified"]["value"].values()) == {1.0}
