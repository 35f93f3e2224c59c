"""A bench service in a directory with a short path, and the workspace's own client in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

from evaluation.families.causal.bench import Bench, EpisodeLog
from evaluation.families.causal.service import SOCKET, BenchDesk, BenchService
from evaluation.families.causal.task import CausalTask

CLIENT = Path(str(resources.files("evaluation.families.causal.workspace_files").joinpath("bench.py")))


class Served:
    """A running service."""

    def __init__(self, folder: Path, told: list[tuple[str, Any, Any]]) -> None:
        self.folder, self.told = folder, told

    @property
    def log(self) -> EpisodeLog:
        """The log as it lies on disk."""
        return EpisodeLog.model_validate_json((self.folder / "bench.json").read_bytes())

    def run(self, *words: str) -> tuple[int, dict[str, Any]]:
        """The client as a command: exit code and answer."""
        environment = os.environ | {"BENCH_SOCKET": str(self.folder / SOCKET)}
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-B", CLIENT, *words],
            check=False,
            capture_output=True,
            text=True,
            env=environment,
        )
        assert done.stderr == ""
        return done.returncode, json.loads(done.stdout)


@contextmanager
def served(task: CausalTask) -> Iterator[Served]:
    """The bench of a task on a unix socket."""
    told: list[tuple[str, Any, Any]] = []
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        desk = BenchDesk(Bench(task), folder / "bench.json", lambda *call: told.append(call))
        with BenchService(desk, folder):
            yield Served(folder, told)
