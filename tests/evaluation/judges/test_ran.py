"""Design and implementation rest on what ran: settings at the calls, repeats as seeds, numbers that answer."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from evaluation.integrity.material import Material, load_material
from evaluation.judges.design import judge_design
from evaluation.judges.implementation import confirmation, judge_implementation
from evaluation.task import EvaluationTask
from evaluation.verdicts import Counterfactual, ExecutionReport, ItemVerdict
from pipeline.task import ExperimentTruth, Verdict
from pipeline.witness.records import FunctionRun, Perturbation, ProcessRun, WitnessReport
from tests.evaluation.integrity.episodes import Made
from tests.evaluation.integrity.world import STUDY

SEEDS = tuple(str(number) for number in range(80))
DRAW = FunctionRun(
    path="robust/data.py", name="draw", line=6, calls=240, callers=("run_study.py:15",),
    arguments=(("n", ("60",)), ("rate", ("0.0", "0.1", "0.2")), ("seed", SEEDS[:40])),
)  # fmt: skip
MEDIAN = FunctionRun(path="robust/estimators.py", name="median", line=8, calls=240, callers=("run_study.py:16",))


@pytest.fixture(scope="module")
def witnessed(task: EvaluationTask) -> EvaluationTask:
    assert task.truth is not None
    return task.evolve(truth=task.truth.evolve(ran=(DRAW, MEDIAN), seeds=SEEDS[:40]))


def _execution(
    *ran: FunctionRun, verdict: Verdict = Verdict.PASS, answers: Verdict | None = None, seeds: tuple[str, ...] = SEEDS
):
    answered = (
        () if answers is None else (Counterfactual(perturbation=Perturbation.MOVED, verdict=answers, reason="-"),)
    )
    return ExecutionReport(
        verdict=verdict, reason="-", counterfactuals=answered,
        witness=WitnessReport(processes=(ProcessRun(argv=("python",), directory=".", functions=ran, seeds=seeds),)),
    )  # fmt: skip


def _material(task: EvaluationTask, root: Path, execution: ExecutionReport | None, **changes: object) -> Material:
    made = Made(**changes)  # type: ignore[arg-type]
    folder, submission = made.write(root / "e")
    return dataclasses.replace(load_material(task, folder, submission), execution=execution)


def _right(truth: ExperimentTruth, found: int) -> list[ItemVerdict]:
    return [
        ItemVerdict(
            item=f"conclusion:{c.id}", text="-", reason="-", verdict=Verdict.PASS if n < found else Verdict.UNKNOWN
        )
        for n, c in enumerate(truth.expected.claims)
    ]


def _marks(items: tuple[ItemVerdict, ...]) -> str:
    return "".join({"pass": "+", "fail": "-", "unknown": "?"}[item.verdict.value] for item in items)


def test_the_originals_as_they_are_are_full_marks(witnessed: EvaluationTask, tmp_path: Path) -> None:
    assert witnessed.truth is not None
    material = _material(witnessed, tmp_path, None, files={"run_study.py": STUDY})
    assert _marks(judge_implementation(witnessed.truth, material, [])) == "+" * 7


def test_nothing_that_ran_is_unknown_and_nothing_that_was_handed_in_is_not_met(
    witnessed: EvaluationTask, tmp_path: Path
) -> None:
    assert witnessed.truth is not None
    assert _marks(judge_implementation(witnessed.truth, _material(witnessed, tmp_path, None), [])) == "?" * 7
    nothing = _material(witnessed, tmp_path / "n", None, files={}, reproduce="")
    assert _marks(judge_implementation(witnessed.truth, nothing, [])) == "-" * 7


def test_functions_that_ran_with_the_same_settings_meet_their_requirement(
    witnessed: EvaluationTask, tmp_path: Path
) -> None:
    assert witnessed.truth is not None
    material = _material(witnessed, tmp_path, _execution(DRAW, MEDIAN, seeds=SEEDS[:40]))
    assert _marks(judge_implementation(witnessed.truth, material, [])) == "+???++?"


@pytest.mark.parametrize(
    ("arguments", "mark"),
    [
        ((("n", ("60",)), ("rate", ("0.0", "0.1", "0.2", "0.3")), ("seed", SEEDS[:40])), "+"),
        ((("n", ("30",)), ("rate", ("0.0", "0.1", "0.2")), ("seed", SEEDS[:40])), "-"),
        ((("n", ("60",)), ("rate", ("0.0", "0.2")), ("seed", SEEDS[:40])), "-"),
        ((("n", ("60",)), ("rate", ("0.0", "0.1", "0.2")), ("seed", SEEDS[40:80])), "+"),
        ((("n", ("60",)), ("rate", ("0.0", "0.1", "0.2")), ("seed", SEEDS[:3])), "-"),
        ((("n", ("60",)), ("rate", ("0.0", "0.1", "0.2"))), "+"),
    ],
    ids=["more levels", "another size", "a level less", "other seeds", "three seeds for forty", "seed not seen"],
)
def test_other_settings_do_not(
    witnessed: EvaluationTask, tmp_path: Path, arguments: tuple[tuple[str, tuple[str, ...]], ...], mark: str
) -> None:
    assert witnessed.truth is not None
    material = _material(witnessed, tmp_path, _execution(DRAW.evolve(arguments=arguments), MEDIAN))
    assert _marks(judge_implementation(witnessed.truth, material, []))[4] == mark


def test_options_that_nobody_told_are_no_requirement(witnessed: EvaluationTask, tmp_path: Path) -> None:
    assert witnessed.truth is not None
    own = DRAW.evolve(arguments=(*DRAW.arguments, ("out", ("'results/study.csv'",))))
    theirs = DRAW.evolve(arguments=(*DRAW.arguments, ("out", ("'mine.json'",))))
    task = witnessed.evolve(truth=witnessed.truth.evolve(ran=(own,)))
    assert task.truth is not None
    material = _material(task, tmp_path, _execution(theirs, seeds=SEEDS[:40]))
    assert _marks(judge_implementation(task.truth, material, []))[4] == "+"


def test_numbers_that_are_right_and_answer_confirm_everything(witnessed: EvaluationTask, tmp_path: Path) -> None:
    truth = witnessed.truth
    assert truth is not None
    material = _material(witnessed, tmp_path, _execution(answers=Verdict.PASS))
    assert _marks(judge_implementation(truth, material, _right(truth, 9))) == "+" * 7
    assert _marks(judge_implementation(truth, material, _right(truth, 8))) == "+" * 7
    assert "?" in _marks(judge_implementation(truth, material, _right(truth, 7)))


def test_three_seeds_for_forty_are_not_confirmed_by_numbers_that_happen_to_be_near(
    witnessed: EvaluationTask, tmp_path: Path
) -> None:
    truth = witnessed.truth
    assert truth is not None
    fewer = DRAW.evolve(arguments=(("n", ("60",)), ("rate", ("0.0", "0.1", "0.2")), ("seed", SEEDS[:3])))
    material = _material(witnessed, tmp_path, _execution(fewer, answers=Verdict.PASS, seeds=SEEDS[:3]))
    assert _marks(judge_implementation(truth, material, _right(truth, 9))) == "-+++-++"


@pytest.mark.parametrize(
    "execution",
    [
        None, _execution(), _execution(answers=Verdict.UNKNOWN), _execution(answers=Verdict.FAIL),
        _execution(verdict=Verdict.FAIL, answers=Verdict.PASS),
    ],
)  # fmt: skip
def test_numbers_alone_confirm_nothing(witnessed: EvaluationTask, execution: ExecutionReport | None) -> None:
    assert witnessed.truth is not None
    assert confirmation(execution, _right(witnessed.truth, 9), 9) == ""


def test_one_wrong_number_confirms_nothing(witnessed: EvaluationTask) -> None:
    assert witnessed.truth is not None
    items = _right(witnessed.truth, 9)
    items[0] = items[0].evolve(verdict=Verdict.FAIL)
    assert confirmation(_execution(answers=Verdict.PASS), items, 9) == ""


# --- design ----------------------------------------------------------------------------------------------------------


def _design(
    task: EvaluationTask, root: Path, execution: ExecutionReport | None, found: int = 0
) -> dict[str, ItemVerdict]:
    assert task.truth is not None
    items = judge_design(task.truth, _material(task, root, execution), _right(task.truth, found))
    return {item.item: item for item in items}


def test_what_the_task_tells_is_a_restatement(witnessed: EvaluationTask, tmp_path: Path) -> None:
    found = _design(witnessed, tmp_path, None)
    assert all(item.told for item in found.values())  # question and method of this task spell everything out
    assert {item.verdict for item in found.values()} == {Verdict.PASS}


def _withheld(task: EvaluationTask) -> EvaluationTask:
    return task.evolve(
        public=task.public.evolve(question="How do the estimators compare?", method="-", agent_instructions="-")
    )


def test_what_is_only_said_is_unknown(witnessed: EvaluationTask, tmp_path: Path) -> None:
    found = _design(_withheld(witnessed), tmp_path, None)
    assert {item.verdict for item in found.values()} == {Verdict.UNKNOWN}
    assert not any(item.told for item in found.values())


def test_levels_settings_and_repeats_are_those_that_ran(witnessed: EvaluationTask, tmp_path: Path) -> None:
    assert witnessed.truth is not None
    forty = witnessed.truth.evolve(
        constant=tuple(v.evolve(values=("40",)) if v.name == "repetitions" else v for v in witnessed.truth.constant)
    )
    task = _withheld(witnessed).evolve(truth=forty)
    found = _design(task, tmp_path / "a", _execution(DRAW, seeds=SEEDS[:40]))
    assert [found[name].verdict.value for name in ("constant:n", "constant:repetitions", "independent:rate")] == [
        "pass"
    ] * 3
    assert found["constant:outlier"].verdict is Verdict.UNKNOWN
    fewer = DRAW.evolve(arguments=(("n", ("30",)), ("rate", ("0.0", "0.2")), ("seed", SEEDS[:3])))
    found = _design(task, tmp_path / "b", _execution(fewer, seeds=SEEDS[:3]))
    assert [found[name].verdict.value for name in ("constant:n", "constant:repetitions", "independent:rate")] == [
        "fail"
    ] * 3


def test_levels_are_shown_by_numbers_too_and_all_by_a_confirmed_result(
    witnessed: EvaluationTask, tmp_path: Path
) -> None:
    task = _withheld(witnessed)
    found = _design(task, tmp_path / "a", _execution(), found=9)
    assert found["independent:estimator"].verdict is Verdict.PASS
    assert found["dependent:mean-squared-error"].verdict is Verdict.PASS
    assert found["constant:outlier"].verdict is Verdict.UNKNOWN
    found = _design(task, tmp_path / "b", _execution(answers=Verdict.PASS), found=9)
    assert {item.verdict for item in found.values()} == {Verdict.PASS}
