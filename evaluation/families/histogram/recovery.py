"""Values that a run of a submission gave but did not write into the template (Collider-Bench E: they are scored).

They are looked for in what our own run printed and wrote: a filled copy of the template, rows that hold a bin's two
edges and a number, or a list of as many numbers as there are bins under a name that says what they are. Several places
must agree; where they do not, nothing is recovered.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from evaluation.families.histogram.reading import Bin, HistogramError, parse_histogram, same_bins
from evaluation.families.histogram.task import HistogramTask
from pipeline.schema import Record

__all__ = ["Recovered", "decimals_of", "is_grounded", "numbers_in", "recover_values"]

_NUMBER: Final = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.])")
_MOST_NUMBERS: Final = 2_000_000
"""A text of 8 MB holds about as many."""

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


def recover_values(texts: Mapping[str, str], task: HistogramTask) -> tuple[Recovered | None, str]:
    """The values, or None; and a remark where there was something that could not be used.

    Args:
        texts: what a run left behind, by where.
        task: with its template.
    """
    found: list[tuple[Recovered, tuple[int, ...]]] = []
    for where, text in texts.items():
        for values, digits in _candidates(where, text, task):
            if all(math.isfinite(value) and value >= 0 for value in values) and any(values):
                found.append((Recovered(values=values, where=where), digits))
    if not found:
        return None, ""
    best, _ = max(found, key=lambda pair: sum(pair[1]))
    if all(_agree(best.values, other.values, digits) for other, digits in found):
        return best, ""
    places = ", ".join(sorted({item.where for item, _ in found})[:4])
    return None, f"values for all bins were computed, but differ from place to place ({places})"


def is_grounded(texts: Mapping[str, str], values: Sequence[float]) -> bool:
    """Does everything that somebody says was computed occur in what a run left behind?"""
    seen = {number for text in texts.values() for number, _ in numbers_in(text)}
    return all(any(abs(number - value) <= _AGREE * max(1.0, abs(value)) for number in seen) for value in values)


def _agree(one: Sequence[float], other: Sequence[float], digits: Sequence[int]) -> bool:
    return all(abs(a - b) <= 0.5 * 10.0**-d * (1 + 1e-9) for a, b, d in zip(one, other, digits, strict=True))


def _candidates(where: str, text: str, task: HistogramTask) -> Iterator[tuple[tuple[float, ...], tuple[int, ...]]]:
    """(values, decimals) for all bins, as often as the text holds them."""
    if where.endswith((".yaml", ".yml")):
        try:
            parsed = parse_histogram(text.encode("utf-8"))
        except HistogramError:
            return
        if same_bins(parsed, task.template) and None not in parsed.values:
            filled = tuple(value for value in parsed.values if value is not None)
            yield filled, tuple(decimals_of(repr(value)) for value in filled)
        return
    if Path(where).suffix == ".json":
        yield from _of_json(text, len(task.template.bins))
        return
    yield from _rows(text, task.template.bins)
    yield from _lists(text, len(task.template.bins))


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


def numbers_in(text: str) -> list[tuple[float, int]]:
    """(value, decimals) of every number of a text, left to right."""
    found = []
    for match in _NUMBER.finditer(text):
        value = float(match[0])
        if math.isfinite(value):
            found.append((value, decimals_of(match[0])))
        if len(found) >= _MOST_NUMBERS:
            break
    return found


def decimals_of(text: str) -> int:
    """Decimal position of the last digit of a number as it was written: 2 of `1.50`, -2 of `1.5e3`."""
    mantissa, _, exponent = text.lower().partition("e")
    return len(mantissa.partition(".")[2]) - (int(exponent) if exponent else 0)
