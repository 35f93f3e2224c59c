"""Tables: which region of a page belongs to which caption, and its grid as a `Table` record.

A table is a frame of equally wide horizontal rules next to a caption; whether captions stand above or below is decided
by the majority in the document. Where a caption has no frame, rows that keep their columns are followed from it.
Non-goal: tables drawn as images without OCR.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from extractors._captions import FoundCaption
from extractors._grid import Grid, GridCell, build_grid
from extractors._layer import PageText, Word
from extractors._quantity import looks_numeric, parse_quantity
from extractors._rows import Chunk, Row, cluster_rows, split_chunks
from extractors._rules import Rule
from extractors._text import Vocabulary, squeeze
from pipeline.paper import Box, Cell, FloatKind, Table

__all__ = ["Frame", "TablePage", "find_frames", "read_tables"]

_REACH: Final = 45.0
"""Points between a caption and its frame; measured on 25 + 20 tables: at most 31."""
_NARROWEST: Final = 45.0


@dataclass(slots=True)
class TablePage:
    """What is needed of one page."""

    text: PageText
    rules: Sequence[Rule]
    captions: Sequence[FoundCaption]
    reader: str = "layer"
    """`layer` or `ocr`: tables from OCR are less certain."""


@dataclass(slots=True)
class Frame:
    """Equally wide rules with text between the first and the last."""

    rules: list[Rule]

    @property
    def box(self) -> Box:
        """From the first rule to the last."""
        return Box(self.rules[0].x0, self.rules[0].y, self.rules[0].x1, self.rules[-1].y)


def _rows_of(page: PageText) -> list[Row]:
    rows = cluster_rows(page.words())
    for row in rows:
        row.chunks = split_chunks(row.words, row.baseline, gap=1.2)
    return rows


def find_frames(page: TablePage, rows: Sequence[Row]) -> list[Frame]:
    """Runs of rules with equal ends, not interrupted by a caption or by three full lines of prose."""
    frames: list[Frame] = []
    for rule in page.rules:
        if rule.width < _NARROWEST:
            continue
        for frame in reversed(frames):
            first, last = frame.rules[0], frame.rules[-1]
            if abs(first.x0 - rule.x0) > 5 or abs(first.x1 - rule.x1) > 5 or rule.y <= last.y + 1:
                continue
            if not _interrupted(page, rows, last, rule):
                frame.rules.append(rule)
                break
        else:
            frames.append(Frame([rule]))
    return [
        frame for frame in frames
        if len(frame.rules) > 1 and any(
            frame.box.y0 < row.baseline < frame.box.y1 and any(
                frame.box.x0 - 4 < chunk.middle < frame.box.x1 + 4 for chunk in row.chunks)
            for row in rows)
    ]  # fmt: skip


def _interrupted(page: TablePage, rows: Sequence[Row], upper: Rule, lower: Rule) -> bool:
    for caption in page.captions:
        top = caption.lines[0].box.y0 + 5
        if upper.y - 2 < top < lower.y and caption.box.x0 < upper.x1 and caption.box.x1 > upper.x0:
            return True
    prose = 0
    for row in rows:
        if upper.y < row.baseline < lower.y:
            prose += sum(
                upper.x0 - 3 <= chunk.x0 and chunk.x1 <= upper.x1 + 3 and chunk.x1 - chunk.x0 > 0.93 * upper.width
                for chunk in row.chunks
            )
    return prose >= 3


def _gap(caption: FoundCaption, frame: Frame, *, below: bool) -> float | None:
    """Distance from the caption to a frame below (or above) it; None when they do not face each other."""
    box = frame.box
    overlap = min(box.x1, caption.box.x1) - max(box.x0, caption.box.x0)
    if overlap < 0.4 * min(box.x1 - box.x0, caption.box.x1 - caption.box.x0):
        return None
    gap = box.y0 - caption.box.y1 if below else caption.box.y0 - box.y1
    return gap if -6 < gap < _REACH else None


def _nearest(caption: FoundCaption, frames: Sequence[Frame], *, below: bool) -> Frame | None:
    gaps = [
        (gap, index) for index, frame in enumerate(frames) if (gap := _gap(caption, frame, below=below)) is not None
    ]
    return frames[min(gaps)[1]] if gaps else None


def read_tables(pages: Sequence[TablePage], vocabulary: Vocabulary) -> list[Table]:
    """The tables of a document in the order of their captions; boxes are in the upright frame of each page."""
    framed: list[tuple[TablePage, list[Row], list[Frame], list[FoundCaption]]] = []
    votes = {True: 0, False: 0}
    for page in pages:
        captions = [caption for caption in page.captions if caption.kind is FloatKind.TABLE]
        if not captions:
            continue
        rows = _rows_of(page.text)
        frames = find_frames(page, rows)
        framed.append((page, rows, frames, captions))
        for below in votes:
            facing = (_nearest(caption, frames, below=below) for caption in captions)
            votes[below] += len({id(frame) for frame in facing if frame is not None})
    order = (True, False) if votes[True] >= votes[False] else (False, True)
    tables: list[Table] = []
    for page, rows, frames, captions in framed:
        tables.extend(_read_page(page, rows, frames, captions, order, vocabulary))
    return tables


def _read_page(
    page: TablePage, rows: list[Row], frames: list[Frame], captions: list[FoundCaption],
    order: tuple[bool, bool], vocabulary: Vocabulary,
) -> list[Table]:  # fmt: skip
    free = list(frames)
    owned: dict[int, list[Frame]] = {}
    for below in order:
        for index, caption in enumerate(captions):
            frame = None if index in owned else _nearest(caption, free, below=below)
            if frame is not None:
                owned[index] = [frame]
                free.remove(frame)
    tables: list[Table] = []
    words = page.text.words()
    for index, caption in enumerate(captions):
        mine = owned.get(index, [])
        parts: list[Table] = []
        for frame in mine + [other for other in free if mine and _beside(caption, mine[0], other)]:
            if frame in free:
                free.remove(frame)
            frame = _grown(frame, rows, page)  # noqa: PLW2901
            box = frame.box
            partial = [
                rule for rule in page.rules
                if box.y0 < rule.y < box.y1 and rule.x0 > box.x0 - 3 and rule.x1 < box.x1 + 3
                and rule.width < 0.97 * (box.x1 - box.x0)
            ]  # fmt: skip
            underlines, inner = _split_underlines(partial, words)
            grid = build_grid(words, frame.rules, inner)
            if grid is not None:
                confidence = 0.95 if len(frame.rules) > 2 else 0.85
                parts.append(_record(page, caption, box, grid, underlines, vocabulary, confidence))
        tables += _stacked(parts)
        if not mine:
            table = _without_frame(page, rows, caption, order, vocabulary, frames)
            if table is not None:
                tables.append(table)
    return tables


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


def _grown(frame: Frame, rows: Sequence[Row], page: TablePage) -> Frame:
    """A frame with the header above its first rule and the rows under its last one, where those rules are missing.

    Physics journals set neither a top nor a bottom rule: then the first band holds values instead of headers.
    """
    box = frame.box
    taken = {id(word) for caption in page.captions for line in caption.lines for word in line.words}
    inside = [(row.baseline, chunks) for row in rows if (chunks := _cells_between(row, box.x0, box.x1, taken))]
    first = [chunks for baseline, chunks in inside if box.y0 < baseline < frame.rules[1].y]
    numeric = [sum(chunk.numeric for chunk in chunks) >= 0.5 * len(chunks) for chunks in first]
    rules = list(frame.rules)
    if len(first) >= 2 and sum(numeric) > 0.5 * len(numeric):
        edge = box.y0
        for baseline, chunks in reversed(inside):
            if baseline < edge and edge - baseline < 1.9 * chunks[0].size and len(chunks) >= 2:
                edge = baseline - chunks[0].size
        if edge < box.y0:
            rules.insert(0, Rule(box.x0, box.x1, edge))
    edge = box.y1
    for baseline, chunks in inside:
        values = sum(chunk.numeric for chunk in chunks)
        if baseline > edge and baseline - edge < 1.9 * chunks[0].size and values >= max(2, 0.5 * len(chunks)):
            edge = baseline + 0.4 * chunks[0].size
    return Frame([*rules, Rule(box.x0, box.x1, edge)] if edge > box.y1 else rules)


def _cells_between(row: Row, left: float, right: float, taken: set[int]) -> list[Chunk]:
    """Pieces of a row between two edges; none when the row goes on beyond them or belongs to a caption."""
    words = [word for word in row.words if left - 4 < word.middle < right + 4 and id(word) not in taken]
    return split_chunks(words, row.baseline)


def _beside(caption: FoundCaption, first: Frame, other: Frame) -> bool:
    """A sub-table at the same height under the same caption."""
    a, b = first.box, other.box
    if abs(a.y0 - b.y0) > 8 or not (b.x0 > a.x1 + 3 or b.x1 < a.x0 - 3):
        return False
    return b.x0 > caption.box.x0 - 30 and b.x1 < caption.box.x1 + 30


def _split_underlines(rules: Sequence[Rule], words: Sequence[Word]) -> tuple[list[Rule], list[Rule]]:
    """(underlines of cell values, rules of the table): an underline hugs a word and is as wide as it."""
    underlines: list[Rule] = []
    others: list[Rule] = []
    for rule in rules:
        hugged = [
            word for word in words
            if 0 < rule.y - word.baseline < 0.3 * word.size and min(rule.x1, word.x1) - max(rule.x0, word.x0) > 1
        ]  # fmt: skip
        wide = max((w.x1 for w in hugged), default=0) - min((w.x0 for w in hugged), default=0)
        (underlines if hugged and abs(wide - rule.width) < 3 else others).append(rule)
    return underlines, others


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
            if top < rule.y < bottom and rule.x0 > left - 12 and rule.x1 < right + 12 and rule.width > _NARROWEST / 2
        ]  # fmt: skip
        full = [rule for rule in inner if rule.width > 0.85 * (right - left)]
        edges = [Rule(left, right, top), *(Rule(left, right, rule.y) for rule in full), Rule(left, right, bottom)]
        words = page.text.words()
        underlines, partial = _split_underlines([rule for rule in inner if rule not in full], words)
        grid = build_grid(words, edges, partial)
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
    """Leading columns that are mostly words; at least one, and one column is left for values."""
    body = texts[header_rows:]
    width = len(texts[0]) if texts else 1
    stub = 0
    for column in range(width - 1):
        values = [row[column] for row in body if row[column]]
        if values and sum(looks_numeric(value) for value in values) > 0.34 * len(values):
            break
        stub += 1
    all_words = stub == width - 1 and not any(looks_numeric(row[-1]) for row in body)
    return 1 if all_words or stub == 0 else stub


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
