"""Learn the locator's weights and its confidence from published tasks and print them as the tables of the source.

    python -m benchmarks.locator.learn --cases CASES.jsonl --repositories DIR

The output replaces the numbers of `pipeline/locator/weights.py` and the coefficients of
`pipeline/locator/confidence.py`.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np

from benchmarks.locator.cases import Benchmark, load
from benchmarks.locator.model import Features, fit_logistic, fit_weights, leave_papers_out
from pipeline.locator.chain import plan_chains
from pipeline.locator.confidence import SHARES, Support, measure
from pipeline.locator.query import QueryWords
from pipeline.locator.ranking import rank
from pipeline.locator.weights import FIXED, Signal

_FOREIGN = 4
"""Other papers' repositories that each task is put to, as tasks that have no answer there."""


def supports(
    benchmark: Benchmark, tables: dict[str, dict[str, Signal]]
) -> tuple[list[tuple[str, Support, bool]], list[tuple[str, Support]]]:
    """Support of the best chain: (paper, support, right?) in its own repository, (paper, support) in foreign ones."""
    own: list[tuple[str, Support, bool]] = []
    foreign: list[tuple[str, Support]] = []
    papers = benchmark.papers
    for number, case in enumerate(benchmark.cases):
        words = QueryWords.of(case.query)
        weights = {**tables[case.paper], **FIXED}
        start = papers.index(case.paper) + 1 + number % 5
        others = [papers[(start + 3 * step) % len(papers)] for step in range(_FOREIGN)]
        for paper in [case.paper, *(other for other in others if other != case.paper)]:
            ranking = rank(benchmark.indexes[paper], words, weights=weights)
            plans = plan_chains(ranking, 1)
            if not plans:
                continue
            support = measure(ranking, case.query, plans[0].members)
            if paper == case.paper:
                own.append((paper, support, bool(set(plans[0].members) & case.sources)))
            else:
                foreign.append((case.paper, support))
    return own, foreign


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, required=True)
    parser.add_argument("--repositories", type=Path, required=True)
    arguments = parser.parse_args()
    benchmark = load(arguments.cases, arguments.repositories)
    features = Features.of(benchmark)
    for name, signal in fit_weights(features, range(len(benchmark.cases))).items():
        print(f'"{name}": {signal.first:.2f}, {signal.weight:.2f}')
    tables, _ = leave_papers_out(features)
    own, foreign = supports(benchmark, tables)
    count = Counter(paper for paper, _, _ in own)
    right = np.array([[getattr(support, name) for name in SHARES] for _, support, _ in own])
    beta, _ = fit_logistic(
        right, np.array([float(good) for *_, good in own]), np.array([1 / count[p] for p, *_ in own])
    )
    print("COEFFICIENTS", dict(zip([*SHARES, "bias"], np.round(beta, 2).tolist(), strict=True)))
    both = np.concatenate([right, np.array([[getattr(support, name) for name in SHARES] for _, support in foreign])])
    labels = np.array([1.0] * len(own) + [0.0] * len(foreign))
    share = np.array([1 / len(own)] * len(own) + [1 / len(foreign)] * len(foreign))
    beta, _ = fit_logistic(both, labels, share)
    print("BELONGING", dict(zip([*SHARES, "bias"], np.round(beta, 2).tolist(), strict=True)))


if __name__ == "__main__":
    main()
