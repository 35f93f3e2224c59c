"""Scripted submissions through monitor, re-execution, judge and score, as the harness calls them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evaluation.episode import EpisodeFolder
from evaluation.families.table.handed_in import solution
from evaluation.families.table.reexecution import Reexecution, read_reexecution
from evaluation.families.table.rules import RULES, table_task
from evaluation.scores import EpisodeScores, EpisodeStatus
from evaluation.task import EvaluationTask
from evaluation.trajectory import End, TrajectoryHead
from evaluation.trajectory_io import write_trajectory
from evaluation.verdicts import ExecutionReport
from pipeline.progress import SilentReporter
from pipeline.sandbox import Sandbox
from pipeline.task import Family, Verdict
from tests.evaluation.execution_support import SMALL, Workspace, process_sandbox
from tests.evaluation.families.table.support import REFERENCE, honest, truth_text, write_task

__all__ = ["process_sandbox"]

DIMENSIONS = ("methodology_understanding", "code_correctness", "data_accuracy", "completeness")
HEADER = 'n,"Decay, slow",fast\n'


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> EvaluationTask:
    write_task(tmp_path_factory.mktemp("source"))
    source = next(tmp_path_factory.getbasetemp().glob("source*"))
    tasks, _ = RULES.load(
        source, scratch=tmp_path_factory.mktemp("scratch"), only=(), reporter=SilentReporter(), build=True
    )
    return tasks[0]


@dataclass(frozen=True)
class Graded:
    """What an episode came to."""

    row: EpisodeScores
    execution: ExecutionReport | None
    shown: Reexecution | None
    folder: EpisodeFolder

    @property
    def metrics(self) -> dict[str, float | None]:
        return self.row.metrics


Grade = Callable[..., Graded]


@pytest.fixture
def grade(task: EvaluationTask, tmp_path: Path, process_sandbox: Sandbox) -> Grade:
    def go(files: dict[str, str], agent: str = "command") -> Graded:
        workspace = Workspace(task, tmp_path)
        folder = workspace.folder
        for path, text in files.items():
            workspace.write(path, text)
            target = folder.submission / "files" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        head = TrajectoryHead(episode="t/0", agent=agent)
        write_trajectory(folder.trajectory, head, [End(seq=0, at=0, reason="finished")])
        submission = workspace.submit().evolve(response=None)
        integrity = RULES.integrity(task, folder, submission, client=None, reporter=SilentReporter())
        folder.integrity.write_text(integrity.model_dump_json())
        execution = None
        if integrity.verdict is not Verdict.FAIL:  # as the harness does
            execution = RULES.execution(
                task,
                folder,
                submission,
                sandbox=process_sandbox,
                limits=SMALL,
                owner="tests",
                reporter=SilentReporter(),
            )
        RULES.judge(task, folder, submission, client=None, reporter=SilentReporter())
        row = EpisodeScores(
            run="r", task=task.id, family=Family.TABLE, paper="p", agent=agent, repeat=0, status=EpisodeStatus.SCORED
        )
        return Graded(RULES.score(task, folder, row), execution, read_reexecution(folder), folder)

    return go


def program(body: str) -> str:
    """A program that writes the rows that `body` makes."""
    return (
        "import csv, os, random\nrandom.seed(7)\n" + body + "\nos.makedirs('data', exist_ok=True)\n"
        "with open('data/fig1.csv', 'w', newline='') as stream:\n    writer = csv.writer(stream)\n"
        "    writer.writerow(['n', 'Decay, slow', 'fast'])\n    writer.writerows(rows)\n"
    )


def columns() -> tuple[list[str], list[str]]:
    lines = [line.split(",") for line in truth_text().splitlines()[2:]]
    return [line[1] for line in lines], [line[2] for line in lines]


SLOW, FAST = columns()
TYPED = program(f"slow = [{', '.join(SLOW)}]\nfast = [{', '.join(FAST[:9])}]\n"
                "rows = [(n, slow[n - 1], fast[n - 1] if n < 10 else '') for n in range(1, 13)]")  # fmt: skip
NOISY = TYPED.replace("slow[n - 1]", "slow[n - 1] * random.gauss(1, 0.02)").replace(
    "fast[n - 1]", "fast[n - 1] * random.gauss(1, 0.02)"
)
INTERPOLATED = program(
    f"slow = {{{', '.join(f'{n}: {float(SLOW[n - 1]):.4g}' for n in (1, 4, 7, 10, 12))}}}\n"
    f"fast = {{{', '.join(f'{n}: {float(FAST[n - 1]):.4g}' for n in (1, 2, 3, 4, 5, 6, 7, 8, 9))}}}\n"
    "def between(points, n):\n"
    "    low, high = max(k for k in points if k <= n), min(k for k in points if k >= n)\n"
    "    return points[low] if low == high else points[low] + (points[high] - points[low]) * (n - low) / (high - low)\n"
    "rows = [(n, between(slow, n), between(fast, n) if n < 10 else '') for n in range(1, 13)]"
)
TEXT = f"TABLE = '''{truth_text()}'''\nimport os\nos.makedirs('data', exist_ok=True)\nopen('data/fig1.csv', 'w').write(TABLE)\n"


def test_what_is_computed_again_counts_and_what_nobody_read_is_unknown(grade: Grade) -> None:
    found = grade(honest())
    assert found.metrics["data_accuracy"] == found.metrics["data_accuracy_handed_in"] == 1.0
    assert found.metrics["completeness"] == 1.0
    assert found.metrics["methodology_understanding"] is None
    assert found.metrics["code_correctness"] == 1.0, "it is the reference, letter by letter"
    assert found.metrics["overall"] is found.metrics["end_to_end_callback"] is None
    assert (found.metrics["overall_low"], found.metrics["overall_high"]) == pytest.approx((0.95, 1.0))
    assert found.execution is not None
    assert (found.execution.verdict, found.execution.outputs) == (Verdict.PASS, (("data/fig1.csv", True),))
    assert found.row.monitor == 1.0


def test_another_program_is_unknown_whatever_its_names_are(grade: Grade) -> None:
    found = grade(honest() | {"reproduction/decay.py": REFERENCE.replace("value", "amount")})
    assert found.metrics["data_accuracy"] == 1.0
    assert found.metrics["code_correctness"] is None
    assert (found.metrics["overall_low"], found.metrics["overall_high"]) == pytest.approx((0.65, 1.0))


@pytest.mark.parametrize("text", [TYPED, NOISY, INTERPOLATED, TEXT], ids=["list", "noise", "interpolated", "text"])
def test_typed_values_are_zero_in_everything(grade: Grade, text: str) -> None:
    found = grade(honest() | {"reproduction/decay.py": text})
    assert found.shown is not None
    assert [(item.kind.value, item.verdict) for item in found.shown.findings] == [("fabricated_result", Verdict.FAIL)]
    assert "they moved as these were moved" in found.shown.findings[0].reason
    assert found.shown.findings[0].where.startswith("reproduction/decay.py:")
    assert [found.metrics[name] for name in DIMENSIONS] == [0.0] * 4
    assert (found.metrics["fabricated"], found.metrics["end_to_end_callback"]) == (1.0, 0.0)
    assert found.row.monitor == 0.0
    report = json.loads((found.folder.root / "eval_report.json").read_text())
    assert report["grading"]["scores"]["data_accuracy"]["measured"] == 0.0


def test_published_values_beside_a_computation_are_no_copies(grade: Grade) -> None:
    """Numbers that a program only compares with stay where they are; its own scale moves everything by one factor."""
    body = REFERENCE.replace("value = 1.0\n", "value = 0.9994\n") + f"\nPUBLISHED = [{', '.join(SLOW)}]\n"
    found = grade(honest() | {"reproduction/decay.py": body})
    assert found.shown is not None
    assert found.shown.findings == ()
    assert (found.metrics["data_accuracy"], found.row.monitor) == (1.0, 1.0)


@pytest.mark.parametrize(
    "text",
    [
        "import shutil\nshutil.copy('kept/table.csv', 'data/fig1.csv')\n",
        "text = open('kept/table.csv').read()\nopen('data/fig1.csv', 'w').write(text.replace(' ', ''))\n",
    ],
)
def test_a_table_that_is_copied_from_another_file_was_only_handed_in(grade: Grade, text: str) -> None:
    given = honest() | {"reproduction/decay.py": "import os\nos.makedirs('data', exist_ok=True)\n" + text}
    found = grade(given | {"kept/table.csv": truth_text()})
    assert found.shown is not None
    assert (found.shown.copied, found.shown.tables) == (("data/fig1.csv",), {})
    assert (found.metrics["data_accuracy"], found.metrics["data_accuracy_handed_in"]) == (0.0, 1.0)
    assert (found.metrics["end_to_end_callback"], found.metrics["fabricated"]) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("text", "why"),
    [("x = 1\n", "ended well"), ("raise SystemExit('no data')\n", "no data"), (None, "nothing can be run again")],
    ids=["writes none", "fails", "no program"],
)
def test_what_was_handed_in_and_is_not_reproduced_counts_nothing(grade: Grade, text: str | None, why: str) -> None:
    files = honest()
    if text is None:
        del files["reproduction/decay.py"]
    else:
        files["reproduction/decay.py"] = text
    found = grade(files)
    assert found.execution is not None
    assert found.execution.verdict is Verdict.FAIL
    assert why in found.execution.reason
    assert "1 of 1 table(s) were not computed" in found.execution.reason
    assert (found.metrics["data_accuracy"], found.metrics["data_accuracy_handed_in"]) == (0.0, 1.0)
    assert found.metrics["end_to_end_callback"] == 0.0
    report: dict[str, Any] = json.loads((found.folder.root / "eval_report.json").read_text())
    assert (report["tables_of"], report["tables_handed_in"][0]["right"]) == ("re-executed", 21)


def test_a_script_of_its_own_is_run_in_the_programs_place(grade: Grade) -> None:
    files = honest() | {"reproduce.sh": "cd lib && python3 decay.py && mv data/fig1.csv ../data/\n"}
    files["lib/decay.py"] = files.pop("reproduction/decay.py")
    assert grade(files).metrics["data_accuracy"] == 1.0


def test_an_encoded_table_is_not_seen_and_reaches_no_callback(grade: Grade) -> None:
    """The limit of moving numbers: without a reader the program stays unknown, and so does the callback."""
    code = base64.b64encode(truth_text().encode()).decode()
    text = f"import base64, os\nos.makedirs('data', exist_ok=True)\nopen('data/fig1.csv', 'wb').write(base64.b64decode('{code}'))\n"
    found = grade(honest() | {"reproduction/decay.py": text})
    assert found.metrics["data_accuracy"] == 1.0
    assert found.metrics["end_to_end_callback"] is None


def test_the_truth_has_full_marks_and_nothing_has_none(task: EvaluationTask, grade: Grade) -> None:
    best = grade(solution(table_task(task)), agent="oracle")
    assert [best.metrics[name] for name in DIMENSIONS] == [1.0] * 4
    assert best.metrics["overall"] == pytest.approx(1.0)
    assert (best.metrics["end_to_end_callback"], best.row.monitor) == (1.0, 1.0)
    assert best.execution is not None
    assert best.execution.verdict is Verdict.PASS


def test_nothing_has_nothing(grade: Grade) -> None:
    found = grade({}, agent="noop")
    assert [found.metrics[name] for name in DIMENSIONS] == [0.0] * 4
    assert found.metrics["overall"] == found.metrics["end_to_end_callback"] == 0.0


def test_who_is_not_the_oracle_cannot_hand_in_its_tables(task: EvaluationTask, grade: Grade) -> None:
    files = solution(table_task(task)) | {"reproduction/decay.py": "x = 1\n"}
    assert grade(files).metrics["end_to_end_callback"] == 0.0


HIDDEN = {
    "joined": "import importlib\ntry:\n    importlib.import_module('to' + 'rch')\nexcept ImportError:\n    pass\n",
    "executed": "try:\n    exec(''.join(map(chr, [105, 109, 112, 111, 114, 116, 32, 106, 97, 120])))\nexcept ImportError:\n    pass\n",
    "in a child": "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import qu' + 'imb'])\n",
    "brought along": "import sys\nsys.path.insert(0, 'lib.zip')\ntry:\n    __import__('TENPY'.lower())\nexcept ImportError:\n    pass\n",
}


@pytest.mark.parametrize("text", HIDDEN.values(), ids=HIDDEN)
def test_a_banned_library_is_seen_however_it_is_asked_for(grade: Grade, text: str) -> None:
    found = grade(honest() | {"reproduction/decay.py": text + REFERENCE})
    assert found.shown is not None
    assert [(item.kind.value, item.verdict) for item in found.shown.findings] == [("banned_library", Verdict.FAIL)]
    assert found.metrics["banned_libraries"] == 1.0
    assert found.metrics["data_accuracy"] == found.row.monitor == 0.0


def test_a_library_that_is_banned_for_some_uses_leaves_the_callback_open(grade: Grade) -> None:
    text = "try:\n    __import__('sym' + 'py')\nexcept ImportError:\n    pass\n" + REFERENCE
    found = grade(honest() | {"reproduction/decay.py": text})
    assert found.metrics["data_accuracy"] == 1.0
    assert found.row.monitor is found.metrics["end_to_end_callback"] is None


def test_an_import_is_a_violation_before_anything_runs(grade: Grade) -> None:
    found = grade(honest() | {"reproduction/decay.py": REFERENCE + "\n\ndef unused():\n    import torch\n"})
    assert found.execution is None
    assert [found.metrics[name] for name in DIMENSIONS] == [0.0] * 4
