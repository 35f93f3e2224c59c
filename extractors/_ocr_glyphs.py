"""Ink of a scanned table as connected components, rows and cells, with the signs that are known by their shape.

Works on a picture of one table region, whatever its resolution: every measure is a share of the height of its digits.
Non-goal: what the cells say (`extractors._ocr_cells`) and where tables lie (`extractors._ocr_regions`).
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Cell", "Glyph", "Grey", "Ink", "cut_cells", "digit_height", "find_glyphs", "find_ink", "group_rows"]

Grey = npt.NDArray[np.uint8]
Ink = npt.NDArray[np.bool_]

_FAINT: Final = 0.34
"""Ink is darker than the paper by a third of the darkest pixel of the same letter: grey 170 for black print at 200 dpi,
210 for grey uncertainties in 4 point print (their thinnest strokes are 180 to 205, the darkest 80 to 120)."""
_LIGHTEST: Final = 210
"""Grey level from which nothing is ink."""
_PALEST: Final = 60
"""Levels by which a letter stands out from the paper at least; JPEG noise around letters measures 10 to 30."""
_CELL_GAP: Final = 0.75
"""Of the height of a digit: word spaces measure 0.35-0.6, the narrowest column gap 0.9."""


class Glyph(NamedTuple):
    """A connected component of ink; pixels within the region's picture."""

    x0: int
    y0: int
    x1: int
    y1: int

    @property
    def height(self) -> int:
        return self.y1 - self.y0

    @property
    def width(self) -> int:
        return self.x1 - self.x0

    @property
    def middle(self) -> float:
        return (self.y0 + self.y1) / 2


@dataclass(slots=True)
class Cell:
    """Ink between two wide gaps, to be read as one line; `signed` when it follows a plus-minus sign."""

    glyphs: list[Glyph]
    row: int
    signed: bool = False

    @property
    def box(self) -> Glyph:
        return Glyph(
            min(g.x0 for g in self.glyphs), min(g.y0 for g in self.glyphs),
            max(g.x1 for g in self.glyphs), max(g.y1 for g in self.glyphs),
        )  # fmt: skip

    def tall_height(self, usual: float) -> float:
        """Height of this cell's own digits and capitals, where the region's are `usual` pixels high.

        Uncertainties, indices and notes are set smaller than the cell beside them. Taller marks (brackets, rules)
        and those of half the usual height and less (points, bars) do not count.
        """
        heights = sorted(g.height for g in self.glyphs if 0.4 * usual < g.height < 1.25 * usual)
        return float(heights[int(0.7 * (len(heights) - 1))]) if heights else usual


def find_ink(grey: Grey) -> Ink:
    """Where there is ink: darker than the paper by a share of the darkest pixel of the same connected print.

    Not of the darkest pixel nearby: beside a black digit, half of a grey plus-minus sign would be lost. Horizontal
    rules (rows of the picture that are mostly ink) are left out.
    """
    from scipy import ndimage  # 0.4 s to load, and most papers need no OCR

    labels, count = ndimage.label(grey < _LIGHTEST, structure=np.ones((3, 3), dtype=np.int8))
    darkest = np.concatenate(([255.0], ndimage.minimum(grey, labels, np.arange(1, count + 1)) if count else []))
    level = np.where(darkest < 255 - _PALEST, 255 - _FAINT * (255 - darkest), 0).astype(np.float32)
    ink: Ink = grey < level[labels]
    ink[ink.mean(axis=1) > 0.5] = False
    return ink


def find_glyphs(ink: Ink, speck: int) -> list[Glyph]:
    """Connected components; not rules, nor specks of at most `speck` pixels in their box."""
    from scipy import ndimage

    labels, _ = ndimage.label(ink, structure=np.ones((3, 3), dtype=np.int8))
    width = ink.shape[1]
    found = [
        Glyph(int(x.start), int(y.start), int(x.stop), int(y.stop))
        for y, x in (part for part in ndimage.find_objects(labels) if part is not None)
    ]
    return [glyph for glyph in found if glyph.width < 0.25 * width and glyph.height * glyph.width > speck]


def digit_height(glyphs: Sequence[Glyph], least: float) -> float:
    """Height of digits and capitals: most glyphs of a table are of that height; 0 where none is above `least`."""
    tall = sorted(glyph.height for glyph in glyphs if glyph.height > least)
    return float(tall[int(0.7 * (len(tall) - 1))]) if tall else 0.0


