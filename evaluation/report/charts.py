"""Charts as inline SVG: no script, no library, no network; they follow the page's colours, print, and scale.

Each chart has a title and a description for screen readers; its numbers are in a table beside it. Series differ in
colour and in the shape of their marks.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from evaluation.failures import Taxonomy
from evaluation.metrics import LADDER, Metric
from evaluation.report.marks import (
    LABEL,
    WIDTH,
    apart,
    ceiling_of,
    grid_y,
    marker,
    series_class,
    stem,
    svg,
)
from evaluation.report.scatter import Point, scatter
from evaluation.report.summary import Entry, Summary
from evaluation.report.tables import amount_text, percent
from pipeline.text import shorten

__all__ = [
    "category_bars",
    "failure_bars",
    "ladder_lines",
    "legend",
    "mark_of",
    "pareto_plot",
    "stability_dots",
]


def mark_of(index: int) -> Markup:
    """The mark of a series, around the origin."""
    return marker(index, 0, 0)


def legend(labels: Sequence[str], series: Sequence[int] | None = None) -> Markup:
    """Names of the series with their marks; `series` are their numbers where they are not simply counted."""
    items = [
        Markup('<li><svg class="key" viewBox="-8 -8 16 16" aria-hidden="true">{}</svg>{}</li>').format(
            marker(index, 0, 0), label
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


def ladder_lines(entries: Sequence[Entry], *, everywhere: bool) -> Markup:
    """The strictness ladder (Fig. 6b): share of episodes that pass as more is asked for."""
    height, left, right, top, bottom = 340, 52, 222, 20, 40
    rows = [(index, entry, entry.ladder_all if everywhere else entry.ladder) for index, entry in enumerate(entries)]
    rows = [(index, entry, steps) for index, entry, steps in rows if any(step.mean is not None for step in steps)]
    if not rows:
        return Markup('<p class="soft">No episode was execution-checked.</p>')
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
    named = [(y_of(steps[-1].mean or 0.0), shorten(entry.label, LABEL)) for _, entry, steps in rows]
    ends = apart(named, lowest=height - bottom)
    for (index, entry, steps), (label_y, label) in zip(rows, ends, strict=True):
        known = [(left + n * step_width, step) for n, step in enumerate(steps) if step.mean is not None]
        path = " ".join(f"{x:.1f},{y_of(step.mean or 0.0):.1f}" for x, step in known)
        body.append(Markup('<polyline class="line {}" points="{}"/>').format(series_class(index), path))
        body += [
            marker(index, x, y_of(step.mean or 0.0), f"{entry.label}: {step.metric.value} {percent(step.mean)} %")
            for x, step in known
        ]
        body.append(
            Markup('<text class="label {}" x="{:.1f}" y="{:.1f}">{}</text>').format(
                series_class(index), known[-1][0] + 12, label_y + 4, label
            )
        )
    said = "; ".join(f"{entry.label}: {', '.join(percent(step.mean) for step in steps)}" for _, entry, steps in rows)
    return svg(height, "Strictness ladder, per cent of episodes", said, body)


def category_bars(summary: Summary, metric: Metric) -> Markup:
    """A metric per category and agent as horizontal bars; an unknown mean has a dash instead of a bar."""
    order = {entry.label: index for index, entry in enumerate(summary.entries)}
    left, right, bar, gap = 170, 64, 13, 14
    categories = sorted({row.category for row in summary.categories})
    body: list[Markup] = []
    y = 8
    width = WIDTH - left - right
    for category in categories:
        rows = sorted((row for row in summary.categories if row.category == category), key=lambda row: order[row.label])
        middle = y + bar * len(rows) / 2 + 4
        body.append(
            Markup('<text class="name" text-anchor="end" x="{}" y="{:.1f}">{}</text>').format(
                left - 10, middle, shorten(category or "(none given)", LABEL)
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
    return svg(max(y, 30), f"{metric.value} by category, per cent", said, body)


def stability_dots(summary: Summary) -> Markup:
    """Standard deviation of each metric over the episodes, one mark an agent (Fig. 5)."""
    height, left, right, top, bottom = 300, 52, 20, 16, 40
    metrics = [spread.metric for spread in summary.entries[0].stability]
    step = (WIDTH - left - right) / len(metrics)
    ceiling = ceiling_of([spread.deviation or 0.0 for entry in summary.entries for spread in entry.stability])

    def y_of(value: float) -> float:
        return top + (height - top - bottom) * (1 - value / ceiling)

    body = [grid_y(ceiling, left, WIDTH - right, y_of, text="{:.2f}")]
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
            body.append(stem(index, x, y_of(0.0), y_of(spread.deviation)))
            body.append(marker(index, x, y_of(spread.deviation), tip))
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
