from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.sandbox import open_sandbox
from pipeline.sandbox.base import Gpus, Image, Limits
from pipeline.task import Resources, Usage, Verdict
from pipeline.validation import make_plan, validate_with_refinement
from pipeline.validation.rerun import missing_parts, validate
from tests.pipeline.validation.support import IMAGE, CopySandbox, claim, make_snapshot, make_task

CLAIMS = [claim("c1", "accuracy", "0.875", method="ours"), claim("c2", "accuracy", "0.750", method="sgd")]
GOOD = (
    "import json, lib\n"
    "scores = {'ours': lib.share(7, 8), 'sgd': lib.share(6, 8)}\n"
    "for name, value in scores.items():\n    print(f'{name}: accuracy = {value:.3f}')\n"
    "json.dump(scores, open('scores.json', 'w'))\n"
)
FILES = {"run.py": GOOD, "src/lib.py": "def share(a, b):\n    return a / b\n"}


def attempt(tmp_path: Path, files: dict[str, str], *, repeats: int = 2, claims=CLAIMS, sandbox=None, **fields):
    snapshot = make_snapshot(tmp_path / "tree", files)
    task = make_task(snapshot, [["python", "run.py"]], ["run.py", "src/lib.py"], claims, [("c1", ">", "c2")], **fields)
    out = tmp_path / "validation"
    report = validate(
        task,
        snapshot=snapshot,
        image=IMAGE,
        sandbox=sandbox or CopySandbox(),
        repeats=repeats,
        out=out,
        owner="test",
        limits=Limits(),
    )
    return report, out


SHIPPED = "method,accuracy\nours,0.875\nsgd,0.75\n"
MAKES = (
    "hits, less = [1] * 7 + [0], [1] * 6 + [0, 0]\n"
    "with open('table.csv', 'w') as out:\n"
    "    out.write('method,accuracy\\n')\n"
    "    for name, row in (('ours', hits), ('sgd', less)):\n"
    "        out.write(f'{name},{sum(row) / len(row)}\\n')\n"
)


def test_results_that_come_out_as_the_repository_ships_them(tmp_path: Path) -> None:
    """Seen: a paper's tables made again byte for byte, which looked as if nothing had been written."""
    report, out = attempt(tmp_path, {"run.py": MAKES, "table.csv": SHIPPED})
    assert report.verdict is Verdict.PASS, report.reason
    assert [run.produced[0][0] for run in report.runs] == ["table.csv", "table.csv"]
    assert not (out / "without-results").exists()


@pytest.mark.parametrize("repeats", [1, 2])
def test_results_that_are_only_written_again_are_not_computed(tmp_path: Path, repeats: int) -> None:
    copies = (
        "import pathlib\nfor path in sorted(pathlib.Path().glob('*.csv')):\n    path.write_text(path.read_text())\n"
    )
    report, _ = attempt(tmp_path, {"run.py": copies, "table.csv": SHIPPED}, repeats=repeats)
    assert report.verdict is Verdict.FAIL
    assert len(report.runs) == 2  # one run cannot tell
    assert report.reason.startswith("the outcome was not computed: table.csv: the repository ships it with claimed")


def test_a_crash_after_inputs_were_skipped_is_no_failure_of_the_code(tmp_path: Path) -> None:
    snapshot = make_snapshot(tmp_path / "tree", {"run.py": "print('btc.csv: MISSING, skipping')\nprint(1 / 0)\n"})
    task = make_task(snapshot, [["python", "run.py"]], ["run.py"], CLAIMS)
    report = validate(
        task, snapshot=snapshot, image=IMAGE, sandbox=CopySandbox(), repeats=1, out=tmp_path / "out", owner="test",
        limits=Limits(),
    )  # fmt: skip
    assert report.verdict is Verdict.UNKNOWN
    assert report.reason.startswith(
        "blocked: data (the run says: `btc.csv: MISSING, skipping`, and ended with: ZeroDiv"
    )


def test_a_chain_that_reproduces_its_claims(tmp_path: Path) -> None:
    report, out = attempt(tmp_path, FILES)
    assert report.verdict is Verdict.PASS
    assert [match.observed for match in report.matches] == [(0.875, 0.875), (0.75, 0.75)]
    assert report.flakiness == 0.0
    assert [run.log for run in report.runs] == ["validation/run-1", "validation/run-2"]
    assert report.runs[0].produced[0][0] == "scores.json"
    assert (out / "run-1" / "0.stdout").read_text().startswith("ours: accuracy = 0.875")


