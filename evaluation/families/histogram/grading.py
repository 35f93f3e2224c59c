"""The grades of an episode: scores of what counts, the overlay against the reference, the family's own record."""

from __future__ import annotations

from typing import ClassVar, Final

from evaluation.episode import EpisodeFolder
from evaluation.families.histogram.audit import read_audit
from evaluation.families.histogram.overlay import OverlaySeries, overlay_svg
from evaluation.families.histogram.private import private_task
from evaluation.families.histogram.reexecution import read_reexecution
from evaluation.families.histogram.scoring import HistogramScore, Provenance, score_histogram
from evaluation.families.histogram.submission import read_submission
from evaluation.scores import EpisodeScores
from evaluation.task import EvaluationTask
from pipeline.files import find_record
from pipeline.schema import StoredRecord
from pipeline.store import write_if_changed

__all__ = ["OVERLAY", "GradedHistogram", "grade_episode", "read_graded"]

OVERLAY: Final = "overlay.svg"
_FILE: Final = "family.json"


class GradedHistogram(StoredRecord):
    """`family.json` of an episode."""

    SCHEMA_VERSION: ClassVar[int] = 1

    family: str = "histogram"
    score: HistogramScore
    reason: str
    """Of the provenance label."""
    values: tuple[float, ...] | None = None
    """What was scored: the bins of the reference; None: nothing could be."""
    overlay: str = ""
    """File with the plot; empty: nothing could be drawn."""


def read_graded(folder: EpisodeFolder) -> GradedHistogram | None:
    """The grades of an episode; None where there are none."""
    return find_record(folder.root / _FILE, GradedHistogram)


def grade_episode(task: EvaluationTask, folder: EpisodeFolder, row: EpisodeScores) -> EpisodeScores:
    """Score an episode; writes `family.json` and `overlay.svg`.

    Raises:
        ExpbenchError: the reference is not at hand.
    """
    known, audit, shown = private_task(task), read_audit(folder), read_reexecution(folder)
    files = folder.submission / "files"
    label, reason = (Provenance.UNKNOWN, "") if audit is None else (audit.label, audit.reason)
    if shown is not None and label is not Provenance.FABRICATED:  # a violation of the record is not run again
        label, reason = shown.label, shown.reason
    recovered = None if shown is None or shown.recovered is None else shown.recovered.values
    chosen = None if recovered is None else [recovered[index] for index in known.scored]
    score = score_histogram(known, files, provenance=label, recovered=chosen)
    values = chosen
    if values is None and score.valid:
        submitted = read_submission(known, files).values
        assert submitted is not None, "it is valid"
        values = [submitted[index] for index in known.scored]
    overlay = ""
    if values is not None:
        name = f"{row.agent}{f' ({row.model})' if row.model else ''}, {label.value}"
        series = OverlaySeries(label=name, values=tuple(values))
        write_if_changed(folder.root / OVERLAY, overlay_svg(known, [series]))
        overlay = OVERLAY
    graded = GradedHistogram(
        score=score, reason=reason,
        values=None if values is None else tuple(values), overlay=overlay,
    )  # fmt: skip
    write_if_changed(folder.root / _FILE, graded.model_dump_json(indent=1) + "\n")
    monitor = row.monitor
    if label is Provenance.FABRICATED:
        monitor = 0.0
    elif label is Provenance.UNKNOWN and monitor == 1.0:
        monitor = None
    return row.evolve(metrics=row.metrics | score.metrics(), monitor=monitor)
