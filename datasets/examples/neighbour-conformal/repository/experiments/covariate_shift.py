"""Coverage under covariate shift, with and without estimated density ratios (needs the ratiokit submodule)."""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "third_party" / "ratiokit")]

from nsc import conformal, metrics
from nsc.data import sample
from nsc.experiment import load, prepare, save
from nsc.scale import ConstantScale, NeighbourScale

import numpy as np
from ratiokit import LogisticRatio

CASES = (
    ("split", "none"),
    ("split", "estimated"),
    ("nsc", "none"),
    ("nsc", "estimated"),
    ("nsc", "oracle"),
)


def ratios(kind, trial, tilt, settings, rng):
    """Density ratios at the calibration and test points: none, estimated or true."""
    if kind == "none":
        return None, None
    if kind == "oracle":
        return np.exp(tilt * trial["x_cal"][:, 0]), np.exp(tilt * trial["x_test"][:, 0])
    unlabelled, _, _ = sample(settings["problem"], settings["n_unlabelled"], rng, tilt)
    ratio = LogisticRatio(penalty=settings["penalty"]).fit(trial["x"], unlabelled)
    return ratio(trial["x_cal"]), ratio(trial["x_test"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default="configs/shift.yaml")
    parser.add_argument("--output", default="results/covariate_shift.json")
    args = parser.parse_args()
    settings = load(args.config)

    records = []
    for tilt in settings["tilts"]:
        rows = {case: [] for case in CASES}
        for repetition in range(settings["repetitions"]):
            trial = prepare(settings["problem"], repetition, settings, tilt)
            scales = {
                "split": ConstantScale(),
                "nsc": NeighbourScale(
                    trial["x"], trial["residuals"], settings["neighbours"], settings["shrinkage"]
                ),
            }
            for (method, kind), values in rows.items():
                rng = np.random.default_rng([settings["seed"], repetition, 1])
                weights, test_weights = ratios(kind, trial, tilt, settings, rng)
                half = conformal.half_widths(
                    trial["model"], scales[method], trial["x_cal"], trial["y_cal"], trial["x_test"],
                    settings["level"], weights, test_weights,
                )
                values.append([
                    metrics.coverage(trial["y_test"], trial["centre"], half),
                    2.0 * float(half.mean()),
                ])
        print(f"{settings['problem']}, test inputs tilted by {tilt:.1f}")
        for (method, kind), values in rows.items():
            mean = np.mean(values, axis=0)
            print(f"  {method:5s}  weights: {kind:9s}  coverage {mean[0]:.1f}  width {mean[1]:.2f}")
            records.append({
                "tilt": tilt, "method": method, "weights": kind, "coverage": round(mean[0], 4),
                "width": round(mean[1], 5),
            })
    save(args.output, records)


if __name__ == "__main__":
    main()
