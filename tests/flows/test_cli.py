"""The command line as its users meet it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from flows.commands.shared import print_value
from flows.views import find_task
from pipeline.errors import ExpbenchError
from pipeline.store import Workspace
from pipeline.task import Status
from pipeline.version import version
from tests.flows.support import empty_workspace
from tests.flows.test_bad_input import pdf_with_text
from tests.pipeline.test_store import SECRET, make_task


def expbench(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "flows.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    workspace = empty_workspace(tmp_path / "work")
    workspace.save_task(make_task())
    workspace.save_task(
        make_task("paper-table-2-accuracy", Status.REJECTED).evolve(status_reason="not reproduced: [x]")
    )
    return workspace


@pytest.mark.parametrize(
    "command", ["curate", "extract", "estimate", "show", "status", "doctor", "examples", "release"]
)
def test_every_command_explains_itself_with_an_example(command: str) -> None:
    done = expbench(command, "--help")
    assert done.returncode == 0
    assert "Example" in done.stdout
    assert f"expbench {command}" in done.stdout


def test_the_version_is_printed() -> None:
    first, *digests = expbench("--version").stdout.splitlines()
    assert first == f"expbench {version()}"
    assert [line.split()[0] for line in digests] == ["stages", "prompts", "packages"]
    assert all(re.fullmatch(r"[0-9a-f]{12}", line.split()[1]) for line in digests)
    assert "0 files" not in digests[1].split("  ")


def test_a_wrong_option_is_a_usage_error() -> None:
    assert expbench("curate", "--frobnicate").returncode == 2


def test_status_counts_and_gives_reasons(workspace: Workspace) -> None:
    done = expbench("status", workspace.root)
    assert done.returncode == 0
    assert "release candidate" in done.stdout
    assert "not reproduced: [x]" in " ".join(done.stdout.split())
    told = json.loads(expbench("status", workspace.root, "--json").stdout)
    assert told["running"] is False
    assert [task[1] for task in told["tasks"]] == ["masked", "rejected"]


def test_show_hides_the_ground_truth_unless_asked(workspace: Workspace) -> None:
    shown = expbench("show", workspace.root, "table-1-accuracy")
    assert shown.returncode == 0
    assert "How do the methods compare" in shown.stdout
    assert SECRET not in shown.stdout
    assert SECRET not in expbench("show", workspace.root, "table-1-accuracy", "--json").stdout
    with_truth = expbench("show", workspace.root, "table-1-accuracy", "--truth")
    assert SECRET in with_truth.stdout
    assert "scripts/run secret.py" in with_truth.stdout


def test_show_says_which_tasks_there_are_when_the_name_is_wrong(workspace: Workspace) -> None:
    done = expbench("show", workspace.root, "nothing")
    assert done.returncode == 5
    assert "paper-table-1-accuracy" in done.stderr
    ambiguous = expbench("show", workspace.root, "accuracy")
    assert ambiguous.returncode == 5
    assert "fits 2 tasks" in ambiguous.stderr


def test_a_part_of_an_id_that_no_other_task_has_is_enough(workspace: Workspace) -> None:
    assert find_task(workspace, "table-1").id == "paper-table-1-accuracy"
    with pytest.raises(ExpbenchError, match="fits 2 tasks"):
        find_task(workspace, "paper")
    with pytest.raises(ExpbenchError, match="no such task"):
        find_task(workspace, "able-1")  # part of a word: table-1 is not table-11 either


def test_tasks_are_listed_in_lines_that_a_terminal_holds(workspace: Workspace) -> None:
    """At 80 columns the question once had a column of four letters."""
    lines = expbench("show", workspace.root).stdout.splitlines()
    assert "release candidate  paper-table-1-accuracy" in lines
    assert "rejected  paper-table-2-accuracy" in lines
    assert any(line.strip().startswith("How do the methods compare") for line in lines)
    assert max(map(len, lines)) <= 80


def test_a_path_that_cannot_be_used_is_no_traceback(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file")
    done = expbench("examples", taken)
    assert done.returncode == 2
    assert "file exists" in done.stderr
    assert "Traceback" not in done.stderr
    told = json.loads(expbench("examples", taken, "--json").stdout)
    assert (told["error"], told["exit_code"]) == ("usage", 2)


def test_values_are_printed_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    print_value(
        {"max_tasks": None, "exists": True, "stages": ["mask", "scan"], "paper": {"id": "p", "url": None}}, False
    )
    told = dict(re.split(r"  +", line.strip(), maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert told == {"max tasks": "-", "exists": "yes", "stages": "mask, scan", "paper": "id p"}


def test_extract_prints_the_reading_and_draws_it(tmp_path: Path) -> None:
    pdf = pdf_with_text(tmp_path / "paper.pdf", "A Title\n\nAbstract\nWe measure <script>alert(1)</script> accuracy.")
    done = expbench("extract", pdf, "--html", tmp_path / "out" / "reading.html", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [page["number"] for page in told["pages"]] == [1]
    page = (tmp_path / "out" / "reading.html").read_text()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert page.count("data:image/png;base64,") == 1
    bad = tmp_path / "bad.pdf"
    bad.write_text("no")
    done = expbench("extract", bad, "--html", tmp_path / "bad.html")
    assert done.returncode == 3
    assert not (tmp_path / "bad.html").exists()


def test_errors_are_json_when_json_was_asked_for(tmp_path: Path) -> None:
    done = expbench("status", tmp_path / "missing", "--json")
    told = json.loads(done.stdout)
    assert done.returncode == told["exit_code"] == 5
    assert told["next_step"]


def test_help_is_immediate() -> None:
    """Importing the command line must not import what only a command needs."""
    code = (
        "import sys, flows.cli; heavy = {'pymupdf', 'docker', 'datasets', 'scipy', 'numpy', 'git'} & set(sys.modules); "
        "print(sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
