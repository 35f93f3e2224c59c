"""Curate in a process that kills itself (SIGKILL) at the n-th progress event; run by the tests as a child process.

Children are forked off a server that has imported everything: importing takes 3 to 5 s, and a test kills 15 of them.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
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


def start(arguments: list[str], environment: dict[str, str], errors: str) -> None:
    """What a child does; its messages and a traceback go to the file `errors`.

    Args:
        arguments: PDF, repository, output, sandbox, number of tasks, and when to die: a number (at that event),
            `container` (as soon as a container of the workspace runs) or `never`.
        environment: variables to set.
        errors: file for messages.
    """
    with Path(errors).open("w", encoding="utf-8") as stream:
        sys.stderr = stream
        os.environ.update(environment)
        try:
            run(*arguments)
        except BaseException:
            traceback.print_exc(file=stream)
            raise
        finally:
            sys.stderr = sys.__stderr__


def run(pdf: str, repository: str, out: str, sandbox: str, max_tasks: str, event: str) -> None:
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
