#!/bin/bash
set -e
mkdir -p tiltlab/tests tools
cat > tiltlab/__init__.py <<'EOF'
"""Small self-contained laboratory for conformal prediction under an exponential tilt."""
EOF
cat > tiltlab/world.py <<'EOF'
from dataclasses import dataclass
import numpy as np

@dataclass(frozen=True)
class Sample:
    x: np.ndarray
    y: np.ndarray

@dataclass(frozen=True)
class StepWorld:
    """y = x1 + cos(2 x2) + sigma(x1) e, with sigma 0.15 left of zero and 0.75 right of it."""
    beta: float = 0.0

    def inputs(self, n, rng):
        first = rng.random(n)
        if self.beta:
            lo, hi = np.exp(-self.beta), np.exp(self.beta)
            first = np.log(lo + first * (hi - lo)) / self.beta
        else:
            first = 2 * first - 1
        return np.stack([first, rng.uniform(-1, 1, n)], axis=1)

    def __call__(self, n, rng):
        x = self.inputs(n, rng)
        sd = np.where(x[:, 0] < 0, 0.15, 0.75)
        return Sample(x, x[:, 0] + np.cos(2 * x[:, 1]) + sd * rng.normal(size=n))

    def ratio(self, x):
        """Density of the tilted inputs over the uniform one (normalised)."""
        if not self.beta:
            return np.ones(len(x))
        return np.exp(self.beta * x[:, 0]) * self.beta / np.sinh(self.beta)
EOF
cat > tiltlab/learn.py <<'EOF'
import numpy as np
from scipy.optimize import minimize
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist
from scipy.linalg import solve

class Ridge:
    def __init__(self, x, y, h=0.6, lam=0.003):
        self.x, self.h, self.mu = x, h, y.mean()
        self.a = solve(self.k(x) + lam * len(y) * np.eye(len(y)), y - self.mu, assume_a="pos")
    def k(self, z):
        return np.exp(-0.5 * cdist(z, self.x, "sqeuclidean") / self.h ** 2)
    def __call__(self, z):
        return self.mu + self.k(z) @ self.a

def cross_residuals(x, y, rng, folds=5):
    parts, r = np.array_split(rng.permutation(len(y)), folds), np.zeros(len(y))
    for p in parts:
        rest = np.setdiff1d(np.arange(len(y)), p)
        r[p] = np.abs(y[p] - Ridge(x[rest], y[rest])(x[p]))
    return r

class Neighbours:
    def __init__(self, x, r, k=15, gamma=0.1):
        self.tree, self.r, self.k, self.gamma = KDTree(x), r, k, gamma
    def __call__(self, z):
        return (1 - self.gamma) * self.r[self.tree.query(z, self.k)[1]].mean(axis=1) + self.gamma * self.r.mean()

def constant(z):
    return np.ones(len(z))

class OddsRatio:
    """Penalised logistic regression, source (0) against target (1), by L-BFGS."""
    def __init__(self, source, target, penalty=1e-3):
        z = np.hstack([np.ones((len(source) + len(target), 1)), np.vstack([source, target])])
        sign = np.r_[-np.ones(len(source)), np.ones(len(target))]
        def loss(w):
            m = sign * (z @ w)
            p = 1 / (1 + np.exp(m))
            return np.logaddexp(0, -m).mean() + penalty / 2 * w[1:] @ w[1:], -(z * (sign * p)[:, None]).mean(0) + penalty * np.r_[0, w[1:]]
        self.w = minimize(loss, np.zeros(z.shape[1]), jac=True, method="L-BFGS-B", options={"gtol": 1e-9, "ftol": 1e-14}).x
        self.c = len(source) / len(target)
    def __call__(self, z):
        return self.c * np.exp(self.w[0] + z @ self.w[1:])
EOF
cat > tiltlab/conformal.py <<'EOF'
import numpy as np

def threshold(scores, w, w_new, level):
    """Smallest score whose weighted rank, counting the new point at infinity, reaches `level`."""
    order = np.argsort(scores)
    mass = np.cumsum(w[order])
    place = np.searchsorted(mass, level * (mass[-1] + w_new) * (1 - 1e-12))
    return np.append(scores[order], scores.max())[place]
EOF
cat > tiltlab/tests/test_all.py <<'EOF'
import unittest
import numpy as np
from tiltlab.world import StepWorld
from tiltlab.learn import OddsRatio, Neighbours, Ridge
from tiltlab.conformal import threshold

