"""kill -9 at random points of a run of 12 episodes with 4 workers, each followed by a resume: what came of it.

The test does it a few times; `python -m benchmarks.harness.kill` as often as one likes.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from evaluation.harness.episode_runner import episode_folder
from evaluation.harness.run import run_owner
from evaluation.scores import EpisodeScores
from evaluation.trajectory import ModelCall
from evaluation.trajectory_io import read_trajectory
from tests.doubles.protocol_server import ProtocolServer, Script, Turn
from tests.evaluation.harness.evaluate_and_die import REPEATS, TASKS

__all__ = ["Killed", "kill_again_and_again"]

_PROJECT = Path(__file__).resolve().parents[3]


@dataclass
class Killed:
    """What was done, and everything that was not as it should be."""

    events: int = 0
    """Audit events of the undisturbed run: the points at which one can be killed."""
    points: list[int] = field(default_factory=list)
    """At which event a process killed itself."""
    runs: int = 0
    """How many runs it took: one that comes to its end is compared, and the next begins."""
    episodes: int = 0
    """Compared with the undisturbed run."""
    wrong: list[str] = field(default_factory=list)


def kill_again_and_again(directory: Path, kills: int, seed: int) -> Killed:
    """Run once undisturbed, then with `kills` kills; compare.

    Args:
        directory: empty; tasks and runs are made in it.
        kills: how often a process of a run is ended by SIGKILL.
        seed: of the points.
    """
    draw, found = random.Random(seed), Killed()
    with (
        ProtocolServer(Script(default=Turn(text="hello"))) as server,
        tempfile.TemporaryDirectory(prefix="k-") as name,
    ):
        temp = Path(name)
        code, said = _start(directory / "whole", directory / "tasks-whole", server, "never", temp)
        if code != 0:
            raise RuntimeError("the undisturbed run was killed")
        found.events = int(said)  # 3400 were seen
        roots = [directory / "killed"]
        while len(found.points) < kills:
            # far enough for several steps to be finished, near enough to meet a run several times
            point = draw.randint(1, found.events // 3)
            code, _said = _start(roots[-1], directory / "tasks-killed", server, str(point), temp)
            if code == -9:
                found.points.append(point)
            else:  # it came to its end before the point: go on with another run
                roots.append(directory / f"killed-{len(roots)}")
        _start(roots[-1], directory / "tasks-killed", server, "never", temp)
        found.wrong += [f"{path} is left" for path in temp.glob("*/*")]
    found.runs = len(roots)
    whole, wrong = _rows(directory / "whole")
    found.wrong += wrong
    for root in roots:
        rows, wrong = _rows(root)
        found.episodes += len(rows)
        found.wrong += wrong
        found.wrong += [
            f"{root.name}: {row.task}/{row.repeat} has other scores" for row in rows if row not in whole
        ] + ([f"{root.name}: {len(rows)} episodes instead of {len(whole)}"] if len(rows) != len(whole) else [])
        found.wrong += _left(root)
    return found


def _start(root: Path, tasks: Path, server: ProtocolServer, point: str, temp: Path) -> tuple[int, str]:
    """Exit code and output of one process of the run, which keeps its temporary files to itself."""
    program = "tests.evaluation.harness.evaluate_and_die"
    done = subprocess.run(
        [sys.executable, "-m", program, str(root), str(tasks), server.base_url, point],
        cwd=_PROJECT, capture_output=True, text=True, check=False, timeout=600, env=os.environ | {"TMPDIR": str(temp)},
    )  # fmt: skip
    if done.returncode not in {0, -9}:
        raise RuntimeError(done.stderr)
    return done.returncode, done.stdout


def _rows(root: Path) -> tuple[list[EpisodeScores], list[str]]:
    """All scores of a run without what differs between any two runs; and what is wrong with its trajectories."""
    found, wrong = [], []
    for task in range(TASKS):
        for repeat in range(REPEATS):
            folder = episode_folder(root, f"paper-task-{task}", repeat)
            scores = EpisodeScores.model_validate_json(folder.scores.read_bytes())
            found.append(scores.evolve(wall_s=None, run=""))
            _, events, problems = read_trajectory(folder.trajectory)
            whole = (
                problems == []
                and [event.seq for event in events] == list(range(len(events)))
                and [event.kind for event in events].count("end") == 1
                and sum(isinstance(event, ModelCall) for event in events) == 1
            )
            wrong += [] if whole else [f"{folder.trajectory}: not whole, or something twice"]
    return found, wrong


def _left(root: Path) -> list[str]:
    """Containers that a run left."""
    command = ["docker", "ps", "-aq", "--filter", f"label=expbench.owner={run_owner(root)}"]
    containers = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return [f"container {name}" for name in containers]
