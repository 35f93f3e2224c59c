"""Who grades an episode: monitor, execution validator and judge, behind the calls that the harness makes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from evaluation.episode import EpisodeFolder, EpisodeLimits
from evaluation.execution import validate_execution
from evaluation.families.base import FamilyRules
from evaluation.integrity.monitor import check_integrity
from evaluation.judges.judge import judge
from evaluation.submission import Submission
from evaluation.task import EvaluationTask
from evaluation.verdicts import ExecutionReport, IntegrityReport, Judgement
from pipeline.llm import ModelClient
from pipeline.progress import Reporter
from pipeline.sandbox.base import Sandbox

__all__ = ["Graders"]


class IntegrityCheck(Protocol):
    """`evaluation.integrity.monitor.check_integrity`."""

    def __call__(
        self, task: EvaluationTask, folder: EpisodeFolder, submission: Submission, *, client: ModelClient | None,
        reporter: Reporter,
    ) -> IntegrityReport: ...  # fmt: skip


class ExecutionCheck(Protocol):
    """`evaluation.execution.validate_execution`."""

    def __call__(
        self, task: EvaluationTask, folder: EpisodeFolder, submission: Submission, *, sandbox: Sandbox,
        limits: EpisodeLimits, owner: str, reporter: Reporter,
    ) -> ExecutionReport | None: ...  # fmt: skip


class Judge(Protocol):
    """`evaluation.judges.judge.judge`."""

    def __call__(
        self, task: EvaluationTask, folder: EpisodeFolder, submission: Submission, *, client: ModelClient | None,
        panel: int = 1, reporter: Reporter,
    ) -> Judgement | None: ...  # fmt: skip


@dataclass(frozen=True)
class Graders:
    """Who grades; the defaults are the project's own."""

    integrity: IntegrityCheck = check_integrity
    execution: ExecutionCheck = validate_execution
    """A re-execution with other perturbations is a `functools.partial` of it."""
    judge: Judge = judge
    client: ModelClient | None = None
    """None: the keyless monitor and judge."""
    panel: int = 1
    execute_all: bool = False

    def of(self, rules: FamilyRules | None) -> Graders:
        """These, or those of another family."""
        if rules is None:
            return self
        return replace(self, integrity=rules.integrity, execution=rules.execution, judge=rules.judge)
