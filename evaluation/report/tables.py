"""A summary as tables of text: the same for the terminal, for Markdown, and for the data tables of the HTML report.

Shares are shown in per cent, as the paper shows them. What is unknown is a dash, never a 0.
"""

from __future__ import annotations

from typing import Final

from evaluation.failures import Taxonomy
from evaluation.metrics import LADDER, RANKED_BY, Convention, Estimate, Metric
from evaluation.report.families import FamilyColumn, FamilyEstimate, FamilySection
from evaluation.report.measured import MEANINGS, keyless_scores, measured_text
from evaluation.report.summary import CATEGORY_METRICS, LEADERBOARD, PAPER_METRICS, Entry, Summary
from pipeline.schema import Record

__all__ = [
    "UNKNOWN",
    "Table",
    "all_tables",
    "amount_text",
    "bounds_text",
    "bounds_text_of",
    "dollars",
    "failure_table",
    "family_table",
    "family_value",
    "percent",
    "range_text",
]

UNKNOWN: Final = "–"
_FEW: Final = 8
"""Papers below which the note on narrow intervals is shown."""


class Table(Record):
    """A table of text. The first `stub` columns name the row; the others are numbers."""

    name: str
    """File name and anchor."""
    title: str
    note: str = ""
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    stub: int = 1


def percent(value: float | None) -> str:
    """A share as the paper prints it: per cent with one decimal."""
    return UNKNOWN if value is None else f"{100 * value:.1f}"


def range_text(interval: tuple[float, float] | None) -> str:
    """An interval of shares in per cent."""
    return "" if interval is None else f"{100 * interval[0]:.1f}–{100 * interval[1]:.1f}"


def bounds_text_of(low: float, high: float) -> str:
    """Two ends of what is possible, in per cent."""
    return range_text((low, high))


def bounds_text(estimate: Estimate) -> str:
    """Bounds of the mean over all episodes; empty where nothing is unknown."""
    if not estimate.unknown or estimate.low is None or estimate.high is None:
        return ""
    return range_text((estimate.low, estimate.high))


def dollars(value: float) -> str:
    """An amount of money with as many decimals as it needs."""
    return f"${value:.2f}" if value >= 0.1 or not value else f"${value:.4f}"


def amount_text(entry: Entry, name: str) -> str:
    """A mean amount per episode, with how many episodes did not say it."""
    amount = entry.amount(name)
    if amount.mean is None:
        return UNKNOWN
    if name == "cost":
        text = dollars(amount.mean)
    elif name == "time":
        text = f"{amount.mean / 60:.1f} min"
    else:
        text = f"{amount.mean:,.0f}"
    return text if amount.known == amount.n else f"{text} (of {amount.known})"


def all_tables(summary: Summary, taxonomy: Taxonomy | None = None) -> tuple[Table, ...]:
    """All tables of a report, in their order; those that have nothing to say are left out."""
    tables = [_leaderboard(summary), _bounds(summary), _scores(summary), _paper(summary), _ladder(summary)]
    tables += [_categories(summary), _stability(summary), _amounts(summary), _repeats(summary), _passes(summary)]
    for section in summary.families:
        tables += [family_table(section), _other_metrics(section)]
    tables.append(_graders(summary))
    if taxonomy is not None:
        tables.append(failure_table(taxonomy))
    return tuple(table for table in tables if table is not None and table.rows)


def _cell(estimate: Estimate) -> str:
    interval = range_text(estimate.interval)
    return f"{percent(estimate.mean)} [{interval}]" if interval else percent(estimate.mean)


def _leaderboard(summary: Summary) -> Table:
    papers = min((entry.papers for entry in summary.entries), default=0)
    few = f" Intervals from few papers (here {papers}) are too narrow." if 2 <= papers < _FEW else ""
    return Table(
        name="leaderboard",
        title="Leaderboard",
        note=f"Ranked by {RANKED_BY} over all episodes: by its lowest value (what is unknown counts as missed), then "
        "by its highest. Per cent, mean over the known episodes [95 % interval, bootstrapped over papers]. An episode "
        "that the monitor failed is 0 in everything. n counts all episodes, blocked and lost (unknown) ones included."
        f"{_restated(summary)}{few}",
        columns=("Rank", "Agent", RANKED_BY, "at least", "at most", *LEADERBOARD[1:], "#E", "n", "Blocked", "Lost"),
        rows=tuple(
            (
                str(entry.rank),
                entry.label,
                _cell(entry.estimate(RANKED_BY)),
                percent(entry.estimate(RANKED_BY).low),
                percent(entry.estimate(RANKED_BY).high),
                *(_cell(entry.estimate(metric)) for metric in LEADERBOARD[1:]),
                str(entry.checked),
                str(entry.episodes),
                str(entry.blocked),
                str(entry.unknown),
            )
            for entry in summary.entries
        ),
        stub=2,
    )


