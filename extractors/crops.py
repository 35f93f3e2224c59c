"""Pictures of tables as a reader would cut them out: upright, and a table across pages as one picture.

The parts of a table that goes on on further pages stand one beneath another, their left edges in line, so that each
column stays under its header; a header that the further part repeats is left out. Where the whole would be too tall to
be legible it becomes several pictures, each under the header again. Non-goal: what the pictures show
(`extractors.engine.pictures`).
"""

from __future__ import annotations

import io
import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from PIL import Image

from extractors._continued import cells_on
from extractors.pdf import open_pdf, render_crop
from pipeline.paper import Box, Cell, Document, Figure, Table

__all__ = ["figure_picture", "table_pictures"]

_DPI: Final = 150
"""A column of a table is then about 500 pixels wide: small print stays legible, one picture is some 100 kB."""
_MARGIN: Final = 4.0
_TALLEST: Final = 1100.0
"""Points of one picture: the longest edge that vision models keep (2,048 pixels) holds this at 134 dpi."""
_SEAM: Final = 3
_SEAM_COLOUR: Final = (160, 160, 160)


class _Strip(NamedTuple):
    """A piece of a page, and the clockwise turn that brings it upright; `frame` is the table in it."""

    page: int
    box: Box
    turn: int
    frame: Box

    @property
    def height(self) -> float:
        """Points from its top to its bottom, upright."""
        return self.box.x1 - self.box.x0 if self.turn % 180 else self.box.y1 - self.box.y0

    @property
    def indent(self) -> float:
        """Points between the strip's left edge and the table's, upright: a caption may be wider than its table."""
        return {
            0: self.frame.x0 - self.box.x0, 90: self.box.y1 - self.frame.y1,
            180: self.box.x1 - self.frame.x1, 270: self.frame.y0 - self.box.y0,
        }[self.turn]  # fmt: skip


def figure_picture(pdf: Path, document: Document, figure: Figure, *, dpi: int = _DPI) -> bytes:
    """A figure with its caption, as PNG.

    Raises:
        ExpbenchError: the file cannot be read.
    """
    return render_crop(pdf, figure.page, _with_caption(document, figure), dpi=dpi, margin=_MARGIN)


def table_pictures(
    pdf: Path,
    document: Document,
    parts: Sequence[Table],
    *,
    dpi: int = _DPI,
    highlight: Mapping[int, Sequence[Box]] | None = None,
) -> tuple[bytes, ...]:
    """A table with its caption as PNG; usually one, several only where it is longer than a legible picture.

    Args:
        pdf: the paper.
        document: its reading.
        parts: the table; more than one when parts under the same label were not joined.
        dpi: resolution.
        highlight: boxes to mark, by page.

    Raises:
        ExpbenchError: the file cannot be read.
    """
    marks = highlight or {}
    strips = [strip for part in parts for strip in _strips(document, part)]
    rotations = _rotations(pdf, {strip.page for strip in strips})
    header = _header(parts[0])
    groups: list[list[_Strip]] = [[]]
    for strip in strips:
        if groups[-1] and sum(other.height for other in groups[-1]) + strip.height > _TALLEST:
            groups.append([header] if header else [])
        groups[-1].append(strip)
    return tuple(
        _stack(
            [_upright(pdf, strip, rotations[strip.page], dpi, marks.get(strip.page, ())) for strip in group],
            [round(strip.indent * dpi / 72) for strip in group],
        )
        for group in groups
    )


def _strips(document: Document, table: Table) -> list[_Strip]:
    """The parts of a table page by page; further parts without the header that they repeat."""
    strips = [_Strip(table.page, _with_caption(document, table), _turn(cells_on(table, table.page)), table.box)]
    for page, box in table.continued:
        cells = cells_on(table, page)
        strips.append(_Strip(page, _from_first_row(box, cells, _turn(cells)), _turn(cells), box))
    return strips


