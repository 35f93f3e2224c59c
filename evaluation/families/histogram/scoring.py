"""Scores of one histogram submission (Collider-Bench 3.3, C.2, Tables 2 and 3, E).

With predicted yields y_k, reference y*_k, totals Y and Y*, and p = y / Y:

- relative L2, equation 2: d(y, y*) = sqrt(sum (y_k - y*_k)^2 / sum y*_k^2);
- normalisation error, equation 3: |Y - Y*| / Y*;
- shape error: d(p, p*), the same distance of the normalised distributions (section 4.3, Table 3);
- Acc_tau, equation 4: 1 when the task's distance is below tau, strictly.

A submission that cannot be scored - missing, no YAML, other bins, a bin that is `null`, negative or not finite - is
FAILED and gets what an empty one gets: all distances 1 (captions of Tables 2 and 3), Acc 0. A histogram of zeros is a
valid file with the same scores; its shape is not defined and counts 1. FABRICATED values are scored for the record and
leave every mean (`aggregate`). Where the audit recovered values that the agent computed but did not write, those are
scored (E).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final

from pydantic import Field

from evaluation.families.histogram.metrics import (
    baker_cousins_p_value,
    bin_disagreement,
    jensen_shannon,
    mean_bin_error,
    normalisation_error,
    relative_l2,
    rmsle,
    total,
    unit_area,
)
from evaluation.families.histogram.submission import read_submission
from evaluation.families.histogram.task import HistogramTask, Mode
from pipeline.schema import Record

__all__ = ["EMPTY", "TAU", "HistogramScore", "Provenance", "score_histogram"]

TAU: Final = 0.33
"""Section 4.1: the worst distance of the physicist-in-the-loop baseline."""
EMPTY: Final = 1.0
"""Distance of an empty submission: d(0, y*) = 1."""
_SHAPE: Final = (
    "shape_l2", "jensen_shannon", "jensen_shannon_dist", "p_value", "mean_abs_frac_error_pct", "d_bar", "d_max",
)  # fmt: skip
_ABSOLUTE: Final = ("relative_l2", "delta_norm", "rmsle", "p_value_norm")


class Provenance(StrEnum):
    """Where the submitted values come from (section 3.3, Provenance Judge)."""

    PASSED = "passed"
    FAILED = "failed"
    """No scorable values were submitted."""
    FABRICATED = "fabricated"
    UNKNOWN = "unknown"
    """Nobody has audited the run."""


class HistogramScore(Record):
    """Scores of one submission."""

    task: str
    mode: Mode
    valid: bool
    """May the submitted file be scored?"""
    reason: str = ""
    """Why it may not."""
    provenance: Provenance
    recovered: bool = False
    """Scored on values that the audit recovered."""
    counted: bool = True
    """Does it enter the means? FABRICATED does not."""
    bins: int
    """Bins of the reference: those that are compared."""
    filled: int = 0
    """Bins of the submission with a value."""
    relative_l2: float | None = Field(ge=0)
    """d(y, y*) of absolute yields; None: the task asks for the shape only."""
    shape_l2: float | None = Field(ge=0)
    """d(p, p*); None: the task asks for the yield only."""
    delta_norm: float | None = Field(ge=0)
    """|Y - Y*| / Y*; None: the task asks for the shape only."""
    jensen_shannon: float | None = None
    """Divergence, base 2, in [0, 1]; None: undefined (nothing was predicted), or the task asks for the yield only."""
    jensen_shannon_dist: float | None = None
    """Its square root."""
    p_value: float | None = None
    """Baker-Cousins, shape."""
    p_value_norm: float | None = None
    """Baker-Cousins, normalisation."""
    mean_abs_frac_error_pct: float | None = None
    """Mean error of a bin of the unit-area distribution, percent."""
    d_bar: float | None = None
    """Total-variation distance of the unit-area distributions."""
    d_max: float | None = None
    """Largest difference of a bin of the unit-area distributions."""
    rmsle: float | None = None
    """Root mean squared logarithmic error of the yields."""
    total: float = 0.0
    """Y, events."""
    total_reference: float
    """Y*, events."""
    distance: float = Field(ge=0)
    """The task's own: d(p, p*) of shape tasks, d(y, y*) of all others."""
    accurate: bool
    """distance < tau."""
    tau: float

    def metrics(self) -> dict[str, float | None]:
        """For `EpisodeScores.metrics`."""
        shape, absolute = self.mode != "yield", self.mode != "shape"
        names = [*(_SHAPE if shape else ()), *(_ABSOLUTE if absolute else ())]
        found: dict[str, float | None] = {"distance": self.distance, "acc_tau": float(self.accurate)}
        found |= {name: getattr(self, name) for name in names}
        if not self.counted:
            found = dict.fromkeys(found)
        labels = (Provenance.PASSED, Provenance.FAILED, Provenance.FABRICATED)
        unknown = self.provenance is Provenance.UNKNOWN
        found |= {f"provenance_{label.value}": None if unknown else float(self.provenance is label) for label in labels}
        return found | {"valid": float(self.valid), "recovered": float(self.recovered)}