def _restated(summary: Summary) -> str:
    """Where D shows nothing."""
    count = sum(entry.restated for entry in summary.entries)
    episodes = sum(entry.episodes for entry in summary.entries)
    if not count:
        return ""
    return (
        f" D is a restatement in {count} of {episodes} episodes: the task's text tells it, so it leaves conjunctions."
    )


def _bounds(summary: Summary) -> Table:
    def cells(entry: Entry) -> tuple[str, ...]:
        return tuple(
            f"{bounds_text(item)} ({item.unknown})" if item.unknown else percent(item.mean) for item in entry.estimates
        )

    return Table(
        name="bounds",
        title="With the unknown episodes",
        note="Per cent, lowest and highest mean over all episodes that what is known still allows (in brackets: "
        "unknown episodes). E of an episode that was not execution-checked is unknown.",
        columns=("Agent", *LEADERBOARD),
        rows=tuple((entry.label, *cells(entry)) for entry in summary.entries),
    )


def _scores(summary: Summary) -> Table:
    """What each keyless score is, and how it did where it was measured."""
    return Table(
        name="scores",
        title="What the keyless scores are",
        note="Measured: on agents of strangers, in a set that was frozen before the graders saw it.",
        columns=("Score", "Rests on", "Measured"),
        rows=tuple(
            (metric.value, MEANINGS[metric], measured_text(summary.measurement, metric))
            for metric in (keyless_scores(summary.graders) if summary.entries else ())
        ),
        stub=3,
    )


def _paper(summary: Summary) -> Table:
    checked = PAPER_METRICS.index(Metric.E)
    return Table(
        name="exp-bench",
        title=f"{Convention.PAPER}'s convention",
        note="Per cent of the known episodes, as EXP-Bench's Table 1 and Fig. 6b have it: D, I, C, AllX over all; E, "
        "I·E, AllX·E and the ladder over the #E execution-checked episodes; the monitor counts in the ladder alone, so "
        "that an episode that it failed before the check leaves E. Not what ranks here.",
        columns=("Agent", *PAPER_METRICS, "#E"),
        rows=tuple(
            (entry.label, *(percent(item.mean) for item in entry.paper), str(entry.paper[checked].n))
            for entry in summary.entries
        ),
    )


def _ladder(summary: Summary) -> Table:
    return Table(
        name="strictness",
        title="Strictness ladder",
        note="Per cent of all episodes with full marks in every part; in brackets the bounds where some are unknown.",
        columns=("Agent", *LADDER, "n"),
        rows=tuple(
            (
                entry.label,
                *(
                    f"{percent(item.mean)}{f' ({bounds})' if (bounds := bounds_text(item)) else ''}"
                    for item in entry.ladder
                ),
                str(entry.episodes),
            )
            for entry in summary.entries
        ),
    )


def _categories(summary: Summary) -> Table:
    return Table(
        name="categories",
        title="By category",
        note="Per cent of the known episodes; the columns of Tables 3 and 6 of EXP-Bench, and what ranks.",
        columns=("Category", "Agent", *CATEGORY_METRICS, "#E", "Episodes"),
        rows=tuple(
            (
                row.category or "(none given)",
                row.label,
                *(percent(item.mean) for item in row.estimates),
                str(row.checked),
                str(row.episodes),
            )
            for row in summary.categories
        ),
        stub=2,
    )


def _stability(summary: Summary) -> Table:
    rows = []
    for entry in summary.entries:
        for spread in entry.stability:
            within = UNKNOWN if spread.within_task is None else f"{spread.within_task:.3f}"
            variance = UNKNOWN if spread.variance is None else f"{spread.variance:.3f}"
            deviation = UNKNOWN if spread.deviation is None else f"{spread.deviation:.3f}"
            rows.append((entry.label, spread.metric.value, str(spread.n), variance, deviation, within))
    return Table(
        name="stability",
        title="Stability",
        note="How much a metric varies between episodes, and between the repeats of one task (Fig. 5 of EXP-Bench).",
        columns=("Agent", "Metric", "Episodes", "Variance", "Deviation", "Variance within a task"),
        rows=tuple(rows),
        stub=2,
    )


def _amounts(summary: Summary) -> Table:
    names = ("cost", "time", "input tokens", "output tokens", "model calls")
    return Table(
        name="cost",
        title="Cost and time",
        note="Means per episode; in brackets, how many episodes say it where not all do. "
        "A price that is not known is not 0.",
        columns=("Agent", *names),
        rows=tuple((entry.label, *(amount_text(entry, name) for name in names)) for entry in summary.entries),
    )


