"""The matrix of an HTML report: tasks down, agents across, and in each cell how its attempts did in M, D, I, C and E.

A state is told by letters, so that it can be read without colours; an attempt leads to the page of its episode.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from evaluation.metrics import FULL_MARKS, RANKED_BY, Metric, caught, mark
from evaluation.report.cleaning import clean_text
from evaluation.report.episode_page import Render
from evaluation.report.marks import name_of, shortened
from evaluation.report.results import Configuration, Episode, Results, configuration_of
from evaluation.report.summary import Summary
from evaluation.report.tables import percent
from evaluation.scores import EpisodeStatus
from pipeline.task import Family

__all__ = ["matrix_page"]

_KEY: Final = (
    ("MDICE", "full marks in each"),
    ("M·I··", "a point: known to be less than full"),
    ("M?ICE", "unknown"),
    ("MdICE", "D is a restatement and does not count"),
    ("×····", "the monitor failed: 0 in everything"),
    ("block", "cannot be carried out here"),
    ("lost", "the machinery failed"),
)
_STATUSES: Final = {EpisodeStatus.BLOCKED: "block", EpisodeStatus.UNKNOWN: "lost"}


class _Attempt(NamedTuple):
    text: str
    kind: str
    """Class of the style sheet."""
    tip: str
    href: str


def matrix_page(
    results: Results,
    summary: Summary,
    folders: Mapping[Configuration, str],
    render: Render,
    *,
    title: str,
    public: bool,
    pages: bool,
) -> str:
    """The matrix as HTML; arguments as of `index_page`."""
    columns = {Configuration(entry.agent, entry.model, entry.run): n for n, entry in enumerate(summary.entries)}
    cells: dict[str, list[list[_Attempt]]] = {}
    for episode in results.episodes:
        if episode.scores.family is not Family.EXPERIMENT:
            continue
        configuration = configuration_of(episode.scores)
        row = cells.setdefault(episode.scores.task, [[] for _ in columns])
        row[columns[configuration]].append(_attempt(episode, folders[configuration] if pages else ""))
    return render(
        "matrix.html.j2",
        {
            "title": title,
            "public": public,
            "links": pages,
            "key": _KEY,
            "agents": [
                (shortened(name), name)
                for number, entry in enumerate(summary.entries)
                for name in (name_of(number, clean_text(entry.label), len(columns)),)
            ],
            "tasks": [_row(task, row) for task, row in sorted(cells.items())],
        },
    )


def _row(task: str, row: list[list[_Attempt]]) -> dict[str, Any]:
    attempts = [attempt for cell in row for attempt in cell]
    full = sum(attempt.kind == "full" for attempt in attempts)
    return {"name": clean_text(task), "cells": row, "full": full, "attempts": len(attempts)}


def _attempt(episode: Episode, folder: str) -> _Attempt:
    """One line of a cell.

    Args:
        folder: of the configuration's pages; empty: there are none.
    """
    scores, place = episode.scores, episode.folder.root
    parts = [(metric, mark(scores, metric)) for metric in FULL_MARKS[RANKED_BY]]
    whole = mark(scores, RANKED_BY).value
    letters = (_letter(metric, value, restated=scores.design_restated) for metric, (value, _, _) in parts)
    text = "×····" if caught(scores) else _STATUSES.get(scores.status) or "".join(letters)
    kind = "caught" if caught(scores) else "open" if whole is None else "full" if whole else ""
    marks = ", ".join(
        f"{metric.value} {'unknown' if value is None else percent(value)}" for metric, (value, _, _) in parts
    )
    names = ("episodes", folder, place.parent.name, f"{place.name}.html")
    return _Attempt(text, kind, f"attempt {scores.repeat}: {marks}", "/".join(map(quote, names)) if folder else "")


def _letter(metric: Metric, value: float | None, *, restated: bool) -> str:
    if metric is Metric.D and restated:
        return "d"
    return "?" if value is None else metric.value if value >= 1 else "·"
