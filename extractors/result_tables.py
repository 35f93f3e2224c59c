"""What a table's parts mean: which header names a metric, which a condition - or why the table holds no result.

Refusals are values with a reason, because a reader wants to know why a table of the paper gave no task.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from extractors._conditions import label_words
from extractors._ownership import cited_in, is_own, uncited, without_citation
from extractors._paired import split_pairs
from extractors._refusals import not_results
from extractors._surroundings import Surroundings
from extractors._table_layout import layout_of, split_header
from extractors._table_roles import Axis, Metric, Refusal, ResultCell, Roles
from extractors._vocabulary import INDEX_HEADER
from pipeline.paper import Table

__all__ = [
    "Axis", "Metric", "Refusal", "ResultCell", "ResultTable", "Source", "axis_kind", "known_labels", "listed_labels",
    "read_result_table",
]  # fmt: skip


class ResultTable(NamedTuple):
    """A table that reports results."""

    table: Table
    cells: tuple[ResultCell, ...]
    axes: tuple[Axis, ...]
    metrics: tuple[Metric, ...]
    copied: int
    """Numbers left out because the paper took them from elsewhere."""
    copied_reason: str = ""
    others: frozenset[str] = frozenset()
    """Names in the rows that were left out: methods that other papers ran."""


_MARK: Final = r"[∗*†‡§♦♥♠♣⋆▲△◦]"
_COPIED: Final = re.compile(
    rf"(?P<mark>{_MARK})\s?[^.∗*†‡§♦♥♠♣⋆▲△◦]{{0,80}}\b(?:taken|reported|copied|quoted|numbers are|results are|"
    rf"borrowed|cited)\b"
    r"[^.]{0,30}\b(?:from|in|by)\b"
)
_METHOD_AXIS: Final = re.compile(
    r"method|model|approach|algorithm|estimator|classifier|system|variant|agent|baseline|optimi[sz]er|schema|learner|"
    r"strategy|policy|regressor|sampler|solver|kernel|encoder|architecture|network|implementation|technique|ablation|"
    r"component|scheme|objective|loss|backbone|mechanism|module",
    re.IGNORECASE,
)
_DATASET_AXIS: Final = re.compile(
    r"data|^split$|(?:training|test) sets?|corpus|domain|benchmark|environment|problem|function|graph|task|"
    r"language|scene|game",
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
    table: Table, near: Surroundings | None = None, source: Source | None = None
) -> ResultTable | Refusal:
    """Decide whether a table reports results, and read them.

    Args:
        table: the table as a grid.
        near: what the paper says around it; without it the table is read by itself.
        source: what the paper says about where the numbers of its baselines are from.
    """
    near = near or Surroundings()
    printed = table
    table, origin = split_pairs(printed)
    layout = layout_of(table)
    roles = Roles(table, layout, near) if len(layout.values) > 1 else None
    refusal = _EMPTY if roles is None else not_results(table, layout) or roles.refusal
    if roles is None or refusal is not None:
        return refusal or _EMPTY
    read = [cell for value in layout.values if (cell := roles.read(value)) is not None]
    read = [cell for cell in read if not any(_COMPUTED.fullmatch(value) for _, value in cell.conditions)] or read
    read = [cell for cell in read if not _TEST.fullmatch(cell.metric.name)] or read
    cells = _told_apart(read)
    columns = Counter((cell.row, cell.metric.name, frozenset(cell.conditions)) for cell in read)
    if 3 * len(cells) < 2 * len(read) or any(count > 1 for count in columns.values()):
        return Refusal("unclear", "many of its numbers cannot be told apart by their headers and labels")
    if len(cells) < 2:
        return Refusal("no_metric", "fewer than two of its numbers can be tied to a metric")
    own, reason = _of_the_authors(cells, table, near, source or Source())
    if len(own) < 2:
        return Refusal("copied", f"its numbers are other papers': {reason}")
    own = [
        cell._replace(
            conditions=tuple((n, re.sub(rf"\s?{_MARK}+$", "", without_citation(v))) for n, v in cell.conditions),
            column=origin[cell.column], text=printed.grid[cell.row][origin[cell.column]],
        )
        for cell in own
    ]  # fmt: skip
    metrics = tuple(dict.fromkeys(cell.metric for cell in own))
    kept = {value for cell in own for _, value in cell.conditions}
    others = frozenset(without_citation(value) for cell in cells for _, value in cell.conditions) - kept
    return ResultTable(printed, tuple(own), _axes(own), metrics, len(cells) - len(own), reason, others)


def _of_the_authors(
    cells: Sequence[ResultCell], table: Table, near: Surroundings, source: Source
) -> tuple[list[ResultCell], str]:
    """The cells that the authors measured: by marks, which tell row by row, else by what the text says of all rows."""
    marks = {match["mark"] for match in _COPIED.finditer(f"{table.caption} {near.described}")}
    marks |= {m["mark"] for m in _COPIED.finditer(near.text)} & set("♦♥♠♣▲△")  # no footnote signs: one meaning a paper
    unmarked = [
        cell for cell in cells if not any(value.rstrip().endswith(tuple(marks)) for _, value in cell.conditions)
    ]
    if len(unmarked) < len(cells):
        return unmarked, _MARKED
    return _measured_here(cells, near, source)


def _told_apart(cells: Sequence[ResultCell]) -> list[ResultCell]:
    """The cells that no other one contradicts: the same metric under the same conditions has one value."""
    seen = Counter((cell.metric.name, frozenset(cell.conditions)) for cell in cells)
    return [cell for cell in cells if seen[cell.metric.name, frozenset(cell.conditions)] == 1]


class Source(NamedTuple):
    """What the paper says about where the numbers of other methods are from; empty where it says nothing."""

    copied: str = ""
    """The sentence by which they are other papers' numbers."""
    reran: str = ""
    """The sentence by which the authors ran them."""


