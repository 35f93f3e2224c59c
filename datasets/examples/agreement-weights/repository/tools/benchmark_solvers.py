"""Wall time of `solve` against an explicit inverse for the normal equations. Unrelated to the paper's results."""

import time

import numpy as np


def clock(call, repeats=20):
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return 1000.0 * (time.perf_counter() - start) / repeats


def main():
    rng = np.random.default_rng(0)
    for dim in (50, 100, 200, 400):
        a = rng.standard_normal((2 * dim, dim))
        gram, right = a.T @ a + np.eye(dim), rng.standard_normal(dim)
        solve = clock(lambda gram=gram, right=right: np.linalg.solve(gram, right))
        inverse = clock(lambda gram=gram, right=right: np.linalg.inv(gram) @ right)
        print(f"dim={dim:4d}  solve={solve:.2f} ms  inverse={inverse:.2f} ms")


if __name__ == "__main__":
    main()
