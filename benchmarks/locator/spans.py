"""Which lines of the published requirements predictions cite: recall against precision, and what limits them.

    python -m benchmarks.locator.spans --cases CASES.jsonl --repositories DIR [--draws 2000]

All figures are means over the tasks of a paper, then over papers, with scores and decisions learnt without the paper
at hand. "Own files" counts the published lines in the files that a task names as its sources, "all files" every one.
Losses are told apart: the choice of files (share of the cited lines that lie in true files), and the choice of lines
in them (precision there).
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.locator.cases import Benchmark, Case, load
from benchmarks.locator.learn import fit_decision, supports
from benchmarks.locator.model import Features, leave_papers_out
from pipeline.locator.chain import plan_chains
from pipeline.locator.confidence import BELONGING_SHARES, NOT_FOUND_BELOW, measure
from pipeline.locator.query import QueryWords
from pipeline.locator.ranking import rank
from pipeline.locator.weights import FIXED, Signal
from pipeline.tracing.citing import FAR, NEAR, CitedFile, priced
from pipeline.tracing.coverage import definitions_of, lines_of

Lines = frozenset[tuple[str, int]]
Table = npt.NDArray[np.float64]
_PRICES = tuple(sorted({0.0, 0.3, 0.6, 0.8, 1.0, 1.5, 2.0, NEAR, FAR}))
_WANTED_PRECISION = 0.4
_FIGURES = ("recall", "precision", "all: recall", "all: precision", "lines in true files", "precision there", "files")


@dataclass(frozen=True)
class Predicted:
    """What may be cited for one task, and what is to be."""

    paper: str
    files: tuple[CitedFile, ...]
    ranked: tuple[str, ...]
    chain: frozenset[str]
    belongs: float
    """Probability that the repository is the task's own, out of fold."""
    sources: frozenset[str]
    every: Lines
    own: Lines


def predicted(benchmark: Benchmark) -> list[Predicted]:
    """The predictions for all tasks that cite lines in their own files."""
    tables, _ = leave_papers_out(Features.of(benchmark))
    rows = supports(benchmark, tables)
    belonging = {paper: fit_decision([row for row in rows if row.paper != paper])[1] for paper in benchmark.papers}
    found = [_predicted(benchmark, case, tables[case.paper], belonging[case.paper]) for case in benchmark.cases]
    return [item for item in found if item.own]


def _predicted(benchmark: Benchmark, case: Case, weights: dict[str, Signal], belonging: Table) -> Predicted:
    index = benchmark.indexes[case.paper]
    ranking = rank(index, QueryWords.of(case.query), weights={**weights, **FIXED})
    plans = plan_chains(ranking, 1)
    chain = list(plans[0].members) if plans else []
    support = measure(ranking, case.query, chain)
    shares = [*(getattr(support, name) for name in BELONGING_SHARES), 1.0]
    paths = [(index.facts[number].path, float(ranking.scores[number])) for number in ranking.order[:50]]
    every = frozenset((path, line) for path, start, end in case.requirements for line in range(start, end + 1))
    return Predicted(
        paper=case.paper,
        files=priced(index.snapshot, paths, chain),
        ranked=tuple(path for path, _ in paths),
        chain=frozenset(chain),
        belongs=float(1 / (1 + np.exp(-np.asarray(shares) @ belonging))),
        sources=case.sources,
        every=every,
        own=frozenset(item for item in every if item[0] in case.sources),
    )


def figures(item: Predicted, lines: Lines) -> tuple[float, ...]:
    """The figures of one task, in the order of `_FIGURES`, for the lines that are cited."""
    inside = {line for line in lines if line[0] in item.sources}
    own, every = len(lines & item.own), len(lines & item.every)
    size = max(len(lines), 1)
    there = own / len(inside) if inside else float("nan")
    return (
        own / len(item.own),
        own / size,
        every / len(item.every),
        every / size,
        len(inside) / size,
        there,
        float(len({path for path, _ in lines})),
    )


def by_paper(items: Sequence[Predicted], rows: Sequence[tuple[float, ...]]) -> Table:
    """Means over the tasks of each paper; a figure that does not exist for a task is left out."""
    grouped: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for item, row in zip(items, rows, strict=True):
        grouped[item.paper].append(row)
    masked = [np.ma.masked_invalid(np.array(grouped[paper])).mean(axis=0) for paper in sorted(grouped)]
    return np.array([np.ma.filled(row, np.nan) for row in masked])


