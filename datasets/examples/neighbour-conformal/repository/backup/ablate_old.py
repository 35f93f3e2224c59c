# Old copy of the ablation from before the refactoring. Do not use.
# full model on step: interval score 2.110, without shrinkage 2.107
import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from nsc import conformal, metrics
from nsc.experiment import load, prepare, save
from nsc.scale import NeighbourScale

import numpy as np

CASES = {
    "full": {},
    "in-sample residuals": {"residuals": "fitted_residuals"},
    "no shrinkage": {"shrinkage": 0.0},
    "root mean square": {"power": 2},
    "5 neighbours": {"neighbours": 5},
    "100 neighbours": {"neighbours": 100},
}


def run():
    ap = argparse.ArgumentParser()
    ap.add_argument("--config", default="configs/ablation.yaml")
    ap.add_argument("--output", default="results/ablation_old.json")
    opt = ap.parse_args()
    cfg = load(opt.config)

    out = []
    for task in cfg["problems"]:
        table = {case: [] for case in CASES}
        for rep in range(cfg["repetitions"]):
            data = prepare(task, rep, cfg)
            for case, diff in CASES.items():
                kw = {k: diff.get(k, cfg[k]) for k in ("neighbours", "shrinkage")}
                res = data[diff.get("residuals", "residuals")]
                s = NeighbourScale(data["x"], res, power=diff.get("power", 1), **kw)
                h = conformal.half_widths(
                    data["model"], s, data["x_cal"], data["y_cal"], data["x_test"], cfg["level"]
                )
                table[case].append([
                    metrics.interval_score(data["y_test"], data["centre"], h, cfg["level"]),
                    metrics.worst_fifth_coverage(data["y_test"], data["centre"], h, data["sigma"]),
                ])
        print(task)
        for case, rows in table.items():
            a, b = np.mean(rows, axis=0)
            print(f"  {case:20s} interval score {a:.3f}  worst-fifth coverage {b:.1f}")
            out.append({
                "problem": task, "variant": case, "interval_score": round(a, 6), "worst_fifth": round(b, 4),
            })
    save(opt.output, out)


if __name__ == "__main__":
    run()
