"""Runs a sweep and kills its own process (SIGKILL) at the N-th renaming or opening for writing: `TASKS RUN N`."""

import os
import signal
import sys
from pathlib import Path

from evaluation.families.causal.solvers import solve
from evaluation.families.causal.store import load_tasks
from evaluation.families.causal.sweep import sweep
from pipeline.progress import SilentReporter

tasks, run, left = Path(sys.argv[1]), Path(sys.argv[2]), [int(sys.argv[3])]


def die(event: str, arguments: tuple[object, ...]) -> None:
    """An audit hook sees every file operation of the interpreter, before it happens."""
    if event in {"os.rename", "os.link"} or (event == "open" and str(run) in str(arguments[0])):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)


loaded, _ = load_tasks(tasks)
sys.addaudithook(die)
sweep(
    loaded, lambda task, repeat: solve(task, "ofat", repeat), run, solver="ofat", repeats=2, reporter=SilentReporter()
)
