"""Predictions drawn over the reference (Collider-Bench Figures 3, 8 and 9): for graders, never for agents.

One self-contained SVG: the reference filled in grey, each prediction as a step line with marks of its own, below it the
ratio to the reference. Absolute yields and the unit-area distributions are two panels where the task asks for both. No
script, no font, no network.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Final, NamedTuple

from evaluation.families.histogram.metrics import relative_l2, unit_area
from evaluation.families.histogram.task import HistogramTask
from pipeline.schema import Record

__all__ = ["OverlaySeries", "overlay_svg"]

_COLOURS: Final = ("#0b5cad", "#c0392b", "#1e8449", "#8e44ad", "#b9770e", "#117a8b", "#6c3483", "#515a5a")
_DASHES: Final = ("", "6 3", "2 3", "8 3 2 3")
_WIDTH: Final = 560
_HEIGHT: Final = 430
_LEFT: Final = 70
_RIGHT: Final = 20
_TOP: Final = 46
_MAIN: Final = 230
"""Height of the upper plot."""
_GAP: Final = 16
_RATIO: Final = 80
_DECADES: Final = 30.0
"""Largest bin over smallest from which on the axis is logarithmic."""
_ROW: Final = 18


class OverlaySeries(Record):
    """One prediction."""

    label: str
    values: tuple[float, ...]
    """Of the reference's bins."""


class _Panel(NamedTuple):
    title: str
    unit: str
    reference: tuple[float, ...]
    series: tuple[tuple[str, tuple[float, ...]], ...]


def overlay_svg(task: HistogramTask, series: Sequence[OverlaySeries]) -> str:
    """The plot.

    Args:
        task: with its reference.
        series: predictions, in the order of the legend.
    """
    panels = _panels(task, series)
    height = _HEIGHT + _ROW * (len(series) + 1)
    width = _WIDTH * len(panels)
    body = [_panel(task, panel, _WIDTH * index) for index, panel in enumerate(panels)]
    title = escape(f"{task.id}: predictions and the reference")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="sans-serif" font-size="12"><title>{title}</title>'
        f'<rect width="{width}" height="{height}" fill="#fff"/>{"".join(body)}</svg>\n'
    )


def _panels(task: HistogramTask, series: Sequence[OverlaySeries]) -> list[_Panel]:
    found = []
    if task.mode != "shape":
        labelled = tuple((_labelled(item.label, item.values, task.truth), item.values) for item in series)
        found.append(_Panel("yields", "events in the bin", task.truth, labelled))
    if task.mode != "yield":
        true = unit_area(task.truth)
        assert true is not None, "a reference has a positive total"
        shapes = [(item.label, unit_area(item.values)) for item in series]
        labelled = tuple((_labelled(name, shape, true), shape) for name, shape in shapes if shape is not None)
        found.append(_Panel("shape", "share of the events", true, labelled))
    return found


def _labelled(label: str, values: Sequence[float], reference: Sequence[float]) -> str:
    return f"{label}, d = {relative_l2(values, reference):.3g}"


def _panel(task: HistogramTask, panel: _Panel, x0: float) -> str:
    edges = _edges(task)
    left, right = x0 + _LEFT, x0 + _WIDTH - _RIGHT
    span = edges[-1] - edges[0]
    xs = [left + (right - left) * (edge - edges[0]) / span for edge in edges]
    scale = _Scale(panel)
    bottom = _TOP + _MAIN
    parts = [f'<text x="{left}" y="20" font-weight="bold">{escape(task.id)}: {panel.title}</text>']
    parts += [scale.grid(left, right, panel.unit, x0)]
    parts += [f'<path d="{_area(xs, panel.reference, scale, bottom)}" fill="#bbb" stroke="#777"/>']
    for index, (_, values) in enumerate(panel.series):
        parts.append(_step(xs, [scale.y(value) for value in values], index))
    parts.append(_ratios(panel, xs, left, right, x0))
    parts.append(_x_axis(task, edges, xs, bottom + _GAP + _RATIO, (left + right) / 2))
    parts.append(_legend(panel, left))
    return "".join(parts)


def _edges(task: HistogramTask) -> list[float]:
    """Edges of the reference's bins; bins without edges, or that do not touch, are as wide as each other."""
    bins = task.reference.bins
    touching = all(one.high == two.low for one, two in pairwise(bins))
    edges = [bin_.low for bin_ in bins if bin_.low is not None] + [
        bin_.high for bin_ in bins[-1:] if bin_.high is not None
    ]
    return edges if touching and len(edges) == len(bins) + 1 else [float(index) for index in range(len(bins) + 1)]


