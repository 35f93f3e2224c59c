"""Small English: lists and names."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["capitalise", "join_names", "plain_number", "shown_names"]

_SHOWN = 6


def capitalise(text: str) -> str:
    """First letter upper case, the rest untouched."""
    return text[:1].upper() + text[1:]


def join_names(items: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`; semicolons where the items hold commas of their own."""
    if len(items) <= 1:
        return "".join(items)
    comma = "; " if any(", " in re.sub(r"\([^()]*\)", "", item) for item in items) else ", "
    return f"{comma.join(items[:-1])} and {items[-1]}"


def shown_names(items: Sequence[str]) -> str:
    """Each item once; of many the first ones and how many more there are: `A, B, C, D, E, F and 3 more`."""
    once = list(dict.fromkeys(items))
    return join_names(once if len(once) <= _SHOWN + 1 else [*once[:_SHOWN], f"{len(once) - _SHOWN} more"])


def plain_number(text: str) -> str:
    """Typeset thousands without the thin space (`104, 664` -> `104,664`); anything else as it is."""
    return re.sub(r"(?<=\d), (?=\d{3}\b)", ",", text) if re.fullmatch(r"\d{1,3}(?:, \d{3})+", text) else text
