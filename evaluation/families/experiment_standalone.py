"""`expbench score experiment`: a submission judged without an episode (EXP-Bench 4.1: D, I and C).

There is no trajectory, so that nothing is said of integrity, and nothing is executed: M and E stay unknown.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal

from pydantic import Field

from evaluation.episode import EpisodeFolder
from evaluation.grading import conjunction, design_share, share
from evaluation.harness.submission_reader import take_submission
from evaluation.judges.judge import judge
from evaluation.sources import load_tasks
from evaluation.submission import RESPONSE
from evaluation.task import EvaluationTask
from evaluation.verdicts import Judgement
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm import ModelClient
from pipeline.progress import Reporter
from pipeline.schema import Problem, Record
from pipeline.scratch import scratch_directory
from pipeline.task import Family, Verdict

__all__ = ["ExperimentScore", "score_experiment"]


class ExperimentScore(Record):
    """What the judge says of a submission."""

    task: str
    family: Literal[Family.EXPERIMENT] = Family.EXPERIMENT
    design: float | None
    design_bounds: tuple[float, float]
    design_restated: bool = False
    """The task's text tells all of the design, so that D shows nothing."""
    implementation: float | None
    implementation_bounds: tuple[float, float]
    conclusion: float | None = Field(ge=0, le=1)
    judgement: Judgement
    problems: tuple[Problem, ...] = ()
    """Of the submission."""


def score_experiment(
    directory: Path, submission: Path, *, client: ModelClient | None, panel: int, reporter: Reporter
) -> ExperimentScore:
    """Judge a submission.

    Args:
        directory: `tasks/<id>` of a workspace or an import, with its ground truth.
        submission: `response.json`, or a directory with it and with the files that were added or changed; they are laid
            over the task's masked repository. Links are not followed.
        client: the judging model; None: keyless.
        panel: draws of the model.
        reporter: progress.

    Raises:
        ExpbenchError: `RECORD_INVALID`: there is no such task or submission, or the task has no ground truth or no
            repository here; and see `judge`.
    """
    with scratch_directory() as name:
        scratch = Path(name)
        task = _task(directory, scratch / "workspaces", reporter)
        folder = EpisodeFolder(scratch / "episode")
        masked = task.masked_repository
        if masked is None:
            raise _invalid(directory, task.blocked or "its masked repository is not at hand", "Curate the task again")
        tree = scratch / "tree"
        shutil.copytree(masked, tree, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        _lay_over(submission, tree)
        taken = take_submission(tree, masked, folder)
        judgement = judge(task, folder, taken, client=client, panel=panel, reporter=reporter)
    design, design_bounds, restated = design_share(judgement.design)
    implementation, implementation_bounds = share(judgement.implementation)
    verdict = conjunction([item.verdict for item in judgement.conclusion])
    return ExperimentScore(
        task=task.id,
        design=design,
        design_bounds=design_bounds,
        design_restated=restated,
        implementation=implementation,
        implementation_bounds=implementation_bounds,
        conclusion=None if verdict is Verdict.UNKNOWN else float(verdict is Verdict.PASS),
        judgement=judgement,
        problems=taken.problems,
    )


def _task(directory: Path, scratch: Path, reporter: Reporter) -> EvaluationTask:
    place = directory.resolve()
    tasks, _ = load_tasks(place.parent.parent, scratch=scratch, reporter=reporter, only=(place.name,))
    task = tasks[0]
    if task.public.family is not Family.EXPERIMENT:
        family = task.public.family.value
        raise _invalid(directory, f"is a task of the {family} family", f"Use `expbench score {family}`")
    return task


def _lay_over(submission: Path, tree: Path) -> None:
    if submission.is_file() and not submission.is_symlink():
        shutil.copyfile(submission, tree / RESPONSE)
        return
    if not submission.is_dir():
        raise _invalid(submission, "does not exist", "Name response.json, or the directory that holds it")
    for path in sorted(submission.rglob("*")):
        inside = path.relative_to(submission)
        if ".git" in inside.parts or path.is_symlink() or not path.is_file():
            continue
        target = tree / inside
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copyfile(path, target)
        target.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)


def _invalid(path: Path, cause: str, next_step: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.RECORD_INVALID, str(path), cause, consequence="Nothing was scored", next_step=next_step
    )
