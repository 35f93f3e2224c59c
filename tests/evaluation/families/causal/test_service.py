"""The bench beside a container: what the agent's client can do with it, and what it cannot."""

import importlib.util
import json
import socket
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluation.families.causal.bench import Bench, EpisodeLog
from evaluation.families.causal.engines import ENGINES
from evaluation.families.causal.scoring import score
from evaluation.families.causal.service import SOCKET, BenchDesk, answered
from evaluation.families.causal.task import CausalTask
from evaluation.families.causal.taxonomy import Flag, classify
from tests.evaluation.families.causal.support import CLIENT, Served, served


def raw(bench: Served, *lines: bytes) -> list[dict[str, object]]:
    """Lines sent as they are, on one connection."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(60)
        connection.connect(str(bench.folder / SOCKET))
        found = []
        with connection.makefile("rwb") as stream:
            for line in lines:
                stream.write(line)
                stream.flush()
                answer = stream.readline()
                if not answer:
                    break
                found.append(json.loads(answer))
    return found


def test_client_plays_an_episode_as_a_command(tasks: dict[str, CausalTask]) -> None:
    task = tasks["L1"]
    engine = ENGINES[task.simulation]
    with served(task) as bench:
        assert bench.run("status") == (0, {"calls_left": 8, "ended": False, "budget": 8})
        for name in task.candidates:
            code, answer = bench.run("experiment", "--b", json.dumps({name: engine.parameter(name).test_value}))
            assert code == 0
            assert "p_adjusted" in answer
        driver = task.hidden.drivers[0][0]
        assert bench.run("claim", driver, "up")[0] == 0
        code, answer = bench.run("submit", json.dumps({"params": [driver], "direction": task.hidden.direction}))
        assert (code, answer) == (0, {"submitted": True})
        assert bench.run("probe")[0] == 1, "the episode has ended"
        log = bench.log
    assert score(task, log).total == 92.5
    assert [tool for tool, _, _ in bench.told] == ["status", *["experiment"] * 3, "claim", "submit", "probe"]
    assert not (bench.folder / SOCKET).exists()


def test_client_as_a_module_raises_what_the_bench_refuses(
    tasks: dict[str, CausalTask], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = tasks["L1"]
    with served(task) as bench:
        monkeypatch.setenv("BENCH_SOCKET", str(bench.folder / SOCKET))
        spec = importlib.util.spec_from_file_location("bench_client", CLIENT)
        assert spec is not None
        assert spec.loader is not None
        client = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(client)
        assert client.probe({})["calls_left"] == 7
        with pytest.raises(client.BenchError, match="no parameter 'colour'"):
            client.experiment({}, {"colour": 1})
        with pytest.raises(client.BenchError, match="candidates"):
            client.submit(params=["colour"], direction="up")
        assert client.claim(task.candidates[0], "none") == {"recorded": True}
        assert client.status()["calls_left"] == 7


def test_second_client_has_no_second_budget_and_over_budget_calls_do_not_run(tasks: dict[str, CausalTask]) -> None:
    task = tasks["L1"]
    answers: list[dict[str, object]] = []

    with served(task) as bench:

        def hammer() -> None:
            answers.extend(raw(bench, *[b'{"tool": "probe", "arguments": {}}\n'] * 7))

        clients = [threading.Thread(target=hammer) for _ in range(2)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        log = bench.log
    assert sum("p_adjusted" in answer for answer in answers) == 8
    assert sorted(answer["calls_left"] for answer in answers if "calls_left" in answer) == list(range(8))
    assert sum("used up" in str(answer.get("error")) for answer in answers) == 6
    assert log.calls == 8
    assert Flag.BUDGET_MISUSE in classify(task, log)


@pytest.mark.parametrize(
    "line",
    [
        b"\n", b"nonsense\n", b"[]\n", b'{"tool": ["a"]}\n', b'{"tool": "probe", "arguments": 3}\n',
        b'{"tool": "peek", "arguments": {}}\n', b'{"tool": "probe", "world": 1}\n', b"[" * 50_000 + b"\n",
        b'{"tool": "probe", "arguments": {"guess": {"herding": ' + b"9" * 400 + b"}}}\n",
        b'{"tool": "probe", "arguments": {"guess": {"herding": NaN}}}\n', b"x" * 200_000 + b"\n",
        b'{"tool": "experiment", "arguments": {"configA": {"\\ud800": 1}}}\n', b"\xff\xfe\n",
        b'{"tool": "claim", "arguments": {"param": "\\ud800", "effect": "up"}}\n',
    ],
)  # fmt: skip
def test_malformed_requests_get_an_error_cost_nothing_and_do_not_end_the_service(
    tasks: dict[str, CausalTask], line: bytes
) -> None:
    with served(tasks["L1"]) as bench:
        assert all("error" in answer for answer in raw(bench, line))
        assert raw(bench, b'{"tool": "status"}\n') == [{"calls_left": 8, "ended": False, "budget": 8}]
        assert bench.log.calls == 0


def test_nothing_of_the_hidden_world_crosses_the_socket(tasks: dict[str, CausalTask]) -> None:
    task = tasks["L2"]
    with served(task) as bench:
        found = raw(bench, *(b'{"tool": "%s", "arguments": {}}\n' % tool for tool in (b"probe", b"status", b"world")))
    said = json.dumps(found)
    assert str(task.hidden.drivers[0][1]) not in said
    assert not any(name in said for name, _ in task.hidden.drivers)


@pytest.mark.parametrize(
    "call",
    [
        b'{"tool": "claim", "arguments": {"param": "colour", "effect": "up"}}\n', b'{"tool": "peek"}\n',
        b'{"tool": "probe", "arguments": {"guess": 3}}\n',
    ],
)  # fmt: skip
def test_flood_of_calls_ends_in_the_log_and_in_the_trajectory(tasks: dict[str, CausalTask], call: bytes) -> None:
    with served(tasks["L1"]) as bench:
        answers = raw(bench, *[call] * 203)
        assert "takes no further" in str(answers[-1]["error"])
        assert len(bench.log.entries) in {0, 200}, "calls of no known form are not logged"
        assert len(bench.told) == 200
        assert raw(bench, b'{"tool": "status"}\n') == [{"calls_left": 8, "ended": False, "budget": 8}]


def test_flood_after_the_answer_ends_too(tasks: dict[str, CausalTask]) -> None:
    task = tasks["L1"]
    answer = {"tool": "submit", "arguments": {"params": [task.candidates[0]], "direction": "up"}}
    with served(task) as bench:
        raw(bench, *[json.dumps(answer).encode() + b"\n"] * 203)
        assert len(bench.log.entries) == 200
        assert sum(entry.tool == "submit" for entry in bench.log.entries) == 1


def test_connections_that_are_held_open_take_nothing_from_the_harness(tasks: dict[str, CausalTask]) -> None:
    """1,500 of them took every file descriptor of the harness, and with them the episodes beside this one."""
    with served(tasks["L1"]) as bench, ExitStack() as held:
        closed = 0
        for _ in range(80):
            one = held.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            one.settimeout(60)
            one.connect(str(bench.folder / SOCKET))
            try:
                one.sendall(b'{"tool": "status"}\n')
                closed += not one.recv(100)
            except ConnectionError:
                closed += 1
        assert closed == 80 - 32
        held.close()
        while not (answers := _asked(bench)):  # the last of them is let go on the service's thread
            pass
        assert answers == [{"calls_left": 8, "ended": False, "budget": 8}]


def _asked(bench: Served) -> list[dict[str, object]]:
    try:
        return raw(bench, b'{"tool": "status"}\n')
    except ConnectionError:
        return []


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**400), 10**400) | st.floats() | st.text(max_size=9)
    | st.sampled_from(["up", "down", "none", "positive", "small", "herding", "volatility", "\ud800", "\x00"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["herding", "pull", "\ud800", "", "configA"]), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
_NAMES = st.sampled_from(
    ["configA", "configB", "guess", "metric", "param", "params", "effect", "effects", "direction", "estimate", "world"]
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tool=st.sampled_from(["experiment", "probe", "claim", "submit", "status", "peek", "\ud800"]) | _VALUES,
    arguments=st.dictionaries(_NAMES, _VALUES, max_size=4) | _VALUES,
    depth=st.sampled_from([0, 0, 9, 500, 985, 2000]),
)
def test_whatever_is_asked_is_answered_and_leaves_a_log_that_can_be_read(
    tasks: dict[str, CausalTask], tmp_path: Path, tool: object, arguments: object, depth: int
) -> None:
    """A request that breaks the bench makes nothing of the episode known: an agent may prefer that to its score."""
    told: list[str] = []
    desk = BenchDesk(Bench(tasks["L1"]), tmp_path / "b.json", lambda *call: told.append(json.dumps(call)))
    line = json.dumps({"tool": tool, "arguments": arguments}).replace('"herding": ', '"herding": ' + "[" * depth, 1)
    line = line[:-1] + "]" * (line.count("[") - line.count("]")) + line[-1:]
    answer = answered(desk, line.encode())
    assert isinstance(json.loads(json.dumps(answer)), dict)
    EpisodeLog.model_validate_json((tmp_path / "b.json").read_bytes())


def test_what_the_parser_takes_and_a_writer_does_not_is_refused(tasks: dict[str, CausalTask], tmp_path: Path) -> None:
    """About 990 levels, just below where Python gives up parsing, broke the writing of the trajectory."""
    desk = BenchDesk(Bench(tasks["L1"]), tmp_path / "b.json", lambda *call: json.dumps(call))
    for depth in (*range(20, 1000, 70), *range(960, 1000)):
        line = b'{"tool": "experiment", "arguments": {"configA": {"herding": %s}}}' % (b"[" * depth + b"]" * depth)
        assert "error" in answered(desk, line)
