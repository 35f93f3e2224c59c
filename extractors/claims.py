"""Numbers as papers print them, and the interval in which a reproduced number counts as equal.

`find_numbers` reads running text, `parse_cell` a whole table cell, `printed_band` does the interval arithmetic. No
opinion here about which sentences or tables are results.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final, NamedTuple

from pipeline.paper import Quantity
from pipeline.task import Band

__all__ = ["Number", "bound_or_range", "find_numbers", "normalize", "parse_cell", "printed_band", "symbols_in"]


class Number(NamedTuple):
    """A number in running text; `text == whole[start:end]`, unit and uncertainty included."""

    start: int
    end: int
    text: str
    value: float
    decimals: int
    """Of the mantissa as printed; for `3 × 10−4` see `step`."""
    step: float
    """One unit of the last printed digit."""
    unit: str | None
    uncertainty: float | None
    relation: str
    """`=` when stated exactly, `~` when approximately, `<` or `>` when it is a bound."""


_MANTISSA: Final = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+|\d+|\.\d+)"
_EXPONENT: Final = r"(?:\s?[×·x]\s?10\s?(?:\^\s?)?\{?[−–-]?\d{1,2}\}?|[eE][−+-]?\d{1,2}(?!\w))"
_UNIT: Final = (
    r"(?:\s?%|\s?percent\b|\s?percentage points\b|\s?pp\b|\s(?:Eh|ms|µs|μs|ns|s|sec|secs|seconds?|min|minutes?|hours?|"
    r"h|GB|MB|KB|GiB|MiB|dB|bits?|points?|nats?|Hz|kHz|MHz|GHz|eV|meV|W|J)\b|(?:ms|µs|μs|ns|s|h|GB|MB|dB|Eh|eV)\b|"
    r"\s[µμnmkMG]?(?:A|V|W|Hz|Ω|m|g|J|N|Pa|K|°C|eV|s)[/·][µμnmk]?[\w°]+|\s?×(?!\s?10)|x\b|[KMB]\b)"
)
_NUMBER: Final = re.compile(
    rf"(?<![\w.^_@])(?P<sign>[−–-](?=[\d.]))?(?P<mantissa>{_MANTISSA})(?P<exponent>{_EXPONENT})?"
    rf"(?P<unit>{_UNIT})?(?!\s?[×·]\s?10)"
    rf"(?:\s?(?:±|\+/-|\+-)\s?(?P<pm>{_MANTISSA}(?:{_EXPONENT})?)(?P<unit2>{_UNIT})?)?(?!\.\d)(?!\w)"
)
_MINUS: Final = str.maketrans({"−": "-", "–": "-", "‐": "-"})
# A minus that clings to its digits is one, also after a word (`of −0.31`); between two characters it is a dash (`3–5`).
_DASH_BEFORE: Final = re.compile(r"[\w)%][−–-]$")
_RELATION: Final = (
    ("~", re.compile(r"(?:[~∼≈≃]|\b(?:about|around|roughly|approximately|nearly|almost|circa)|approx\.)\s*$", re.I)),
    ("<", re.compile(r"(?:[<≤⩽]|\b(?:below|under|less than|at most|up to|within|fewer than|no more than))\s*$", re.I)),
    (">", re.compile(r"(?:[>≥⩾]|\b(?:above|over|more than|at least|exceed(?:s|ing)?|greater than))\s*$", re.I)),
)
_FOOTNOTE: Final = re.compile(r"[\s]*(?:[†‡§¶*∗⋆♦♯#]|\((?:a|b|c|d|i|ii|iii)\))+$")


def normalize(text: str) -> str:
    """White space collapsed and the many minus signs made one, for comparing what was printed."""
    return re.sub(r"\s+", " ", text.translate(_MINUS)).strip()


def _decimal(mantissa: str, exponent: str | None) -> tuple[Decimal, int, Decimal]:
    plain = mantissa.replace(",", "")
    places = len(plain.split(".", 1)[1]) if "." in plain else 0
    power = 0
    if exponent:
        digits = re.search(r"([−–+-]?)(\d+)\}?$", exponent)
        assert digits is not None
        power = int(digits.group(2)) * (-1 if digits.group(1).translate(_MINUS) == "-" else 1)
    scale = Decimal(10) ** power
    return Decimal(plain) * scale, places, Decimal(10) ** -places * scale


def find_numbers(text: str) -> list[Number]:
    """Every number of a sentence, left to right. References and years are among them."""
    numbers: list[Number] = []
    for match in _NUMBER.finditer(text):
        before = text[: match.start()]
        value, places, step = _decimal(match["mantissa"], match["exponent"])
        if match["sign"] and not _DASH_BEFORE.search(text[: match.start() + 1]):
            value = -value
        pm = re.fullmatch(rf"({_MANTISSA})({_EXPONENT})?", match["pm"]) if match["pm"] else None
        uncertainty = float(_decimal(pm[1], pm[2])[0]) if pm else None
        relation = next((sign for sign, pattern in _RELATION if pattern.search(before)), "=")
        unit = (match["unit"] or match["unit2"] or "").strip() or None
        unit = "%" if unit == "percent" else unit
        span = (match.start(), match.end(), match.group())
        numbers.append(Number(*span, float(value), places, float(step), unit, uncertainty, relation))
    return numbers


def parse_cell(text: str) -> Quantity | None:
    """Read a table cell that is one number (with unit, uncertainty, footnote marks); None for anything else.

    A thousands separator may be followed by a space (`130, 831`) because a whole cell cannot be a list of such groups;
    ranges, fractions and `18 / 17` are not one number and give None, as do bounds (`< 0.1`).
    """
    bare = _FOOTNOTE.sub("", re.sub(r"[↑↓▲▼]", "", text).strip()).strip()
    if re.fullmatch(r"[−–-]?\d{1,3}(?:, \d{3})+(?:\.\d+)?", bare):
        bare = bare.replace(", ", ",")
    bare = re.sub(r"(?<=\d)\s?[eE]\s?([−–+-])\s?(?=\d)", r"e\1", re.sub(r"^\+(?=[\d.])", "", bare))
    bare = re.sub(r"(\d)\s*\(\d{1,2}\)$", r"\1", bare) if re.search(r"±|\d\.\d", bare) else bare  # a rank behind it
    spread = re.fullmatch(r"(.*\d%?)\s*\((?:±\s?)?[\d.]+%?\)", bare)  # `0.91 (0.02)`: what is in parentheses is unnamed
    numbers = find_numbers(spread.group(1) if spread and "±" not in bare else bare.replace("(±", "±").rstrip(")"))
    if len(numbers) != 1 or numbers[0].relation != "=":
        return None
    number = numbers[0]
    rest = bare[: number.start] + (bare[number.end :] if spread is None or "±" in bare else "")
    if re.sub(r"[\s()]", "", rest):
        return None
    decimals = max(0, -Decimal(str(number.step)).adjusted())
    return Quantity(
        text=text.strip(), value=number.value, uncertainty=number.uncertainty, unit=number.unit, decimals=decimals
    )


def printed_band(value: float, step: float, uncertainty: float | None = None) -> Band:
    """The interval of values that print as `value`: half a unit of the last digit (`step`) on either side.

    Decimal arithmetic, so that 0.720 at three digits is exactly [0.7195, 0.7205]. A stated plus-minus widens it.

    Args:
        value: the number as printed.
        step: one unit of its last printed digit.
        uncertainty: what the paper prints behind a plus-minus sign, in the unit of `value`.
    """
    centre, half = Decimal(str(value)), Decimal(str(step)) / 2
    source = "printed precision"
    if uncertainty is not None:
        half += Decimal(str(abs(uncertainty)))
        source += f", widened by the stated ± {uncertainty:g}"
    return Band(low=float(centre - half), high=float(centre + half), source=source)


_SYMBOL: Final = re.compile(
    r"(?<![\w|)])(?P<name>[A-Za-zα-ωΑ-Ωσ∆]{1,2}(?:max|min|train|test|\d)?)\s?(?P<relation>[=∈])\s?"
    r"(?P<value>\{[^{}]{1,80}\}|\[[^\[\]]{1,40}\]|[−–-]?\d[\d,.]*\d|\d)(?P<unit>\s?[×·]\s?10[−–-]?\d+)?"
)


def symbols_in(text: str) -> list[tuple[str, str, int, int]]:
    """Assignments of symbols such as `n = 50,000` or `α ∈ {2, 4}`, as (name, value, start, end)."""
    return [
        (match["name"], normalize(match["value"] + (match["unit"] or "")).rstrip(".,"), match.start(), match.end())
        for match in _SYMBOL.finditer(text)
    ]


def bound_or_range(number: Number) -> str | None:
    """Why a number of a sentence cannot be a point claim (`bound`, `approximate`), or None when it can."""
    return {"<": "a bound", ">": "a bound", "~": "an approximate value"}.get(number.relation)
