"""`expbench judge`: a run graded again from what was saved, by whoever is asked for."""

from __future__ import annotations

from pathlib import Path

from evaluation.ablations import ablate, parse_ablation
from evaluation.harness.run import open_run, read_run
from evaluation.judges.regrade import Regraded, regrade_run
from evaluation.sources import load_tasks
from evaluation.task import EvaluationTask
from flows.engines import ModelOptions
from flows.grading_model import GradingEngine, grading_model
from pipeline.progress import Reporter
from pipeline.scratch import remove_orphaned_scratch

__all__ = ["judge_run"]


def judge_run(
    run: Path, *, engine: GradingEngine, options: ModelOptions, panel: int, monitor: bool, source: Path | None,
    reporter: Reporter,
) -> Regraded:  # fmt: skip
    """Judge the episodes of a run again: no container, no agent.

    Args:
        run: the run's directory.
        engine: who judges.
        options: the judging model and what it may cost in this run, with `engine` model.
        panel: draws of the model that vote.
        monitor: check integrity again, too.
        source: where the tasks are; None: where they were.
        reporter: progress.

    Raises:
        ExpbenchError: `RECORD_INVALID`, no run or no source; `WORKSPACE_LOCKED`; and of the model layer.
    """
    record = read_run(run)
    remove_orphaned_scratch(reporter.warn)
    with open_run(run, resume=True), grading_model(engine, options, run) as client:
        tasks = _tasks(source or Path(record.source), run, record.ablation, reporter)
        return regrade_run(run, tasks, client=client, panel=panel, monitor=monitor, reporter=reporter)


def _tasks(source: Path, run: Path, ablation: str, reporter: Reporter) -> list[EvaluationTask]:
    tasks, problems = load_tasks(source, scratch=run / "workspaces", reporter=reporter)
    for problem in problems:
        reporter.warn(f"{problem.where}: {problem.message}")
    return [ablate(task, parse_ablation(ablation)).task for task in tasks] if ablation else tasks
