"""How good is an interval?"""

import numpy as np


def coverage(y, centre, half):
    """Share of responses inside their interval, in percent."""
    return 100.0 * float(np.mean(np.abs(y - centre) <= half))


def worst_fifth_coverage(y, centre, half, sigma):
    """The smallest coverage among the fifths of the test points by true noise level, in percent."""
    inside = np.abs(y - centre) <= half
    fifths = np.array_split(np.argsort(sigma, kind="stable"), 5)
    return 100.0 * float(min(inside[index].mean() for index in fifths))


def interval_score(y, centre, half, level):
    """Mean interval score (Gneiting and Raftery, 2007); smaller is better."""
    miss = np.maximum(np.abs(y - centre) - half, 0.0)
    return float(np.mean(2.0 * half + 2.0 / (1.0 - level) * miss))
