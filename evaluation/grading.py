"""One episode's verdicts become one row of scores (EXP-Bench 4.1; DESIGN 8, 9).

Arithmetic only: nothing is graded here. What was not established stays `None`, with the bounds that it leaves open; a
blocked episode and one that the machinery lost say nothing of the agent and hold no score at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from evaluation.episode import EpisodeState, Step
from evaluation.scores import EpisodeScores, EpisodeStatus
from evaluation.task import EvaluationTask
from evaluation.verdicts import ExecutionReport, Grader, IntegrityReport, ItemVerdict, Judgement
from pipeline.task import Verdict

__all__ = ["conjunction", "design_share", "score_episode", "share"]

_BINARY: Final[dict[Verdict, float | None]] = {Verdict.PASS: 1.0, Verdict.FAIL: 0.0, Verdict.UNKNOWN: None}
_OPEN: Final = (0.0, 1.0)


def share(items: Sequence[ItemVerdict]) -> tuple[float | None, tuple[float, float]]:
    """Share of the items that are met, in [0, 1], and its bounds with every unknown item not met, and met.

    The share is None as soon as one item is unknown, and when there are no items.
    """
    if not items:
        return None, _OPEN
    met = sum(item.verdict is Verdict.PASS for item in items)
    unknown = sum(item.verdict is Verdict.UNKNOWN for item in items)
    bounds = (met / len(items), (met + unknown) / len(items))
    return (None if unknown else bounds[0]), bounds


def design_share(items: Sequence[ItemVerdict]) -> tuple[float | None, tuple[float, float], bool]:
    """D as `share` gives it over the items that the task does not tell; whether it tells all of them.

    Where all are told, D is the share over them: a restatement, which shows nothing but that the task was read.
    """
    open_items = [item for item in items if not item.told]
    value, bounds = share(open_items or items)
    return value, bounds, bool(items) and not open_items


def conjunction(verdicts: Sequence[Verdict]) -> Verdict:
    """All passed: pass; one failed: fail, whatever the others are; otherwise, and of nothing at all, unknown."""
    if any(verdict is Verdict.FAIL for verdict in verdicts):
        return Verdict.FAIL
    if not verdicts or any(verdict is Verdict.UNKNOWN for verdict in verdicts):
        return Verdict.UNKNOWN
    return Verdict.PASS


def score_episode(
    task: EvaluationTask,
    state: EpisodeState,
    integrity: IntegrityReport | None,
    execution: ExecutionReport | None,
    judgement: Judgement | None,
    *,
    lock: str,
    model: str | None = None,
) -> EpisodeScores:
    """The row of one episode.

    Args:
        task: the task.
        state: how the episode went; `blocked` and `failure` leave the row without scores.
        integrity: the monitor's report; None: not monitored.
        execution: the re-execution; None: not checked.
        judgement: the judge's verdicts; None: not judged.
        lock: `EpisodeLock.comparable`.
        model: the model that the agent called.
    """
    status, reason = _status(task, state)
    outcome = state.outcome
    usage = outcome.usage if outcome else None
    graders: list[tuple[str, Grader]] = []
    row = EpisodeScores(
        run=state.run,
        task=task.id,
        family=task.public.family,
        paper=task.public.paper.id,
        category=task.category,
        agent=state.agent,
        model=model,
        repeat=state.repeat,
        status=status,
        reason=reason,
        cost_usd=outcome.cost_usd if outcome else None,
        input_tokens=usage.input_tokens if usage else None,
        output_tokens=usage.output_tokens if usage else None,
        model_calls=outcome.model_calls if outcome else None,
        wall_s=outcome.wall_s if outcome else None,
        limits=outcome.limits if outcome else (),
        lock=lock,
    )
    if status is not EpisodeStatus.SCORED:
        return row
    changes: dict[str, object] = {}
    if integrity is not None:
        changes["monitor"] = _BINARY[integrity.verdict]
        graders.append(("integrity", integrity.grader))
    if execution is not None:
        changes["execution"] = _BINARY[execution.verdict]
        changes["execution_checked"] = True  # with an unknown verdict too: it opens the bounds of E
        decided = any(item.verdict is not Verdict.UNKNOWN for item in execution.counterfactuals)
        changes["execution_grade"] = "perturbed" if decided else "re-executed"
    if judgement is not None:
        changes["design"], changes["design_bounds"], changes["design_restated"] = design_share(judgement.design)
        changes["implementation"], changes["implementation_bounds"] = share(judgement.implementation)
        changes["conclusion"] = _BINARY[conjunction([item.verdict for item in judgement.conclusion])]
        graders.append(("judge", judgement.grader))
    return row.evolve(**changes, graders=tuple(graders))


def _status(task: EvaluationTask, state: EpisodeState) -> tuple[EpisodeStatus, str]:
    if state.blocked or task.blocked:
        return EpisodeStatus.BLOCKED, state.blocked or task.blocked
    if state.failure is not None:
        return EpisodeStatus.UNKNOWN, f"the machinery failed: {state.failure}"
    if state.outcome is not None and state.outcome.reason == "infrastructure":
        return EpisodeStatus.UNKNOWN, f"the machinery failed: {state.outcome.detail or 'the agent could not be run'}"
    if Step.AGENT not in state.finished:
        return EpisodeStatus.UNKNOWN, "the agent's run is not finished"
    return EpisodeStatus.SCORED, ""
