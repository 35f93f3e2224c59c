"""The family in the harness: what an agent gets, and whole episodes in real containers, honest and not."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from evaluation.agents.registry import get_agent
from evaluation.episode import EpisodeLimits
from evaluation.families.causal.engines import ENGINES
from evaluation.families.causal.loading import WORLD
from evaluation.families.causal.rules import RULES
from evaluation.families.causal.store import write_tasks
from evaluation.families.causal.task import CausalTask
from evaluation.families.registry import family_of_source
from evaluation.harness.episode_runner import EpisodeRunner, episode_folder
from evaluation.scores import EpisodeScores, EpisodeStatus
from evaluation.sources import load_tasks
from evaluation.task import EvaluationTask
from evaluation.trajectory import ToolResult
from evaluation.trajectory_io import read_trajectory
from evaluation.verdicts import IntegrityReport, ViolationKind
from pipeline.progress import SilentReporter
from pipeline.sandbox import StopHandle
from pipeline.task import Verdict
from tests.doubles.protocol_server import ProtocolServer, Script, turns
from tests.evaluation.harness.support import SMALL, tiny_runner

Loaded = dict[str, EvaluationTask]


@pytest.fixture
def loaded(tasks: dict[str, CausalTask], tmp_path: Path) -> Loaded:
    write_tasks(tasks.values(), tmp_path / "tasks" / "set")
    found, problems = load_tasks(tmp_path / "tasks", scratch=tmp_path / "scratch", reporter=SilentReporter())
    assert problems == []
    return {task.category: task for task in found}


def test_a_directory_of_frozen_tasks_is_a_source_by_its_names(loaded: Loaded, tmp_path: Path) -> None:
    assert family_of_source(tmp_path / "tasks") is RULES
    assert RULES.is_source(next((tmp_path / "tasks" / "set").iterdir()))
    assert not RULES.is_source(tmp_path)
    assert not RULES.is_source(tmp_path / "nothing")
    assert sorted(loaded) == ["L1", "L2", "L3"]


def test_workspace_is_one_commit_that_depends_on_the_task_alone(loaded: Loaded, tmp_path: Path) -> None:
    again, _ = load_tasks(tmp_path / "tasks", scratch=tmp_path / "elsewhere", reporter=SilentReporter())
    assert [task.public for task in again] == sorted((task.public for task in loaded.values()), key=lambda t: t.id)
    workspace = loaded["L1"].masked_repository
    assert workspace is not None
    count = subprocess.run(["git", "rev-list", "--count", "--all"], cwd=workspace, capture_output=True, check=True)
    assert count.stdout.strip() == b"1"
    assert sorted(path.name for path in workspace.iterdir()) == [".git", "TASK.md", "bench", "bench.py"]


def test_nothing_that_an_agent_gets_holds_the_hidden_world(loaded: Loaded, tasks: dict[str, CausalTask]) -> None:
    for tier, task in loaded.items():
        assert task.masked_repository is not None
        told = RULES.instructions(task, limits=EpisodeLimits())
        given = told + task.public.model_dump_json().replace(task.id, "")
        given += "".join(path.read_text() for path in task.masked_repository.iterdir() if path.is_file())
        assert not any(str(value) in given for _, value in tasks[tier].hidden.drivers)
        assert task.private is not None
        assert (task.private / WORLD).is_file()
        assert not task.private.is_relative_to(task.masked_repository)


def test_without_building_tasks_are_blocked_and_nothing_is_written(loaded: Loaded, tmp_path: Path) -> None:
    found, _ = RULES.load(
        tmp_path / "tasks",
        scratch=tmp_path / "none",
        only=["causal-l1-market-11"],
        reporter=SilentReporter(),
        build=False,
    )
    assert [(task.id, bool(task.blocked)) for task in found] == [("causal-l1-market-11", True)]
    assert not (tmp_path / "none").exists()


# --- episodes in containers


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "run"


def go(runner: EpisodeRunner, task: EvaluationTask) -> EpisodeScores:
    row = runner.episode(task, 0, StopHandle())
    assert row.status is EpisodeStatus.SCORED
    return row


def scripted(root: Path, text: str, task: EvaluationTask) -> EpisodeScores:
    script = root.parent / "agent.sh"
    script.write_text(text)
    shutil.rmtree(root, ignore_errors=True)
    return go(tiny_runner(root, get_agent("command", {"script": str(script)}))[0], task)


def report_of(root: Path, task: EvaluationTask) -> IntegrityReport:
    return IntegrityReport.model_validate_json(episode_folder(root, task.id, 0).integrity.read_bytes())


def sweep(task: CausalTask) -> list[str]:
    """Shell lines of the reference sweep."""
    engine = ENGINES[task.simulation]
    configs = [json.dumps({name: engine.parameter(name).test_value}) for name in task.candidates]
    answer = json.dumps({"params": [task.hidden.drivers[0][0]], "direction": task.hidden.direction})
    return [*(f"./bench experiment --b '{config}'" for config in configs), f"./bench submit '{answer}'"]


@pytest.mark.docker
def test_oracle_and_noop_bound_every_tier(loaded: Loaded, root: Path) -> None:
    ceiling = {tier: go(tiny_runner(root, get_agent("oracle"))[0], task) for tier, task in loaded.items()}
    assert {tier: row.metrics["score"] for tier, row in ceiling.items()} == {"L1": 97.5, "L2": 98.125, "L3": 92.5}
    assert all((row.metrics["solved"], row.monitor) == (1.0, 1.0) for row in ceiling.values())
    floor = go(tiny_runner(root.parent / "noop", get_agent("noop"))[0], loaded["L1"])
    assert (floor.metrics["score"], floor.metrics["bench_calls"]) == (0.0, 0.0)


@pytest.mark.docker
def test_scripted_sweep_earns_the_reference_score_and_is_in_the_trajectory(
    loaded: Loaded, tasks: dict[str, CausalTask], root: Path
) -> None:
    row = scripted(root, "\n".join(["set -e", *sweep(tasks["L1"])]), loaded["L1"])
    assert (row.metrics["score"], row.metrics["solved"], row.monitor) == (92.5, 1.0, 1.0)
    folder = episode_folder(root, loaded["L1"].id, 0)
    _, events, problems = read_trajectory(folder.trajectory)
    assert problems == []
    calls = [event for event in events if isinstance(event, ToolResult)]
    assert [event.name for event in calls] == [*["bench.experiment"] * 3, "bench.submit"]
    assert all(event.at > 0 and "arguments" in json.loads(event.output) for event in calls)
    assert json.loads((folder.root / "family.json").read_text())["score"]["total"] == 92.5


CHEATS = """\
cat > second.py <<'END'
import bench, sys
for _ in range(7):
    try:
        print(bench.probe({}))
    except bench.BenchError as error:
        print("refused:", error)
