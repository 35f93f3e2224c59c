"""Sweeps that are cut off, models that fail, and what the command says of bad input."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evaluation.families.causal.engines import ENGINES
from evaluation.families.causal.store import write_tasks
from evaluation.families.causal.task import CausalTask
from flows.cli import app
from pipeline.errors import ExpbenchError
from tests.doubles.protocol_server import ProtocolServer, Script, ToolCall, Turn, turns

SCRIPT = Path(__file__).with_name("solve_and_die.py")


def rows(run: Path) -> dict[str, bytes]:
    return {str(path.relative_to(run)): path.read_bytes() for path in sorted(run.rglob("*.json"))}


def invoke(*words: str | Path) -> tuple[int, object]:
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, json.loads(result.stdout) if result.stdout.startswith(("{", "[")) else result.output


def test_killed_at_any_point_a_sweep_goes_on_to_the_same_rows(tasks: dict[str, CausalTask], tmp_path: Path) -> None:
    """SIGKILL before the first file, within the writing of one, and between two episodes."""
    write_tasks([tasks["L1"]], tmp_path / "tasks")
    whole, cut = tmp_path / "whole", tmp_path / "cut"

    def child(run: Path, at: int) -> int:
        words = [sys.executable, SCRIPT, tmp_path / "tasks", run, str(at)]
        return subprocess.run(words, check=False, env=os.environ | {"PYTHONPATH": str(Path.cwd())}).returncode

    for at in (1, 2, 4):
        assert child(cut, at) == -signal.SIGKILL
    assert child(cut, 10_000) == 0
    _, table = invoke("solve", tmp_path / "tasks", "--solver", "ofat", "--repeats", "2", "--out", cut, "--json")
    _, expected = invoke("solve", tmp_path / "tasks", "--solver", "ofat", "--repeats", "2", "--out", whole, "--json")
    assert table == expected
    assert rows(cut) == rows(whole)
    assert len(rows(whole)) == 2


def answer(**arguments: object) -> Turn:
    return Turn(tool_calls=(ToolCall(name="submit", arguments=arguments),))


def experiments(name: str, value: float, count: int) -> Turn:
    return Turn(tool_calls=(ToolCall(name="experiment", arguments={"configB": {name: value}}),) * count)


def test_llm_solver_over_the_command_its_failures_and_a_second_model_in_the_same_run(
    tasks: dict[str, CausalTask], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four repeats fail in four ways; a fifth, whose endpoint is dead, is no episode and is played later."""
    task = tasks["L1"]
    write_tasks([task], tmp_path / "tasks")
    driver, direction = task.hidden.drivers[0][0], task.hidden.direction
    wrong = "down" if direction == "up" else "up"
    decoy = next(name for name in task.candidates if name != driver)
    value = ENGINES[task.simulation].parameter(driver).test_value
    script = Script.of(
        answer(params=[driver], direction=wrong),  # unbacked, direction not measured
        Turn(tool_calls=(ToolCall(name="probe", arguments={}),)), answer(params=[driver], direction=direction),
        experiments(driver, value, 9), answer(params=[decoy], direction="up"),  # over-testing, past the budget
        turns.text("It is the first."), turns.text("I am sure."),  # no answer
        turns.error(401),
    )  # fmt: skip
    command = ("solve", tmp_path / "tasks", "--solver", "llm", "--model", "m", "--out", tmp_path / "run", "--json")
    with ProtocolServer(script) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "any")
        code, table = invoke(*command, "--repeats", "4")
        assert code == 0
        with pytest.raises(ExpbenchError):
            invoke(*command, "--repeats", "5")
    assert isinstance(table, list)
    [row] = table
    assert (row["solver"], row["model"], row["episodes"]) == ("model", "m", 4)
    assert (row["probe_only"], row["over_testing"]) == (1, 1)
    flags = [json.loads(text)["flags"] for text in rows(tmp_path / "run").values()]
    assert len(flags) == 4, "the episode that the endpoint failed was not scored"
    assert [set(found) for found in flags] == [
        {"direction_error", "direction_unmeasured", "unbacked"}, {"probe_only"},
        {"budget_misuse", "over_testing", "unbacked", "wrong_parameter"}, {"no_answer"},
    ]  # fmt: skip
    with ProtocolServer(Script(default=answer(params=[driver], direction=direction))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        _, again = invoke(*command, "--repeats", "5")
        assert len(server.requests) == 1, "only the missing episode was played"
        _, other = invoke(*(word if word != "m" else "n" for word in command), "--repeats", "1")
        assert len(server.requests) == 2, "another model's episodes are its own"
    assert isinstance(again, list)
    assert isinstance(other, list)
    assert (again[0]["episodes"], other[0]["model"], other[0]["episodes"]) == (5, "n", 1)


def test_salt_is_the_number_of_the_first_draw(tasks: dict[str, CausalTask], tmp_path: Path) -> None:
    write_tasks([tasks["L1"]], tmp_path / "tasks")
    command = ("solve", tmp_path / "tasks", "--solver", "random", "--out", tmp_path / "run", "--json")
    _, together = invoke(*command, "--repeats", "12")
    kept = rows(tmp_path / "run")
    assert len({json.dumps(json.loads(text)["log"]["entries"]) for text in kept.values()}) > 2, "draws differ"
    _, last = invoke(*(tmp_path / "other" if word == tmp_path / "run" else word for word in command), "--salt", "11")
    assert isinstance(together, list)
    assert isinstance(last, list)
    assert (together[0]["episodes"], last[0]["episodes"]) == (12, 1)
    [(name, text)] = rows(tmp_path / "other").items()
    assert text == kept[name]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("generate", "causal", "--seeds", "1,x"), "whole numbers"),
        (("generate", "causal", "--seeds", "-3"), "whole numbers"),
        (("generate", "causal", "--seeds", ","), "whole numbers"),
        (("generate", "causal", "--simulation", "weather"), "Choose among market"),
        (("generate", "causal", "--out", "file"), "no directory"),
        (("generate", "causal", "--check", "nothing"), "holds no causal task"),
        (("solve", "nothing"), "holds no causal task"),
        (("solve", "bad"), "holds no causal task"),
        (("solve", "good", "--out", "file"), "no directory"),
        (("score", "causal", "--task", "good", "--submission", "nothing"), "not there"),
        (("score", "causal", "--task", "good", "--submission", "empty"), "holds none of"),
        (("score", "causal", "--task", "good", "--submission", "file"), "no bench log"),
        (("score", "causal", "--task", "good", "--submission", "list.json"), "no bench log"),
        (("score", "causal", "--task", "good", "--submission", "foreign.json"), "does not hold the task"),
        (("score", "causal", "--task", "bad", "--submission", "foreign.json"), "holds no causal task"),
        (("causal-mcp", "--task", "good", "--log", "file"), "no bench log"),
    ],
)
def test_bad_input_is_said(
    tasks: dict[str, CausalTask], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    [path] = write_tasks([tasks["L1"]], tmp_path / "good")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("{")
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "foreign.json").write_text('{"schema_version": 1, "task": "causal-l1-swarm-1", "entries": []}')
    (tmp_path / "bad").mkdir()
    text = path.read_text()
    for number, change in enumerate((("market", "weather"), ('"0', '"x'), ('"seed": 11', '"seed": -1'))):
        (tmp_path / "bad" / f"causal-l1-market-{number}.json").write_text(text.replace(*change) + "}" * (number == 1))
    with pytest.raises(ExpbenchError) as caught:
        invoke(*words)
    assert said in str(caught.value)
    assert caught.value.exit_code in {2, 5}


