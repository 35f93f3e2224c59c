"""Tiers beyond the paper: the metric vector, the blind metric, the phase boundary; and the log of their scoring."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.families.causal.bench import Bench, BenchError, EpisodeLog, VectorStatistics, signature
from evaluation.families.causal.engines import ENGINES
from evaluation.families.causal.generate import generate, to_json
from evaluation.families.causal.oracle import oracle_calls
from evaluation.families.causal.scoring import audit, score
from evaluation.families.causal.solvers import solve
from evaluation.families.causal.store import load_tasks
from evaluation.families.causal.task import CausalTask
from evaluation.families.causal.taxonomy import Flag, classify
from evaluation.families.causal.tools import brief, call_tool, tools_for

FROZEN = Path(__file__).parents[4] / "datasets" / "causal-beyond"
TASKS, PROBLEMS = load_tasks(FROZEN)
FAST = {task.tier: task for task in TASKS if task.simulation == "market"}


def test_fifteen_tasks_are_frozen_one_for_each_simulation_and_tier() -> None:
    assert PROBLEMS == []
    assert sorted((task.tier, task.simulation) for task in TASKS) == sorted(
        (tier, simulation) for tier in ("L1V", "L1B", "L4") for simulation in ENGINES
    )


@pytest.mark.parametrize("task", [FAST["L1V"], FAST["L1B"], FAST["L4"]], ids=lambda task: task.id)
def test_fast_ones_regenerate_byte_for_byte(task: CausalTask) -> None:
    frozen = next(FROZEN.rglob(f"{task.id}.json")).read_text()
    assert to_json(generate(task.simulation, task.tier, task.seed)) == frozen


@pytest.mark.slow
@pytest.mark.parametrize("task", [task for task in TASKS if task.simulation != "market"], ids=lambda task: task.id)
def test_other_ones_regenerate_byte_for_byte_and_are_solved(task: CausalTask) -> None:
    assert to_json(generate(task.simulation, task.tier, task.seed)) == next(FROZEN.rglob(f"{task.id}.json")).read_text()
    for solver in ("ofat", "adaptive"):
        assert score(task, solve(task, solver)).solved, solver


@pytest.mark.parametrize("tier", sorted(FAST))
@pytest.mark.parametrize("solver", ["ofat", "adaptive"])
def test_reference_solvers_solve_with_rigor_and_without_a_flag(tier: str, solver: str) -> None:
    task = FAST[tier]
    log = solve(task, solver)
    found = score(task, log)
    assert found.solved
    assert found.rigor == {"L1V": 30, "L1B": 30, "L4": 25}[tier]
    assert log.calls <= task.budget
    assert classify(task, log) == ()
    assert audit(task, log).support == "isolating_experiment"
    assert score(task, EpisodeLog.model_validate_json(log.model_dump_json())) == found


@pytest.mark.parametrize("tier", sorted(FAST))
def test_oracle_earns_all_but_the_efficiency_of_its_calls(tier: str) -> None:
    task = FAST[tier]
    bench = Bench(task)
    for tool, arguments in oracle_calls(task):
        assert "error" not in call_tool(bench, tool, arguments)
    found = score(task, bench.log)
    assert found.solved
    assert found.correctness + found.rigor == 80


@pytest.mark.parametrize("tier", sorted(FAST))
def test_guess_earns_no_rigor(tier: str) -> None:
    scores = [score(FAST[tier], solve(FAST[tier], "random", salt)) for salt in range(20)]
    assert all(found.rigor == found.efficiency == 0 for found in scores)
    assert len({found.total for found in scores}) > 1


@pytest.mark.parametrize("tier", sorted(FAST))
def test_brief_says_what_is_asked_and_nothing_hidden(tier: str) -> None:
    task = FAST[tier]
    text = brief(task)
    assert str(task.hidden.drivers[0][1]) not in text
    assert ("target metric" in text.split("\n\n")[0]) == (tier != "L1B")
    assert ("swept parameter: bias, from -2 to 2" in text) == (tier == "L4")
    form = tools_for(task)["submit"][1].model_json_schema()
    assert set(form["properties"]) == {
        "L1V": {"params", "effects"}, "L1B": {"params", "metric", "direction"}, "L4": {"params", "estimate"},
    }[tier]  # fmt: skip


def test_vector_answers_hold_every_metric_and_a_probe_of_one_metric_would_be_fooled() -> None:
    """What the tier is for: a confounder moves the target too, but not with the hidden world's signature."""
    task = FAST["L1V"]
    bench = Bench(task)
    hidden = bench.probe({})
    assert isinstance(hidden, VectorStatistics)
    assert signature(hidden) == task.hidden.signature
    engine = ENGINES[task.simulation]
    driver = task.hidden.drivers[0][0]
    shown = {name: bench.experiment({}, {name: engine.parameter(name).test_value}) for name in task.candidates}
    assert all(found.significant for found in shown.values()), "every candidate moves the target"
    assert [name for name, found in shown.items() if signature(found) == task.hidden.signature] == [driver]
    other = next(name for name in task.candidates if name != driver)
    bench.submit((other,), effects=signature(hidden))
    found = score(task, bench.log)
    assert (found.correctness, found.rigor) == (0.0, 0.0)
    assert Flag.WRONG_PARAMETER in classify(task, bench.log)


