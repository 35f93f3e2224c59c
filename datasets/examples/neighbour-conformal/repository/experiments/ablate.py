"""Ablation of the neighbour scale: residuals, shrinkage, averaging and neighbourhood size."""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from nsc import conformal, metrics
from nsc.experiment import load, prepare, save
from nsc.scale import NeighbourScale

import numpy as np

VARIANTS = {
    "full": {},
    "in-sample residuals": {"residuals": "fitted_residuals"},
    "no shrinkage": {"shrinkage": 0.0},
    "root mean square": {"power": 2},
    "5 neighbours": {"neighbours": 5},
    "100 neighbours": {"neighbours": 100},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default="configs/ablation.yaml")
    parser.add_argument("--output", default="results/ablation.json")
    args = parser.parse_args()
    settings = load(args.config)

    records = []
    for problem in settings["problems"]:
        scores = {name: [] for name in VARIANTS}
        for repetition in range(settings["repetitions"]):
            trial = prepare(problem, repetition, settings)
            for name, changes in VARIANTS.items():
                options = {key: changes.get(key, settings[key]) for key in ("neighbours", "shrinkage")}
                residuals = trial[changes.get("residuals", "residuals")]
                local = NeighbourScale(trial["x"], residuals, power=changes.get("power", 1), **options)
                half = conformal.half_widths(
                    trial["model"], local, trial["x_cal"], trial["y_cal"], trial["x_test"], settings["level"]
                )
                scores[name].append([
                    metrics.interval_score(trial["y_test"], trial["centre"], half, settings["level"]),
                    metrics.worst_fifth_coverage(trial["y_test"], trial["centre"], half, trial["sigma"]),
                ])
        print(problem)
        for name, rows in scores.items():
            score, worst = np.mean(rows, axis=0)
            print(f"  {name:20s} interval score {score:.3f}  worst-fifth coverage {worst:.1f}")
            records.append({
                "problem": problem, "variant": name, "interval_score": round(score, 6), "worst_fifth": round(worst, 4),
            })
    save(args.output, records)


if __name__ == "__main__":
    main()