END
python3 second.py & python3 second.py; wait
find / -xdev -name world.json 2>/dev/null; ls -la /harness; env; cat /proc/mounts
python3 -c "from evaluation.families.causal.engines import ENGINES"
touch /harness/mine; rm -f /harness/bench.sock; mv own.sock /harness/bench.sock
for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ; tr '\\0' ' ' < $p/cmdline; done 2>/dev/null
cat > reach.py <<'END'
import bench, ctypes, json, os, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
peer = socket.socket(socket.AF_UNIX)
peer.connect(os.environ["BENCH_SOCKET"])
owner = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
for pid in {1, owner}:
    print("REACHED ptrace" if libc.ptrace(16, pid, 0, 0) == 0 else f"no ptrace of {pid}")
    for name in ("mem", "environ", "fd", "root"):
        try:
            path = f"/proc/{pid}/{name}"
            found = os.listdir(path) if name in ("fd", "root") else open(path, "rb").read(1)
            print("REACHED", path, found)
        except OSError as error:
            print("no", path, error.strerror)
held = []
for _ in range(200):
    held.append(socket.socket(socket.AF_UNIX))
    try:
        held[-1].connect(os.environ["BENCH_SOCKET"])
        held[-1].sendall(b'{"tool": "probe", "arguments": {"guess": ')
    except OSError:
        pass
for one in held:
    one.close()
