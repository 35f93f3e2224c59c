#!/bin/bash
# everything from first principles, numpy only
cat > study.py <<'EOF'
import os
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import csv
import numpy as np

SIZES = [25, 50, 100, 200, 400, 800]
N, M, REPS, ALPHA = 400, 750, 20, 0.1
H, LAM, K, GAMMA, FOLDS = 0.6, 0.003, 15, 0.1, 5      # as in configs/defaults.yaml


def draw(n, g):
    X = 2 * g.random((n, 2)) - 1
    sd = 0.1 + 0.7 * X[:, 0] ** 2
    return X, np.sin(3 * X[:, 0]) + X[:, 1] / 2 + sd * g.normal(size=n)


def sqd(A, B):
    return np.maximum((A * A).sum(1)[:, None] + (B * B).sum(1)[None, :] - 2 * A @ B.T, 0)


def krr(X, y):
    b = y.mean()
    a = np.linalg.solve(np.exp(-sqd(X, X) / (2 * H * H)) + LAM * len(y) * np.eye(len(y)), y - b)
    return lambda Z: b + np.exp(-sqd(Z, X) / (2 * H * H)) @ a


def oof(X, y, g):
    r = np.zeros(len(y))
    for part in np.array_split(g.permutation(len(y)), FOLDS):
        keep = np.setdiff1d(np.arange(len(y)), part)
        r[part] = np.abs(y[part] - krr(X[keep], y[keep])(X[part]))
    return r


def neighbour_scale(X, r):
    def s(Z):
        idx = np.argpartition(sqd(Z, X), K - 1, axis=1)[:, :K]
        return (1 - GAMMA) * r[idx].mean(1) + GAMMA * r.mean()
    return s


def conformal_q(s):
    k = int(np.ceil((1 - ALPHA) * (len(s) + 1)))
    return np.inf if k > len(s) else np.partition(s, k - 1)[k - 1]


out = np.zeros((REPS, len(SIZES), 2, 2))       # rep, size, method, (coverage, width)
for rep, ss in enumerate(np.random.SeedSequence(20240611).spawn(REPS)):
    g = np.random.default_rng(ss)
    X, y = draw(N, g)
    XC, yC = draw(max(SIZES), g)               # smaller calibration sets are prefixes of this one
    XT, yT = draw(M, g)
    f = krr(X, y)
    nsc = neighbour_scale(X, oof(X, y, g))
    err_c, err_t = np.abs(yC - f(XC)), np.abs(yT - f(XT))
    for m, (sc, st) in enumerate([(np.ones(len(XC)), np.ones(M)), (nsc(XC), nsc(XT))]):
        for j, n in enumerate(SIZES):
            half = conformal_q((err_c / sc)[:n]) * st
            out[rep, j, m] = np.mean(err_t <= half), np.mean(2 * half)

mean, se = out.mean(0), out.std(0, ddof=1) / np.sqrt(REPS)
with open("calibration_curve.csv", "w", newline="") as fh:
    w = csv.writer(fh)
    w.writerow(["n_cal", "method", "coverage", "coverage_se", "width", "width_se"])
    for j, n in enumerate(SIZES):
        for m, name in enumerate(["Split", "NSC"]):
            w.writerow([n, name, repr(float(mean[j, m, 0])), repr(float(se[j, m, 0])), repr(float(mean[j, m, 1])), repr(float(se[j, m, 1]))])
            print(n, name, *mean[j, m], "+-", *se[j, m].round(4))
EOF
printf 'set -e\npython study.py\n' > reproduce.sh
bash reproduce.sh || exit 1
cat > write_response.py <<'EOF'
import csv, json
rows = list(csv.DictReader(open("calibration_curve.csv")))
num = {}
for r in rows:
    num["cov_%s_n%s" % (r["method"], r["n_cal"])] = float(r["coverage"])
    num["wid_%s_n%s" % (r["method"], r["n_cal"])] = float(r["width"])
json.dump(dict(
    design=dict(
        constant={"data": ["Wave, x uniform on [-1,1]^2"], "n_train": ["400"], "n_test": ["750"], "alpha": ["0.1"], "reps": ["20"],
                  "kernel": ["Gaussian, bandwidth 0.6, ridge 0.003 n"], "NSC": ["15 neighbours, shrinkage 0.1, 5-fold residuals"]},
        independent={"n_cal": ["25", "50", "100", "200", "400", "800"], "method": ["Split", "NSC"]},
        dependent={"cov": ["fraction of test y inside the interval (0-1), averaged over 20 reps"],
                   "wid": ["mean interval length on the test points, averaged over 20 reps"]},
        procedure="Own NumPy implementation. In each repetition one training set, one pool of 800 calibration points and one test set are drawn; "
                  "for n_cal < 800 the first n_cal points of the pool are used, so sizes and methods are paired."),
    conclusion=dict(
        text="Coverage is not what separates the two: at every calibration size both are within a bit over two points of 0.90; NSC happens to "
             "be lower by up to 1.5 points in my draws, which is no more than 20 repetitions leave open. Width is: NSC is shorter in all six settings, by "
             "about a sixth to a fifth, and by a quarter at n_cal = 25. More calibration data mainly removes the excess width of the very small sets (n_cal = 25); "
             "from a hundred points on the mean width is practically flat for both.",
        numbers=num),
    outputs=["calibration_curve.csv"]), open("response.json", "w"), indent=1)
EOF
python write_response.py
