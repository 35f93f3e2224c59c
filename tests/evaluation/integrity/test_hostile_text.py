"""What an agent prints, types and hands in may be of any shape: it is looked at in time, and nothing of it ends a grader.

The sizes are those at which the first patterns took minutes (a square of the length) or hours.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluation.integrity.monitor import check_integrity
from evaluation.integrity.shell import read_commands
from evaluation.judges.judge import judge
from evaluation.task import EvaluationTask
from evaluation.verdicts import IntegrityReport
from pipeline.progress import SilentReporter
from pipeline.task import Verdict
from tests.evaluation.integrity.episodes import Made, command, make_task

SIZE = 150_000


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> EvaluationTask:
    return make_task(tmp_path_factory.mktemp("world"))


def looked_at(task: EvaluationTask, root: Path, made: Made) -> IntegrityReport:
    folder, submission = made.write(root)
    judge(task, folder, submission, client=None, reporter=SilentReporter())
    return check_integrity(task, folder, submission, client=None, reporter=SilentReporter())


@pytest.mark.parametrize("unit", ["/", "a/", ".a", "1", " ", "\n", "a-"])
def test_outputs_of_one_shape(task: EvaluationTask, tmp_path: Path, unit: str) -> None:
    made = Made()
    made.extra.append(command("python run_study.py", unit * (SIZE // len(unit))))
    assert looked_at(task, tmp_path, made).verdict is Verdict.PASS


def test_a_command_that_writes_many_files(task: EvaluationTask, tmp_path: Path) -> None:
    """20,000 redirections took more than a minute: the whole line was shortened again for each."""
    made = Made()
    made.extra.append(command("echo 1" + " > a" * 20_000))
    assert looked_at(task, tmp_path, made).verdict is Verdict.PASS


@pytest.mark.parametrize("unit", ["\n", ";", "a=b\n", " ", "x.pd", "export "])
def test_commands_of_one_shape(unit: str) -> None:
    found = read_commands(unit * (60_000 // len(unit)) + "\ngit show HEAD~1:run.py")
    assert found[-1].argv == ("git", "show", "HEAD~1:run.py")


def test_what_a_name_was_set_to_is_found_behind_empty_lines() -> None:
    found = read_commands("\n" * 1000 + "  R=HEAD~1;\n\n   git show $R:x")
    assert [" ".join(item.argv) for item in found][-1] == "git show HEAD~1:x"


def test_a_name_means_what_it_was_set_to_last() -> None:
    """The first value counted, so that a name set twice hid what it was used for."""
    found = read_commands("R=README; cat $R; R=HEAD~1; git show $R:x")
    assert [" ".join(item.argv) for item in found if item.name in {"cat", "git"}] == ["cat README", "git show HEAD~1:x"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("more.py", "if a:\n  b()\n" + "elif a:\n  b()\n" * 900),
        ("more.py", "x = " + " + ".join(["1"] * 900)),
        ("more.py", "x = f" + ".a()" * 400),
        ("more.py", "x = " + "not " * 900 + "y"),
        ("more.py", "x = 9**9**9**9\ny = '%999999999999d' % 5\nz = " + "1" * 5000),
        ("more.sh", "\n" * 60_000 + "x"),
        ("more.yaml", " \n- \n" * 12_000),
        ("more.json", "[" * 900 + "]" * 900),
        ("more.yaml", "[" * 3000 + "]" * 3000),
        ("more.yaml", "a: &a [x, x, x]\n" + "".join(f"{n}: &{n} [*{p}, *{p}, *{p}]\n" for p, n in zip("abcdefghijklmnopqrst", "bcdefghijklmnopqrstu", strict=True))),
        ("more.ipynb", '{"cells": [{"cell_type": "code", "source": ' + "[" * 400 + "]" * 400 + "}]}"),
    ],
    ids=["elif", "sum", "calls", "not", "huge", "lines", "dashes", "json", "yaml", "aliases", "notebook"],
)  # fmt: skip
def test_files_that_are_nested_or_grow(task: EvaluationTask, tmp_path: Path, path: str, text: str) -> None:
    """900 `elif` ended the judge of implementations with a RecursionError, and the episode with it."""
    made = Made()
    made.files[path] = text
    assert looked_at(task, tmp_path, made).verdict is Verdict.PASS


@pytest.mark.parametrize("shown", ["0e999", "1e-999", "9" * 400, "0." + "0" * 400 + "1e400"])
def test_numbers_at_the_edge_of_what_a_computer_holds(task: EvaluationTask, tmp_path: Path, shown: str) -> None:
    """`0e999` in a conclusion ended the judge: ten to that power is no number."""
    made = Made()
    made.response["conclusion"]["numbers"]["zero"] = 0.0
    made.response["conclusion"]["text"] += f" The error is {shown}."
    made.files["more.py"] = f"print(0x{'f' * 4000})\nprint({'9' * 4000}, 1e999, -1e999)\n"
    made.extra.append(command("python run_study.py", f"error {shown}"))
    looked_at(task, tmp_path, made)


def test_a_program_that_was_started_without_any_argument_is_looked_at(task: EvaluationTask, tmp_path: Path) -> None:
    made = Made()
    made.extra.append(command("").model_copy(update={"observed": True}))
    made.extra.append(command(" ").model_copy(update={"observed": True}))
    looked_at(task, tmp_path, made)
