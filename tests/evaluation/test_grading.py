"""Verdicts to scores: three-valued, with bounds, and nothing at all for what was blocked or lost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.episode import AgentOutcome, EpisodeState, Step
from evaluation.grading import conjunction, score_episode, share
from evaluation.scores import EpisodeScores, EpisodeStatus
from evaluation.task import EvaluationTask
from evaluation.trajectory import TokenUsage
from evaluation.verdicts import Counterfactual, ExecutionReport, Grader, IntegrityReport, ItemVerdict, Judgement
from pipeline.task import Verdict
from pipeline.witness.records import Perturbation
from tests.evaluation.execution_support import public_task

P, F, U = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN
GRADER = Grader(engine="keyless")


def items(*verdicts: Verdict) -> tuple[ItemVerdict, ...]:
    return tuple(
        ItemVerdict(item=f"i{number}", text="t", verdict=verdict, reason="r") for number, verdict in enumerate(verdicts)
    )


def state(**changes: object) -> EpisodeState:
    outcome = AgentOutcome(
        reason="finished", wall_s=12.5, usage=TokenUsage(input_tokens=10, output_tokens=3), model_calls=2, cost_usd=0.5,
        limits=("wall_time",),
    )  # fmt: skip
    values = {"run": "r", "task": "paper-task", "agent": "a", "repeat": 1, "finished": tuple(Step), "outcome": outcome}
    return EpisodeState.model_validate(values | changes)


def grade(
    design: tuple[Verdict, ...] = (P,),
    implementation: tuple[Verdict, ...] = (P,),
    conclusion: tuple[Verdict, ...] = (P,),
    monitor: Verdict = P,
    execution: Verdict = P,
    **changes: object,
) -> EpisodeScores:
    return score_episode(
        EvaluationTask(public=public_task(), category="vision"),
        state(**changes),
        IntegrityReport(verdict=monitor, reason="r", grader=GRADER),
        ExecutionReport(verdict=execution, reason="r"),
        Judgement(
            design=items(*design), implementation=items(*implementation), conclusion=items(*conclusion), grader=GRADER
        ),
        lock="l",
        model="m",
    )


def test_a_complete_row() -> None:
    row = grade((P, P, F, P), (P, F), (P, P))
    assert (row.monitor, row.design, row.implementation, row.execution, row.conclusion) == (1.0, 0.75, 0.5, 1.0, 1.0)
    assert row.execution_checked
    assert (row.design_bounds, row.implementation_bounds) == ((0.75, 0.75), (0.5, 0.5))
    assert (row.cost_usd, row.input_tokens, row.output_tokens, row.model_calls, row.wall_s) == (0.5, 10, 3, 2, 12.5)
    assert (row.status, row.category, row.paper, row.model, row.lock) == ("scored", "vision", "paper", "m", "l")
    assert row.limits == ("wall_time",)
    assert [role for role, _ in row.graders] == ["integrity", "judge"]


def test_an_unknown_item_leaves_the_share_unknown_and_opens_its_bounds() -> None:
    row = grade((P, U, F, U), conclusion=(P, U), monitor=U, execution=U)
    assert row.design is None
    assert row.design_bounds == (0.25, 0.75)
    assert (row.conclusion, row.monitor, row.execution) == (None, None, None)
    assert row.execution_checked  # it was tried: the bounds of E stay open for it


def design(*items: tuple[Verdict, bool]) -> EpisodeScores:
    told = tuple(
        ItemVerdict(item=f"d{number}", text="t", verdict=verdict, reason="r", told=is_told)
        for number, (verdict, is_told) in enumerate(items)
    )
    judgement = Judgement(design=told, grader=GRADER)
    return score_episode(EvaluationTask(public=public_task()), state(), None, None, judgement, lock="l")


def test_d_is_over_what_the_task_does_not_tell() -> None:
    row = design((P, True), (P, True), (F, False), (P, False), (F, True))
    assert (row.design, row.design_restated) == (0.5, False)
    row = design((P, True), (U, False))
    assert (row.design, row.design_bounds, row.design_restated) == (None, (0.0, 1.0), False)
    row = design((U, True), (P, False))
    assert (row.design, row.design_restated) == (1.0, False)


def test_a_design_that_is_told_altogether_is_a_restatement() -> None:
    row = design((P, True), (F, True))
    assert (row.design, row.design_bounds, row.design_restated) == (0.5, (0.5, 0.5), True)
    assert not design().design_restated, "nothing to tell is not told"


@pytest.mark.parametrize(
    ("verdicts", "grade_of_e"),
    [((), "re-executed"), ((U, U), "re-executed"), ((U, P), "perturbed"), ((F,), "perturbed")],
)
def test_e_is_perturbed_where_a_counterfactual_decided(verdicts: tuple[Verdict, ...], grade_of_e: str) -> None:
    tried = tuple(Counterfactual(perturbation=Perturbation.MOVED, verdict=verdict, reason="r") for verdict in verdicts)
    report = ExecutionReport(verdict=P, reason="r", counterfactuals=tried)
    task = EvaluationTask(public=public_task())
    assert score_episode(task, state(), None, report, None, lock="l").execution_grade == grade_of_e
    assert score_episode(task, state(), None, None, None, lock="l").execution_grade == ""


def test_one_failed_part_decides_the_conclusion_whatever_is_unknown() -> None:
    assert grade(conclusion=(U, F, P)).conclusion == 0.0


@pytest.mark.parametrize(
    ("changes", "status", "reason"),
    [
        ({"blocked": "no GPU"}, EpisodeStatus.BLOCKED, "no GPU"),
        ({"failure": "sandbox_broken"}, EpisodeStatus.UNKNOWN, "sandbox_broken"),
        (
            {"outcome": AgentOutcome(reason="infrastructure", detail="engine gone")},
            EpisodeStatus.UNKNOWN,
            "engine gone",
        ),
        ({"finished": (Step.PREPARE,)}, EpisodeStatus.UNKNOWN, "not finished"),
    ],
)
def test_what_says_nothing_of_the_agent_has_no_score(
    changes: dict[str, object], status: EpisodeStatus, reason: str
) -> None:
    row = grade(**changes)  # type: ignore[arg-type]
    assert row.status is status
    assert reason in row.reason
    assert [row.monitor, row.design, row.implementation, row.execution, row.conclusion] == [None] * 5
    assert not row.execution_checked
    assert (row.design_bounds, row.implementation_bounds) == ((0.0, 1.0), (0.0, 1.0))


def test_a_blocked_task_is_blocked_without_a_run() -> None:
    task = EvaluationTask(public=public_task(), blocked="no repository at hand")
    empty = EpisodeState(run="r", task=task.id, agent="a", repeat=0)
    row = score_episode(task, empty, None, None, None, lock="")
    assert (row.status, row.reason, row.conclusion) == (EpisodeStatus.BLOCKED, "no repository at hand", None)


def test_what_was_not_graded_is_unknown() -> None:
    row = score_episode(EvaluationTask(public=public_task()), state(), None, None, None, lock="l")
    assert row.status is EpisodeStatus.SCORED
    assert (row.monitor, row.design, row.execution, row.execution_checked) == (None, None, None, False)


@settings(deadline=None)
@given(st.lists(st.sampled_from(list(Verdict)), max_size=12))
def test_bounds_hold_whatever_the_unknown_turn_out_to_be(verdicts: list[Verdict]) -> None:
    value, (low, high) = share(items(*verdicts))
    assert 0.0 <= low <= high <= 1.0
    for turned in (P, F):
        settled, _ = share(items(*(turned if verdict is U else verdict for verdict in verdicts)))
        assert settled is None if not verdicts else settled in (low, high)
    if value is not None:
        assert value == low == high
        assert (value == 1.0) == (conjunction(verdicts) is P)
