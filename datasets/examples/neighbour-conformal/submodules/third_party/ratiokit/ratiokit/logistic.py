"""Logistic regression between two samples; its odds estimate the ratio of their densities."""

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit


class LogisticRatio:
    """Ratio of the target density to the source density, log-linear in the inputs.

    Fitted by Newton's method on the penalised likelihood; the intercept is not penalised.
    """

    def __init__(self, penalty=1e-3, steps=30, tolerance=1e-10):
        self.penalty = penalty
        self.steps = steps
        self.tolerance = tolerance

    def fit(self, source, target):
        design = self._design(np.vstack([source, target]))
        labels = np.concatenate([np.zeros(len(source)), np.ones(len(target))])
        ridge = self.penalty * len(labels) * np.eye(design.shape[1])
        ridge[0, 0] = 0.0
        self.coefficients = np.zeros(design.shape[1])
        for _ in range(self.steps):
            probability = expit(design @ self.coefficients)
            gradient = design.T @ (labels - probability) - ridge @ self.coefficients
            hessian = (design * (probability * (1.0 - probability))[:, None]).T @ design + ridge
            change = cho_solve(cho_factor(hessian), gradient)
            self.coefficients += change
            if np.abs(change).max() < self.tolerance:
                break
        self.prior = len(source) / len(target)
        return self

    def __call__(self, x):
        return self.prior * np.exp(self._design(x) @ self.coefficients)

    @staticmethod
    def _design(x):
        return np.column_stack([np.ones(len(x)), x])
