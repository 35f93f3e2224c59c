"""Second reading of the tables of a scanned page: cell by cell, with what Tesseract cannot see measured in the pixels.

Whole-page OCR drops or joins the small, widely spaced print of tables (numbers recall .63 to .99 on table pages at
200 dpi). Here the ink between two rules is cut into connected components, these into rows and cells, and the cells are
set one beneath another on a sheet that is read in one call. Two signs are found by their shape, because the language
data lacks one and the recogniser loses the other: plus-minus, and the decimal point. Non-goal: columns and headers;
words go back to where they stood, and the table reader treats them like any others.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from extractors._rules import Rule

__all__ = ["ReadWord", "Region", "find_regions", "read_cells"]

Grey = npt.NDArray[np.uint8]
Ink = npt.NDArray[np.bool_]

_DARK: Final = 170
"""Grey level under which a pixel is ink; grey print (140) counts, the paper's own shade (230 and more) does not."""
_CELL_GAP: Final = 0.75
"""Of the height of a digit: word spaces measure 0.35-0.6, the narrowest column gap 0.9."""
_SCALE: Final = 2.0
"""Cells are enlarged: digits of 15 pixels (8 points at 200 dpi) are read less well than those of 30."""
_PAD: Final = 14
_MARGIN: Final = 40
_NARROWEST: Final = 60.0
"""Points; a shorter line is an underline or part of a drawing."""


class _Glyph(NamedTuple):
    """A connected component of ink; pixels within the region."""

    x0: int
    y0: int
    x1: int
    y1: int

    @property
    def height(self) -> int:
        return self.y1 - self.y0

    @property
    def middle(self) -> float:
        return (self.y0 + self.y1) / 2


class ReadWord(NamedTuple):
    """A word with its box in pixels of the page image, and the row of its table."""

    x0: int
    y0: int
    x1: int
    y1: int
    text: str
    confidence: float
    row: int


class Region(NamedTuple):
    """A table's box in pixels."""

    x0: int
    y0: int
    x1: int
    y1: int

    def holds(self, x: float, y: float) -> bool:
        """Is the point inside?"""
        return self.x0 <= x <= self.x1 and self.y0 <= y <= self.y1


@dataclass(slots=True)
class _Cell:
    """Ink between two wide gaps, to be read as one line."""

    glyphs: list[_Glyph]
    row: int

    @property
    def box(self) -> _Glyph:
        return _Glyph(
            min(g.x0 for g in self.glyphs), min(g.y0 for g in self.glyphs),
            max(g.x1 for g in self.glyphs), max(g.y1 for g in self.glyphs),
        )  # fmt: skip


# --- regions


def find_regions(rules: Sequence[Rule], lines: Sequence[tuple[float, float, str]], scale: float) -> list[Region]:
    """Where tables lie: between rules of equal ends, unless running text stands between them.

    Args:
        rules: horizontal lines of the page in points.
        lines: (left edge, baseline, text) of the lines that the first reading found, in points.
        scale: points per pixel.
    """
    groups: list[list[Rule]] = []
    for rule in sorted(rules, key=lambda rule: (rule.y, rule.x0)):
        if rule.width < _NARROWEST:
            continue
        for group in reversed(groups):
            last = group[-1]
            if abs(last.x0 - rule.x0) < 5 and abs(last.x1 - rule.x1) < 5 and not _prose(lines, last, rule):
                group.append(rule)
                break
        else:
            groups.append([rule])
    found = []
    for group in groups:
        if len(group) > 1 and group[-1].y - group[0].y > 12:
            top, bottom = _grown(group, lines)
            found.append(
                Region(int((group[0].x0 - 4) / scale), int(top / scale), int((group[0].x1 + 4) / scale) + 1,
                       int(bottom / scale) + 1)
            )  # fmt: skip
    return found


