"""Measure the locator on published tasks: ranking, ablations, chain, `not_found`, calibration, speed.

    python -m benchmarks.locator.run --cases CASES.jsonl --repositories DIR [--no-ablations] [--published DIR]
        [--diagram FILE.svg]

Figures called "out of fold" use weights that were learnt without the paper at hand; "shipped" uses the weights of
`pipeline/locator/weights.py`, which have seen the cases when these are the ones that they were learnt from. An ablation
learns anew without one column; nothing is indexed again for it.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import comb
from pathlib import Path

import numpy as np

from benchmarks.locator.cases import METRICS, Benchmark, Case, load, score, table
from benchmarks.locator.learn import Supported, fit_decision, matrix, supports
from benchmarks.locator.model import Features, Matrix, leave_papers_out, ranked
from pipeline.files import write_text
from pipeline.locator.chain import plan_chains
from pipeline.locator.confidence import BELONGING_SHARES, NOT_FOUND_BELOW, SHARES
from pipeline.locator.query import QueryWords
from pipeline.locator.ranking import rank
from pipeline.locator.weights import FIXED, SIGNALS, Signal


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


def decisions(rows: Sequence[Supported]) -> list[tuple[Supported, float, float]]:
    """(row, P(chain right), P(repository belongs)) with coefficients learnt without the row's paper."""
    found: list[tuple[Supported, float, float]] = []
    for paper in sorted({row.paper for row in rows}):
        test = [row for row in rows if row.paper == paper]
        right, belonging = fit_decision([row for row in rows if row.paper != paper])
        ones = np.ones((len(test), 1))
        belongs = 1 / (1 + np.exp(-np.concatenate([matrix(test, BELONGING_SHARES), ones], axis=1) @ belonging))
        chances = belongs / (1 + np.exp(-np.concatenate([matrix(test, SHARES), ones], axis=1) @ right))
        found += list(zip(test, chances.tolist(), belongs.tolist(), strict=True))
    return found


def reliability(decided: Sequence[tuple[Supported, float, float]], bins: int = 6) -> list[tuple[float, float, int]]:
    """(mean prediction, share that was right, tasks) of equally large bins, over tasks in their own repository."""
    home = sorted((chance, row.right) for row, chance, _ in decided if row.kind != "foreign")
    return [
        (
            statistics.fmean(home[i][0] for i in part),
            statistics.fmean(float(home[i][1]) for i in part),
            len(part),
        )
        for part in np.array_split(np.arange(len(home)), bins)
        if len(part)
    ]


def decision_figures(decided: Sequence[tuple[Supported, float, float]]) -> str:
    """`not_found` by kind of task, and how far the confidence means what it says."""
    lines = [f"not_found at {NOT_FOUND_BELOW}, out of fold:"]
    for kind in ("own", "unanswered", "foreign"):
        chances = [belongs for row, _, belongs in decided if row.kind == kind]
        given = sum(belongs < NOT_FOUND_BELOW for belongs in chances)
        lines.append(f"  {kind}: {given}/{len(chances)}")
    lines.append("reliability (chain holds a right file): predicted -> observed")
    lines += [f"  {predicted:.2f} -> {observed:.2f} (n={n})" for predicted, observed, n in reliability(decided)]
    home = [(chance, row.right) for row, chance, _ in decided if row.kind != "foreign"]
    lines.append(f"  Brier score {statistics.fmean((chance - good) ** 2 for chance, good in home):.3f}")
    return "\n".join(lines)


def diagram(bins: Sequence[tuple[float, float, int]]) -> str:
    """The reliability diagram as SVG: predicted to the right, observed upwards, the diagonal is perfect."""
    size, edge = 320, 40

    def at(share: float) -> float:
        return edge + share * (size - 2 * edge)

    dots = "".join(
        f'<circle cx="{at(x):.1f}" cy="{size - at(y):.1f}" r="{3 + n / 6:.1f}"><title>{x:.2f} predicted, {y:.2f} '
        f"observed, {n} tasks</title></circle>"
        for x, y, n in bins
    )
    low, high = at(0), at(1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" font-family="sans-serif" font-size="11">'
        f'<rect width="{size}" height="{size}" fill="#fff"/>'
        f'<path d="M{low} {high}H{high}M{low} {high}V{low}" stroke="#444" fill="none"/>'
        f'<path d="M{low} {high}L{high} {low}" stroke="#999" stroke-dasharray="4"/><g fill="#1f5fa8">{dots}</g>'
        f'<text x="{size / 2}" y="{size - 12}" text-anchor="middle">predicted: the chain holds a right file</text>'
        f'<text x="14" y="{size / 2}" text-anchor="middle" transform="rotate(-90 14 {size / 2})">observed share</text>'
        f'<text x="{low}" y="{high + 14}">0</text><text x="{high}" y="{high + 14}" text-anchor="end">1</text></svg>\n'
    )


