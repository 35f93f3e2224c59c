"""The numbers that an agent reports, with how exactly it wrote them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from evaluation.integrity.literals import significant_digits
from evaluation.integrity.material import Material
from pipeline.text import shorten
from pipeline.validation.numbers import find_numbers, half_unit

__all__ = ["Reported", "agrees", "as_typed", "reported_numbers"]


@dataclass(frozen=True, slots=True)
class Reported:
    """A number that the agent reports."""

    name: str
    value: float
    decimals: int
    digits: int


def reported_numbers(material: Material) -> list[Reported]:
    """The numbers of the conclusion: the named ones, then those of its text that are not among them."""
    response = material.submission.response
    if response is None:
        return []
    found = []
    for name, value in sorted(response.conclusion.numbers.items()):
        text = as_typed(material.response_text, name, value)
        found.append(Reported(name, value, _decimals(text), significant_digits(text)))
    for line in response.conclusion.text.split("\n"):
        for number in find_numbers(line):
            digits = significant_digits(number.text.split("±")[0])
            if digits >= 3 and not any(agrees(number.value, number.decimals, item.value) for item in found):
                around = line[max(0, number.start - 40) : number.end]
                found.append(Reported(f"text: {shorten(around, 60)}", number.value, number.decimals, digits))
    return found


def as_typed(response: str, name: str, value: float) -> str:
    """How the agent wrote a number (`0.930` has three digits); its shortest form where that cannot be seen."""
    match = re.search(
        re.escape(json.dumps(name, ensure_ascii=False)) + r"\s*:\s*\"?([-+]?[\d.]+(?:[eE][-+]?\d+)?)", response
    )
    if match:
        try:
            if float(match[1]) == value:
                return match[1]
        except ValueError:
            return f"{value!r}"
    return f"{value!r}".removesuffix(".0")


def _decimals(text: str) -> int:
    mantissa, _, exponent = text.lower().partition("e")
    return len(mantissa.partition(".")[2]) - (int(exponent) if exponent else 0)


def agrees(reported: float, decimals: int, seen: float) -> bool:
    """Is `reported` what `seen` is to the digits that are reported, as it stands or as percent against fraction?"""
    unit = half_unit(decimals)
    slack = unit * (1 + 1e-9) + 1e-12
    return any(abs(scaled - reported) <= slack for scaled in (seen, seen * 100, seen / 100))
