"""The frozen sets: they regenerate byte for byte, and the reference solvers keep their scores on them."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from evaluation.families.causal.generate import generate, to_json
from evaluation.families.causal.scoring import score
from evaluation.families.causal.solvers import solve
from evaluation.families.causal.store import load_tasks

FROZEN = Path(__file__).parents[4] / "datasets" / "causal"
TASKS, PROBLEMS = load_tasks(FROZEN)


def test_thirty_tasks_are_frozen_two_for_each_simulation_and_tier() -> None:
    assert PROBLEMS == []
    assert set(Counter((task.simulation, task.tier) for task in TASKS).values()) == {2}
    assert len(TASKS) == 30


FAST = {"market", "origin", "social"}


@pytest.mark.parametrize("task", [t for t in TASKS if t.simulation in FAST], ids=lambda task: task.id)
def test_fast_frozen_tasks_regenerate_byte_for_byte(task) -> None:
    assert to_json(generate(task.simulation, task.tier, task.seed)) == to_json(task)


@pytest.mark.slow
@pytest.mark.parametrize("task", [t for t in TASKS if t.simulation not in FAST], ids=lambda task: task.id)
def test_other_frozen_tasks_regenerate_byte_for_byte(task) -> None:
    assert to_json(generate(task.simulation, task.tier, task.seed)) == to_json(task)


@pytest.mark.slow
def test_reference_sweep_keeps_its_scores_on_every_frozen_task() -> None:
    points = {"L1": 92.5, "L2": 92.5, "L3": 87.5}
    for task in TASKS:
        swept = score(task, solve(task, "ofat"))
        assert (swept.total, swept.solved) == (points[task.tier], True), task.id


def test_difficulty_is_spread_like_the_papers() -> None:
    """petri-bench 5: of its 30 tasks 14 are easy, 9 moderate, 7 hard."""
    bands = Counter(task.difficulty.band for task in TASKS)
    assert 10 <= bands["easy"] <= 18
    assert 5 <= bands["moderate"] <= 13
    assert 3 <= bands["hard"] <= 11


def test_guessing_stays_at_the_chance_floor() -> None:
    guesses = [score(task, solve(task, "random", salt)).total for task in TASKS for salt in range(40)]
    assert 15 < np.mean(guesses) < 23


def test_blind_test_values_cost_the_sweep_half_of_its_score() -> None:
    """petri-bench 7.2: 90.8 with curated values, 40.5 to 47.7 with values drawn from the legal ranges, 19 by guessing.

    Over 17 draws on all 30 tasks the mean is 39.1, single draws lie between 22 and 52.
    """
    fast = [task for task in TASKS if task.simulation in FAST]
    blind = [score(task, solve(task, "ofat-rand", salt)) for task in fast for salt in range(3)]
    assert 30 < np.mean([one.total for one in blind]) < 55
    assert 0.25 < np.mean([one.solved for one in blind]) < 0.55
