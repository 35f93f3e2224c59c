"""Numbers as papers print them, and the interval in which a reproduced number counts as equal.

`find_numbers` reads running text, `parse_cell` a whole table cell, `printed_band` does the interval arithmetic,
`text_claims` turns a result sentence into (metric, number, conditions). No opinion here about which sentences or tables
are results: `extractors.takeaways` decides that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final, NamedTuple

from extractors._vocabulary import find_metric
from pipeline.paper import Quantity
from pipeline.task import Band

__all__ = [
    "Number", "TextClaim", "bound_or_range", "find_numbers", "normalize", "parse_cell", "printed_band", "symbols_in",
    "text_claims",
]  # fmt: skip


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


class TextClaim(NamedTuple):
    """A number with the metric that its sentence ties it to."""

    metric: str
    number: Number
    conditions: tuple[tuple[str, str], ...]


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
_REFERENCE: Final = re.compile(
    r"(?:\b(?:tables?|tab\.|figures?|figs?\.?|sections?|sec\.|§|eqs?\.|equations?|appendix|app\.|algorithms?|theorems?|"
    r"lemmas?|chapter|ref\.|page|version|v|step|phase|python|cuda|research question|RQ|hypothesis)\s*|"
    r"[\[(]\s?(?:[\w.]+,\s?)*)$",
    re.IGNORECASE,
)
_YEAR: Final = re.compile(r"(?:19|20)\d\d")


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
    """Every number of a sentence, left to right. References and years are among them; see `text_claims`."""
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


_LINK_BEFORE: Final = re.compile(
    r"^\s*(?:\([^()]{0,30}\)\s*)?(?:(?:of|is|was|are|were|at|to|reach(?:es|ed|ing)?|equals?|equal|stays?|remains?|"
    r"drops?|"
    r"rises?|falls?|grows?|ranges?|varies|goes|increases?|decreases?|improves?|averages?|only|just|still|has|value|"
    r"values|and|the|from|"
    r"[=:,]|[~∼≈<>≤≥]|between|below|above|under|over|about|around|less|more|than|at most|at least|"
    r"(?:on|for|with|over|across|in)\s(?:[^,;.]|\.\d|,\d){1,60}?(?=\s?(?:[=:]|\bis\b|\bwas\b|\bof\b|\bto\b)))\s*)*$",
    re.IGNORECASE,
)
_LINK_AFTER: Final = re.compile(r"^\s*(?:in|of)?\s*(?:the|a|an|points? of)?\s*(?:[a-z-]+\s){0,1}$", re.IGNORECASE)
_TAKES_NUMBER: Final = re.compile(r"\s*(?:=|of|is|was|:)\s*[\d~<>]")


_DIFFERENCE: Final = re.compile(
    r"^\s*(?:percentage\s)?(?:points?\s)?(?:above|below|better|worse|higher|lower|more|less|over|ahead|within|of each|"
    r"faster|slower|larger|smaller|points)\b",
    re.IGNORECASE,
)


def _is_result(sentence: str, number: Number, taken: list[tuple[int, int]]) -> bool:
    before = sentence[: number.start]
    if _DIFFERENCE.match(sentence[number.end :]) or number.unit in ("points", "point", "pp", "percentage points"):
        return False  # `5.2 points above` compares two results, it is not one
    if re.search(r"\bup to (?:a|an)\s[^,;]{0,30}$", before, re.IGNORECASE):
        return False
    if any(start <= number.start < end for start, end in taken) or _REFERENCE.search(before):
        return False
    return not (_YEAR.fullmatch(number.text) and re.search(r"[(,]\s?$|\bin $", before))


def text_claims(sentence: str, metric_symbols: Mapping[str, str] | None = None) -> list[TextClaim]:
    """The numbers of a sentence that it ties to a metric, with the symbols it fixes as conditions.

    Three shapes are read: `<metric> (of|is|=|to|:) <number>`, `<number>[%] <metric>`, and a number that continues an
    enumeration (`0.204 and 0.198`). Anything else (counts, sizes, references, years) is left alone: what is not tied
    to a metric in the sentence itself is no claim.

    Args:
        sentence: one sentence of the paper.
        metric_symbols: symbols that stand for a metric nearby, e.g. `d` for `Cohen's d`.
    """
    symbols = symbols_in(sentence)
    stand_ins = metric_symbols or {}
    own = [(s, s + len(name), stand_ins[name]) for name, _, s, _ in symbols if name in stand_ins]
    metrics = find_metric(sentence)
    metrics = sorted(metrics + [m for m in own if not _inside(m[0], metrics)])
    named = {sentence[start:end] for start, end, _ in metrics}
    settings = [(s, e) for name, _, s, e in symbols if name not in named and not _inside(s, metrics)]
    conditions = tuple((name, value) for name, value, s, e in symbols if (s, e) in settings)
    claims: list[TextClaim] = []
    previous: tuple[Number, str] | None = None
    for number in find_numbers(sentence):
        if not _is_result(sentence, number, settings):
            continue
        metric = _metric_of(sentence, number, metrics)
        if metric is not None and _is_change(sentence, number, metric):
            metric, previous = None, None
        if metric is None and previous is not None:
            between = sentence[previous[0].end : number.start]
            if re.fullmatch(
                r"\s*(?:\([^()]*\))?\s*(?:,|and|to|vs\.?|versus|or|→|,?\s?against|"
                r",?\s?compared (?:to|with))\s*(?:and\s|against\s)?",
                between,
            ):
                metric = previous[1]
        if metric is not None:
            claims.append(TextClaim(metric, number, conditions))
            previous = (number, metric)
    return claims


_CHANGE: Final = re.compile(
    r"^\s?(?:absolute |relative |respective )*(?:improvements?|gains?|increases?|reductions?|drops?|decreases?|"
    r"differences?|gaps?|margins?|boosts?)\b",
    re.IGNORECASE,
)
_REFERENCE_VALUE: Final = re.compile(
    r"\b(?:worse|better|lower|higher|less|more|below|above) (?:than|to) (?:the |a |an )?$", re.IGNORECASE
)


def _is_change(sentence: str, number: Number, metric: str) -> bool:
    """A difference (`a 4.6% accuracy improvement`), an end of a range or a value to compare with: no result itself."""
    named = sentence.find(metric, number.end)
    change = named >= 0 and named - number.end < 30 and _CHANGE.match(sentence[named + len(metric) :])
    ranged = re.search(r"\d\s?%?[–−-]$", sentence[: number.start + 1]) or re.match(
        r"\s?%?[–−-]\s?\d", sentence[number.end :]
    )
    return bool(change or ranged or _REFERENCE_VALUE.search(sentence[: number.start]))


def _inside(position: int, metrics: list[tuple[int, int, str]]) -> bool:
    """Is the symbol at `position` the end of a metric's name, as in `Cohen's d = 1.32`?"""
    return any(start <= position < end for start, end, _ in metrics)


def _metric_of(sentence: str, number: Number, metrics: list[tuple[int, int, str]]) -> str | None:
    after = [m for m in metrics if m[0] >= number.end]
    if after and not sentence[number.end : after[0][0]].strip() and not _TAKES_NUMBER.match(sentence, after[0][1]):
        return None if _is_count(number, after[0][2]) else after[0][2]
    for start, end, phrase in reversed([m for m in metrics if m[1] <= number.start]):
        link = _without_symbols(re.sub(r"^\s?[×·/]\s?√?\s?\w+", "", sentence[end : number.start]))
        if len(link) <= 70 and _LINK_BEFORE.match(link) and not find_numbers(link):
            return _product(sentence, start, phrase)
        break
    if after and _LINK_AFTER.match(sentence[number.end : after[0][0]]):
        return None if _is_count(number, after[0][2]) else after[0][2]
    return None


def _is_count(number: Number, phrase: str) -> bool:
    """`5 errors` counts; it does not measure an error."""
    return number.unit is None and number.decimals == 0 and phrase.lower().endswith("s")


def _without_symbols(text: str) -> str:
    for _, _, start, end in reversed(symbols_in(text)):
        text = text[:start] + text[end:]
    return text


def _product(sentence: str, start: int, phrase: str) -> str:
    """`RMSE × √n` is one metric: take the factor along."""
    match = re.match(r"\s?[×·/]\s?√?\s?\w+", sentence[start + len(phrase) :])
    return phrase + match.group() if match else phrase


def bound_or_range(claim: TextClaim) -> str | None:
    """Why a number of a sentence cannot be a point claim (`bound`, `approximate`), or None when it can."""
    return {"<": "a bound", ">": "a bound", "~": "an approximate value"}.get(claim.number.relation)
