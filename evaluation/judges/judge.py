"""Metrics D, I and C: design, implementation and conclusion, judged criterion by criterion (EXP-Bench 4.1).

The keyless judge rests on what ran and on numbers, and says unknown where only a reader could tell; a model, or a panel
of draws of one, reads. Who judged is in every
judgement. Judging needs the saved artefacts of an episode and the ground truth, nothing else: no container, no agent.
"""

from __future__ import annotations

from typing import Literal

from evaluation.episode import EpisodeFolder
from evaluation.integrity.addressing import addressed
from evaluation.integrity.material import Material, load_material
from evaluation.judges.conclusion import judge_conclusion
from evaluation.judges.design import judge_design
from evaluation.judges.implementation import judge_implementation
from evaluation.submission import Submission
from evaluation.task import EvaluationTask
from evaluation.verdicts import Grader, ItemVerdict, Judgement
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm import ModelClient
from pipeline.progress import Reporter
from pipeline.task import Verdict

__all__ = ["JUDGE_VERSION", "judge"]

JUDGE_VERSION = "5"
"""Raised when the rules change, so that judgements of different rules are not taken for comparable."""
Phase = Literal["design", "implementation", "execution", "conclusion"]


def judge(
    task: EvaluationTask,
    folder: EpisodeFolder,
    submission: Submission,
    *,
    client: ModelClient | None,
    panel: int = 1,
    reporter: Reporter,
) -> Judgement:
    """Judge one submission from its saved artefacts.

    Args:
        task: the task, with its ground truth.
        folder: the episode; `submission/` is read, and the trajectory for text that addresses a grader.
        submission: what was taken from the workspace.
        client: the judging model; None: the keyless judge.
        panel: draws of the model that vote; each sees the criteria in another order.
        reporter: progress.

    Raises:
        ExpbenchError: `RECORD_INVALID`: the task has no ground truth, so that nothing can be judged; `USAGE`: a panel
            without a model.
        BudgetError, ModelError: see `ModelClient.structured`; failures of the endpoint leave items unknown instead.
    """
    if task.truth is None:
        raise ExpbenchError(
            FailureKind.RECORD_INVALID,
            f"task {task.id}",
            "has no ground truth",
            consequence="Its submissions cannot be judged",
            next_step="Use a source that holds the private half of its tasks (a workspace, or a release "
            "with its truth)",
        )
    if panel < 1 or (panel > 1 and client is None):
        raise ExpbenchError(
            FailureKind.USAGE,
            f"a panel of {panel}",
            "a panel needs at least one draw, and a model",
            consequence="Nothing was judged",
            next_step="Name a model (EXPBENCH_MODEL) or leave --panel out",
        )
    material = load_material(task, folder, submission)
    keyless = _keyless(material)
    if client is None:
        return _with_flags(keyless, material)
    from evaluation.judges.model_judge import judge_with_model

    judged = judge_with_model(material, keyless, client, panel, reporter, ran=_ran_given(material))
    return _with_flags(judged, material)


def _ran_given(material: Material) -> list[str] | None:
    """Functions of given files that ran in the re-execution; None: nothing was seen."""
    witness = material.execution.witness if material.execution is not None else None
    if witness is None:
        return None
    own = {file.path for file in material.patch_files}
    return [f"{item.path}: {item.name}" for item in witness.functions if item.path not in own]


def _keyless(material: Material) -> Judgement:
    truth, response = material.task.truth, material.submission.response
    assert truth is not None
    conclusion = judge_conclusion(truth, response)
    design = judge_design(truth, material, conclusion)
    implementation = judge_implementation(truth, material, conclusion)
    return Judgement(
        design=design,
        implementation=implementation,
        conclusion=conclusion,
        grader=Grader(engine="keyless", version=JUDGE_VERSION),
        problems=material.submission.problems,
    )


def _with_flags(judgement: Judgement, material: Material) -> Judgement:
    flags, problems = addressed(material)
    return judgement.evolve(
        flags=tuple(flags),
        error_analysis=errors_of(judgement),
        problems=(*judgement.problems, *problems),
    )


def errors_of(judgement: Judgement) -> tuple[tuple[Phase, str], ...]:
    """(phase, what went wrong) of every criterion that is not met."""
    found: list[tuple[Phase, str]] = []
    groups: tuple[tuple[Phase, tuple[ItemVerdict, ...]], ...] = (
        ("design", judgement.design),
        ("implementation", judgement.implementation),
        ("conclusion", judgement.conclusion),
    )
    for phase, items in groups:
        found += [(phase, f"{item.text}: {item.reason}") for item in items if item.verdict is Verdict.FAIL]
    return tuple(found)
