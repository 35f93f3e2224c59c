"""Why a table of numbers is no experiment: it lists settings, describes data, or its grid was not understood.

Refusals are values with a reason, because a reader wants to know why a table of the paper gave no task.
"""

from __future__ import annotations

import re
from typing import Final

from extractors._table_layout import Layout, headers_of, split_header
from extractors._table_roles import Refusal
from extractors._vocabulary import SETTING, direction_of, find_metric, is_metric_header
from pipeline.paper import Table

__all__ = ["not_results"]

_SETTINGS_CAPTION: Final = re.compile(
    r"hyper-?param|training (?:details|settings|configuration)|notation|list of symbols|configurations? (?:used|for)|"
    r"experimental settings? (?:for|of)|architecture details|implementation details",
    re.IGNORECASE,
)
_SEARCHED_CAPTION: Final = re.compile(r"search (?:space|grid|range)", re.IGNORECASE)
_STATISTICS_CAPTION: Final = re.compile(
    r"statistic|data ?sets? (?:details|description|overview|sizes?|splits?|used|characteristics|summary)|"
    r"(?:details|description|overview|summary|characteristics|sizes?) of (?:the |our |all )?(?:\w+ )?data ?sets?|"
    r"number of (?:trainable )?(?:parameters|samples|papers|examples|documents|instances)|corpus sizes?",
    re.IGNORECASE,
)
_SIZE: Final = re.compile(
    r"(?:#|no\.|num\.|number of|dim\b|dim\.|dimensions?(?:ality)? of|size of|value used|total number)", re.IGNORECASE
)


def not_results(table: Table, layout: Layout) -> Refusal | None:
    """The reason why a table reports no results, as far as its names and caption tell; None when they do not.

    Args:
        table: the table.
        layout: its parts.
    """
    headers = headers_of(layout)
    labels = list(dict.fromkeys(text for value in layout.values for _, text in value.labels if text))
    if any(len(re.findall(r"\d*\.\d+", text)) >= 3 for text in [*headers, *labels, *layout.label_heads]):
        return Refusal("unclear", "a header or label holds several numbers: its grid was not understood")
    metrics = [text for text in [*headers, *labels, *layout.label_heads] if is_metric_header(text)]
    return _lists_settings(table, headers, labels, metrics) or _describes_data(table, headers, metrics)


def _lists_settings(table: Table, headers: list[str], labels: list[str], metrics: list[str]) -> Refusal | None:
    if _SETTINGS_CAPTION.search(table.caption) and not any(direction_of(text) for text in metrics):
        return Refusal("settings", "its caption says that it lists settings, not results")
    measured = any(direction_of(phrase) for _, _, phrase in find_metric(table.caption))
    if _SEARCHED_CAPTION.search(table.caption) and not measured and not metrics:
        return Refusal("settings", "its caption says that it lists what was searched, not results")
    names = [split_header(text)[0] for text in [*headers, *labels]]
    settings = [name for name in names if re.fullmatch(SETTING, name, re.IGNORECASE)]
    if len(settings) >= 3 and len(settings) > len(metrics) + 1:
        return Refusal("settings", f"most of its entries are settings ({', '.join(settings[:3])})")
    sizes = [text for text in labels if _SIZE.match(text)]
    if len(sizes) * 2 >= len(labels) and len(sizes) > 1 and not metrics:
        return Refusal("settings", f"its rows are sizes and settings ({', '.join(sizes[:3])})")
    return None


def _describes_data(table: Table, headers: list[str], metrics: list[str]) -> Refusal | None:
    if _STATISTICS_CAPTION.search(table.caption) and not metrics and not find_metric(table.caption):
        return Refusal("statistics", "its caption says that it describes data or sizes, not results")
    counts = [
        h for h in headers if re.match(r"#|(?:number|num\.?|no\.) of\b|papers\b|training$|validation$|test$", h, re.I)
    ]
    named = bool(re.search(r"accurac|error|score|rate|loss|precision|recall", table.caption, re.IGNORECASE))
    if not metrics and counts and len(counts) * 2 >= len(headers) and not named:
        return Refusal("statistics", f"its columns are counts ({', '.join(counts[:3])})")
    return None
