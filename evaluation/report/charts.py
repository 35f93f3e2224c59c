"""Charts as inline SVG: no script, no library, no network; they follow the page's colours, print, and scale.

Each chart has a title and a description for screen readers; its numbers are in a table beside it. Series differ in
colour and in the shape of their marks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

from evaluation.failures import Taxonomy
from evaluation.metrics import LADDER, Metric
from evaluation.report.summary import Entry, Summary, pareto
from evaluation.report.tables import amount_text, percent
from pipeline.text import shorten

__all__ = [
    "category_bars",
    "failure_bars",
    "ladder_lines",
    "legend",
    "mark_of",
    "pareto_plot",
    "series_class",
    "stability_dots",
]

_COLOURS: Final = 8
_WIDTH: Final = 760
_LABEL: Final = 26
"""Characters of a label inside a chart; the legend has all of it."""


def series_class(index: int) -> str:
    """CSS class of a series."""
    return f"s{index % _COLOURS}"


def mark_of(index: int) -> Markup:
    """The mark of a series, around the origin."""
    return _marker(index, 0, 0)


def legend(labels: Sequence[str]) -> Markup:
    """Names of the series with their marks."""
    items = [
        Markup('<li><svg class="key" viewBox="-8 -8 16 16" aria-hidden="true">{}</svg>{}</li>').format(
            _marker(index, 0, 0), label
        )
        for index, label in enumerate(labels)
    ]
    return Markup('<ul class="legend">{}</ul>').format(Markup("").join(items))


def pareto_plot(summary: Summary, amount: str, metric: Metric) -> Markup:
    """Cost or time against a metric; the line joins the entries that no other beats in both (Fig. 6a)."""
    height, left, right, top, bottom = 390, 52, 190, 26, 46
    points = [
        (index, entry, entry.amount(amount).mean, entry.estimate(metric))
        for index, entry in enumerate(summary.entries)
        if entry.amount(amount).mean is not None and entry.estimate(metric).mean is not None
    ]
    unit = {"cost": "mean cost per episode, USD", "time": "mean time per episode, minutes"}[amount]
    if not points:
        return Markup('<p class="soft">No agent has both a known {} and a known {}.</p>').format(amount, metric.value)
    scale = 60.0 if amount == "time" else 1.0
    xs = [(mean or 0.0) / scale for _, _, mean, _ in points]
    x_axis = _x_axis(xs, left, _WIDTH - right)
    ceiling = _ceiling([max(item.mean or 0, item.interval[1] if item.interval else 0) for _, _, _, item in points])

    def y_of(value: float) -> float:
        return top + (height - top - bottom) * (1 - value / ceiling)

    body = [_grid_y(ceiling, left, _WIDTH - right, y_of), _ticks_x(x_axis, top, height - bottom)]
    place = {
        entry.label: (x_axis.at(x), y_of(item.mean or 0)) for (_, entry, _, item), x in zip(points, xs, strict=True)
    }
    front = [place[label] for label in pareto(summary.entries, amount, metric)]
    if len(front) > 1:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in front)
        body.append(Markup('<polyline class="front" points="{}"/>').format(path))
    labels = _apart([(place[entry.label][1], shorten(entry.label, _LABEL)) for _, entry, _, _ in points])
    for (index, entry, _, item), (label_y, label) in zip(points, labels, strict=True):
        x, y = place[entry.label]
        tip = f"{entry.label}: {metric.value} {percent(item.mean)} %, {amount} {amount_text(entry, amount)}"
        if item.interval:
            body.append(_whisker(index, x, y_of(item.interval[0]), y_of(item.interval[1])))
        body.append(_marker(index, x, y, tip))
        body.append(
            Markup('<text class="label {}" x="{:.1f}" y="{:.1f}">{}</text>').format(
                series_class(index), x + 10, label_y + 4, label
            )
        )
    body.append(_axis_title((left + _WIDTH - right) / 2, height - 8, unit + (" (log scale)" if x_axis.log else "")))
    body.append(Markup('<text class="axis" x="{}" y="11">{} %</text>').format(4, metric.value))
    said = "; ".join(
        f"{entry.label} {percent(item.mean)} % at {amount_text(entry, amount)}" for _, entry, _, item in points
    )
    return _svg(height, f"{metric.value} against {amount}", said, body)


def ladder_lines(entries: Sequence[Entry], *, everywhere: bool) -> Markup:
    """The strictness ladder (Fig. 6b): share of episodes that pass as more is asked for."""
    height, left, right, top, bottom = 340, 52, 190, 20, 40
    rows = [(index, entry, entry.ladder_all if everywhere else entry.ladder) for index, entry in enumerate(entries)]
    rows = [(index, entry, steps) for index, entry, steps in rows if any(step.mean is not None for step in steps)]
    if not rows:
        return Markup('<p class="soft">No episode was execution-checked.</p>')
    ceiling = _ceiling([step.mean or 0.0 for _, _, steps in rows for step in steps])
    step_width = (_WIDTH - left - right) / (len(LADDER) - 1)

    def y_of(value: float) -> float:
        return top + (height - top - bottom) * (1 - value / ceiling)

    body = [_grid_y(ceiling, left, _WIDTH - right, y_of)]
    for number, metric in enumerate(LADDER):
        anchor = "start" if number == 0 else "middle"
        body.append(
            Markup('<text class="axis" text-anchor="{}" x="{:.1f}" y="{}">{}</text>').format(
                anchor, left + number * step_width, height - 16, metric.value
            )
        )
    ends = _apart([(y_of(steps[-1].mean or 0.0), shorten(entry.label, _LABEL)) for _, entry, steps in rows])
    for (index, entry, steps), (label_y, label) in zip(rows, ends, strict=True):
        known = [(left + n * step_width, step) for n, step in enumerate(steps) if step.mean is not None]
        path = " ".join(f"{x:.1f},{y_of(step.mean or 0.0):.1f}" for x, step in known)
        body.append(Markup('<polyline class="line {}" points="{}"/>').format(series_class(index), path))
        body += [
            _marker(index, x, y_of(step.mean or 0.0), f"{entry.label}: {step.metric.value} {percent(step.mean)} %")
            for x, step in known
        ]
        body.append(
            Markup('<text class="label {}" x="{:.1f}" y="{:.1f}">{}</text>').format(
                series_class(index), known[-1][0] + 12, label_y + 4, label
            )
        )
    said = "; ".join(f"{entry.label}: {', '.join(percent(step.mean) for step in steps)}" for _, entry, steps in rows)
    return _svg(height, "Strictness ladder, per cent of episodes", said, body)


def category_bars(summary: Summary, metric: Metric) -> Markup:
    """A metric per category and agent as horizontal bars; an unknown mean has a dash instead of a bar."""
    order = {entry.label: index for index, entry in enumerate(summary.entries)}
    left, right, bar, gap = 170, 64, 13, 14
    categories = sorted({row.category for row in summary.categories})
    body: list[Markup] = []
    y = 8
    width = _WIDTH - left - right
    for category in categories:
        rows = sorted((row for row in summary.categories if row.category == category), key=lambda row: order[row.label])
        middle = y + bar * len(rows) / 2 + 4
        body.append(
            Markup('<text class="name" text-anchor="end" x="{}" y="{:.1f}">{}</text>').format(
                left - 10, middle, shorten(category or "(none given)", _LABEL)
            )
        )
        for row in rows:
            item = next(estimate for estimate in row.estimates if estimate.metric is metric)
            length = width * (item.mean or 0.0)
            tip = f"{category or '(none given)'}, {row.label}: {percent(item.mean)} % of {item.known} known episodes"
            if item.mean is not None:
                body.append(
                    Markup('<rect class="{}" x="{}" y="{}" width="{:.1f}" height="{}"><title>{}</title></rect>').format(
                        series_class(order[row.label]), left, y, max(length, 1.0), bar - 2, tip
                    )
                )
            body.append(
                Markup('<text class="value" x="{:.1f}" y="{}">{}</text>').format(
                    left + max(length, 1.0) + 5, y + bar - 3, percent(item.mean)
                )
            )
            y += bar
        y += gap
    said = f"{len(categories)} categories, {len(order)} agents; the numbers are in the table"
    return _svg(max(y, 30), f"{metric.value} by category, per cent", said, body)


def stability_dots(summary: Summary) -> Markup:
    """Standard deviation of each metric over the episodes, one mark an agent (Fig. 5)."""
    height, left, right, top, bottom = 300, 52, 20, 16, 40
    metrics = [spread.metric for spread in summary.entries[0].stability]
    step = (_WIDTH - left - right) / len(metrics)
    ceiling = _ceiling([spread.deviation or 0.0 for entry in summary.entries for spread in entry.stability])

    def y_of(value: float) -> float:
        return top + (height - top - bottom) * (1 - value / ceiling)

    body = [_grid_y(ceiling, left, _WIDTH - right, y_of, text="{:.2f}")]
    count = len(summary.entries)
    for number, metric in enumerate(metrics):
        center = left + (number + 0.5) * step
        body.append(
            Markup('<text class="axis" text-anchor="middle" x="{:.1f}" y="{}">{}</text>').format(
                center, height - 16, metric.value
            )
        )
        for index, entry in enumerate(summary.entries):
            spread = entry.stability[number]
            if spread.deviation is None:
                continue
            x = center + (index - (count - 1) / 2) * min(14.0, step * 0.7 / count)
            tip = f"{entry.label}: {metric.value} deviation {spread.deviation:.3f} over {spread.n} episodes"
            body.append(_stem(index, x, y_of(0.0), y_of(spread.deviation)))
            body.append(_marker(index, x, y_of(spread.deviation), tip))
    return _svg(height, "Standard deviation of the metrics", "The numbers are in the table", body)


def failure_bars(taxonomy: Taxonomy, names: dict[str, str], most: int = 24) -> Markup:
    """Prevalence of the failure types within their phase (Table 2)."""
    left, right, bar = 330, 60, 22
    shown = sorted(taxonomy.types, key=lambda item: -item.insights)[:most]
    shown = [item for item in taxonomy.types if item in shown]
    body: list[Markup] = []
    y, phase = 6, ""
    for item in shown:
        if item.phase != phase:
            phase = item.phase
            y += 20
            body.append(Markup('<text class="phase" x="0" y="{}">{}</text>').format(y - 4, phase))
        length = (_WIDTH - left - right) * item.prevalence
        body.append(
            Markup(
                '<text class="name" text-anchor="end" x="{}" y="{}">{}</text>'
                '<rect class="s0" x="{}" y="{}" width="{:.1f}" height="{}"><title>{}</title></rect>'
                '<text class="value" x="{:.1f}" y="{}">{} %</text>'
            ).format(
                left - 10, y + 12, shorten(names[item.id], 48),
                left, y + 1, max(length, 1.0), bar - 8, f"{item.insights} insights in {item.episodes} episodes",
                left + max(length, 1.0) + 5, y + 12, percent(item.prevalence),
            )
        )  # fmt: skip
        y += bar
    return _svg(y + 6, "Failure types, prevalence within their phase", "The numbers are in the table", body)


# --- parts -----------------------------------------------------------------------------------------------------------


class _Axis(NamedTuple):
    low: float
    high: float
    start: float
    end: float
    log: bool
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        if self.log:
            share = (math.log10(value) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def _x_axis(values: Sequence[float], start: float, end: float) -> _Axis:
    """Linear from 0; logarithmic where the largest value is more than 20 times the smallest."""
    low, high = min(values), max(values)
    if low > 0 and high / low > 20:
        exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        return _Axis(10.0 ** exponents[0], 10.0 ** exponents[-1], start, end, True, tuple(10.0**e for e in exponents))
    step = _step(high or 1.0)
    top = step * math.ceil((high or 1.0) * 1.05 / step)
    return _Axis(0.0, top, start, end, False, tuple(step * n for n in range(round(top / step) + 1)))


def _step(high: float) -> float:
    """A round step that gives 4 to 8 ticks."""
    rough = high / 5
    base = 10.0 ** math.floor(math.log10(rough))
    return base * next(factor for factor in (1, 2, 5, 10) if factor * base >= rough * 0.999)


def _ceiling(values: Sequence[float]) -> float:
    """Top of an axis of shares: the next round value, so that small scores are not lost at the bottom."""
    high = max([*values, 0.0])
    if high <= 0:
        return 0.1
    step = _step(high)
    return min(1.0, step * math.ceil(high * 1.02 / step)) if high <= 1 else high


def _grid_y(ceiling: float, left: float, right: float, y_of: Callable[[float], float], text: str = "") -> Markup:
    step = _step(ceiling)
    line = Markup('<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>')
    tick = Markup('<text class="tick" text-anchor="end" x="{}" y="{:.1f}">{}</text>')
    parts = []
    for number in range(round(ceiling / step) + 1):
        value, y = step * number, y_of(step * number)
        parts.append(line.format(left, right, y, y))
        parts.append(tick.format(left - 8, y + 4, text.format(value) if text else f"{100 * value:g}"))
    return Markup("").join(parts)


def _ticks_x(axis: _Axis, top: float, bottom: float) -> Markup:
    line = Markup('<line class="grid" x1="{:.1f}" x2="{:.1f}" y1="{}" y2="{}"/>')
    tick = Markup('<text class="tick" text-anchor="middle" x="{:.1f}" y="{}">{:g}</text>')
    parts = []
    for value in axis.ticks:
        x = axis.at(value)
        parts += [line.format(x, x, top, bottom), tick.format(x, bottom + 16, round(value, 10))]
    return Markup("").join(parts)


def _marker(index: int, x: float, y: float, tip: str = "") -> Markup:
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


def _whisker(index: int, x: float, low: float, high: float) -> Markup:
    return Markup('<path class="whisker {}" d="M{:.1f},{:.1f}V{:.1f}M{:.1f},{:.1f}h8M{:.1f},{:.1f}h8"/>').format(
        series_class(index), x, low, high, x - 4, low, x - 4, high
    )


def _stem(index: int, x: float, low: float, high: float) -> Markup:
    return Markup('<path class="stem {}" d="M{:.1f},{:.1f}V{:.1f}"/>').format(series_class(index), x, low, high)


def _axis_title(x: float, y: float, text: str) -> Markup:
    return Markup('<text class="axis" text-anchor="middle" x="{:.1f}" y="{}">{}</text>').format(x, y, text)


def _apart(labels: Sequence[tuple[float, str]], distance: float = 15.0) -> list[tuple[float, str]]:
    """Moves labels down until none covers another; the order of the input is kept."""
    order = sorted(range(len(labels)), key=lambda index: labels[index][0])
    placed = [0.0] * len(labels)
    last = -math.inf
    for index in order:
        last = max(labels[index][0], last + distance)
        placed[index] = last
    return [(placed[index], text) for index, (_, text) in enumerate(labels)]


def _svg(height: float, title: str, description: str, body: Sequence[Markup]) -> Markup:
    return Markup(
        '<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}"><title>{}</title><desc>{}</desc>{}</svg>'
    ).format(_WIDTH, math.ceil(height), f"{title}. {description}", title, description, Markup("").join(body))
