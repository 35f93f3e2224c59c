"""Density ratios from probabilistic classification."""

from ratiokit.logistic import LogisticRatio

__all__ = ["LogisticRatio"]
__version__ = "0.2.1"
