"""Print sizes, class balance and ranges of the four problems. Not used by any experiment."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from caw.data import PROBLEMS, corrupt, sample


def main():
    rng = np.random.default_rng(7)
    for name in PROBLEMS:
        x, y = sample(name, 5000, rng)
        noisy = corrupt(y, 0.25, "symmetric", rng)
        print(f"{name:8s} shape={x.shape} positive={np.mean(y > 0):.2f} flipped={np.mean(noisy != y):.2f}")
        print(f"         min={x.min(axis=0).round(2)} max={x.max(axis=0).round(2)}")


if __name__ == "__main__":
    main()
