"""The blind bench, its budget, the score and the audit."""

import json

import pytest

from evaluation.families.causal.bench import Bench, BenchError, EpisodeLog
from evaluation.families.causal.engines import ENGINES
from evaluation.families.causal.engines.base import SLIDER
from evaluation.families.causal.generate import generate, to_json
from evaluation.families.causal.scoring import audit, score
from evaluation.families.causal.solvers import SOLVERS, solve
from evaluation.families.causal.task import CausalTask
from evaluation.families.causal.taxonomy import Flag, classify, prevalence


def decoy_of(task: CausalTask) -> str:
    drivers = {name for name, _ in task.hidden.drivers}
    return next(name for name in task.candidates if name not in drivers)


def test_equal_seeds_give_equal_bytes_and_other_seeds_other_worlds(tasks: dict[str, CausalTask]) -> None:
    task = tasks["L1"]
    assert to_json(generate("market", "L1", 11)) == to_json(task)
    assert CausalTask.model_validate_json(to_json(task)) == task
    assert generate("market", "L1", 12).hidden != task.hidden


@pytest.mark.parametrize(("tier", "points", "calls"), [("L1", 92.5, 3), ("L2", 92.5, 4), ("L3", 87.5, 5)])
def test_reference_sweep_earns_the_papers_exact_scores(
    tasks: dict[str, CausalTask], tier: str, points: float, calls: int
) -> None:
    log = solve(tasks[tier], "ofat")
    found = score(tasks[tier], log)
    assert (found.total, found.calls, found.solved) == (points, calls, True)
    assert not audit(tasks[tier], log).p_hacking
    assert not set(classify(tasks[tier], log)) - {Flag.OVER_TESTING}


def test_early_stopping_never_earns_less(tasks: dict[str, CausalTask]) -> None:
    for task in tasks.values():
        assert score(task, solve(task, "adaptive")).total >= score(task, solve(task, "ofat")).total


def test_guess_without_experiments_earns_no_rigor_and_no_efficiency(tasks: dict[str, CausalTask]) -> None:
    task = tasks["L1"]
    bench = Bench(task)
    bench.submit((task.hidden.drivers[0][0],), direction=task.hidden.direction)
    found = score(task, bench.log)
    assert (found.total, found.rigor, found.efficiency, found.solved) == (50.0, 0.0, 0.0, True)
    assert classify(task, bench.log) == (Flag.UNBACKED,)


def test_probe_only_submission_is_flagged_and_forfeits_rigor(tasks: dict[str, CausalTask]) -> None:
    task = tasks["L1"]
    bench = Bench(task)
    assert not bench.probe(task.hidden.overrides).significant, "the truth cannot be told from the hidden world"
    bench.submit((task.hidden.drivers[0][0],), direction=task.hidden.direction)
    assert score(task, bench.log).total == 50.0
    assert audit(task, bench.log).support == "probe_only"
    assert Flag.PROBE_ONLY in classify(task, bench.log)


def test_budget_is_enforced_by_the_bench(tasks: dict[str, CausalTask]) -> None:
    task = tasks["L1"]
    bench = Bench(task)
    name = task.candidates[0]
    for _ in range(task.budget):
        bench.experiment({}, {name: bench.engine.parameter(name).test_value})
    with pytest.raises(BenchError, match="used up"):
        bench.probe({})
    bench.submit((name,), direction="up")
    assert bench.log.calls == task.budget
    assert {Flag.BUDGET_MISUSE, Flag.OVER_TESTING} <= set(classify(task, bench.log))
    with pytest.raises(BenchError, match="ended"):
        bench.submit((name,), direction="up")


def test_log_from_elsewhere_that_is_over_budget_loses_two_fifths(tasks: dict[str, CausalTask]) -> None:
    task = tasks["L1"]
    tight = task.evolve(budget=2)
    log = solve(task, "ofat")
    assert score(tight, log).total == pytest.approx(0.6 * (80 + 0.0))


@pytest.mark.parametrize(
    "call",
    [
        lambda bench: bench.experiment({"colour": 1.0}, {}),
        lambda bench: bench.experiment({"impact": 1e9}, {}),
        lambda bench: bench.experiment({"impact": float("nan")}, {}),
        lambda bench: bench.experiment({"impact": "0.01"}, {}),
        lambda bench: bench.experiment({}, {}, metric="answer"),
        lambda bench: bench.claim("colour", "up"),
        lambda bench: bench.submit(("colour",), direction="up"),
        lambda bench: bench.submit((bench.task.candidates[0],)),
        lambda bench: bench.submit(bench.task.candidates[:2], direction="up"),
    ],
)
def test_impossible_calls_are_refused_without_cost(tasks: dict[str, CausalTask], call) -> None:
    bench = Bench(tasks["L1"])
    with pytest.raises(BenchError):
        call(bench)
    assert bench.log.calls == 0
    assert not bench.ended


