"""Series of numbers that somebody typed: a hand-coded array that became the submitted bins (Collider-Bench 4.5).

A list of numbers in a program, or a results file that was written out by hand, is compared with the submitted values
as a whole: equal to the digits that were submitted, or proportional (a typed shape times a normalisation). One number
agrees with something by chance; a series of three does not.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from evaluation.families.histogram.reading import Histogram
from evaluation.integrity.material import Material
from evaluation.integrity.shell import here_documents, read_commands
from pipeline.text import shorten
from pipeline.tracing.source import parse_python

__all__ = [
    "NUMBER",
    "TypedSeries",
    "constants_of",
    "decimals_of",
    "explains",
    "numbers_in",
    "significant",
    "typed_series",
]

NUMBER: Final = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.])")
_PROSE: Final = (".md", ".rst", ".tex")
"""A report repeats results; no program takes them from there."""
_PROPORTIONAL: Final = 1e-3
"""Relative: a shape that was typed with three digits and scaled."""
_TOLD: Final = 5
_TOLD_ALONE: Final = 3
"""Significant digits that equal numbers must have together: `[1, 2]` is in many programs."""
_LEAST: Final = 3
"""Bins from which on proportional series count; two numbers are proportional to most others."""
_MOST_NUMBERS: Final = 2_000_000
"""A text of 8 MB, the most that is read of a file, holds about as many."""


@dataclass(frozen=True)
class TypedSeries:
    """Numbers in the order in which they were typed."""

    values: tuple[float, ...]
    where: str
    line: str
    since: int | None
    """Event that typed them; None where no event shows it."""


def typed_series(material: Material, template: Histogram) -> list[TypedSeries]:
    """Every series of an episode, those of the bins' edges left out."""
    edges = {value for bin_ in template.bins for value in (bin_.low, bin_.high) if value is not None}
    found: list[TypedSeries] = []
    for path, text in sorted(material.code.items()):
        found += _of_program(text, f"patch: {path}", None) if path.endswith(".py") else []
        found += _of_shell(text, f"patch: {path}", None) if path.endswith((".sh", ".bash")) else []
    for written in material.written:
        where = f"event {written.seq}: {written.path}"
        if written.path.endswith(".py"):
            found += _of_program(written.text, where, written.seq)
        elif written.path.endswith((".sh", ".bash")):
            found += _of_shell(written.text, where, written.seq)
        elif not written.path.endswith(_PROSE):
            found += _of_text(written.text, where, written.seq)
    for event, _ in material.commands:
        found += _of_shell(event.command, f"event {event.seq}", event.seq)
    dated = {series.values for series in found if series.since is not None}
    # what an event typed is in the patch too, where nothing says when
    found = [series for series in found if series.since is not None or series.values not in dated]
    return [series for series in found if not set(series.values) <= edges]


def explains(series: TypedSeries, values: Sequence[float], digits: Sequence[int]) -> tuple[float, ...]:
    """The part of a series that the submitted values are, or are a multiple of; empty when there is none.

    Args:
        series: what was typed.
        values: what was submitted, all bins.
        digits: decimals with which each was submitted.
    """
    size = len(values)
    telling = [index for index, value in enumerate(values) if value != 0]
    if not telling or len(series.values) < size:
        return ()
    for start in range(len(series.values) - size + 1):
        window = series.values[start : start + size]
        if all(_equal(mine, typed, places) for mine, typed, places in zip(values, window, digits, strict=True)):
            told = sum(significant(values[index], digits[index]) for index in telling)
            return window if told >= (_TOLD if size > 1 else _TOLD_ALONE) else ()
        if len(telling) >= _LEAST and _proportional(values, window):
            return window
    return ()


def significant(value: float, places: int) -> int:
    """Significant digits of a number that is written with so many decimals."""
    return places + 1 + (math.floor(math.log10(abs(value))) if value else 0)


