"""Tables: which region of a page belongs to which caption, and its grid as a `Table` record.

A table is a frame of equally wide horizontal rules next to a caption; whether captions stand above or below is decided
by the majority in the document. Where a caption has no frame, rows that keep their columns are followed from it.
Non-goal: tables drawn as images without OCR.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from extractors._captions import FoundCaption
from extractors._continued import fits_on, join_labelled, join_parts
from extractors._frames import (
    NARROWEST,
    REACH,
    Frame,
    TablePage,
    find_frames,
    grown,
    inner_rules,
    is_beside,
    nearest_frame,
    rows_of,
    split_underlines,
)  # fmt: skip
from extractors._grid import Grid, GridCell, build_grid
from extractors._layer import PageText, Word
from extractors._quantity import looks_numeric, parse_quantity
from extractors._rows import Chunk, Row, split_chunks
from extractors._rules import Rule
from extractors._sideways import add_sideways
from extractors._text import Vocabulary, squeeze
from pipeline.paper import Box, Cell, FloatKind, Table

__all__ = ["Frame", "TablePage", "find_frames", "read_tables"]


def read_tables(pages: Sequence[TablePage], vocabulary: Vocabulary) -> list[Table]:
    """The tables of a document in the order of their captions; boxes are in the upright frame of each page."""
    framed: list[tuple[TablePage, list[Row], list[Frame], list[FoundCaption]]] = []
    votes = {True: 0, False: 0}
    for page in pages:
        captions = [caption for caption in page.captions if caption.kind is FloatKind.TABLE]
        if not captions:
            continue
        rows = rows_of(page.text)
        frames = find_frames(page, rows)
        framed.append((page, rows, frames, captions))
        for below in votes:
            facing = (nearest_frame(caption, frames, below=below) for caption in captions)
            votes[below] += len({id(frame) for frame in facing if frame is not None})
    order = (True, False) if votes[True] >= votes[False] else (False, True)
    tables: list[Table] = []
    for page, rows, frames, captions in framed:
        tables.extend(_read_page(page, rows, frames, captions, order, vocabulary))
    continued = {
        (caption.label, caption.page): caption.says_continued for page in pages for caption in page.captions
    }  # fmt: skip
    tables = join_labelled(tables, continued)
    return [_with_next_page(table, tables, pages, vocabulary) for table in tables]


def _with_next_page(table: Table, tables: Sequence[Table], pages: Sequence[TablePage], vocabulary: Vocabulary) -> Table:
    """A table that fills its page, with the frame without a caption that stands first on the next one."""
    while True:
        number = table.continued[-1][0] if table.continued else table.page
        box = table.continued[-1][1] if table.continued else table.box
        here, after = (next((page for page in pages if page.text.number == n), None) for n in (number, number + 1))
        if here is None or after is None or _text_below(here, box):
            return table
        part = _first_frame(after, table, tables, vocabulary)
        if part is None or not fits_on(table, part):
            return table
        table = join_parts(table, part)


def _text_below(page: TablePage, box: Box) -> bool:
    """Does running text or another float stand under the table? Notes in small print may."""
    small = max((word.size for word in page.text.words() if box.y0 < word.baseline < box.y1), default=10.0)
    return any(
        line.baseline > box.y1 + 4 and line.box.x0 < box.x1 and line.box.x1 > box.x0 and line.size > small - 0.6
        and len(line.text) > 3 for line in page.text.lines
    )  # fmt: skip


def _first_frame(page: TablePage, table: Table, tables: Sequence[Table], vocabulary: Vocabulary) -> Table | None:
    frames = find_frames(page, rows_of(page.text))
    if not frames:
        return None
    frame = min(frames, key=lambda frame: frame.box.y0)
    taken = any(
        other.page == page.text.number and other.box.y0 < frame.box.y1 and other.box.y1 > frame.box.y0
        for other in tables
    )  # fmt: skip
    above = any(line.baseline < frame.box.y0 - 2 and len(line.text) > 3 for line in page.text.lines)
    captioned = any(
        abs(frame.box.y0 - caption.box.y1) < REACH or abs(caption.box.y0 - frame.box.y1) < REACH
        for caption in page.captions
    )  # fmt: skip
    if taken or above or captioned:
        return None
    words = page.text.words()
    underlines, inner = split_underlines(inner_rules(page, frame.box), words)
    grid = _grid_of(page, words, frame.rules, inner)
    if grid is None:
        return None
    caption = FoundCaption(table.label, FloatKind.TABLE, page.text.number, [page.text.lines[0]], frame.box, True)
    return _record(page, caption, frame.box, grid, underlines, vocabulary, 0.8).evolve(caption=table.caption)


def _read_page(
    page: TablePage, rows: list[Row], frames: list[Frame], captions: list[FoundCaption],
    order: tuple[bool, bool], vocabulary: Vocabulary,
) -> list[Table]:  # fmt: skip
    free = list(frames)
    owned: dict[int, list[Frame]] = {}
    for below in order:
        for index, caption in enumerate(captions):
            frame = None if index in owned else nearest_frame(caption, free, below=below)
            if frame is not None:
                owned[index] = [frame]
                free.remove(frame)
    tables: list[Table] = []
    known = {id(word) for caption in captions for line in caption.lines for word in line.words}
    words = [word for word in page.text.words() if id(word) not in known]  # a rule may cut off a caption's last line
    for index, caption in enumerate(captions):
        mine = owned.get(index, [])
        parts: list[Table] = []
        for frame in mine + [other for other in free if mine and is_beside(caption, mine[0], other)]:
            if frame in free:
                free.remove(frame)
            frame = grown(frame, rows, page, caption)  # noqa: PLW2901
            box = frame.box
            underlines, inner = split_underlines(inner_rules(page, box), words)
            grid = _grid_of(page, words, frame.rules, inner)
            if grid is not None:
                confidence = 0.95 if len(frame.rules) > 2 else 0.85
                parts.append(_record(page, caption, box, grid, underlines, vocabulary, confidence))
        tables += _stacked(parts)
        if not mine:
            table = _without_frame(page, rows, caption, order, vocabulary, frames)
            if table is not None:
                tables.append(table)
    return tables


def _grid_of(page: TablePage, words: Sequence[Word], full: Sequence[Rule], partial: Sequence[Rule]) -> Grid | None:
    """The grid between rules (see `build_grid`), labels that stand sideways in it included."""
    grid = build_grid(words, full, partial)
    if grid is not None and page.text.vertical:
        add_sideways(grid, page.text.vertical, Box(full[0].x0, full[0].y, full[0].x1, full[-1].y))
    return grid


def _stacked(parts: list[Table]) -> list[Table]:
    """Parts side by side under one caption as one table, the right one under the left one.

    One caption is one table: two of the same label would be told apart by nobody. Only parts of equal width are joined;
    the head of the further part stays as a row, since it may name what its rows are about.
    """
    if len(parts) < 2 or len({len(part.grid[0]) for part in parts if part.grid}) != 1:
        return parts
    first = parts[0]
    grid, cells, box = list(first.grid), list(first.cells), first.box
    for part in parts[1:]:
        cells += [cell.evolve(row=cell.row + len(grid)) for cell in part.cells]
        grid += part.grid
        box = box.union(part.box)
    return [
        first.evolve(
            grid=tuple(grid), cells=tuple(cells), box=box, confidence=min(part.confidence for part in parts),
            stub_columns=max(part.stub_columns for part in parts),
        )
    ]  # fmt: skip


# --- tables without a frame


def _without_frame(
    page: TablePage, rows: list[Row], caption: FoundCaption, order: tuple[bool, bool], vocabulary: Vocabulary,
    frames: Sequence[Frame],
) -> Table | None:  # fmt: skip
    """Follow aligned rows from the caption; physics journals set tables with a rule under the header or none."""
    for below in order:
        region = _aligned_region(page, rows, caption, below=below, frames=frames)
        if region is None:
            continue
        top, bottom, left, right = region
        inner = [
            rule for rule in page.rules
            if top < rule.y < bottom and rule.x0 > left - 12 and rule.x1 < right + 12 and rule.width > NARROWEST / 2
        ]  # fmt: skip
        full = [rule for rule in inner if rule.width > 0.85 * (right - left)]
        edges = [Rule(left, right, top), *(Rule(left, right, rule.y) for rule in full), Rule(left, right, bottom)]
        words = page.text.words()
        underlines, partial = split_underlines([rule for rule in inner if rule not in full], words)
        grid = _grid_of(page, words, edges, partial)
        if grid is None or grid.columns < 2 or grid.rows < 2:
            continue
        confidence = 0.7 if full else 0.5
        return _record(page, caption, Box(left, top, right, bottom), grid, underlines, vocabulary, confidence)
    return None


def _aligned_region(
    page: TablePage, rows: list[Row], caption: FoundCaption, *, below: bool, frames: Sequence[Frame]
) -> tuple[float, float, float, float] | None:
    """(top, bottom, left, right) of the run of rows next to the caption that are no prose."""
    left, right = _column_of(page.text, caption)
    own = {id(word) for other in page.captions for line in other.lines for word in line.words}
    start = caption.box.y1 if below else caption.box.y0
    last, multi = start, 0
    taken: list[Chunk] = []
    ordered = rows if below else list(reversed(rows))
    for row in ordered:
        inside = [
            chunk for chunk in row.chunks
            if chunk.x0 > left - 6 and chunk.x1 < right + 6 and id(chunk.words[0]) not in own
        ]  # fmt: skip
        if not inside or (row.baseline <= start if below else row.baseline >= start):
            if inside or not any(id(word) in own for word in row.words) or abs(row.baseline - start) < 2:
                continue
            if (row.baseline > start) == below:
                break
            continue
        size = max(chunk.size for chunk in inside)
        near = 3.2 if not taken else 2.3
        if abs(row.baseline - last) > near * size + (12 if not taken else 0):
            break
        if any(frame.box.y0 < row.baseline < frame.box.y1 for frame in frames):
            break
        cells = split_chunks([word for chunk in inside for word in chunk.words], row.baseline)
        prose = len(inside) == 1 and inside[0].x1 - inside[0].x0 > 0.7 * (right - left)
        if prose and len(cells) < 3:
            break
        multi += len(cells) >= 2
        last = row.baseline
        taken.extend(inside)
    if multi < 3 or multi < 0.5 * len({round(chunk.baseline) for chunk in taken}):
        return None
    boxes = [chunk.box for chunk in taken]
    return (
        min(chunk.baseline - chunk.size for chunk in taken), max(chunk.baseline for chunk in taken) + 3,
        min(box.x0 for box in boxes) - 1, max(box.x1 for box in boxes) + 1,
    )  # fmt: skip


def _column_of(page: PageText, caption: FoundCaption) -> tuple[float, float]:
    """The horizontal range in which the caption's float can lie."""
    lines = [line for line in page.lines if line.width > 40] or page.lines
    left, right = min(line.x0 for line in lines), max(line.x1 for line in lines)
    middle = (left + right) / 2
    if page.columns < 2 or (caption.box.x0 < middle - 20 and caption.box.x1 > middle + 20):
        return left, right
    return (left, middle) if caption.box.x1 < middle + 20 else (middle, right)