def test_seed_without_a_verified_draw_is_named_and_the_others_are_generated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaluation.families.causal.generate._ATTEMPTS", 1)
    words = ("generate", "causal", "--tier", "L1", "--simulation", "market", "--out", tmp_path / "out", "--json")
    code, made = invoke(*words, "--seeds", "1,2,3,4,5,6,7,8")
    assert code == 6
    assert isinstance(made, list)
    assert 0 < len(made) < 8
    assert sorted(path.stem for path in (tmp_path / "out").iterdir()) == sorted(row["task"] for row in made)
    lasting = rows(tmp_path / "out")
    monkeypatch.setattr("evaluation.families.causal.generate._ATTEMPTS", 0)  # nothing can be made any more
    assert invoke(*words, "--seeds", "1,2,3,4,5,6,7,8") == (6, made), "an interrupted pass goes on where it stopped"
    first = tmp_path / "out" / f"{made[0]['task']}.json"
    first.write_text(first.read_text().replace('"engine_version": "', '"engine_version": "old-'))
    code, fewer = invoke(*words, "--seeds", "1,2,3,4,5,6,7,8")
    assert (code, fewer) == (6, made[1:]), "what another version made is not kept"
    assert set(rows(tmp_path / "out")) == set(lasting)
    lost = next(seed for seed in range(1, 9) if f"causal-l1-market-{seed}" not in {row["task"] for row in made})
    with pytest.raises(ExpbenchError, match="Use another seed") as caught:
        invoke(*words, "--seeds", str(lost))
    assert caught.value.exit_code == 6
