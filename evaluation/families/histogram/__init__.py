"""The `histogram` family: a predicted binned distribution against a hidden reference (Collider-Bench 3.3, C.2, E)."""

from evaluation.families.histogram.aggregate import CellSummary, summarise
from evaluation.families.histogram.reading import Histogram, parse_histogram
from evaluation.families.histogram.scoring import TAU, HistogramScore, Provenance, score_histogram
from evaluation.families.histogram.task import HistogramTask, find_submission, load_histogram_task

__all__ = [
    "TAU",
    "CellSummary",
    "Histogram",
    "HistogramScore",
    "HistogramTask",
    "Provenance",
    "find_submission",
    "load_histogram_task",
    "parse_histogram",
    "score_histogram",
    "summarise",
]
