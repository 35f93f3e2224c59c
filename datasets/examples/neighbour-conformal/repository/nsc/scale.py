"""Estimates of the local noise level, all positive functions of the input."""

import numpy as np
from scipy.spatial import cKDTree


class ConstantScale:
    """One: plain split conformal prediction."""

    def __call__(self, x):
        return np.ones(len(x))


class LinearScale:
    """A log-linear model of the absolute residual, fitted by least squares."""

    def __init__(self, x, residuals, floor=1e-3):
        design = np.column_stack([np.ones(len(x)), x])
        target = np.log(np.maximum(np.abs(residuals), floor))
        self.coefficients = np.linalg.lstsq(design, target, rcond=None)[0]

    def __call__(self, x):
        return np.exp(np.column_stack([np.ones(len(x)), x]) @ self.coefficients)


class NeighbourScale:
    """The mean absolute residual of the nearest neighbours, shrunk towards the global mean."""

    def __init__(self, x, residuals, neighbours, shrinkage, power=1):
        self.tree = cKDTree(x)
        self.values = np.abs(residuals) ** power
        self.neighbours = neighbours
        self.shrinkage = shrinkage
        self.power = power

    def __call__(self, x):
        _, index = self.tree.query(x, k=self.neighbours)
        local = self.values[index].mean(axis=1)
        mixed = (1.0 - self.shrinkage) * local + self.shrinkage * self.values.mean()
        return mixed ** (1.0 / self.power)
