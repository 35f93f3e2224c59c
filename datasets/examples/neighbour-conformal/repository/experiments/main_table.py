"""Coverage, width and worst-fifth coverage of all methods on all problems (main table)."""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from nsc import conformal, metrics, scale
from nsc.experiment import load, prepare, save

import numpy as np


def half_widths(method, trial, settings):
    """Half widths of one method on one prepared repetition."""
    if method == "mondrian":
        return conformal.mondrian_half_widths(
            trial["model"], trial["x_cal"], trial["y_cal"], trial["x_test"], settings["level"], settings["groups"]
        )
    if method == "split":
        local = scale.ConstantScale()
    elif method == "linear":
        local = scale.LinearScale(trial["x"], trial["residuals"])
    elif method == "nsc":
        local = scale.NeighbourScale(
            trial["x"], trial["residuals"], settings["neighbours"], settings["shrinkage"]
        )
    else:
        raise ValueError(f"unknown method {method!r}")
    return conformal.half_widths(
        trial["model"], local, trial["x_cal"], trial["y_cal"], trial["x_test"], settings["level"]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default="configs/main.yaml")
    parser.add_argument("--output", default="results/main_table.json")
    args = parser.parse_args()
    settings = load(args.config)

    records = []
    for problem in settings["problems"]:
        found = {method: [] for method in settings["methods"]}
        for repetition in range(settings["repetitions"]):
            trial = prepare(problem, repetition, settings)
            for method in settings["methods"]:
                half = half_widths(method, trial, settings)
                found[method].append([
                    metrics.coverage(trial["y_test"], trial["centre"], half),
                    2.0 * float(half.mean()),
                    metrics.worst_fifth_coverage(trial["y_test"], trial["centre"], half, trial["sigma"]),
                ])
        print(f"{problem} ({settings['repetitions']} repetitions, target {100 * settings['level']:.0f}%)")
        for method, rows in found.items():
            mean, std = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1)
            print(
                f"  {method:9s} coverage {mean[0]:.1f}  width {mean[1]:.2f} ± {std[1]:.2f}  "
                f"worst-fifth coverage {mean[2]:.1f}"
            )
            records.append({
                "problem": problem, "method": method, "coverage": round(mean[0], 4), "width": round(mean[1], 5),
                "width_std": round(std[1], 5), "worst_fifth": round(mean[2], 4),
            })
    save(args.output, records)


if __name__ == "__main__":
    main()
