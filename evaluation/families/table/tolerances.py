"""Tolerances, from configuration or from what the rubric says in words (PRBench A.2: "specified in scoring rubrics").

Read in this order: `task.yaml` (a table's own, then the task's), the sentence about that table in the graders' text,
the description of the data dimension, the graders' text as a whole, the default. Where a number was found is kept.
"""

from __future__ import annotations

import re
from typing import Final

from evaluation.families.table.records import DEFAULT_RELATIVE, Tolerance
from pipeline.text import shorten

__all__ = ["DEFAULT", "tolerance_about", "tolerance_in_words"]

DEFAULT: Final = Tolerance(relative=DEFAULT_RELATIVE, source="default")

_NUMBER: Final = r"(?P<number>\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
_AROUND: Final = (
    rf"{_NUMBER}\s*(?P<percent>%)\s*(?:\w+\s+){{0,2}}(?:tolerance|error|deviation|accuracy|margin|of\s+the\s+reference)",
    rf"(?:tolerances?|deviation|margin|容差|误差)[^.\n%\d]{{0,40}}?(?:±|~|≈|<=?|≤)?\s*{_NUMBER}\s*(?P<percent>%)",
    rf"(?:within|±|up\s+to)\s*(?:~|≈|about\s+)?{_NUMBER}\s*(?P<percent>%)",
    rf"\b(?:rtol|relative\s+(?:tolerance|error)|rel\.?\s*tol\w*)\s*(?:of|is|[:=<≤~]+)*\s*{_NUMBER}\s*(?P<percent>%)?",
)
_LABEL: Final = re.compile(r"(?P<kind>fig(?:ure)?|tab(?:le)?)[_-]?(?P<number>[0-9]+)(?![0-9])", re.IGNORECASE)
_MOST: Final = 1.0
"""More than 100 % is no tolerance of a value."""


def tolerance_in_words(text: str, source: str) -> Tolerance | None:
    """The first relative tolerance that a text states; None when it states none."""
    found = []
    for order, pattern in enumerate(_AROUND):
        match = re.search(pattern, text, re.IGNORECASE)
        if match:
            value = float(match["number"]) / (100 if match["percent"] else 1)
            if 0 < value <= _MOST:
                found.append((match.start(), order, value, match))
    if not found:
        return None
    _, _, value, match = min(found, key=lambda item: item[:2])
    around = " ".join(text[max(match.start() - 40, 0) : match.end() + 20].split())
    return Tolerance(relative=value, source=f"{source}: {shorten(around, 120)}")


def tolerance_about(path: str, text: str, source: str) -> Tolerance | None:
    """The tolerance that a text states for one table.

    That is: in a line that names the file, or, for `fig3_...` and `table2_...`, in a line about Figure 3 or Table 2 or
    in the section of that heading.
    """
    base = path.rsplit("/", 1)[-1]
    lines = text.splitlines()
    named = [line for line in lines if base in line]
    label = _LABEL.match(base)
    if label:
        word = r"(?:fig(?:ure)?s?\.?|图)" if label["kind"].lower().startswith("f") else r"(?:tab(?:le)?s?\.?|表)"
        about = re.compile(rf"(?<![A-Za-z]){word}\s*{label['number']}(?![0-9])", re.IGNORECASE)
        named += [line for line in lines if about.search(line)]
        named += _sections(lines, about)
    return next((found for line in named if (found := tolerance_in_words(line, source))), None)


def _sections(lines: list[str], about: re.Pattern[str]) -> list[str]:
    """The lines below headings that match, up to the next heading."""
    found, inside = [], False
    for line in lines:
        if line.startswith("#"):
            inside = bool(about.search(line))
        elif inside:
            found.append(line)
    return found
