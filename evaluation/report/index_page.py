"""The index of an HTML report: one file with leaderboard, charts, tables and the list of all episodes.

Nothing is fetched: charts are inline SVG, the list of episodes is data in the page, drawn a hundred rows at a time. A
content security policy lets only the page's own script run, should escaping ever fail.
"""

from __future__ import annotations

import json
from typing import Any, Final, Literal

from markupsafe import Markup

from evaluation.failures import FailureType, Taxonomy
from evaluation.metrics import RANKED_BY, Convention, Estimate, Metric, mark
from evaluation.report import charts
from evaluation.report.cleaning import clean_text
from evaluation.report.episode_page import Render
from evaluation.report.families import headline
from evaluation.report.marks import name_of
from evaluation.report.results import Configuration, Episode, Results, configuration_of
from evaluation.report.scatter import family_scatter
from evaluation.report.summary import CATEGORY_METRICS, LEADERBOARD, Entry, Summary
from evaluation.report.tables import Table, all_tables, amount_text, bounds_text, family_value, percent, range_text
from evaluation.scores import EpisodeScores, EpisodeStatus
from pipeline.task import Family

__all__ = ["index_page"]

_PARTS: Final[tuple[tuple[str, str], ...]] = (
    ("leaderboard", "Leaderboard"), ("cost", "Cost and time"), ("strictness", "Strictness"),
    ("categories", "Categories"), ("stability", "Stability"), ("failures", "Failure types"), ("episodes", "Episodes"),
)  # fmt: skip
_PARETO: Final = (RANKED_BY, Metric.ALL_E, Metric.ALL, Metric.I_E, Metric.C_D, Metric.C, Metric.D, Metric.I, Metric.E)
_AMOUNTS: Final[tuple[Literal["cost", "time"], ...]] = ("cost", "time")
_STATUSES: Final = tuple(EpisodeStatus)
_WHOLE: Final = 1000
_TABLES: Final = (
    "leaderboard",
    "scores",
    "exp-bench",
    "cost",
    "strictness",
    "stability",
    "repeats",
    "pass-rates",
)


def index_page(
    results: Results,
    summary: Summary,
    taxonomy: Taxonomy | None,
    folders: dict[Configuration, str],
    render: Render,
    *,
    title: str,
    public: bool,
    pages: bool,
) -> str:
    """The index as HTML.

    Args:
        taxonomy: failure types; None: none were made.
        folders: directory of each configuration's pages below `episodes/`.
        render: renders a template of this package.
        public: leave out what only graders may see.
        pages: are there pages of the episodes to link to?
    """
    configurations = _ordered(results, summary)
    labels = results.labels()
    order = {labels[item]: index for index, item in enumerate(configurations)}
    types = _types(taxonomy, public)
    categories = sorted({scores.category for scores in results.scores})
    tables = {table.name: table for table in all_tables(summary)}
    return render(
        "index.html.j2",
        {
            "title": title,
            "public": public,
            "summary": summary,
            "tables": {name: tables.get(name) for name in (*_TABLES, "categories")},
            "parts": _parts(summary, taxonomy),
            "leaderboard": LEADERBOARD,
            "lines": [_line(index, entry, len(summary.entries)) for index, entry in enumerate(summary.entries)],
            "graders": summary.graders,
            "family_parts": _family_parts(summary, order, tables),
            "legend": charts.legend([entry.label for entry in summary.entries]),
            "pareto_views": _pareto_views(summary) if summary.entries else [],
            "ladder_views": [
                ("all episodes", charts.ladder_lines(summary.entries, Convention.STRICT)),
                ("execution-checked episodes (EXP-Bench)", charts.ladder_lines(summary.entries, Convention.PAPER)),
            ],
            "category_views": [
                (metric.value, charts.category_bars(summary, metric)) for metric in CATEGORY_METRICS if summary.entries
            ],
            "category_rows": _category_rows(tables.get("categories"), summary, order, categories),
            "stability": charts.stability_bars(summary) if summary.entries else "",
            "taxonomy": taxonomy,
            "types": types,
            "failure_chart": charts.failure_bars(taxonomy, {item.id: item.name for item in types}) if taxonomy else "",
            "problems": [] if public else results.problems,
            "configs": [{"label": labels[item]} for item in configurations],
            "categories": categories,
            "statuses": [status.value for status in _STATUSES],
            "row_metrics": LEADERBOARD,
            "repeated": any(scores.repeat for scores in results.scores),
            "data": _data(results, configurations, taxonomy, folders, categories, pages),
        },
    )


