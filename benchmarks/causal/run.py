"""How fast the causal family's engines are: one experiment (two cells of 12 replicates), and updates per second.

Beside it, in the same run, the same engine simulating one replicate after another: what vectorising over replicates is
worth. Run: `python -m benchmarks.causal.run [--repeats 5]`
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

from evaluation.families.causal.engines import ENGINES, morph, origin, social, swarm
from evaluation.families.causal.engines.market import _STEPS as MARKET_STEPS

SEEDS = tuple(range(12))
UPDATES = {
    "market": (MARKET_STEPS, "market steps"),
    "swarm": (swarm._STEPS * 64, "agent steps"),
    "origin": (origin._GENERATIONS * origin._CLASSES, "class updates"),
    "morph": (morph._STEPS * morph._SIDE**2, "cell updates"),
    "social": (social._SWEEPS * 200, "agent steps"),
}
"""Per replicate at the control."""


def median(work: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    print("| simulation | one experiment, s | updates per second | one replicate at a time, s | ratio |")
    print("|---|---|---|---|---|")
    for name, engine in ENGINES.items():
        together = median(lambda engine=engine: [engine.run({}, SEEDS) for _ in range(2)], repeats)
        alone = median(lambda engine=engine: [engine.run({}, (s,)) for s in SEEDS for _ in range(2)], repeats)
        count, unit = UPDATES[name]
        rate = 2 * len(SEEDS) * count / together
        print(f"| {name} | {together:.3f} | {rate:.2e} {unit} | {alone:.3f} | {alone / together:.1f} |")


if __name__ == "__main__":
    main()
