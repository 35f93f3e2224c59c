"""oracle, noop and command: what they start, what they refuse, what they read; and the registry."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from evaluation.agents.base import AgentAdapter, AgentContext
from evaluation.agents.oracle import oracle_response, reproduce_script
from evaluation.agents.registry import AGENTS, get_agent, list_agents
from evaluation.harness.response import parse_response
from evaluation.task import EvaluationTask
from evaluation.trajectory import CommandRun, FileChange, Note
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.task import Band, Condition, DesignVariable, Expected, ExperimentTruth, NumericClaim, SourceScript, Usage
from tests.evaluation.execution_support import public_task

CONTEXT = AgentContext(wall_s=60, instructions="Do it.", model="m", base_url_openai="http://127.0.0.1:1/v1")
CLAIMS = tuple(
    NumericClaim(
        id=name, metric="accuracy", value=value, text=str(value), decimals=1, unit="%",
        conditions=(Condition(name="method", value="A"),), band=Band(low=0, high=100, source="printed"),
    )
    for name, value in (("c1", 87.3), ("c2", 90.1))
)  # fmt: skip
TRUTH = ExperimentTruth(
    constant=(DesignVariable(name="n", values=("5",)), DesignVariable(name="n", values=("6",))),
    sources=(
        SourceScript(path="exp/run.py", role="entry", score=1),
        SourceScript(path="gone.py", role="library", score=1),
    ),
    usage=(Usage(argv=("python", "run.py", "a b"), directory="exp"), Usage(argv=("python", "plot's.py"))),
    expected=Expected(text="A wins.", claims=CLAIMS),
)


def task(**changes: object) -> EvaluationTask:
    return EvaluationTask(public=public_task(), truth=TRUTH).evolve(**changes)


def test_every_registered_agent_is_an_adapter_and_says_whether_it_can_run() -> None:
    agents = list_agents()
    assert [agent.name for agent in agents] == list(AGENTS)
    for agent in agents:
        assert isinstance(agent, AgentAdapter)
        found = agent.availability()
        assert found.detail
        assert found.available or found.next_step


def test_importing_the_registry_imports_no_adapter() -> None:
    code = (
        "import sys, evaluation.agents.registry; print([n for n in sys.modules if n.startswith('evaluation.agents.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "oracle" not in done.stdout


@pytest.mark.parametrize(("name", "options"), [("no-such-agent", {}), ("noop", {"x": "1"}), ("oracle", {"cmd": "ls"}), ("command", {"cmnd": "ls"})])  # fmt: skip
def test_unknown_agents_and_options_are_refused_with_what_there_is(name: str, options: dict[str, str]) -> None:
    with pytest.raises(ExpbenchError) as caught:
        get_agent(name, options)
    assert caught.value.kind is FailureKind.USAGE


def test_the_oracles_answer_survives_being_read_as_a_submission() -> None:
    answer = oracle_response(TRUTH)
    assert answer.design.constant == {"n": ("5", "6")}
    assert sorted(answer.conclusion.numbers.values()) == [87.3, 90.1]
    assert parse_response(answer.model_dump_json(exclude={"extra"}).encode()) == (answer, ())


def test_the_oracle_runs_the_chains_commands_from_their_directories(tmp_path: Path) -> None:
    (tmp_path / "exp").mkdir()
    (tmp_path / "exp" / "run.py").write_text("import sys, lib; print('ran', sys.argv[1:], lib.N)")
    (tmp_path / "lib.py").write_text("N = 7")
    (tmp_path / "plot's.py").write_text("print('plotted')")
    (tmp_path / "reproduce.sh").write_text(reproduce_script(TRUTH.usage))
    env = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    done = subprocess.run(
        ["bash", tmp_path / "reproduce.sh"], capture_output=True, text=True, check=True, cwd="/", env=env
    )
    assert done.stdout == "ran ['a b'] 7\nplotted\n"
    (tmp_path / "lib.py").unlink()
    assert (
        subprocess.run(["bash", tmp_path / "reproduce.sh"], capture_output=True, check=False, env=env).returncode != 0
    )


def test_the_oracles_program_restores_and_writes_events(tmp_path: Path) -> None:
    original, workspace = tmp_path / "original", tmp_path / "work"
    (original / "exp").mkdir(parents=True)
    workspace.mkdir()
    (original / "exp" / "run.py").write_text("print('accuracy 87.3')")
    agent = get_agent("oracle")
    launch = agent.launch(task(original_tree=original), CONTEXT)
    assert not launch.needs_model
    assert [mount.source for mount in launch.mounts] == [original]
    plan = json.loads(launch.files["plan.json"])
    assert plan["restore"] == ["exp/run.py", "gone.py"]
    plan |= {"workspace": str(workspace), "original": str(original), "log": str(tmp_path / "events.jsonl"),
             "reproduce": "python exp/run.py\n"}  # fmt: skip
    for name, text in (launch.files | {"plan.json": json.dumps(plan)}).items():
        (tmp_path / name).write_text(text)
    env = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-I", "apply.py", "plan.json"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "accuracy 87.3\n"
    events = list(agent.read_events(tmp_path, tmp_path / "stdout", tmp_path / "stderr"))
    assert [event.path for event in events if isinstance(event, FileChange)] == [
        "exp/run.py",
        "reproduce.sh",
        "response.json",
    ]
    assert [event.text for event in events if isinstance(event, Note)] == ["gone.py is not in the original repository"]
    [run] = [event for event in events if isinstance(event, CommandRun)]
    assert (run.output, run.exit_code) == ("accuracy 87.3\n", 0)


@pytest.mark.parametrize("changes", [{"truth": None}, {"original_tree": None}, {"truth": TRUTH.evolve(usage=())}])
def test_the_oracle_refuses_what_it_cannot_apply(changes: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(ExpbenchError) as caught:
        get_agent("oracle").launch(task(original_tree=tmp_path).evolve(**changes), CONTEXT)
    assert caught.value.kind is FailureKind.DATA_UNAVAILABLE


def test_the_noop_agent_sees_and_does_nothing() -> None:
    launch = get_agent("noop").launch(task(), CONTEXT)
    assert (launch.files, launch.env, launch.mounts, launch.needs_model) == ({}, {}, (), False)


def test_a_command_gets_instructions_and_gateway_and_no_truth(tmp_path: Path) -> None:
    launch = get_agent("command", {"cmd": "python 'my agent.py' --x", "model": "true"}).launch(task(), CONTEXT)
    assert launch.argv == ("python", "my agent.py", "--x")
    assert launch.env["OPENAI_BASE_URL"] == CONTEXT.base_url_openai
    assert launch.files["instructions.md"] == "Do it."
    script = tmp_path / "agent.py"
    script.write_text("#!/usr/bin/env python3\nprint(1)\n")
    launch = get_agent("command", {"script": str(script)}).launch(task(original_tree=tmp_path), CONTEXT)
    assert launch.argv == ("/usr/bin/env", "python3", "/agent/agent.sh")
    assert "A wins" not in launch.model_dump_json()
    assert launch.mounts == ()


@pytest.mark.parametrize("options", [{}, {"cmd": "  "}, {"cmd": "'open"}, {"script": "/no/such/file"}, {"cmd": "x", "model": "yes"}])  # fmt: skip
def test_commands_that_cannot_be_started_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(ExpbenchError) as caught:
        get_agent("command", options).launch(task(), CONTEXT.evolve(model=None))
    assert caught.value.kind is FailureKind.USAGE


def test_a_commands_own_events_are_taken_and_broken_lines_counted(tmp_path: Path) -> None:
    event = CommandRun(seq=0, at=1, command="ls", output="x")
    (tmp_path / "events.jsonl").write_text(event.model_dump_json() + "\n{broken\n")
    found = list(get_agent("command", {"cmd": "x"}).read_events(tmp_path, tmp_path / "o", tmp_path / "e"))
    assert found[0] == event
    assert isinstance(found[1], Note)


def test_without_events_the_end_of_its_output_is_the_record(tmp_path: Path) -> None:
    (tmp_path / "o").write_text("a" * 300_000 + "the end")
    [event] = get_agent("command", {"cmd": "x"}).read_events(tmp_path, tmp_path / "o", tmp_path / "missing")
    assert isinstance(event, CommandRun)
    assert event.truncated
    assert event.output.endswith("the end")