def _ordered(results: Results, summary: Summary) -> list[Configuration]:
    """All configurations: those of the leaderboard in its order, then those that have other families' tasks only."""
    ranked = [Configuration(entry.agent, entry.model, entry.run) for entry in summary.entries]
    return [*ranked, *(item for item in results.configurations if item not in ranked)]


def _parts(summary: Summary, taxonomy: Taxonomy | None) -> list[tuple[str, str]]:
    """Anchors and names of the sections that there are."""
    families = [(f"family-{section.family.value}", section.title) for section in summary.families]
    own = [part for part in _PARTS if summary.entries or part[0] in {"failures", "episodes"}]
    own = [part for part in own if part[0] != "failures" or taxonomy is not None]
    before = [part for part in own if part[0] not in {"failures", "episodes"}]
    return [*before, *families, *own[len(before) :]]


def _family_parts(summary: Summary, order: dict[str, int], tables: dict[str, Table]) -> list[dict[str, Any]]:
    """Sections of the other families: table, chart of cost and time against what ranks them."""
    return [
        {
            "anchor": f"family-{section.family.value}",
            "title": section.title,
            "table": tables[f"family-{section.family.value}"],
            "more": tables.get(f"family-{section.family.value}-more"),
            "agents": [order[row.label] for row in section.rows],
            "legend": charts.legend([row.label for row in section.rows], [order[row.label] for row in section.rows]),
            "views": [
                (f"{section.columns[0].title} against {amount}", family_scatter(section, order, amount))
                for amount in _AMOUNTS
            ]
            if section.columns
            else [],
        }
        for section in summary.families
        if section.rows
    ]


def _types(taxonomy: Taxonomy | None, public: bool) -> tuple[FailureType, ...]:
    """Failure types for the page; in public without examples, and without names that a model took from the truth."""
    if taxonomy is None:
        return ()
    if not public:
        return tuple(
            item.evolve(
                name=clean_text(item.name),
                description=clean_text(item.description),
                examples=tuple(example.evolve(text=clean_text(example.text)) for example in item.examples),
            )
            for item in taxonomy.types
        )
    return tuple(
        item.evolve(examples=())
        if item.known
        else item.evolve(examples=(), name=f"failure type {item.id} (name withheld)", description="")
        for item in taxonomy.types
    )


def _line(index: int, entry: Entry, count: int) -> dict[str, Any]:
    def cell(number: int, item: Estimate) -> dict[str, Any]:
        bounds, interval = bounds_text(item), range_text(item.interval)
        told = f" 95 % interval {interval}." if interval else ""
        told += f" With the unknown ones between {bounds}." if bounds else ""
        ranks = item.metric is RANKED_BY
        small = [
            f"known {percent(item.mean)}" if ranks and bounds else "",
            interval,
            "" if ranks or not bounds else f"({bounds})",
        ]
        small.append(f"restated {entry.restated}" if item.metric is Metric.D and entry.restated else "")
        return {
            "name": item.metric.value,
            "text": bounds if ranks and bounds else percent(item.mean),
            "share": item.low if ranks else item.mean,
            "small": [text for text in small if text],
            "metric_index": number,
            "title": f"{item.metric.value}: mean over {item.known} of {item.n} episodes.{told}",
        }

    return {
        "index": index,
        "entry": entry,
        "name": name_of(index, entry.label, count),
        "key": Markup('<svg class="key" viewBox="-8 -8 16 16" aria-hidden="true">{}</svg>').format(
            charts.mark_of(index)
        ),
        "cells": [cell(number, item) for number, item in enumerate(entry.estimates)],
        "without": [
            row
            for row in (
                (_STATUSES.index(EpisodeStatus.BLOCKED), entry.blocked, "blocked", "cannot be carried out here"),
                (_STATUSES.index(EpisodeStatus.UNKNOWN), entry.unknown, "lost", "the machinery failed"),
            )
            if row[1]
        ],
        "others": [("cost", amount_text(entry, "cost")), ("time", amount_text(entry, "time"))],
    }


