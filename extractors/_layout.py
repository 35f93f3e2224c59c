"""Page geometry: body size, columns, margins, leading; and what is furniture (running heads, page and line numbers).

Non-goal: meaning of text beyond its place.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from extractors._layer import PageText, TextLine
from extractors._rules import Rule

__all__ = ["Column", "PageLayout", "body_size", "column_count", "find_furniture", "page_layout", "reorder"]

_EDGE: Final = 0.095
"""Share of the page's height at top and bottom in which running heads and feet stand (CVPR's head ends at 0.09)."""
_REPEATED: Final = 0.12
"""The same where a line repeats on other pages (the head of the ACM's two-column style ends at 0.1)."""
_LONG_HEAD: Final = 15
"""Characters; tables at the top of pages repeat words like `Method` there."""
_NUMBER: Final = re.compile(
    r"^(?:page\s+)?[-–—]?\s*(?:\d{1,4}|[ivxl]{1,6})\s*[-–—]?(?:\s*(?:/|of)\s*\d{1,4})?$", re.IGNORECASE
)
_NOTICE: Final = re.compile(
    r"^(preprint|under review|published as|accepted (at|by|to)|proceedings of|arxiv:|\d+(st|nd|rd|th) conference|"
    r"copyright|©|\(c\)|permission to make|submitted to|correspondence to:?$|workshop|"
    r".*\bconference on\b.*\b(19|20)\d\d)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Column:
    """Left and right edge of a text column in points."""

    left: float
    right: float


@dataclass(frozen=True, slots=True)
class PageLayout:
    """Columns from left to right, and the usual distance of two baselines."""

    columns: tuple[Column, ...]
    leading: float
    justified: bool

    def column_of(self, line: TextLine) -> int:
        """Index of the column in which the line's middle lies (nearest one)."""
        middle = (line.x0 + line.x1) / 2
        if line.width > 1.15 * max(column.right - column.left for column in self.columns):
            return 0  # set across the columns: a wide abstract
        return min(
            range(len(self.columns)),
            key=lambda i: (not self.columns[i].left - 6 <= middle <= self.columns[i].right + 6,
                           abs((self.columns[i].left + self.columns[i].right) / 2 - middle)),
        )  # fmt: skip


def body_size(pages: Sequence[PageText]) -> float:
    """The font size that most characters have, to half a point."""
    sizes: Counter[float] = Counter()
    for page in pages:
        for line in page.lines:
            sizes[line.size] += len(line.text)
    return max(sizes, key=lambda size: (sizes[size], size)) if sizes else 10.0


def column_count(page: PageText, body: float) -> int:
    """0 without text, 2 when many lines stand in either half and few cross the middle, else 1.

    Asked of all lines (pages of references are set smaller) and of those of body size alone (labels of a wide figure do
    not count then); either may say two.
    """
    lines = [line for line in page.lines if len(line.text) > 12]
    if not lines:
        return 1 if page.lines else 0
    running = [line for line in lines if abs(line.size - body) < 0.6]
    if _has_two_columns(lines, page, least=6):
        return 2
    # A page that is mostly floats: three lines of prose in the emptier column are enough when none crosses the middle.
    return 2 if len(running) >= 10 and _has_two_columns(running, page, least=3) else 1


def _has_two_columns(lines: Sequence[TextLine], page: PageText, *, least: int) -> bool:
    left, right = min(line.x0 for line in lines), max(line.x1 for line in lines)
    # Titles and wide floats are centred on the sheet; a lone narrow column is not.
    middle = page.width / 2 if left < 0.4 * page.width and right > 0.6 * page.width else (left + right) / 2
    in_left = [line for line in lines if line.x1 < middle + 6 and line.width > 0.2 * (right - left)]
    in_right = [line for line in lines if line.x0 > middle - 6 and line.width > 0.2 * (right - left)]
    crossing = sum(line.x0 < middle - 12 and line.x1 > middle + 12 for line in lines)
    if least < 6 and crossing > 1:
        return False
    halves = min(len(in_left), len(in_right))
    return halves >= least and halves > 0.25 * crossing and len(in_left) + len(in_right) > 0.8 * crossing


def page_layout(page: PageText, size: float) -> PageLayout:
    """Edges of the columns from the body-size lines of a page.

    A column without any (references set smaller beside the end of the text) has the edges of what it does hold: taken
    for one column, such a page mixed footnotes of the left one with lines of the right one.
    """
    lines = [line for line in page.lines if abs(line.size - size) < 0.8] or page.lines
    if not lines:
        return PageLayout((Column(0, page.width),), 1.2 * size, justified=False)
    groups: list[list[TextLine]] = [lines]
    if page.columns == 2:
        middle = page.width / 2
        halves = [
            [line for line in lines if line.x1 < middle + 6] or [line for line in page.lines if line.x1 < middle + 6],
            [line for line in lines if line.x0 > middle - 6] or [line for line in page.lines if line.x0 > middle - 6],
        ]
        groups = [group for group in halves if group] or [lines]
    columns = []
    at_edge = total = 0
    for group in groups:
        wide = [line for line in group if line.width > 0.5 * max(other.width for other in group)]
        start = Counter(round(line.x0) for line in wide).most_common(1)[0][0]
        starts = [line.x0 for line in wide if abs(line.x0 - start) < 1.5]
        ends = sorted(line.x1 for line in wide)
        column = Column(min(starts), ends[int(0.9 * (len(ends) - 1))])
        columns.append(column)
        at_edge += sum(abs(line.x1 - column.right) < 2.5 for line in wide)
        total += len(wide)
    steps = [
        b.baseline - a.baseline for a, b in pairwise(lines)
        if 0.8 * size < b.baseline - a.baseline < 2.6 * size and a.block == b.block
    ]  # fmt: skip
    leading = statistics.median_low(steps) if steps else 1.2 * size
    return PageLayout(tuple(columns), leading, justified=at_edge > 0.5 * total)


def reorder(page: PageText) -> bool:
    """Sort a two-column page whose stream jumps between the columns row by row; True when it had to be done.

    Honest two-column streams change sides a few times a page (floats, footnotes); row-wise ones on most lines.
    """
    if page.columns != 2 or len(page.lines) < 12:
        return False
    middle = page.width / 2
    sides = [0 if line.x1 < middle + 6 else 1 if line.x0 > middle - 6 else -1 for line in page.lines]
    changes = sum(a != b for a, b in pairwise(sides))
    if changes < 0.5 * len(sides):
        return False
    ordered = sorted(zip(page.lines, sides, strict=True), key=lambda pair: (pair[0].baseline, pair[0].x0))
    result: list[TextLine] = []
    section: list[tuple[TextLine, int]] = []
    for pair in ordered:
        if pair[1] == -1:
            result += [line for line, side in section if side == 0] + [line for line, side in section if side == 1]
            result.append(pair[0])
            section = []
        else:
            section.append(pair)
    result += [line for line, side in section if side == 0] + [line for line, side in section if side == 1]
    page.lines = result
    return True


def _at_edge(line: TextLine, page: PageText, share: float = _EDGE) -> bool:
    return line.box.y1 < share * page.height or line.box.y0 > (1 - share) * page.height


def _outermost(line: TextLine, page: PageText) -> bool:
    """No other line stands further out on its side of the page."""
    if line.baseline < page.height / 2:
        return not any(other.baseline < line.baseline - 2 for other in page.lines)
    return not any(other.baseline > line.baseline + 2 for other in page.lines)


def find_furniture(pages: Sequence[PageText], rules: Sequence[Sequence[Rule]]) -> set[int]:
    """Ids of lines that are no content: repeated heads and feet, page numbers, conference notices, line numbers.

    Args:
        pages: the text of every page.
        rules: horizontal lines of every page, same order.
    """
    places: Counter[tuple[str, int]] = Counter()
    for page in pages:
        for key in {_key(line) for line in page.lines if _at_edge(line, page, _REPEATED)}:
            places[key] += 1
    furniture = _numbered_heads(pages)
    for page, page_rules in zip(pages, rules, strict=True):
        furniture |= _line_numbers(page)
        often = 3 if len(pages) > 4 else 2
        repeated = [
            line for line in page.lines
            if (_at_edge(line, page) or (_outermost(line, page) and len(line.text) >= _LONG_HEAD and
                                         _at_edge(line, page, _REPEATED)))
            and places[_key(line)] >= often
        ]  # fmt: skip
        furniture |= {id(line) for line in repeated if _stands_off(line, repeated, page, page_rules)}
        for line in page.lines:
            text = line.text.strip()
            if _at_edge(line, page) and _outermost(line, page) and (_NUMBER.match(text) or _NOTICE.match(text)):
                furniture.add(id(line))
    return furniture


def _numbered_heads(pages: Sequence[PageText]) -> set[int]:
    """Heads and feet that hold the page's number, wherever they stand: outermost numbers that count with the pages.

    What stands on the same baseline (`4  5 Signal regions`) is the rest of the running head.
    """
    found: dict[tuple[int, int], list[tuple[PageText, TextLine]]] = {}
    for page in pages:
        for line in page.lines:
            if re.fullmatch(r"\d{1,4}", line.text.strip()) and _outermost(line, page):
                place = (int(line.text) - page.number, round(line.baseline / 3))
                found.setdefault(place, []).append((page, line))
    return {
        id(other)
        for members in found.values() if len(members) >= 3
        for page, line in members
        for other in page.lines if abs(other.baseline - line.baseline) < 2
    }  # fmt: skip


def _stands_off(line: TextLine, repeated: Sequence[TextLine], page: PageText, rules: Sequence[Rule]) -> bool:
    """Is there white between the line and the text block?

    Tables at the top of several pages repeat their heads too, but their next row follows at once (measured: 1.2 sizes;
    running heads 2.0 and more), or there is a rule on both sides.
    """
    near = [
        rule.y - line.baseline
        for rule in rules
        if abs(rule.y - line.baseline) < 2.4 * line.size and rule.x0 < line.x1 and rule.x1 > line.x0
    ]
    if near and min(near) < 0 < max(near):
        return False
    known = {id(other) for other in repeated}
    top = line.baseline < page.height / 2
    inner = [
        abs(other.baseline - line.baseline)
        for other in page.lines
        if id(other) not in known
        and (other.baseline > line.baseline + 2 if top else other.baseline < line.baseline - 2)
    ]
    beyond = [
        other
        for other in page.lines
        if id(other) not in known
        and (other.baseline < line.baseline + 2 if top else other.baseline > line.baseline - 2)
    ]
    outside = all(_NUMBER.match(other.text.strip()) for other in beyond)
    return outside and (not inner or min(inner) > 1.6 * line.size)


def _key(line: TextLine) -> tuple[str, int]:
    return re.sub(r"\d+", "#", line.text.strip().lower()), round(line.baseline / 6)


def _line_numbers(page: PageText) -> set[int]:
    """The numbers that review copies print in the margin: a rising run of at least eight at one place."""
    numbers = [line for line in page.lines if re.fullmatch(r"\d{1,4}", line.text.strip())]
    found: set[int] = set()
    for edge in {round(line.x1 / 4) for line in numbers}:
        group = sorted((line for line in numbers if abs(line.x1 / 4 - edge) <= 1), key=lambda line: line.baseline)
        values = [int(line.text) for line in group]
        steps = [b - a for a, b in pairwise(values)]
        if len(group) >= 8 and steps and sum(0 < step <= 5 for step in steps) > 0.9 * len(steps):
            others = [line for line in page.lines if line.width > 60]
            x0, x1 = min(line.x0 for line in group), max(line.x1 for line in group)
            if not any(line.x0 < x1 - 1 and line.x1 > x0 + 1 for line in others):
                found.update(map(id, group))
    return found
