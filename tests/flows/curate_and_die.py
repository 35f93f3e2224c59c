"""Curate in a process that kills itself (SIGKILL) at the n-th progress event; run by the tests as a child process.

usage: curate_and_die.py PDF REPOSITORY OUT SANDBOX MAX_TASKS EVENT
EVENT: a number (die at that event), `container` (die as soon as a container of the workspace runs) or `never`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

from flows.curate import CurateOptions, curate
from pipeline.store import Workspace


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DyingReporter:
    """Counts progress events and dies at the one it was told."""

    def __init__(self, event: int | None) -> None:
        self.left = event

    def _event(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left <= 0:
                die()

    def start(self, stage: str, total: int | None = None) -> None:
        self._event()

    def step(self, stage: str, message: str) -> None:
        self._event()

    def note(self, stage: str, message: str) -> None:
        self._event()

    def end(self, stage: str, message: str = "") -> None:
        self._event()

    def warn(self, message: str) -> None:
        self._event()


def die_with_a_running_container(owner: str) -> None:
    import docker

    client = docker.from_env()
    for event in client.events(decode=True, filters={"type": "container", "event": "start"}):
        if event["Actor"]["Attributes"].get("expbench.owner") == owner:
            die()


def main() -> None:
    pdf, repository, out, sandbox, max_tasks, event = sys.argv[1:]
    if event == "container":
        owner = Workspace(Path(out)).owner
        threading.Thread(target=die_with_a_running_container, args=(owner,), daemon=True).start()
    options = CurateOptions(
        pdf=Path(pdf),
        repository=repository,
        out=Path(out),
        sandbox=sandbox,
        max_tasks=int(max_tasks),
        repeats=2,
        resume=True,
    )
    curate(options, DyingReporter(int(event) if event.isdigit() else None))


if __name__ == "__main__":
    main()