class _Scale:
    """Values to heights, linear or logarithmic."""

    def __init__(self, panel: _Panel) -> None:
        every = [value for _, values in panel.series for value in values] + list(panel.reference)
        finite = [value for value in every if value > 0 and math.isfinite(value)]
        self.top = max(finite, default=1.0)
        lowest = min(finite, default=1.0)
        self.log = self.top / lowest > _DECADES
        self.low = 10.0 ** math.floor(math.log10(max(lowest, self.top * 1e-6))) if self.log else 0.0
        self.top = self.top * (2.0 if self.log else 1.1)

    def y(self, value: float) -> float:
        """Height of a value; what is below the axis lies on it."""
        if self.log:
            share = math.log10(max(value, self.low) / self.low) / math.log10(self.top / self.low)
        else:
            share = value / self.top
        return _TOP + _MAIN * (1 - min(1.0, max(0.0, share)))

    def ticks(self) -> list[float]:
        """Round values."""
        if self.log:
            first, last = round(math.log10(self.low)), math.floor(math.log10(self.top))
            every = max(1, (last - first) // 5)
            return [10.0**power for power in range(first, last + 1, every)]
        step = 10.0 ** math.floor(math.log10(self.top / 2))
        step *= next(factor for factor in (1, 2, 5, 10) if self.top / (step * factor) <= 6)
        return [step * index for index in range(int(self.top / step) + 1)]

    def grid(self, left: float, right: float, unit: str, x0: float) -> str:
        """Axis, lines and labels."""
        parts = [f'<path d="M{left} {_TOP}V{_TOP + _MAIN}H{right}" fill="none" stroke="#333"/>']
        for value in self.ticks():
            y = self.y(value)
            parts.append(f'<path d="M{left} {y:.1f}H{right}" stroke="#e4e4e4"/>')
            parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
        middle = _TOP + _MAIN / 2
        parts.append(f'<text transform="translate({x0 + 14} {middle}) rotate(-90)" text-anchor="middle">{unit}</text>')
        return "".join(parts)


def _area(xs: Sequence[float], values: Sequence[float], scale: _Scale, bottom: float) -> str:
    steps = "".join(f"V{scale.y(value):.1f}H{xs[index + 1]:.1f}" for index, value in enumerate(values))
    return f"M{xs[0]:.1f} {bottom}{steps}V{bottom}Z"


def _step(xs: Sequence[float], ys: Sequence[float], index: int) -> str:
    colour, dash = _COLOURS[index % len(_COLOURS)], _DASHES[index // len(_COLOURS) % len(_DASHES)]
    path = f"M{xs[0]:.1f} {ys[0]:.1f}" + "".join(f"V{y:.1f}H{xs[at + 1]:.1f}" for at, y in enumerate(ys))
    marks = "".join(
        f'<circle cx="{(xs[at] + xs[at + 1]) / 2:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>'
        for at, y in enumerate(ys)
    )
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.8"{dashed}/>{marks}'


def _ratios(panel: _Panel, xs: Sequence[float], left: float, right: float, x0: float) -> str:
    """Prediction over reference from 0 to 2; what is beyond lies at the edge, a bin without reference has none."""
    top = _TOP + _MAIN + _GAP

    def y_of(ratio: float) -> float:
        return top + _RATIO * (1 - min(2.0, ratio) / 2)

    parts = [f'<path d="M{left} {top}V{top + _RATIO}H{right}" fill="none" stroke="#333"/>']
    parts.append(f'<path d="M{left} {y_of(1):.1f}H{right}" stroke="#777" stroke-dasharray="4 3"/>')
    parts += [f'<text x="{left - 6}" y="{y_of(at) + 4:.1f}" text-anchor="end">{at}</text>' for at in (0, 1, 2)]
    middle = top + _RATIO / 2
    parts.append(f'<text transform="translate({x0 + 14} {middle}) rotate(-90)" text-anchor="middle">ratio</text>')
    for index, (_, values) in enumerate(panel.series):
        colour = _COLOURS[index % len(_COLOURS)]
        for bin_, (value, true) in enumerate(zip(values, panel.reference, strict=True)):
            if true > 0:
                y = y_of(value / true)
                parts.append(
                    f'<path d="M{xs[bin_]:.1f} {y:.1f}H{xs[bin_ + 1]:.1f}" stroke="{colour}" stroke-width="2"/>'
                )
    return "".join(parts)


def _x_axis(task: HistogramTask, edges: Sequence[float], xs: Sequence[float], y: float, middle: float) -> str:
    every = max(1, len(edges) // 7)
    ticks = "".join(
        f'<text x="{x:.1f}" y="{y + 15}" text-anchor="middle">{edge:g}</text>'
        for index, (edge, x) in enumerate(zip(edges, xs, strict=True))
        if index % every == 0 or index == len(edges) - 1
    )
    return ticks + f'<text x="{middle}" y="{y + 32}" text-anchor="middle">{escape(task.observable or "bin")}</text>'


def _legend(panel: _Panel, left: float) -> str:
    y: float = _TOP + _MAIN + _GAP + _RATIO + 56
    parts = [f'<rect x="{left}" y="{y - 9}" width="16" height="10" fill="#bbb" stroke="#777"/>']
    parts.append(f'<text x="{left + 24}" y="{y}">reference</text>')
    for index, (label, _) in enumerate(panel.series):
        y += _ROW
        colour = _COLOURS[index % len(_COLOURS)]
        parts.append(f'<path d="M{left} {y - 4}h16" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{left + 24}" y="{y}">{escape(label)}</text>')
    return "".join(parts)