def test_misread_effect_is_a_signature_error() -> None:
    task = FAST["L1V"]
    bench = Bench(task)
    wrong = {name: "down" if effect == "up" else "up" for name, effect in (task.hidden.signature or {}).items()}
    bench.submit((task.hidden.drivers[0][0],), effects=wrong)  # type: ignore[arg-type]
    assert score(task, bench.log).correctness == 30
    assert Flag.SIGNATURE_ERROR in classify(task, bench.log)


def test_blind_bench_wants_a_metric_and_scores_the_one_that_was_named() -> None:
    task = FAST["L1B"]
    bench = Bench(task)
    with pytest.raises(BenchError, match="does not reveal its target"):
        bench.probe({})
    assert bench.log.calls == 0
    still = next(name for name, effect in (task.hidden.signature or {}).items() if effect == "none")
    moved = next(name for name, effect in (task.hidden.signature or {}).items() if effect != "none")
    driver, direction = task.hidden.drivers[0][0], (task.hidden.signature or {})[moved]
    value = ENGINES[task.simulation].parameter(driver).test_value
    bench.experiment({}, {driver: value}, moved)
    bench.submit((driver,), metric=still, direction=direction)  # type: ignore[arg-type]
    found = score(task, bench.log)
    assert (found.correctness, found.rigor, found.solved) == (30.0, 0.0, False), "backed on another metric"
    assert Flag.DIRECTION_ERROR in classify(task, bench.log)


def located(task: CausalTask, estimate: float, *calls: tuple[float, float]) -> Bench:
    bench = Bench(task)
    for low, high in calls:
        bench.experiment({task.candidates[0]: low}, {task.candidates[0]: high})
    bench.submit(task.candidates, estimate=estimate)
    return bench


def test_boundary_needs_a_bracket_that_is_narrow_significant_and_around_the_estimate() -> None:
    task = FAST["L4"]
    assert task.sweep is not None
    at, width = task.hidden.drivers[0][1], task.sweep[1] - task.sweep[0]
    near, wide, beside = (at - width / 10, at + width / 10), (at - width / 4, at + width / 4), (at + 0.2, at + 1.0)
    assert score(task, located(task, at, near).log).rigor == 25
    assert score(task, located(task, at, wide).log).rigor == 0
    assert score(task, located(task, at, beside).log).rigor == 0
    lucky = located(task, at)
    assert score(task, lucky.log).total == 55
    assert classify(task, lucky.log) == (Flag.UNBACKED,)
    with pytest.raises(BenchError, match="no hidden world"):
        Bench(task).probe({})


@given(st.floats(-2, 2))
def test_boundary_points_fall_with_the_distance(estimate: float) -> None:
    task = FAST["L4"]
    found = score(task, located(task, estimate).log)
    off = abs(estimate - task.hidden.drivers[0][1]) / (task.hidden.tolerance or 1)
    assert found.solved == (off <= 1)
    assert 0 <= found.correctness <= 55
    assert (found.correctness == 55) == (off <= 1)
    assert (found.correctness == 0) == (off >= 4)
    assert (Flag.ESTIMATE_ERROR in classify(task, located(task, estimate).log)) == (off > 1)


@pytest.mark.parametrize("estimate", [float("nan"), float("inf"), -3.0, None])
def test_impossible_estimates_are_refused(estimate: float | None) -> None:
    bench = Bench(FAST["L4"])
    with pytest.raises(BenchError):
        bench.submit(("bias",), estimate=estimate)
    assert not bench.ended


def test_drawn_control_of_a_boundary_task_is_the_bench_own(tmp_path: Path) -> None:
    """The published control, not the engine's, is what overrides start from."""
    task = FAST["L4"]
    engine = ENGINES[task.simulation]
    drawn = {name: value for name, value in task.control.items() if value != engine.control[name]}
    assert drawn
    bench = Bench(task)
    at_control = bench.experiment({}, {name: engine.control[name] for name in drawn}).mean_b
    plain = engine.run({}, task.seeds)[task.target].mean()
    assert at_control == pytest.approx(plain, rel=1e-5)
