"""What the harness asks of a family other than `experiment`.

Where its tasks come from, what an agent is told and given, what is taken from its workspace, who grades it, and which
metrics make its row. Container, gateway, limits, trajectory, resume and reports are the harness's and the same for all
families. Everything here has a default that does the least; a family overrides what it has.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from evaluation.agents.base import AgentContext, AgentLaunch
from evaluation.episode import EpisodeFolder, EpisodeLimits
from evaluation.scores import EpisodeScores
from evaluation.submission import Submission
from evaluation.task import EvaluationTask
from evaluation.trajectory import Event
from evaluation.verdicts import ExecutionReport, IntegrityReport, Judgement
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm import ModelClient
from pipeline.progress import Reporter
from pipeline.sandbox.base import Sandbox
from pipeline.schema import Problem
from pipeline.task import Family

__all__ = ["FamilyRules"]


class FamilyRules:
    """One family. Stateless: everything about a task is in the `EvaluationTask` and in its `private` directory."""

    family: ClassVar[Family]
    text_ablation: ClassVar[bool] = True
    """Does `--ablate method:SHARE` change what its agents are told? Not where the task's text is a file of theirs."""

    # --- tasks

    def is_source(self, directory: Path) -> bool:
        """Does this directory hold tasks of the family, imported or as published? Looks at names only, never raises."""
        raise NotImplementedError

    def load(
        self, directory: Path, *, scratch: Path, only: Collection[str], reporter: Reporter, build: bool
    ) -> tuple[list[EvaluationTask], list[Problem]]:
        """The tasks of a directory, sorted by id.

        Each has a `masked_repository` (the workspace: a git working tree of one commit below `scratch`, used again when
        it is there), or is `blocked` with the reason.

        Args:
            directory: one for which `is_source` is true. Only read.
            scratch: where workspaces are built.
            only: ids of the tasks to load; all when empty.
            reporter: progress, as steps of stage `tasks`.
            build: without it no workspace is built, and the tasks are blocked.
        """
        raise NotImplementedError

    # --- the agent

    def limits(self, task: EvaluationTask, limits: EpisodeLimits) -> EpisodeLimits:
        """The ceilings of its episodes: the run's, or what the task itself asks for where the run says nothing."""
        return limits

    def instructions(self, task: EvaluationTask, *, limits: EpisodeLimits, network: Sequence[str] = ()) -> str:
        """What the agent is told; from what is public alone, and deterministic."""
        raise NotImplementedError

    @contextmanager
    def companion(
        self, task: EvaluationTask, folder: EpisodeFolder, directory: Path, emit: Callable[[Event], object]
    ) -> Iterator[Mapping[str, str]]:
        """A service on this machine that runs while the agent does (a blind bench, a reader of papers).

        Args:
            task: with its `private` directory, which the container never sees.
            folder: of the episode; `agent_logs` is there to write to.
            directory: mounted read-only at `/harness` in the container: the place for unix sockets.
            emit: takes events for the trajectory, from any thread; numbers and times are added to them.

        Yields:
            Environment variables for the agent.
        """
        yield {}

    def without_tool(self, task: EvaluationTask, name: str) -> EvaluationTask:
        """The task with a tool of its workspace taken out, and every mention of it (`--ablate tool:NAME`).

        Raises:
            ExpbenchError: `USAGE`: its workspace has no such tool.
        """
        raise ExpbenchError(
            FailureKind.USAGE, f"ablation `tool:{name}`", f"workspaces of the {self.family.value} family have no tools",
            consequence="Nothing was evaluated", next_step="Leave --ablate out, or choose tasks of another family",
        )  # fmt: skip

    def oracle(self, task: EvaluationTask, context: AgentContext) -> AgentLaunch:
        """How the oracle carries the task out.

        Raises:
            ExpbenchError: `DATA_UNAVAILABLE`: there is nothing it could apply.
        """
        raise ExpbenchError(
            FailureKind.DATA_UNAVAILABLE, task.id, f"the {self.family.value} family has no oracle for it",
            consequence="The oracle was not run on it", next_step="Choose other tasks with --tasks",
        )  # fmt: skip

    # --- the submission, and its grades

    def collect(self, task: EvaluationTask, tree: Path, folder: EpisodeFolder) -> tuple[Problem, ...]:
        """Take what the family grades out of the workspace as the agent left it, into `folder.submission / "files"`.

        The generic submission (patch, `response.json` if there is one) is taken anyway. Links are never followed.
        """
        return ()

    def integrity(
        self, task: EvaluationTask, folder: EpisodeFolder, submission: Submission, *, client: ModelClient | None,
        reporter: Reporter,
    ) -> IntegrityReport:  # fmt: skip
        """The monitor; by default the rules for all families."""
        from evaluation.integrity.monitor import check_integrity

        return check_integrity(task, folder, submission, client=client, reporter=reporter)

    def execution(
        self, task: EvaluationTask, folder: EpisodeFolder, submission: Submission, *, sandbox: Sandbox,
        limits: EpisodeLimits, owner: str, reporter: Reporter,
    ) -> ExecutionReport | None:  # fmt: skip
        """The re-execution; None: the family has none."""
        return None

    def judge(
        self, task: EvaluationTask, folder: EpisodeFolder, submission: Submission, *, client: ModelClient | None,
        panel: int = 1, reporter: Reporter,
    ) -> Judgement | None:  # fmt: skip
        """The judge; None: the family is scored by formula alone."""
        return None

    def score(self, task: EvaluationTask, folder: EpisodeFolder, row: EpisodeScores) -> EpisodeScores:
        """Add the family's metrics to the row of an episode that ran to its end.

        Details belong into `folder.root / "family.json"`; the row's `metrics` holds numbers, None for unknown.
        """
        return row
