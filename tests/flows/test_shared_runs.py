"""The same run is made once: whoever asks, with or without a witness, and also when a rehearsal made it."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.shared_runs import SharedRuns
from pipeline.sandbox.base import Command, Image, RunResult, RunSpec
from pipeline.witness.launch import with_witness
from pipeline.witness.records import Perturbation
from tests.pipeline.validation.support import IMAGE, CopySandbox

SPEC = RunSpec(commands=(Command(argv=("python", "run.py")),))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "run.py").write_text("open('out.txt', 'w').write('made')\n")
    return tmp_path / "tree"


def out(tmp_path: Path, task: str, repeat: str) -> Path:
    directory = tmp_path / task / repeat
    directory.mkdir(parents=True)
    return directory


class Sandbox(CopySandbox):
    """Makes the directory that it is given, as the others do."""

    def run(self, image: Image, tree: Path, spec: RunSpec, *, out: Path, owner: str) -> RunResult:
        out.mkdir(parents=True, exist_ok=True)
        return super().run(image, tree, spec, out=out, owner=owner)


def test_tasks_share_a_run_and_repeats_do_not(tmp_path: Path, tree: Path) -> None:
    sandbox = Sandbox()
    shared = SharedRuns(sandbox, tmp_path / "runs")
    for task in ("one", "two"):
        for repeat in ("run-1", "run-2"):
            where = out(tmp_path, task, repeat)
            assert [item.path for item in shared.run(IMAGE, tree, SPEC, out=where, owner="t").produced] == ["out.txt"]
            assert (where / "files" / "out.txt").read_text() == "made"
    assert sandbox.runs == 2


def watched(scratch: Path, perturbation: Perturbation = Perturbation.NONE, amount: int = 0) -> RunSpec:
    return with_witness(SPEC, perturbation=perturbation, amount=amount, python="3.11", scratch=scratch)


def test_witnessed_runs_are_told_by_what_the_witness_does(tmp_path: Path, tree: Path) -> None:
    sandbox = Sandbox()
    shared = SharedRuns(sandbox, tmp_path / "runs")
    assert watched(tmp_path / "a").outbox != watched(tmp_path / "b").outbox  # nobody can know its names ahead
    for number, spec in enumerate(
        (watched(tmp_path / "c"), watched(tmp_path / "d"), watched(tmp_path / "e", Perturbation.MOVED, 7),
         watched(tmp_path / "f", Perturbation.MOVED, 8), SPEC)
    ):  # fmt: skip
        shared.run(IMAGE, tree, spec, out=out(tmp_path, str(number), "plain"), owner="t")
    assert sandbox.runs == 4


def test_a_rehearsal_stands_for_the_run_that_it_made(tmp_path: Path, tree: Path) -> None:
    sandbox = Sandbox()
    before = tmp_path / "rehearsal"
    result = sandbox.run(IMAGE, tree, SPEC, out=before, owner="t")
    shared = SharedRuns(sandbox, tmp_path / "runs")
    shared.adopt(IMAGE, tree, SPEC, "run-1", out=before, result=result)
    where = out(tmp_path, "one", "run-1")
    assert shared.run(IMAGE, tree, SPEC, out=where, owner="t") == result
    assert (where / "files" / "out.txt").read_text() == "made"
    assert sandbox.runs == 1
    other = SPEC.evolve(commands=(Command(argv=("python", "run.py", "--fast")),))
    shared.run(IMAGE, tree, other, out=out(tmp_path, "two", "run-1"), owner="t")
    (tree / "run.py").write_text("open('out.txt', 'w').write('other')\n")
    shared.run(IMAGE, tree, SPEC, out=out(tmp_path, "three", "run-1"), owner="t")
    assert sandbox.runs == 3
