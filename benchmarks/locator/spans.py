"""Which lines of the published requirements predictions cite: recall against precision, and what limits them.

    python -m benchmarks.locator.spans --cases CASES.jsonl --repositories DIR [--draws 2000] [--learn]

All figures are means over the tasks of a paper, then over papers, with scores, decisions and the weights of
`pipeline/tracing/citing.py` learnt without the paper at hand. "Own files" counts the published lines in the files that
a task names as its sources, "all files" every one. Losses are told apart: the choice of files (share of the cited lines
that lie in true files), and the choice of lines in them (precision there).

`--learn` prints the weights to ship, learnt from all papers by two logistic fits: the chance of a file from its share
of the ranking's likelihood, and the share of a definition's lines that is cited, in the true files whatever the ranking
says, so that it stays right when the ranking changes.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from benchmarks.locator.cases import Benchmark, Case, load
from benchmarks.locator.learn import fit_decision, supports
from benchmarks.locator.model import Features, leave_papers_out
from pipeline.locator.chain import plan_chains
from pipeline.locator.confidence import BELONGING_SHARES, NOT_FOUND_BELOW, measure
from pipeline.locator.query import QueryWords
from pipeline.locator.ranking import rank
from pipeline.locator.weights import FIXED, Signal
from pipeline.tracing.citing import (
    FAR,
    NEAR,
    ChanceWeights,
    CitedFile,
    ShareWeights,
    chances,
    select,
    share_features,
    shares_of,
)
from pipeline.tracing.coverage import Part, lines_of, parts_of

Lines = frozenset[tuple[str, int]]
Table = npt.NDArray[np.float64]
_WORTHS = tuple(sorted({1.0, 1.5, 1.7, 1.85, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 10.0, 15.0, NEAR, FAR}))
_WANTED = (0.8, 0.4)
"""Recall and precision that are asked for."""
_PENALTY = 0.001
_FIGURES = ("recall", "precision", "all: recall", "all: precision", "lines in true files", "precision there", "files")


@dataclass(frozen=True)
class Predicted:
    """What may be cited for one task, and what is to be."""

    paper: str
    ranked: tuple[tuple[str, float], ...]
    """(path, score), out of fold."""
    chain: tuple[str, ...]
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
        ranked=tuple(paths),
        chain=tuple(chain),
        belongs=float(1 / (1 + np.exp(-np.asarray(shares) @ belonging))),
        sources=case.sources,
        every=every,
        own=frozenset(item for item in every if item[0] in case.sources),
    )


@dataclass(frozen=True)
class Weights:
    """What citing rests on."""

    chance: ChanceWeights
    share: ShareWeights


Parts = Callable[[str, str], Sequence[Part]]
"""(paper, path) -> what the file consists of."""


def fit(items: Sequence[Predicted], parts: Parts) -> Weights:
    """Both fits; papers count the same, and the tasks of a paper."""
    papers = Counter(item.paper for item in items)
    files: list[tuple[tuple[float, ...], float, float]] = []
    definitions: list[tuple[tuple[float, ...], float, float]] = []
    for item in items:
        for path, share in shares_of(item.ranked, item.chain).items():
            true = path in item.sources and any(place[0] == path for place in item.own)
            files.append(((share, float(path in item.chain), 1.0), float(true), 1 / papers[item.paper]))
        held = [parts(item.paper, path) for path in sorted(item.sources)]
        total = sum(part.lines for own in held for part in own)
        definitions += [
            (
                share_features(part, own),
                len(lines_of([part.requirement]) & item.own) / part.lines,
                part.lines / total / papers[item.paper],
            )
            for own in held
            for part in own
        ]
    return Weights(ChanceWeights(*_logistic(files)), ShareWeights(*_logistic(definitions)))


def _logistic(rows: Sequence[tuple[tuple[float, ...], float, float]]) -> list[float]:
    """Weights of (features, share, weight of the row); the last feature is the constant 1."""
    matrix, target = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    weight = np.array([row[2] for row in rows]) / sum(row[2] for row in rows)
    mean, spread = matrix.mean(axis=0), matrix.std(axis=0)
    mean[-1], spread[-1] = 0.0, 1.0
    scaled = (matrix - mean) / spread

    def loss(beta: Table) -> tuple[float, Table]:
        odds = scaled @ beta
        slopes = np.append(beta[:-1], 0.0)
        value = weight @ (np.logaddexp(0, odds) - target * odds) + _PENALTY * slopes @ slopes
        return float(value), scaled.T @ (weight * (1 / (1 + np.exp(-odds)) - target)) + 2 * _PENALTY * slopes

    found = minimize(loss, np.zeros(matrix.shape[1]), jac=True, method="L-BFGS-B").x / spread
    found[-1] -= found[:-1] @ mean[:-1]
    return [round(float(value), 2) for value in found]


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


def reliability(
    cited: Sequence[tuple[Predicted, Sequence[CitedFile]]], edges: Sequence[float] = (0.1, 0.2, 0.3, 0.4, 1.0)
) -> str:
    """Predicted and observed share of the lines that are cited, by prediction: what `CitedDefinition.likely` says."""
    found: dict[float, list[tuple[float, float, float]]] = defaultdict(list)
    papers = Counter(item.paper for item, _ in cited)
    for item, files in cited:
        for definition in (definition for file in files for definition in file.definitions):
            lines = lines_of([definition.requirement])
            edge = next(edge for edge in edges if definition.likely <= edge)
            weight = len(lines) / papers[item.paper]
            found[edge].append((weight, definition.likely, len(lines & item.own) / len(lines)))
    rows = ["| likely up to | definitions | predicted | observed |", "|---|---|---|---|"]
    for edge in sorted(found):
        weights, said, seen = np.array(found[edge]).T
        rows.append(
            f"| {edge:g} | {len(weights)} | {weights @ said / sum(weights):.3f} | {weights @ seen / sum(weights):.3f} |"
        )
    return "\n".join(rows)


def reached(tables: Mapping[float, Table]) -> str:
    """The best recall at the wanted precision and the best precision at the wanted recall, along the curve."""
    means = [np.nanmean(table, axis=0) for table in tables.values()]
    recall = max((float(mean[0]) for mean in means if mean[1] >= _WANTED[1]), default=float("nan"))
    precision = max((float(mean[1]) for mean in means if mean[0] >= _WANTED[0]), default=float("nan"))
    return f"recall at precision {_WANTED[1]:.2f}: {recall:.3f}; precision at recall {_WANTED[0]:.2f}: {precision:.3f}"


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
    """Print the curve, or the weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, required=True)
    parser.add_argument("--repositories", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=2000, help="bootstrap draws over papers (5%% to 95%% in brackets)")
    parser.add_argument("--learn", action="store_true", help="print the weights of a definition's share and end")
    arguments = parser.parse_args()
    benchmark = load(arguments.cases, arguments.repositories)
    items = predicted(benchmark)

    @cache
    def parts(paper: str, path: str) -> tuple[Part, ...]:
        return parts_of(benchmark.indexes[paper].snapshot, path)

    if arguments.learn:
        print(fit(items, parts))
        return
    without = {paper: fit([item for item in items if item.paper != paper], parts) for paper in benchmark.papers}

    def of(item: Predicted, near: float, far: float) -> tuple[CitedFile, ...]:
        weights = without[item.paper]
        chance = chances(item.ranked, item.chain, weights.chance)
        held = {path: parts(item.paper, path) for path in chance}
        return select(held, chance, item.chain, weights=weights.share, worth=(near, far))

    def whole(choose: Callable[[Predicted], Sequence[str]]) -> Table:
        lines = [
            lines_of(part.requirement for path in choose(item) for part in parts(item.paper, path)) for item in items
        ]
        return by_paper(items, [figures(item, frozenset(held)) for item, held in zip(items, lines, strict=True)])

    def cited(worth: float, refuse: float = 0.0) -> Table:
        found = [of(item, worth, worth) if item.belongs >= refuse else () for item in items]
        return by_paper(items, [figures(item, _near_lines(files)) for item, files in zip(items, found, strict=True)])

    tables = {worth: cited(worth) for worth in _WORTHS}
    rows = [("the true files", whole(lambda item: sorted(item.sources)))]
    rows.append(
        ("true files among the first ten", whole(lambda item: [p for p, _ in item.ranked[:10] if p in item.sources]))
    )
    rows += [
        (f"first {count}", whole(lambda item, count=count: [path for path, _ in item.ranked[:count]]))
        for count in (1, 3, 5)
    ]  # type: ignore[misc]
    rows.append(("first files, cut where F1 is highest (oracle)", whole(lambda item: _best_cut(item, parts))))
    rows.append(("the chain", whole(lambda item: item.chain)))
    rows += [(f"precision worth {worth:g}", found) for worth, found in tables.items()]
    rows.append((f"precision worth {NEAR:g}, none for `not_found`", cited(NEAR, NOT_FOUND_BELOW)))
    print(f"{len(items)} tasks of {len({item.paper for item in items})} papers\n")
    print("| lines of | " + " | ".join(_FIGURES) + " |\n" + "|---" * (len(_FIGURES) + 1) + "|")
    print("\n".join(_row(title, found, arguments.draws) for title, found in rows))
    print("\n" + reached(tables) + "\n\n" + reliability([(item, of(item, NEAR, FAR)) for item in items]))


def _best_cut(item: Predicted, parts: Parts) -> list[str]:
    """The first files of the ranking, up to where the truth says to stop: no rule for stopping can do better."""
    paths = [path for path, _ in item.ranked[:10]]
    best, chosen = -1.0, paths[:1]
    for count in range(1, len(paths) + 1):
        lines = lines_of(part.requirement for path in paths[:count] for part in parts(item.paper, path))
        agreement = 2 * len(lines & item.own) / (len(lines) + len(item.own))
        if agreement > best:
            best, chosen = agreement, paths[:count]
    return chosen


def _near_lines(files: Sequence[CitedFile]) -> Lines:
    return frozenset(
        lines_of(item.requirement for file in files for item in file.definitions if item.near)
    )  # fmt: skip


if __name__ == "__main__":
    main()
