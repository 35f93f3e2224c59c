"""What a paper says its short names stand for: `B@4, R, M, C denote BLEU-4, ROUGE-L, METEOR, CIDEr, respectively`.

Captions explain the abbreviations of their table, and nothing else does; a header such as `R` or `U` means nothing
without it. Only what is written is returned; whether a long form is a metric is for the caller to decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

__all__ = ["legend_of"]

_SHORT: Final = r"[A-Za-zα-ωΑ-Ω][\w@./+-]{0,11}(?:[↑↓*])?"
_LIST: Final = rf"{_SHORT}(?:,\s?(?:and\s)?{_SHORT}|\sand\s{_SHORT})+"
_STANDS: Final = r"(?:denotes?|stands? for|refers? to|represents?|indicates?|means?|(?:is|are) short for|abbreviates?)"
_RESPECTIVELY: Final = re.compile(
    rf"(?P<shorts>{_LIST})\s{_STANDS}\s(?:the\s)?(?P<longs>[^.;:]{{3,200}}?)(?:,?\srespectively|[.;]|$)"
)
_EQUALS: Final = re.compile(
    rf"(?:(?<=[\s,;.(:])|^)[“\"‘']?(?P<short>{_SHORT})[”\"’']?\s?(?:=|{_STANDS})\s?(?:the\s|an?\s)?"
    r"(?P<long>[A-Za-z][^.;,=()]{2,80})"
)
_BRACKETED: Final = re.compile(
    rf"(?P<long>(?:[A-Za-z][\w@-]+\s){{1,5}})\((?:denoted (?:as|by) |"
    rf"abbreviated (?:as )?)?(?P<short>{_SHORT})\s?(?:\(%\))?\)"
)


def _parts(text: str) -> list[str]:
    return [part.strip() for part in re.split(r",\s?(?:and\s)?|\sand\s", text) if part.strip()]


def legend_of(texts: Iterable[str]) -> dict[str, str]:
    """Short names with what they stand for, from captions and sentences; the first explanation of a name stands.

    Read are lists (`A, B denote x, y, respectively`), equations (`U = accuracy of unseen classes`) and brackets
    (`character error rate (CER)`, where the letters begin the words).
    """
    found: dict[str, str] = {}
    for text in texts:
        for match in _RESPECTIVELY.finditer(text):
            shorts, longs = _parts(match["shorts"]), _parts(match["longs"])
            if len(shorts) == len(longs) > 1:
                for short, long in zip(shorts, longs, strict=True):
                    found.setdefault(_key(short), long)
        for match in _EQUALS.finditer(text):
            found.setdefault(_key(match["short"]), match["long"].strip())
        for match in _BRACKETED.finditer(text):
            spelled = _lettered(match["long"].split(), match["short"])
            if spelled:
                found.setdefault(_key(match["short"]), spelled)
    return found


def _key(short: str) -> str:
    return short.strip("*↑↓ .")


def _spelled(words: list[str], short: str) -> str | None:
    """The shortest phrase of up to four words that holds the letters in order: `mean class accuracy (mCls)`."""
    for size in range(1, min(4, len(words)) + 1):
        phrase = words[-size:]
        rest = iter("".join(phrase).lower())
        if phrase[0][0].lower() == short[0].lower() and all(
            letter in rest for letter in short.lower() if letter.isalnum()
        ):
            return " ".join(phrase)
    return None


def _lettered(words: list[str], short: str) -> str | None:
    """The last words whose first letters spell the abbreviation (`character error rate (CER)`); else None."""
    phrase = _spelled(words, short)
    if phrase is not None:
        return phrase
    letters = [letter.lower() for letter in short if letter.isalpha()]
    parts = [part for word in words for part in word.split("-") if part]
    if len(letters) < 2 or len(parts) < len(letters):
        return None
    if [part[0].lower() for part in parts[-len(letters) :]] != letters:
        return None
    joined = " ".join(words)
    start = joined.lower().rfind(parts[-len(letters)].lower())
    return joined[start:]