def _mille(value: float) -> int:
    """Per mille; only what is exactly full is 1000, since the page finds full marks by that."""
    return _WHOLE if value >= 1 else min(_WHOLE - 1, round(_WHOLE * value))


def _pareto_views(summary: Summary) -> list[tuple[str, Markup]]:
    return [
        (f"{metric.value} against {amount}", charts.pareto_plot(summary, amount, metric))
        for metric in _PARETO
        for amount in ("cost", "time")
    ]


def _category_rows(
    table: Table | None, summary: Summary, order: dict[str, int], categories: list[str]
) -> list[dict[str, Any]]:
    if table is None:
        return []
    metrics = [LEADERBOARD.index(metric) for metric in CATEGORY_METRICS]
    return [
        {"cells": cells, "agent": order[row.label], "category": categories.index(row.category), "metrics": metrics}
        for cells, row in zip(table.rows, summary.categories, strict=True)
    ]


def _data(
    results: Results,
    configurations: list[Configuration],
    taxonomy: Taxonomy | None,
    folders: dict[Configuration, str],
    categories: list[str],
    pages: bool,
) -> Markup:
    """What the script needs: short rows, so that 10,000 of them stay near a megabyte (see `index.js` for the form)."""
    places = {item: index for index, item in enumerate(configurations)}
    labels = results.labels()
    repeats = dict.fromkeys(configurations, 1)
    category_numbers = {name: number for number, name in enumerate(categories)}
    types = {item.id: number for number, item in enumerate(taxonomy.types)} if taxonomy else {}
    members = taxonomy.members if taxonomy else {}
    rows = []
    for scores, folder in results.episodes:
        configuration = configuration_of(scores)
        repeats[configuration] = max(repeats[configuration], scores.repeat + 1)
        values = [mark(scores, metric).value for metric in LEADERBOARD]
        directory = folder.root.parent.name
        rows.append(
            [
                places[configuration],
                clean_text(scores.task),
                folder.root.name,
                category_numbers[scores.category],
                _STATUSES.index(scores.status),
                [None if value is None else _mille(value) for value in values],
                None if scores.cost_usd is None else round(scores.cost_usd, 6),
                None if scores.wall_s is None else round(scores.wall_s, 1),
                [types[name] for name in members.get(Episode(scores, folder).key, ())],
                0 if directory == scores.task else directory,
                _headline(scores),
            ]
        )
    configs = [
        {
            "label": clean_text(labels[item]),
            "folder": folders[item],
            "repeats": repeats[item],
        }
        for item in configurations
    ]
    value = {
        "configs": configs,
        "categories": categories,
        "statuses": [status.value for status in _STATUSES],
        "metrics": [metric.value for metric in LEADERBOARD],
        "pages": pages,
        "rows": rows,
    }
    value["families"] = any(row[-1] for row in rows)
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    # inside <script> only these can end or open anything; JSON has them in strings alone
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))  # noqa: S704


def _headline(scores: EpisodeScores) -> str | int:
    """What ranks the episode's family, as text; 0: it is of the family of the leaderboard."""
    found = headline(scores)
    if found is None:
        return 0 if scores.family is Family.EXPERIMENT else f"{scores.family.value}: –"
    column, value = found
    return f"{column.title} {family_value(value, column)}{' %' if column.share and value is not None else ''}"
