"""Neighbour-scaled conformal prediction intervals."""

__version__ = "1.1.0"