def interval(benchmark: Benchmark, rows: Sequence[dict[str, float]], draws: int = 2000) -> str:
    """5 % and 95 % of each metric's mean over papers drawn with replacement."""
    grouped: dict[str, list[dict[str, float]]] = defaultdict(list)
    for case, row in zip(benchmark.cases, rows, strict=True):
        grouped[case.paper].append(row)
    means = np.array([[statistics.fmean(row[name] for row in grouped[p]) for name in rows[0]] for p in sorted(grouped)])
    drawn = np.random.default_rng(0).integers(0, len(means), (draws, len(means)))
    low, high = np.quantile(means[drawn].mean(axis=1), [0.05, 0.95], axis=0)
    return ", ".join(f"{name} {a:.3f} to {b:.3f}" for name, a, b in zip(rows[0], low, high, strict=True))


def main() -> None:
    """Print all figures, each as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, required=True)
    parser.add_argument("--repositories", type=Path, required=True)
    parser.add_argument("--no-ablations", action="store_true")
    parser.add_argument("--published", type=Path, help="published task files, for the tasks without an answer")
    parser.add_argument("--diagram", type=Path, help="where the reliability diagram goes (SVG)")
    arguments = parser.parse_args()
    started = time.process_time()
    benchmark = load(arguments.cases, arguments.repositories, arguments.published)
    print(f"{len(benchmark.cases)} tasks of {len(benchmark.papers)} papers; paper-macro\n", flush=True)
    features = Features.of(benchmark)
    tables = _rankings(benchmark, features)
    bare = Features.of(load(arguments.cases, arguments.repositories, readme=False))
    _row("without the root README, out of fold", benchmark.macro(_scored(bare, leave_papers_out(bare)[1])))
    quiet = Features.of(benchmark, documents=False)
    _row("without README and documentation, out of fold", benchmark.macro(_scored(quiet, leave_papers_out(quiet)[1])))
    print("\nchain, out of fold:", {name: round(value, 3) for name, value in chain_figures(benchmark, tables).items()})
    decided = decisions(supports(benchmark, tables))
    print(decision_figures(decided), flush=True)
    if arguments.diagram:
        write_text(arguments.diagram, diagram(reliability(decided)))
    if not arguments.no_ablations:
        print(f"\nOne signal off at a time, out of fold\n{table([], METRICS)}", flush=True)
        for name in SIGNALS:
            _row(f"- {name}", benchmark.macro(_scored(features, leave_papers_out(features, {name}, tables)[1])))
    print(f"\n{time.process_time() - started:.0f} s of processor time")


def _rankings(benchmark: Benchmark, features: Features) -> dict[str, dict[str, Signal]]:
    """Print the rows of whole rankings; returns the weights learnt without each paper."""
    cases = benchmark.cases
    print(table([], METRICS), flush=True)
    sizes = [benchmark.indexes[case.paper].size for case in cases]
    _row("random", benchmark.macro([random_expectation(n, len(c.sources)) for n, c in zip(sizes, cases, strict=True)]))
    _row("BM25", benchmark.macro([score(lexical(benchmark, case), case.sources) for case in cases]))
    tables, scores = leave_papers_out(features)
    found = _scored(features, scores)
    _row("**all signals, out of fold**", benchmark.macro(found))
    start = time.process_time()
    rankings = [rank(benchmark.indexes[case.paper], QueryWords.of(case.query)) for case in cases]
    seconds = (time.process_time() - start) / len(cases)
    paths = [[ranking.index.facts[place].path for place in ranking.order] for ranking in rankings]
    _row("all signals, shipped", benchmark.macro([score(p, c.sources) for p, c in zip(paths, cases, strict=True)]))
    largest = max(benchmark.papers, key=lambda paper: benchmark.indexes[paper].size)
    print(
        f"\nout of fold, 5 % and 95 % of a bootstrap over papers: {interval(benchmark, found)}\n"
        f"processor time: {seconds:.3f} s to rank a task; index of the largest repository "
        f"({benchmark.indexes[largest].size} files) {benchmark.seconds[largest]:.1f} s\n{table([], METRICS)}",
        flush=True,
    )
    return tables


def _scored(features: Features, scores: Sequence[Matrix]) -> list[dict[str, float]]:
    cases = features.benchmark.cases
    return [score(ranked(features, number, scores[number]), case.sources) for number, case in enumerate(cases)]


def _row(title: str, values: Mapping[str, float]) -> None:
    print(table([(title, values)], METRICS, head=False), flush=True)


if __name__ == "__main__":
    main()
