"""Published Collider-Bench tasks: `task.toml`, `TASK.md`, the template that the agent fills, the hidden reference.

```
tasks/<task>/task.toml  TASK.md  template/<file>.yaml
tasks/shared/<paper>/reference/<file>.yaml            only the scorer reads it
```
"""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any, Final, Literal, NoReturn

from pydantic import Field

from evaluation.families.histogram.reading import MAX_BYTES, Histogram, HistogramError, parse_histogram, same_bin
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import Record

__all__ = ["HistogramTask", "Mode", "find_submission", "load_histogram_task", "read_regular"]

Mode = Literal["shape", "yield", "shape_norm"]
_MODES: Final = ("shape", "yield", "shape_norm")
_RESULTS: Final = "results"


class HistogramTask(Record):
    """One task of the family."""

    id: str
    paper: str
    instructions: str
    """`TASK.md`, what the agent is told."""
    mode: Mode
    """What is predicted: absolute yields (`yield`, `shape_norm`) or the normalised distribution (`shape`)."""
    tolerance: float = Field(default=0.0, ge=0)
    """Systematic fraction of the published task; not the threshold of Acc."""
    target: str = ""
    observable: str = ""
    file: str
    """Name of the file to fill, in `results/` of the workspace."""
    template: Histogram
    reference: Histogram
    """Ground truth; never in an agent's world."""

    scored: tuple[int, ...]
    """For each bin of the reference the template's bin with the same edges, from 0."""

    @property
    def truth(self) -> tuple[float, ...]:
        """The reference's values; all of them are numbers."""
        return tuple(value for value in self.reference.values if value is not None)


def load_histogram_task(directory: Path, *, reference: Path | None = None) -> HistogramTask:
    """Read a published task.

    Args:
        directory: holds `task.toml` and `template/`.
        reference: the hidden file; by default `shared/<paper>/reference/<file>` in a folder above the task.

    Raises:
        ExpbenchError: `RECORD_INVALID`: a file is missing, is malformed, or the reference cannot be scored against.
    """
    settings = _settings(directory / "task.toml")
    about, metrics = settings.get("task", {}), settings.get("metrics", {})
    paper, mode = str(about.get("paper", "")).strip(), str(metrics.get("mode", "shape_norm")).strip()
    if not paper:
        _invalid(directory / "task.toml", "it names no paper ([task] paper)")
    if mode not in _MODES:
        _invalid(directory / "task.toml", f"the mode {mode!r} is none of {', '.join(_MODES)}")
    templates = sorted((directory / "template").glob("*.yaml"))
    if len(templates) != 1:
        _invalid(directory / "template", f"it holds {len(templates)} templates instead of one")
    template = _histogram(templates[0], None)
    place = reference or _reference(directory, paper, templates[0].name)
    truth = _histogram(place, template.name)
    scored = _scored_bins(place, template, truth)
    told = directory / "TASK.md"
    return HistogramTask(
        id=str(about.get("id") or directory.name),
        paper=paper,
        instructions=told.read_text(encoding="utf-8", errors="replace") if told.is_file() else "",
        mode=mode,
        tolerance=float(metrics.get("tolerance", 0.0)),
        target=str(about.get("target", "")),
        observable=str(about.get("observable", "")),
        file=templates[0].name,
        template=template,
        reference=truth,
        scored=scored,
    )


def find_submission(task: HistogramTask, path: Path) -> Path:
    """The file that was handed in: `path` itself, or `results/<file>` or `<file>` below it (it may not be there)."""
    if path.is_dir():
        inside = path / _RESULTS / task.file
        return inside if inside.exists() or inside.is_symlink() else path / task.file
    return path


def read_regular(path: Path) -> bytes:
    """The bytes of a regular file of bounded size; a link is refused, it may lead to the reference.

    Raises:
        HistogramError: there is none, it is something else, or it is too large.
    """
    if path.is_symlink() or path.parent.is_symlink():
        raise HistogramError("it is a symbolic link")
    if not path.is_file():
        raise HistogramError("there is no such file")
    with path.open("rb") as stream:
        return stream.read(MAX_BYTES + 1)


def _settings(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        _invalid(path, f"it cannot be read ({error})")


def _histogram(path: Path, name: str | None) -> Histogram:
    try:
        return parse_histogram(path.read_bytes(), name)
    except (OSError, HistogramError) as error:
        _invalid(path, str(error))


def _reference(directory: Path, paper: str, name: str) -> Path:
    for parent in directory.resolve().parents:
        place = parent / "shared" / paper / "reference" / name
        if place.is_file():
            return place
    return _invalid(directory, f"there is no shared/{paper}/reference/{name} in any folder above it")


def _scored_bins(path: Path, template: Histogram, reference: Histogram) -> tuple[int, ...]:
    """The template's bins that the reference fills, by their edges.

    Two published references fill the last 3 of 15 bins only; held against the first 3, by position, the best possible
    prediction would score as badly as a wrong one.
    """
    values = reference.values
    if any(value is None for value in values) or not math.fsum(value for value in values if value is not None) > 0:
        _invalid(path, "its bins are not all filled, or sum to 0: no distance to it is defined")
    found = []
    for number, wanted in enumerate(reference.bins, start=1):
        index = next((at for at, bin_ in enumerate(template.bins) if same_bin(bin_, wanted)), None)
        if index is None or index in found:
            _invalid(path, f"its bin {number} is no bin of the template, or the same as another one")
        found.append(index)
    return tuple(found)


def _invalid(path: Path, cause: str) -> NoReturn:
    raise ExpbenchError(
        FailureKind.RECORD_INVALID,
        str(path),
        cause,
        consequence="The task cannot be scored",
        next_step="Name the directory of a published Collider-Bench task, with its shared/ folder beside or above it",
    )
