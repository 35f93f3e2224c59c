"""Measure the locator on published tasks: ranking, chain, `not_found`, confidence, speed.

    python -m benchmarks.locator.run --cases CASES.jsonl --repositories DIR [--published DIR] [--parts]

Nothing is learnt, so no paper has to be left out: the signals are few and weigh the same everywhere. What the cases
have seen is the choice of these signals; figures from cases that others wrote count more. `--parts` takes one away at
a time and gives the difference with a bootstrap over papers.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import comb
from pathlib import Path

import numpy as np

from benchmarks.locator.cases import METRICS, Benchmark, Case, load, score, table
from pipeline.locator.chain import plan_chains
from pipeline.locator.confidence import NOT_FOUND_BELOW, Support, measure
from pipeline.locator.query import QueryWords
from pipeline.locator.ranking import SIGNALS, rank

_FOREIGN = 4
"""Other papers' repositories that each task is put to, as tasks that have no answer there."""


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
    scores = index.content.scores(QueryWords.of(case.query).weights)
    return [index.facts[i].path for i in sorted(range(index.size), key=lambda i: (-scores[i], index.facts[i].path))]


def located(benchmark: Benchmark, without: str = "") -> list[dict[str, float]]:
    """The metrics of every case."""
    rows = []
    for case in benchmark.cases:
        ranking = rank(benchmark.indexes[case.paper], QueryWords.of(case.query), without=without)
        rows.append(score([ranking.index.facts[place].path for place in ranking.order], case.sources))
    return rows


def chain_figures(benchmark: Benchmark) -> dict[str, float]:
    """Precision, recall and F1 of the decided chain's files, macro over papers."""
    rows = []
    for case in benchmark.cases:
        plans = plan_chains(rank(benchmark.indexes[case.paper], QueryWords.of(case.query)), 1)
        members = set(plans[0].members) if plans else set()
        common = len(members & case.sources)
        rows.append(
            {
                "precision": common / len(members) if members else 0.0,
                "recall": common / len(case.sources),
                "f1": 2 * common / (len(members) + len(case.sources)),
                "holds a right file": float(common > 0),
            }
        )
    return benchmark.macro(rows)


def supports(benchmark: Benchmark) -> list[tuple[str, Support, bool]]:
    """(kind, support, is the chain right) of every task in its own repository and in those of other papers."""
    found: list[tuple[str, Support, bool]] = []
    papers = benchmark.papers
    tasks = [("own", case) for case in benchmark.cases] + [("unanswered", case) for case in benchmark.unanswered]
    for number, (kind, case) in enumerate(tasks):
        plans = plan_chains(rank(benchmark.indexes[case.paper], QueryWords.of(case.query)), 1)
        right = bool(plans) and bool(set(plans[0].members) & case.sources)
        found.append((kind, measure(benchmark.indexes[case.paper], case.query), right))
        start = papers.index(case.paper) + 1 + number % 5
        others = [papers[(start + 3 * step) % len(papers)] for step in range(_FOREIGN)] if kind == "own" else []
        found += [("foreign", measure(benchmark.indexes[paper], case.query), False) for paper in others
                  if paper != case.paper]  # fmt: skip
    return found


def decision_figures(found: Sequence[tuple[str, Support, bool]]) -> str:
    """`not_found` by kind of task, and how far the confidence means what it says."""
    lines = [f"not_found below {NOT_FOUND_BELOW} of the names:"]
    for kind in ("own", "unanswered", "foreign"):
        shares = [support.held for name, support, _ in found if name == kind]
        lines.append(f"  {kind}: {sum(share < NOT_FOUND_BELOW for share in shares)}/{len(shares)}")
    home = sorted((support.chance, right) for kind, support, right in found if kind != "foreign")
    lines.append("the chain holds a right file: predicted -> observed")
    for part in np.array_split(np.arange(len(home)), 5):
        predicted, observed = (float(np.mean([home[i][column] for i in part])) for column in (0, 1))
        lines.append(f"  {predicted:.2f} -> {observed:.2f} (n={len(part)})")
    lines.append(f"  Brier score {np.mean([(chance - right) ** 2 for chance, right in home]):.3f}")
    return "\n".join(lines)


def interval(
    benchmark: Benchmark, rows: Sequence[dict[str, float]], base: Sequence[dict[str, float]] | None = None,
    draws: int = 2000,
) -> str:  # fmt: skip
    """5 % and 95 % of each metric's mean (or its difference from `base`) over papers drawn with replacement."""
    grouped: dict[str, list[list[float]]] = defaultdict(list)
    for place, (case, row) in enumerate(zip(benchmark.cases, rows, strict=True)):
        grouped[case.paper].append([row[name] - (base[place][name] if base else 0.0) for name in METRICS])
    means = np.array([np.mean(grouped[paper], axis=0) for paper in sorted(grouped)])
    drawn = np.random.default_rng(0).integers(0, len(means), (draws, len(means)))
    low, high = np.quantile(means[drawn].mean(axis=1), [0.05, 0.95], axis=0)
    return ", ".join(f"{name} {a:+.3f} to {b:+.3f}" for name, a, b in zip(METRICS, low, high, strict=True))


def main() -> None:
    """Print all figures, each as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, required=True)
    parser.add_argument("--repositories", type=Path, required=True)
    parser.add_argument("--published", type=Path, help="published task files, for the tasks without an answer")
    parser.add_argument("--parts", action="store_true", help="take one signal away at a time")
    arguments = parser.parse_args()
    benchmark = load(arguments.cases, arguments.repositories, arguments.published)
    cases = benchmark.cases
    print(f"{len(cases)} tasks of {len(benchmark.papers)} papers; paper-macro\n\n{table([], METRICS)}", flush=True)
    sizes = [benchmark.indexes[case.paper].size for case in cases]
    _row("random", benchmark.macro([random_expectation(n, len(c.sources)) for n, c in zip(sizes, cases, strict=True)]))
    _row("BM25", benchmark.macro([score(lexical(benchmark, case), case.sources) for case in cases]))
    started = time.process_time()
    found = located(benchmark)
    seconds = (time.process_time() - started) / len(cases)
    _row("**locator**", benchmark.macro(found))
    bare = load(arguments.cases, arguments.repositories, readme=False)
    _row("without the root README", bare.macro(located(bare)))
    largest = max(benchmark.papers, key=lambda paper: benchmark.indexes[paper].size)
    print(
        f"\n5 % and 95 % of a bootstrap over papers: {interval(benchmark, found)}\n"
        f"processor time: {seconds:.3f} s to rank a task; index of the largest repository "
        f"({benchmark.indexes[largest].size} files) {benchmark.seconds[largest]:.1f} s\n"
        f"chain: { {name: round(value, 3) for name, value in chain_figures(benchmark).items()} }\n"
        f"{decision_figures(supports(benchmark))}",
        flush=True,
    )
    for name in SIGNALS if arguments.parts else ():
        rows = located(benchmark, name)
        _row(f"without {name}", benchmark.macro(rows))
        print(f"  difference: {interval(benchmark, rows, found)}", flush=True)


def _row(title: str, values: Mapping[str, float]) -> None:
    print(table([(title, values)], METRICS, head=False), flush=True)


if __name__ == "__main__":
    main()
