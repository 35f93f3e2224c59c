"""What a task that was only located asks for is known when its chain has run: requirements, settings, seeds, data."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from rich.console import Console

from flows.chains import Located, with_chain
from flows.validate_stage import ValidateStage
from flows.views import print_task
from pipeline.locator import Chain
from pipeline.progress import SilentReporter
from pipeline.sandbox.base import Image, RunResult, RunSpec
from pipeline.settings import Settings
from pipeline.store import Workspace
from pipeline.task import Requirement, SourceScript, Status, Task, Usage, Verdict
from pipeline.witness.records import FunctionRun
from tests.pipeline.validation.support import CopySandbox, claim, make_snapshot, make_task

PROGRAM = """import random

from lib import share

random.seed(7)
weights = open("results/weights.txt").read().split()
labels = [open(f"results/{n}.txt").read() for n in ("a", "b")]

# count the hits of ours
hits = [1] * 7 + [0]
print("ours: accuracy =", share(hits, scale=1.0))
"""
LIBRARY = '''def share(hits, scale):
    """Divide the hits by the number of trials. That is the accuracy."""
    total = 0.0
    for hit in hits:
        total += hit
    return total * scale / len(hits)


def unused(hits):
    """Never called."""
    first = hits[0]
    second = hits[1]
    third = first + second
    return third
'''
FILES = {
    "run.py": PROGRAM, "lib.py": LIBRARY, "results/weights.txt": "0.5\n", "results/a.txt": "1\n",
    "results/b.txt": "2\n", "broken.py": "raise SystemExit(3)\n",
}  # fmt: skip


class Witnessing(CopySandbox):
    """A sandbox whose runs carry the real witness: loaded at the start of Python, telling of the copy of the tree."""

    name: Literal["docker", "process"] = "docker"

    def __init__(self) -> None:
        super().__init__()
        self.witnessed = 0

    def run(self, image: Image, tree: Path, spec: RunSpec, *, out: Path, owner: str) -> RunResult:
        if spec.outbox is None:
            return super().run(image, tree, spec, out=out, owner=owner)
        self.witnessed += 1
        (out / "outbox").mkdir()
        start = next(mount.source for mount in spec.mounts if mount.source.suffix == ".pth")
        with tempfile.TemporaryDirectory() as site:
            # the tree is where the run begins, and the outbox is a directory of this machine
            here = "' + os.getcwd() + '"
            text = start.read_text().replace('"/work"', f'"{here}"').replace(spec.outbox, f"{out}/outbox")
            (Path(site) / "sitecustomize.py").write_text(f"import os\n{text}")
            env = {**spec.env, "PYTHONPATH": f"{spec.env['PYTHONPATH']}:{site}:{start.parent}"}
            return super().run(image, tree, spec.evolve(env=env), out=out, owner=owner)


@pytest.fixture
def stage_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[CopySandbox], ValidateStage]:
    monkeypatch.setenv("EXPBENCH_CACHE_DIR", str(tmp_path / "cache"))
    snapshot = make_snapshot(tmp_path / "tree", FILES)

    def made(sandbox: CopySandbox) -> ValidateStage:
        return ValidateStage(
            workspace=Workspace(tmp_path / "work"), settings=Settings(seeds=0, equivalents=0), sandbox=sandbox,
            snapshot=snapshot, repeats=1, reporter=SilentReporter(),
        )  # fmt: skip

    return made


def located(stage: ValidateStage, path: str = "run.py", value: str = "0.875") -> Located:
    claims = [claim("c1", "accuracy", value, method="ours")]
    source = SourceScript(path=path, role="entry", score=1.0)
    chain = Chain(sources=(source,), usage=(Usage(argv=("python", path)),), confidence=1.0)
    return Located(task=with_chain(make_task(stage.snapshot, [["python"]], [], claims), chain), chains=(chain,))


def unknown(task: Task) -> list[str]:
    return [problem.message for problem in task.problems if problem.component == "requirements"]


def test_a_located_task_has_no_requirements_until_its_chain_has_run(
    stage_of: Callable[[CopySandbox], ValidateStage],
) -> None:
    sandbox = Witnessing()
    stage = stage_of(sandbox)
    given = located(stage)
    assert (given.task.truth.requirements, given.task.truth.ran) == ((), ())
    task = stage.validated(given)
    assert task.status is Status.VALIDATED, task.status_reason
    assert sandbox.witnessed == 1
    texts = [item.text for item in task.truth.requirements]
    assert any(text.startswith("Divide the hits by the number of trials (with ") for text in texts)
    assert "count the hits of ours" in texts
    assert not any("Never called" in text for text in texts)
    assert ("lib.py", "share") in {(item.path, item.name) for item in task.truth.ran}
    assert task.truth.seeds == ("7",)
    assert task.truth.data_needs == ("file results/weights.txt",)  # the others were found by a pattern
    assert unknown(task) == []


def test_a_chain_that_does_not_reproduce_its_claims_is_recorded_too(
    stage_of: Callable[[CopySandbox], ValidateStage],
) -> None:
    sandbox = Witnessing()
    stage = stage_of(sandbox)
    task = stage.validated(located(stage, value="0.400"))
    assert (task.status, sandbox.witnessed) == (Status.REJECTED, 1)
    assert task.status_reason.startswith("not reproduced: ")
    assert task.truth.requirements


def test_where_nothing_ran_the_requirements_are_unknown_and_the_task_says_so(
    stage_of: Callable[[CopySandbox], ValidateStage],
) -> None:
    sandbox = Witnessing()
    stage = stage_of(sandbox)
    task = stage.validated(located(stage, "broken.py"))
    assert task.validation is not None
    assert task.validation.verdict is not Verdict.PASS
    assert task.status_reason.startswith("does not run: ")  # of numbers that nobody saw nothing is said
    assert (task.truth.requirements, task.truth.ran, sandbox.witnessed) == ((), (), 0)
    assert unknown(task) == ["requirements unknown: nothing ran"]
    assert unknown(stage.validated(Located(task=task, chains=located(stage).chains))) == []  # another chain runs
    console = Console(record=True, width=200)
    print_task(task, console, truth=True)
    assert "unknown: no run of it is recorded" in console.export_text()


def test_a_sandbox_without_a_witness_validates_and_leaves_the_requirements_unknown(
    stage_of: Callable[[CopySandbox], ValidateStage],
) -> None:
    stage = stage_of(CopySandbox())
    task = stage.validated(located(stage))
    assert task.status is Status.VALIDATED, task.status_reason
    assert task.truth.requirements == ()
    assert unknown(task) == ["requirements unknown: none of its runs is recorded"]


def test_what_a_run_told_stays_with_its_commands_and_goes_with_others(
    stage_of: Callable[[CopySandbox], ValidateStage],
) -> None:
    given = located(stage_of(CopySandbox()))
    ran = (FunctionRun(path="lib.py", name="share", line=1, calls=1),)
    step = Requirement(text="Divide", spans=())
    truth = given.task.truth.evolve(ran=ran, requirements=(step,), seeds=("7",), data_needs=("file a.csv",))
    task = given.task.evolve(truth=truth)
    chain = given.chains[0]
    assert with_chain(task, chain) == task
    repaired = with_chain(task, chain.evolve(usage=(Usage(argv=("python", "run.py", "--fast")),))).truth
    assert (repaired.ran, repaired.requirements, repaired.seeds, repaired.data_needs) == ((), (step,), (), ())
    source = SourceScript(path="broken.py", role="entry", score=1.0)
    other = with_chain(task, chain.evolve(sources=(source,))).truth
    assert (other.ran, other.requirements, other.seeds, other.data_needs) == ((), (), (), ())
