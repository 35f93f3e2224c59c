"""A run of 12 episodes with 4 workers in a process that kills itself (SIGKILL) at a random point; run by the tests.

usage: evaluate_and_die.py ROOT TASKS SERVER_URL POINT

POINT: die at that many audit events of the interpreter (files opened, renamed, removed, processes, connections: they
happen in every step and every thread), or `never`. Prints how many there were.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

from evaluation.agents.registry import get_agent
from evaluation.harness.run import RunRecord, begin_run, open_run, run_episodes, task_digest
from pipeline.progress import SilentReporter
from tests.evaluation.harness.support import ASKING, HONEST, SMALL, tiny_runner, tiny_tasks

WORKERS, TASKS, REPEATS = 4, 4, 3
COUNTED = frozenset({"open", "os.rename", "os.remove", "os.mkdir", "subprocess.Popen", "socket.connect"})


class Countdown:
    """Counts audit events; kills this process at the one it was told."""

    def __init__(self, point: int | None) -> None:
        self.count = 0
        self.point = point
        self.guard = threading.Lock()

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if event in COUNTED and not str(arguments[0]).endswith((".py", ".pyc", ".so")):  # imports come once a process
            with self.guard:
                self.count += 1
                if self.count == self.point:
                    os.kill(os.getpid(), signal.SIGKILL)


def main(root: Path, directory: Path, server_url: str, point: int | None) -> None:
    directory = directory / str(os.getpid())  # made anew by each process, with the same content
    tasks = tiny_tasks(directory, TASKS)
    script = directory / "agent.sh"
    # half of the tasks do the work, the others hand in nothing: scores differ
    script.write_text(
        f"if [ $(cat lib.py | tr -dc 0-9) -lt 2 ]; then\n{ASKING}\nelse\n{ASKING.split('cat >')[0]}\nfi\n"
    )
    assert HONEST in ASKING
    agent = get_agent("command", {"script": str(script), "model": "true"})
    runner, sandbox = tiny_runner(root, agent, server_url=server_url)
    record = RunRecord(
        run="run", source="tiny", agent=agent.name, repeats=REPEATS, limits=SMALL,
        tasks={task.id: task_digest(task) for task in tasks},
    )  # fmt: skip
    countdown = Countdown(point)
    sys.addaudithook(countdown)
    with open_run(root, resume=True):
        begin_run(root, record)
        run_episodes(runner, tasks, repeats=REPEATS, workers=WORKERS, sandbox=sandbox, reporter=SilentReporter())
    countdown.point = None
    sys.stdout.write(f"{countdown.count}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], None if sys.argv[4] == "never" else int(sys.argv[4]))
