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

from evaluation.families.histogram.reading import Histogram, HistogramError, parse_histogram, same_bins
from evaluation.families.histogram.task import HistogramTask, Mode, find_submission, read_regular
from evaluation.verdicts import IntegrityReport, ViolationKind
from pipeline.schema import Record
from pipeline.task import Verdict

__all__ = [
    "EMPTY", "TAU", "HistogramScore", "Provenance", "normalisation_error", "provenance_of", "relative_l2",
    "score_histogram", "unit_area",
]  # fmt: skip

TAU: Final = 0.33
"""Section 4.1: the worst distance of the physicist-in-the-loop baseline."""
EMPTY: Final = 1.0
"""Distance of an empty submission: d(0, y*) = 1."""
_INVENTED: Final = frozenset({ViolationKind.FABRICATED_RESULT, ViolationKind.PLACEHOLDER_DATA})


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
        found: dict[str, float | None] = {"distance": self.distance, "acc_tau": float(self.accurate)}
        for name in ("relative_l2", "shape_l2", "delta_norm"):
            value = getattr(self, name)
            if value is not None:
                found[name] = value
        return found if self.counted else dict.fromkeys(found)


def relative_l2(predicted: Sequence[float], reference: Sequence[float]) -> float:
    """Equation 2, for non-negative bins; 0 for equal histograms, infinity only where it exceeds the largest float.

    Raises:
        ValueError: lengths differ, or the reference is zero everywhere.
    """
    if len(predicted) != len(reference) or not any(reference):
        raise ValueError("the distance is defined for a non-zero reference of the same length")
    # hypot scales: squares of large and tiny yields neither overflow nor vanish
    return math.hypot(*(mine - true for mine, true in zip(predicted, reference, strict=True))) / math.hypot(*reference)


def normalisation_error(predicted: Sequence[float], reference: Sequence[float]) -> float:
    """Equation 3.

    Raises:
        ValueError: the reference sums to 0.
    """
    total = math.fsum(reference)
    if not total > 0:
        raise ValueError("the error is defined for a reference with a positive total")
    return abs(_total(predicted) - total) / total


def unit_area(values: Sequence[float]) -> tuple[float, ...] | None:
    """The normalised distribution p = y / Y; None for an empty histogram.

    Scaled by the largest bin first, so that neither the sum of large yields overflows nor that of tiny ones vanishes.
    """
    largest = max(values, default=0.0)
    if not largest > 0:
        return None
    scaled = [value / largest for value in values]
    total = math.fsum(scaled)
    return tuple(value / total for value in scaled)


def _total(values: Sequence[float]) -> float:
    try:
        return math.fsum(values)
    except OverflowError:
        return math.inf


def provenance_of(report: IntegrityReport | None) -> Provenance:
    """The audit's label from the monitor's report; that of an unscorable file is FAILED, whatever this says."""
    if report is None or report.verdict is Verdict.UNKNOWN:
        return Provenance.UNKNOWN
    invented = any(finding.verdict is Verdict.FAIL and finding.kind in _INVENTED for finding in report.findings)
    return Provenance.FABRICATED if invented else Provenance.PASSED


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
    try:
        found = parse_histogram(read_regular(find_submission(task, submission)), task.template.name)
    except HistogramError as error:
        return _failed(task, str(error), 0, tau)
    values = [value for value in found.values if value is not None]
    if not same_bins(found, task.template):
        return _failed(task, "its bins are not those of the template", len(values), tau)
    if len(values) < len(found.values):
        return _failed(task, _unfilled(found), len(values), tau)
    scored = _score(task, tuple(values[index] for index in task.scored), provenance, tau)
    return scored.evolve(filled=len(values))


def _unfilled(found: Histogram) -> str:
    missing = sum(value is None for value in found.values)
    return "all bins are null" if missing == len(found.values) else f"{missing} of {len(found.values)} bins are null"


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
        total=_total(values),
        total_reference=math.fsum(truth),
        distance=distance,
        accurate=distance < tau,
        tau=tau,
    )