def _prose(lines: Sequence[tuple[float, float, str]], upper: Rule, lower: Rule) -> bool:
    between = [text for left, y, text in lines if upper.y < y < lower.y and upper.x0 - 5 <= left <= upper.x1]
    return sum(len(re.findall(r"\b[a-z]{2,}\b", text)) >= 7 for text in between) >= 3


def _grown(group: Sequence[Rule], lines: Sequence[tuple[float, float, str]]) -> tuple[float, float]:
    """Top and bottom with the rows of numbers that stand under the last rule (physics sets none there)."""
    top, bottom = group[0].y + 1, group[-1].y - 1
    for left, y, text in sorted(lines, key=lambda line: line[1]):
        near = bottom < y < bottom + 18 and group[0].x0 - 5 <= left <= group[0].x1
        if near and len(re.findall(r"\d+\.?\d*", text)) >= 3 and not re.search(r"[a-z]{2,} [a-z]{2,} [a-z]{2,}", text):
            bottom = y + 3
    return top, bottom


# --- segmentation


def _glyphs(ink: Ink) -> list[_Glyph]:
    from scipy import ndimage  # 0.4 s to load, and most papers need no OCR

    labels, _ = ndimage.label(ink, structure=np.ones((3, 3), dtype=np.int8))
    width = ink.shape[1]
    found = [
        _Glyph(int(x.start), int(y.start), int(x.stop), int(y.stop))
        for y, x in (part for part in ndimage.find_objects(labels) if part is not None)
    ]
    return [
        glyph for glyph in found
        if glyph.x1 - glyph.x0 < 0.25 * width and glyph.height * (glyph.x1 - glyph.x0) > 1
    ]  # fmt: skip


def _digit_height(glyphs: Sequence[_Glyph]) -> float:
    """Height of digits and capitals: most glyphs of a table are of that height."""
    tall = sorted(glyph.height for glyph in glyphs if glyph.height > 5)
    return float(tall[int(0.7 * (len(tall) - 1))]) if tall else 0.0


def _rows(glyphs: Sequence[_Glyph], height: float) -> list[list[_Glyph]]:
    """Glyphs of letter size by the height of their middle; dots, bars and accents go to the nearest row."""
    main = [glyph for glyph in glyphs if 0.55 * height < glyph.height < 1.8 * height]
    rows: list[list[_Glyph]] = []
    centre = 0.0
    for glyph in sorted(main, key=lambda glyph: (glyph.middle, glyph.x0)):
        if rows and glyph.middle - centre < 0.5 * height:
            rows[-1].append(glyph)
        else:
            rows.append([glyph])
        centre = statistics.fmean(member.middle for member in rows[-1][-40:])
    if not rows:
        return []
    centres = [statistics.median(glyph.middle for glyph in row) for row in rows]
    letters = [np.array([(glyph.x0, glyph.x1) for glyph in row]) for row in rows]
    known = set(main)
    for glyph in glyphs:
        if glyph not in known and glyph.height <= 1.8 * height:
            close = [index for index, centre in enumerate(centres) if abs(centre - glyph.middle) < 1.1 * height]
            if close:
                near = min(close, key=lambda index: abs(centres[index] - glyph.middle) + _aside(glyph, letters[index]))
                rows[near].append(glyph)
    return rows


def _aside(glyph: _Glyph, letters: npt.NDArray[np.int64]) -> float:
    """White between a mark and the nearest letter of a row: a point belongs to its digits, not to a label beside."""
    return float(np.maximum(np.maximum(letters[:, 0] - glyph.x1, glyph.x0 - letters[:, 1]), 0).min())


