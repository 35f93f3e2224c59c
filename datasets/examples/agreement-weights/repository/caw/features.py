"""Random Fourier features for the Gaussian kernel (Rahimi and Recht, 2007)."""

import numpy as np


class RandomFourierFeatures:
    """Maps points to `dim` cosine features whose inner products approximate a Gaussian kernel."""

    def __init__(self, inputs, dim, bandwidth, rng):
        self.frequencies = rng.standard_normal((inputs, dim)) / bandwidth
        self.phases = rng.uniform(0.0, 2.0 * np.pi, size=dim)
        self.scale = np.sqrt(2.0 / dim)

    def __call__(self, x):
        return self.scale * np.cos(x @ self.frequencies + self.phases)
