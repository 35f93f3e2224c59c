"""A repository with a second script for the same table, through the whole command (found on outside input)."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.task import Status
from tests.flows.test_hostile_repository import Case

pytestmark = pytest.mark.docker

SECOND = '''"""Verify the comparison of all methods: test accuracy on every problem under symmetric and asymmetric label noise."""
import csv
import pathlib
import sys

ROOT = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from caw import config, evaluation

MODES = {"symmetric": 0.3, "asymmetric": 0.4}


def accuracies(mode):
    options = config.load(None)
    for where in ("moons", "rings", "spirals", "xor"):
        yield where, evaluation.run(["plain", "huber", "trim", "enn", "caw", "clean"], where, mode, MODES[mode], options)


if __name__ == "__main__":
    out = csv.writer(open(ROOT / "verified.csv", "w"))
    out.writerow("noise problem method test_accuracy".split())
    for mode in MODES:
        for where, table in accuracies(mode):
            for method in table:
                out.writerow([mode, where, method, round(float(table[method].mean()), 3)])
                print("noise", mode, "problem", where, "method", method, "test accuracy", table[method].mean())
'''


def test_what_recomputes_the_claims_is_masked_too(tmp_path: Path) -> None:
    case = Case(tmp_path)
    (case.repository / "experiments" / "verify_benchmark.py").write_text(SECOND)
    case.commit()
    case.equivalents = 6
    case.rounds = 2  # the first chain is a sibling's, refuted by its run
    case.curate()
    task = case.workspace.tasks()[0]
    assert task.status is Status.MASKED, task.status_reason
    names = {source.path for source in task.truth.sources} | {source.path for source in task.truth.equivalents}
    assert {"experiments/run_benchmark.py", "experiments/verify_benchmark.py"} <= names
    assert task.truth.equivalents
    masked = case.workspace.masked_repository(task.id)
    assert not (masked / "experiments" / "run_benchmark.py").exists()
    assert not (masked / "experiments" / "verify_benchmark.py").exists()
    assert (masked / "experiments" / "run_noise_sweep.py").exists()
