"""Parts that the charts share: axes, grids, marks of series, labels that do not cover each other, the SVG around them.

Series differ in colour and in the shape of their marks. Non-goal: what is plotted (`charts`, `scatter`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

__all__ = [
    "LABEL", "WIDTH", "Axis", "amount_axis", "apart", "axis_title", "ceiling_of", "grid_y", "marker", "round_step",
    "series_class", "stem", "svg", "ticks_x", "whisker",
]  # fmt: skip

_COLOURS: Final = 8
WIDTH: Final = 760
LABEL: Final = 26
"""Characters of a label inside a chart; the legend has all of it."""


def series_class(index: int) -> str:
    """CSS class of a series."""
    return f"s{index % _COLOURS}"


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


def stem(index: int, x: float, low: float, high: float) -> Markup:
    """A line from the base to a mark."""
    return Markup('<path class="stem {}" d="M{:.1f},{:.1f}V{:.1f}"/>').format(series_class(index), x, low, high)


def axis_title(x: float, y: float, text: str) -> Markup:
    """What an axis shows."""
    return Markup('<text class="axis" text-anchor="middle" x="{:.1f}" y="{}">{}</text>').format(x, y, text)


def apart(
    labels: Sequence[tuple[float, str]], distance: float = 15.0, lowest: float = math.inf
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
