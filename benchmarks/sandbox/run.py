"""What a run in our sandboxes costs beside a bare `docker run`, measured in turn within one process.

Usage: python -m benchmarks.sandbox.run [--rounds N]

Three ways run the same command (`python -c pass`, no tree to speak of): `docker run --rm` of the same image by the
command line, our Docker sandbox, our process sandbox. They take turns, so that a busy machine is busy for all three.
A second table copies a tree of 2 000 files (20 MB) in and 200 files (20 MB) out. A third says where our time goes
beside a `docker run` with the same limits (memory, processes, no capabilities, read-only root, tmpfs): the environment
that is there already, creating and starting the container, the run itself (tree in, commands under the gate, files
out), removal.
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
from typing import Any

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


SAME_LIMITS = (
    "--memory", "768m", "--memory-swap", "768m", "--pids-limit", "516", "--cap-drop", "ALL", "--read-only", "--init",
    "--security-opt", "no-new-privileges", "--tmpfs", "/work:size=256m,exec", "--tmpfs", "/tmp:size=256m,exec",
)  # fmt: skip


def bare(reference: str, *options: str) -> Callable[[], None]:
    argv = ["docker", "run", "--rm", "--network", "none", *options, reference, "python", "-c", "pass"]

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


def phases(sandbox: Sandbox, folder: Path, tree: Path, rounds: int) -> dict[str, dict[str, float]]:
    """Median milliseconds of each phase of an environment and a run in the Docker sandbox."""
    from pipeline.sandbox import docker as backend

    seconds: dict[str, list[float]] = {}

    def measured(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **options: Any) -> Any:
            begin = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                seconds.setdefault(name, []).append(time.perf_counter() - begin)

        return timed

    class Measured(backend.Attached):
        """A container whose beginning and end are timed."""

    enter, leave = backend.Attached.__enter__, backend.Attached.__exit__
    setattr(Measured, "__enter__", measured("create and start", enter))  # noqa: B010 - a method, not a field
    setattr(Measured, "__exit__", measured("remove", leave))  # noqa: B010
    kept = backend.Attached, backend.drive
    backend.Attached, backend.drive = Measured, measured("tree in, commands, files out", kept[1])  # type: ignore[misc]
    try:
        image = sandbox.build(BuildSpec(), log=folder / "phases.log", owner="benchmark", reporter=SilentReporter())
        look = measured("environment that is there", sandbox.build)
        spec = RunSpec(commands=(Command(argv=("python", "-c", "pass")),), limits=LIMITS)
        whole = measured("whole run", sandbox.run)
        for _ in range(rounds):
            look(BuildSpec(), log=folder / "phases.log", owner="benchmark", reporter=SilentReporter())
            whole(image, tree, spec, out=folder / "phases", owner="benchmark")
    finally:
        backend.Attached, backend.drive = kept  # type: ignore[misc]
    return {
        name: {"median_ms": round(statistics.median(taken[-rounds:]) * 1000), "max_ms": round(max(taken) * 1000)}
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
            "docker run, same limits": bare(reference, *SAME_LIMITS),
            "DockerSandbox.run": sandboxed(docker, folder, folder / "empty", "pass"),
            "ProcessSandbox.run": sandboxed(process, folder, folder / "empty", "pass"),
        }
        large = {
            "DockerSandbox.run": sandboxed(docker, folder, folder / "large", WRITE),
            "ProcessSandbox.run": sandboxed(process, folder, folder / "large", WRITE),
        }
        found = {
            "empty": measure(empty, rounds),
            "20 MB in, 20 MB out": measure(large, rounds),
            "phases": phases(docker, folder, folder / "empty", rounds),
        }
        print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
