"""Grade the episodes of a run again, from their saved artefacts alone: no container, no agent.

Monitor and judge are asked anew, what they said before is replaced, and scores and lock follow. Episodes that were
blocked, or that the machinery lost, have nothing to grade and are left as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from evaluation.episode import EpisodeFolder, EpisodeState, Step
from evaluation.families.registry import family_rules
from evaluation.grading import score_episode
from evaluation.harness.episode_runner import episode_folder
from evaluation.harness.run import read_run, states
from evaluation.integrity.monitor import check_integrity
from evaluation.judges.calibration import verdicts_of
from evaluation.judges.judge import judge
from evaluation.lock import EpisodeLock
from evaluation.scores import EpisodeScores, EpisodeStatus
from evaluation.submission import Submission
from evaluation.task import EvaluationTask
from evaluation.verdicts import ExecutionReport, Grader, IntegrityReport, Judgement
from pipeline.digests import digest_of
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import write_text
from pipeline.llm import ModelClient
from pipeline.progress import Reporter
from pipeline.schema import Record
from pipeline.task import Verdict

__all__ = ["Regraded", "regrade_run", "run_verdicts"]

ModelT = TypeVar("ModelT", bound=BaseModel)


class Regraded(Record):
    """What grading a run again came to."""

    run: str
    graded: tuple[EpisodeScores, ...]
    left: tuple[tuple[str, str], ...] = ()
    """(episode, why it was left as it is)."""
    changed: tuple[str, ...] = ()
    """Episodes of which a verdict differs from before: `<task>/<repeat> <dimension> <item>: before -> after`."""


def regrade_run(
    root: Path,
    tasks: Sequence[EvaluationTask],
    *,
    client: ModelClient | None,
    panel: int,
    monitor: bool,
    reporter: Reporter,
) -> Regraded:
    """Judge every episode of a run again.

    Args:
        root: the run's directory; the caller holds its lock.
        tasks: the tasks of its source, with ground truth.
        client: the judging model; None: keyless.
        panel: draws of the model.
        monitor: check integrity again, too.
        reporter: progress.

    Raises:
        ExpbenchError: `RECORD_INVALID`: no run, or an artefact that cannot be read; and see `judge`.
    """
    record = read_run(root)
    known = {task.id: task for task in tasks}
    graded: list[EpisodeScores] = []
    left: list[tuple[str, str]] = []
    changed: list[str] = []
    episodes = states(root, record)
    reporter.start("regrade", len(episodes))
    for task_id, repeat, state in episodes:
        name = f"{task_id}/{repeat}"
        reason = _not_gradable(known.get(task_id), state)
        if reason or state is None:
            left.append((name, reason))
        else:
            folder = episode_folder(root, task_id, repeat)
            before = _verdicts(folder)
            graded.append(_regrade(known[task_id], folder, state, client, panel, monitor, reporter))
            changed += _differences(name, before, _verdicts(folder))
        reporter.step("regrade", name)
    reporter.end("regrade", f"{len(graded)} graded, {len(left)} left")
    return Regraded(run=record.run, graded=tuple(graded), left=tuple(left), changed=tuple(changed))


def run_verdicts(root: Path) -> dict[str, dict[tuple[str, str], Verdict]]:
    """Episode -> (dimension, item) -> verdict, as saved; for a calibration.

    Raises:
        ExpbenchError: `RECORD_INVALID`: no run, or a verdict that cannot be read.
    """
    record = read_run(root)
    return {
        f"{task}/{repeat}": _verdicts(episode_folder(root, task, repeat)) for task, repeat, _ in states(root, record)
    }


def _not_gradable(task: EvaluationTask | None, state: EpisodeState | None) -> str:  # noqa: PLR0911 - one answer a case
    if state is None:
        return "it was not begun"
    if task is None:
        return "its task is not in the source"
    if state.blocked or task.blocked:
        return f"blocked: {state.blocked or task.blocked}"
    if state.failure is not None:
        return f"the machinery failed: {state.failure}"
    if Step.SUBMISSION not in state.finished:
        return "nothing was handed in yet"
    if task.truth is None and family_rules(task.public.family) is None:
        return "its task has no ground truth"
    return ""


def _regrade(
    task: EvaluationTask, folder: EpisodeFolder, state: EpisodeState, client: ModelClient | None, panel: int,
    monitor: bool, reporter: Reporter,
) -> EpisodeScores:  # fmt: skip
    rules = family_rules(task.public.family)  # None: the family `experiment`, whose graders are the harness's own
    check, ask = (check_integrity, judge) if rules is None else (rules.integrity, rules.judge)
    submission = _required(folder.submission / "submission.json", Submission)
    integrity = _read(folder.integrity, IntegrityReport)
    if monitor or integrity is None:
        integrity = check(task, folder, submission, client=client, reporter=reporter)
    judgement = ask(task, folder, submission, client=client, panel=panel, reporter=reporter)
    execution = _read(folder.execution, ExecutionReport)
    graders: list[tuple[str, Grader]] = [("integrity", integrity.grader)]
    graders += [("judge", judgement.grader)] if judgement is not None else []
    old = _required(folder.scores, EpisodeScores) if folder.scores.is_file() else None
    lock = _lock(folder, graders)
    scores = score_episode(
        task,
        state,
        integrity,
        execution,
        judgement,
        lock=lock.comparable if lock else "",
        model=old.model if old else None,
    )
    finished = tuple(step for step in Step if step in {*state.finished, Step.INTEGRITY, Step.JUDGE, Step.SCORE})
    # verdicts before the scores, which a family takes from them, and before the state that names them: what is cut off
    # in between is done again
    write_text(folder.integrity, integrity.model_dump_json(indent=1) + "\n")
    if judgement is not None:
        write_text(folder.judgement, judgement.model_dump_json(indent=1) + "\n")
    if rules is not None and scores.status is EpisodeStatus.SCORED:
        scores = rules.score(task, folder, scores)
    write_text(folder.scores, scores.model_dump_json(indent=1) + "\n")
    if lock is not None:
        write_text(folder.root / "lock.json", lock.model_dump_json(indent=1) + "\n")
    write_text(folder.state, state.evolve(finished=finished).model_dump_json(indent=1) + "\n")
    return scores


def _lock(folder: EpisodeFolder, graders: Sequence[tuple[str, Grader]]) -> EpisodeLock | None:
    """The episode's lock with other graders, digested as `evaluation.lock.lock_episode` does."""
    lock = _read(folder.root / "lock.json", EpisodeLock)
    if lock is None:
        return None
    return lock.evolve(graders=digest_of(sorted([role, grader.model_dump(mode="json")] for role, grader in graders)))


def _verdicts(folder: EpisodeFolder) -> dict[tuple[str, str], Verdict]:
    return verdicts_of(_read(folder.judgement, Judgement), _read(folder.integrity, IntegrityReport))


def _differences(name: str, before: dict[tuple[str, str], Verdict], after: dict[tuple[str, str], Verdict]) -> list[str]:
    return [
        f"{name} {dimension} {item}: {before[dimension, item].value} -> {verdict.value}".replace(" :", ":")
        for (dimension, item), verdict in sorted(after.items())
        if (dimension, item) in before and before[dimension, item] is not verdict
    ]


def _required(path: Path, model: type[ModelT]) -> ModelT:
    found = _read(path, model)
    if found is None:
        raise _unreadable(path, "is not there")
    return found


def _read(path: Path, model: type[ModelT]) -> ModelT | None:
    try:
        return model.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise _unreadable(path, f"cannot be read ({error.error_count()} errors)") from error


def _unreadable(path: Path, cause: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.RECORD_INVALID,
        str(path),
        cause,
        consequence="The episode was not graded again",
        next_step="Run `expbench evaluate` on the same run with --resume: what is missing is done again",
    )
