"""What an episode costs in a peer harness: inspect_ai, a sample whose solver runs one command that does nothing.

Usage: PYTHON-WITH-INSPECT-AI benchmarks/harness/inspect_peer.py IMAGE [--samples N]

Runs with a Python of its own environment (inspect-ai 0.3.285), not ours. Its Docker sandbox wants Docker Engine 24 and
Compose 2.21; where these are not there, the small provider below does what it would: one container a sample, by the
docker command line. No model is called (`mockllm`).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from typing import Any

from inspect_ai import Task, eval  # type: ignore[import-not-found]
from inspect_ai.dataset import Sample  # type: ignore[import-not-found]
from inspect_ai.scorer import Score, scorer  # type: ignore[import-not-found]
from inspect_ai.solver import solver  # type: ignore[import-not-found]
from inspect_ai.util import ExecResult, SandboxEnvironment, sandbox, sandboxenv  # type: ignore[import-not-found]

IMAGE = sys.argv[1]
BEGINNINGS: list[float] = []
"""When each sample began; they come one after the other, so that the distances are whole samples."""


def docker(*arguments: str) -> str:
    return subprocess.run(["docker", *arguments], check=True, capture_output=True, text=True).stdout.strip()


@sandboxenv(name="bare_docker")
class BareDocker(SandboxEnvironment):
    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    async def sample_init(cls, task_name: str, config: Any, metadata: Any) -> dict[str, SandboxEnvironment]:
        BEGINNINGS.append(time.perf_counter())
        name = docker("create", "--network", "none", IMAGE, "sleep", "60")
        docker("start", name)
        return {"default": cls(name)}

    @classmethod
    async def sample_cleanup(cls, task_name: str, config: Any, environments: Any, interrupted: bool) -> None:
        for environment in environments.values():
            docker("rm", "-f", environment.name)

    async def exec(self, cmd: list[str], *_: Any, **__: Any) -> Any:
        docker("exec", self.name, *cmd)
        return ExecResult(True, 0, "", "")

    async def write_file(self, file: str, contents: Any) -> None:
        raise NotImplementedError

    async def read_file(self, file: str, text: bool = True) -> Any:
        raise NotImplementedError


@solver
def nothing() -> Any:
    async def solve(state: Any, generate: Any) -> Any:
        await sandbox().exec(["/bin/sh", "-c", ":"])
        return state

    return solve


@scorer(metrics=[])
def zero() -> Any:
    async def score(state: Any, target: Any) -> Any:
        return Score(value=0)

    return score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("image")
    parser.add_argument("--samples", type=int, default=8)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        task = Task(
            dataset=[Sample(input="x", target="x", id=n) for n in range(2 + arguments.samples)], solver=nothing(),
            scorer=zero(), sandbox="bare_docker",
        )  # fmt: skip
        [log] = eval(task, model="mockllm/model", max_samples=1, log_dir=folder, display="none")
        if log.status != "success":
            raise RuntimeError(log.error)
    taken = [end - begin for begin, end in pairwise(BEGINNINGS)][1:]  # the first one warms up
    print(json.dumps({"per_sample_ms": round(statistics.median(taken) * 1000), "worst_ms": round(max(taken) * 1000)}))


if __name__ == "__main__":
    main()
