"""Are the folds balanced? Left over from chasing an off-by-one in the fold assignment."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from caw.agreement import folds_of


def main():
    for n in (10, 11, 599, 600):
        counts = np.bincount(folds_of(n, 5, np.random.default_rng(0)))
        assert counts.max() - counts.min() <= 1, counts
        print(n, counts)


if __name__ == "__main__":
    main()