def _with_caption(document: Document, part: Table | Figure) -> Box:
    """The box with the caption when that stands on the same page."""
    box = part.box
    for caption in document.captions:
        if caption.label == part.label and caption.page == part.page:
            box = box.union(caption.box)
    return box


def _turn(cells: Sequence[Cell]) -> int:
    """Clockwise degrees that bring cells upright: rows advance downwards on an upright page, sideways on others."""
    steps = []
    columns: dict[int, list[Cell]] = {}
    for cell in cells:
        if cell.box is not None:
            columns.setdefault(cell.column, []).append(cell)
    for column in columns.values():
        boxes = [cell.box for cell in sorted(column, key=lambda cell: cell.row) if cell.box is not None]
        steps += [(b.x0 + b.x1 - a.x0 - a.x1, b.y0 + b.y1 - a.y0 - a.y1) for a, b in pairwise(boxes)]
    if not steps:
        return 0
    across, down = (statistics.median(side) for side in zip(*steps, strict=True))
    if abs(down) >= abs(across):
        return 0 if down >= 0 else 180
    return 90 if across > 0 else 270


def _from_first_row(box: Box, cells: Sequence[Cell], turn: int) -> Box:
    """`box` from its first row that belongs to the table on; rows that only repeat the header have no cells."""
    boxes = [cell.box for cell in cells if cell.box is not None]
    if not boxes:
        return box
    if turn == 90:
        return box._replace(x0=max(box.x0, min(b.x0 for b in boxes) - 1))
    if turn == 270:
        return box._replace(x1=min(box.x1, max(b.x1 for b in boxes) + 1))
    if turn == 180:
        return box._replace(y1=min(box.y1, max(b.y1 for b in boxes) + 1))
    return box._replace(y0=max(box.y0, min(b.y0 for b in boxes) - 1))


def _header(table: Table) -> _Strip | None:
    """The header rows alone, over the whole width."""
    cells = cells_on(table, table.page)
    turn = _turn(cells)
    heads = [cell.box for cell in cells if cell.row < table.header_rows and cell.box is not None]
    if not heads:
        return None
    box = table.box
    if turn == 90:
        box = box._replace(x1=max(b.x1 for b in heads))
    elif turn == 270:
        box = box._replace(x0=min(b.x0 for b in heads))
    elif turn == 180:
        box = box._replace(y0=min(b.y0 for b in heads))
    else:
        box = box._replace(y1=max(b.y1 for b in heads))
    return _Strip(table.page, box, turn, box)


def _rotations(pdf: Path, pages: set[int]) -> dict[int, int]:
    """By page, the clockwise degrees by which a viewer turns it."""
    with open_pdf(pdf) as document:
        return {page: document[page - 1].rotation for page in pages}


def _upright(pdf: Path, strip: _Strip, rotation: int, dpi: int, highlight: Sequence[Box]) -> Image.Image:
    png = render_crop(pdf, strip.page, strip.box, dpi=dpi, margin=_MARGIN, highlight=highlight)
    image = Image.open(io.BytesIO(png)).convert("RGB")
    turn = (strip.turn - rotation) % 360
    return image.rotate(-turn, expand=True) if turn else image


def _stack(images: Sequence[Image.Image], indents: Sequence[int]) -> bytes:
    """Pictures one beneath another, a grey line at each seam, shifted until what is `indents` pixels in is in line."""
    shifts = [max(indents) - indent for indent in indents]
    width = max(image.width + shift for image, shift in zip(images, shifts, strict=True))
    height = sum(image.height for image in images) + _SEAM * (len(images) - 1)
    sheet = Image.new("RGB", (width, height), "white")
    top = 0
    for number, (image, shift) in enumerate(zip(images, shifts, strict=True)):
        if number:
            sheet.paste(_SEAM_COLOUR, (0, top, width, top + _SEAM))
            top += _SEAM
        sheet.paste(image, (shift, top))
        top += image.height
    stream = io.BytesIO()
    sheet.save(stream, "PNG")
    return stream.getvalue()
