"""What the harness costs: an episode beside bare Docker, and how fast trajectories are written.

Usage: python -m benchmarks.harness.run [--rounds N] [--events N]

In turn within one process, so that a busy machine is busy for all of them:

- bare: `docker create`, `start`, `exec` of a command that does nothing, `rm -f`, by the command line, same image;
- sandbox: one run of our Docker sandbox (no gateway, empty tree);
- agent step: container, inbox, launcher, trajectory, submission taken, for a command that does nothing;
- agent step with gateway: the same with the recording proxy and one model call to a local protocol server;
- episode: all seven steps with keyless graders (an empty submission: nothing is re-executed).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.sandbox.run import measure
from evaluation.agents.registry import get_agent
from evaluation.episode import EpisodeFolder
from evaluation.harness.agent_step import read_agent_run
from evaluation.harness.run import run_owner
from evaluation.harness.submission_reader import take_submission
from evaluation.harness.workspace import remove_scratch, scratch_directory, workspace_after
from evaluation.trajectory import CommandRun, TrajectoryHead
from evaluation.trajectory_io import TrajectoryWriter, read_trajectory
from pipeline.llm.protocol_server import ProtocolServer, Script, Turn
from pipeline.progress import SilentReporter
from pipeline.sandbox import BuildSpec, Command, Limits, RunSpec, StopHandle
from tests.evaluation.harness.support import ASKING, HONEST, tiny_runner, tiny_tasks

ASK_ONLY = ASKING.removesuffix(HONEST)


def bare(reference: str) -> Callable[[], None]:
    def once() -> None:
        def docker(*arguments: str) -> str:
            return subprocess.run(["docker", *arguments], check=True, capture_output=True, text=True).stdout.strip()

        name = docker("create", "--network", "none", reference, "sleep", "60")
        try:
            docker("start", name)
            docker("exec", name, "/bin/sh", "-c", ":")
        finally:
            docker("rm", "-f", name)

    return once


def throughput(folder: Path, count: int) -> dict[str, float]:
    event = CommandRun(seq=0, at=1.0, command="python train.py", output="epoch 1 loss 0.5\n" * 60)
    path = folder / "trajectory.jsonl"
    begin = time.perf_counter()
    with TrajectoryWriter(path, TrajectoryHead(episode="t/0", agent="benchmark")) as writer:
        for _ in range(count):
            writer.append(event)
    written = time.perf_counter() - begin
    begin = time.perf_counter()
    assert len(read_trajectory(path)[1]) == count
    read = time.perf_counter() - begin
    size = path.stat().st_size
    return {
        "events": count,
        "append_per_s": round(count / written),
        "append_mb_per_s": round(size / written / 1e6, 1),
        "read_per_s": round(count / read),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--events", type=int, default=20_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ProtocolServer(Script(default=Turn(text="hello"))) as server:
        folder = Path(name)
        task = tiny_tasks(folder / "tasks", 1)[0]
        (folder / "ask.sh").write_text(ASK_ONLY)
        root = folder / "run"
        plain, sandbox = tiny_runner(root, get_agent("noop"))
        asking, _ = tiny_runner(
            root, get_agent("command", {"script": str(folder / "ask.sh"), "model": "true"}), server_url=server.base_url
        )
        image = sandbox.build(BuildSpec(), log=folder / "log", owner="benchmark", reporter=SilentReporter())
        (folder / "empty").mkdir()
        spec = RunSpec(commands=(Command(argv=("/bin/sh", "-c", ":")),), limits=Limits(memory_mb=256, disk_mb=32))
        numbers = iter(range(1_000_000))

        def sandboxed() -> None:
            sandbox.run(image, folder / "empty", spec, out=folder / "out", owner="benchmark")

        def step(runner: object) -> Callable[[], None]:
            def once() -> None:
                episode = EpisodeFolder(folder / "steps" / str(next(numbers)))
                with scratch_directory(run_owner(root)) as scratch:
                    runner.agent_step.run(  # type: ignore[attr-defined]
                        task, episode, image, "told", seed=0, scratch=scratch, stop=StopHandle()
                    )
                    assert task.masked_repository is not None
                    run = read_agent_run(episode)
                    tree = scratch / "tree"
                    workspace_after(task.masked_repository, episode.agent_logs / "workspace", run.result, tree)
                    take_submission(tree, task.masked_repository, episode)

            return once

        ways = {
            "bare docker create, start, exec, rm": bare(image.reference),
            "sandbox run": sandboxed,
            "agent step and submission": step(plain),
            "agent step with gateway, one call": step(asking),
            "whole episode (noop, keyless)": lambda: void(plain.episode(task, next(numbers), StopHandle())),
        }
        try:
            result = {
                "milliseconds": measure(ways, arguments.rounds),
                "trajectory": throughput(folder, arguments.events),
            }
        finally:
            remove_scratch(run_owner(root))
        print(json.dumps(result, indent=2))


def void(_: object) -> None:
    return None


if __name__ == "__main__":
    main()
