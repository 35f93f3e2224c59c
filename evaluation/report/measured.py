"""What a score rests on, and how well keyless scores did on agents that nobody here had seen before.

The figures are no part of a run: they come from `measured.json`, shipped with this package, which holds the last
measurement on a set whose authors froze it before the code saw it. Where it says nothing, a report says "not measured".
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import ClassVar, Final

from pydantic import Field, ValidationError, model_validator

from evaluation.metrics import Metric, caught, mark
from evaluation.scores import EpisodeScores
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import Record, StoredRecord

__all__ = [
    "MEANINGS",
    "Figure",
    "Figures",
    "Measurement",
    "basis_of",
    "keyless_scores",
    "load_measurement",
    "measured_text",
]

NOT_MEASURED: Final = "not measured"
_ROLES: Final = {Metric.M: "integrity", Metric.D: "judge", Metric.I: "judge", Metric.C: "judge"}
"""Of `EpisodeScores.graders`; E has none, a run decides it."""
MEANINGS: Final[dict[Metric, str]] = {
    Metric.M: "what the harness observed, byte comparisons, and whether numbers answer when the run is perturbed",
    Metric.D: "settings, levels and repeats that ran; a restatement where the task's text tells all of it",
    Metric.I: "execution: what ran, and how it behaved; else unknown",
    Metric.E: "execution: run again from the patch alone, perturbed where that can be done",
    Metric.C: "numbers, and the relations that they decide; else unknown",
}
"""What each score is where no language model graded it."""


class Figure(Record):
    """A share as it was counted: `numerator` of `denominator`."""

    numerator: float = Field(ge=0)
    denominator: int = Field(gt=0)

    @model_validator(mode="before")
    @classmethod
    def _pair(cls, value: object) -> object:
        if isinstance(value, list | tuple) and len(value) == 2:
            return {"numerator": value[0], "denominator": value[1]}
        return value

    @model_validator(mode="after")
    def _check(self) -> Figure:
        if self.numerator > self.denominator:
            raise ValueError(f"{self.numerator:g} of {self.denominator} is more than all of them")
        return self

    @property
    def text(self) -> str:
        """`3 of 17`."""
        return f"{self.numerator:g} of {self.denominator}"


class Figures(Record):
    """Counts on strangers' agents; None: not counted."""

    honest_accused: Figure | None = None
    """Honest episodes that the monitor failed."""
    fabricated_found: Figure | None = None
    """Made-up results that the monitor found."""
    rigged_found: Figure | None = None
    false_conclusions_passed: Figure | None = None
    implementation_auc: Figure | None = None
    """Pairs of a met and an unmet requirement (or episode) that I orders rightly; ties are halves."""


class Measurement(StoredRecord):
    """The last measurement of the keyless graders: on which set, when, and what was counted."""

    SCHEMA_VERSION: ClassVar[int] = 1

    set: str = ""
    """Name of the set of strangers' agents."""
    date: dt.date | None = None
    figures: Figures = Figures()

    @model_validator(mode="after")
    def _named(self) -> Measurement:
        if self.figures != Figures() and (not self.set or self.date is None):
            raise ValueError("figures need the name of their `set` and the `date` of the measurement")
        return self


@cache
def load_measurement() -> Measurement:
    """The measurement that this installation ships.

    Raises:
        ExpbenchError: `RECORD_INVALID`, the file is not one.
    """
    try:
        return Measurement.model_validate_json((files("evaluation.report") / "measured.json").read_bytes())
    except (OSError, ValidationError) as error:
        raise ExpbenchError(
            FailureKind.RECORD_INVALID,
            "evaluation/report/measured.json",
            f"holds no measurement: {error}",
            consequence="No report was written: it would not say how far its scores can be trusted",
            next_step="Install the package again, or correct the file",
        ) from error


def measured_text(measurement: Measurement, metric: Metric) -> str:
    """How a keyless score did on strangers' agents, as a short sentence; "not measured" where nothing was counted."""
    figures = measurement.figures
    counted = {
        Metric.M: (
            ("made-up results found: {}", figures.fabricated_found),
            ("rigged experiments found: {}", figures.rigged_found),
            ("honest agents accused: {}", figures.honest_accused),
        ),
        Metric.I: (("met and unmet told apart in {} pairs", figures.implementation_auc),),
        Metric.C: (("false conclusions passed: {}", figures.false_conclusions_passed),),
    }.get(metric, ())
    said = [text.format(figure.text) for text, figure in counted if figure is not None]
    return f"{'; '.join(said)} ({measurement.set}, {measurement.date})" if said else NOT_MEASURED


def keyless_scores(graders: Sequence[str]) -> tuple[Metric, ...]:
    """The single metrics that no language model graded, given `Summary.graders`."""
    keyless = {role for role, _, who in (text.partition(": ") for text in graders) if who == "keyless"}
    return tuple(metric for metric in MEANINGS if metric not in _ROLES or _ROLES[metric] in keyless)


def basis_of(scores: EpisodeScores, metric: Metric) -> str:
    """What a single metric of an episode rests on, in a word or two."""
    if metric is not Metric.M and caught(scores):
        return "caught"
    if mark(scores, metric).value is None:
        return "unknown"
    if metric is Metric.E:
        return scores.execution_grade or "execution"
    grader = dict(scores.graders).get(_ROLES[metric])
    if metric is Metric.D and scores.design_restated:
        return "restatement"
    if grader is None or grader.engine != "keyless":
        return "" if grader is None else "a model's reading"
    return {Metric.M: "observation", Metric.D: "matching", Metric.I: "execution", Metric.C: "numbers"}[metric]
