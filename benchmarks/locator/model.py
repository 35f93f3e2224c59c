"""Learning the weights: a listwise softmax likelihood in two stages, and cross-validation that leaves papers out.

The weights are learnt as deviations from what each signal's reason lets one expect. Stage one fits signals of single
files; its score is passed along links; stage two fits all signals together. Each paper counts the same, each weight may
only have the sign that its reason allows. The confidence is a logistic fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from benchmarks.locator.cases import Benchmark
from pipeline.locator.query import QueryWords
from pipeline.locator.signals import later_signals, query_signals
from pipeline.locator.weights import FIXED, LATER_SIGNALS, PENALTY, SIGNALS, Signal

Matrix = npt.NDArray[np.float64]
_LEARNT_FROM = 120
"""Files, best by the expected weights, that a task is learnt from beside its own: those further down have no likelihood
to lose (all metrics come out the same), and learning takes a third of the time."""
OWN = [name for name in SIGNALS if name not in LATER_SIGNALS]


@dataclass
class Features:
    """Signal matrices and targets, one a case."""

    benchmark: Benchmark
    own: list[Matrix]
    fixed: list[Matrix]
    targets: list[Matrix]
    documents: bool
    words: list[QueryWords]
    learnt_from: list[npt.NDArray[np.int64]]
    """Positions of the files that the likelihood of each case is taken over."""

    @classmethod
    def of(cls, benchmark: Benchmark, *, documents: bool = True) -> Features:
        """Compute them."""
        own, fixed, targets = [], [], []
        words = [QueryWords.of(case.query) for case in benchmark.cases]
        for case, said in zip(benchmark.cases, words, strict=True):
            index = benchmark.indexes[case.paper]
            values = dict(index.static)
            if not documents:
                values["documented"] = values["mentioned"] = np.zeros(index.size)
            values.update(query_signals(index, said, documents=documents))
            own.append(np.stack([values[name] for name in OWN], axis=1))
            fixed.append(sum((signal.weight * values[name] for name, signal in FIXED.items()), np.zeros(index.size)))
            target = np.zeros(index.size)
            for path in case.sources:
                if path in index.position:
                    target[index.position[path]] = 1.0
            targets.append(target / max(target.sum(), 1.0))
        prior = np.array([SIGNALS[name].prior for name in OWN])
        near = [
            np.union1d(np.argsort(-(signals @ prior + extra), kind="stable")[:_LEARNT_FROM], np.flatnonzero(target))
            for signals, extra, target in zip(own, fixed, targets, strict=True)
        ]
        return cls(benchmark, own, fixed, targets, documents, words, near)

    def linked(self, number: int, first: Matrix) -> Matrix:
        """All signals of a case, the later ones computed from a first score."""
        index = self.benchmark.indexes[self.benchmark.cases[number].paper]
        found = later_signals(index, self.words[number], first, documents=self.documents)
        return np.concatenate([self.own[number], np.stack([found[name] for name in LATER_SIGNALS], axis=1)], axis=1)


def fit_weights(
    features: Features,
    numbers: Sequence[int],
    without: Collection[str] = (),
    start: Mapping[str, Signal] | None = None,
) -> dict[str, Signal]:
    """Both stages on the cases `numbers`; returns the table of signals with the new weights.

    The likelihood has one maximum, so `start` (weights that lie near) saves time and changes nothing.
    """
    papers = Counter(features.benchmark.cases[number].paper for number in numbers)
    share = np.array([1 / papers[features.benchmark.cases[number].paper] for number in numbers])
    near = start or SIGNALS
    begin = None if start is None else np.array([near[name].first for name in OWN])
    first = _fit([features.own[number] for number in numbers], features, numbers, share, OWN, without, begin)
    linked = [features.linked(number, features.own[number] @ first + features.fixed[number]) for number in numbers]
    names = [*OWN, *LATER_SIGNALS]
    begin = None if start is None else np.array([near[name].weight for name in names])
    final = _fit(linked, features, numbers, share, names, without, begin)
    ones = dict(zip(OWN, first, strict=True))
    return {
        name: SIGNALS[name]._replace(first=round(float(ones.get(name, 0.0)), 2), weight=round(float(weight), 2))
        for name, weight in zip(names, final, strict=True)
    }


def _fit(
    matrices: Sequence[Matrix],
    features: Features,
    numbers: Sequence[int],
    share: Matrix,
    names: Sequence[str],
    without: Collection[str],
    start: Matrix | None,
) -> Matrix:
    share = share / share.sum()
    prior = np.array([0.0 if name in without else SIGNALS[name].prior for name in names])

    near = [features.learnt_from[number] for number in numbers]
    # the files of all cases together: one product instead of a hundred
    rows = np.concatenate([matrix[kept] for matrix, kept in zip(matrices, near, strict=True)])
    fixed = np.concatenate([features.fixed[number][kept] for number, kept in zip(numbers, near, strict=True)])
    targets = np.concatenate([features.targets[number][kept] for number, kept in zip(numbers, near, strict=True)])
    lengths = [len(kept) for kept in near]
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    case = np.repeat(np.arange(len(lengths)), lengths)
    shares = share[case]

    def loss(weights: Matrix) -> tuple[float, Matrix]:
        scores = rows @ weights + fixed
        top = np.maximum.reduceat(scores, starts)
        exponent = np.exp(scores - top[case])
        normal = np.add.reduceat(exponent, starts)
        likelihood = np.log(normal) + top - np.add.reduceat(targets * scores, starts)
        gradient = rows.T @ (shares * (exponent / normal[case] - targets))
        away = weights - prior
        return float(share @ likelihood + PENALTY * away @ away), gradient + 2 * PENALTY * away

    bounds = [_bound(SIGNALS[name].sign, name in without) for name in names]
    begin = prior if start is None else np.where([name in without for name in names], 0.0, start)
    found = minimize(loss, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 300})
    return np.asarray(found.x)


def _bound(sign: int, out: bool) -> tuple[float | None, float | None]:
    if out:
        return (0.0, 0.0)
    return {1: (0.0, None), -1: (None, 0.0), 0: (None, None)}[sign]


def scores_with(features: Features, number: int, weights: Mapping[str, Signal]) -> Matrix:
    """The final score of every file of a case."""
    first = features.own[number] @ np.array([weights[name].first for name in OWN]) + features.fixed[number]
    linked = features.linked(number, first)
    final = np.array([weights[name].weight for name in [*OWN, *LATER_SIGNALS]])
    return np.asarray(linked @ final + features.fixed[number])


def leave_papers_out(
    features: Features,
    without: Collection[str] = (),
    start: Mapping[str, Mapping[str, Signal]] | None = None,
) -> tuple[dict[str, dict[str, Signal]], list[Matrix]]:
    """Weights learnt without each paper, and the scores of that paper's cases under them.

    Args:
        features: of all cases.
        without: signals to leave out.
        start: for each paper, weights that lie near those looked for (of the run with all signals).
    """
    cases = features.benchmark.cases
    tables: dict[str, dict[str, Signal]] = {}
    found: list[Matrix] = [np.zeros(0)] * len(cases)
    for paper in features.benchmark.papers:
        train = [number for number, case in enumerate(cases) if case.paper != paper]
        tables[paper] = fit_weights(features, train, without, start[paper] if start is not None else None)
        for number, case in enumerate(cases):
            if case.paper == paper:
                found[number] = scores_with(features, number, tables[paper])
    return tables, found


def ranked(features: Features, number: int, scores: Matrix) -> list[str]:
    """Paths in the order of their score."""
    index = features.benchmark.indexes[features.benchmark.cases[number].paper]
    order = sorted(range(index.size), key=lambda place: (-scores[place], index.facts[place].path))
    return [index.facts[place].path for place in order]


def fit_logistic(
    matrix: Matrix, labels: Matrix, share: Matrix, penalty: float = 0.002
) -> tuple[Matrix, Callable[[Matrix], Matrix]]:
    """Logistic regression with non-negative slopes; the last coefficient is the intercept."""
    extended = np.concatenate([matrix, np.ones((len(matrix), 1))], axis=1)
    share = share / share.sum()

    def loss(beta: Matrix) -> tuple[float, Matrix]:
        chance = 1 / (1 + np.exp(-extended @ beta))
        likelihood = labels * np.log(chance + 1e-12) + (1 - labels) * np.log(1 - chance + 1e-12)
        slopes = np.append(beta[:-1], 0.0)
        return float(-(share * likelihood).sum() + penalty * slopes @ slopes), (
            extended.T @ (share * (chance - labels)) + 2 * penalty * slopes
        )

    bounds: list[tuple[float | None, float | None]] = [(0.0, None)] * matrix.shape[1] + [(None, None)]
    beta = np.asarray(minimize(loss, np.zeros(extended.shape[1]), jac=True, method="L-BFGS-B", bounds=bounds).x)
    return beta, lambda rows: 1 / (1 + np.exp(-(np.concatenate([rows, np.ones((len(rows), 1))], axis=1) @ beta)))
