"""Kernel matrices must be symmetric and positive definite; written after a sign error in the exponent."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from nsc.krr import gaussian

x = np.random.default_rng(0).uniform(size=(40, 3))
k = gaussian(x, x, 0.5)
assert np.allclose(k, k.T)
assert np.linalg.eigvalsh(k).min() > -1e-10
print("kernel ok")
