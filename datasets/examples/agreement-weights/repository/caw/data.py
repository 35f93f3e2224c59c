"""Synthetic binary classification problems and label corruption.

Every problem lives in the first two coordinates; `nuisance` further Gaussian coordinates carry no information about
the label. Labels are -1 and +1.
"""

import numpy as np


def moons(n, rng):
    """Two interleaving half circles."""
    y = rng.integers(0, 2, size=n)
    t = np.pi * rng.random(n)
    x = np.where(y == 0, np.cos(t), 1.0 - np.cos(t))
    v = np.where(y == 0, np.sin(t), 0.5 - np.sin(t))
    return np.column_stack([x - 0.5, v - 0.25]) * 1.6, y, 0.22


def rings(n, rng):
    """A disc-shaped inner ring and an outer ring around it."""
    y = rng.integers(0, 2, size=n)
    t = 2.0 * np.pi * rng.random(n)
    r = np.where(y == 0, 0.75, 1.6)
    return np.column_stack([r * np.cos(t), r * np.sin(t)]), y, 0.24


def spirals(n, rng):
    """Two spiral arms of one and a quarter turns each."""
    y = rng.integers(0, 2, size=n)
    t = 0.25 + 1.25 * np.sqrt(rng.random(n))
    r = 1.45 * t
    phi = 2.0 * np.pi * t + np.pi * y
    return np.column_stack([r * np.cos(phi), r * np.sin(phi)]), y, 0.14


def xor(n, rng):
    """Opposite quadrants of the square [-2, 2] x [-2, 2] share a class."""
    x = rng.uniform(-2.0, 2.0, size=(n, 2))
    y = ((x[:, 0] > 0) ^ (x[:, 1] > 0)).astype(int)
    return x, y, 0.1


PROBLEMS = {"moons": moons, "rings": rings, "spirals": spirals, "xor": xor}


def sample(name, n, rng, nuisance=2, nuisance_scale=0.3):
    """Draw `n` points of the problem `name`; returns (features, labels)."""
    if name not in PROBLEMS:
        raise ValueError(f"unknown problem {name!r}; known: {', '.join(sorted(PROBLEMS))}")
    x, y, jitter = PROBLEMS[name](n, rng)
    x = x + jitter * rng.standard_normal(x.shape)
    extra = nuisance_scale * rng.standard_normal((n, nuisance))
    return np.hstack([x, extra]), 2.0 * y - 1.0


def corrupt(labels, rate, kind, rng):
    """Flip labels: `symmetric` flips either class with `rate`, `asymmetric` only the positive class."""
    flip = rng.random(labels.shape[0]) < rate
    if kind == "asymmetric":
        flip &= labels > 0
    elif kind != "symmetric":
        raise ValueError(f"unknown noise kind {kind!r}; known: symmetric, asymmetric")
    return np.where(flip, -labels, labels)
