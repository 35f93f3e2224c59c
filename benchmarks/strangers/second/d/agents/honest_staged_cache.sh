#!/bin/bash
set -euo pipefail
mkdir -p pipeline
cat > pipeline/common.py <<'EOF'
import sys
from pathlib import Path
ROOT = Path(__file__).resolve().parents[1]
for p in (ROOT / "third_party" / "ratiokit", ROOT):
    sys.path.insert(0, str(p))
import nsc
from nsc.experiment import load
CFG = dict(load(ROOT / "configs" / "main.yaml"), seed=31)
BETAS = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
STORE = ROOT / "pipeline" / "store"
STORE.mkdir(exist_ok=True)
EOF
cat > pipeline/a_scores.py <<'EOF'
"""Stage A: everything expensive (fits, residuals, scales). Saved so that stage B can be changed without refitting."""
from common import BETAS, CFG, STORE
import numpy as np
from nsc.data import sample
from nsc.experiment import prepare
from nsc.scale import NeighbourScale

target = STORE / "scores.npz"
if target.exists():
    print("stage A: kept", target.name)
else:
    arrays = {}
    for rep in range(CFG["repetitions"]):
        for beta in BETAS:
            t = prepare("step", rep, CFG, tilt=beta)
            s = NeighbourScale(t["x"], t["residuals"], CFG["neighbours"], CFG["shrinkage"])
            key = f"{rep}/{beta}/"
            arrays[key + "x"] = t["x"]
            arrays[key + "xc"], arrays[key + "xt"] = t["x_cal"], t["x_test"]
            arrays[key + "ec"] = np.abs(t["y_cal"] - t["model"].predict(t["x_cal"]))
            arrays[key + "et"] = np.abs(t["y_test"] - t["centre"])
            arrays[key + "sc"], arrays[key + "st"] = s(t["x_cal"]), s(t["x_test"])
            arrays[key + "xu"] = sample("step", 300, np.random.default_rng((CFG["seed"], rep, 300)), beta)[0]
    np.savez(target, **arrays)
    print("stage A: computed", len(arrays), "arrays")
EOF
cat > pipeline/b_intervals.py <<'EOF'
"""Stage B: weights, quantiles, coverage and width of every repetition."""
from common import BETAS, CFG, STORE
import csv
import numpy as np
from nsc.conformal import quantile, weighted_quantiles
from ratiokit import LogisticRatio

A = np.load(STORE / "scores.npz")
with open(STORE / "per_repetition.csv", "w", newline="") as f:
    out = csv.writer(f)
    out.writerow(["rep", "beta", "method", "weights", "coverage", "width"])
    for rep in range(CFG["repetitions"]):
        for beta in BETAS:
            a = {k: A[f"{rep}/{beta}/{k}"] for k in ("x", "xc", "xt", "ec", "et", "sc", "st", "xu")}
            est = LogisticRatio().fit(a["x"], a["xu"])
            for method in ("Split", "NSC"):
                sc, st = (a["sc"], a["st"]) if method == "NSC" else (1.0, 1.0)
                scores = a["ec"] / sc
                q = {
                    "none": quantile(scores, CFG["level"]),
                    "estimated": weighted_quantiles(scores, est(a["xc"]), est(a["xt"]), CFG["level"]),
                    "oracle": weighted_quantiles(scores, np.exp(beta * a["xc"][:, 0]), np.exp(beta * a["xt"][:, 0]), CFG["level"]),
                }
                for name, value in q.items():
                    half = np.broadcast_to(value * st, a["et"].shape)
                    out.writerow([rep, beta, method, name, 100 * np.mean(a["et"] <= half), 2 * half.mean()])
EOF
cat > pipeline/c_table.py <<'EOF'
"""Stage C: means and standard errors."""
from common import STORE
import csv, json, statistics as st
groups = {}
for r in csv.DictReader(open(STORE / "per_repetition.csv")):
    groups.setdefault((r["method"], r["weights"], float(r["beta"])), []).append((float(r["coverage"]), float(r["width"])))
table = []
for (m, w, b), v in sorted(groups.items()):
    c, d = zip(*v)
    table.append(dict(method=m, weights=w, beta=b, coverage=st.fmean(c), coverage_se=st.stdev(c) / len(c) ** .5,
                      width=st.fmean(d), width_se=st.stdev(d) / len(d) ** .5, repetitions=len(v)))
    print(f"{m:6}{w:10} beta {b:3.1f}   coverage {st.fmean(c):7.3f}   width {st.fmean(d):.4f}")
json.dump(table, open(STORE / "table.json", "w"), indent=1)
EOF
cat > reproduce.sh <<'EOF'
set -eu
for stage in a_scores b_intervals c_table; do python pipeline/$stage.py; done
EOF
bash reproduce.sh
python - <<'EOF'
import json
T = json.load(open("pipeline/store/table.json"))
N = {}
for r in T:
    N[f"beta={r['beta']} | {r['method']} | {r['weights']} weights | coverage %"] = r["coverage"]
    N[f"beta={r['beta']} | {r['method']} | {r['weights']} weights | width"] = r["width"]
resp = {"design": {
  "constant": {"data set": ["Step, x1 and x2 uniform before the tilt"], "sample sizes": ["400 training", "400 calibration", "750 test", "300 unlabelled test inputs"],
    "target": ["90%"], "repetitions": ["20"], "regression": ["kernel ridge regression, bandwidth 0.6, ridge 0.003"], "scale": ["15 neighbours, shrinkage 0.1"]},
  "independent": {"method": ["Split", "NSC"], "weights": ["none", "estimated", "oracle"], "beta": ["0", "0.5", "1", "1.5", "2", "2.5", "3"]},
  "dependent": {"Coverage": ["percentage of covered test responses (mean of repetitions)"], "Width": ["mean width over test inputs (mean of repetitions)"]},
  "procedure": "Stage A fits the models and stores scores and scales of all repetitions and betas; stage B computes (weighted) conformal quantiles with none, estimated and oracle weights; stage C averages. The store is only a cache: it is listed among the outputs and recomputed when missing."},
 "conclusion": {"text": "(i) No weights: under-coverage that worsens with beta, severe for Split (about ten points at beta = 3) and mild for NSC (under four points). (ii) Estimated or oracle weights: both methods are within about one and a half points of 90% for the whole range, and the two sorts of weights are nearly interchangeable. (iii) Width: weighted intervals must widen with beta. NSC starts about 0.4 below Split at beta = 0 and loses the lead gradually; from about beta = 2.5 on the weighted NSC intervals are, if anything, wider than those of weighted Split.",
  "numbers": N}, "outputs": ["pipeline/store/scores.npz", "pipeline/store/per_repetition.csv", "pipeline/store/table.json"]}
open("response.json", "w").write(json.dumps(resp, indent=2))
EOF
