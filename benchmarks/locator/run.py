"""Measure the locator on published tasks: ranking, ablations, chain, `not_found`, calibration, speed.

    python -m benchmarks.locator.run --cases CASES.jsonl --repositories DIR [--no-ablations]

Figures called "out of fold" use weights that were learnt without the paper at hand; "shipped" uses the weights of
`pipeline/locator/weights.py`, which have seen the cases when these are the ones that they were learnt from.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter
from math import comb
from pathlib import Path

import numpy as np

from benchmarks.locator.cases import Benchmark, Case, load, score, table
from benchmarks.locator.learn import supports
from benchmarks.locator.model import Features, fit_logistic, leave_papers_out, ranked
from pipeline.locator import locate
from pipeline.locator.chain import plan_chains
from pipeline.locator.confidence import NOT_FOUND_BELOW, SHARES
from pipeline.locator.query import QueryWords
from pipeline.locator.ranking import rank
from pipeline.locator.weights import FIXED, SIGNALS, Signal
from pipeline.tracing import trace


def random_expectation(size: int, truth: int) -> dict[str, float]:
    """The expected metrics of a random order of `size` files of which `truth` are true."""
    ten = min(10, size)
    return {
        "hit@1": truth / size,
        "recall@5": min(5, size) / size,
        "recall@10": ten / size,
        "mrr": sum(comb(size - r, truth - 1) / comb(size, truth) / r for r in range(1, size - truth + 2)),
        "full_set@10": comb(size - truth, ten - truth) / comb(size, ten) if ten >= truth else 0.0,
    }


def lexical(benchmark: Benchmark, case: Case) -> list[str]:
    """BM25 over content and path alone."""
    index = benchmark.indexes[case.paper]
    scores = index.content.scores(QueryWords.of(case.query).all)
    return [index.facts[i].path for i in sorted(range(index.size), key=lambda i: (-scores[i], index.facts[i].path))]


def chain_figures(benchmark: Benchmark, tables: dict[str, dict[str, Signal]]) -> dict[str, float]:
    """Precision, recall and F1 of the decided chain's files, macro over papers, out of fold."""
    rows = []
    for case in benchmark.cases:
        words = QueryWords.of(case.query)
        ranking = rank(benchmark.indexes[case.paper], words, weights={**tables[case.paper], **FIXED})
        plans = plan_chains(ranking, 1)
        members = set(plans[0].members) if plans else set()
        common = len(members & case.sources)
        rows.append(
            {
                "precision": common / len(members) if members else 0.0,
                "recall": common / len(case.sources),
                "f1": 2 * common / (len(members) + len(case.sources)),
                "size": float(len(members)),
            }
        )
    return benchmark.macro(rows)


def line_figures(benchmark: Benchmark) -> dict[str, float]:
    """Lines of the published requirements that the requirements of the decided chain cover, macro over papers."""
    rows, kept = [], []
    for case in benchmark.cases:
        truth = {(path, line) for path, start, end in case.requirements for line in range(start, end + 1)}
        if not truth:
            continue
        index = benchmark.indexes[case.paper]
        found = locate(index, case.query)
        chain = found.chain
        lines: set[tuple[str, int]] = set()
        if chain is not None:
            traced = trace(index.snapshot, chain.sources, chain.usage)
            spans = [span for step in traced.requirements for span in step.spans]
            lines = {(span.path, line) for span in spans for line in range(span.start, span.end + 1)}
        common = len(lines & truth)
        rows.append({"recall": common / len(truth), "precision": common / len(lines) if lines else 0.0})
        kept.append(case)
    return Benchmark(kept, benchmark.indexes).macro(rows)


