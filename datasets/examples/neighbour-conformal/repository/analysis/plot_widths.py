"""Plot interval widths along the first input (needs matplotlib)."""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from nsc import conformal
from nsc.experiment import load, prepare
from nsc.scale import NeighbourScale


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", default="wave")
    parser.add_argument("--out", default="widths.pdf")
    args = parser.parse_args()

    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    settings = load(Path(__file__).resolve().parent.parent / "configs" / "main.yaml")
    trial = prepare(args.problem, 0, settings)
    local = NeighbourScale(trial["x"], trial["residuals"], settings["neighbours"], settings["shrinkage"])
    half = conformal.half_widths(
        trial["model"], local, trial["x_cal"], trial["y_cal"], trial["x_test"], settings["level"]
    )
    order = np.argsort(trial["x_test"][:, 0])
    plt.plot(trial["x_test"][order, 0], 2 * half[order], lw=0.8)
    plt.xlabel("first input")
    plt.ylabel("interval width")
    plt.savefig(args.out)


if __name__ == "__main__":
    main()
