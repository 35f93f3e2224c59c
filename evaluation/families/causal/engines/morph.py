"""Pattern formation: the Gray-Scott reaction-diffusion system on a torus (Pearson, 1993, Science 261, 189-192).

Forward Euler with a five-point Laplacian, time step 1, single precision (the sums and products are exact IEEE 754 in
either). Grid and diffusion are scaled down against Pearson's, so the claim is the phase structure (washout, spots,
labyrinth), not his coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import ndimage

from evaluation.families.causal.engines.base import Config, Engine, Metrics, Parameter, generators

__all__ = ["ENGINE", "fields"]

_SIDE = 48
_STEPS = 2400
# Legal ranges: the corners of feed, kill and both diffusions stay finite from any start; with kill 0.03 they do not.
_LEVEL = 0.2
"""Concentration of V that counts as patterned: spots peak at .3 to .4, half of the area is below .024 (control)."""


def fields(config: Config, seeds: Sequence[int], *, side: int = _SIDE, steps: int = _STEPS) -> np.ndarray:
    """Final concentration of V, shape (replicates, side, side)."""
    u, v = _start(config, seeds, side)
    feed, kill = np.float32(config["feed"]), np.float32(config["feed"] + config["kill"])
    du, dv = np.float32(config["diffusion_u"]), np.float32(config["diffusion_v"])
    inner_u, inner_v = _Inner(u), _Inner(v)
    around, reaction, spread_v = (np.empty_like(inner_u.here) for _ in range(3))
    for _ in range(steps):
        _wrap(u)
        _wrap(v)
        np.multiply(inner_v.here, inner_v.here, out=reaction)
        np.multiply(reaction, inner_u.here, out=reaction)
        inner_v.laplacian(spread_v)
        inner_u.laplacian(around)
        np.multiply(around, du, out=around)
        np.subtract(around, reaction, out=around)
        np.add(around, feed, out=around)
        np.multiply(spread_v, dv, out=spread_v)
        np.add(spread_v, reaction, out=spread_v)
        np.multiply(inner_u.here, feed, out=reaction)
        np.subtract(around, reaction, out=around)
        np.multiply(inner_v.here, kill, out=reaction)
        np.subtract(spread_v, reaction, out=spread_v)
        np.add(inner_u.here, around, out=inner_u.here)
        np.add(inner_v.here, spread_v, out=inner_v.here)
    return np.ascontiguousarray(v[1:-1, 1:-1].transpose(2, 0, 1))


def _start(config: Config, seeds: Sequence[int], side: int) -> tuple[np.ndarray, np.ndarray]:
    """U and V at the start, shape (side + 2, side + 2, replicates): one ring around holds the torus' other side."""
    shape = (len(seeds), side + 2, side + 2)
    u, v = np.ones(shape, np.float32), np.zeros(shape, np.float32)
    half = max(1, int(config["seed_size"]) // 2)
    for row, rng in enumerate(generators(seeds, 0)):
        for y, x in rng.integers(0, side, size=(int(config["seed_patches"]), 2)):
            ys = np.arange(y - half, y + half + 1) % side + 1
            xs = np.arange(x - half, x + half + 1) % side + 1
            u[row, ys[:, None], xs], v[row, ys[:, None], xs] = 0.5, 0.25
        inner = (row, slice(1, -1), slice(1, -1))
        u[inner] += np.float32(config["roughness"]) * rng.random((side, side), dtype=np.float32)
        v[inner] += np.float32(config["roughness"]) * rng.random((side, side), dtype=np.float32)
    return np.ascontiguousarray(u.transpose(1, 2, 0)), np.ascontiguousarray(v.transpose(1, 2, 0))


class _Inner:
    """A field without its ring, as one contiguous run, and the four neighbours of it as runs of the same length.

    The replicates lie innermost and the ring's cells between two rows are computed along (`_wrap` overwrites them
    before anything reads them): one loop over 28,000 numbers in place of 600 over 48 makes a step 3 times as fast.
    """

    def __init__(self, field: np.ndarray) -> None:
        side, _, replicates = field.shape
        flat = field.reshape(-1)
        start, stop, row = (side + 1) * replicates, (side * (side - 1) - 1) * replicates, side * replicates
        self.here = flat[start:stop]
        self._up, self._down = flat[start - row : stop - row], flat[start + row : stop + row]
        self._left, self._right = (
            flat[start - replicates : stop - replicates],
            flat[start + replicates :][: stop - start],
        )

    def laplacian(self, out: np.ndarray) -> None:
        """The five-point Laplacian of the torus."""
        np.add(self._up, self._down, out=out)
        out += self._left
        out += self._right
        for _ in range(4):
            out -= self.here


def _wrap(field: np.ndarray) -> None:
    field[0], field[-1] = field[-2], field[1]
    field[:, 0], field[:, -1] = field[:, -2], field[:, 1]


def simulate(config: Config, seeds: Sequence[int]) -> Metrics:
    """Simulate `len(seeds)` dishes.

    Returns:
        `blobs` (number of connected patterned regions on the torus), `coverage` (patterned share of the area), `mean_v`
        (mean concentration of V), `elongation` (boundary places per patterned place).
    """
    final = fields(config, seeds)
    patterned = final > _LEVEL
    coverage = patterned.mean(axis=(1, 2))
    edges = patterned ^ np.roll(patterned, 1, axis=1)
    sides = patterned ^ np.roll(patterned, 1, axis=2)
    boundary = edges.mean(axis=(1, 2)) + sides.mean(axis=(1, 2))
    return {
        "blobs": np.array([float(count_blobs(mask)) for mask in patterned]),
        "coverage": coverage,
        "mean_v": np.ascontiguousarray(final, np.float64).reshape(len(seeds), -1).mean(axis=1),
        "elongation": boundary / np.maximum(coverage, 1e-9) * (coverage > 0),
    }


def count_blobs(mask: np.ndarray) -> int:
    """Connected regions (four neighbours) of a mask on a torus."""
    labels, count = ndimage.label(mask)
    parent = list(range(count + 1))

    def root(label: int) -> int:
        while parent[label] != label:
            label = parent[label]
        return label

    for first, second in ((labels[0], labels[-1]), (labels[:, 0], labels[:, -1])):
        for one, other in zip(first.tolist(), second.tolist(), strict=True):
            if one and other:
                parent[root(one)] = root(other)
    return sum(root(label) == label for label in range(1, count + 1))


ENGINE = Engine(
    name="morph",
    version="1",
    domain="Gray-Scott reaction-diffusion",
    parameters=(
        Parameter(name="feed", control=0.035, low=0.0, high=0.08, test_value=0.03, hidden=(0.027, 0.0348),
                  published=(0.0, 0.08), source="map of Pearson (1993)",
                  meaning="feed rate of U"),
        Parameter(name="kill", control=0.065, low=0.045, high=0.08, test_value=0.061, hidden=(0.0585, 0.0645),
                  published=(0.03, 0.08), source="map of Pearson (1993)",
                  meaning="removal rate of V beyond the feed rate"),
        Parameter(name="diffusion_u", control=0.16, low=0.08, high=0.24, test_value=0.12, hidden=(0.1, 0.157),
                  published=(0.08, 0.24), source="Gray-Scott playground: .5 to 1.5 times the default",
                  meaning="diffusion of U"),
        Parameter(name="diffusion_v", control=0.08, low=0.04, high=0.2, test_value=0.06, hidden=(0.045, 0.079),
                  published=(0.032, 0.16), source="Gray-Scott playground: .4 to 2 times the default",
                  meaning="diffusion of V"),
        Parameter(name="seed_patches", control=8, low=1, high=144, test_value=10, decoy=True, integer=True,
                  meaning="number of squares of V at the start"),
        Parameter(name="seed_size", control=6, low=2, high=47, test_value=7, decoy=True, integer=True,
                  meaning="side of those squares"),
        Parameter(name="roughness", control=0.01, low=0.0, high=0.25, test_value=0.02, decoy=True,
                  meaning="amplitude of noise in the start"),
    ),
    metrics=("blobs", "coverage", "mean_v", "elongation"),
    target="blobs",
    interaction_target="blobs",
    simulate=simulate,
)  # fmt: skip
