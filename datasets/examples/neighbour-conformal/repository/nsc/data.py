"""Regression problems whose noise level depends on the input. Inputs are uniform on [-1, 1]^d before any shift."""

import numpy as np


def wave(x):
    """A sine in the first coordinate; noise grows towards the edges."""
    return np.sin(3.0 * x[:, 0]) + 0.5 * x[:, 1], 0.1 + 0.7 * x[:, 0] ** 2


def step(x):
    """A smooth trend; the noise level jumps at zero."""
    return x[:, 0] + np.cos(2.0 * x[:, 1]), np.where(x[:, 0] < 0.0, 0.15, 0.75)


def friedman(x):
    """Friedman's first function on five inputs, scaled down; noise depends on two of them."""
    u = 0.5 * (x + 1.0)
    mean = 10 * np.sin(np.pi * u[:, 0] * u[:, 1]) + 20 * (u[:, 2] - 0.5) ** 2 + 10 * u[:, 3] + 5 * u[:, 4]
    return mean / 5.0, 0.1 + 0.8 * u[:, 0] * u[:, 3]


PROBLEMS = {"wave": (wave, 2), "step": (step, 2), "friedman": (friedman, 5)}


def tilted_uniform(n, tilt, rng):
    """Samples on [-1, 1] with density proportional to exp(tilt * x), by inversion."""
    u = rng.random(n)
    if tilt == 0:
        return 2.0 * u - 1.0
    return np.log(np.exp(-tilt) + u * (np.exp(tilt) - np.exp(-tilt))) / tilt


def sample(name, n, rng, tilt=0.0):
    """Inputs, responses and noise levels; `tilt` shifts the first input towards one."""
    if name not in PROBLEMS:
        raise ValueError(f"unknown problem {name!r}; known: {', '.join(sorted(PROBLEMS))}")
    function, dim = PROBLEMS[name]
    x = rng.uniform(-1.0, 1.0, size=(n, dim))
    x[:, 0] = tilted_uniform(n, tilt, rng)
    mean, sigma = function(x)
    return x, mean + sigma * rng.standard_normal(n), sigma
