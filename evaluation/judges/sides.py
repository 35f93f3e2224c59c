"""Who is compared and under which conditions: the words on either side of a cue that tell things apart.

Non-goal: which side is meant to be the better one (`propositions.py`).
"""

from __future__ import annotations

import re
from typing import Final

from evaluation.judges.lexicon import aspects_of, content

__all__ = ["entities", "head", "scope_of", "until_scope"]

_SCOPE: Final = re.compile(
    r"\b(?:on|in|for|under|at|across|when using|during|within|at)\s+((?:the |both |all )?[\w@.+/&-]+(?: (?:and |"
    r"& |, )?[\w@.+/&-]+){0,4})",
    re.I,
)
_MEASURES: Final = content(
    "accuracy error loss score scores metric metrics rate rates time latency memory cost prediction predictive "
    "detection significant consistent substantial slight overall average mean test train lower higher "
    "improvement degradation drop gain increase decrease superior inferior better best worst highest lowest "
    "comparable similar competitive numerical quantitative qualitative strong robust good poor high low large "
    "small clear marked quality capability statistically ability effectiveness efficiency perform outperform "
    "improve reduce enhance surpass exceed match difference"
)


def head(text: str) -> str:
    """What stands before a cue without a leading condition (`On D, A ...`), and only its last part after a colon."""
    found = re.sub(r"^(?:on|in|under|at|for|across|with|among|of|when|as|if)\b[^,]*,\s*", "", text.strip(), flags=re.I)
    return found.rsplit(":", maxsplit=1)[-1]


def until_scope(text: str) -> str:
    """What stands before the first condition (`B` of `B on D`)."""
    return re.split(
        r"\b(?:on|in|under|at|across|for|by|when|while|with respect to|in terms of|especially)\b|[;]", text, maxsplit=1
    )[0]


def entities(text: str) -> frozenset[str]:
    """The words of a side that tell things apart; what is measured and how well is said elsewhere."""
    found = content(_until_numbers(text))
    return (found - _MEASURES - content(" ".join(aspects_of(text)))) or frozenset()


def _until_numbers(text: str) -> str:
    return re.sub(r"\([^()]*\d[^()]*\)", " ", text)


def scope_of(text: str) -> frozenset[str]:
    """Conditions by names: what follows `on`, `in`, `for`, `under` and carries a capital or a digit."""
    found: set[str] = set()
    for match in _SCOPE.finditer(text):
        names = [word for word in re.findall(r"[\w@.+/-]+", match[1]) if re.search(r"[A-Z\d]", word)]
        found |= content(" ".join(names)) - content(" ".join(aspects_of(match[1])))
    return frozenset(found)
