"""One episode, step by step: PREPARE, AGENT, SUBMISSION, INTEGRITY, EXECUTION, JUDGE, SCORE (EXP-Bench 4.1).

Each step writes its own files; `episode.json` names it as finished after that, so a run that is killed at any point
goes on behind the last finished step. Failures of the machinery are retried a bounded number of times; after that the
episode is *unknown*: it has a row, and no scores. What the user has to mend (a wrong key, an exceeded budget) ends the
run instead, because every other episode would fail of it too.

An episode that the monitor fails is not re-executed (EXP-Bench 4.1 discards it before the execution check), unless that
is asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from evaluation.episode import EpisodeFolder, EpisodeState, Step
from evaluation.families.experiment import instructions
from evaluation.families.registry import family_rules
from evaluation.grading import score_episode
from evaluation.harness.agent_step import AgentStep, no_companion, read_agent_run
from evaluation.harness.graders import Graders
from evaluation.harness.stoppable import Stoppable
from evaluation.harness.submission_reader import take_submission
from evaluation.harness.workspace import build_image, require_task, workspace_after
from evaluation.integrity.monitor import with_execution
from evaluation.lock import EpisodeLock, lock_episode
from evaluation.scores import EpisodeScores, EpisodeStatus
from evaluation.submission import Submission
from evaluation.task import EvaluationTask
from evaluation.verdicts import ExecutionReport, Grader, IntegrityReport, Judgement
from pipeline.errors import Cause, ExpbenchError, FailureKind
from pipeline.files import find_record, remove_tree
from pipeline.progress import Reporter
from pipeline.sandbox.base import Image, StopHandle
from pipeline.scratch import scratch_directory
from pipeline.store import write_if_changed
from pipeline.task import Verdict

__all__ = ["EpisodeRunner", "episode_folder", "load_state"]

_ATTEMPTS: Final = 3
"""Of a step, when the machinery fails: the second try mends what a busy engine does, a third has mended little here."""
_PAUSE_S: Final = 1.0
"""Before the second attempt; doubled before the third."""
_BLOCKING: Final = frozenset(
    {
        FailureKind.GPU_UNAVAILABLE, FailureKind.DATA_UNAVAILABLE, FailureKind.ENVIRONMENT_UNBUILDABLE,
        FailureKind.REPOSITORY_INVALID, FailureKind.REPOSITORY_EMPTY, FailureKind.COMMIT_UNKNOWN,
    }
)  # fmt: skip
"""The task cannot be carried out here, whoever tries."""


@dataclass(frozen=True)
class EpisodeRunner:
    """Runs the episodes of one run.

    Args:
        root: the run's directory.
        run: its name.
        agent_step: agent, sandbox, limits, model.
        graders: monitor, execution validator, judge.
        agent_options: for the lock.
        reporter: progress.
        pause: waits before a step is tried again.
    """

    root: Path
    run: str
    agent_step: AgentStep
    graders: Graders
    agent_options: dict[str, str]
    reporter: Reporter
    pause: Callable[[float], None] = time.sleep

    def episode(self, task: EvaluationTask, repeat: int, stop: StopHandle) -> EpisodeScores:
        """Bring one episode to its end, from wherever it stands; a finished one is read.

        Raises:
            ExpbenchError: `INTERRUPTED` (`stop` was called), or a failure that the user has to mend.
        """
        return _Episode(self, task, repeat, stop).go()


def episode_folder(root: Path, task: str, repeat: int) -> EpisodeFolder:
    """Where an episode lies."""
    return EpisodeFolder(root / "episodes" / task / str(repeat))


def load_state(folder: EpisodeFolder) -> EpisodeState | None:
    """The state of an episode; None where it has not begun or its file is of another version."""
    return find_record(folder.state, EpisodeState)


class _Episode:
    """One episode on its way."""

    def __init__(self, runner: EpisodeRunner, task: EvaluationTask, repeat: int, stop: StopHandle) -> None:
        self.runner, self.task, self.repeat, self.stop = runner, task, repeat, stop
        self.rules = family_rules(task.public.family)
        base = runner.agent_step.limits
        if self.rules is not None:
            base = self.rules.limits(task, base)
        self.limits = base.evolve(gpus=max(base.gpus, task.public.resources.gpus))
        self.step_of_agent = replace(runner.agent_step, limits=self.limits)
        self.folder = episode_folder(runner.root, task.id, repeat)
        self.name = f"{task.id}/{repeat}"
        self.sandbox = Stoppable(self.step_of_agent.sandbox, stop)
        self.image: Image | None = None
        self.graders = runner.graders.of(self.rules)
        tell = instructions if self.rules is None else self.rules.instructions
        self.told = tell(task, limits=self.limits, network=self.step_of_agent.allow)
        self.state = load_state(self.folder) or EpisodeState(
            run=runner.run, task=task.id, agent=self.step_of_agent.agent.name, repeat=repeat
        )

    def go(self) -> EpisodeScores:
        """All steps that are not finished."""
        if self.state.failure is not None or self.state.blocked:  # a new run of the harness is a new chance
            kept = tuple(step for step in self.state.finished if step is not Step.SCORE)
            self._save(failure=None, blocked="", finished=() if self.state.blocked else kept)
        scores = self._scores_of_finished()
        if scores is not None:
            return scores
        self.folder.root.mkdir(parents=True, exist_ok=True)
        try:
            for step, work in (
                (Step.PREPARE, self._prepare), (Step.AGENT, self._agent), (Step.SUBMISSION, self._submission),
                (Step.INTEGRITY, self._integrity), (Step.EXECUTION, self._execution), (Step.JUDGE, self._judge),
            ):  # fmt: skip
                if step not in self.state.finished:
                    self._attempt(step, work)
                    self._save(finished=(*self.state.finished, step))
        except ExpbenchError as error:
            self._give_up(error)
        return self._score()

    def _scores_of_finished(self) -> EpisodeScores | None:
        return find_record(self.folder.scores, EpisodeScores) if Step.SCORE in self.state.finished else None

    def _save(self, **changes: object) -> None:
        self.state = self.state.evolve(**changes)
        write_if_changed(self.folder.state, self.state.model_dump_json(indent=1) + "\n")

    def _attempt(self, step: Step, work: Callable[[], None]) -> None:
        """Do a step, again when the machinery failed and trying again may help."""
        attempt = 0
        while True:
            attempt += 1
            if self.stop.reason:
                raise _interrupted(self.stop.reason)
            self.runner.reporter.note("evaluate", f"{self.name}: {step.value}")
            try:
                return work()
            except ExpbenchError as error:
                again = error.failure.retry and error.failure.cause is not Cause.USER
                if not again or attempt == _ATTEMPTS or self.stop.reason:
                    raise
                self.runner.reporter.warn(f"{self.name}: {step.value}, attempt {attempt} of {_ATTEMPTS}: {error}")
                self.runner.pause(_PAUSE_S * attempt)

    def _give_up(self, error: ExpbenchError) -> None:
        """An error that retries did not mend.

        Raises:
            ExpbenchError: this one, when it is not about this episode alone.
        """
        if error.kind in _BLOCKING:
            self._save(blocked=error.cause if error.object == self.task.id else f"{error.object}: {error.cause}")
        elif self.stop.reason or error.failure.cause is Cause.USER or error.kind is FailureKind.SANDBOX_UNAVAILABLE:
            raise error
        else:
            self._save(failure=error.kind.value)
        self.runner.reporter.warn(f"{self.name}: {error}")

    # --- steps

    def _prepare(self) -> None:
        require_task(self.task)
        self._image()

    def _image(self) -> Image:
        if self.image is None:
            logs = self.runner.root / "environments"
            self.image = build_image(
                self.task, self.sandbox, logs=logs, owner=self.step_of_agent.owner, reporter=self.runner.reporter
            )
        return self.image

    def _agent(self) -> None:
        self._save(attempts=self.state.attempts + 1)
        companion = no_companion if self.rules is None else partial(self.rules.companion, self.task, self.folder)
        with scratch_directory() as scratch:
            outcome = self.step_of_agent.run(
                self.task, self.folder, self._image(), self.told, seed=self.repeat, scratch=scratch, stop=self.stop,
                companion=companion,
            )  # fmt: skip
        self.state = self.state.evolve(outcome=outcome)

    def _submission(self) -> None:
        run = read_agent_run(self.folder)
        changed = self.folder.agent_logs / "workspace"
        assert self.task.masked_repository is not None
        with scratch_directory() as scratch:
            tree = scratch / "tree"
            workspace_after(self.task.masked_repository, changed, run.result, tree)
            problems = tuple(p for p in run.result.problems if p.component == "sandbox.copy")
            take_submission(tree, self.task.masked_repository, self.folder, problems=problems)
            if self.rules is not None:
                self.rules.collect(self.task, tree, self.folder)

    def _integrity(self) -> None:
        self._remove_taken_workspace()
        report = self.graders.integrity(
            self.task, self.folder, self._handed_in(), client=self.graders.client, reporter=self.runner.reporter
        )
        self._write(self.folder.integrity, report)

    def _remove_taken_workspace(self) -> None:
        """What the submission holds now is not kept twice (its step is finished, so it is never taken again)."""
        remove_tree(self.folder.agent_logs / "workspace")

    def _execution(self) -> None:
        integrity = find_record(self.folder.integrity, IntegrityReport)
        if integrity is not None and integrity.verdict is Verdict.FAIL and not self.graders.execute_all:
            self.folder.execution.unlink(missing_ok=True)
            return
        report = self.graders.execution(
            self.task, self.folder, self._handed_in(), sandbox=self.sandbox, limits=self.limits,
            owner=self.step_of_agent.owner, reporter=self.runner.reporter,
        )  # fmt: skip
        self._write_or_remove(self.folder.execution, report)
        if self.rules is None and integrity is not None:
            found = with_execution(self.task, self.folder, self._handed_in(), integrity)
            self._write(self.folder.integrity, found)

    def _judge(self) -> None:
        graders = self.graders
        judgement = graders.judge(
            self.task, self.folder, self._handed_in(), client=graders.client, panel=graders.panel,
            reporter=self.runner.reporter,
        )  # fmt: skip
        self._write_or_remove(self.folder.judgement, judgement)

    def _score(self) -> EpisodeScores:
        """The row, whatever happened; and the lock beside it."""
        done = set(self.state.finished)
        integrity = find_record(self.folder.integrity, IntegrityReport) if Step.INTEGRITY in done else None
        execution = find_record(self.folder.execution, ExecutionReport) if Step.EXECUTION in done else None
        judgement = find_record(self.folder.judgement, Judgement) if Step.JUDGE in done else None
        lock = self._lock(integrity, judgement)
        write_if_changed(self.folder.root / "lock.json", lock.model_dump_json(indent=1) + "\n")
        scores = score_episode(
            self.task, self.state, integrity, execution, judgement, lock=lock.comparable, model=self.step_of_agent.model
        )
        if self.rules is not None and scores.status is EpisodeStatus.SCORED:
            scores = self.rules.score(self.task, self.folder, scores)
        self._write(self.folder.scores, scores)
        self._save(finished=(*self.state.finished, Step.SCORE))
        return scores

    def _lock(self, integrity: IntegrityReport | None, judgement: Judgement | None) -> EpisodeLock:
        graders: list[tuple[str, Grader]] = []
        graders += [("integrity", integrity.grader)] if integrity else []
        graders += [("judge", judgement.grader)] if judgement else []
        agent = self.step_of_agent.agent
        return lock_episode(
            self.task, limits=self.limits, instructions=self.told, sandbox=self.sandbox.name,
            image="" if self.image is None else self.image.digest, agent=agent.name, agent_version=agent.version,
            agent_options=dict(self.runner.agent_options), model=self.step_of_agent.model, graders=graders,
        )  # fmt: skip

    def _handed_in(self) -> Submission:
        submission = find_record(self.folder.submission / "submission.json", Submission)
        if submission is None:
            raise ExpbenchError(
                FailureKind.RECORD_INVALID, str(self.folder.submission), "holds no submission that can be read",
                consequence="The episode cannot be graded",
                next_step=f"Remove {self.folder.root} and run the same command with --resume: it is run again",
            )  # fmt: skip
        return submission

    def _write_or_remove(self, path: Path, value: BaseModel | None) -> None:
        if value is None:
            path.unlink(missing_ok=True)
        else:
            self._write(path, value)

    @staticmethod
    def _write(path: Path, value: BaseModel) -> None:
        write_if_changed(path, value.model_dump_json(indent=1) + "\n")


def _interrupted(reason: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.INTERRUPTED, "expbench evaluate", reason,
        consequence="Containers were removed; what was finished is kept",
        next_step="Run the same command with --resume to go on",
    )  # fmt: skip