def _is_plus_minus(glyph: Ink) -> bool:
    """A plus over a bar: two full-width bands, one at the bottom and one in the upper half, little ink elsewhere."""
    height, width = glyph.shape
    if height < 7 or not 0.6 < height / width < 1.7:
        return False
    wide = np.concatenate(([0], (glyph.mean(axis=1) > 0.75).view(np.int8), [0]))
    starts, ends = np.flatnonzero(np.diff(wide) == 1), np.flatnonzero(np.diff(wide) == -1)
    if len(starts) != 2:
        return False
    upper, lower = (int(starts[0]), int(ends[0])), (int(starts[1]), int(ends[1]))
    at_bottom = lower[1] >= height - max(1.0, 0.12 * height)
    crossing = 0.2 * height < sum(upper) / 2 < 0.6 * height
    thin = max(upper[1] - upper[0], lower[1] - lower[0]) <= 0.3 * height
    if not (at_bottom and crossing and thin and lower[0] - upper[1] >= 0.12 * height):
        return False
    above = glyph[: upper[0]]
    left, right = above[:, : max(1, int(0.3 * width))], above[:, int(0.75 * width) :]
    return bool(above.any() and above.mean() < 0.4 and left.mean() < 0.15 and right.mean() < 0.15)


def _runs(row: Sequence[_Glyph], gap: float) -> list[list[_Glyph]]:
    """Glyphs from left to right, split where the white is at least `gap` pixels wide."""
    runs: list[list[_Glyph]] = []
    end = 0
    for glyph in sorted(row):
        if runs and glyph.x0 - end < gap:
            runs[-1].append(glyph)
        else:
            runs.append([glyph])
            end = glyph.x1
        end = max(end, glyph.x1)
    return runs


def _cells(rows: Sequence[Sequence[_Glyph]], ink: Ink, height: float) -> tuple[list[_Cell], list[tuple[_Glyph, int]]]:
    """Cells to read, and the plus-minus signs with their rows."""
    cells: list[_Cell] = []
    signs: list[tuple[_Glyph, int]] = []
    for number, row in enumerate(rows):
        taken: set[_Glyph] = set()
        for run in _runs(row, 1):
            box = _Cell(run, number).box
            if _is_plus_minus(ink[box.y0 : box.y1, box.x0 : box.x1]):
                signs.append((box, number))
                taken.update(run)
        edges = [box.x0 for box, at in signs if at == number]
        for run in _runs([glyph for glyph in row if glyph not in taken], _CELL_GAP * height):
            parts: dict[int, list[_Glyph]] = {}
            for glyph in run:
                parts.setdefault(sum(edge < glyph.x0 for edge in edges), []).append(glyph)
            cells += [_Cell(part, number) for _, part in sorted(parts.items())]
    return cells, signs


# --- reading


def _sheet(grey: Grey, cells: Sequence[_Cell]) -> tuple[Image.Image, list[int]]:
    """The cells one beneath another, enlarged; and the top of each on the sheet."""
    pictures = []
    for cell in cells:
        x0, y0, x1, y1 = cell.box
        own = np.full((y1 - y0 + 6, x1 - x0 + 6), 255, dtype=np.uint8)
        for glyph in cell.glyphs:  # glyph by glyph: the boxes of tight rows overlap
            left, top = max(glyph.x0 - 1, 0), max(glyph.y0 - 1, 0)
            part = grey[top : glyph.y1 + 1, left : glyph.x1 + 1]
            down, right = top - y0 + 3, left - x0 + 3
            spot = own[down : down + part.shape[0], right : right + part.shape[1]]
            np.minimum(spot, part[: spot.shape[0], : spot.shape[1]], out=spot)
        picture = Image.fromarray(own)
        size = (max(1, int(picture.width * _SCALE)), max(1, int(picture.height * _SCALE)))
        pictures.append(picture.resize(size, Image.Resampling.LANCZOS))
    width = max(picture.width for picture in pictures) + 2 * _MARGIN
    sheet = Image.new("L", (width, sum(picture.height + _PAD for picture in pictures) + 2 * _MARGIN), 255)
    tops, y = [], _MARGIN
    for picture in pictures:
        sheet.paste(picture, (_MARGIN, y))
        tops.append(y)
        y += picture.height + _PAD
    return sheet, tops


