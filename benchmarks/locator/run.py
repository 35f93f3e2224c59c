"""Measure the locator on published tasks: ranking, ablations, chain, `not_found`, calibration, speed.

    python -m benchmarks.locator.run --cases CASES.jsonl --repositories DIR [--no-ablations] [--published DIR]
        [--diagram FILE.svg]

Figures called "out of fold" use weights that were learnt without the paper at hand; "shipped" uses the weights of
`pipeline/locator/weights.py`, which have seen the cases when these are the ones that they were learnt from.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from math import comb
from pathlib import Path

import numpy as np

from benchmarks.locator.cases import Benchmark, Case, load, score, table
from benchmarks.locator.learn import Supported, fit_decision, matrix, supports
from benchmarks.locator.model import Features, leave_papers_out, ranked
from flows.locate_run import cited, located
from pipeline.files import write_text
from pipeline.locator.chain import plan_chains
from pipeline.locator.confidence import BELONGING_SHARES, NOT_FOUND_BELOW, SHARES
from pipeline.locator.query import QueryWords
from pipeline.locator.ranking import rank
from pipeline.locator.weights import FIXED, SIGNALS, Signal
from pipeline.tracing.coverage import lines_of


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


def line_figures(benchmark: Benchmark) -> dict[str, dict[str, float]]:
    """Lines of the published requirements that predictions cite, macro over papers.

    "own files": of the published lines those in the files that the task names as its sources, as the target is stated
    (a perfect choice of files then reaches them all); "all files": every published line.
    """
    rows: dict[str, list[dict[str, float]]] = {"own files": [], "all files": []}
    kept: dict[str, list[Case]] = {"own files": [], "all files": []}
    for case in benchmark.cases:
        every = {(path, line) for path, start, end in case.requirements for line in range(start, end + 1)}
        own = {item for item in every if item[0] in case.sources}
        found, _ = cited(located(benchmark.indexes[case.paper], case.query))
        lines = lines_of(item.requirement for item in found)
        for name, truth in (("own files", own), ("all files", every)):
            if truth:
                common = len(lines & truth)
                precision = common / len(lines) if lines else 0.0
                rows[name].append({"recall": common / len(truth), "precision": precision})
                kept[name].append(case)
    return {name: Benchmark(kept[name], benchmark.indexes).macro(rows[name]) for name in rows}


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


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, required=True)
    parser.add_argument("--repositories", type=Path, required=True)
    parser.add_argument("--no-ablations", action="store_true")
    parser.add_argument("--published", type=Path, help="published task files, for the tasks without an answer")
    parser.add_argument("--diagram", type=Path, help="where the reliability diagram goes (SVG)")
    arguments = parser.parse_args()
    benchmark = load(arguments.cases, arguments.repositories, arguments.published)
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
    for title, figures in line_figures(benchmark).items():
        print(f"requirement lines, shipped, {title}:", {name: round(value, 3) for name, value in figures.items()})
    decided = decisions(supports(benchmark, tables))
    print(decision_figures(decided))
    if arguments.diagram:
        write_text(arguments.diagram, diagram(reliability(decided)))
    largest = max(benchmark.papers, key=lambda paper: benchmark.indexes[paper].size)
    print(
        f"speed: {seconds:.3f} s a task; index of the largest repository ({benchmark.indexes[largest].size} files) "
        f"{benchmark.seconds[largest]:.1f} s"
    )


if __name__ == "__main__":
    main()
