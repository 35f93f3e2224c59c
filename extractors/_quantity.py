"""Numbers as papers print them: signs, thousands separators, plus-minus parts, powers of ten, units, spreads.

Non-goal: numbers in words, dates, ranges (`5-25` has no single value and gives None).
"""

from __future__ import annotations

import re
from typing import Final

from extractors._text import MINUS_SIGNS, squeeze
from pipeline.paper import Quantity

__all__ = ["looks_numeric", "parse_quantity"]

_MINUS: Final = re.escape(MINUS_SIGNS)  # a bare hyphen inside a character class would be a range
_DIGITS: Final = r"\d{1,3}(?:[,\u2009\u202f ]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+"
_EXPONENT: Final = (
    rf"(?:\s*[eE]\s*(?P<exp>[+{_MINUS}]?\s*\d{{1,3}})(?![\w.])"
    rf"|\s*[×x·⋅*]\s*10\s*\^?\s*\{{?(?P<pow>[{_MINUS}]?\s*\d{{1,3}})\}}?)?"
)
_UNIT: Final = (
    r"(?:%|‰|°C|°|pp|ms|µs|μs|ns|s|sec|min|h|hrs?|days?|K|M|B|T|k|G|x|×|KB|MB|GB|TB|GiB|MiB|Hz|kHz|MHz|GHz|W|kW|mW|dB|"
    r"V|mV|GeV|TeV|MeV|eV|fb|pb|mm|cm|m|km|nm|µm|μm|bits?|points?|pts?)"
)
_QUANTITY: Final = re.compile(
    rf"^[~≈<>≤≥]?\s*(?P<sign>[+{_MINUS}])?\s*(?P<currency>[$€£])?\s*(?P<number>{_DIGITS}){_EXPONENT}"
    rf"\s*(?P<unit1>{_UNIT})?"
    rf"(?:\s*(?:±|\+/-|\+-)\s*(?P<pm>{_DIGITS})|\s*\((?:±|\+/-)?\s*(?P<paren>{_DIGITS})\))?"
    rf"\s*(?P<unit2>{_UNIT})?\s*(?P<mark>[*†‡§¶∗]|\([a-z]\))*$"
)
_SPACED: Final = re.compile(r"(?<=\d)\s+(?=\.\d)|(?<=\d\.)\s+(?=\d)")


def _plain(digits: str) -> str:
    return re.sub(r"[,\u2009\u202f ]", "", digits)


def parse_quantity(text: str) -> Quantity | None:
    """The one number that `text` states, or None when it states none, several or something else.

    `1,234.5`, `−0.31`, `12.3 ± 0.4`, `45.1 (0.2)`, `3.2e-4`, `1.5 × 10−3`, `87.5%`, `2.1x`, `$5`. Comparison signs and
    footnote marks around the number are ignored. A spread in brackets counts as an uncertainty, as result tables have
    it.
    """
    cleaned = _SPACED.sub("", squeeze(text))
    if not cleaned or len(cleaned) > 48 or not any(character.isdigit() for character in cleaned):
        return None
    match = _QUANTITY.match(cleaned)
    if match is None:
        return None
    digits = _plain(match["number"])
    value = float(digits)
    if match["sign"] and match["sign"] in MINUS_SIGNS:
        value = -value
    decimals = len(digits.partition(".")[2])
    power = match["exp"] or match["pow"]
    spread = match["pm"] or match["paren"]
    uncertainty = float(_plain(spread)) if spread else None
    if power:
        exponent = int(re.sub(rf"[{_MINUS}]", "-", power.replace(" ", "")))
        if abs(exponent) > 300:
            return None
        value = float(f"{value!r}e{exponent}") if "e" not in repr(value) else value * 10.0**exponent
        uncertainty = None if uncertainty is None else uncertainty * 10.0**exponent
        decimals = max(0, decimals - exponent)
    unit = match["unit1"] or match["unit2"] or match["currency"]
    return Quantity(text=cleaned, value=value, uncertainty=uncertainty, unit=unit, decimals=decimals)


def looks_numeric(text: str) -> bool:
    """Is this a cell of results: a number, or mostly digits (`5–25`, `0.8/0.9`, `81.2 (+1.3)`)?"""
    if parse_quantity(text) is not None:
        return True
    dense = re.sub(r"\s", "", text)
    return bool(dense) and sum(map(str.isdigit, dense)) >= 0.45 * len(dense)
