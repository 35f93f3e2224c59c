#!/bin/bash
set -e
mkdir -p wavecal/tools wavecal/tests
cat > wavecal/core.py <<'EOF'
"""Independent implementation of the two conformal methods on Wave (no import from nsc)."""
from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil

import numpy as np
from scipy.linalg import solve
from scipy.spatial import KDTree


@dataclass(frozen=True)
class Setup:
    train: int = 400
    test: int = 750
    level: float = 0.9
    bandwidth: float = 0.6
    ridge: float = 0.003
    folds: int = 5
    neighbours: int = 15
    shrinkage: float = 0.1
    repetitions: int = 20
    seed: int = 101
    sizes: tuple = (25, 50, 100, 200, 400, 800)


@dataclass
class Regressor:
    setup: Setup
    _x: np.ndarray = field(default=None, repr=False)

    def gram(self, a, b):
        return np.exp(-0.5 * ((a[:, None, :] - b[None, :, :]) ** 2).sum(-1) / self.setup.bandwidth**2)

    def fit(self, x, y):
        self._x, self._m = x, float(np.mean(y))
        k = self.gram(x, x) + self.setup.ridge * len(x) * np.identity(len(x))
        self._c = solve(k, y - self._m, assume_a="pos")
        return self

    def __call__(self, x):
        return self._m + self.gram(x, self._x) @ self._c


def noise_sd(x):
    return 0.1 + 0.7 * np.square(x[:, 0])


def draw(n, rng):
    x = rng.uniform(-1, 1, (n, 2))
    return x, np.sin(3 * x[:, 0]) + 0.5 * x[:, 1] + noise_sd(x) * rng.standard_normal(n)


def held_out_errors(x, y, setup, rng):
    label = rng.permutation(len(x)) % setup.folds
    e = np.zeros(len(x))
    for k in range(setup.folds):
        inside = label != k
        e[~inside] = np.abs(y[~inside] - Regressor(setup).fit(x[inside], y[inside])(x[~inside]))
    return e


def rank_quantile(scores, level):
    r = ceil(level * (len(scores) + 1))
    return float("inf") if r > len(scores) else float(np.sort(scores)[r - 1])


class Split:
    name = "Split"

    def __init__(self, x, errors, setup):
        pass

    def scale(self, z):
        return np.ones(len(z))


class NSC:
    name = "NSC"

    def __init__(self, x, errors, setup):
        self.tree, self.errors, self.setup = KDTree(x), errors, setup

    def scale(self, z):
        near = self.tree.query(z, self.setup.neighbours)[1]
        g = self.setup.shrinkage
        return (1 - g) * self.errors[near].mean(axis=1) + g * self.errors.mean()


def repetition(setup, number):
    """All sizes and methods in one repetition -> {(size, method): (coverage %, width)}"""
    rng = np.random.default_rng((setup.seed, number))
    x, y = draw(setup.train, rng)
    model, errors = Regressor(setup).fit(x, y), held_out_errors(x, y, setup, rng)
    xt, yt = draw(setup.test, rng)
    miss = np.abs(yt - model(xt))
    result = {}
    for size in setup.sizes:
        xc, yc = draw(size, rng)
        res = np.abs(yc - model(xc))
        for cls in (Split, NSC):
            m = cls(x, errors, setup)
            half = rank_quantile(res / m.scale(xc), setup.level) * m.scale(xt)
            result[size, m.name] = (100.0 * np.mean(miss <= half), 2.0 * np.mean(half))
    return result
EOF
cat > wavecal/tests/test_core.py <<'EOF'
import unittest
import numpy as np
from wavecal import core