def decision_figures(benchmark: Benchmark, tables: dict[str, dict[str, Signal]]) -> str:
    """`not_found` on own and foreign repositories, and reliability, with coefficients learnt without each paper."""
    own, foreign = supports(benchmark, tables)
    papers = benchmark.papers
    kept = found = 0
    chances: list[tuple[float, bool]] = []
    share_own = Counter(paper for paper, *_ in own)

    def matrix(rows: list) -> np.ndarray:  # type: ignore[type-arg]
        return np.array([[getattr(row[1], name) for name in SHARES] for row in rows])

    for paper in papers:
        train = [row for row in own if row[0] != paper]
        other = [row for row in foreign if row[0] != paper]
        labels = np.array([1.0] * len(train) + [0.0] * len(other))
        share = np.array([1 / len(train)] * len(train) + [1 / len(other)] * len(other))
        _, belongs = fit_logistic(np.concatenate([matrix(train), matrix(other)]), labels, share)
        _, right = fit_logistic(
            matrix(train),
            np.array([float(row[2]) for row in train]),
            np.array([1 / share_own[row[0]] for row in train]),
        )
        test = [row for row in own if row[0] == paper]
        strange = [row for row in foreign if row[0] == paper]
        chance = belongs(matrix(test))
        kept += int((chance >= NOT_FOUND_BELOW).sum())
        found += int((belongs(matrix(strange)) < NOT_FOUND_BELOW).sum()) if strange else 0
        chances += list(zip((chance * right(matrix(test))).tolist(), [row[2] for row in test], strict=True))
    lines = [
        f"own repository kept: {kept}/{len(own)}; foreign repository gives not_found: {found}/{len(foreign)}",
        "reliability (chain holds a right file): predicted -> observed",
    ]
    chances.sort()
    for part in np.array_split(np.arange(len(chances)), 5):
        predicted = statistics.fmean(chances[i][0] for i in part)
        observed = statistics.fmean(float(chances[i][1]) for i in part)
        lines.append(f"  {predicted:.2f} -> {observed:.2f} (n={len(part)})")
    brier = statistics.fmean((chance - good) ** 2 for chance, good in chances)
    lines.append(f"  Brier score {brier:.3f}")
    return "\n".join(lines)


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, required=True)
    parser.add_argument("--repositories", type=Path, required=True)
    parser.add_argument("--no-ablations", action="store_true")
    arguments = parser.parse_args()
    benchmark = load(arguments.cases, arguments.repositories)
    cases = benchmark.cases
    features = Features.of(benchmark)

    def macro(scores: list) -> dict[str, float]:  # type: ignore[type-arg]
        return benchmark.macro([score(ranked(features, i, scores[i]), case.sources) for i, case in enumerate(cases)])

    sizes = [benchmark.indexes[case.paper].size for case in cases]
    random = [random_expectation(size, len(case.sources)) for size, case in zip(sizes, cases, strict=True)]
    rows = [("random", benchmark.macro(random))]
    rows.append(("BM25", benchmark.macro([score(lexical(benchmark, case), case.sources) for case in cases])))
    tables, scores = leave_papers_out(features)
    rows.append(("**all signals, out of fold**", macro(scores)))
    start = time.perf_counter()
    shipped = [rank(benchmark.indexes[case.paper], QueryWords.of(case.query)) for case in cases]
    seconds = (time.perf_counter() - start) / len(cases)
    paths = [[ranking.index.facts[place].path for place in ranking.order] for ranking in shipped]
    rows.append(
        ("all signals, shipped", benchmark.macro([score(p, c.sources) for p, c in zip(paths, cases, strict=True)]))
    )
    bare = Features.of(benchmark, documents=False)
    rows.append(("without README and documentation, out of fold", macro(leave_papers_out(bare)[1])))
    if not arguments.no_ablations:
        rows += [(f"- {name}", macro(leave_papers_out(features, {name})[1])) for name in SIGNALS]
    print(f"{len(cases)} tasks of {len(benchmark.papers)} papers; paper-macro\n")
    print(table(rows))
    print("\nchain, out of fold:", {name: round(value, 3) for name, value in chain_figures(benchmark, tables).items()})
    print("requirement lines, shipped:", {name: round(value, 3) for name, value in line_figures(benchmark).items()})
    print(decision_figures(benchmark, tables))
    largest = max(benchmark.papers, key=lambda paper: benchmark.indexes[paper].size)
    print(
        f"speed: {seconds:.3f} s a task; index of the largest repository ({benchmark.indexes[largest].size} files) "
        f"{benchmark.seconds[largest]:.1f} s"
    )


if __name__ == "__main__":
    main()
