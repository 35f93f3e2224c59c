#!/bin/bash
set -e
mkdir -p nstudy tools results
cat > nstudy/__init__.py <<'EOF'
EOF
cat > nstudy/core.py <<'EOF'
"""Sample-size study: paired trials over n, and statistics on them."""
import sys, pathlib
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from caw.config import load
from caw.evaluation import accuracy, draw, fit
import numpy as np

ARMS = ("plain", "enn", "caw")


def accuracies(n, seeds, base_seed, problem="spirals", kind="asymmetric", rho=0.4):
    """Array (seed, arm) of test accuracies in percent."""
    cfg = load(overrides=(f"n_train={n}", f"base_seed={base_seed}"))
    table = np.empty((len(seeds), len(ARMS)))
    for row, seed in zip(table, seeds):
        t = draw(problem, kind, rho, seed, cfg)
        row[:] = [accuracy(t, fit(arm, t, cfg)) for arm in ARMS]
    return table


def bootstrap_interval(x, draws=4000, level=0.95, seed=0):
    """Percentile interval of the mean."""
    g = np.random.default_rng(seed)
    means = x[g.integers(0, len(x), (draws, len(x)))].mean(1)
    return tuple(np.quantile(means, [(1 - level) / 2, (1 + level) / 2]))
EOF
cat > nstudy/test_core.py <<'EOF'
import unittest, numpy as np
from nstudy.core import accuracies, bootstrap_interval, draw, load


class Trials(unittest.TestCase):
    def setUp(self):
        self.cfg = load(overrides=("n_train=250",))

    def test_sizes(self):
        t = draw("spirals", "asymmetric", 0.4, 3, self.cfg)
        self.assertEqual(t["train"].shape, (250, 200))
        self.assertEqual(t["test"].shape, (1500, 200))

    def test_only_positive_labels_flip(self):
        t = draw("spirals", "asymmetric", 0.4, 3, self.cfg)
        self.assertTrue((t["noisy"][t["clean"] < 0] == -1).all())
        share = np.mean(t["noisy"][t["clean"] > 0] == -1)
        self.assertTrue(0.25 < share < 0.55, share)

    def test_test_labels_are_balanced_hence_clean(self):
        t = draw("spirals", "asymmetric", 0.4, 3, self.cfg)
        self.assertLess(abs(np.mean(t["y_test"] > 0) - 0.5), 0.05)

    def test_repeatable(self):
        np.testing.assert_array_equal(accuracies(200, [5], 1), accuracies(200, [5], 1))

    def test_interval_contains_mean(self):
        x = np.arange(20.0)
        lo, hi = bootstrap_interval(x)
        self.assertTrue(lo < x.mean() < hi)


if __name__ == "__main__":
    unittest.main()
EOF
cat > tools/run_nstudy.py <<'EOF'
import csv, pathlib, sys
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from nstudy.core import ARMS, accuracies, bootstrap_interval

out = pathlib.Path("results"); out.mkdir(exist_ok=True)
raw, means, diffs = [], [], []
for n in (200, 400, 800, 1600):
    a = accuracies(n, range(10), base_seed=4711)
    for s, row in enumerate(a):
        raw.append([n, s, *map(repr, map(float, row))])
    for arm, col in zip(ARMS, a.T):
        lo, hi = bootstrap_interval(col)
        means.append([n, arm, repr(float(col.mean())), f"{lo:.2f}", f"{hi:.2f}"])
        print(f"n={n:5d} {arm:6s} {float(col.mean())!r:20s} 95% [{lo:.2f}, {hi:.2f}]")
    for name, d in (("caw-plain", a[:, 2] - a[:, 0]), ("caw-enn", a[:, 2] - a[:, 1]), ("enn-plain", a[:, 1] - a[:, 0])):
        lo, hi = bootstrap_interval(d)
        diffs.append([n, name, repr(float(d.mean())), f"{lo:.2f}", f"{hi:.2f}", int((d > 0).sum())])
        print(f"n={n:5d} {name:10s} {d.mean():+.3f} [{lo:+.2f}, {hi:+.2f}] positive in {int((d > 0).sum())}/10")
for name, head, rows in (("nstudy_raw", ["n", "seed", *ARMS], raw), ("nstudy_means", ["n", "method", "mean", "lo", "hi"], means),
                         ("nstudy_differences", ["n", "pair", "mean", "lo", "hi", "wins"], diffs)):
    with open(out / f"{name}.csv", "w", newline="") as f:
        csv.writer(f).writerows([head, *rows])
EOF
cat > tools/respond_nstudy.py <<'EOF'
import csv, json
M = list(csv.DictReader(open("results/nstudy_means.csv")))
D = {(r["n"], r["pair"]): r for r in csv.DictReader(open("results/nstudy_differences.csv"))}
num = {f"accuracy.{r['method']}.n{r['n']}": float(r["mean"]) for r in M}
num.update({f"difference.{p}.n{n}": float(r["mean"]) for (n, p), r in D.items()})
lo = min(float(D[n, p]["lo"]) for n in ("200", "400", "800", "1600") for p in ("caw-plain", "caw-enn"))
assert lo > 0
words = []
for n in ("200", "400", "800", "1600"):
    r = D[n, "enn-plain"]
    w = "better than" if float(r["lo"]) > 0 else "worse than" if float(r["hi"]) < 0 else "not distinguishable from"
    words.append(f"{w} Plain at n={n} ({float(r['mean']):+.1f} points, 95% interval {r['lo']} to {r['hi']})")
text = ("At each of the four sample sizes CAW beats both other methods and the 95% bootstrap interval of the paired difference excludes zero. ENN is "
        + "; ".join(words) + ". All methods are more accurate at n=1600 than at n=200.")
print(text)
json.dump({"design": {
    "constant": {"problem": ["spirals"], "label noise": ["asymmetric 0.4"], "test points": ["1500 clean"], "base seed": ["4711"], "seeds": ["10 (0 to 9)"],
                 "features, ridge, folds, rounds, neighbours": ["200, 0.002, 5, 4, 9"]},
    "independent": {"sample size": ["200", "400", "800", "1600"], "method": ["Plain", "ENN", "CAW"]},
    "dependent": {"test accuracy": ["percent, mean over the seeds, with bootstrap interval"], "paired differences": ["percentage points, mean over the seeds"]},
    "procedure": "Unit tests of the trials run first. All methods are fitted to identical trials; means and paired differences are computed over ten seeds."},
  "conclusion": {"text": text, "numbers": num},
  "outputs": ["results/nstudy_raw.csv", "results/nstudy_means.csv", "results/nstudy_differences.csv"]}, open("response.json", "w"), indent=2)
EOF
cat > reproduce.sh <<'EOF'
set -e
export OPENBLAS_NUM_THREADS=1
python -m unittest nstudy.test_core
python tools/run_nstudy.py
EOF
bash reproduce.sh
python tools/respond_nstudy.py
