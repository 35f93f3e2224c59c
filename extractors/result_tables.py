"""What a table's parts mean: which header names a metric, which a condition - or why the table holds no result.

Refusals are values with a reason, because a reader wants to know why a table of the paper gave no task.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from extractors._table_layout import Layout, layout_of, split_header
from extractors._table_roles import Axis, Metric, Refusal, ResultCell, Roles, headers_of, label_words
from extractors._vocabulary import INDEX_HEADER, SETTING, find_metric, is_metric_header
from pipeline.paper import Table

__all__ = ["Axis", "Metric", "Refusal", "ResultCell", "ResultTable", "axis_kind", "known_labels", "read_result_table"]


class ResultTable(NamedTuple):
    """A table that reports results."""

    table: Table
    cells: tuple[ResultCell, ...]
    axes: tuple[Axis, ...]
    metrics: tuple[Metric, ...]
    copied: int
    """Numbers left out because the paper took them from elsewhere."""


_SETTINGS_CAPTION: Final = re.compile(
    r"hyper-?param|search (?:space|grid|range)|training (?:details|settings|configuration)|notation|list of symbols|"
    r"configurations? (?:used|for)|architecture details|implementation details",
    re.IGNORECASE,
)
_STATISTICS_CAPTION: Final = re.compile(
    r"statistic|data ?sets? (?:details|description|overview|sizes?|splits?|used|characteristics|summary)|"
    r"(?:details|description|overview|summary|characteristics|sizes?) of (?:the |our |all )?(?:\w+ )?data ?sets?|"
    r"number of (?:trainable )?(?:parameters|samples|papers|examples|documents|instances)|corpus sizes?",
    re.IGNORECASE,
)
_COPIED: Final = re.compile(
    r"(?P<mark>[∗*†‡§])\s?[^.∗*†‡§]{0,80}\b(?:taken|reported|copied|quoted|numbers are|results are|borrowed|cited)\b"
    r"[^.]{0,30}\b(?:from|in|by)\b"
)
_METHOD_AXIS: Final = re.compile(
    r"method|model|approach|algorithm|estimator|classifier|system|variant|agent|baseline|optimi[sz]er|schema|learner|"
    r"strategy|policy|regressor|sampler|solver|kernel|encoder|architecture|network|implementation|technique|ablation|"
    r"component|scheme|objective|loss|backbone|mechanism|module",
    re.IGNORECASE,
)
_DATASET_AXIS: Final = re.compile(
    r"data|(?:training|test) sets?|corpus|domain|benchmark|environment|problem|function|graph|task|language|scene|game",
    re.IGNORECASE,
)


def axis_kind(name: str, values: Sequence[str]) -> str:
    """method, dataset, number or setting, from the header first and the values' shape second."""
    if all(re.fullmatch(r"[−–+-]?[\d., ]*\d\s?(?:%|[kKM])?(?:e-?\d+)?", value) for value in values):
        return "number"
    if _METHOD_AXIS.search(name):
        return "method"
    return "dataset" if _DATASET_AXIS.search(name) else "setting"


def read_result_table(
    table: Table, described: str = "", known: Mapping[str, str] | None = None, text: str = ""
) -> ResultTable | Refusal:
    """Decide whether a table reports results, and read them.

    Args:
        table: the table as a grid.
        described: the sentences of the paper that refer to it; they may name the metric that its headers leave out.
        known: label (lower case) -> the header under which other tables of the paper list it, for columns whose own
            heading does not say what they are (see `known_labels`).
        text: the paper's prose, in which an abbreviated header (`WFC`) is written out.
    """
    layout = layout_of(table)
    if len(layout.values) < 2:
        return Refusal("empty", "its body holds no numbers that stand alone in a cell")
    refusal = _not_results(table, layout)
    if refusal is not None:
        return refusal
    roles = Roles(table, layout, described, known or {}, text)
    if roles.refusal is not None:
        return roles.refusal
    cells = [cell for value in layout.values if (cell := roles.read(value)) is not None]
    marks = {match["mark"] for match in _COPIED.finditer(f"{table.caption} {described}")}
    own = [cell for cell in cells if not any(value.rstrip().endswith(tuple(marks)) for _, value in cell.conditions)]
    if marks and len(own) < 2:
        return Refusal("copied", "its numbers are marked as taken from other work")
    if len(own) < 2:
        return Refusal("no_metric", "fewer than two of its numbers can be tied to a metric")
    metrics = tuple(dict.fromkeys(cell.metric for cell in own))
    return ResultTable(table, tuple(own), _axes(own), metrics, len(cells) - len(own))


def _labels(layout: Layout) -> list[str]:
    return list(dict.fromkeys(text for value in layout.values for _, text in value.labels if text))


def _not_results(table: Table, layout: Layout) -> Refusal | None:
    headers, labels = headers_of(layout), _labels(layout)
    metrics = [text for text in [*headers, *labels, *layout.label_heads] if is_metric_header(text)]
    names = [split_header(text)[0] for text in [*headers, *labels]]
    settings = [name for name in names if re.fullmatch(SETTING, name, re.IGNORECASE)]
    if _SETTINGS_CAPTION.search(table.caption) and not metrics:
        return Refusal("settings", "its caption says that it lists settings, not results")
    if len(settings) >= 3 and len(settings) > len(metrics) + 1:
        return Refusal("settings", f"most of its entries are settings ({', '.join(settings[:3])})")
    if _STATISTICS_CAPTION.search(table.caption) and not metrics and not find_metric(table.caption):
        return Refusal("statistics", "its caption says that it describes data or sizes, not results")
    counts = [
        h for h in headers if re.match(r"#|(?:number|num\.?|no\.) of\b|papers\b|training$|validation$|test$", h, re.I)
    ]
    named = bool(re.search(r"accurac|error|score|rate|loss|precision|recall", table.caption, re.IGNORECASE))
    if not metrics and counts and len(counts) * 2 >= len(headers) and not named:
        return Refusal("statistics", f"its columns are counts ({', '.join(counts[:3])})")
    return None


def known_labels(tables: Sequence[Table]) -> dict[str, str]:
    """What the row labels of a paper's tables are called: `rings` -> `Problem`, from tables with a header for them."""
    known: dict[str, str] = {}
    for table in tables:
        head, body = table.grid[: table.header_rows], table.grid[table.header_rows :]
        for column in range(min(table.stub_columns, len(table.grid[0]) if table.grid else 0)):
            name = split_header(" ".join(row[column] for row in head if row[column]))[0]
            if not name or INDEX_HEADER.match(name) or len(name) > 30:
                continue
            for row in body:
                if re.search(r"[A-Za-z]{2}", row[column]):
                    known.setdefault(label_words(row[column]), name)
    return known


def _axes(cells: Sequence[ResultCell]) -> tuple[Axis, ...]:
    values: dict[str, dict[str, None]] = {}
    for cell in cells:
        for name, value in cell.conditions:
            values.setdefault(name, {})[value] = None
    return tuple(Axis(name, tuple(found), axis_kind(name, tuple(found))) for name, found in values.items())
