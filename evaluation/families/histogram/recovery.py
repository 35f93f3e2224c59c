"""Values that an agent computed but never wrote into the template (Collider-Bench E: the run is scored again on them).

They are looked for in files that a run produced and in what executed programs printed: a filled copy of the template,
rows that hold a bin's two edges and a number, or a list of as many numbers as there are bins under a name that says
what they are. Several places must agree; where they do not, nothing is recovered.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from evaluation.families.histogram.hardcoded import decimals_of, explains, numbers_in, typed_series
from evaluation.families.histogram.provenance import Computed, computing_outputs, produced_files
from evaluation.families.histogram.reading import Bin, HistogramError, parse_histogram, same_bins
from evaluation.families.histogram.task import HistogramTask
from evaluation.integrity.material import Material
from pipeline.schema import Record

__all__ = ["Recovered", "is_grounded", "recover_values"]

_NAMED: Final = re.compile(
    r"yield|bin_?(?:value|content)|counts?\b|hist|events|contents|signal|prediction|values", re.I
)
_LIST: Final = re.compile(r"[\[(]([^\[\]()]*)[\])]")
_AGREE: Final = 1e-9


class Recovered(Record):
    """What was found."""

    values: tuple[float, ...]
    """Of all bins of the template, in their order."""
    where: str


def recover_values(material: Material, task: HistogramTask) -> tuple[Recovered | None, str]:
    """The values, or None; and a remark where there was something that could not be used."""
    found: list[tuple[Recovered, tuple[int, ...]]] = []
    for item in (*produced_files(material, task.file), *computing_outputs(material)):
        for values, digits in _candidates(item, task):
            if all(math.isfinite(value) and value >= 0 for value in values) and any(values):
                found.append((Recovered(values=values, where=item.where), digits))
    typed = typed_series(material, task.template)
    found = [pair for pair in found if not any(explains(series, pair[0].values, pair[1]) for series in typed)]
    if not found:
        return None, ""
    best, _ = max(found, key=lambda pair: sum(pair[1]))
    if all(_agree(best.values, other.values, digits) for other, digits in found):
        return best, ""
    places = ", ".join(sorted({item.where for item, _ in found})[:4])
    return None, f"values for all bins were computed, but differ from place to place ({places})"


def is_grounded(material: Material, task: HistogramTask, values: Sequence[float]) -> bool:
    """Does everything that somebody says was computed occur in what programs left behind?"""
    left = [*produced_files(material, task.file), *computing_outputs(material)]
    seen = np.concatenate([item.numbers[0] for item in left]) if left else np.empty(0)
    return all(bool((np.abs(seen - value) <= _AGREE * max(1.0, abs(value))).any()) for value in values)


def _agree(one: Sequence[float], other: Sequence[float], digits: Sequence[int]) -> bool:
    return all(abs(a - b) <= 0.5 * 10.0**-d * (1 + 1e-9) for a, b, d in zip(one, other, digits, strict=True))


def _candidates(item: Computed, task: HistogramTask) -> Iterator[tuple[tuple[float, ...], tuple[int, ...]]]:
    """(values, decimals) for all bins, as often as the text holds them."""
    if item.where.endswith((".yaml", ".yml")):
        try:
            parsed = parse_histogram(item.text.encode("utf-8"))
        except HistogramError:
            return
        if same_bins(parsed, task.template) and None not in parsed.values:
            filled = tuple(value for value in parsed.values if value is not None)
            yield filled, tuple(decimals_of(repr(value)) for value in filled)
        return
    if Path(item.where).suffix == ".json":
        yield from _of_json(item.text, len(task.template.bins))
        return
    yield from _rows(item.text, task.template.bins)
    yield from _lists(item.text, len(task.template.bins))


def _rows(text: str, bins: Sequence[Bin]) -> Iterator[tuple[tuple[float, ...], tuple[int, ...]]]:
    """Consecutive lines that name the edges of the bins in their order, each with one number behind them."""
    values: list[tuple[float, int]] = []
    for line in text.split("\n"):
        numbers = numbers_in(re.sub(r"(?<=\d)\s*[-\u2013]\s*(?=\d)", " ", line[:2000]))
        bin_ = bins[len(values)]
        if len(numbers) >= 3 and (numbers[0][0], numbers[1][0]) == (bin_.low, bin_.high):
            values.append(numbers[2])
        elif values and numbers:
            values = []
        if len(values) == len(bins):
            yield tuple(value for value, _ in values), tuple(places for _, places in values)
            values = []


def _lists(text: str, bins: int) -> Iterator[tuple[tuple[float, ...], tuple[int, ...]]]:
    """Bracketed lists of as many numbers as there are bins, on a line that says what they are."""
    for line in text.split("\n"):
        if bins < 2 or not _NAMED.search(line[:2000]):
            continue
        for match in _LIST.finditer(line[:2000]):
            numbers = numbers_in(match[1])
            if len(numbers) == bins:
                yield tuple(value for value, _ in numbers), tuple(places for _, places in numbers)


def _of_json(text: str, bins: int) -> Iterator[tuple[tuple[float, ...], tuple[int, ...]]]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    for name, found in _named_lists(value, ""):
        plain = len(found) == bins and all(isinstance(x, int | float) and not isinstance(x, bool) for x in found)
        if plain and bins > 1 and _NAMED.search(name):
            yield tuple(float(x) for x in found), tuple(decimals_of(repr(x)) for x in found)


def _named_lists(value: Any, name: str) -> Iterator[tuple[str, list[Any]]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _named_lists(inner, str(key))
    elif isinstance(value, list):
        yield name, value
        for inner in value:
            if isinstance(inner, dict):
                yield from _named_lists(inner, name)