def test_finished_runs_are_reused_and_broken_ones_made_again(tmp_path: Path) -> None:
    sandbox = CopySandbox()
    first, out = attempt(tmp_path, FILES, sandbox=sandbox)
    assert sandbox.runs == 2
    (out / "run-2" / "result.json").write_text("{")
    second, _ = attempt(tmp_path, FILES, sandbox=sandbox)
    assert sandbox.runs == 3
    assert second == first
    changed, _ = attempt(tmp_path, {**FILES, "src/lib.py": "def share(a, b):\n    return a / b / 2\n"}, sandbox=sandbox)
    assert sandbox.runs == 5
    assert changed.verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("script", "verdict", "reason"),
    [
        ("import surely_not_installed", Verdict.UNKNOWN, "blocked: environment (module `surely_not_installed`"),
        ("open('data/train.csv')", Verdict.UNKNOWN, "blocked: data (`data/train.csv`"),
        ("open('configs/missing.yaml')", Verdict.FAIL, "exit code 1"),
        ("import urllib.request as u; u.urlopen('http://nowhere.invalid')", Verdict.UNKNOWN, "blocked: data (wants to download"),
        ("import os; os.environ['OPENAI_API_KEY']", Verdict.UNKNOWN, "blocked: data (needs the secret OPENAI_API_KEY"),
        ("raise ValueError('boom')", Verdict.FAIL, "ValueError: boom"),
        ("print('skipping: no data found')", Verdict.UNKNOWN, "blocked: data (the run says: `skipping: no data found`)"),
        ("print('SKIP: no DNS data')", Verdict.UNKNOWN, "blocked: data (the run says: `SKIP: no DNS data`)"),
        ("print('skipping warm-up')", Verdict.UNKNOWN, "reproduced; c1: no number of the run is named like it"),
        ("print('a.csv not found')\nprint(1 / 0)", Verdict.UNKNOWN, "blocked: data (the run says: `a.csv not found`, and ended with: ZeroDivisionError"),
        ("print('BTC: MISSING, skipping')\nprint(1 / 0)", Verdict.FAIL, "ZeroDivisionError"),
        ("open('results/x.csv', 'w')", Verdict.FAIL, "exit code 1"),
        ("import argparse\nargparse.ArgumentParser().parse_args(['--epochs', '[N]'])", Verdict.UNKNOWN, "the command is not complete or not right for its script: "),
        ("import sys, urllib.request as u\nprint('Could not load libcudart.so.11.0: cannot open shared object file', file=sys.stderr)\nu.urlopen('http://nowhere.invalid')", Verdict.UNKNOWN, "blocked: data (wants to download: `u.urlopen"),
        ("open('/home/somebody/runs/12/lib.json')", Verdict.UNKNOWN, "blocked: data (`/home/somebody/runs/12/lib.json`"),
        ("import os; open(os.path.abspath('src/gone.py'))", Verdict.FAIL, "exit code 1"),
        ("import sys\nsys.exit('\\x1b[31mFileNotFoundError\\x1b[39m: Dataset not found: /mnt/a/b.bin')", Verdict.UNKNOWN, "blocked: data (`/mnt/a/b.bin`"),
        ("import sys\nsys.exit('ERROR: No matching distribution found for numpy==9')", Verdict.UNKNOWN, "blocked: environment (it installs `numpy`"),
        ("import sys, traceback\ntry:\n    open('/mnt/x/train.bin')\nexcept OSError:\n    print(traceback.format_exc())\n    sys.exit(1)", Verdict.UNKNOWN, "blocked: data (`/mnt/x/train.bin`"),
        ("import runpy, sys\nsys.argv = ['x']\nrunpy.run_module('surely_not_installed', run_name='__main__')", Verdict.UNKNOWN, "blocked: environment (module `surely_not_installed`"),
        ("pass", Verdict.FAIL, "without printing or writing anything"),
        ("class plt:\n    show = print\nif False:\n    plt.show()", Verdict.UNKNOWN, "it shows its results in windows only"),
        ("print('ours: accuracy = 0.875')\nprint('sgd: accuracy = 0.750')", Verdict.PASS, "reproduced"),
        ("import lib\nprint('ours: accuracy', lib.share(1, 3))\nprint('sgd: accuracy', lib.share(1, 2))", Verdict.FAIL, "contradicted"),
    ],
)  # fmt: skip
def test_what_a_run_says_about_the_code(tmp_path: Path, script: str, verdict: Verdict, reason: str) -> None:
    report, _ = attempt(tmp_path, {**FILES, "run.py": script + "\n"})
    assert (report.verdict, reason in report.reason) == (verdict, True), report.reason
    # a second run would tell the same when the first one failed or showed none of the claims
    shown = any(match.observed for match in report.matches)
    assert len(report.runs) == (2 if shown and not report.runs[0].failure else 1)


def test_a_module_that_is_run_and_missing_is_the_environments(tmp_path: Path) -> None:
    """Seen with notebooks: `python: No module named jupyter` is no traceback, and was taken for a failure of the code."""
    snapshot = make_snapshot(tmp_path / "tree", FILES)
    task = make_task(snapshot, [["python", "-m", "surely_not_installed", "run.py"]], ["run.py"], CLAIMS)
    out = tmp_path / "validation"
    report = validate(
        task, snapshot=snapshot, image=IMAGE, sandbox=CopySandbox(), repeats=2, out=out, owner="t", limits=Limits()
    )
    assert report.verdict is Verdict.UNKNOWN
    assert missing_parts(report, out)[0] == {"surely_not_installed"}


