"""A table's grid seen as header parts, row labels and numbers, whatever its shape.

Resolves spans, group rows (`GPT2 baselines` across the table), headers that change half-way down and tables that repeat
their columns side by side to save height. What the parts *mean* is decided in `extractors.result_tables`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from extractors._vocabulary import is_metric_header
from extractors.claims import normalize, parse_cell
from pipeline.paper import Quantity, Table

__all__ = ["Layout", "ValueCell", "headers_of", "label_at", "layout_of", "split_header"]


class ValueCell(NamedTuple):
    """A body cell that holds one number."""

    row: int
    column: int
    text: str
    quantity: Quantity
    bold: bool
    heads: tuple[tuple[int, str], ...]
    """(header row, text) above it, outermost first; rows below the header block for headers that change half-way."""
    labels: tuple[tuple[str, str], ...]
    """(header of the label column, text) left of it; the header is empty where there is none."""


class Layout(NamedTuple):
    """Label columns and numeric cells of a table."""

    stub: tuple[int, ...]
    values: tuple[ValueCell, ...]
    body_rows: int
    label_heads: tuple[str, ...]


_UNIT_IN_BRACKETS: Final = re.compile(
    r"[\[(]\s*(?P<unit>%|percent|(?:×\s?)?10[−-]\d+\s?\w*|[µμnmk]?s|secs?|seconds|min(?:utes)?|h(?:ours)?|[kMGT]i?B|dB|"
    r"bits?(?:/\w+)?|[kMG]?(?:eV|Hz|W)|[µμnm]?[AVWm](?:/[\w°µε]+)?|nA/\S+|points?|nats|/|×|x|FPS|°C)\s*[\])]"
)


def split_header(text: str) -> tuple[str, str | None]:
    """A header's name without arrows, footnote marks and remarks, and the unit it gives in brackets."""
    unit = _UNIT_IN_BRACKETS.search(text)
    bare = _UNIT_IN_BRACKETS.sub(" ", text)
    bare = re.sub(
        r"[(\[][^()\[\]]*(?:mean|std|sd\b|±|avg|average|higher|lower|↑|↓|better)[^()\[\]]*[)\]]", " ", bare, flags=re.I
    )
    bare = re.sub(r"[↑↓▲▼†‡§∗]|\(\s*\)|\[\s*\]|\*+$|±\s*\w*", " ", bare)
    bare = re.sub(r"(?<=[a-z])- (?=[A-Z])", "-", normalize(bare)).strip(" :,")
    found = None if unit is None or unit["unit"] == "/" else unit["unit"]
    if found is None and re.search(r"%", bare):
        found, bare = "%", normalize(bare.replace("%", " "))
    return bare, found


def _covering(table: Table) -> dict[tuple[int, int], tuple[int, int, str, bool]]:
    """Position -> (row, column, text, bold) of the cell that covers it, spans included."""
    covered: dict[tuple[int, int], tuple[int, int, str, bool]] = {}
    for cell in sorted(table.cells, key=lambda cell: (cell.row, cell.column)):
        parts = _side_by_side(cell.text, cell.column_span) if cell.row < table.header_rows else None
        for row in range(cell.row, cell.row + cell.row_span):
            for column in range(cell.column, cell.column + cell.column_span):
                if parts is not None:
                    covered[row, column] = (row, column, parts[column - cell.column], cell.bold)
                    continue
                covered.setdefault((row, column), (cell.row, cell.column, cell.text, cell.bold))
    _spread_evenly(table, covered)
    for row, texts in enumerate(table.grid):
        for column, text in enumerate(texts):
            if (text and not (row < table.header_rows and (row, column) in covered)) or (row, column) not in covered:
                covered[row, column] = (row, column, text, covered.get((row, column), (0, 0, "", False))[3])
    return covered


