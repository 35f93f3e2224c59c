"""Does it say that? Words and numbers looked up in a text, as the text prints them.

Texts are compared without regard to white space, case, ligatures and kinds of dashes and quotation marks, at word
boundaries. Non-goal: judging whether a text supports what is concluded from it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from extractors.claims import Number, find_numbers, normalize

__all__ = ["compact", "contains", "number_in", "printed_as", "stands_in", "words_of"]

_SHORTEST: Final = 12
"""Characters without blanks: `accuracy 90.2`. Shorter quotes (`the model`) stand in every paper and support nothing."""
_SAME: Final = str.maketrans(
    dict.fromkeys("−–—‐‑‒―", "-") | dict.fromkeys("“”„‟«»″", '"') | dict.fromkeys("‘’‚‛′´`", "'")
)  # fmt: skip
_NAMES_A_FLOAT: Final = re.compile(
    r"(?:\b(?:tables?|tab\.|figures?|figs?\.?|sections?|sec\.|§|eqs?\.?|equations?|appendix|algorithms?)\s*|\[\s?)$",
    re.IGNORECASE,
)


def compact(text: str) -> tuple[str, tuple[int, ...]]:
    """Text without blanks and in one form of each character; the origin of each character."""
    kept: list[str] = []
    positions: list[int] = []
    for position, character in enumerate(text):
        for part in unicodedata.normalize("NFKC", character).translate(_SAME).casefold():
            if not part.isspace() and unicodedata.category(part) not in {"Cf", "Cc", "Mn"}:
                kept.append(part)
                positions.append(position)
    return "".join(kept), tuple(positions)


def printed_as(text: str, quote: str) -> str | None:
    """What of `text` a quote is, as it is printed there; None where it is not, or too short to say anything."""
    plain, positions = compact(text)
    wanted = compact(quote.strip().strip('"“”'))[0].rstrip(".;,:")
    if len(wanted) < _SHORTEST:
        return None
    for start in _occurrences(plain, wanted):
        first, last = positions[start], positions[start + len(wanted) - 1] + 1
        if _at_boundaries(text, first, last):
            return text[first : last + 1] if text[last : last + 1] in {".", "!", "?"} else text[first:last]
    return None


def stands_in(text: str, value: str) -> bool:
    """Does a value stand in a text, as it is or as the same number written in another way (`1e-3`, `0.001`, `0.1%`)?"""
    if contains(text, value):
        return True
    wanted = find_numbers(value)
    if len(wanted) != 1 or compact(value)[0] != compact(wanted[0].text)[0]:
        return False
    values = {wanted[0].value, wanted[0].value / 100 if wanted[0].unit == "%" else wanted[0].value}
    return any(number.value in values for number in find_numbers(text))


def _occurrences(text: str, part: str) -> Iterator[int]:
    start = text.find(part)
    while start >= 0:
        yield start
        start = text.find(part, start + 1)


def _at_boundaries(text: str, start: int, end: int) -> bool:
    """`0.2%` is no quote of `90.2%`, and `art of` none of `part of`."""
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    if before[-1:].isalnum() and text[start].isalnum():
        return False
    if after[:1].isalnum() and text[end - 1].isalnum():
        return False
    cut_before = re.search(r"\d[.,]?$", before) and re.match(r"[.,]?\d", text[start : start + 2])
    cut_after = re.match(r"[.,]?\d", after) and re.search(r"\d[.,]?$", text[max(start, end - 2) : end])
    return not (cut_before or cut_after)


def words_of(text: str) -> frozenset[str]:
    """Words and numbers of a text in lower case, hyphens taken apart, plural `s` dropped."""
    words = re.findall(r"\d+(?:[.,]\d+)*|[^\W\d_]+", unicodedata.normalize("NFKC", normalize(text)).casefold())
    return frozenset(w[:-1] if len(w) > 3 and w.endswith("s") and not w.endswith("ss") else w for w in words)


def number_in(span: str, value: str) -> Number | None:
    """The number of `span` that `value` states: equal in value and printed with as many digits; None when none is.

    Numbers of tables, figures, sections and references in the span do not count.

    Args:
        span: text of the paper.
        value: one number as a model gives it, possibly with unit and plus-minus part.
    """
    wanted = [_signed(value, number) for number in find_numbers(value)]
    if len(wanted) != 1:
        return None
    for number in (_signed(span, number) for number in find_numbers(span)):
        if number.value != wanted[0].value or number.decimals != wanted[0].decimals:
            continue
        if wanted[0].uncertainty is not None and number.uncertainty != wanted[0].uncertainty:
            continue
        if not _NAMES_A_FLOAT.search(span[: number.start]):
            return number
    return None


def _signed(text: str, number: Number) -> Number:
    """A number with the minus sign that is printed right before it, after a blank (`a change of −0.31`)."""
    minus = re.match(r"[-−–](?=[\d.])", number.text)
    if minus and (number.start == 0 or text[number.start - 1] in " (["):
        return number._replace(value=-abs(number.value))
    return number


def contains(text: str, value: str) -> bool:
    """Does `value` stand in `text` at word boundaries, blanks and kinds of dashes apart?"""
    plain, positions = compact(text)
    wanted = compact(value)[0]
    return bool(wanted) and any(
        _at_boundaries(text, positions[start], positions[start + len(wanted) - 1] + 1)
        for start in _occurrences(plain, wanted)
    )
