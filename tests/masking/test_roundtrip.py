"""The release gate, with real runs of a real script."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from masking.apply import apply_mask
from masking.plan import plan_mask
from masking.records import MaskPlan
from masking.roundtrip import restore, round_trip, tree_difference
from masking.tree import entries
from pipeline.errors import FailureKind
from pipeline.progress import Reporter
from pipeline.repository import Snapshot
from pipeline.sandbox.base import (
    BuildSpec,
    Command,
    CommandResult,
    Image,
    ProducedFile,
    RunResult,
    RunSpec,
    SandboxStatus,
)
from pipeline.task import RoundTrip, Task, ValidationReport, Verdict
from tests.masking import builders

IMAGE = Image(reference="here", digest="0" * 64, spec_digest="0" * 64)


class LocalSandbox:
    """A test double: runs the commands for real, in a copy of the tree, without any isolation."""

    name: Literal["docker", "process"] = "process"

    def __init__(self, change: Callable[[RunResult], RunResult] = lambda result: result) -> None:
        self.change = change

    def status(self) -> SandboxStatus:
        return SandboxStatus(name="process", available=True, detail="test double")

    def build(self, spec: BuildSpec, *, log: Path, owner: str, reporter: Reporter) -> Image:
        raise AssertionError("not part of these tests")

    def reap(self, owner: str) -> int:
        return 0

    def run(self, image: Image, tree: Path, spec: RunSpec, *, out: Path, owner: str) -> RunResult:
        results = []
        with tempfile.TemporaryDirectory() as name:
            copy = Path(name) / "tree"
            shutil.copytree(tree, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
            before = {entry.path: entry.read() for entry in entries(copy)}
            for number, command in enumerate(spec.commands):
                argv = [sys.executable, "-B", *command.argv[1:]] if command.argv[0] == "python" else list(command.argv)
                done = subprocess.run(
                    argv, cwd=copy / command.directory, capture_output=True, check=False, env=spec.env
                )
                (out / f"{number}.stdout").write_bytes(done.stdout)
                (out / f"{number}.stderr").write_bytes(done.stderr)
                failure = FailureKind.RUN_FAILED if done.returncode else None
                results.append(
                    CommandResult(
                        exit_code=done.returncode,
                        failure=failure,
                        stdout_bytes=len(done.stdout),
                        stderr_bytes=len(done.stderr),
                    )
                )
                if failure:
                    break
            produced = []
            for entry in entries(copy):
                data = entry.read()
                if before.get(entry.path) != data:
                    target = out / "files" / entry.path
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(data)
                    produced.append(
                        ProducedFile(path=entry.path, size=len(data), sha256=hashlib.sha256(data).hexdigest())
                    )
        return self.change(RunResult(commands=tuple(results), produced=tuple(produced), failure=results[-1].failure))


def judge(result: RunResult, out: Path) -> Verdict:
    """Reads the produced summary and compares it with the claims."""
    path = out / "files" / "results" / "summary.json"
    if not path.is_file():
        return Verdict.FAIL
    values = json.loads(path.read_text())["mse"]
    right = all(claim.band.holds(values[claim.conditions[0].value]) for claim in builders.claims())
    return Verdict.PASS if right else Verdict.FAIL


def validated(task: Task, verdict: Verdict = Verdict.PASS) -> Task:
    return task.evolve(validation=ValidationReport(verdict=verdict, reason="test", sandbox="process"))


def go(
    tmp_path: Path, snapshot: Snapshot, *, task: Task | None = None, plan: MaskPlan | None = None,
    argv: tuple[str, ...] = builders.COMMAND, sandbox: LocalSandbox | None = None,
) -> RoundTrip:  # fmt: skip
    task = task or validated(builders.task())
    plan = plan or plan_mask(task, snapshot)
    masked = apply_mask(snapshot, plan, tmp_path / "masked")
    return round_trip(
        task, masked=masked.path, snapshot=snapshot, plan=plan, image=IMAGE, sandbox=sandbox or LocalSandbox(),
        spec=RunSpec(commands=(Command(argv=argv),)), judge=judge, out=tmp_path / "out", owner="test",
    )  # fmt: skip


def test_passes(tmp_path: Path) -> None:
    result = go(tmp_path, builders.make(tmp_path / "original"))
    assert result.verdict is Verdict.PASS
    assert (result.original, result.masked, result.restored) == (Verdict.PASS, Verdict.FAIL, Verdict.PASS)
    assert result.masked_failure == "run_experiment.py: no such file (masked)"
    assert not (tmp_path / "out" / "restored-tree").exists()


@pytest.mark.parametrize(
    ("wrapper", "argv"),
    [
        (b"#!/bin/sh\npython3 run_experiment.py\n", ("sh", "all.sh")),
        (b"#!/bin/sh\npython3 -m run_experiment\n", ("sh", "all.sh")),
        (b"import run_experiment\nrun_experiment.main()\n", ("python", "all.sh")),
        (b"from run_experiment import main\nmain()\n", ("python", "all.sh")),
    ],
)
def test_a_masked_file_missed_indirectly(wrapper: bytes, argv: tuple[str, ...], tmp_path: Path) -> None:
    snapshot = builders.make(tmp_path / "original", {"all.sh": wrapper})
    path = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    task = validated(builders.task())
    plan = plan_mask(task, snapshot)
    masked = apply_mask(snapshot, plan, tmp_path / "masked")
    result = round_trip(
        task, masked=masked.path, snapshot=snapshot, plan=plan, image=IMAGE, sandbox=LocalSandbox(),
        spec=RunSpec(commands=(Command(argv=argv),), env=path), judge=judge, out=tmp_path / "out", owner="test",
    )  # fmt: skip
    assert result.verdict is Verdict.PASS, result
    assert result.masked_failure.startswith("run_experiment.py: no such")


def test_a_mask_that_leaves_the_answer_computable_fails(tmp_path: Path) -> None:
    result = go(tmp_path, builders.make(tmp_path / "original"), plan=MaskPlan(paths=()))
    assert result.verdict is Verdict.FAIL
    assert result.masked is Verdict.PASS
    assert "still gives the answer" in result.reason


def test_a_broken_environment_is_unknown_not_a_success(tmp_path: Path) -> None:
    broken = builders.RUN.replace("import json", "import json\nimport surely_not_installed")
    snapshot = builders.make(tmp_path / "original", {"other.py": broken.encode()})
    task = validated(builders.task())
    plan = plan_mask(task, snapshot)
    kept = MaskPlan(paths=tuple(path for path in plan.paths if path.path != "other.py"))
    result = go(tmp_path, snapshot, task=task, plan=kept, argv=("python", "other.py"))
    assert result.masked is Verdict.UNKNOWN
    assert "surely_not_installed" in result.masked_failure
    assert result.verdict is not Verdict.PASS


@pytest.mark.parametrize("kind", [FailureKind.RUN_TIMEOUT, FailureKind.RUN_OUT_OF_MEMORY, FailureKind.SANDBOX_BROKEN])
def test_a_limit_or_the_machine_is_unknown(kind: FailureKind, tmp_path: Path) -> None:
    sandbox = LocalSandbox(lambda result: result.evolve(failure=kind, produced=()))
    result = go(tmp_path, builders.make(tmp_path / "original"), sandbox=sandbox)
    assert result.masked is Verdict.UNKNOWN
    assert result.verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("original", [Verdict.UNKNOWN, Verdict.FAIL])
def test_the_original_must_have_passed(original: Verdict, tmp_path: Path) -> None:
    task = validated(builders.task(), original)
    assert go(tmp_path, builders.make(tmp_path / "original"), task=task).verdict is original


def test_restored_is_the_original_but_for_cleared_notebooks(tmp_path: Path) -> None:
    from tests.masking.planting import NUMBER, notebook

    root = tmp_path / "original"
    builders.make(
        root,
        {
            "show.ipynb": notebook([("code", "show()", "output\n")]),
            "lib.py": f'"""The shrunk MSE is {NUMBER}."""\n'.encode(),
            "raw\udcff.txt": b"x",
            ".gitmodules": b"[submodule]",
        },
    )
    (root / "link").symlink_to("lib.py")
    (root / "lib.py").chmod(0o755)
    snapshot = builders.snapshot(root)
    plan = plan_mask(builders.task(), snapshot)
    assert {item.action for item in plan.paths} == {"removed", "edited", "outputs_cleared"}
    masked = apply_mask(snapshot, plan, tmp_path / "masked")
    restore(masked.path, snapshot, plan, tmp_path / "restored")
    assert tree_difference(root, tmp_path / "restored") == ["show.ipynb"]
    assert tree_difference(root, tmp_path / "restored", ignore=frozenset({"show.ipynb"})) == []
    (tmp_path / "restored" / "estimators.py").chmod(0o755)
    assert tree_difference(root, tmp_path / "restored") == ["estimators.py", "show.ipynb"]
