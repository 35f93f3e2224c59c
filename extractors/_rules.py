"""Straight horizontal lines on a page: what holds a booktabs table together.

They come as stroked lines, as thin filled rectangles, or - from dvips and Ghostscript - as 1x1 image masks that only
the bounding-box log shows. Non-goal: frames and grids of vertical lines, which scientific tables seldom have; vertical
lines are returned for splitting columns only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import pymupdf

from pipeline.paper import Box

__all__ = ["Rule", "Strokes", "merge_rules", "read_strokes"]

_THIN: Final = 2.5
"""Points; booktabs' heavy rule is 0.8, the thickest seen in journals 2.0."""
_SHORTEST: Final = 8.0
_MANY: Final = 20_000
"""Vector plots with more paths than this are read from the bounding-box log alone (1.1 s against 0.03 s)."""


class Rule(NamedTuple):
    """A horizontal line."""

    x0: float
    x1: float
    y: float

    @property
    def width(self) -> float:
        return self.x1 - self.x0


class Strokes(NamedTuple):
    """Lines and other drawings of a page."""

    rules: list[Rule]
    verticals: list[Box]
    drawings: list[Box]
    """Boxes of everything painted that is neither text nor a thin line."""


def merge_rules(rules: Iterable[Rule], *, distance: float = 1.0, gap: float = 1.6) -> list[Rule]:
    """Pieces of one line as one rule, from top to bottom."""
    merged: list[Rule] = []
    for rule in sorted(rules, key=lambda rule: (round(rule.y), rule.x0, rule.x1)):
        index = _piece_of(rule, merged, distance, gap)
        if index is None:
            merged.append(rule)
        else:
            other = merged[index]
            merged[index] = Rule(min(other.x0, rule.x0), max(other.x1, rule.x1), other.y)
    return sorted(merged, key=lambda rule: (rule.y, rule.x0))


def _piece_of(rule: Rule, merged: list[Rule], distance: float, gap: float) -> int | None:
    for index in range(len(merged) - 1, -1, -1):
        other = merged[index]
        if rule.y - other.y > 2 + distance:
            return None
        if abs(other.y - rule.y) < distance and rule.x0 - other.x1 < gap and other.x0 - rule.x1 < gap:
            return index
    return None


def _from_box(box: tuple[float, float, float, float], found: Strokes) -> bool:
    x0, y0, x1, y1 = box
    if y1 - y0 < _THIN and x1 - x0 > _SHORTEST:
        found.rules.append(Rule(x0, x1, (y0 + y1) / 2))
        return True
    if x1 - x0 < _THIN and y1 - y0 > 5:
        found.verticals.append(Box(x0, y0, x1, y1))
        return True
    return x1 - x0 < _THIN and y1 - y0 < _THIN


def _read_paths(sheet: pymupdf.Page, found: Strokes) -> None:
    for drawing in sheet.get_cdrawings():
        if drawing.get("type") == "clip" or drawing.get("type") == "group":
            continue
        thin = True
        for item in drawing["items"]:
            if item[0] == "l":
                (ax, ay), (bx, by) = item[1], item[2]
                if abs(ay - by) < 1 or abs(ax - bx) < 1:
                    _from_box((min(ax, bx), min(ay, by), max(ax, bx), max(ay, by)), found)
                    continue
            elif item[0] == "re" and _from_box(tuple(item[1]), found):
                continue
            thin = False
        if not thin:
            found.drawings.append(Box(*drawing["rect"]))


def read_strokes(sheet: pymupdf.Page) -> Strokes:
    """Lines and drawings of a page, in points of the unrotated page."""
    found = Strokes([], [], [])
    log = sheet.get_bboxlog()
    paths = [box for kind, box in log if "path" in kind]
    if 0 < len(paths) <= _MANY:
        _read_paths(sheet, found)
    else:
        found.drawings.extend(Box(*box) for box in paths if not _from_box(box, found))
    found.drawings.extend(Box(*box) for kind, box in log if kind == "fill-shade")
    for kind, box in log:
        if "im" in kind and "g" in kind and box[3] - box[1] < _THIN:
            _from_box(box, found)
    clean = [rule for rule in found.rules if rule.width > _SHORTEST]
    return Strokes(merge_rules(clean), found.verticals, found.drawings)
