"""Agents in real containers, through the real harness, against a server that speaks their endpoint's protocol.

`iterative` always runs. The products run where their bundle is installed (`expbench agents --install NAME`): a bundle is
400 to 700 MB of downloads, which no test fetches on its own.
"""

from __future__ import annotations

import json

import pytest

from evaluation.agents.atif import export_atif
from evaluation.agents.bundles import RECIPES, find_bundle
from evaluation.agents.registry import get_agent
from evaluation.episode import EpisodeLimits
from evaluation.harness.agent_step import AgentStep
from evaluation.harness.episode_runner import EpisodeRunner, episode_folder, load_state
from evaluation.harness.graders import Graders
from evaluation.harness.run import run_owner
from evaluation.scores import EpisodeStatus
from evaluation.trajectory import CommandRun, End, LimitHit, ModelCall, ModelTurn
from evaluation.trajectory_io import read_trajectory
from pipeline.progress import SilentReporter
from pipeline.sandbox import StopHandle, open_sandbox
from tests.doubles.protocol_server import ProtocolServer, Script, Turn, turns
from tests.evaluation.agents.support import PROGRAM, REPRODUCE, RESPONSE
from tests.evaluation.harness.support import KEY, PRICES, tiny_tasks, upstreams

pytestmark = pytest.mark.docker

T, TC, TOOL = turns.text, turns.tool_calls, turns.tool_call
LIMITS = EpisodeLimits(wall_s=300, cpus=2, memory_mb=2048, pids=256, disk_mb=256, output_mb=8)
LOOK = "pwd; id -u; which python; git log --oneline"
HEREDOCS = "".join(
    f"cat > {name} <<'END'\n{text.rstrip()}\nEND\n"
    for name, text in (("run.py", PROGRAM), ("reproduce.sh", REPRODUCE), ("response.json", RESPONSE))
)


def _shell(name: str, key: str, **more: str) -> list[Turn]:
    return [TC(TOOL(name, **{key: text}, **more), text="step") for text in (LOOK, HEREDOCS, "bash reproduce.sh")]


def _written(name: str, path: str, content: str, **more: str) -> Turn:
    files = (("run.py", PROGRAM), ("reproduce.sh", REPRODUCE), ("response.json", RESPONSE))
    return TC(*[TOOL(name, **{path: f"/work/{file}", content: text}, **more) for file, text in files])


def _block(name: str, text: str, fence: str = "```") -> str:
    return f"{name}\n{fence}\n{text.rstrip()}\n{fence}\n"


SCRIPTS: dict[str, Script] = {
    "iterative": Script.of(
        TC(TOOL("bash", command=LOOK)), _written("write_file", "path", "content"),
        TC(TOOL("bash", command="bash reproduce.sh")), default=T("Done."),
    ),
    "openhands": Script.of(
        TC(TOOL("terminal", command=LOOK)), _written("file_editor", "path", "file_text", command="create"),
        TC(TOOL("terminal", command="cd /work && bash reproduce.sh")), TC(TOOL("finish", message="y is 42")),
    ),
    "mini-swe-agent": Script.of(
        *_shell("bash", "command"), TC(TOOL("bash", command="echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"), text="end"),
    ),
    "claude-code": Script.of(
        TC(TOOL("Bash", command=LOOK, description="look")), _written("Write", "file_path", "content"),
        TC(TOOL("Bash", command="cd /work && bash reproduce.sh", description="run")), default=T("y is 42"),
    ),
    "codex": Script.of(*_shell("exec_command", "cmd"), default=T("y is 42")),
    # its second call has the instructions in the chat, and these hold a fence of three: it then uses one of four
    "aider": Script.of(
        T(_block("run.py", PROGRAM) + "\n" + _block("reproduce.sh", REPRODUCE)), T(_block("response.json", RESPONSE, "````")),
        default=T("Done."),
    ),
}  # fmt: skip


@pytest.fixture
def root(tmp_path):
    return tmp_path / "run"


def episode(name, root, task, server, limits):
    """One episode with both of the server's protocols."""
    step = AgentStep(
        agent=get_agent(name), sandbox=open_sandbox("docker"), limits=limits, owner=run_owner(root), model="scripted",
        upstreams=upstreams(server), prices=PRICES,
    )  # fmt: skip
    runner = EpisodeRunner(
        root=root, run=root.name, agent_step=step, graders=Graders(), agent_options={}, reporter=SilentReporter()
    )
    return runner.episode(task, 0, StopHandle())


def need(name):
    if name in RECIPES and find_bundle(name) is None:
        pytest.skip(f"the bundle of {name} is not installed here: expbench agents --install {name}")


@pytest.mark.parametrize("name", list(SCRIPTS))
def test_it_does_a_task_and_everything_is_recorded(name, root, tmp_path):
    need(name)
    [task] = tiny_tasks(tmp_path / "tasks", 1)
    with ProtocolServer(SCRIPTS[name]) as server:
        scores = episode(name, root, task, server, LIMITS)
    folder = episode_folder(root, task.id, 0)
    assert scores.status is EpisodeStatus.SCORED
    assert scores.execution == 1.0, "it runs again from its patch alone"
    assert json.loads((folder.submission / "response.json").read_text())["conclusion"]["numbers"] == {"y": 42}
    state = load_state(folder)
    assert state is not None
    assert state.outcome is not None
    assert state.outcome.reason == "finished"

    _, events, problems = read_trajectory(folder.trajectory)
    assert problems == []
    assert isinstance(events[-1], End)
    ran = [event for event in events if isinstance(event, CommandRun)]
    assert any("y = 42" in run.output and run.exit_code == 0 for run in ran), "the number has an origin"
    if name != "aider":  # which has no tool to look around with
        assert any("/opt/venv/bin/python" in run.output and "1000" in run.output for run in ran), (
            "the task's own Python"
        )
    calls = [event for event in events if isinstance(event, ModelCall)]
    assert scores.model_calls == len([call for call in calls if call.status < 400])
    first_turn = next(n for n, event in enumerate(events) if isinstance(event, ModelTurn))
    assert any(isinstance(event, ModelCall) for event in events[:first_turn]), (
        "a turn comes after the call that brought it"
    )

    for path in root.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path
    assert export_atif(folder.trajectory, tmp_path / "atif.json") == []


@pytest.mark.parametrize("name", ["iterative", "openhands", "claude-code", "codex"])
def test_it_ends_when_its_calls_are_used_up(name, root, tmp_path):
    need(name)
    [task] = tiny_tasks(tmp_path / "tasks", 1)
    with ProtocolServer(SCRIPTS[name]) as server:
        episode(name, root, task, server, LIMITS.evolve(model_calls=3))
    folder = episode_folder(root, task.id, 0)
    state = load_state(folder)
    assert state is not None
    assert state.outcome is not None
    assert (state.outcome.reason, state.outcome.limits) == ("limit", ("model_calls",))
    assert state.outcome.wall_s < LIMITS.wall_s, "it ended by itself"
    _, events, _ = read_trajectory(folder.trajectory)
    assert any(isinstance(event, LimitHit) for event in events)
