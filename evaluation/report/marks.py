"""Parts that the charts share: axes, grids, marks of series, labels that do not cover each other, the SVG around them.

Series differ in colour and in the shape of their marks. Non-goal: what is plotted (`charts`, `scatter`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

__all__ = [
    "LABEL", "LINE", "WIDTH", "Axis", "amount_axis", "apart", "axis_title", "beside", "ceiling_of", "grid_y", "leader",
    "marker", "name_of", "numbered", "round_step", "series_class", "shortened", "svg", "ticks_x", "whisker",
]  # fmt: skip

_COLOURS: Final = 8
WIDTH: Final = 760
LABEL: Final = 26
"""Characters of a label inside a chart; the legend has all of it."""
LINE: Final = 15.0
"""Height of a line of labels."""
_NAMED: Final = 12
"""Series up to which a plot has their names; above it has their numbers, which the legend explains."""
_CHARACTER: Final = 6.9


def series_class(index: int) -> str:
    """CSS class of a series."""
    return f"s{index % _COLOURS}"


def numbered(count: int) -> bool:
    """Are so many series told apart by their number? Colours and marks repeat, and names would cover each other."""
    return count > _NAMED


def name_of(index: int, label: str, count: int) -> str:
    """A series in a list: its name, with its number where the plots have numbers."""
    return f"{index + 1}. {label}" if numbered(count) else label


def shortened(label: str) -> str:
    """A label of at most `LABEL` characters: its middle is left out, since models of one maker differ at the end."""
    return label if len(label) <= LABEL else f"{label[: LABEL // 2 - 1]}…{label[-(LABEL // 2) :]}"


class Axis(NamedTuple):
    """A horizontal axis: values from `low` to `high` at x from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    log: bool
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """The x of a value."""
        if self.log:
            share = (math.log10(value) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def amount_axis(values: Sequence[float], start: float, end: float) -> Axis:
    """Linear from 0; logarithmic where the largest value is more than 20 times the smallest."""
    low, high = min(values), max(values)
    if low > 0 and high / low > 20:
        exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        return Axis(10.0 ** exponents[0], 10.0 ** exponents[-1], start, end, True, tuple(10.0**e for e in exponents))
    step = round_step(high or 1.0)
    top = step * math.ceil((high or 1.0) * 1.05 / step)
    return Axis(0.0, top, start, end, False, tuple(step * n for n in range(round(top / step) + 1)))


def round_step(high: float) -> float:
    """A round step that gives 4 to 8 ticks."""
    rough = high / 5
    base = 10.0 ** math.floor(math.log10(rough))
    return base * next(factor for factor in (1, 2, 5, 10) if factor * base >= rough * 0.999)


def ceiling_of(values: Sequence[float]) -> float:
    """Top of an axis of shares: the next round value, so that small scores are not lost at the bottom."""
    high = max([*values, 0.0])
    if high <= 0:
        return 0.1
    step = round_step(high)
    return min(1.0, step * math.ceil(high * 1.02 / step)) if high <= 1 else high


def grid_y(ceiling: float, left: float, right: float, y_of: Callable[[float], float], text: str = "") -> Markup:
    """Lines across, with their values (in per cent, or as `text` formats them)."""
    step = round_step(ceiling)
    line = Markup('<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>')
    tick = Markup('<text class="tick" text-anchor="end" x="{}" y="{:.1f}">{}</text>')
    parts = []
    for number in range(round(ceiling / step) + 1):
        value, y = step * number, y_of(step * number)
        parts.append(line.format(left, right, y, y))
        parts.append(tick.format(left - 8, y + 4, text.format(value) if text else f"{100 * value:g}"))
    return Markup("").join(parts)


def ticks_x(axis: Axis, top: float, bottom: float) -> Markup:
    """Lines down, with their values."""
    line = Markup('<line class="grid" x1="{:.1f}" x2="{:.1f}" y1="{}" y2="{}"/>')
    tick = Markup('<text class="tick" text-anchor="middle" x="{:.1f}" y="{}">{:g}</text>')
    parts = []
    for value in axis.ticks:
        x = axis.at(value)
        parts += [line.format(x, x, top, bottom), tick.format(x, bottom + 16, round(value, 10))]
    return Markup("").join(parts)


def marker(index: int, x: float, y: float, tip: str = "") -> Markup:
    """Circle, square, triangle, diamond: with eight colours the look repeats after 32 series at the earliest."""
    shape = (index // _COLOURS + index) % 4
    title = Markup("<title>{}</title>").format(tip) if tip else Markup("")
    if shape == 0:
        start, end = Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="5">'), Markup("</circle>")
        return start.format(series_class(index), x, y) + title + end
    points = {
        1: [(-4.6, -4.6), (4.6, -4.6), (4.6, 4.6), (-4.6, 4.6)],
        2: [(0, -6), (5.5, 4.5), (-5.5, 4.5)],
        3: [(0, -6.3), (6.3, 0), (0, 6.3), (-6.3, 0)],
    }[shape]
    path = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in points)
    return Markup('<polygon class="{}" points="{}">{}</polygon>').format(series_class(index), path, title)


def whisker(index: int, x: float, low: float, high: float) -> Markup:
    """An interval."""
    return Markup('<path class="whisker {}" d="M{:.1f},{:.1f}V{:.1f}M{:.1f},{:.1f}h8M{:.1f},{:.1f}h8"/>').format(
        series_class(index), x, low, high, x - 4, low, x - 4, high
    )


def axis_title(x: float, y: float, text: str) -> Markup:
    """What an axis shows."""
    return Markup('<text class="axis" text-anchor="middle" x="{:.1f}" y="{}">{}</text>').format(x, y, text)


def leader(x1: float, y1: float, x2: float, y2: float) -> Markup:
    """A thin line from a mark to its label."""
    return Markup('<path class="grid" d="M{:.1f},{:.1f}L{:.1f},{:.1f}"/>').format(x1, y1, x2, y2)


def beside(
    points: Sequence[tuple[float, float, str]], box: tuple[float, float, float, float]
) -> list[tuple[float, float] | None]:
    """Places for labels beside their marks, so that no label covers another or a mark.

    Args:
        points: (x, y, label) of each mark.
        box: left, top, right, bottom of where labels may be.

    Returns:
        The start and the base line of each label: the nearest free place, to the right of the mark where that is free;
        None where there is no place left.
    """
    taken = [(x - 6, y - 6, x + 6, y + 6) for x, y, _ in points]
    placed: list[tuple[float, float] | None] = []
    for x, y, label in points:
        width = _CHARACTER * len(label) + 2
        places = ((*start, start[0] + width, start[1] + LINE - 2) for start in _around(x, y, width))
        inside = (
            place for place in places
            if place[0] >= box[0] and place[1] >= box[1] and place[2] <= box[2] and place[3] <= box[3]
        )  # fmt: skip
        found = next((place for place in inside if not any(_meet(place, other) for other in taken)), None)
        taken += [found] if found else []
        placed.append((found[0] + 1, found[3] - 2) if found else None)
    return placed


def _around(x: float, y: float, width: float) -> Iterator[tuple[float, float]]:
    """Upper left corners of a label on growing ellipses round a mark, the right side first."""
    half = (LINE - 2) / 2
    yield x + 8, y - half
    for radius in range(16, 2 * WIDTH, 6):
        for turn in (0, 8, 2, 14, 6, 10, 4, 12, 1, 15, 7, 9, 3, 13, 5, 11):
            angle = math.pi * turn / 8
            yield x + (radius + width / 2) * math.cos(angle) - width / 2, y + radius * math.sin(angle) - half


def _meet(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def apart(
    labels: Sequence[tuple[float, str]], distance: float = LINE, lowest: float = math.inf
) -> list[tuple[float, str]]:
    """Moves labels down until none covers another, and up again from `lowest` on; the order of the input is kept."""
    order = sorted(range(len(labels)), key=lambda index: labels[index][0])
    placed = [0.0] * len(labels)
    last = -math.inf
    for index in order:
        last = max(labels[index][0], last + distance)
        placed[index] = last
    for index in reversed(order):
        placed[index] = min(placed[index], lowest)
        lowest = placed[index] - distance
    return [(placed[index], text) for index, (_, text) in enumerate(labels)]


def svg(height: float, title: str, description: str, body: Sequence[Markup]) -> Markup:
    """A chart with title and description."""
    return Markup(
        '<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}"><title>{}</title><desc>{}</desc>{}</svg>'
    ).format(WIDTH, math.ceil(height), f"{title}. {description}", title, description, Markup("").join(body))