# --- the record


def _record(
    page: TablePage, caption: FoundCaption, box: Box, grid: Grid, underlines: Sequence[Rule],
    vocabulary: Vocabulary, confidence: float,
) -> Table:  # fmt: skip
    texts = grid.texts()
    stub = _stub_columns(texts, grid.header_rows)
    _fill_outer_stub(grid, texts, stub)
    if page.reader == "ocr":
        confidence -= 0.3
    return Table(
        label=caption.label,
        caption=caption.text(vocabulary),
        page=page.text.number,
        box=box,
        grid=tuple(tuple(squeeze(text) for text in row) for row in texts),
        header_rows=grid.header_rows,
        stub_columns=stub,
        cells=tuple(_cell(cell, underlines) for cell in grid.cells),
        confidence=round(confidence, 2),
    )


def _stub_columns(texts: list[list[str]], header_rows: int) -> int:
    """Leading columns that are mostly words; at least one where there is anything to tell apart, and one is left."""
    body = texts[header_rows:]
    width = len(texts[0]) if texts else 1
    if _is_one_row_of_values(body):
        return 0
    stub = 0
    for column in range(width - 1):
        values = [row[column] for row in body if any(map(str.isalnum, row[column]))]  # a dash says nothing
        if values and sum(looks_numeric(value) for value in values) > 0.34 * len(values):
            break
        stub += 1
    all_words = stub == width - 1 and not any(looks_numeric(row[-1]) for row in body)
    return 1 if all_words or stub == 0 else stub


