"""`bin/run-analysis`: run a program of the analysis, show what it prints, and keep it.

Runs in the agent's container with its Python (3.9 or later, standard library only).
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

LOG = Path("logs") / "run-analysis.log"
DEFAULT = "analysis/analysis.py"


def main(arguments: list[str]) -> int:
    """Run it; its exit code."""
    program = arguments or [DEFAULT]
    if not Path(program[0]).is_file():
        sys.stderr.write(f"run-analysis: there is no file {program[0]}\n")
        return 2
    LOG.parent.mkdir(exist_ok=True)
    with LOG.open("a", encoding="utf-8") as log:
        log.write(f"$ python3 {' '.join(map(shlex.quote, program))}\n")
        log.flush()
        command = [sys.executable, "-u", *program]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
            assert running.stdout is not None
            for line in running.stdout:
                sys.stdout.write(line)
                log.write(line)
        log.write(f"[exit code {running.returncode}]\n")
    return running.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
