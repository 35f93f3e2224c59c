"""kill -9 at random points of runs of 12 episodes with 4 workers, a resume after each: same scores, nothing left?

Usage: python -m benchmarks.harness.kill [--kills 20] [--seed 20261122]

Needs Docker. Points are audit events of the interpreter (files opened, renamed, removed, processes, connections), which
happen in every step and every thread. Exit code 1 when anything is lost, doubled, different or left behind.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.evaluation.harness.killing import kill_again_and_again


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="how many processes are killed (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=20261122, help="of the points (default: %(default)s)")
    options = parser.parse_args()
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="expbench-kill-") as name:
        found = kill_again_and_again(Path(name), options.kills, options.seed)
    print("| | |\n|---|---|")
    print(f"| seed | {options.seed} |")
    print(f"| killed at audit event (of {found.events}) | {', '.join(map(str, found.points))} |")
    print(f"| runs; episodes compared with an undisturbed run | {found.runs}; {found.episodes} |")
    print(f"| lost, doubled, different, left behind | {len(found.wrong)} |")
    print(f"| wall time | {time.perf_counter() - begin:.0f} s |")
    for problem in found.wrong:
        print(problem)
    sys.exit(1 if found.wrong else 0)


if __name__ == "__main__":
    main()
