"""cKDTree against brute force for neighbour queries. Not part of the paper."""

import time

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

rng = np.random.default_rng(0)
for n in (500, 2000):
    x = rng.uniform(size=(n, 4))
    start = time.perf_counter()
    cKDTree(x).query(x, k=10)
    middle = time.perf_counter()
    np.argpartition(cdist(x, x), 10, axis=1)
    end = time.perf_counter()
    print(f"n={n}: tree {1000 * (middle - start):.1f} ms, brute force {1000 * (end - middle):.1f} ms")
