"""The bench over the Model Context Protocol, with the protocol's own client on both transports."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters, stdio_client

from evaluation.families.causal.engines import ENGINES
from evaluation.families.causal.grading import grade, read_log
from evaluation.families.causal.mcp_server import bench_server, open_desk
from evaluation.families.causal.store import write_tasks
from evaluation.families.causal.task import CausalTask
from evaluation.families.causal.tools import brief
from pipeline.errors import ExpbenchError

COMMAND = (sys.executable, "-m", "flows.cli")


async def play(client: Client, task: CausalTask) -> list[dict[str, object]]:
    """A sweep and the right answer; what the tools said."""
    engine = ENGINES[task.simulation]
    found = []
    for name in task.candidates:
        result = await client.call_tool("experiment", {"configB": {name: engine.parameter(name).test_value}})
        assert not result.is_error
        found.append(result.structured_content)
        assert json.loads(result.content[0].text) == result.structured_content
    answer = {"params": [task.hidden.drivers[0][0]], "direction": task.hidden.direction}
    assert (await client.call_tool("submit", answer)).structured_content == {"submitted": True}
    return found


def test_four_tools_and_the_brief_are_all_that_a_client_sees(tasks: dict[str, CausalTask], tmp_path: Path) -> None:
    task = tasks["L1"]

    async def look() -> None:
        async with Client(bench_server(task, open_desk(task, tmp_path / "bench.json"))) as client:
            listed = await client.list_tools()
            assert [tool.name for tool in listed.tools] == ["experiment", "probe", "claim", "submit"]
            assert set(listed.tools[0].input_schema["properties"]) == {"configA", "configB", "metric"}
            assert brief(task) in (client.instructions or "")
            refused = await client.call_tool("experiment", {"configB": {"colour": 1}})
            assert refused.is_error
            assert "no parameter" in str(refused.structured_content)
            assert (await client.call_tool("peek", {})).is_error
            await play(client, task)

    anyio.run(look)
    assert grade(task, read_log(tmp_path)).score.total == 92.5


def test_restarted_server_goes_on_with_the_budget_that_is_left(tasks: dict[str, CausalTask], tmp_path: Path) -> None:
    task, record = tasks["L1"], tmp_path / "bench.json"
    open_desk(task, record).call("probe", {})
    assert open_desk(task, record).call("status", {})["calls_left"] == 7
    with pytest.raises(ExpbenchError, match="log of causal-l1"):
        open_desk(tasks["L2"], record)
    record.write_text("{}")
    with pytest.raises(ExpbenchError, match="no bench log"):
        open_desk(task, record)


def test_stdio_server_is_a_command(tasks: dict[str, CausalTask], tmp_path: Path) -> None:
    task = tasks["L1"]
    [path] = write_tasks([task], tmp_path)
    record = tmp_path / "bench.json"
    words = [*COMMAND[1:], "causal-mcp", "--task", str(path), "--log", str(record)]
    here = StdioServerParameters(command=COMMAND[0], args=words, cwd=Path.cwd(), env={"PATH": os.environ["PATH"]})

    async def over_stdio() -> None:
        with anyio.fail_after(240):
            async with Client(stdio_client(here)) as client:
                await play(client, task)

    anyio.run(over_stdio)
    assert grade(task, read_log(record)).score.total == 92.5


@contextmanager
def http_server(path: Path, record: Path) -> Iterator[str]:
    """The command with HTTP, on a free port; its URL."""
    words = ("causal-mcp", "--task", str(path), "--log", str(record), "--transport", "http", "--port", "0", "--json")
    process = subprocess.Popen((*COMMAND, *words), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        said = json.loads(process.stdout.readline())
        assert said["log"] == str(record)
        assert said["url"].startswith("http://127.0.0.1:")
        yield said["url"]
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def test_http_server_gives_every_client_the_same_bench(tasks: dict[str, CausalTask], tmp_path: Path) -> None:
    task = tasks["L1"]
    [path] = write_tasks([task], tmp_path)

    async def over_http(url: str) -> None:
        with anyio.fail_after(240):
            async with Client(url) as first:
                assert (await first.call_tool("probe", {})).structured_content["calls_left"] == 7
            async with Client(url) as second:
                assert (await second.call_tool("probe", {})).structured_content["calls_left"] == 6
                await play(second, task)

    with http_server(path, tmp_path / "bench.json") as url:
        anyio.run(over_http, url)
    graded = grade(task, read_log(tmp_path / "bench.json"))
    assert (graded.score.calls, graded.score.solved) == (5, True)