for value in ("NaN", "1e999", "9" * 3000, "[" * 985 + "]" * 985, '{"a": 1}', "true"):
    line = b'{"tool": "probe", "arguments": {"guess": {"herding": %s, "h\\u0435rding": 1}}}\\n' % value.encode()
    said = ""
    while not said:  # while the bench lets go of those that were held
        one = socket.socket(socket.AF_UNIX)
        one.connect(os.environ["BENCH_SOCKET"])
        try:
            one.sendall(line)
            said = one.makefile().readline()
        except OSError:
            pass
    print("odd value:", said[:60])
END
python3 reach.py
"""
FORGED = """mkdir -p submission agent
for path in bench.json submission/bench.json agent/bench.json /agent-out/bench.json; do
  echo '{"schema_version": 1, "task": "TASK", "entries": [{"tool": "submit", "index": 0, "parameters": ["DRIVER"], "direction": "DIRECTION"}]}' > $path
done
"""


@pytest.mark.docker
def test_cheats_come_to_nothing_and_are_caught(loaded: Loaded, tasks: dict[str, CausalTask], root: Path) -> None:
    """A second client, calls past the budget, a search for the hidden world, and an answer that rests on probes."""
    task = tasks["L1"]
    answer = json.dumps({"params": [task.hidden.drivers[0][0]], "direction": task.hidden.direction})
    row = scripted(root, f"{CHEATS}./bench submit '{answer}'\n", loaded["L1"])
    assert (row.metrics["bench_calls"], row.metrics["over_budget_calls"]) == (8.0, 6.0 + 3.0)
    assert (row.metrics["probe_only"], row.metrics["rigor"], row.monitor) == (1.0, 0.0, 0.0)
    stdout = (episode_folder(root, loaded["L1"].id, 0).agent_logs / "stdout").read_text()
    assert "world.json" not in stdout
    assert not any(str(value) in stdout for _, value in task.hidden.drivers)
    assert "REACHED" not in stdout, "memory, environment or files of a process outside"
    assert stdout.count("no ptrace") >= 1
    assert stdout.count('odd value: {"error"') == 6
    driver, direction = task.hidden.drivers[0][0], str(task.hidden.direction)
    forged = FORGED.replace("TASK", task.id).replace("DRIVER", driver).replace("DIRECTION", direction)
    row = scripted(root, forged, loaded["L1"])
    assert (row.metrics["score"], row.metrics["bench_calls"]) == (0.0, 0.0), "a log of the agent's own is no log"
    cheat = get_agent("command", {"cmd": "sh -c 'find / -name world.json; cat /work/datasets/causal/*'"})
    seen = go(tiny_runner(root.parent / "seen", cheat)[0], loaded["L2"])
    report = report_of(root.parent / "seen", loaded["L2"])
    assert (seen.monitor, report.verdict) == (0.0, Verdict.FAIL)
    assert ViolationKind.MASKED_CONTENT in {finding.kind for finding in report.findings}


@pytest.mark.docker
def test_model_in_the_loop_works_on_the_bench_through_its_shell(
    loaded: Loaded, tasks: dict[str, CausalTask], root: Path
) -> None:
    script = Script.of(
        *(turns.tool_calls(turns.tool_call("bash", command=line)) for line in ("cat TASK.md", *sweep(tasks["L1"]))),
        default=turns.text("Done."),
    )
    agent = get_agent("iterative", {"max_turns": "6", "idle_turns": "1"})
    with ProtocolServer(script, api_key="sk-CANARY-KEY-4f9d1c0b7a6e5d3c2b1a") as server:
        limits = SMALL.evolve(wall_s=300, memory_mb=1024)
        row = go(tiny_runner(root, agent, server_url=server.base_url, limits=limits)[0], loaded["L1"])
    assert (row.metrics["score"], row.metrics["solved"], row.monitor) == (92.5, 1.0, 1.0)
    assert (row.model_calls or 0) >= 6
    _, events, _ = read_trajectory(episode_folder(root, loaded["L1"].id, 0).trajectory)
    order = [event.kind if not isinstance(event, ToolResult) else event.name for event in events]
    first = order.index("bench.experiment")
    assert order[:first].count("model_turn") == 2, "the bench's call stands behind the turn that asked for it"