def shares_by_price(items: Sequence[Predicted], edges: Sequence[float] = (0.0, 0.3, 0.6, 1.0, 1.5, 2.0, FAR)) -> str:
    """Share of the lines of a file that are cited, by its price: what `CitedFile.likely` says."""
    found: dict[float, dict[str, list[float]]] = {edge: defaultdict(list) for edge in edges}
    for item in items:
        for file in item.files:
            lines = lines_of(file.definitions)
            edge = next(edge for edge in edges if file.price <= edge)
            found[edge][item.paper].append(len(lines & item.own) / len(lines))
    rows = ["| price up to | files | share of lines cited |", "|---|---|---|"]
    for edge, papers in found.items():
        if papers:
            mean = np.mean([np.mean(values) for values in papers.values()])
            rows.append(f"| {edge:g} | {sum(map(len, papers.values()))} | {mean:.3f} |")
    return "\n".join(rows)


def chosen_out_of_fold(items: Sequence[Predicted], tables: dict[float, Table]) -> Table:
    """For each paper its figures at the price limit that the other papers would choose.

    The limit with the highest recall at a precision of 0.40; where none reaches it, that with the best F1.
    """
    papers = sorted({item.paper for item in items})
    rows = []
    for number in range(len(papers)):
        rest = {limit: np.nanmean(np.delete(table, number, axis=0), axis=0) for limit, table in tables.items()}
        good = [limit for limit, mean in rest.items() if mean[1] >= _WANTED_PRECISION]
        if good:
            limit = max(good, key=lambda limit: float(rest[limit][0]))
        else:
            limit = max(rest, key=lambda limit: float(2 / (1 / rest[limit][0] + 1 / rest[limit][1])))
        rows.append(tables[limit][number])
    return np.array(rows)


def _row(title: str, table: Table, draws: int) -> str:
    mean = np.nanmean(table, axis=0)
    random = np.random.default_rng(0)
    drawn = [np.nanmean(table[random.integers(0, len(table), len(table))], axis=0)[:2] for _ in range(draws)]
    low, high = np.quantile(np.array(drawn), (0.05, 0.95), axis=0) if draws else (mean[:2], mean[:2])
    cells = [f"{value:.3f}" for value in mean]
    cells[0] += f" ({low[0]:.2f}-{high[0]:.2f})"
    cells[1] += f" ({low[1]:.2f}-{high[1]:.2f})"
    return f"| {title} | {' | '.join(cells)} |"


def main() -> None:
    """Print the curve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, required=True)
    parser.add_argument("--repositories", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=2000, help="bootstrap draws over papers (5% to 95% in brackets)")
    arguments = parser.parse_args()
    benchmark = load(arguments.cases, arguments.repositories)
    items = predicted(benchmark)
    snapshots = {paper: benchmark.indexes[paper].snapshot for paper in benchmark.papers}

    @cache
    def file_lines(paper: str, path: str) -> Lines:
        return frozenset(lines_of(definitions_of(snapshots[paper], [path])))

    def table(choose: Callable[[Predicted], Sequence[str]]) -> Table:
        lines = [frozenset[tuple[str, int]]().union(*(file_lines(i.paper, p) for p in choose(i))) for i in items]
        return by_paper(items, [figures(item, held) for item, held in zip(items, lines, strict=True)])

    def up_to(limit: float) -> Callable[[Predicted], Sequence[str]]:
        return lambda item: [file.path for file in item.files if file.price <= limit]

    def refused(item: Predicted) -> Sequence[str]:
        return up_to(NEAR)(item) if item.belongs >= NOT_FOUND_BELOW else []

    tables = {limit: table(up_to(limit)) for limit in _PRICES}
    rows = [("the true files", table(lambda item: sorted(item.sources)))]
    rows.append(
        ("true files among the first ten", table(lambda item: [p for p in item.ranked[:10] if p in item.sources]))
    )
    rows += [(f"first {count}", table(lambda item, count=count: item.ranked[:count])) for count in (1, 3, 5)]  # type: ignore[misc]
    rows.append(("the chain", table(lambda item: sorted(item.chain))))
    rows += [(f"price up to {limit:g}", found) for limit, found in tables.items()]
    rows.append(("price limit chosen without the paper", chosen_out_of_fold(items, tables)))
    rows.append((f"price up to {NEAR:g}, none for `not_found`", table(refused)))
    print(f"{len(items)} tasks of {len({item.paper for item in items})} papers\n")
    print("| lines of | " + " | ".join(_FIGURES) + " |\n" + "|---" * (len(_FIGURES) + 1) + "|")
    print("\n".join(_row(title, found, arguments.draws) for title, found in rows))
    print("\n" + shares_by_price(items))


if __name__ == "__main__":
    main()
