"""How fast the causal family's engines are: one experiment (two cells of 12 replicates), and updates per second.

Beside it, in the same run, the model as one would write it down in NumPy, replicate after replicate (`plain.py`), and
the mean of the target in both, which must agree. Processor time of one core, so that other work on the machine does
not count. Run: `OMP_NUM_THREADS=1 python -m benchmarks.causal.run [--repeats 5] [--json]`
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import numpy as np

from benchmarks.causal.plain import PLAIN
from evaluation.families.causal.engines import ENGINES, morph, origin, social, swarm
from evaluation.families.causal.engines.market import _STEPS as MARKET_STEPS

SEEDS = tuple(range(12))
UPDATES = {
    "market": (MARKET_STEPS, "market steps"),
    "swarm": (swarm._STEPS * 40, "agent steps"),
    "origin": (origin._GENERATIONS * origin._CLASSES, "class updates"),
    "morph": (morph._STEPS * morph._SIDE**2, "cell updates"),
    "social": (social._SWEEPS * 100, "agent steps"),
}
"""Per replicate at the control."""


def median(work: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times)


def measure(name: str, repeats: int) -> dict[str, object]:
    engine, plain = ENGINES[name], PLAIN[name]
    control = engine.control
    together = median(lambda: [engine.run({}, SEEDS) for _ in range(2)], repeats)
    alone = median(lambda: [plain(control, seed) for seed in SEEDS for _ in range(2)], max(1, repeats // 2))
    ours = engine.run({}, tuple(range(100, 124)))[engine.target]
    theirs = np.array([plain(control, seed) for seed in range(24)])
    error = float(np.hypot(ours.std() / 24**0.5, theirs.std() / 24**0.5)) or 1e-9
    count, unit = UPDATES[name]
    updates = 2 * len(SEEDS) * count
    return {
        "simulation": name, "experiment_s": round(together, 3), "unit": unit, "per_second": round(updates / together),
        "plain_experiment_s": round(alone, 3), "plain_per_second": round(updates / alone),
        "ratio": round(alone / together, 1), "target": round(float(ours.mean()), 4),
        "plain_target": round(float(theirs.mean()), 4),
        "apart_in_errors": round(abs(ours.mean() - theirs.mean()) / error, 1),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [measure(name, options.repeats) for name in ENGINES]
    if options.json:
        print(json.dumps(rows))
        return
    print(
        "| simulation | one experiment, s | updates per second | plain NumPy, s | updates per second | ratio | target |"
    )
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        print(
            f"| {row['simulation']} | {row['experiment_s']} | {row['per_second']:.2e} {row['unit']} | "
            f"{row['plain_experiment_s']} | {row['plain_per_second']:.2e} | {row['ratio']} | "
            f"{row['target']} and {row['plain_target']} ({row['apart_in_errors']} errors apart) |"
        )


if __name__ == "__main__":
    main()
