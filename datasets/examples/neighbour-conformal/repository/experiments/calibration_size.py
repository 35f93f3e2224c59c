"""Spread of the coverage and width as a function of the number of calibration points."""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from experiments.main_table import half_widths
from nsc import metrics
from nsc.experiment import load, prepare, save

import numpy as np


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default="configs/calibration.yaml")
    parser.add_argument("--output", default="results/calibration_size.json")
    args = parser.parse_args()
    settings = load(args.config)

    records = []
    print(f"{settings['problem']}: coverage (mean and standard deviation over repetitions, %) and width")
    for size in settings["sizes"]:
        rows = {method: [] for method in settings["methods"]}
        for repetition in range(settings["repetitions"]):
            sized = dict(settings, n_cal=size)
            trial = prepare(settings["problem"], repetition, sized)
            for method in settings["methods"]:
                half = half_widths(method, trial, sized)
                rows[method].append([
                    metrics.coverage(trial["y_test"], trial["centre"], half),
                    2.0 * float(half.mean()),
                ])
        line = f"n_cal={size:4d}"
        for method, values in rows.items():
            mean, std = np.mean(values, axis=0), np.std(values, axis=0, ddof=1)
            line += f"  {method}: {mean[0]:.1f} ({std[0]:.1f}), {mean[1]:.2f}"
            records.append({
                "n_cal": size, "method": method, "coverage": round(mean[0], 4), "coverage_std": round(std[0], 4),
                "width": round(mean[1], 5),
            })
        print(line)
    save(args.output, records)


if __name__ == "__main__":
    main()
