"""Published Collider-Bench tasks: `task.toml`, `TASK.md`, the template that the agent fills, the hidden reference.

```
tasks/<task>/task.toml  TASK.md  template/<file>.yaml  artifacts/
tasks/shared/<paper>/reference/<file>.yaml            only the scorer reads it
tasks/shared/<paper>/paper/<paper>.pdf  object_efficiencies/
```

A task says nothing of what its code runs in; `[environment]` with `python` and `packages` (exact pins) is ours, and
optional. What a task names is data: names that lead elsewhere and links are refused.
"""

from __future__ import annotations

import math
import re
import tomllib
from pathlib import Path
from typing import Any, Final, Literal, NoReturn

from pydantic import Field, ValidationError

from evaluation.families.histogram.reading import MAX_BYTES, Histogram, HistogramError, parse_histogram, same_bin
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import Record

__all__ = ["HistogramTask", "Mode", "find_shared", "find_submission", "load_histogram_task", "read_regular"]

Mode = Literal["shape", "yield", "shape_norm"]
_MODES: Final = ("shape", "yield", "shape_norm")
_RESULTS: Final = "results"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,119}")
"""Ids, papers and files: one component of a path, nothing hidden."""
_WALL_TIME: Final = re.compile(r"(?:(\d+)h)?\s*(?:(\d+)m(?:in)?)?\s*(?:(\d+)s)?")
_MOST_WALL_S: Final = 7 * 24 * 3600


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
    kind: str = ""
    """`simulation` or `validation`."""
    difficulty: str = ""
    wall_time_s: int | None = Field(default=None, gt=0)
    """Budget of the published task; None: it names none."""
    plot: str = "Events/bin"
    """What the published plots show: `Events`, `Events/bin` or `Events/GeV`."""
    python: str | None = None
    packages: tuple[str, ...] = ()
    """Exact pins of `[environment]`, sorted."""
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
    path = directory / "task.toml"
    settings = _settings(path)
    about, metrics, more = (_table(settings, name, path) for name in ("task", "metrics", "metadata"))
    environment = _table(settings, "environment", path)
    paper = _name(about.get("paper"), "[task] paper", path)
    mode = str(metrics.get("mode", "shape_norm")).strip()
    if mode not in _MODES:
        _invalid(path, f"the mode {mode!r} is none of {', '.join(_MODES)}")
    file = _template(directory / "template")
    template = _histogram(file, None)
    place = reference or _reference(directory, paper, file.name)
    truth = _histogram(place, template.name)
    try:
        return HistogramTask(
            id=_name(about.get("id") or directory.name, "[task] id", path),
            paper=paper,
            instructions=_text(directory / "TASK.md"),
            mode=mode,
            tolerance=metrics.get("tolerance", 0.0),
            target=str(about.get("target", "")),
            observable=str(about.get("observable", "")),
            kind=str(about.get("type", "")),
            difficulty=str(more.get("difficulty", "")),
            wall_time_s=_wall_time(more.get("walltime"), path),
            plot=str(metrics.get("plot", "Events/bin")).strip(),
            python=environment.get("python"),
            packages=tuple(sorted(environment.get("packages", ()))),
            file=file.name,
            template=template,
            reference=truth,
            scored=_scored_bins(place, template, truth),
        )
    except (ValidationError, TypeError) as error:
        return _invalid(path, f"a value has the wrong type ({_first_line(error)})")


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


def find_shared(directory: Path, paper: str) -> Path | None:
    """The folder with the reference (and the PDF) of a task's paper: `shared/<paper>` in a folder above the task."""
    for parent in directory.absolute().parents:
        place = parent / "shared" / paper
        if (place / "reference").is_dir() and not place.is_symlink():
            return place
    return None


def _settings(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_regular(path).decode("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, HistogramError, RecursionError) as error:
        _invalid(path, f"it cannot be read ({_first_line(error)})")


def _table(settings: dict[str, Any], name: str, path: Path) -> dict[str, Any]:
    found = settings.get(name, {})
    return found if isinstance(found, dict) else _invalid(path, f"[{name}] is no table")


def _name(value: object, what: str, path: Path) -> str:
    """A name that becomes part of a path."""
    text = value.strip() if isinstance(value, str) else ""
    if not text:
        _invalid(path, f"it has no {what}")
    if not _NAME.fullmatch(text):
        _invalid(path, f"{what} is no plain name ({text[:60]!r}): it may lead out of the task's directory")
    return text


def _template(directory: Path) -> Path:
    found = sorted(directory.glob("*.yaml")) if directory.is_dir() and not directory.is_symlink() else []
    if len(found) != 1:
        _invalid(directory, f"it holds {len(found)} templates instead of one")
    _name(found[0].name, "the template's name", directory)
    return found[0]


def _text(path: Path) -> str:
    try:
        data = read_regular(path)
        text = data.decode("utf-8")
    except (OSError, HistogramError, UnicodeDecodeError) as error:
        return _invalid(path, f"what the agent is told cannot be read: {error}")
    return text if len(data) <= MAX_BYTES else _invalid(path, f"it is larger than {MAX_BYTES} bytes")


def _wall_time(value: object, path: Path) -> int | None:
    """Seconds of `2h30m`."""
    if value is None:
        return None
    match = _WALL_TIME.fullmatch(str(value).strip())
    seconds = (
        sum(int(part or 0) * unit for part, unit in zip(match.groups(), (3600, 60, 1), strict=True)) if match else 0
    )
    if not 0 < seconds <= _MOST_WALL_S:
        _invalid(path, f"its walltime {str(value)[:40]!r} is no time such as 2h30m")
    return seconds


def _histogram(path: Path, name: str | None) -> Histogram:
    try:
        return parse_histogram(read_regular(path), name)
    except (OSError, HistogramError) as error:
        _invalid(path, str(error))


def _reference(directory: Path, paper: str, name: str) -> Path:
    shared = find_shared(directory, paper)
    place = None if shared is None else shared / "reference" / name
    if place is not None and place.is_file():
        return place
    return _invalid(directory, f"there is no shared/{paper}/reference/{name} in any folder above it")


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


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
