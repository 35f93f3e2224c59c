"""Where the tables of a scanned page lie: between horizontal rules of equal ends. Non-goal: what they say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from extractors._rules import Rule

__all__ = ["PrintedLine", "Region", "find_regions"]

_NARROWEST: Final = 60.0
"""Points; a shorter line is an underline or part of a drawing."""


_OUTSIDE: Final = 8.0
"""Points; signs that hang out of a table (asterisks, the sign of a number) measured up to 5."""
_CAPTION: Final = re.compile(r"(table|tab\.|figure|fig\.)\s+[A-Z]?\.?(\d+|[IVX]+)\s*[:.|]", re.IGNORECASE)


class Region(NamedTuple):
    """A table's box in pixels of the page image."""

    x0: int
    y0: int
    x1: int
    y1: int

    def holds(self, x: float, y: float) -> bool:
        """Is the point inside?"""
        return self.x0 <= x <= self.x1 and self.y0 <= y <= self.y1


class PrintedLine(NamedTuple):
    """A line that the first reading found: its ends and baseline in points."""

    x0: float
    x1: float
    baseline: float
    text: str


def find_regions(rules: Sequence[Rule], lines: Sequence[PrintedLine], scale: float) -> list[Region]:
    """Where tables lie: between rules of equal ends, unless text of the page stands between them.

    Args:
        rules: horizontal lines of the page in points.
        lines: what the first reading found, in points.
        scale: points per pixel.
    """
    groups: list[list[Rule]] = []
    for rule in sorted(rules, key=lambda rule: (rule.y, rule.x0)):
        if rule.width < _NARROWEST:
            continue
        for group in reversed(groups):
            last = group[-1]
            if abs(last.x0 - rule.x0) < 5 and abs(last.x1 - rule.x1) < 5 and not _parted(lines, last, rule):
                group.append(rule)
                break
        else:
            groups.append([rule])
    found = []
    for group in groups:
        if len(group) > 1 and group[-1].y - group[0].y > 12:
            top, bottom = _grown(group, lines)
            found.append(
                Region(int((group[0].x0 - 4) / scale), int(top / scale), int((group[0].x1 + 4) / scale) + 1,
                       int(bottom / scale) + 1)
            )  # fmt: skip
    return found


def _parted(lines: Sequence[PrintedLine], upper: Rule, lower: Rule) -> bool:
    """Do two rules belong to different tables? A caption, a line wider than they are, or running text parts them."""
    between = [
        line for line in lines if upper.y < line.baseline < lower.y and line.x1 > upper.x0 and line.x0 < upper.x1
    ]
    if any(_CAPTION.match(line.text) or _protrudes(line, upper) for line in between):
        return True
    inside = [line.text for line in between if line.x0 >= upper.x0 - 5]
    return sum(len(re.findall(r"\b[a-z]{2,}\b", text)) >= 7 for text in inside) >= 3


def _protrudes(line: PrintedLine, rule: Rule) -> bool:
    """Text of the column, wider than the table on both sides; beside one side the other column may have been joined."""
    return line.x0 < rule.x0 - _OUTSIDE and line.x1 > rule.x1 + _OUTSIDE


def _grown(group: Sequence[Rule], lines: Sequence[PrintedLine]) -> tuple[float, float]:
    """Top and bottom with the rows of numbers that stand under the last rule (physics sets none there)."""
    top, bottom = group[0].y + 1, group[-1].y - 1
    for left, _, y, text in sorted(lines, key=lambda line: line.baseline):
        near = bottom < y < bottom + 18 and group[0].x0 - 5 <= left <= group[0].x1
        if near and len(re.findall(r"\d+\.?\d*", text)) >= 3 and not re.search(r"[a-z]{2,} [a-z]{2,} [a-z]{2,}", text):
            bottom = y + 3
    return top, bottom