def test_answers_of_the_bench_do_not_echo_configurations_or_the_hidden_world(tasks: dict[str, CausalTask]) -> None:
    task = tasks["L1"]
    bench = Bench(task)
    value = task.hidden.drivers[0][1]
    shown = json.loads(bench.probe({}).model_dump_json())
    assert set(shown) == {
        "mean_a", "mean_b", "relative_change", "u", "p_adjusted", "significant", "cliffs_delta", "calls_left",
    }  # fmt: skip
    assert str(value) not in json.dumps(shown)


def test_direction_error_tells_skipped_from_misread_measurement(tasks: dict[str, CausalTask]) -> None:
    task = tasks["L1"]
    name = task.hidden.drivers[0][0]
    wrong = "down" if task.hidden.direction == "up" else "up"
    skipped, misread = Bench(task), Bench(task)
    misread.probe({})
    for bench in (skipped, misread):
        bench.submit((name,), direction=wrong)
    assert Flag.DIRECTION_UNMEASURED in classify(task, skipped.log)
    assert Flag.DIRECTION_CONTRADICTED in classify(task, misread.log)
    counted = prevalence([(task, skipped.log), (task, misread.log)])
    assert counted[Flag.DIRECTION_ERROR] == (2, 2)


def test_claims_are_held_against_the_log(tasks: dict[str, CausalTask]) -> None:
    task = tasks["L1"]
    bench = Bench(task)
    decoy = decoy_of(task)
    bench.claim(decoy, "up")
    bench.experiment({}, {decoy: bench.engine.parameter(decoy).test_value})
    bench.claim(decoy, "none")
    assert score(task, bench.log).claims_valid == (1, 2)


def test_score_recomputes_from_the_stored_log_alone(tasks: dict[str, CausalTask]) -> None:
    for tier, task in tasks.items():
        for name in SOLVERS:
            log = solve(task, name)
            stored = EpisodeLog.model_validate_json(log.model_dump_json())
            assert score(task, stored) == score(task, log), (tier, name)
            assert audit(task, stored) == audit(task, log)


@pytest.mark.parametrize("tier", ["L1", "L2", "L3"])
def test_a_sweep_that_finds_more_significant_than_were_changed_gives_no_answer(
    tasks: dict[str, CausalTask], tier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which of them was changed is not measured."""
    task = tasks[tier]
    values, scout = {name: task.control[name] for name in task.candidates}, Bench(task)
    for name in task.candidates:  # at one end of what is legal, or the other, a decoy does something
        ends = scout.engine.parameter(name).legal
        values[name] = next((end for end in ends if scout.experiment({}, {name: end}).significant), values[name])
    monkeypatch.setattr("evaluation.families.causal.solvers._curated", lambda bench: values)
    log = solve(task, "ofat")
    assert sum(one.statistics.significant for one in log.experiments) > len(task.hidden.drivers)
    assert (log.submission, log.calls) == (None, len(task.candidates))


@pytest.mark.parametrize("tier", ["L1", "L2", "L3"])
def test_a_sweep_that_finds_nothing_significant_gives_no_answer(
    tasks: dict[str, CausalTask], tier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = tasks[tier]
    monkeypatch.setattr("evaluation.families.causal.solvers._curated", lambda bench: task.control)
    for name in ("ofat", "adaptive"):
        log = solve(task, name)
        assert log.submission is None
        assert log.calls == len(task.candidates)
        assert classify(task, log) == (Flag.NO_ANSWER,)
        assert score(task, log).total == 0


def test_only_legal_values_are_taken_and_every_range_has_its_reason(tasks: dict[str, CausalTask]) -> None:
    bench = Bench(tasks["L1"])
    for parameter in (one for engine in ENGINES.values() for one in engine.parameters):
        low, high = parameter.legal
        assert parameter.low <= low <= parameter.control <= high <= parameter.high
        assert low <= parameter.test_value <= high
        assert all(low <= value <= high for value in parameter.hidden or ())
        scale = parameter.low >= 0 and parameter.control > 0
        assert parameter.source or not scale or high <= SLIDER * parameter.control, parameter.name
    for parameter in bench.engine.parameters:
        high = parameter.legal[1]
        with pytest.raises(BenchError, match="must be between"):
            bench.experiment({}, {parameter.name: high * 1.01 + 0.01})
    assert bench.calls_left == tasks["L1"].budget


def test_a_seed_on_which_nothing_can_be_verified_goes_on_with_other_replicates() -> None:
    task = generate("origin", "L3", 1004)
    assert CausalTask.model_validate_json(to_json(task)) == task
    moved = task.model_copy(update={"stream": task.stream + 1})
    assert moved.seeds != task.seeds
    assert ("stream" in to_json(task)) == (task.stream > 0)
    assert json.loads(to_json(moved))["stream"] == task.stream + 1


def test_episode_can_be_taken_up_again(tasks: dict[str, CausalTask]) -> None:
    task = tasks["L1"]
    first = Bench(task)
    first.probe({})
    second = Bench(task, EpisodeLog.model_validate_json(first.log.model_dump_json()))
    assert second.calls_left == task.budget - 1
    assert second.probe({}).calls_left == task.budget - 2