def _repeats(summary: Summary) -> Table:
    rows = []
    for entry in summary.entries:
        for spread in entry.repeat_spread:
            deviation = UNKNOWN if spread.deviation is None else f"{100 * spread.deviation:.1f}"
            means = " ".join(percent(mean) for _, mean in spread.means)
            rows.append((entry.label, spread.metric.value, percent(spread.mean), deviation, means))
    return Table(
        name="repeats",
        title="Repeats",
        note="Per cent: mean and standard deviation of the means of the repeats.",
        columns=("Agent", "Metric", "Mean", "Deviation", "Means of the repeats"),
        rows=tuple(rows),
        stub=2,
    )


def _passes(summary: Summary) -> Table:
    rows = [
        (entry.label, rate.metric.value, str(rate.k), percent(rate.at_least_one), percent(rate.every), str(rate.tasks))
        for entry in summary.entries
        for rate in entry.pass_rates
    ]
    return Table(
        name="pass-rates",
        title="pass@k and pass^k",
        note="Per cent of tasks, unbiased: at least one of k attempts, and all of k attempts, with full marks; over "
        "tasks with at least k known attempts.",
        columns=("Agent", "Metric", "k", "pass@k", "pass^k", "Tasks"),
        rows=tuple(rows),
        stub=2,
    )


def family_table(section: FamilySection) -> Table:
    """The agents on one family, with its own columns."""
    arrows = {"higher": " ↑", "lower": " ↓", None: ""}
    meanings = "; ".join(f"{column.title}: {column.meaning}" for column in section.columns if column.meaning)
    shares = [column.title for column in section.columns if column.share]
    percents = f" Per cent: {', '.join(shares)}." if shares else ""
    return Table(
        name=f"family-{section.family.value}",
        title=section.title,
        note=f"Mean over the scored episodes that say it [95 % interval, bootstrapped over papers]; in brackets how "
        f"many do, where not all.{percents} Ranked by the first column. {meanings}".strip(),
        columns=(
            "Rank", "Agent", *(f"{column.title}{arrows[column.better]}" for column in section.columns), "n", "Blocked",
            "Lost", "Cost", "Time",
        ),
        rows=tuple(
            (
                str(row.rank),
                row.label,
                *(_family_cell(item, column) for item, column in zip(row.estimates, section.columns, strict=True)),
                str(row.episodes),
                str(row.blocked),
                str(row.unknown),
                UNKNOWN if row.cost_usd is None else dollars(row.cost_usd),
                UNKNOWN if row.wall_s is None else f"{row.wall_s / 60:.1f} min",
            )
            for row in section.rows
        ),
        stub=2,
    )  # fmt: skip


def _other_metrics(section: FamilySection) -> Table:
    return Table(
        name=f"family-{section.family.value}-more",
        title=f"{section.title}: further metrics",
        note="Means over the scored episodes that say it.",
        columns=("Agent", "Metric", "Mean", "Known", "Episodes"),
        rows=tuple(
            (label, item.name, _number(item.mean), str(item.known), str(item.n)) for label, item in section.others
        ),
        stub=2,
    )


def family_value(value: float | None, column: FamilyColumn) -> str:
    """A value of a family's metric, in per cent where it is a share."""
    return percent(value) if column.share else _number(value)


def _family_cell(item: FamilyEstimate, column: FamilyColumn) -> str:
    text = family_value(item.mean, column)
    if item.interval is not None:
        text += f" [{'–'.join(family_value(end, column) for end in item.interval)}]"
    return text if item.known == item.n or item.mean is None else f"{text} ({item.known} of {item.n})"


def _graders(summary: Summary) -> Table:
    return Table(
        name="graders",
        title="Who graded",
        note="keyless: rules and matching, no language model.",
        columns=("Agent", "Run", "Graders"),
        rows=tuple((entry.label, entry.run, "; ".join(entry.graders) or UNKNOWN) for entry in summary.entries),
        stub=3,
    )


def failure_table(taxonomy: Taxonomy) -> Table:
    """Failure types with prevalence by phase (Table 2)."""
    return Table(
        name="failures",
        title="Failure types",
        note=taxonomy.how,
        columns=("Phase", "Failure type", "Prevalence (%)", "Insights", "Episodes"),
        rows=tuple(
            (item.phase, item.name, percent(item.prevalence), str(item.insights), str(item.episodes))
            for item in taxonomy.types
        ),
        stub=2,
    )


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.4g}"
