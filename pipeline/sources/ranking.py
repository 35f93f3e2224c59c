"""The order of the candidates that are kept: by influence, as far as it is known.

EXP-Bench's stage 1 names the signals (citations, stars, forks) and no formula. Ours: each signal on a logarithmic scale
that ends at the greatest value in the paper's Table 4 (845 citations, 11,093 stars) or, for forks, at a tenth of the
stars; the mean of those that are known, weighted. A value alone says the same in every list, so lists that were made on
different days can be merged. Ties go to the smaller id.
"""

from __future__ import annotations

import math
from typing import Final

from pipeline.sources.candidate import Candidate

__all__ = ["WEIGHTS", "score"]

WEIGHTS: Final = {"citations": 0.4, "stars": 0.4, "forks": 0.2}
_ENDS: Final = {"citations": 845, "stars": 11_093, "forks": 1_109}


def score(candidate: Candidate) -> tuple[float, tuple[str, ...]]:
    """(score in [0, 1], the signals it rests on); with no signal 0: it comes last, which does not say unimportant."""
    known = {name: value for name in WEIGHTS if (value := getattr(candidate, name)) is not None}
    if not known:
        return 0.0, ()
    total = sum(WEIGHTS[name] for name in known)
    mean = sum(WEIGHTS[name] * _scaled(value, _ENDS[name]) for name, value in known.items()) / total
    return round(mean, 4), tuple(known)


def _scaled(value: int, end: int) -> float:
    return min(1.0, math.log1p(value) / math.log1p(end))