def group_rows(glyphs: Sequence[Glyph], height: float) -> list[list[Glyph]]:
    """Glyphs of letter size by the height of their middle; dots, bars and accents go to the nearest row."""
    main = [glyph for glyph in glyphs if 0.55 * height < glyph.height < 1.8 * height]
    rows: list[list[Glyph]] = []
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


def _aside(glyph: Glyph, letters: npt.NDArray[np.int64]) -> float:
    """White between a mark and the nearest letter of a row: a point belongs to its digits, not to a label beside."""
    return float(np.maximum(np.maximum(letters[:, 0] - glyph.x1, glyph.x0 - letters[:, 1]), 0).min())


def is_plus_minus(glyph: Ink) -> bool:
    """A plus over a bar: one wide band at the bottom, one in the upper half, between and above them only a stem.

    A thin crossbar that falls between two rows of pixels is pale in both, so half of its width is enough; what tells
    the sign from `1`, `t`, `2` and `z` is that its halves mirror each other and nothing stands beside its stem.
    """
    height, width = glyph.shape
    if height < 7 or not 0.6 < height / width < 1.7:
        return False
    shares = glyph.mean(axis=1)
    bands = [band for band in _bands(shares > 0.45) if shares[band[0] : band[1]].max() > 0.55]
    if len(bands) != 2:
        return False
    upper, lower = bands
    at_bottom = lower[1] >= height - max(1.0, 0.12 * height) and shares[lower[0] : lower[1]].max() > 0.75
    crossing = 0.2 * height < sum(upper) / 2 < 0.65 * height
    mirrored = (glyph == glyph[:, ::-1]).mean() > 0.8
    thin = max(upper[1] - upper[0], lower[1] - lower[0]) <= 0.3 * height
    if not (at_bottom and crossing and thin and mirrored and lower[0] - upper[1] >= 0.1 * height):
        return False
    bar: Ink = np.any(glyph[upper[0] : upper[1]], axis=0)
    both_sides = bar[: max(1, width // 4)].any() and bar[-max(1, width // 4) :].any()
    stem = glyph[: upper[0]]
    beside = np.concatenate((glyph[:, : max(1, int(0.3 * width))], glyph[:, int(0.75 * width) :]), axis=1).mean(axis=1)
    alone = beside[: upper[0]].mean() < 0.15 and beside[upper[1] : lower[0]].min() < 0.05
    return bool(both_sides and stem.any() and stem.mean() < 0.45 and alone)


def _bands(rows: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """(first, behind the last) of the runs of true rows."""
    edges = np.diff(np.concatenate(([0], rows.view(np.int8), [0])))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    return [(int(start), int(end)) for start, end in zip(starts, ends, strict=True)]


def _runs(row: Sequence[Glyph], gap: float) -> list[list[Glyph]]:
    """Glyphs from left to right, split where the white is at least `gap` pixels wide."""
    runs: list[list[Glyph]] = []
    end = 0
    for glyph in sorted(row):
        if runs and glyph.x0 - end < gap:
            runs[-1].append(glyph)
        else:
            runs.append([glyph])
            end = glyph.x1
        end = max(end, glyph.x1)
    return runs


def cut_cells(rows: Sequence[Sequence[Glyph]], ink: Ink, height: float) -> tuple[list[Cell], list[tuple[Glyph, int]]]:
    """Cells to read, and the plus-minus signs with their rows."""
    cells: list[Cell] = []
    signs: list[tuple[Glyph, int]] = []
    for number, row in enumerate(rows):
        taken: set[Glyph] = set()
        for run in _runs(row, 1):
            box = Cell(run, number).box
            if is_plus_minus(ink[box.y0 : box.y1, box.x0 : box.x1]):
                signs.append((box, number))
                taken.update(run)
        edges = [box.x0 for box, at in signs if at == number]
        for run in _runs([glyph for glyph in row if glyph not in taken], _CELL_GAP * height):
            parts: dict[int, list[Glyph]] = {}
            for glyph in run:
                parts.setdefault(sum(edge < glyph.x0 for edge in edges), []).append(glyph)
            for before, part in sorted(parts.items()):
                start = min(glyph.x0 for glyph in part)
                signed = before > 0 and start - max(e for e in edges if e < start) < 3 * height
                cells.append(Cell(part, number, signed))
    return cells, signs