class Core(unittest.TestCase):
    def test_rank(self):
        self.assertEqual(core.rank_quantile(np.arange(1, 100.0), 0.9), 90)
        self.assertEqual(core.rank_quantile(np.arange(3.0), 0.9), float("inf"))

    def test_noise_is_quadratic(self):
        np.testing.assert_allclose(core.noise_sd(np.array([[0, 0], [1, 0], [-0.5, 1]])), [0.1, 0.8, 0.275])

    def test_against_repository_model(self):
        from nsc.krr import KernelRidge
        rng = np.random.default_rng(0)
        x, y = core.draw(60, rng)
        z, _ = core.draw(20, rng)
        s = core.Setup()
        np.testing.assert_allclose(core.Regressor(s).fit(x, y)(z), KernelRidge(s.bandwidth, s.ridge).fit(x, y).predict(z), rtol=1e-8)

    def test_against_repository_scale(self):
        from nsc.scale import NeighbourScale
        rng = np.random.default_rng(1)
        x, e = rng.uniform(-1, 1, (80, 2)), rng.random(80)
        z = rng.uniform(-1, 1, (9, 2))
        np.testing.assert_allclose(core.NSC(x, e, core.Setup()).scale(z), NeighbourScale(x, e, 15, 0.1)(z))


if __name__ == "__main__":
    unittest.main()
EOF
cat > wavecal/tools/run.py <<'EOF'
import sys
import numpy as np
from wavecal.core import Setup, repetition

s = Setup()
runs = [repetition(s, i) for i in range(s.repetitions)]
with open(sys.argv[1], "w") as f:
    print("size\tmethod\tcoverage\twidth\tcoverage_sd\twidth_sd", file=f)
    for size in s.sizes:
        for m in ("Split", "NSC"):
            v = np.array([r[size, m] for r in runs])
            print(size, m, *map(repr, map(float, [*v.mean(0), *v.std(0, ddof=1)])), sep="\t", file=f)
EOF
cat > wavecal/tools/show.py <<'EOF'
import sys
for line in open(sys.argv[1]):
    print("  ".join(c[:12].ljust(12) for c in line.rstrip("\n").split("\t")))
EOF
cat > wavecal/tools/answer.py <<'EOF'
import csv, json
rows = list(csv.DictReader(open("wavecal/table.tsv"), delimiter="\t"))
numbers = {}
for r in rows:
    numbers[f"{r['method']}, {r['size']} calibration points: coverage in percent"] = float(r["coverage"])
    numbers[f"{r['method']}, {r['size']} calibration points: interval width"] = float(r["width"])
design = {
    "constant": {"data": ["Wave"], "training points": ["400"], "test points": ["750"], "level": ["90%"], "repetitions": ["20"], "model": ["kernel ridge, bandwidth 0.6, ridge 0.003"]},
    "independent": {"calibration points": ["25", "50", "100", "200", "400", "800"], "method": ["Split", "NSC (15 neighbours, shrinkage 0.1)"]},
    "dependent": {"coverage": ["percent of the 750 test points in the interval, averaged over repetitions"], "interval width": ["upper minus lower end, averaged over test points and repetitions"]},
    "procedure": "Own implementation, checked against the repository's model and scale by unit tests. Per repetition: one training and one test set, a new calibration set for each size, shared by both methods.",
}
text = open("wavecal/conclusion.txt").read().strip()
json.dump({"design": design, "conclusion": {"text": text, "numbers": numbers}, "outputs": ["wavecal/table.tsv"]}, open("response.json", "w"), indent=2)
EOF
cat > wavecal/conclusion.txt <<'EOF'
Split and NSC both keep their promise: whatever the size of the calibration set, mean coverage is near 90%. They differ in efficiency. NSC's
intervals are clearly narrower on average at each of the six sizes, since its scale follows the noise that grows towards the edges. Enlarging the calibration set beyond
roughly 100 points changes the mean width of neither method much; it makes coverage and width less variable from one repetition to the next.
EOF
cat > reproduce.sh <<'EOF'
#!/usr/bin/env bash
set -e
export OMP_NUM_THREADS=1 PYTHONPATH=.
python -m unittest -q wavecal.tests.test_core
python -m wavecal.tools.run wavecal/table.tsv
python -m wavecal.tools.show wavecal/table.tsv
EOF
bash reproduce.sh
PYTHONPATH=. python -m wavecal.tools.answer