def test_a_masked_script_or_module_is_a_failure_not_missing_data(tmp_path: Path) -> None:
    report, _ = attempt(tmp_path / "a", {"src/lib.py": ""})
    assert report.verdict is Verdict.FAIL
    report, _ = attempt(tmp_path / "b", {"run.py": GOOD})
    assert report.verdict is Verdict.FAIL
    assert "No module named 'lib'" in report.reason


def test_missing_modules_and_libraries_are_named(tmp_path: Path) -> None:
    report, out = attempt(tmp_path / "a", {**FILES, "run.py": "import surely_not_installed.sub\n"})
    assert missing_parts(report, out)[0] == {"surely_not_installed"}
    script = "raise ImportError('libGL.so.1: cannot open shared object file: No such file or directory')\n"
    report, out = attempt(tmp_path / "b", {**FILES, "run.py": script})
    assert missing_parts(report, out)[1] == {"libgl1"}
    assert report.verdict is Verdict.UNKNOWN
    report, out = attempt(tmp_path / "c", FILES)
    assert missing_parts(report, out) == (set(), set())


def test_plans(tmp_path: Path) -> None:
    snapshot = make_snapshot(tmp_path, FILES)
    task = make_task(snapshot, [["python", "run.py"]], ["run.py"], CLAIMS)
    plan = make_plan(task, snapshot, limits=Limits())
    assert plan.env["PYTHONPATH"] == ".:src"
    assert plan.network == "none"
    below = task.evolve(truth=task.truth.evolve(usage=(Usage(argv=("python", "x.py"), directory="a/b"),)))
    assert make_plan(below, snapshot, limits=Limits()).env["PYTHONPATH"] == "../..:../../src"
    with pytest.raises(ExpbenchError) as caught:
        make_plan(task.evolve(truth=task.truth.evolve(usage=())), snapshot, limits=Limits())
    assert caught.value.kind is FailureKind.RECORD_INVALID
    outside = task.evolve(truth=task.truth.evolve(usage=(Usage(argv=("x",), directory="../y"),)))
    with pytest.raises(ExpbenchError, match="outside the repository"):
        make_plan(outside, snapshot, limits=Limits())


def test_gpus_are_asked_for_and_refused_where_there_are_none(tmp_path: Path) -> None:
    snapshot = make_snapshot(tmp_path / "code", FILES)
    task = make_task(snapshot, [["python", "run.py"]], ["run.py"], CLAIMS)
    assert make_plan(task, snapshot, limits=Limits()).gpus is None
    needy = task.evolve(resources=Resources(gpus=4, gpu_type="A40", gpu_memory_mb=45_000))
    plan = make_plan(needy, snapshot, limits=Limits())
    assert plan.gpus == Gpus(count=4, type="A40", memory_mb=45_000)
    sandbox = open_sandbox("process")
    image = Image(reference="none", digest="0" * 64, spec_digest="0" * 64)
    with pytest.raises(ExpbenchError) as caught:
        sandbox.run(image, snapshot.root, plan, out=tmp_path / "out", owner="test")
    assert caught.value.kind is FailureKind.GPU_UNAVAILABLE


def test_refinement_goes_on_until_a_chain_passes(tmp_path: Path) -> None:
    passing, _ = attempt(tmp_path / "a", FILES)
    failing, _ = attempt(tmp_path / "b", {**FILES, "run.py": "raise ValueError\n"})
    blocked = failing.evolve(verdict=Verdict.UNKNOWN)
    reports = {"x": failing, "y": blocked, "z": passing, "never": failing}
    logs = []

    def run(name, number, before):
        logs.append((name, number, None if before is None else before.verdict))
        return reports[name]

    refined = validate_with_refinement(list(reports), run, rounds=9)
    assert refined.best.candidate == "z"
    assert logs == [("x", 1, None), ("y", 2, Verdict.FAIL), ("z", 3, Verdict.UNKNOWN)]
    assert validate_with_refinement(["x", "y", "z"], run, rounds=2).best.candidate == "y"
    assert validate_with_refinement([], run, rounds=2) is None


def test_a_chain_that_shows_nothing_does_not_stand_for_one_that_was_contradicted(tmp_path: Path) -> None:
    """Seen: a notebook about the data, last of three, became the task's chain because the others had failed."""
    wrong, _ = attempt(tmp_path / "a", {**FILES, "src/lib.py": "def share(a, b):\n    return a / b / 2\n"})
    silent, _ = attempt(tmp_path / "b", {**FILES, "run.py": "print('3 rows')\n"})
    blocked, _ = attempt(tmp_path / "c", {**FILES, "run.py": "open('data/train.csv')\n"})
    assert [report.verdict for report in (wrong, silent, blocked)] == [Verdict.FAIL, Verdict.UNKNOWN, Verdict.UNKNOWN]

    def best(*reports):
        return validate_with_refinement(reports, lambda report, number, before: report, rounds=9).best.candidate

    assert best(wrong, silent) is wrong
    assert best(silent, wrong) is wrong
    assert best(wrong, silent, blocked) is blocked
    assert best(silent, silent.evolve(reason="later")) is silent
