"""Cost or time against a score, one mark an agent; the line joins the agents that no other beats in both (Fig. 6a).

For scores where higher is better and for errors where lower is; the axis is in per cent for shares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from markupsafe import Markup

from evaluation.report.families import FamilySection
from evaluation.report.marks import (
    LABEL,
    WIDTH,
    amount_axis,
    axis_title,
    beside,
    ceiling_of,
    grid_y,
    leader,
    marker,
    numbered,
    round_step,
    series_class,
    shortened,
    svg,
    ticks_x,
    whisker,
)

__all__ = ["Point", "family_scatter", "front", "scatter"]

_UNITS: Final = {"cost": "mean cost per episode, USD", "time": "mean time per episode, minutes"}


class Point(NamedTuple):
    """One agent."""

    series: int
    """Of its series: colour and mark."""
    label: str
    amount: float
    """USD, or seconds."""
    value: float
    interval: tuple[float, float] | None
    told: str
    """The numbers in words."""


def front(points: Sequence[tuple[str, float, float]], *, lower: bool = False) -> tuple[str, ...]:
    """Labels that no other beats in both amount and value, from the cheapest on.

    Args:
        points: (label, amount, value).
        lower: is a lower value better?
    """
    sign = -1.0 if lower else 1.0
    best = []
    for label, amount, value in points:
        beaten = any(
            other <= amount and sign * score >= sign * value and (other < amount or sign * score > sign * value)
            for _, other, score in points
        )
        if not beaten:
            best.append((amount, label))
    return tuple(label for _, label in sorted(best))


def family_scatter(section: FamilySection, order: dict[str, int], amount: Literal["cost", "time"]) -> Markup:
    """Cost or time against the metric that ranks a family."""
    column = section.columns[0]
    points = []
    for row in section.rows:
        mean = row.cost_usd if amount == "cost" else row.wall_s
        item = row.estimates[0]
        if mean is not None and item.mean is not None:
            shown = f"{100 * item.mean:.1f} %" if column.share else f"{item.mean:.3g}"
            told = f"{shown} at " + (f"${mean:.4g}" if amount == "cost" else f"{mean / 60:.1f} min")
            points.append(Point(order[row.label], row.label, mean, item.mean, item.interval, told))
    return scatter(points, amount, column.title, lower=column.better == "lower", share=column.share)


def _whole_steps(high: float) -> float:
    """Top of an axis that is no share: the next whole step, so that the grid ends with the axis."""
    step = round_step(high)
    return step * math.ceil(high * 1.02 / step)


def scatter(points: Sequence[Point], amount: str, title: str, *, lower: bool = False, share: bool = True) -> Markup:
    """The plot.

    Args:
        points: one an agent.
        amount: `cost` or `time`.
        title: of the score.
        lower: is a lower value better?
        share: is the score a share, shown in per cent?
    """
    height, left, right, top, bottom = 390, 52, 190, 26, 46
    if not points:
        return Markup('<p class="soft">No agent has both a known {} and a known {}.</p>').format(amount, title)
    scale = 60.0 if amount == "time" else 1.0
    xs = [point.amount / scale for point in points]
    x_axis = amount_axis(xs, left, WIDTH - right)
    highest = [max(point.value, point.interval[1] if point.interval else 0) for point in points]
    ceiling = ceiling_of(highest) if share else _whole_steps(max([*highest, 0.0]) or 1.0)

    def y_of(value: float) -> float:
        return top + (height - top - bottom) * (1 - value / ceiling)

    text = "" if share else "{:.3g}"
    body = [grid_y(ceiling, left, WIDTH - right, y_of, text), ticks_x(x_axis, top, height - bottom)]
    place = {point.label: (x_axis.at(x), y_of(point.value)) for point, x in zip(points, xs, strict=True)}
    best = [place[label] for label in front([(item.label, item.amount, item.value) for item in points], lower=lower)]
    if len(best) > 1:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in best)
        body.append(Markup('<polyline class="front" points="{}"/>').format(path))
    many = numbered(len(points))
    names = [str(point.series + 1) if many else shortened(point.label) for point in points]
    marked = [(*place[point.label], name) for point, name in zip(points, names, strict=True)]
    spots = beside(marked, (left, 0, WIDTH, height - bottom))
    for point, name, spot in zip(points, names, spots, strict=True):
        x, y = place[point.label]
        if point.interval and not many:
            body.append(whisker(point.series, x, y_of(point.interval[0]), y_of(point.interval[1])))
        if spot and math.hypot(spot[0] - x, spot[1] - y) > 2 * LABEL:
            body.append(leader(x, y, spot[0], spot[1] - 4))
        body.append(marker(point.series, x, y, f"{point.label}: {title} {point.told}"))
        if spot:
            body.append(
                Markup('<text class="label {}" x="{:.1f}" y="{:.1f}">{}</text>').format(
                    series_class(point.series), *spot, name
                )
            )
    logarithmic = " (log scale)" if x_axis.log else ""
    body.append(axis_title((left + WIDTH - right) / 2, height - 8, _UNITS[amount] + logarithmic))
    unit = f"{title} %" if share else f"{title}{' (lower is better)' if lower else ''}"
    body.append(Markup('<text class="axis" x="{}" y="11">{}</text>').format(4, unit))
    said = "; ".join(f"{point.label} {point.told}" for point in points)
    return svg(height, f"{title} against {amount}", said, body)