def _equal(mine: float, typed: float, places: int) -> bool:
    return abs(mine - typed) <= 0.5 * 10.0**-places * (1 + 1e-9)


def _proportional(values: Sequence[float], window: Sequence[float]) -> bool:
    if any((mine == 0) != (typed == 0) for mine, typed in zip(values, window, strict=True)):
        return False
    ratios = [mine / typed for mine, typed in zip(values, window, strict=True) if typed]
    return len(set(window)) > 1 and max(ratios) - min(ratios) <= _PROPORTIONAL * abs(ratios[0])


# --- where series are typed


def _of_program(code: str, where: str, since: int | None) -> Iterator[TypedSeries]:
    """Lists, tuples and values of dictionaries in Python, and texts that hold numbers."""
    tree, _ = parse_python(code)
    if tree is None:
        return
    lines = code.split("\n")
    for node in ast.walk(tree):
        values: list[float] = []
        if not isinstance(node, ast.expr | ast.stmt):
            continue
        if isinstance(node, ast.List | ast.Tuple):
            values = constants_of(node.elts)
        elif isinstance(node, ast.Dict):
            values = constants_of(node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            values = [value for value, _ in numbers_in(node.value)]
        elif isinstance(node, ast.Assign) and len(constants := constants_of([node.value])) == 1:
            values = constants
        if values:
            line = lines[node.lineno - 1] if node.lineno <= len(lines) else ""
            yield TypedSeries(tuple(values), f"{where}:{node.lineno}", shorten(line.strip(), 200), since)


_LARGEST: Final = 10**300
"""No count of events is larger, and integers from 1.8e308 on are no floats."""


def constants_of(nodes: Sequence[ast.expr | None]) -> list[float]:
    """Their numbers, when all of them are numbers (or collections of numbers, taken one after another)."""
    found: list[float] = []
    for node in nodes:
        inner = node.operand if isinstance(node, ast.UnaryOp) else node
        if (
            isinstance(inner, ast.Constant)
            and isinstance(inner.value, int | float)
            and not isinstance(inner.value, bool)
            and abs(inner.value) < _LARGEST
        ):
            sign = -1.0 if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else 1.0
            found.append(sign * float(inner.value))
        elif isinstance(inner, ast.Dict):
            found += constants_of(inner.values)
        elif isinstance(inner, ast.List | ast.Tuple):
            found += constants_of(inner.elts)
        else:
            return []
    return found if all(map(math.isfinite, found)) else []


def _of_shell(text: str, where: str, since: int | None) -> Iterator[TypedSeries]:
    plain, documents = here_documents(text)
    for opening, body in documents:
        if ".py" in opening or re.search(r"\bpython[\d.]*\b", opening):
            yield from _of_program(body, where, since)
        elif not re.search(r"\.(?:md|sh|bash)\b", opening):
            yield from _of_text(body, where, since)
    for command in read_commands(plain):
        if command.name in {"echo", "printf", "sed", "perl", "awk"}:
            yield from _of_text(" ".join(command.argv[1:]), where, since)
        elif re.match(r"python[\d.]*$", command.name) and "-c" in command.argv[:-1]:
            yield from _of_program(command.argv[command.argv.index("-c") + 1], where, since)


def _of_text(text: str, where: str, since: int | None) -> Iterator[TypedSeries]:
    """All numbers of a text, and the ones behind `value:` alone (a results file in its own form)."""
    every = [value for value, _ in numbers_in(text)]
    named = [float(match) for match in re.findall(rf"value['\"]?\s*:\s*({NUMBER.pattern})", text)]
    for values in (every, named):
        if values:
            yield TypedSeries(tuple(values), where, shorten(text.strip().split("\n")[0], 200), since)


def numbers_in(text: str) -> list[tuple[float, int]]:
    """(value, decimals) of every number of a text, left to right."""
    found = []
    for match in NUMBER.finditer(text):
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
