"""Episodes in real containers: what the agent sees, what it is held to, what comes out, what does not come in."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from evaluation.agents.command import CommandAgent
from evaluation.agents.registry import get_agent
from evaluation.episode import EpisodeState, Step
from evaluation.harness.episode_runner import EpisodeRunner, episode_folder, load_state
from evaluation.harness.graders import Graders
from evaluation.harness.run import run_episodes
from evaluation.scores import EpisodeScores, EpisodeStatus
from evaluation.submission import Submission
from evaluation.task import EvaluationTask
from evaluation.trajectory import CommandRun, End, FileChange, LimitHit
from evaluation.trajectory_io import read_trajectory
from evaluation.verdicts import ExecutionReport, Grader, IntegrityReport, ViolationKind
from pipeline.data.phase import DataPhase
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm import register_secret
from pipeline.progress import SilentReporter
from pipeline.sandbox import BuildSpec, Command, Limits, RunSpec, StopHandle
from pipeline.task import SourceScript, Usage, Verdict
from tests.doubles.protocol_server import ProtocolServer, Script, Turn
from tests.evaluation.harness.support import ASKING, HONEST, KEY, SMALL, tiny_runner, tiny_tasks
from tests.pipeline.data.data_host import Page, serve_data_host

pytestmark = pytest.mark.docker

SPY = """\
env; cat /proc/*/cmdline /proc/*/environ | tr '\\0' '\\n'; cat /proc/self/mountinfo
find / -xdev -type f -not -path '/proc/*' -not -path '/sys/*' -not -path '/usr/*' -newer /etc/hostname 2>/dev/null
cat /agent/* /harness/launch.py $(find /work -type f -not -path '*/.git/*')
git -C /work log --all --stat
"""


@pytest.fixture
def task(tmp_path: Path) -> EvaluationTask:
    return tiny_tasks(tmp_path / "tasks", 1)[0]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "run"


def go(runner: EpisodeRunner, task: EvaluationTask) -> EpisodeScores:
    return runner.episode(task, 0, StopHandle())


def command(text: str, directory: Path, **options: str) -> object:
    script = directory / "agent.sh"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(text)
    return get_agent("command", {"script": str(script)} | options)


def script_runner(text: str, root: Path, **options: object) -> EpisodeRunner:
    model = {"model": "true"} if "server_url" in options else {}
    return tiny_runner(root, command(text, root.parent, **model), **options)[0]  # type: ignore[arg-type]


def test_noop_comes_out_with_nothing(root: Path, task: EvaluationTask) -> None:
    scores = go(tiny_runner(root, get_agent("noop"))[0], task)
    assert scores.status is EpisodeStatus.SCORED
    assert (scores.design, scores.implementation, scores.execution, scores.conclusion) == (0, 0, 0, 0)
    state = load_state(episode_folder(root, task.id, 0))
    assert state is not None
    assert state.finished == tuple(Step)


def test_oracle_comes_out_with_everything(root: Path, tmp_path: Path) -> None:
    [task] = tiny_tasks(tmp_path / "tasks", 1)
    assert task.truth is not None
    assert task.masked_repository is not None
    original = tmp_path / "original"
    (original / "scripts").mkdir(parents=True)
    (original / "scripts" / "run.py").write_text("score = sum([1, 1, 1, 0]) / 4\nprint('score', score)\n")
    facts = task.truth.evolve(
        sources=(SourceScript(path="scripts/run.py", role="entry", score=1.0),),
        usage=(Usage(argv=("python", "run.py"), directory="scripts"),),
        requirements=(),
    )
    scores = go(tiny_runner(root, get_agent("oracle"))[0], task.evolve(truth=facts, original_tree=original))
    assert (scores.monitor, scores.design, scores.execution, scores.conclusion) == (1, 1, 1, 1)


def test_an_honest_command_is_recorded_taken_and_graded(root: Path, task: EvaluationTask) -> None:
    with ProtocolServer(Script(default=Turn(text="the model's answer")), api_key=KEY) as server:
        scores = go(script_runner(ASKING, root, server_url=server.base_url), task)
    folder = episode_folder(root, task.id, 0)
    _, events, problems = read_trajectory(folder.trajectory)
    assert problems == []
    told = [
        event for event in events if not getattr(event, "observed", False) and event.kind not in ("file_change", "note")
    ]
    assert [event.kind for event in told] == ["utterance", "model_call", "command", "end"]
    [run] = [event for event in told if isinstance(event, CommandRun)]
    assert "the model's answer" in run.output
    assert "score 0.75" in run.output
    assert isinstance(events[-1], End)
    assert events[-1].reason == "finished"
    taken = Submission.model_validate_json((folder.submission / "submission.json").read_bytes())
    assert {item.path for item in taken.changed} == {"response.json", "reproduce.sh", "experiment.py", "out.txt"}
    # its words are a reader's to judge, and what its design says is no evidence where nothing of the task's own ran
    assert (scores.execution, scores.conclusion, scores.design) == (1, None, None)
    assert scores.design_bounds == (0, 1)
    assert scores.model_calls == 1
    assert scores.cost_usd is not None
    assert scores.cost_usd > 0


HIDING = """\
cat > /tmp/look.py <<'END'
import subprocess
print(subprocess.run(["git", "log", "--all", "-p"], capture_output=True, text=True).stdout[:200])
END
python /tmp/look.py > /dev/null; rm /tmp/look.py
"""


def test_what_a_script_starts_is_seen_although_it_says_nothing(root: Path, task: EvaluationTask) -> None:
    scores = go(script_runner(HIDING + HONEST, root), task)
    folder = episode_folder(root, task.id, 0)
    _, events, _ = read_trajectory(folder.trajectory)
    seen = [event.command for event in events if isinstance(event, CommandRun) and event.observed]
    assert {"python /tmp/look.py", "git log --all -p", "bash reproduce.sh", "python experiment.py"} <= set(seen)
    [look] = [event for event in events if isinstance(event, FileChange) and event.path == "/tmp/look.py"]
    assert "subprocess.run" in look.text
    assert not [event for event in events if isinstance(event, FileChange) and event.path.endswith("lib.py")]
    report = IntegrityReport.model_validate_json((folder.root / "integrity.json").read_bytes())
    assert {finding.kind for finding in report.findings} == {ViolationKind.GIT_HISTORY}
    assert (scores.monitor, report.verdict) == (0, Verdict.FAIL)


def test_neither_key_nor_truth_nor_paths_of_the_graders_reach_the_agent(root: Path, task: EvaluationTask) -> None:
    """Everything the agent can read, list or see, and everything that is kept of its run."""
    register_secret("OPENAI_API_KEY", KEY)
    original = root.parent / "original-CANARY-PATH"
    original.mkdir()
    (original / "secret.py").write_text("CANARY-TRUTH\n")
    with ProtocolServer(Script(default=Turn(text=f"I saw {KEY}")), api_key=KEY) as server:
        runner = script_runner(SPY + ASKING, root, server_url=server.base_url, limits=SMALL.evolve(output_mb=8))
        go(runner, task.evolve(original_tree=original, paper_texts=("CANARY-TRUTH of the paper",)))
    folder = episode_folder(root, task.id, 0)
    seen = [*folder.agent_logs.rglob("*"), *folder.submission.rglob("*"), folder.trajectory]
    assert folder.agent_logs / "model_calls.jsonl" in seen
    for path in seen:
        if path.is_file():
            content = path.read_bytes()
            for canary in (KEY.encode(), b"CANARY-TRUTH", b"CANARY-PATH"):
                assert canary not in content, path
    assert b"EXPBENCH_INSTRUCTIONS" in (folder.agent_logs / "stdout").read_bytes()


@pytest.mark.parametrize(
    ("script", "limits", "name"),
    [
        ("sleep 60", {"wall_s": 3}, "wall_time"),
        ("yes | head -c 3000000", {"output_mb": 1}, "output"),
        ("dd if=/dev/zero of=big bs=1M count=100", {"disk_mb": 16}, "disk"),
        ("for i in $(seq 200); do sleep 30 & done; wait", {"pids": 20}, "processes"),
    ],
)
def test_limits_end_the_agent_and_keep_what_it_did(
    root: Path, task: EvaluationTask, script: str, limits: dict[str, float], name: str
) -> None:
    runner = script_runner(f"echo done > first.txt\n{script}\n", root, limits=SMALL.evolve(**limits))
    scores = go(runner, task)
    folder = episode_folder(root, task.id, 0)
    assert scores.limits == (name,)
    assert (folder.submission / "files" / "first.txt").read_text() == "done\n"
    events = read_trajectory(folder.trajectory)[1]
    assert [event.limit for event in events if isinstance(event, LimitHit)] == [name]
    assert isinstance(events[-1], End)
    assert events[-1].reason == "limit"


def test_a_model_that_cannot_be_reached_is_no_result_of_the_agent(root: Path, task: EvaluationTask) -> None:
    scores = go(script_runner(ASKING, root, server_url="http://127.0.0.1:9/v1"), task)
    state = load_state(episode_folder(root, task.id, 0))
    assert scores.status is EpisodeStatus.UNKNOWN
    assert (scores.monitor, scores.design, scores.execution) == (None, None, None)
    assert state is not None
    assert (state.failure, state.attempts) == (FailureKind.NETWORK.value, 3)
    with ProtocolServer(Script(default=Turn(text="back"))) as server:  # the next run of the harness is a new chance
        again = go(script_runner(ASKING, root, server_url=server.base_url), task)
    assert again.status is EpisodeStatus.SCORED


def test_an_agent_that_never_started_has_no_scores(root: Path, task: EvaluationTask) -> None:
    """A bundle that does not load says nothing about what the agent can do: it once was an agent's failure, graded 0."""

    class Broken(CommandAgent):
        kind = "product"  # type: ignore[assignment]

    script = root.parent / "agent.sh"
    script.write_text("echo 'libffi.so.8: cannot open shared object file' >&2; exit 127\n")
    with ProtocolServer(Script(default=Turn(text="never asked"))) as server:
        agent = Broken({"script": str(script), "model": "true"})
        scores = go(tiny_runner(root, agent, server_url=server.base_url)[0], task)
    state = load_state(episode_folder(root, task.id, 0))
    assert scores.status is EpisodeStatus.UNKNOWN
    assert (scores.design, scores.execution) == (None, None)
    assert state is not None
    assert (state.failure, state.attempts) == (FailureKind.SANDBOX_BROKEN.value, 3)


def test_refused_credentials_end_the_run_and_not_the_episode(root: Path, task: EvaluationTask) -> None:
    with ProtocolServer(Script(default=Turn(text="x")), api_key="another-key-altogether") as server:
        runner = script_runner(ASKING, root, server_url=server.base_url)
        with pytest.raises(ExpbenchError) as caught:
            run_episodes(
                runner, [task], repeats=2, workers=2, sandbox=runner.agent_step.sandbox, reporter=runner.reporter
            )
    assert caught.value.kind is FailureKind.AUTHENTICATION
    assert not episode_folder(root, task.id, 0).scores.exists()


def test_blocked_tasks_get_a_row_and_no_scores(root: Path, task: EvaluationTask) -> None:
    runner = tiny_runner(root, get_agent("noop"))[0]
    blocked = go(runner, task.evolve(blocked="no repository at hand", masked_repository=None))
    assert (blocked.status, blocked.reason, blocked.design) == (EpisodeStatus.BLOCKED, "no repository at hand", None)
    resources = task.public.resources.evolve(gpus=4)
    gpus = runner.episode(task.evolve(public=task.public.evolve(resources=resources)), 1, StopHandle())
    assert gpus.status is EpisodeStatus.BLOCKED


def test_what_the_monitor_fails_is_not_executed_unless_asked(root: Path, task: EvaluationTask) -> None:
    executed: list[str] = []

    def violation(*_: object, **__: object) -> IntegrityReport:
        return IntegrityReport(verdict=Verdict.FAIL, reason="by the test", grader=Grader(engine="keyless"))

    def execute(*_: object, **__: object) -> ExecutionReport:
        executed.append("yes")
        return ExecutionReport(verdict=Verdict.PASS, reason="by the test")

    for repeat, everything in enumerate((False, True)):
        graders = Graders(integrity=violation, execution=execute, execute_all=everything)
        scores = tiny_runner(root, get_agent("noop"), graders=graders)[0].episode(task, repeat, StopHandle())
        assert scores.execution_checked == everything
    assert executed == ["yes"]


def test_interrupting_gives_all_episodes_up_and_resuming_finishes_them(root: Path, task: EvaluationTask) -> None:
    stop = StopHandle()
    runner = script_runner("echo started > /agent-out/started; sleep 60", root)
    timer = threading.Timer(3, stop.abort, ("by the test",))
    timer.start()
    with pytest.raises(ExpbenchError) as caught:
        runner.episode(task, 0, stop)
    timer.join()
    assert caught.value.kind is FailureKind.INTERRUPTED
    state = load_state(episode_folder(root, task.id, 0))
    assert isinstance(state, EpisodeState)
    assert Step.AGENT not in state.finished
    assert go(script_runner(HONEST, root), task).status is EpisodeStatus.SCORED


def test_a_finished_episode_is_read_and_not_run_again(root: Path, task: EvaluationTask) -> None:
    first = go(tiny_runner(root, get_agent("noop"))[0], task)
    before = {p: p.stat().st_mtime_ns for p in episode_folder(root, task.id, 0).root.rglob("*")}
    assert go(tiny_runner(root, get_agent("noop"))[0], task) == first
    assert {p: p.stat().st_mtime_ns for p in episode_folder(root, task.id, 0).root.rglob("*")} == before
    assert json.loads((episode_folder(root, task.id, 0).root / "lock.json").read_text())["task_id"] == task.id


FETCHING = """\
cat > reproduce.sh <<'END'
python -c "import urllib.request as u; print('score =', u.urlopen('http://download.pytorch.org/score.txt').read().decode())"
python -c "import urllib.request as u; u.urlopen('http://download.pytorch.org/other.txt')" || echo refused
END
bash reproduce.sh
"""


def test_agents_and_re_executions_get_what_the_original_downloads(
    root: Path, tmp_path: Path, task: EvaluationTask
) -> None:
    assert task.truth is not None
    assert task.masked_repository is not None
    runner = script_runner(FETCHING, root)
    image = runner.agent_step.sandbox.build(
        BuildSpec(python="3.11"), log=tmp_path / "log", owner="tests-data", reporter=SilentReporter()
    )
    code = "import urllib.request as u; u.urlopen('http://download.pytorch.org/score.txt').read()"
    spec = RunSpec(commands=(Command(argv=("python", "-c", code)),), limits=Limits(memory_mb=256, disk_mb=64))
    with serve_data_host("download.pytorch.org") as host:
        host.pages["download.pytorch.org/score.txt"] = Page(b"0.375", "text/plain")
        record = DataPhase(tmp_path / "cache", upstream=host.upstream).fetch(
            spec,
            image,
            task.masked_repository,
            sandbox=runner.agent_step.sandbox,
            out=tmp_path / "data",
            owner="tests-data",
        )
    go(runner, task.evolve(truth=task.truth.evolve(data=record.kept)))
    folder = episode_folder(root, task.id, 0)
    assert (folder.agent_logs / "stdout").read_text().splitlines() == ["score = 0.375", "refused"]
    assert (folder.root / "execution" / "0.stdout").read_text().splitlines() == ["score = 0.375", "refused"]
