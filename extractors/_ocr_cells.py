"""Second reading of the tables of a scanned page: cell by cell, with what Tesseract cannot see measured in the pixels.

Whole-page OCR drops or joins the small, widely spaced print of tables (numbers recall .63 to .99 on table pages at
200 dpi). Here the ink between two rules is cut into cells, which are set one beneath another on a sheet, each with its
contrast stretched and enlarged until its digits have one height, and the sheet is read in one call. A number that does
not have as many digits as there are tall components of ink, or of which Tesseract is not sure, is read again at another
size and as digits only; the reading that fits the ink wins. Two signs are found by their shape, because the language
data lacks one and the recogniser loses the other: plus-minus, and the decimal point. Non-goal: columns and headers;
words go back to where they stood, and the table reader treats them like any others.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
from PIL import Image

from extractors._ocr_glyphs import Cell, Glyph, Grey, cut_cells, digit_height, find_glyphs, find_ink, group_rows
from extractors._ocr_regions import Region

__all__ = ["ReadWord", "Recogniser", "read_cells"]

_SIZES: Final = (30, 40)
"""Pixels that digits are high on the sheet, in the first and the second reading. Digits of 15 pixels (8 points at 200
dpi) are read less well than those of 30; another size makes other mistakes."""
_LARGEST: Final = 1.8
"""Times the region's usual enlargement: a word without capitals would grow without limit."""
_PAD: Final = 14
_MARGIN: Final = 40
_SURE: Final = 80.0
"""Mean confidence under which a number is read again."""
_UNSURE: Final = 45.0
"""The same for words; they have no count of digits to tell a better reading by."""


class Recogniser(Protocol):
    """Reads an image as one block of lines; gives Tesseract's word rows (`left`, `top`, `text`, `conf` ...)."""

    def __call__(self, sheet: Image.Image, *, digits: bool) -> list[dict[str, str]]:
        """With `digits`, only digits and the marks of numbers are considered."""


class ReadWord(NamedTuple):
    """A word with its box in pixels of the page image, and the row of its table."""

    x0: int
    y0: int
    x1: int
    y1: int
    text: str
    confidence: float
    row: int


class _Token(NamedTuple):
    """A word that was read in a cell: its ends in pixels of the region's picture."""

    x0: float
    x1: float
    text: str
    confidence: float


def read_cells(picture: Grey, factor: int, region: Region, recognise: Recogniser) -> list[ReadWord]:
    """The words of a table region, in rows; empty where there is nothing like rows of print.

    Args:
        picture: the region, `factor` times as large as on the page image.
        factor: whole number from 1.
        region: the table in pixels of the page image.
        recognise: how a sheet of cells is read.
    """
    if picture.size == 0:
        return []
    ink = find_ink(picture)
    glyphs = find_glyphs(ink, speck=factor**2)
    height = digit_height(glyphs, least=5 * factor)
    if height < 6 * factor:
        return []
    cells, signs = cut_cells(group_rows(glyphs, height), ink, height)
    if not cells:
        return []
    readings = _read_twice(picture, cells, height, factor, recognise)
    words: list[ReadWord] = []
    for cell, tokens in zip(cells, readings, strict=True):
        for token, own in _with_glyphs(tokens, cell, factor):
            text = _with_points(token.text, own, cell.tall_height(height))
            if text:
                box = Cell(own, cell.row).box if own else cell.box._replace(x0=int(token.x0), x1=int(token.x1) + 1)
                words.append(_placed(box, region, factor, text, token.confidence, cell.row))
    words += [_placed(box, region, factor, "±", 95.0, row) for box, row in signs]
    return sorted(words, key=lambda word: (word.row, word.x0))


