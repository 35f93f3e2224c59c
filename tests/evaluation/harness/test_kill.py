"""kill -9 at random points of a run of 12 episodes with 4 workers: resumed to the same scores, nothing left behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.evaluation.harness.evaluate_and_die import REPEATS, TASKS
from tests.evaluation.harness.killing import kill_again_and_again

POINTS = int(os.environ.get("EXPBENCH_TEST_KILLS", "6"))
"""How often a run is killed; `python -m benchmarks.harness.kill` does 20."""


@pytest.mark.docker
def test_a_run_that_is_killed_again_and_again_comes_to_the_same_scores(tmp_path: Path) -> None:
    found = kill_again_and_again(tmp_path, POINTS, seed=20261122)
    assert found.wrong == []
    assert len(found.points) == POINTS
    assert found.episodes == found.runs * TASKS * REPEATS
