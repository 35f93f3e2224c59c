"""What a run in our sandboxes costs beside a bare `docker run`, measured in turn within one process.

Usage: python -m benchmarks.sandbox.run [--rounds N]

Three ways run the same command (`python -c pass`, no tree to speak of): `docker run --rm` of the same image by the
command line, our Docker sandbox, our process sandbox. They take turns, so that a busy machine is busy for all three.
A second table copies a tree of 2 000 files (20 MB) in and 200 files (20 MB) out.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pipeline.progress import SilentReporter
from pipeline.sandbox import BuildSpec, Command, Limits, RunSpec, Sandbox, open_sandbox

LIMITS = Limits(memory_mb=512, disk_mb=256)
WRITE = "for i in range(200): open(f'out{i}', 'wb').write(bytes([i]) * 100_000)"


def sandboxed(sandbox: Sandbox, folder: Path, tree: Path, code: str) -> Callable[[], None]:
    log = folder / f"{sandbox.name}.log"
    image = sandbox.build(BuildSpec(), log=log, owner="benchmark", reporter=SilentReporter())
    spec = RunSpec(commands=(Command(argv=("python", "-c", code)),), limits=LIMITS)

    def once() -> None:
        result = sandbox.run(image, tree, spec, out=folder / sandbox.name, owner="benchmark")
        if result.failure is not None:
            raise RuntimeError(result.message)

    return once


def bare(reference: str) -> Callable[[], None]:
    argv = ["docker", "run", "--rm", "--network", "none", reference, "python", "-c", "pass"]

    def once() -> None:
        subprocess.run(argv, check=True, capture_output=True)

    return once


def measure(ways: dict[str, Callable[[], None]], rounds: int) -> dict[str, dict[str, float]]:
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for round_ in range(rounds + 1):
        for name, way in ways.items():
            begin = time.perf_counter()
            way()
            if round_:  # the first one warms up caches
                seconds[name].append(time.perf_counter() - begin)
    return {
        name: {"median_ms": round(statistics.median(taken) * 1000), "max_ms": round(max(taken) * 1000)}
        for name, taken in seconds.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "empty").mkdir()
        (folder / "large").mkdir()
        for index in range(2000):
            (folder / "large" / f"file{index}").write_bytes(index.to_bytes(4, "big") * 2500)
        docker, process = open_sandbox("docker"), open_sandbox("process")
        log = folder / "image.log"
        reference = docker.build(BuildSpec(), log=log, owner="benchmark", reporter=SilentReporter()).reference
        empty = {
            "docker run": bare(reference),
            "DockerSandbox.run": sandboxed(docker, folder, folder / "empty", "pass"),
            "ProcessSandbox.run": sandboxed(process, folder, folder / "empty", "pass"),
        }
        large = {
            "DockerSandbox.run": sandboxed(docker, folder, folder / "large", WRITE),
            "ProcessSandbox.run": sandboxed(process, folder, folder / "large", WRITE),
        }
        print(json.dumps({"empty": measure(empty, rounds), "20 MB in, 20 MB out": measure(large, rounds)}, indent=2))


if __name__ == "__main__":
    main()
