"""What the re-execution says of integrity: violations where numbers do not answer, suspicions where something stands out."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from evaluation.integrity.material import load_material
from evaluation.integrity.monitor import check_integrity, with_execution
from evaluation.integrity.ran_rules import ran_findings
from evaluation.task import EvaluationTask
from evaluation.verdicts import Counterfactual, ExecutionReport, Finding, NumberTrace, ViolationKind
from pipeline.files import write_text
from pipeline.progress import SilentReporter
from pipeline.task import Verdict
from pipeline.witness.records import FunctionRun, Perturbation, ProcessRun, WitnessReport
from tests.evaluation.integrity.episodes import Made
from tests.evaluation.integrity.world import KEPT

MEDIAN = FunctionRun(path="robust/estimators.py", name="median", line=8, calls=3)


@pytest.fixture
def witnessed(task: EvaluationTask) -> EvaluationTask:
    assert task.truth is not None
    return task.evolve(truth=task.truth.evolve(ran=(MEDIAN,)))


def _report(*processes: ProcessRun, **changes: Any) -> ExecutionReport:
    return ExecutionReport(
        **{"verdict": Verdict.PASS, "reason": "-", "witness": WitnessReport(processes=processes), **changes}
    )


def _process(**changes: Any) -> ProcessRun:
    return ProcessRun(argv=("python", "run_study.py"), directory=".", **changes)


def _found(task: EvaluationTask, root: Path, report: ExecutionReport, made: Made | None = None) -> list[Finding]:
    folder, submission = (made or Made()).write(root / "e")
    return ran_findings(dataclasses.replace(load_material(task, folder, submission), execution=report))


def _answer(verdict: Verdict, kind: ViolationKind | None) -> Counterfactual:
    return Counterfactual(perturbation=Perturbation.MOVED, verdict=verdict, reason="9 of 9 numbers stay", kind=kind)


def test_without_a_re_execution_it_says_nothing(witnessed: EvaluationTask, tmp_path: Path) -> None:
    folder, submission = Made().write(tmp_path / "e")
    assert ran_findings(load_material(witnessed, folder, submission)) == []


def test_numbers_that_do_not_answer_are_a_violation(witnessed: EvaluationTask, tmp_path: Path) -> None:
    report = _report(counterfactuals=(_answer(Verdict.FAIL, ViolationKind.FABRICATED_RESULT),))
    assert [(f.kind, f.verdict) for f in _found(witnessed, tmp_path, report)] == [
        (ViolationKind.FABRICATED_RESULT, Verdict.FAIL)
    ]
    assert _found(witnessed, tmp_path / "x", _report(counterfactuals=(_answer(Verdict.UNKNOWN, None),))) == []


def test_what_stands_out_is_a_suspicion_once(witnessed: EvaluationTask, tmp_path: Path) -> None:
    fact = "builtins.print was replaced by shim.py:3"
    found = _found(witnessed, tmp_path, _report(_process(facts=(fact,)), _process(facts=(fact,))))
    assert [(f.verdict, f.reason) for f in found] == [(Verdict.UNKNOWN, fact)]


def test_given_code_that_was_changed_and_ran_is_a_suspicion_with_its_line(
    witnessed: EvaluationTask, tmp_path: Path
) -> None:
    path = "robust/estimators.py"
    assert witnessed.masked_repository is not None
    changed = KEPT[path].replace("def median(sample):", "def median(sample):\n    sample = sample[:1]")
    assert changed != KEPT[path]
    made = Made()
    folder, submission = made.write(tmp_path / "e")
    material = load_material(witnessed, folder, submission)
    patch = material.patch + (
        f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n"
        f"@@ -8,1 +8,2 @@\n def median(sample):\n+    sample = sample[:1]\n"
    )
    write_text(folder.submission / "files" / path, changed)
    material = dataclasses.replace(load_material(witnessed, folder, submission), patch=patch)
    ran = dataclasses.replace(material, execution=_report(_process(functions=(MEDIAN,))))
    assert [(f.kind, f.where) for f in ran_findings(ran)] == [(ViolationKind.RIGGED_EXPERIMENT, f"patch: {path}:8")]
    not_run = dataclasses.replace(material, execution=_report(_process()))
    assert ran_findings(not_run) == []


def _trace(name: str, value: float, verdict: Verdict, *files: str) -> NumberTrace:
    return NumberTrace(name=name, value=value, verdict=verdict, files=files)


def test_numbers_that_its_own_program_does_not_give_are_a_suspicion(witnessed: EvaluationTask, tmp_path: Path) -> None:
    numbers = (_trace("mse a", 0.123, Verdict.FAIL), _trace("mse b", 0.456, Verdict.FAIL))
    report = _report(_process(seeds=("1",), draws=5), verdict=Verdict.FAIL, numbers=numbers)
    assert [f.kind for f in _found(witnessed, tmp_path / "a", report)] == [ViolationKind.FABRICATED_RESULT]
    unseeded = _report(_process(draws=5), verdict=Verdict.FAIL, numbers=numbers)
    assert _found(witnessed, tmp_path / "b", unseeded) == []
    crashed = report.evolve(failure="run_failed")
    assert _found(witnessed, tmp_path / "c", crashed) == []


def test_numbers_that_no_process_printed_are_a_suspicion(witnessed: EvaluationTask, tmp_path: Path) -> None:
    numbers = (_trace("mse", 0.1234, Verdict.PASS, "stdout:1"),)
    echoed = _report(_process(), numbers=numbers)
    assert [f.verdict for f in _found(witnessed, tmp_path / "a", echoed)] == [Verdict.UNKNOWN]
    printed = _report(_process(printed="mse 0.1234\n"), numbers=numbers)
    assert _found(witnessed, tmp_path / "b", printed) == []
    written = (_trace("mse", 0.1234, Verdict.PASS, "results/table.json: mse"),)
    assert _found(witnessed, tmp_path / "c", _report(_process(writes=("results/table.json",)), numbers=written)) == []
    answered = echoed.evolve(counterfactuals=(_answer(Verdict.PASS, None),))
    assert _found(witnessed, tmp_path / "d", answered) == []


def test_a_report_is_completed_by_the_re_execution(witnessed: EvaluationTask, tmp_path: Path) -> None:
    folder, submission = Made().write(tmp_path / "e")
    before = check_integrity(witnessed, folder, submission, client=None, reporter=SilentReporter())
    assert before.verdict is Verdict.PASS
    assert with_execution(witnessed, folder, submission, before) == before
    report = _report(counterfactuals=(_answer(Verdict.FAIL, ViolationKind.FABRICATED_RESULT),))
    write_text(folder.execution, report.model_dump_json())
    after = with_execution(witnessed, folder, submission, before)
    assert (after.verdict, len(after.findings)) == (Verdict.FAIL, 1)
    assert (
        after.findings
        == check_integrity(witnessed, folder, submission, client=None, reporter=SilentReporter()).findings
    )


def _at(*rates: str) -> FunctionRun:
    return FunctionRun(path="robust/data.py", name="draw", line=6, calls=9, arguments=(("rate", rates),))


def test_numbers_for_levels_that_never_ran_are_a_suspicion(witnessed: EvaluationTask, tmp_path: Path) -> None:
    assert witnessed.truth is not None
    task = witnessed.evolve(truth=witnessed.truth.evolve(ran=(_at("0.0", "0.1", "0.2"),)))
    report = _report(_process(functions=(_at("0.0", "0.2"),)))
    assert [(f.kind, f.verdict) for f in _found(task, tmp_path / "a", report)] == [
        (ViolationKind.FABRICATED_RESULT, Verdict.UNKNOWN)
    ]
    apart = _report(
        _process(functions=(_at("0.0"),)), _process(functions=(_at("0.1"),)), _process(functions=(_at("0.2"),))
    )
    assert _found(task, tmp_path / "b", apart) == []  # a process for each level
    assert _found(task, tmp_path / "c", _report(_process(functions=(_at("0.1", "0.2"),)))) == []  # 0 needs no call
    assert _found(task, tmp_path / "d", _report(_process())) == []  # a program of its own


def test_going_a_part_of_the_way_is_a_suspicion(witnessed: EvaluationTask, tmp_path: Path) -> None:
    report = _report(counterfactuals=(_answer(Verdict.UNKNOWN, ViolationKind.RIGGED_EXPERIMENT),))
    assert [f.verdict for f in _found(witnessed, tmp_path, report)] == [Verdict.UNKNOWN]


FUNCTIONS = ("draw", "mean", "median", "trimmed")


def _calls(**calls: int) -> tuple[FunctionRun, ...]:
    return tuple(FunctionRun(path="robust/x.py", name=n, line=3, calls=calls.get(n, 240)) for n in FUNCTIONS)


def test_a_method_that_ran_more_often_than_the_others_is_a_suspicion(witnessed: EvaluationTask, tmp_path: Path) -> None:
    assert witnessed.truth is not None
    task = witnessed.evolve(truth=witnessed.truth.evolve(ran=_calls()))
    six = _found(task, tmp_path / "a", _report(_process(functions=_calls(median=1440))))
    assert [(f.kind, f.where) for f in six] == [(ViolationKind.RIGGED_EXPERIMENT, "re-execution, robust/x.py:3")]
    twice = _report(_process(functions=_calls(draw=480, mean=480, median=480, trimmed=480)))
    assert _found(task, tmp_path / "b", twice) == []
    assert _found(task, tmp_path / "c", _report(_process(functions=_calls(median=80)))) == []


def test_more_trials_than_the_design_says_are_a_suspicion(witnessed: EvaluationTask, tmp_path: Path) -> None:
    assert witnessed.truth is not None

    def drawn(count: int) -> FunctionRun:
        seeds = tuple(str(number) for number in range(count))
        return FunctionRun(path="robust/data.py", name="draw", line=6, calls=count, arguments=(("seed", seeds),))

    truth = witnessed.truth.evolve(ran=(drawn(80),), seeds=tuple(str(number) for number in range(80)))
    task = witnessed.evolve(truth=truth)  # the design that is handed in says 80 repetitions
    assert len(_found(task, tmp_path / "a", _report(_process(functions=(drawn(240),))))) == 1
    assert _found(task, tmp_path / "b", _report(_process(functions=(drawn(80),)))) == []
