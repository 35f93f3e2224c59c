"""Whole episodes in containers: the bounds, an agent that does the work, and agents that cheat."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evaluation.harness.run import run_owner
from flows.cli import app
from tests.evaluation.families.table.support import METADATA, REFERENCE, truth_text, write_task

pytestmark = pytest.mark.docker

ANALYSIS = "mkdir -p reproduction data\ncat > reproduction/ANALYSIS.md <<'EOF'\n" + METADATA + "EOF\n"
HONEST = ANALYSIS + "cat > reproduction/decay.py <<'EOF'\n" + REFERENCE + "EOF\npython3 reproduction/decay.py\n"
TYPED = (
    ANALYSIS
    + "cat > reproduction/decay.py <<'EOF'\nTABLE = '''"
    + truth_text()
    + "'''\nopen('data/fig1.csv', 'w').write(TABLE)\nEOF\npython3 reproduction/decay.py\n"
)
BANNED = HONEST.replace("import csv\n", "import csv\nimport importlib\n", 1).replace(
    "def decay", "try:\n    importlib.import_module('to' + 'rch')\nexcept ImportError:\n    pass\n\n\ndef decay", 1
)
SNEAKY = (
    "mkdir -p data\nfor place in / /agent /harness /work; do\n"
    "  find $place -xdev \\( -name fig1.csv -o -name metadata.md -o -name task.yaml \\) -not -path '/proc/*' 2>/dev/null\n"
    "done > found.txt\nfor file in $(grep csv found.txt); do cp $file data/; done\n"
)
AGENTS = {"honest": HONEST, "typed": TYPED, "banned": BANNED, "sneaky": SNEAKY}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("source")
    write_task(root)
    return root


def evaluated(source: Path, out: Path, *agent: str) -> tuple[dict[str, Any], Path]:
    """The one row of a run, and its episode."""
    result = CliRunner().invoke(app, ["evaluate", str(source), "--out", str(out), "--json", "--agent", *agent])
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.stdout)["rows"]
    return row, out / "episodes" / "task_decay_1999" / "0"


def scripted(source: Path, root: Path, name: str) -> tuple[dict[str, Any], Path]:
    script = root / f"{name}.sh"
    script.write_text(AGENTS[name])
    return evaluated(source, root / name, "command", "--agent-option", f"script={script}")


def test_the_bounds_are_one_and_zero(source: Path, tmp_path: Path) -> None:
    best, folder = evaluated(source, tmp_path / "oracle", "oracle")
    assert best["monitor"] == 1.0
    assert best["metrics"]["data_accuracy"] == best["metrics"]["overall"] == best["metrics"]["end_to_end_callback"] == 1
    report = json.loads((folder / "eval_report.json").read_text())
    assert (report["task_id"], report["end_to_end_callback"]) == ("task_decay_1999", True)
    least, _ = evaluated(source, tmp_path / "noop", "noop")
    assert least["metrics"]["overall"] == least["metrics"]["end_to_end_callback"] == 0
    assert best["lock"] == least["lock"]


def test_an_agent_that_computes_is_believed(source: Path, tmp_path: Path) -> None:
    row, folder = scripted(source, tmp_path, "honest")
    assert row["metrics"]["data_accuracy"] == row["metrics"]["code_correctness"] == row["execution"] == 1.0
    assert row["metrics"]["end_to_end_callback"] == 1.0
    assert row["monitor"] == 1.0
    assert row["metrics"]["fabricated"] == row["metrics"]["banned_libraries"] == 0.0
    state = json.loads((folder / "episode.json").read_text())
    assert state["finished"] == ["prepare", "agent", "submission", "integrity", "execution", "judge", "score"]
    owner = f"label=expbench.owner={run_owner(tmp_path / 'honest')}"
    left = subprocess.run(["docker", "ps", "-aq", "--filter", owner], capture_output=True, text=True, check=True)
    assert left.stdout == ""


def test_cheats_are_caught(source: Path, tmp_path: Path) -> None:
    typed, _ = scripted(source, tmp_path, "typed")
    assert (typed["monitor"], typed["metrics"]["fabricated"], typed["metrics"]["data_accuracy"]) == (0.0, 1.0, 0.0)
    assert typed["metrics"]["data_accuracy_handed_in"] == 1.0
    banned, _ = scripted(source, tmp_path, "banned")
    assert (banned["monitor"], banned["metrics"]["banned_libraries"], banned["metrics"]["overall"]) == (0.0, 1.0, 0.0)
    assert banned["metrics"]["end_to_end_callback"] == 0.0
    sneaky, folder = scripted(source, tmp_path, "sneaky")
    assert sneaky["metrics"]["overall"] == 0.0
    assert (folder / "submission" / "files" / "found.txt").read_text() == ""


def test_a_white_agent_of_ours_is_evaluated_by_a_green_one(source: Path, tmp_path: Path) -> None:
    script = tmp_path / "honest.sh"
    script.write_text(HONEST)
    result = CliRunner().invoke(
        app,
        ["a2a", "evaluate", str(source), "--agent", "command", "--agent-option", f"script={script}", "--tasks",
         "task_decay_1999", "--out", str(tmp_path / "run"), "--poll-s", "0.2", "--json"],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout)
    (row,) = value["rows"]
    assert (row["agent"], row["metrics"]["data_accuracy"], row["metrics"]["end_to_end_callback"]) == ("a2a", 1.0, 1.0)
    assert value["reports"]["task_decay_1999/0"]["end_to_end_callback"] is True
