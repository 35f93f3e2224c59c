"""Scatter plot of the training points, coloured by their agreement weight (needs matplotlib)."""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from caw.agreement import fit_caw
from caw.config import load
from caw.evaluation import draw


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", default="rings")
    parser.add_argument("--rate", type=float, default=0.25)
    parser.add_argument("--out", default="weights.png")
    args = parser.parse_args()

    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    settings = load()
    trial = draw(args.problem, "symmetric", args.rate, 0, settings)
    weights = fit_caw(trial["train"], trial["noisy"], settings, trial["folds_rng"])[1]
    plt.scatter(trial["points"][:, 0], trial["points"][:, 1], c=weights, s=8, cmap="viridis")
    plt.colorbar(label="weight")
    plt.savefig(args.out, dpi=150)


if __name__ == "__main__":
    main()
