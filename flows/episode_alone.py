"""One episode of a run in a process of its own, as the flow `evaluate-episode` carries it out on any machine.

The process that fans a run out holds the run's lock (`flows.evaluate`); each episode has a lock and an owner label of
its own here, so that episodes side by side never remove each other's containers, and a killed one is cleaned up by
whoever takes it up again. Non-goal: what an episode is (`evaluation.harness.episode_runner`).
"""

from __future__ import annotations

import contextvars
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from evaluation.ablations import ablate, parse_ablation
from evaluation.agents.registry import get_agent
from evaluation.harness.episode_runner import episode_folder, load_state
from evaluation.harness.run import RunRecord, read_run, run_owner, task_digest
from evaluation.scores import EpisodeScores
from evaluation.sources import load_tasks
from evaluation.task import EvaluationTask
from flows.engines import ModelOptions
from flows.evaluate import EvaluateOptions, Prepared, episode_runner, recorded_options
from flows.grading_model import grading_model
from pipeline.digests import text_digest
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import exclusive_lock, is_locked
from pipeline.progress import Reporter
from pipeline.sandbox import StopHandle, open_sandbox
from pipeline.scratch import remove_orphaned_scratch

__all__ = ["episode_owner", "evaluate_episode", "leave_no_orphans", "scores_of"]

_LOCK = ".lock"


def episode_owner(root: Path, task: str, repeat: int) -> str:
    """Label of what runs on behalf of one episode that has a process of its own."""
    return "episode-" + text_digest(f"{run_owner(root)}/{task}/{repeat}")[:16]


def evaluate_episode(
    root: Path, source: Path, task_id: str, repeat: int, *, judge_limits: ModelOptions | None = None, reporter: Reporter
) -> EpisodeScores:
    """Bring one episode of a run that was begun to its end, from wherever it stands.

    Args:
        root: the run's directory, with `run.yaml`.
        source: where the run's tasks are, as this machine sees it.
        task_id: the task.
        repeat: which episode of it, from 0.
        judge_limits: what the judging model may cost, and how its recorded answers are used.
        reporter: progress.

    Raises:
        ExpbenchError: `USAGE`, the run has no such episode; `WORKSPACE_CONFLICT`, the task is not the one that the run
            was begun with; `WORKSPACE_LOCKED`, another process is at this episode; and what ends a run (`evaluate`).
    """
    record = read_run(root)
    _require_known(root, record, task_id, repeat)
    folder = episode_folder(root, task_id, repeat)
    options = recorded_options(record, root.resolve(), source, judge_limits or ModelOptions())
    with (
        exclusive_lock(folder.root / _LOCK, f"{task_id}/{repeat} of {root}"),
        grading_model(options.judge, options.judging, options.root) as client,
    ):
        task = _task(options, record, task_id, reporter)
        agent = get_agent(options.agent, options.agent_options)
        prepared = Prepared(options=options, record=record, tasks=(task,), agent=agent, client=client)
        return _run(prepared, task, repeat, reporter)


def scores_of(root: Path, task: str, repeat: int) -> EpisodeScores | None:
    """The scores of a finished episode; None: it is not finished."""
    folder = episode_folder(root, task, repeat)
    state = load_state(folder)
    if state is None or "score" not in {step.value for step in state.finished} or not folder.scores.is_file():
        return None
    return EpisodeScores.model_validate_json(folder.scores.read_bytes())


def leave_no_orphans(root: Path, record: RunRecord, *, here: bool) -> None:
    """Before the episodes of a run are carried out: is a process of an earlier fan-out still at one of them?

    Args:
        root: the run's directory, held by the caller.
        record: what is run.
        here: the episodes will run in this process, which removes what killed ones left on this machine.

    Raises:
        ExpbenchError: `WORKSPACE_LOCKED`: an episode is under way in another process, and `here` is set (a fan-out
            waits for it instead: its own run of that episode is tried again until the lock is free).
    """
    if not here:
        return
    for task, repeat in record.episodes:
        lock = episode_folder(root, task, repeat).root / _LOCK
        if not lock.is_file():
            continue
        if is_locked(lock):
            raise ExpbenchError(
                FailureKind.WORKSPACE_LOCKED, str(root), f"episode {task}/{repeat} is under way as a run of its own",
                consequence="No episode was run", next_step="Wait for it, or cancel it in Prefect",
            )  # fmt: skip
        if scores_of(root, task, repeat) is None:
            open_sandbox("docker").reap(episode_owner(root, task, repeat))


def _run(prepared: Prepared, task: EvaluationTask, repeat: int, reporter: Reporter) -> EpisodeScores:
    """The episode in a thread, so that a signal in this one reaches it through its stop handle, not in mid-step."""
    owner = episode_owner(prepared.options.root, task.id, repeat)
    runner = episode_runner(prepared, owner=owner, reporter=reporter)
    sandbox = runner.agent_step.sandbox
    sandbox.reap(owner)  # what a killed process left of it
    remove_orphaned_scratch(reporter.warn)
    stop = StopHandle()
    context = contextvars.copy_context()
    try:
        with ThreadPoolExecutor(1, thread_name_prefix="expbench-episode") as pool:
            future = pool.submit(context.run, runner.episode, task, repeat, stop)
            try:
                return future.result()
            except BaseException:
                stop.abort("the run was ended")
                raise
    finally:
        sandbox.reap(owner)


def _task(options: EvaluateOptions, record: RunRecord, task_id: str, reporter: Reporter) -> EvaluationTask:
    """The task as the source has it now, which must be the one that the run was begun with."""
    scratch = options.root / "workspaces"  # where the fan-out has built it already
    [task], problems = load_tasks(options.source, scratch=scratch, reporter=reporter, only=(task_id,))
    for problem in problems:
        reporter.warn(f"{problem.where}: {problem.message}")
    if options.ablation:
        task = ablate(task, parse_ablation(options.ablation)).task
    if task_digest(task) != record.tasks[task_id]:
        raise ExpbenchError(
            FailureKind.WORKSPACE_CONFLICT, task_id, f"it was changed in {options.source} since the run was begun",
            consequence="The episode was not run", next_step="Begin a new run: choose another --out",
        )  # fmt: skip
    return task


def _require_known(root: Path, record: RunRecord, task_id: str, repeat: int) -> None:
    if task_id not in record.tasks or not 0 <= repeat < record.repeats:
        raise ExpbenchError(
            FailureKind.USAGE, f"{task_id}/{repeat}",
            f"is no episode of {root}, which has {record.repeats} of each of {len(record.tasks)} task(s)",
            consequence="Nothing was run", next_step="`expbench episodes RUN` lists them",
        )  # fmt: skip