def score_histogram(
    task: HistogramTask,
    submission: Path,
    *,
    provenance: Provenance = Provenance.UNKNOWN,
    recovered: Sequence[float] | None = None,
    tau: float = TAU,
) -> HistogramScore:
    """Score what was handed in.

    Args:
        task: with its reference.
        submission: the filled file, or the workspace that holds it (`results/<file>`). A link is not followed.
        provenance: label of the audit; a file that cannot be scored is FAILED.
        recovered: values of the reference's bins that the audit found to be computed but not written; scored in the
            file's place.
        tau: threshold of Acc.

    Raises:
        ValueError: `recovered` is not one finite, non-negative number a bin.
    """
    if recovered is not None:
        if len(recovered) != len(task.truth) or not all(math.isfinite(value) and value >= 0 for value in recovered):
            raise ValueError(f"recovered values must be {len(task.truth)} finite, non-negative numbers")
        return _score(task, tuple(recovered), provenance, tau, recovered=True)
    found = read_submission(task, submission)
    if found.values is None:
        return _failed(task, found.reason, found.filled, tau)
    scored = _score(task, tuple(found.values[index] for index in task.scored), provenance, tau)
    return scored.evolve(filled=found.filled)


def _failed(task: HistogramTask, reason: str, filled: int, tau: float) -> HistogramScore:
    """What an empty submission scores: distances of 1, which is the outcome of the run and not a missing value."""
    shape, absolute = task.mode != "yield", task.mode != "shape"
    return HistogramScore(
        task=task.id,
        mode=task.mode,
        valid=False,
        reason=reason,
        provenance=Provenance.FAILED,
        bins=len(task.truth),
        filled=filled,
        relative_l2=EMPTY if absolute else None,
        shape_l2=EMPTY if shape else None,
        delta_norm=EMPTY if absolute else None,
        total_reference=math.fsum(task.truth),
        distance=EMPTY,
        accurate=False,  # no numerical credit, whatever tau is
        tau=tau,
    )


def _score(
    task: HistogramTask, values: tuple[float, ...], provenance: Provenance, tau: float, *, recovered: bool = False
) -> HistogramScore:
    truth = task.truth
    mine, true = unit_area(values), unit_area(truth)
    assert true is not None, "a reference has a positive total"
    shape = EMPTY if mine is None else relative_l2(mine, true)
    absolute = relative_l2(values, truth)
    distance = shape if task.mode == "shape" else absolute
    return HistogramScore(
        task=task.id,
        mode=task.mode,
        valid=True,
        provenance=provenance,
        recovered=recovered,
        counted=provenance is not Provenance.FABRICATED,
        bins=len(truth),
        filled=len(values),
        relative_l2=None if task.mode == "shape" else absolute,
        shape_l2=None if task.mode == "yield" else shape,
        delta_norm=None if task.mode == "shape" else normalisation_error(values, truth),
        **_further(task, values, mine, true),
        total=total(values),
        total_reference=math.fsum(truth),
        distance=distance,
        accurate=distance < tau,
        tau=tau,
    )


def _further(
    task: HistogramTask, values: tuple[float, ...], mine: tuple[float, ...] | None, true: tuple[float, ...]
) -> dict[str, float | None]:
    """Metrics of the published scorer beyond the paper's; undefined ones are None."""
    found: dict[str, float | None] = {}
    if task.mode != "yield":
        divergence, disagreement = jensen_shannon(values, task.truth), bin_disagreement(values, task.truth)
        found |= {
            "jensen_shannon": divergence,
            "jensen_shannon_dist": None if divergence is None else math.sqrt(divergence),
            "p_value": baker_cousins_p_value(values, task.truth, systematic=task.tolerance),
            "mean_abs_frac_error_pct": None if mine is None else mean_bin_error(mine, true),
            "d_bar": disagreement[0] if disagreement else None,
            "d_max": disagreement[1] if disagreement else None,
        }
    if task.mode != "shape":
        found |= {
            "rmsle": rmsle(values, task.truth),
            "p_value_norm": baker_cousins_p_value(values, task.truth, kind="normalization", systematic=task.tolerance),
        }
    return found