class T(unittest.TestCase):
    def test_ratio_has_mean_one(self):
        x = StepWorld().inputs(200000, np.random.default_rng(0))
        self.assertAlmostEqual(StepWorld(2.0).ratio(x).mean(), 1.0, places=1)
    def test_mean_of_tilt(self):
        b = 3.0
        x = StepWorld(b).inputs(100000, np.random.default_rng(1))[:, 0]
        self.assertAlmostEqual(x.mean(), 1 / np.tanh(b) - 1 / b, places=2)
    def test_threshold_unweighted_rank(self):
        s = np.arange(1.0, 100.0)
        self.assertEqual(threshold(s, np.ones(99), np.ones(1), 0.9)[0], 90.0)
    def test_threshold_prefers_heavy(self):
        s = np.arange(10.0)
        self.assertLess(threshold(s, 10.0 - s, np.ones(1), .8)[0], threshold(s, 1.0 + s, np.ones(1), .8)[0])
    def test_odds_ratio_recovers_tilt(self):
        rng = np.random.default_rng(2)
        o = OddsRatio(StepWorld().inputs(20000, rng), StepWorld(1.0).inputs(20000, rng), 0.0)
        self.assertAlmostEqual(o.w[1], 1.0, delta=0.1)
    def test_neighbours_of_constant(self):
        x = np.random.default_rng(3).random((40, 2))
        np.testing.assert_allclose(Neighbours(x, np.full(40, .3))(x), .3)
    def test_ridge_smooth(self):
        x = np.linspace(-1, 1, 60)[:, None]
        self.assertLess(np.abs(Ridge(x, np.sin(x[:, 0]), lam=1e-9)(x) - np.sin(x[:, 0])).max(), 1e-3)

if __name__ == "__main__":
    unittest.main()
EOF
cat > tools/run_tilt.py <<'EOF'
import os, sys, json
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import numpy as np
from tiltlab.world import StepWorld
from tiltlab import learn
from tiltlab.conformal import threshold

REPS, BETAS, SEED = 20, [0.0, 1.0, 2.0, 3.0], 1234
sums = {}
for rep in range(REPS):
    rng = np.random.default_rng((SEED, rep))
    train, cal = StepWorld()(400, rng), StepWorld()(400, rng)
    f = learn.Ridge(train.x, train.y)
    scale = {"split": learn.constant, "nsc": learn.Neighbours(train.x, learn.cross_residuals(train.x, train.y, rng))}
    for beta in BETAS:
        world = StepWorld(beta)
        test, extra = world(750, rng), world.inputs(300, rng)
        ratio = {"none": learn.constant, "estimated": learn.OddsRatio(train.x, extra), "oracle": world.ratio}
        for m, s in scale.items():
            scores = np.abs(cal.y - f(cal.x)) / s(cal.x)
            for w, g in ratio.items():
                half = threshold(scores, g(cal.x), g(test.x), .9) * s(test.x)
                sums.setdefault(m, {}).setdefault(w, {}).setdefault(str(beta), []).append(
                    [100 * np.mean(np.abs(test.y - f(test.x)) <= half), 2 * half.mean()])
out = {m: {w: {b: {"coverage_percent": float(np.mean(v, 0)[0]), "width": float(np.mean(v, 0)[1]), "runs": len(v)}
       for b, v in d.items()} for w, d in e.items()} for m, e in sums.items()}
json.dump(out, open("tilt_results.json", "w"), indent=2)
print(json.dumps(out, indent=2))
EOF
cat > tools/to_response.py <<'EOF'
import json, sys
res = json.load(open("tilt_results.json"))
flat = {f"{m}.{w}.beta{float(b):g}.{q}": v[q] for m, e in res.items() for w, d in e.items() for b, v in d.items() for q in ("coverage_percent", "width")}
frame = json.load(open(sys.argv[1]))
frame["conclusion"]["numbers"] = flat
json.dump(frame, open("response.json", "w"), indent=2)
EOF
cat > tools/frame.json <<'EOF'
{"design": {"constant": {"problem": ["Step"], "repetitions": ["20"], "training / calibration / test / unlabelled": ["400 / 400 / 750 / 300"], "level": ["0.9"],
 "kernel ridge": ["Gaussian kernel, bandwidth 0.6, ridge 0.003 n"], "neighbour scale": ["mean absolute 5-fold residual of 15 nearest training points, shrunk by 0.1 to the global mean"]},
 "independent": {"method": ["split", "nsc"], "weights": ["none", "estimated (logistic regression)", "oracle (true ratio)"], "beta": ["0", "1", "2", "3"]},
 "dependent": {"coverage_percent": ["share of test points covered x 100, mean of runs"], "width": ["mean of interval widths, mean of runs"]},
 "procedure": "Own implementation with unit tests (tiltlab). Per run one training set, one calibration set and for each beta one tilted test set and 300 tilted unlabelled inputs; all six combinations are evaluated on the same data."},
 "conclusion": {"text": "Tilting towards the noisy half breaks unweighted Split: its coverage drops monotonically to roughly 80% at beta 3. NSC without weights suffers much less (it stays above 86%) because its width adapts. Either kind of weight restores coverage to about nominal for both methods, so for Step a plain logistic ratio from 300 unlabelled inputs is as good as knowing the truth. In return widths go up with beta. NSC is distinctly narrower at beta 0 and still at beta 1, but not at beta 3, where almost all points are noisy and nothing is left to adapt to."},
 "outputs": ["tilt_results.json"]}
EOF
cat > reproduce.sh <<'EOF'
#!/bin/bash
set -e
python -m unittest -q tiltlab.tests.test_all
python tools/run_tilt.py
EOF
touch tiltlab/tests/__init__.py
bash reproduce.sh
python tools/to_response.py tools/frame.json
