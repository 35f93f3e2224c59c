"""The bench beside a container: what the agent's client can do with it, and what it cannot."""

import importlib.util
import json
import socket
import threading

import pytest

from evaluation.families.causal.engines import ENGINES
from evaluation.families.causal.scoring import score
from evaluation.families.causal.service import SOCKET
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


def test_flood_of_refused_calls_ends(tasks: dict[str, CausalTask]) -> None:
    with served(tasks["L1"]) as bench:
        answers = raw(bench, *[b'{"tool": "claim", "arguments": {"param": "colour", "effect": "up"}}\n'] * 203)
        assert "takes no further" in str(answers[-1]["error"])
        assert len(bench.log.entries) == 200
