"""Summary statistics of the three problems."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from nsc.data import PROBLEMS, sample

if __name__ == "__main__":
    for name in PROBLEMS:
        x, y, sigma = sample(name, 20000, np.random.default_rng(3))
        print(name, "d =", x.shape[1], "sd(y) =", y.std().round(1), "sigma from", sigma.min().round(1), "to", sigma.max().round(1))