def _are_published(cells: Sequence[ResultCell], mine: Sequence[ResultCell], text: str) -> bool:
    """Are the rows beside the authors' own set against them (`(ours)`), or methods that the paper cites?

    Variants of an ablation are neither.
    """
    if any(is_own(value, frozenset()) for cell in mine for _, value in cell.conditions):
        return True
    kept = {value for cell in mine for _, value in cell.conditions}
    others = {value for cell in cells if cell not in mine for _, value in cell.conditions if value not in kept}
    named = {value for value in others if re.search(r"[^\W\d_]{2}|[A-Z]", value)}
    return 2 * sum(not uncited(value) or cited_in(text, value) for value in named) >= len(named)


_PUBLISHED: Final = re.compile(
    r"leader ?board|published|previous|prior (?:work|art)|existing|state[- ]of[- ]the[- ]art|\bsota\b|reported|"
    r"literature",
    re.IGNORECASE,
)
_COMPUTED: Final = re.compile(
    r"(?:(?:overall|macro|micro|weighted|grand|total)[- ])?(?:avg|ave|average|mean)\.?\s?[↑↓%()]*|[∆Δ].{0,12}|"
    r"diff(?:\.|erences?)?|(?:rel(?:\.|ative) |abs(?:\.|olute) )?(?:improvements?|gains?|changes?)(?:\s?\(%\))?",
    re.IGNORECASE,
)
"""A row or column computed from the others, no data set or method of its own."""
_TEST: Final = re.compile(
    r"(?:(?:adj(?:\.|usted)?|BH|FDR|raw|corrected|holm)[- ])?[pq](?:[- ]?val(?:\.|ues?)?)?|"
    r"(?:\d\d\s?%\s?)?(?:CI|confidence intervals?)\b.*",
    re.IGNORECASE,
)
"""A test of the numbers beside it: what is compared is those numbers, not how sure one is of them."""
_EMPTY: Final = Refusal("empty", "its body holds no numbers that stand alone in a cell")
_MARKED: Final = "marked as taken from other work"


def _measured_here(cells: Sequence[ResultCell], near: Surroundings, source: Source) -> tuple[list[ResultCell], str]:
    """The cells that the authors measured, and why the others are left out.

    Only where a row is known to be the authors' own can the others be known not to be.
    """
    mine = [cell for cell in cells if any(is_own(value, near.own) for _, value in cell.conditions)]
    if not mine or len(mine) == len(cells):
        return list(cells), ""
    cells_here = [cell for cell in cells if not any(n == "group" and _PUBLISHED.search(v) for n, v in cell.conditions)]
    if len(cells_here) < len(cells) and not source.reran:
        return cells_here, "rows under a heading that calls them published or leading systems"
    if source.copied and _are_published(cells, mine, near.text):
        return mine, f"“{source.copied}”"
    plain = [cell for cell in cells if all(uncited(value) for _, value in cell.conditions) or cell in mine]
    if len(plain) < len(cells) and not source.reran:
        return plain, "rows that cite another paper, which the text does not say were run again"
    return list(cells), ""


def known_labels(tables: Sequence[Table]) -> dict[str, str]:
    """What the row labels of a paper's tables are called: `rings` -> `Problem`, from tables with a header for them."""
    return {label_words(label): name for label, name in reversed(listed_labels(tables).items())}


def listed_labels(tables: Sequence[Table]) -> dict[str, str]:
    """Row labels as printed -> the header over them, of all tables; the first table that lists a label counts."""
    known: dict[str, str] = {}
    for table in tables:
        head, body = table.grid[: table.header_rows], table.grid[table.header_rows :]
        for column in range(min(table.stub_columns, len(table.grid[0]) if table.grid else 0)):
            name = split_header(" ".join(row[column] for row in head if row[column]))[0]
            if not name or INDEX_HEADER.match(name) or len(name) > 30:
                continue
            for row in body:
                if re.search(r"[A-Za-z]{2}", row[column]):
                    known.setdefault(row[column].strip(), name)
    return known


def _axes(cells: Sequence[ResultCell]) -> tuple[Axis, ...]:
    values: dict[str, dict[str, None]] = {}
    for cell in cells:
        for name, value in cell.conditions:
            values.setdefault(name, {})[value] = None
    return tuple(Axis(name, tuple(found), axis_kind(name, tuple(found))) for name, found in values.items())
