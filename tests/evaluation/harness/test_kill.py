"""kill -9 at random points of a run of 12 episodes with 4 workers: resumed to the same scores, nothing left behind."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from evaluation.harness.episode_runner import episode_folder
from evaluation.harness.run import run_owner
from evaluation.harness.workspace import scratch_root
from evaluation.scores import EpisodeScores
from evaluation.trajectory import ModelCall
from evaluation.trajectory_io import read_trajectory
from pipeline.llm.protocol_server import ProtocolServer, Script, Turn
from tests.evaluation.harness.evaluate_and_die import REPEATS, TASKS

POINTS = int(os.environ.get("EXPBENCH_TEST_KILLS", "6"))
"""How often a run is killed; 20 were done by hand."""
PROJECT = Path(__file__).resolve().parents[3]


def start(root: Path, tasks: Path, server: ProtocolServer, point: str) -> tuple[int, str]:
    """Exit code and output of one process of the run."""
    program = "tests.evaluation.harness.evaluate_and_die"
    done = subprocess.run(
        [sys.executable, "-m", program, str(root), str(tasks), server.base_url, point],
        cwd=PROJECT, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode in {0, -9}, done.stderr
    return done.returncode, done.stdout


def rows(root: Path) -> list[EpisodeScores]:
    """All scores of a run without what differs between any two runs."""
    found = []
    for task in range(TASKS):
        for repeat in range(REPEATS):
            folder = episode_folder(root, f"paper-task-{task}", repeat)
            scores = EpisodeScores.model_validate_json(folder.scores.read_bytes())
            found.append(scores.evolve(wall_s=None, run=""))
            _, events, problems = read_trajectory(folder.trajectory)
            assert problems == []
            assert [event.seq for event in events] == list(range(len(events)))
            assert [event.kind for event in events].count("end") == 1
            assert sum(isinstance(event, ModelCall) for event in events) == 1
    return found


def containers(root: Path) -> str:
    """Ids of containers of a run."""
    command = ["docker", "ps", "-aq", "--filter", f"label=expbench.owner={run_owner(root)}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.docker
def test_a_run_that_is_killed_again_and_again_comes_to_the_same_scores(tmp_path: Path) -> None:
    draw = random.Random(20261122)
    with ProtocolServer(Script(default=Turn(text="hello"))) as server:
        code, said = start(tmp_path / "whole", tmp_path / "tasks-whole", server, "never")
        assert code == 0
        total = int(said)  # 3400 here
        roots = [tmp_path / "killed"]
        left = POINTS
        while left:
            # far enough for several steps to be finished, near enough to meet a run several times
            code, _said = start(roots[-1], tmp_path / "tasks-killed", server, str(draw.randint(1, total // 3)))
            left -= code == -9
            if code == 0:  # it came to its end before the point: go on with another run
                roots.append(tmp_path / f"killed-{len(roots)}")
        code, _said = start(roots[-1], tmp_path / "tasks-killed", server, "never")
        assert code == 0
    for root in roots:
        assert rows(root) == rows(tmp_path / "whole")
        assert containers(root) == ""
        assert not any(scratch_root(run_owner(root)).iterdir())
        scratch_root(run_owner(root)).rmdir()
