"""A chain that stopped for want of an earlier step, through the validation stage; and one whose step takes too long."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.chain_attempts import ChainAttempts
from flows.validate_stage import ValidateStage
from pipeline.errors import FailureKind
from pipeline.locator import Chain
from pipeline.progress import SilentReporter
from pipeline.sandbox.base import CommandResult, Image, RunResult, RunSpec
from pipeline.settings import Settings
from pipeline.store import Workspace
from pipeline.task import SourceScript, Task, Usage, Verdict
from pipeline.validation.environments import Environments
from tests.pipeline.validation.support import CopySandbox, claim, make_snapshot, make_task
from tests.pipeline.validation.test_repair import MAKES, README, READS

CLAIMS = [claim("c1", "accuracy", "0.875", method="ours"), claim("c2", "accuracy", "0.750", method="sgd")]
FILES = {"README.md": README, "make.py": MAKES, "report.py": READS, "other.py": "print(1)\n"}


class SlowMaking(CopySandbox):
    """A sandbox in which `make.py` never ends in time."""

    def run(self, image: Image, tree: Path, spec: RunSpec, *, out: Path, owner: str) -> RunResult:
        if spec.commands[0].argv[-1] != "make.py":
            return super().run(image, tree, spec, out=out, owner=owner)
        self.runs += 1
        stopped = CommandResult(exit_code=None, failure=FailureKind.RUN_TIMEOUT, stdout_bytes=0, stderr_bytes=0)
        return RunResult(commands=(stopped,), produced=(), failure=FailureKind.RUN_TIMEOUT, message="wall time")


@pytest.fixture
def attempts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[ChainAttempts, Task]:
    monkeypatch.setenv("EXPBENCH_CACHE_DIR", str(tmp_path / "cache"))
    snapshot = make_snapshot(tmp_path / "tree", FILES)
    stage = ValidateStage(
        workspace=Workspace(tmp_path / "work"), settings=Settings(), sandbox=CopySandbox(), snapshot=snapshot,
        repeats=2, reporter=SilentReporter(),
    )  # fmt: skip
    return stage.attempts, make_task(snapshot, [["python"]], [], CLAIMS)


def chain_of(path: str) -> Chain:
    source = SourceScript(path=path, role="entry", score=1.0)
    return Chain(sources=(source,), usage=(Usage(argv=("python", path)),), confidence=1.0)


def test_the_missing_step_becomes_part_of_the_task(attempts: tuple[ChainAttempts, Task]) -> None:
    tries, base = attempts
    tried = tries.attempt(base, chain_of("report.py"), "attempt-1")
    assert tried.report.verdict is Verdict.PASS, tried.report.reason
    assert [step.argv[1] for step in tried.task.truth.usage] == ["make.py", "report.py"]
    assert [source.path for source in tried.task.truth.sources] == ["make.py", "report.py"]
    assert [run.log for run in tried.report.runs] == ["attempt-1-again-1/run-1", "attempt-1-again-1/run-2"]
    assert any(problem.component == "validate.repair" for problem in tried.report.problems)


def test_a_step_that_takes_too_long_is_tried_once(attempts: tuple[ChainAttempts, Task], tmp_path: Path) -> None:
    tries, base = attempts
    sandbox = SlowMaking()
    environments = Environments(
        Workspace(tmp_path / "slow"), Settings(), sandbox, tries.environments.snapshot, SilentReporter()
    )
    tries = ChainAttempts(environments, repeats=2)
    first = tries.attempt(base, chain_of("report.py"), "attempt-1")
    assert first.report.verdict is Verdict.UNKNOWN
    assert "hit a limit" in first.report.reason
    assert sandbox.runs == 2
    again = tries.attempt(base, chain_of("report.py"), "attempt-2")
    assert again.report.reason.startswith("blocked: data")
    assert sandbox.runs == 3
