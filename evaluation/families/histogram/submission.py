"""The results file that an agent handed in, read once for all graders."""

from __future__ import annotations

from pathlib import Path

from evaluation.families.histogram.reading import HistogramError, parse_histogram, same_bins
from evaluation.families.histogram.task import HistogramTask, find_submission, read_regular
from pipeline.schema import Record

__all__ = ["Submitted", "read_submission"]


class Submitted(Record):
    """What there is."""

    values: tuple[float, ...] | None = None
    """Of all bins of the template; None: the file cannot be scored."""
    reason: str = ""
    """Why it cannot."""
    unreadable: bool = False
    """It is missing, no histogram, or has other bins than the template: not merely unfilled."""
    filled: int = 0
    """Bins with a value."""
    raw: str = ""


def read_submission(task: HistogramTask, path: Path) -> Submitted:
    """Read it; validity as in Collider-Bench 3.3 and C.2.

    Args:
        task: with its template.
        path: the file, or the directory with `results/<file>`. A link is not followed.
    """
    try:
        data = read_regular(find_submission(task, path))
    except HistogramError as error:
        return Submitted(reason=str(error), unreadable=True)
    raw = data.decode("utf-8", "replace")
    try:
        found = parse_histogram(data, task.template.name)
    except HistogramError as error:
        return Submitted(reason=str(error), unreadable=True, raw=raw)
    values = tuple(value for value in found.values if value is not None)
    if not same_bins(found, task.template):
        reason = "its bins are not those of the template"
        return Submitted(reason=reason, unreadable=True, filled=len(values), raw=raw)
    missing = len(found.values) - len(values)
    if missing:
        text = (
            "all bins are null" if missing == len(found.values) else f"{missing} of {len(found.values)} bins are null"
        )
        return Submitted(reason=text, filled=len(values), raw=raw)
    return Submitted(values=values, filled=len(values), raw=raw)