def read_cells(
    grey: Grey, region: Region, recognise: Callable[[Image.Image], list[dict[str, str]]]
) -> list[ReadWord]:  # fmt: skip
    """The words of a table region, in rows; empty where there is nothing like rows of print.

    Args:
        grey: the page image.
        region: the table in pixels.
        recognise: reads an image as one block of lines; gives Tesseract's word rows (`left`, `top`, `text`, ...).
    """
    part = grey[region.y0 : region.y1, region.x0 : region.x1]
    if part.size == 0:
        return []
    ink: Ink = part < _DARK
    ink[ink.mean(axis=1) > 0.5] = False  # rules
    glyphs = _glyphs(ink)
    height = _digit_height(glyphs)
    if height < 6:
        return []
    rows = _rows(glyphs, height)
    cells, signs = _cells(rows, ink, height)
    if not cells:
        return []
    sheet, tops = _sheet(part, cells)
    bottoms = [top + int((cell.box.height + 6) * _SCALE) for top, cell in zip(tops, cells, strict=True)]
    words: list[ReadWord] = []
    for found in recognise(sheet):
        left, top = int(found["left"]), int(found["top"])
        width, tall = int(found["width"]), int(found["height"])
        middle = top + tall / 2
        index = min(
            range(len(cells)), key=lambda i: max(tops[i] - middle, middle - bottoms[i], 0.0)
        )  # fmt: skip
        cell = cells[index]
        origin = cell.box
        x0 = origin.x0 - 3 + int((left - _MARGIN) / _SCALE)
        x1 = origin.x0 - 3 + int((left + width - _MARGIN) / _SCALE) + 1
        own = [glyph for glyph in cell.glyphs if x0 - 2 <= (glyph.x0 + glyph.x1) / 2 <= x1 + 2]
        text = _with_points(found["text"].strip(), own, height)
        if not text:
            continue
        box = _Cell(own, cell.row).box if own else _Glyph(x0, origin.y0, x1, origin.y1)
        words.append(_placed(box, region, text, float(found["conf"]), cell.row))
    words += [_placed(box, region, "±", 95.0, row) for box, row in signs]
    return sorted(words, key=lambda word: (word.row, word.x0))


def _placed(box: _Glyph, region: Region, text: str, confidence: float, row: int) -> ReadWord:
    x, y = region.x0, region.y0
    return ReadWord(box.x0 + x, box.y0 + y, box.x1 + x, box.y1 + y, text, confidence, row)


_LOOKALIKE: Final = str.maketrans({"O": "0", "o": "0", "l": "1", "I": "1", "|": "1"})


def _with_points(text: str, glyphs: Sequence[_Glyph], height: float) -> str:
    """A number with the decimal point that was lost, where a dot of ink stands on the line between two digits.

    Only where the digits read are as many as the tall glyphs, so that the place is certain (`142` with dots as `14.2`).
    """
    bare = text.strip("‘’'`\"_~")
    number = re.fullmatch(r"([-–—−+<>~(]*)([\dOolI|]+(?:[.,:][\dOolI|]+)*)[.,]?([%)†‡*]*)", bare)
    if number is None or not re.search(r"\d", bare):
        return text
    digits = number[2].translate(_LOOKALIKE)
    tall = sorted(glyph for glyph in glyphs if glyph.height > 0.7 * height)
    floor = statistics.median(glyph.y1 for glyph in tall) if tall else 0
    extra = len(number[1]) + len(number[3])
    plain = re.sub(r"\D", "", digits)
    small = [glyph for glyph in glyphs if max(glyph.height, glyph.x1 - glyph.x0) <= 0.34 * height]
    dots = [glyph for glyph in small if abs(glyph.y1 - floor) <= 0.16 * height]
    if extra or len(plain) != len(tall) or len(dots) != 1:
        return number[1] + digits.replace(":", ".") + number[3]
    place = sum(glyph.x0 < dots[0].x0 for glyph in tall)
    if not 0 < place < len(plain):
        return number[1] + digits.replace(":", ".") + number[3]
    return f"{plain[:place]}.{plain[place:]}"
