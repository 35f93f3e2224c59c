"""Histograms in HEPData's YAML form: one or two documents, of which the one with `dependent_variables` counts.

What an agent wrote is data of unknown shape: it is loaded as plain values only, within a size limit, and everything
that keeps it from being scored is said in words. Nothing is guessed: a bin is a finite, non-negative number or it is
none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import yaml

from pipeline.schema import Record

__all__ = ["MAX_BYTES", "Bin", "Histogram", "HistogramError", "parse_histogram", "same_bin", "same_bins"]

MAX_BYTES: Final = 1 << 20
"""The largest published histogram has 2 kB."""
_EDGE_TOLERANCE: Final = 1e-9
"""Relative: an edge that went through a program's output and back, not one that was moved."""


class HistogramError(ValueError):
    """It is no histogram of this form; the message says why."""


class Bin(Record):
    """A bin by its edges, or by its label where it has none."""

    low: float | None = None
    high: float | None = None
    label: str = ""


class Histogram(Record):
    """One series over its bins. `values[k]` is None for `null`."""

    name: str
    bins: tuple[Bin, ...]
    values: tuple[float | None, ...]


def parse_histogram(data: bytes, name: str | None = None) -> Histogram:
    """Read one series.

    Args:
        data: the file.
        name: of the series; None: the first one.

    Raises:
        HistogramError: it cannot be read as a histogram with this series. Bins that are negative or not finite, and a
            number of values other than the number of bins, are such errors; `null` is not.
    """
    document = _document(data)
    bins = tuple(_bins(document))
    series = document.get("dependent_variables")
    if not isinstance(series, list) or not series:
        raise HistogramError("it has no list of dependent variables")
    found = [item for item in series if isinstance(item, dict) and (name is None or _name(item) == name)]
    if not found:
        names = ", ".join(_name(item) for item in series if isinstance(item, dict)) or "none"
        raise HistogramError(f"it has no series {name!r} (it has: {names})")
    values = found[0].get("values")
    if not isinstance(values, list):
        raise HistogramError(f"the series {_name(found[0])!r} has no list of values")
    if len(values) != len(bins):
        raise HistogramError(f"it has {len(values)} value(s) for {len(bins)} bin(s)")
    return Histogram(
        name=_name(found[0]),
        bins=bins,
        values=tuple(_value(item, f"bin {number}") for number, item in enumerate(values, start=1)),
    )


def same_bins(one: Histogram, other: Histogram) -> bool:
    """Have two histograms the same bins, up to the last digits of their edges?"""
    return len(one.bins) == len(other.bins) and all(map(same_bin, one.bins, other.bins))


def same_bin(one: Bin, other: Bin) -> bool:
    """Is it the same bin, up to the last digits of its edges?"""
    return _same_edge(one.low, other.low) and _same_edge(one.high, other.high) and one.label == other.label


def _same_edge(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=_EDGE_TOLERANCE, abs_tol=1e-12)


def _document(data: bytes) -> dict[str, Any]:
    if len(data) > MAX_BYTES:
        raise HistogramError(f"it is larger than {MAX_BYTES} bytes")
    try:
        documents = list(yaml.safe_load_all(data.decode("utf-8")))
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        raise HistogramError(f"it is not YAML ({str(error).splitlines()[0]})") from error
    for document in documents:
        if isinstance(document, dict) and "dependent_variables" in document:
            return document
    raise HistogramError("no document in it has dependent variables")


def _bins(document: dict[str, Any]) -> Iterator[Bin]:
    axes = document.get("independent_variables")
    if not isinstance(axes, list) or len(axes) != 1 or not isinstance(axes[0], dict):
        raise HistogramError("it has not exactly one independent variable")
    values = axes[0].get("values")
    if not isinstance(values, list) or not values:
        raise HistogramError("its independent variable has no bins")
    for number, entry in enumerate(values, start=1):
        if not isinstance(entry, dict):
            raise HistogramError(f"bin {number} of its independent variable is no mapping")
        if "low" in entry and "high" in entry:
            low, high = (_number(entry[key]) for key in ("low", "high"))
            if low is None or high is None or not low < high:
                raise HistogramError(f"the edges of bin {number} are not two increasing numbers")
            yield Bin(low=low, high=high)
        else:
            yield Bin(label=str(entry.get("value", "")))


def _name(series: dict[str, Any]) -> str:
    header = series.get("header")
    return str(header.get("name", "")) if isinstance(header, dict) else ""


def _value(entry: Any, where: str) -> float | None:
    value = entry.get("value") if isinstance(entry, dict) else entry
    if value is None:
        return None
    number = _number(value)
    if number is None:
        raise HistogramError(f"{where} holds no finite number ({str(value)[:40]!r})")
    if number < 0:
        raise HistogramError(f"{where} is negative ({number:g})")
    return number


def _number(value: Any) -> float | None:
    """A finite number; a text such as `1e3` too, which YAML 1.1 does not take for one. `true` is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
