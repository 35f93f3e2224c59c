"""The exports, read and run by the packages that they are for: harbor and inspect-ai, each in an environment of its own.

The environments are made once, in the cache; where an interpreter or a package cannot be had, the tests say so and are
skipped. Nothing of a paper is run here: the experiment is three lines of these tests.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from flows.export import export_tasks, export_trajectories
from pipeline.progress import SilentReporter
from pipeline.settings import Settings
from tests.evaluation.agents.test_readers import MAIN, recorded
from tests.evaluation.agents.test_readers import __file__ as readers
from tests.evaluation.exports.support import small_workspace

pytestmark = pytest.mark.slow

HEADED = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
LOADS_TASKS = """
import json, sys, warnings
warnings.simplefilter("ignore")
from pathlib import Path
from harbor.models.task.task import Task
task = Task(Path(sys.argv[1]))
print(json.dumps({"name": task.name, "instruction": task.instruction, "agent": task.config.agent.timeout_sec,
                  "network": task.config.environment.network_mode.value, "gpus": task.config.environment.gpus,
                  "solution": task.paths.solution_dir.is_dir(), "tests": task.paths.tests_dir.is_dir()}))
"""
VALIDATES = """
import json, sys, warnings
warnings.simplefilter("ignore")
from harbor.utils.trajectory_validator import TrajectoryValidator
found = {}
for name in sys.argv[1:]:
    validator = TrajectoryValidator()
    found[name] = [bool(validator.validate(name)), [str(error) for error in validator.get_errors()]]
print(json.dumps(found))
"""


def environment(package: str, python: str) -> Path:
    """The interpreter of an environment with a package, made when it is not there yet; skips where that is impossible."""
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not installed")
    root = Settings().cache_dir / "test-environments" / f"{package}-{python}"
    interpreter = root / "bin" / "python"
    if (root / "ready").is_file():
        return interpreter
    own = os.environ | {"UV_PYTHON_DOWNLOADS": "never"}
    # a shim on PATH may name a version that pyenv has and does not serve
    places = [python, *map(str, sorted((Path.home() / ".pyenv" / "versions").glob(f"{python}.*/bin/python")))]
    why = ""
    for place in places:
        made = subprocess.run(
            [uv, "venv", "-q", "--clear", "--python", place, str(root)], env=own, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        if made.returncode:
            why = why or made.stderr
            continue
        install = [uv, "pip", "install", "-q", "--python", str(interpreter), package]
        done = subprocess.run(install, env=own, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            (root / "ready").touch()
            return interpreter
        why = done.stderr
    pytest.skip(f"{package} for Python {python} cannot be had here: {' '.join(why.split())[:200]}")


def run(interpreter: Path, *arguments: object, cwd: Path | None = None, **variables: str) -> str:
    done = subprocess.run(
        [str(interpreter), *map(str, arguments)], cwd=cwd, env=os.environ | HEADED | variables, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def harbor() -> Path:
    return environment("harbor", "3.12")


@pytest.fixture(scope="module")
def inspect_ai() -> Path:
    return environment("inspect-ai", "3.11")


def test_harbor_loads_the_tasks(harbor: Path, tmp_path: Path) -> None:
    workspace = small_workspace(tmp_path / "work")
    export_tasks("harbor", workspace.root, tmp_path / "tasks", reporter=SilentReporter())
    found = json.loads(run(harbor, "-c", LOADS_TASKS, tmp_path / "tasks" / "paper-sound"))
    assert "Which rule scores higher?" in found.pop("instruction")
    assert found == {"name": "expbench/paper-sound", "agent": 2400.0, "network": "no-network", "gpus": 0,
                     "solution": True, "tests": True}  # fmt: skip


def test_harbor_finds_recorded_trajectories_valid(harbor: Path, tmp_path: Path) -> None:
    from evaluation.trajectory import TrajectoryHead
    from evaluation.trajectory_io import TrajectoryWriter

    assert Path(readers).is_file()
    for agent in sorted(MAIN):
        path = tmp_path / "run" / "episodes" / agent / "0" / "trajectory.jsonl"
        path.parent.mkdir(parents=True)
        with TrajectoryWriter(path, TrajectoryHead(episode=f"{agent}/0", agent=agent, model="m")) as writer:
            for event in recorded(agent):
                writer.append(event)
    written = export_trajectories(tmp_path / "run", tmp_path / "out").written
    assert len(written) == len(MAIN)
    found = json.loads(run(harbor, "-c", VALIDATES, *written))
    assert found == {str(path): [True, []] for path in written}


@pytest.mark.parametrize(("solver", "reward"), [("oracle", 1.0), ("nothing.py", 0.0)])
def test_inspect_runs_the_tasks_and_the_oracle_bounds_them(
    inspect_ai: Path, tmp_path: Path, solver: str, reward: float
) -> None:
    workspace = small_workspace(tmp_path / "work")
    export_tasks("inspect", workspace.root, tmp_path / "tasks", reporter=SilentReporter())
    (tmp_path / "tasks" / "nothing.py").write_text(
        "from inspect_ai.solver import solver\n\n@solver\ndef nothing():\n    async def solve(state, generate):\n"
        "        return state\n    return solve\n"
    )
    logs = tmp_path / "logs"
    run(
        inspect_ai, "-m", "inspect_ai", "eval", "expbench_inspect.py", "-T", "sandbox=local", "--solver", solver,
        "--model", "mockllm/model", "--display", "none", "--log-dir", logs, "--log-format", "json",
        cwd=tmp_path / "tasks", HOME=str(tmp_path),
    )  # fmt: skip
    (log,) = [json.loads(path.read_text()) for path in logs.glob("*.json")]
    assert log["status"] == "success"
    (sample,) = log["samples"]
    assert sample["scores"]["verified"]["value"]["reward"] == reward
    assert sample["id"] == "paper-sound"