def _placed(box: Glyph, region: Region, factor: int, text: str, confidence: float, row: int) -> ReadWord:
    x0, y0 = region.x0 + box.x0 // factor, region.y0 + box.y0 // factor
    x1, y1 = region.x0 - (-box.x1 // factor), region.y0 - (-box.y1 // factor)
    return ReadWord(x0, y0, x1, y1, text, confidence, row)


def _with_glyphs(tokens: Sequence[_Token], cell: Cell, factor: int) -> list[tuple[_Token, list[Glyph]]]:
    """Each word with the components of ink that stand where it was read."""
    slack = 2 * factor
    return [
        (token, [g for g in cell.glyphs if token.x0 - slack <= (g.x0 + g.x1) / 2 <= token.x1 + slack])
        for token in tokens
    ]


# --- two readings


def _read_twice(
    picture: Grey, cells: Sequence[Cell], height: float, factor: int, recognise: Recogniser
) -> list[list[_Token]]:
    """The better of two readings for each cell; the second is made where the first does not fit its ink."""
    readings = _read(picture, cells, height, _SIZES[0], factor, recognise, digits=False)
    numbers, words = [], []
    for index, (cell, tokens) in enumerate(zip(cells, readings, strict=True)):
        if cell.signed or _is_number(tokens):
            if not _fits(tokens, cell, height) or _confidence(tokens) < _SURE:
                numbers.append(index)
        elif _confidence(tokens) < _UNSURE:
            words.append(index)
    for chosen, digits in ((numbers, True), (words, False)):
        if not chosen:
            continue
        again = _read(picture, [cells[i] for i in chosen], height, _SIZES[1], factor, recognise, digits=digits)
        for index, second in zip(chosen, again, strict=True):
            if _score(second, cells[index], height, digits) > _score(readings[index], cells[index], height, digits):
                readings[index] = second
    return readings


def _score(tokens: Sequence[_Token], cell: Cell, height: float, digits: bool) -> tuple[bool, bool, float]:
    return (not digits or _is_number(tokens), digits and _fits(tokens, cell, height), _confidence(tokens))


def _confidence(tokens: Sequence[_Token]) -> float:
    letters = sum(len(token.text) for token in tokens)
    return sum(token.confidence * len(token.text) for token in tokens) / letters if letters else 0.0


def _is_number(tokens: Sequence[_Token]) -> bool:
    """More digits (and what is taken for one) than other letters, and not a name such as `ResNet50`."""
    text = "".join(token.text for token in tokens)
    digits = len(re.findall(r"\d", text))
    others = len(re.findall(r"[^\W\d_OolISB]", text))
    return digits > 0 and others <= 0.34 * digits


def _fits(tokens: Sequence[_Token], cell: Cell, height: float) -> bool:
    """Are there as many tall characters as tall components of ink?

    Percent signs fall into one to three components, so cells with one are not judged.
    """
    text = "".join(token.text for token in tokens)
    own = cell.tall_height(height)
    tall = sum(glyph.height > 0.7 * own for glyph in cell.glyphs)
    return "%" in text or sum(c.isalnum() or c in "()[]/|<>†‡#&" for c in text) == tall


def _read(
    picture: Grey, cells: Sequence[Cell], height: float, size: int, factor: int, recognise: Recogniser, *, digits: bool
) -> list[list[_Token]]:
    """What each cell says, read from one sheet on which digits are `size` pixels high."""
    margin = 3 * factor
    sheet, tops, scales = _sheet(picture, cells, height, size, margin)
    bottoms = [
        top + int((cell.box.height + 2 * margin) * scale) for top, cell, scale in zip(tops, cells, scales, strict=True)
    ]
    found: list[list[_Token]] = [[] for _ in cells]
    for word in recognise(sheet, digits=digits):
        left, width = int(word["left"]), int(word["width"])
        middle = int(word["top"]) + int(word["height"]) / 2
        index = min(range(len(cells)), key=lambda i: max(tops[i] - middle, middle - bottoms[i], 0.0))
        start = cells[index].box.x0 - margin
        x0, x1 = (start + (x - _MARGIN) / scales[index] for x in (left, left + width))
        found[index].append(_Token(x0, x1, word["text"].strip(), float(word["conf"])))
    return [sorted(tokens) for tokens in found]


def _sheet(
    picture: Grey, cells: Sequence[Cell], height: float, size: int, margin: int
) -> tuple[Image.Image, list[int], list[float]]:
    """The cells one beneath another, enlarged; the top of each on the sheet, and its scale."""
    pictures, scales = [], []
    for cell in cells:
        scale = min(size / cell.tall_height(height), _LARGEST * size / height)
        own = Image.fromarray(_cell_picture(picture, cell, margin))
        target = (max(1, round(own.width * scale)), max(1, round(own.height * scale)))
        pictures.append(own.resize(target, Image.Resampling.LANCZOS))
        scales.append(scale)
    width = max(own.width for own in pictures) + 2 * _MARGIN
    sheet = Image.new("L", (width, sum(own.height + _PAD for own in pictures) + 2 * _MARGIN), 255)
    tops, y = [], _MARGIN
    for own in pictures:
        sheet.paste(own, (_MARGIN, y))
        tops.append(y)
        y += own.height + _PAD
    return sheet, tops, scales


def _cell_picture(picture: Grey, cell: Cell, margin: int) -> Grey:
    """A cell on white, grey print stretched to black: Tesseract cuts a sheet at one level of grey."""
    x0, y0, x1, y1 = cell.box
    own = np.full((y1 - y0 + 2 * margin, x1 - x0 + 2 * margin), 255, dtype=np.uint8)
    rim = max(1, margin // 3)
    for glyph in cell.glyphs:  # glyph by glyph: the boxes of tight rows overlap
        left, top = max(glyph.x0 - rim, 0), max(glyph.y0 - rim, 0)
        part = picture[top : glyph.y1 + rim, left : glyph.x1 + rim]
        down, right = top - y0 + margin, left - x0 + margin
        spot = own[down : down + part.shape[0], right : right + part.shape[1]]
        np.minimum(spot, part[: spot.shape[0], : spot.shape[1]], out=spot)
    darkest = float(np.percentile(own[own < 230], 10)) if (own < 230).any() else 0.0
    stretched = 255 - (255 - own.astype(np.float32)) * (255 / max(255 - darkest, 1.0))
    inked: Grey = np.clip(stretched, 0, 255).astype(np.uint8)
    return inked


# --- decimal points

_LOOKALIKE: Final = str.maketrans({"O": "0", "o": "0", "l": "1", "I": "1", "|": "1"})


def _with_points(text: str, glyphs: Sequence[Glyph], height: float) -> str:
    """A number with the decimal point that was lost, where a dot of ink stands on the line between two digits.

    Only where the digits read are as many as the tall glyphs, so that the place is certain (`142` with dots as `14.2`).
    """
    bare = text.strip("‘’'`\"_~")
    number = re.fullmatch(r"([-–—−+<>~(]*)([\dOolI|]+(?:[.,:][\dOolI|]+)*)[.,]?([%)†‡*]*)", bare)
    if number is None or not re.search(r"\d", bare):
        return text
    digits = number[2].translate(_LOOKALIKE)
    if re.fullmatch(r"[1-9]\d{0,2}(,\d{3})+", digits):
        return number[1] + digits + number[3]  # groups of thousands; in small print a comma's tail is lost in the ink
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