def _side_by_side(text: str, columns: int) -> list[str] | None:
    """`clean other clean other` over four columns is four headers: words that repeat in step are never one phrase."""
    words = text.split()
    if columns < 4 or len(words) != columns:
        return None
    repeats = any(
        columns % size == 0 and words == words[:size] * (columns // size) for size in range(2, columns // 2 + 1)
    )
    return words if repeats else None


def _spread_evenly(table: Table, covered: dict[tuple[int, int], tuple[int, int, str, bool]]) -> None:
    """Headers that stand at equal steps under a spanner, with nothing between them, reach over the steps.

    `dev` and `test` at the first and the third of four columns under `WER`: a column that one of them left out would
    have the same headers as its neighbour.
    """
    for spanner in table.cells:
        width = spanner.column_span
        if width < 4 or spanner.row >= table.header_rows:
            continue
        columns = range(spanner.column, spanner.column + width)
        for row in range(spanner.row + spanner.row_span, table.header_rows):
            texts = {c: covered[row, c] for c in columns if (row, c) in covered and covered[row, c][2]}
            step = width // len(texts) if texts else 0
            if len(texts) < 2 or step < 2 or list(texts) != list(columns[::step]) or step * len(texts) != width:
                continue
            for column in columns:
                covered[row, column] = texts[columns[(column - spanner.column) // step * step]]


def _is_number(text: str) -> bool:
    return parse_cell(text) is not None


def _header_rows(table: Table) -> int:
    """Header rows, with rows of words that follow them directly: a second header line that was taken for the body."""
    rows = table.header_rows
    while 0 < rows < len(table.grid) - 1:
        texts = [text for text in table.grid[rows][1:] if text.strip()]
        if len(texts) < 2 or any(_is_number(text) or not re.search(r"[A-Za-z]", text) for text in texts):
            break
        few = len(texts) * 2 < len(table.grid[rows]) and not all(":" in text for text in texts)
        if few and not _completes_the_header(table, rows):
            break
        rows += 1
    return rows


def _completes_the_header(table: Table, row: int) -> bool:
    """Does a row name two label columns that the header so far leaves under one spanner (`Trainable | Pre-trained`)?"""
    above, own = table.grid[row - 1], table.grid[row]
    return table.stub_columns >= 2 and bool(own[0] and own[1]) and not (above[0] or above[1])


def _stub_columns(table: Table, columns: int) -> tuple[int, ...]:
    """Label columns: the table's own, columns of words that lead, and columns of settings that stand before those."""
    body = table.grid[table.header_rows :]
    stub = min(table.stub_columns, columns - 1) if columns > 1 else 0
    for column in range(stub, columns - 1):
        texts = [row[column] for row in body if column < len(row) and row[column].strip(" -–—")]
        heads = [row[column] for row in table.grid[: table.header_rows] if column < len(row) and row[column]]
        if not texts or any(is_metric_header(head) for head in heads):
            break
        if sum(_is_number(text) for text in texts) * 2 < len(texts):
            stub = column + 1
        elif any("." in text for text in texts):
            break
    return tuple(range(stub))


def _heads(
    covered: dict[tuple[int, int], tuple[int, int, str, bool]], rows: int, column: int, values_from: int, fill: bool
) -> list[tuple[int, str]]:
    """Header texts above a column, outermost first.

    With `fill` the table does not say what its spanners span, so that the nearest text to the left reaches over an
    empty header cell; never where it does say, because a lost header would become a wrong one.
    """
    heads: list[tuple[int, str]] = []
    seen: set[tuple[int, int]] = set()
    for row in range(rows):
        origin_row, origin_column, text, _ = covered.get((row, column), (row, column, "", False))
        if fill and not text and row < rows - 1:
            for left in range(column - 1, values_from - 1, -1):
                origin_row, origin_column, text, _ = covered.get((row, left), (row, left, "", False))
                if text:
                    below = [covered.get((lower, column), (0, 0, "", False))[2] for lower in range(row + 1, rows)]
                    text = text if any(below) else ""
                    break
        if text and (origin_row, origin_column) not in seen:
            seen.add((origin_row, origin_column))
            heads.append((row, normalize(text)))
    return heads


def _fold_period(heads: list[str]) -> int:
    """The number of columns after which the header row repeats itself word for word; 0 when it does not."""
    for period in range(2, len(heads) // 2 + 1):
        if len(heads) % period == 0 and all(heads) and heads == heads[:period] * (len(heads) // period):
            return period
    return 0


def layout_of(table: Table) -> Layout:
    """Resolve a table's spans, groups and folds into numeric cells with all that stands above and beside them."""
    columns = max((len(row) for row in table.grid), default=0)
    table = table.model_copy(update={"header_rows": _header_rows(table)})
    covered = _covering(table)
    head_line = [
        normalize(covered.get((max(table.header_rows - 1, 0), c), (0, 0, "", False))[2]) for c in range(columns)
    ]
    period = _fold_period(head_line) if table.header_rows == 1 else 0
    if period and not re.search(r"\d", head_line[0]) and _has_words(table, period):
        stub = tuple(range(period - 1))
        blocks = [range(start, start + period) for start in range(0, columns, period)]
    else:
        stub = _stub_columns(table, columns)
        blocks = [range(columns)]
    marks = _mark_columns(table, stub)
    label_heads = tuple(
        " ".join(
            [text for _, text in _heads(covered, table.header_rows, column, column, False)][
                -1 if column in marks else 0 :
            ]
        )
        for column in stub
    )
    values: list[ValueCell] = []
    for block in blocks:
        values += _block_values(table, covered, block, len(stub), label_heads)
    values = [_with_components(value, label_heads, marks, stub) for value in values] if marks else values
    values.sort(key=lambda cell: (cell.row, cell.column))
    return Layout(stub, tuple(values), len(table.grid) - table.header_rows, label_heads)


_YES: Final = re.compile(r"[✓✔√☑●•]+|yes|y", re.IGNORECASE)
_NO: Final = re.compile(r"[✗✘×✕☐○xX–—-]*|no|n", re.IGNORECASE)


def _mark_columns(table: Table, stub: Sequence[int]) -> frozenset[int]:
    """Label columns in which ticks stand: each names a component that a row has or has not."""
    body = table.grid[table.header_rows :]
    found = set()
    for column in stub:
        texts = [row[column].strip() for row in body if column < len(row)]
        ticked = any(re.fullmatch(r"[✓✔√☑●]+", text) for text in texts)
        if ticked and all(_YES.fullmatch(text) or _NO.fullmatch(text) for text in texts):
            found.add(column)
    return frozenset(found)


def _with_components(value: ValueCell, heads: Sequence[str], marks: frozenset[int], stub: Sequence[int]) -> ValueCell:
    """Ticks as words; where no other column names the row, the ticked components together are its name."""
    group = [label for label in value.labels if label[0] == "group"]
    labels = [label for label in value.labels if label[0] != "group"]
    have = [heads[column] for column in stub if column in marks and _YES.fullmatch(labels[column][1])]
    named = [labels[column] for column in stub if column not in marks]
    if named:
        told = [
            (name, text if i not in marks else "yes" if name in have else "no") for i, (name, text) in enumerate(labels)
        ]
    else:
        told = [("components", " + ".join(have) or "none")]
    return value._replace(labels=(*group, *told))


def _has_words(table: Table, period: int) -> bool:
    """Do the repeated columns hold labels again (and not the same metrics for another data set)?"""
    texts = [row[period] for row in table.grid[table.header_rows :] if period < len(row) and row[period]]
    return bool(texts) and not any(_is_number(text) for text in texts)


def _block_values(
    table: Table,
    covered: dict[tuple[int, int], tuple[int, int, str, bool]],
    block: range,
    stub: int,
    label_heads: tuple[str, ...],
) -> list[ValueCell]:
    label_columns, value_columns = list(block)[:stub], list(block)[stub:]
    over: dict[int, tuple[int, str]] = {}  # headers that change half-way down
    marks = _mark_columns(table, label_columns)
    group, panel = "", ""
    values: list[ValueCell] = []
    first_value = value_columns[0] if value_columns else 0
    heads = {
        column: _heads(covered, table.header_rows, column, first_value, not table.cells) for column in value_columns
    }
    last: dict[int, str] = {}
    for row in range(table.header_rows, len(table.grid)):
        texts = {column: normalize(covered.get((row, column), (0, 0, "", False))[2]) for column in block}
        if _repeats_header(table, row, value_columns):
            panel, group, over, last = group or panel, "", {}, {}
            continue
        for column in label_columns:
            if column in marks:  # an empty cell beside ticks says no; it does not repeat the tick above it
                texts[column] = last[column] = normalize(table.grid[row][column])
            if texts[column]:
                last.update({later: "" for later in label_columns if later > column})
                last[column] = texts[column]
        numbers = {
            c: q for c in value_columns if (q := parse_cell(table.grid[row][c] if c < len(table.grid[row]) else ""))
        }
        if not numbers:
            words = [c for c in value_columns if re.search(r"[A-Za-z]{2}", texts[c])]
            if (words and len(words) * 3 >= len(value_columns)) or (words and all(":" in texts[c] for c in words)):
                current = ""
                for column in value_columns:
                    current = texts[column] or current
                    if current:
                        over[column] = (row, current)
                group = ""
            elif label_columns and re.search(r"[A-Za-z]{2}", texts[label_columns[0]]) and not words:
                group = texts[label_columns[0]]
            continue
        labels = tuple(
            (label_heads[i], _FOOT.sub("", texts[c] or last.get(c, ""))) for i, c in enumerate(label_columns)
        )
        labels = (("group", group), *labels) if group else labels
        for column, quantity in numbers.items():
            path = [
                h for h in heads[column] if column not in over or h[0] < table.header_rows - 1 or table.header_rows == 1
            ]
            path += [over[column]] if column in over else []
            path = _in_panel(path, panel, value_columns, heads)
            bold = covered.get((row, column), (0, 0, "", False))[3]
            values.append(ValueCell(row, column, table.grid[row][column], quantity, bold, tuple(path), labels))
    return values


def _repeats_header(table: Table, row: int, columns: Sequence[int]) -> bool:
    """Is a body row the header once more, as in tables stacked on each other under one caption?"""
    own = [normalize(table.grid[row][c]) for c in columns if c < len(table.grid[row])]
    if len([text for text in own if text]) < 2:
        return False
    return any(
        own == [normalize(text) for c, text in enumerate(table.grid[r]) if c in columns]
        for r in range(table.header_rows)
    )


def _in_panel(
    path: list[tuple[int, str]], panel: str, columns: Sequence[int], heads: dict[int, list[tuple[int, str]]]
) -> list[tuple[int, str]]:
    """The headers of a cell below a repeated header: the name of its part stands for the first part's spanner."""
    if not panel:
        return path
    spanners = set.intersection(*(set(heads[column]) for column in columns)) if columns else set()
    top = min((row for row, _ in spanners), default=-1)
    return [(top, panel), *(head for head in path if head not in spanners or head[0] != top)]


_FOOT: Final = re.compile(r"\s[a-d]$|[†‡§]+$")


def headers_of(layout: Layout) -> list[str]:
    """The header texts above a table's values, each once, in their order."""
    return list(dict.fromkeys(text for value in layout.values for _, text in value.heads))


def label_at(value: ValueCell, index: int) -> str:
    """The text of one label column for a cell; group rows do not count."""
    labels = [text for name, text in value.labels if name != "group"]
    return labels[index] if index < len(labels) else ""
