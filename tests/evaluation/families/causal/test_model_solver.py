"""The model solver and the sweep, against a server that speaks the real protocol."""

import json
from pathlib import Path

import pytest

from evaluation.families.causal.engines import ENGINES
from evaluation.families.causal.model_solver import solve_with_model
from evaluation.families.causal.scoring import score
from evaluation.families.causal.solvers import solve
from evaluation.families.causal.store import load_tasks, write_tasks
from evaluation.families.causal.sweep import sweep, table
from evaluation.families.causal.task import CausalTask
from evaluation.families.causal.tools import brief
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm import ModelClient, ModelConfig
from pipeline.progress import SilentReporter
from tests.doubles.protocol_server import ProtocolServer, Script, ToolCall, Turn, turns


def call(name: str, **arguments: object) -> ToolCall:
    return ToolCall(name=name, arguments=arguments)


def test_model_that_sweeps_earns_what_the_reference_earns(tasks: dict[str, CausalTask]) -> None:
    task = tasks["L1"]
    engine = ENGINES[task.simulation]
    driver = task.hidden.drivers[0][0]
    script = [
        *(
            Turn(tool_calls=(call("experiment", configB={name: engine.parameter(name).test_value}),))
            for name in task.candidates
        ),
        Turn(tool_calls=(call("submit", params=[driver], direction=task.hidden.direction),)),
    ]
    with (
        ProtocolServer(Script.of(*script)) as server,
        ModelClient(ModelConfig(model="m", base_url=server.base_url)) as client,
    ):
        log = solve_with_model(task, client)
        asked = [request.body for request in server.requests]
    assert score(task, log).total == 92.5
    assert {tool["function"]["name"] for tool in asked[0]["tools"]} == {"experiment", "probe", "claim", "submit"}
    sent = json.dumps(asked)
    assert str(task.hidden.drivers[0][1]) not in sent
    assert brief(task) in asked[0]["messages"][1]["content"] or brief(task) in json.dumps(
        asked[0]["messages"][1]["content"], ensure_ascii=False
    ).replace("\\n", "\n").replace('\\"', '"')
    results = [json.loads(message["content"]) for message in asked[-1]["messages"] if message["role"] == "tool"]
    assert [set(result) >= {"p_adjusted", "cliffs_delta"} for result in results] == [True] * 3


def test_bad_calls_come_back_as_errors_and_silence_ends_the_episode(tasks: dict[str, CausalTask]) -> None:
    task = tasks["L1"]
    script = [
        Turn(tool_calls=(call("experiment", configB={"colour": 1.0}), call("peek"), call("probe", guess="control"))),
        turns.text("I think it is the first."),
        turns.text("Still thinking."),
    ]
    with (
        ProtocolServer(Script.of(*script)) as server,
        ModelClient(ModelConfig(model="m", base_url=server.base_url)) as client,
    ):
        log = solve_with_model(task, client)
        answers = [m["content"] for m in server.requests[1].body["messages"] if m["role"] == "tool"]
    assert log.submission is None
    assert log.calls == 0
    assert score(task, log).total == 0.0
    assert ["error" in json.loads(answer) for answer in answers] == [True, True, True]
    assert len(server.requests) == 3


def test_sweep_goes_on_where_it_stopped_and_makes_the_table(tasks: dict[str, CausalTask], tmp_path: Path) -> None:
    played: list[tuple[str, int]] = []

    def play(task: CausalTask, repeat: int):
        if len(played) == 3:
            raise ExpbenchError(FailureKind.OVERLOADED, "m", "is down", consequence="none", next_step="again")
        played.append((task.id, repeat))
        return solve(task, "ofat", repeat)

    chosen = list(tasks.values())
    with pytest.raises(ExpbenchError):
        sweep(chosen, play, tmp_path, solver="ofat", repeats=2, reporter=SilentReporter())
    before = len(played)
    played.clear()
    episodes = sweep(
        chosen,
        lambda task, repeat: (played.append((task.id, repeat)), solve(task, "ofat", repeat))[1],
        tmp_path,
        solver="ofat",
        repeats=2,
        reporter=SilentReporter(),
    )
    assert (before, len(played), len(episodes)) == (3, 3, 6)
    (row,) = table(episodes)
    assert row.by_tier == {"L1": 92.5, "L2": 92.5, "L3": 87.5}
    assert (row.overall, row.solve_rate, row.calls) == (90.83, 1.0, 4.0)


def test_frozen_tasks_load_and_bad_files_are_named(tasks: dict[str, CausalTask], tmp_path: Path) -> None:
    write_tasks(tasks.values(), tmp_path)
    (tmp_path / "causal-l1-market-9.json").write_text("{}")
    loaded, problems = load_tasks(tmp_path)
    assert loaded == sorted(tasks.values(), key=lambda task: task.id)
    assert [Path(problem.where).name for problem in problems] == ["causal-l1-market-9.json"]
    with pytest.raises(ExpbenchError, match="holds no causal task"):
        load_tasks(tmp_path / "none")
