"""What the harness costs: an episode beside bare Docker, and how fast trajectories are written.

Usage: python -m benchmarks.harness.run [--rounds N] [--events N] [--inspect PYTHON]

In turn within one process, so that a busy machine is busy for all of them:

- bare: `docker create`, `start`, `exec` of a command that does nothing, `rm -f`, by the command line, same image;
- sandbox: one run of our Docker sandbox (no gateway, empty tree);
- agent step: container, inbox, launcher, trajectory, submission taken, for a command that does nothing;
- agent step with gateway: the same with the recording proxy and one model call to a local protocol server;
- episode: all seven steps with keyless graders (an empty submission: nothing is re-executed);
- with `--inspect`: a sample of inspect_ai in an environment of its own (`inspect_peer.py`), before and after.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from evaluation.agents.registry import get_agent
from evaluation.episode import EpisodeFolder
from evaluation.harness.agent_step import read_agent_run
from evaluation.harness.episode_runner import EpisodeRunner
from evaluation.harness.submission_reader import take_submission
from evaluation.harness.workspace import workspace_after
from evaluation.trajectory import CommandRun, TrajectoryHead
from evaluation.trajectory_io import TrajectoryWriter, read_trajectory
from pipeline.progress import SilentReporter
from pipeline.sandbox import BuildSpec, Command, Limits, RunSpec, StopHandle
from pipeline.scratch import scratch_directory
from tests.doubles.protocol_server import ProtocolServer, Script, Turn
from tests.evaluation.harness.support import ASKING, HONEST, tiny_runner, tiny_tasks

ASK_ONLY = ASKING.removesuffix(HONEST)
BARE: Final = "bare docker create, start, exec, rm"
EPISODE: Final = "whole episode (no-op command agent, keyless)"


class Figures(NamedTuple):
    """Of one way."""

    median_ms: int
    worst_ms: int
    cpu_ms: int


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


def timed(ways: dict[str, Callable[[], None]], rounds: int) -> dict[str, Figures]:
    """Every way once a round, in turn; the first round warms up caches."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for round_ in range(rounds + 1):
        for name, way in ways.items():
            begin, cpu = time.perf_counter(), processor_seconds()
            way()
            if round_:
                taken[name].append((time.perf_counter() - begin, processor_seconds() - cpu))
    return {
        name: Figures(
            median_ms=round(statistics.median(wall for wall, _ in rows) * 1000),
            worst_ms=round(max(wall for wall, _ in rows) * 1000),
            cpu_ms=round(statistics.median(cpu for _, cpu in rows) * 1000),
        )
        for name, rows in taken.items()
    }


def processor_seconds() -> float:
    """Of this process and its ended children (the docker command line, git); the engine's own are not in it."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def peer(python: str, image: str) -> int:
    """Milliseconds of a sample in inspect_ai."""
    program = Path(__file__).with_name("inspect_peer.py")
    done = subprocess.run([python, str(program), image], check=True, capture_output=True, text=True)
    return int(json.loads(done.stdout.splitlines()[-1])["per_sample_ms"])


def prepared(folder: Path, server_url: str) -> tuple[str, dict[str, Callable[[], None]]]:
    """The image, and every way to be measured."""
    task = tiny_tasks(folder / "tasks", 1)[0]
    (folder / "ask.sh").write_text(ASK_ONLY)
    (folder / "empty").mkdir()
    root = folder / "run"
    plain, sandbox = tiny_runner(root, get_agent("command", {"cmd": "true"}))
    asking, _ = tiny_runner(
        root, get_agent("command", {"script": str(folder / "ask.sh"), "model": "true"}), server_url=server_url
    )
    image = sandbox.build(BuildSpec(), log=folder / "log", owner="benchmark", reporter=SilentReporter())
    spec = RunSpec(commands=(Command(argv=("/bin/sh", "-c", ":")),), limits=Limits(memory_mb=256, disk_mb=32))
    numbers = iter(range(1_000_000))

    def step(runner: EpisodeRunner) -> None:
        episode = EpisodeFolder(folder / "steps" / str(next(numbers)))
        with scratch_directory() as scratch:
            runner.agent_step.run(task, episode, image, "told", seed=0, scratch=scratch, stop=StopHandle())
            assert task.masked_repository is not None
            run = read_agent_run(episode)
            tree = scratch / "tree"
            workspace_after(task.masked_repository, episode.agent_logs / "workspace", run.result, tree)
            take_submission(tree, task.masked_repository, episode)

    return image.reference, {
        BARE: bare(image.reference),
        "sandbox run": lambda: void(sandbox.run(image, folder / "empty", spec, out=folder / "out", owner="benchmark")),
        "agent step and submission": lambda: step(plain),
        "the same with gateway and one call": lambda: step(asking),
        EPISODE: lambda: void(plain.episode(task, next(numbers), StopHandle())),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6, help="measured rounds (default: %(default)s)")
    parser.add_argument("--events", type=int, default=20_000, help="of the trajectory (default: %(default)s)")
    parser.add_argument("--inspect", metavar="PYTHON", help="a Python with inspect-ai: the peer, before and after")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ProtocolServer(Script(default=Turn(text="hello"))) as server:
        image, ways = prepared(Path(name), server.base_url)
        peers = [peer(options.inspect, image)] if options.inspect else []
        figures = timed(ways, options.rounds)
        peers += [peer(options.inspect, image)] if options.inspect else []
        written = throughput(Path(name), options.events)
    print("| | median | worst | our processor time | beside bare |\n|---|---|---|---|---|")
    for way, row in figures.items():
        ratio = row.median_ms / figures[BARE].median_ms
        print(f"| {way} | {row.median_ms} ms | {row.worst_ms} ms | {row.cpu_ms} ms | {ratio:.2f} |")
    for which, each in zip(("before", "after"), peers, strict=False):
        ratio = each / figures[BARE].median_ms
        print(f"| inspect_ai, one sample, {which} | {each} ms | | | {ratio:.2f} |")
    if peers:
        ratio = figures[EPISODE].median_ms / (sum(peers) / len(peers))
        print(f"\nA whole episode beside a sample of inspect_ai: {ratio:.2f}")
    print("\nTrajectory: " + ", ".join(f"{key} {value}" for key, value in written.items()))


def void(_: object) -> None:
    return None


if __name__ == "__main__":
    main()
