"""Charts as inline SVG: no script, no library, no network; they follow the page's colours, print, and scale.

Each chart has a title and a description for screen readers; its numbers are in a table beside it. Series differ in
colour and in the shape of their marks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

from evaluation.failures import Taxonomy
from evaluation.metrics import LADDER, Convention, Metric
from evaluation.report.marks import (
    LINE,
    WIDTH,
    apart,
    ceiling_of,
    grid_y,
    leader,
    marker,
    name_of,
    series_class,
    shortened,
    svg,
)
from evaluation.report.scatter import Point, scatter
from evaluation.report.summary import Entry, Summary
from evaluation.report.tables import UNKNOWN, amount_text, percent
from pipeline.text import shorten

__all__ = [
    "category_bars",
    "failure_bars",
    "ladder_lines",
    "legend",
    "mark_of",
    "pareto_plot",
    "stability_bars",
]


_NONE: Final = "(none given)"
_ACROSS: Final = 6
"""Columns of bars beside each other."""
_NAMES: Final = 205
_NUMBER: Final = 42
_CHARACTER: Final = 6.9


def mark_of(index: int) -> Markup:
    """The mark of a series, around the origin."""
    return marker(index, 0, 0)


def legend(labels: Sequence[str], series: Sequence[int] | None = None) -> Markup:
    """Names of the series with their marks; `series` are their numbers where they are not simply counted."""
    items = [
        Markup('<li><svg class="key" viewBox="-8 -8 16 16" aria-hidden="true">{}</svg>{}</li>').format(
            marker(index, 0, 0), name_of(index, label, len(labels))
        )
        for index, label in zip(series if series is not None else range(len(labels)), labels, strict=True)
    ]
    return Markup('<ul class="legend">{}</ul>').format(Markup("").join(items))


def pareto_plot(summary: Summary, amount: str, metric: Metric) -> Markup:
    """Cost or time against a metric; the line joins the entries that no other beats in both (Fig. 6a)."""
    points = [
        Point(
            series=index,
            label=entry.label,
            amount=mean,
            value=item.mean,
            interval=item.interval,
            told=f"{percent(item.mean)} % at {amount_text(entry, amount)}",
        )
        for index, entry in enumerate(summary.entries)
        if (mean := entry.amount(amount).mean) is not None and (item := entry.estimate(metric)).mean is not None
    ]
    return scatter(points, amount, metric.value)


def ladder_lines(entries: Sequence[Entry], convention: Convention) -> Markup:
    """The strictness ladder (Fig. 6b): share of episodes that pass as more is asked for."""
    left, right, top, bottom = 52, 250, 20, 40
    height = max(340, top + bottom + LINE * len(entries))
    strict = convention is Convention.STRICT
    rows = [
        (index, entry, entry.ladder if strict else entry.paper[-len(LADDER) :]) for index, entry in enumerate(entries)
    ]
    rows = [(index, entry, steps) for index, entry, steps in rows if any(step.mean is not None for step in steps)]
    if not rows:
        return Markup('<p class="soft">Nothing is known of any episode.</p>')
    ceiling = ceiling_of([step.mean or 0.0 for _, _, steps in rows for step in steps])
    step_width = (WIDTH - left - right) / (len(LADDER) - 1)

    def y_of(value: float) -> float:
        return top + (height - top - bottom) * (1 - value / ceiling)

    body = [grid_y(ceiling, left, WIDTH - right, y_of)]
    for number, metric in enumerate(LADDER):
        anchor = "start" if number == 0 else "middle"
        body.append(
            Markup('<text class="axis" text-anchor="{}" x="{:.1f}" y="{}">{}</text>').format(
                anchor, left + number * step_width, height - 16, metric.value
            )
        )
    lasts = [next(step.mean for step in reversed(steps) if step.mean is not None) for _, _, steps in rows]
    named = [
        (y_of(last), shortened(name_of(index, entry.label, len(entries))))
        for (index, entry, _), last in zip(rows, lasts, strict=True)
    ]
    ends = apart(named, lowest=height - bottom)
    column = WIDTH - right + 26
    for (index, entry, steps), (label_y, label) in zip(rows, ends, strict=True):
        known = [(left + n * step_width, step) for n, step in enumerate(steps) if step.mean is not None]
        path = " ".join(f"{x:.1f},{y_of(step.mean or 0.0):.1f}" for x, step in known)
        body.append(Markup('<polyline class="line {}" points="{}"/>').format(series_class(index), path))
        body.append(leader(known[-1][0] + 6, y_of(known[-1][1].mean or 0.0), column - 8, label_y))
        body += [
            marker(index, x, y_of(step.mean or 0.0), f"{entry.label}: {step.metric.value} {percent(step.mean)} %")
            for x, step in known
        ]
        body.append(marker(index, column, label_y))
        body.append(
            Markup('<text class="label {}" x="{:.1f}" y="{:.1f}">{}</text>').format(
                series_class(index), column + 9, label_y + 4, label
            )
        )
    said = "; ".join(f"{entry.label}: {', '.join(percent(step.mean) for step in steps)}" for _, entry, steps in rows)
    return svg(height, "Strictness ladder, per cent of episodes", said, body)


class _Bar(NamedTuple):
    """A bar of `_bar_grid`."""

    series: int
    share: float | None
    """Of the longest that there can be; None: unknown, no bar."""
    text: str
    tip: str


def _bar_grid(
    rows: Sequence[str], columns: Sequence[str], bars: dict[tuple[int, int], _Bar]
) -> tuple[float, list[Markup]]:
    """Bars in rows and columns, each with its number: legible for any number of either. Returns height and content."""
    panels = -(-len(columns) // _ACROSS)
    across = -(-len(columns) // panels)
    step, left, line = (WIDTH - _NAMES) / across, _NAMES, LINE + 2
    body: list[Markup] = []
    y = 0.0
    for first in range(0, len(columns), across):
        shown = range(first, min(first + across, len(columns)))
        y += line
        for place, column in enumerate(shown):
            body.append(
                Markup('<text class="axis" x="{:.1f}" y="{:.1f}">{}<title>{}</title></text>').format(
                    left + place * step, y, shorten(columns[column], int(step / _CHARACTER)), columns[column]
                )
            )
        for number, name in enumerate(rows):
            y += line
            body.append(
                Markup('<text class="name" text-anchor="end" x="{}" y="{:.1f}">{}<title>{}</title></text>').format(
                    left - 10, y, shortened(name), name
                )
            )
            body += [
                _bar(bar, left + place * step, y, step - _NUMBER)
                for place, column in enumerate(shown)
                if (bar := bars.get((number, column))) is not None
            ]
        y += line
    return y, body


def _bar(bar: _Bar, x: float, y: float, longest: float) -> Markup:
    length = 0.0 if bar.share is None else max(longest * bar.share, 1.0)
    drawn = Markup('<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="9"><title>{}</title></rect>').format(
        series_class(bar.series), x, y - 9, length, bar.tip
    )
    text = Markup('<text class="value" x="{:.1f}" y="{:.1f}">{}</text>').format(x + length + 4, y, bar.text)
    return drawn + text if length else text


def category_bars(summary: Summary, metric: Metric) -> Markup:
    """A metric per category and agent; an unknown mean has a dash instead of a bar."""
    agents = [name_of(index, entry.label, len(summary.entries)) for index, entry in enumerate(summary.entries)]
    order = {entry.label: index for index, entry in enumerate(summary.entries)}
    categories = sorted({row.category for row in summary.categories})
    tall = len(agents) >= len(categories)
    bars = {}
    for row in summary.categories:
        item = next(estimate for estimate in row.estimates if estimate.metric is metric)
        tip = f"{row.category or _NONE}, {row.label}: {percent(item.mean)} % of {item.known} known episodes"
        agent, category = order[row.label], categories.index(row.category)
        bars[(agent, category) if tall else (category, agent)] = _Bar(agent, item.mean, percent(item.mean), tip)
    names = [category or _NONE for category in categories]
    height, body = _bar_grid(*((agents, names) if tall else (names, agents)), bars)
    said = f"{len(categories)} categories, {len(order)} agents; the numbers are in the table"
    return svg(height, f"{metric.value} by category, per cent", said, body)


def stability_bars(summary: Summary) -> Markup:
    """Standard deviation of each metric over the episodes (Fig. 5)."""
    agents = [name_of(index, entry.label, len(summary.entries)) for index, entry in enumerate(summary.entries)]
    metrics = [spread.metric.value for spread in summary.entries[0].stability]
    ceiling = ceiling_of([spread.deviation or 0.0 for entry in summary.entries for spread in entry.stability])
    bars = {}
    for row, entry in enumerate(summary.entries):
        for column, spread in enumerate(entry.stability):
            share = None if spread.deviation is None else spread.deviation / ceiling
            text = UNKNOWN if spread.deviation is None else f"{spread.deviation:.2f}"
            tip = f"{entry.label}: {spread.metric.value} deviation {text} over {spread.n} episodes"
            bars[row, column] = _Bar(row, share, text, tip)
    height, body = _bar_grid(agents, metrics, bars)
    return svg(height, "Standard deviation of the metrics", "The numbers are in the table", body)


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
        length = (WIDTH - left - right) * item.prevalence
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
    return svg(y + 6, "Failure types, prevalence within their phase", "The numbers are in the table", body)