def _is_one_row_of_values(body: list[list[str]]) -> bool:
    """A single row needs no name; where its first number is as precise as those beside it, that is a value too."""
    if len(body) != 1 or len(body[0]) < 3:
        return False
    precision = {len(text.partition(".")[2]) if looks_numeric(text) and "." in text else 0 for text in body[0]}
    return len(precision) == 1 and precision != {0}


def _fill_outer_stub(grid: Grid, texts: list[list[str]], stub: int) -> None:
    """An outer row label holds for the rows below it up to the next one, when an inner label stands beside them."""
    taken = {(cell.row + i, cell.column) for cell in grid.cells for i in range(cell.row_span)}
    for cell in grid.cells:
        if cell.column >= stub - 1 or cell.row < grid.header_rows or cell.column_span > 1:
            continue
        row = cell.row + cell.row_span
        while row < grid.rows and (row, cell.column) not in taken and texts[row][cell.column + 1]:
            cell.row_span += 1
            row += 1


def _cell(cell: GridCell, underlines: Sequence[Rule]) -> Cell:
    words = [word for chunk in cell.chunks for word in chunk.words]
    letters = sum(len(word.text) for word in words)
    box = words[0].box
    for word in words[1:]:
        box = box.union(word.box)
    text = squeeze(cell.text)
    underlined = any(
        rule.y - 0.3 * words[0].size < max(word.baseline for word in words) < rule.y
        and min(rule.x1, box.x1) - max(rule.x0, box.x0) > 0.5 * (box.x1 - box.x0)
        for rule in underlines
    )
    return Cell(
        row=cell.row, column=cell.column, row_span=cell.row_span, column_span=cell.column_span, text=text, box=box,
        bold=sum(len(word.text) for word in words if word.bold) > 0.6 * letters,
        underlined=underlined,
        quantity=None if re.search(r"[A-Za-z]{4}", text) else parse_quantity(text),
    )  # fmt: skip
