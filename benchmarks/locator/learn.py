"""Learn the locator's weights and its confidence from published tasks and print them as the tables of the source.

    python -m benchmarks.locator.learn --cases CASES.jsonl --repositories DIR [--published DIR]

The output replaces the numbers of `pipeline/locator/weights.py` and the coefficients of
`pipeline/locator/confidence.py`.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.locator.cases import Benchmark, load
from benchmarks.locator.model import Features, Matrix, fit_logistic, fit_weights, leave_papers_out
from pipeline.locator.chain import plan_chains
from pipeline.locator.confidence import BELONGING_SHARES, SHARES, Support, measure
from pipeline.locator.query import QueryWords
from pipeline.locator.ranking import rank
from pipeline.locator.weights import FIXED, Signal

_FOREIGN = 4
"""Other papers' repositories that each task is put to, as tasks that have no answer there."""


@dataclass(frozen=True)
class Supported:
    """The best chain for a task somewhere, and whether it is right."""

    paper: str
    """The paper of the task."""
    kind: str
    """`own`: a task with a known script, in its repository; `unanswered`: one without; `foreign`: in another one."""
    support: Support
    right: bool


def supports(benchmark: Benchmark, tables: dict[str, dict[str, Signal]]) -> list[Supported]:
    """The best chain of every task in its own repository and in those of other papers."""
    found: list[Supported] = []
    papers = benchmark.papers
    tasks = [("own", case) for case in benchmark.cases] + [("unanswered", case) for case in benchmark.unanswered]
    for number, (kind, case) in enumerate(tasks):
        words = QueryWords.of(case.query)
        weights = {**tables[case.paper], **FIXED}
        start = papers.index(case.paper) + 1 + number % 5
        others = [papers[(start + 3 * step) % len(papers)] for step in range(_FOREIGN)] if kind == "own" else []
        for paper in [case.paper, *(other for other in others if other != case.paper)]:
            ranking = rank(benchmark.indexes[paper], words, weights=weights)
            plans = plan_chains(ranking, 1)
            if not plans:
                continue
            support = measure(ranking, case.query, plans[0].members)
            right = paper == case.paper and bool(set(plans[0].members) & case.sources)
            found.append(Supported(case.paper, kind if paper == case.paper else "foreign", support, right))
    return found


def matrix(rows: Sequence[Supported], shares: Sequence[str]) -> Matrix:
    """The shares of each row."""
    return np.array([[getattr(row.support, name) for name in shares] for row in rows])


def fit_decision(rows: Sequence[Supported]) -> tuple[Matrix, Matrix]:
    """Coefficients of (right, belonging).

    Right: the chain holds a true file, over the tasks in their own repository, those without an answer included, every
    paper counting the same. Belonging: tasks with a script in their own against foreign repositories, both counting
    the same.
    """
    home = [row for row in rows if row.kind != "foreign"]
    count = Counter(row.paper for row in home)
    labels = np.array([float(row.right) for row in home])
    right, _ = fit_logistic(matrix(home, SHARES), labels, np.array([1 / count[row.paper] for row in home]))
    rows = [row for row in rows if row.kind != "unanswered"]  # with them, neither kind is told apart better
    own = np.array([float(row.kind == "own") for row in rows])
    share = np.where(own > 0, 1 / max(own.sum(), 1), 1 / max((1 - own).sum(), 1))
    belonging, _ = fit_logistic(matrix(rows, BELONGING_SHARES), own, share)
    return right, belonging


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, required=True)
    parser.add_argument("--repositories", type=Path, required=True)
    parser.add_argument("--published", type=Path, help="published task files, for the tasks without an answer")
    arguments = parser.parse_args()
    benchmark = load(arguments.cases, arguments.repositories, arguments.published)
    features = Features.of(benchmark)
    for name, signal in fit_weights(features, range(len(benchmark.cases))).items():
        print(f'"{name}": {signal.first:.2f}, {signal.weight:.2f}')
    tables, _ = leave_papers_out(features)
    right, belonging = fit_decision(supports(benchmark, tables))
    print("COEFFICIENTS", dict(zip([*SHARES, "bias"], np.round(right, 2).tolist(), strict=True)))
    print("BELONGING", dict(zip([*BELONGING_SHARES, "bias"], np.round(belonging, 2).tolist(), strict=True)))


if __name__ == "__main__":
    main()
