"""Words that Tesseract found as text lines: size and baseline measured in the ink, raised marks parted from words.

Tesseract's boxes do not tell the size: on some lines every word has the height of its own letters, on others that of
the whole line. Non-goal: what a line means.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
import pymupdf

from extractors._ocr_ink import PageInk
from extractors._page_text import TextLine, Word
from extractors._text import normalise

__all__ = ["text_lines"]

_ASCENDER: Final = 0.72
"""Of the font size: height of capitals, digits and letters with a stem (Times .66 to .68, Computer Modern .68 to .69),
and the blur of their edges at 200 dpi."""
_X_HEIGHT: Final = 0.49
"""The same of letters without a stem (Times .45, Computer Modern .43)."""
_FLAT: Final = frozenset("acemnorsuvwxzgpqy.,:;-–—=~'")
_LIKE_DIGITS: Final = {"s": "5", "S": "5", "l": "1", "I": "1", "|": "1", "t": "1", "i": "1", "o": "0", "O": "0",
                       "z": "2", "Z": "2", "g": "9", "q": "9", "B": "8", "b": "6", "a": "4", "A": "4",
                       "'": "1", "’": "1", "‘": "1", "T": "1", "f": "1", "+": "†", "°": "*"}  # fmt: skip
"""What Tesseract makes of small raised digits and signs."""

_STEMS: Final = frozenset("bdfhkl0123456789ABCDEFGHIJKLMNOPRSTUVWXYZ")
_TELLING: Final = 3
"""Letters with stems from which on a line tells its size by itself; `tification.` has one."""
_SPACE: Final = 0.2
"""Of the font size: the narrowest white between words of tightly set lines (.22 to .29); between letters up to .08."""
_STRETCHED: Final = 1.25
"""Times the width in Times from which a box holds more than was read: 1.0 to 1.15 for words run together, 1.4 and more
for a word whose neighbour was not read at all."""

Rows = Sequence[dict[str, str]]
Boxes = npt.NDArray[np.int32]


def text_lines(rows: Rows, number: int, scale: float, ink: PageInk) -> list[TextLine]:
    """Tesseract's words as text lines, in its order.

    Args:
        rows: word rows of Tesseract's TSV.
        number: page number from 1.
        scale: points per pixel.
        ink: the ink of the page image.
    """
    groups: dict[tuple[int, int, int], list[dict[str, str]]] = {}
    for row in rows:
        if normalise(row["text"]).strip():
            groups.setdefault((int(row["block_num"]), int(row["par_num"]), int(row["line_num"])), []).append(row)
    glyphs = {key: _glyphs(members, ink) for key, members in groups.items()}
    measured = {key: _measure(members, glyphs[key], scale) for key, members in groups.items()}
    paragraphs: dict[tuple[int, int], list[float]] = {}
    for key, (size, _) in measured.items():
        paragraphs.setdefault(key[:2], []).append(size)
    lines = []
    for key, members in groups.items():
        size, baseline = measured[key]
        # A paragraph is set in one size; what a line is off by half a point is noise of the measuring, and what it is
        # smaller where few letters tell.
        usual = statistics.median_high(paragraphs[key[:2]])
        stems = sum(letter in _STEMS for row in members for letter in row["text"])
        size = usual if abs(size - usual) <= 0.6 or (stems < _TELLING and size < usual) else size
        size = min(max(round(2 * size) / 2, 4.0), 40.0)
        words = _words(members, size, baseline, scale)
        words = [part for word in words for part in _spaced(word, glyphs[key], scale)]
        _number_label(words)
        words[:1] = _parted(words[0], glyphs[key], scale)
        lines.append(TextLine(number, key[0] * 1000 + key[1], words))
    return lines


def _glyphs(members: Rows, ink: PageInk) -> Boxes:
    """The components of ink of a line: within the ends of its words, at their usual height."""
    left = min(int(row["left"]) for row in members)
    right = max(int(row["left"]) + int(row["width"]) for row in members)
    top = statistics.median(int(row["top"]) for row in members)
    bottom = statistics.median(int(row["top"]) + int(row["height"]) for row in members)
    return ink.within(left - 2, top - 2, right + 2, bottom + 2)


def _measure(members: Rows, glyphs: Boxes, scale: float) -> tuple[float, float]:
    """Font size and baseline in points; from Tesseract's boxes where the ink tells nothing (a line of dots).

    Most letters stand on the baseline, so it is the median of their feet.
    """
    heights = glyphs[:, 3] - glyphs[:, 1]
    letters = glyphs[heights > 0.35 * float(np.percentile(heights, 90))] if len(heights) else glyphs
    if len(letters) == 0:
        bottom = statistics.median(int(row["top"]) + int(row["height"]) for row in members)
        height = statistics.median(int(row["height"]) for row in members)
        return height * scale / 0.92, (bottom - 0.2 * height) * scale
    baseline = float(np.median(letters[:, 3]))
    usual = float(np.median(letters[:, 3] - letters[:, 1]))
    standing = letters[np.abs(letters[:, 3] - baseline) < 0.2 * usual]  # raised marks and letters with tails do not
    rise = _highest(sorted((baseline - (standing if len(standing) else letters)[:, 1]).tolist(), reverse=True))
    flat = all(set(row["text"]) <= _FLAT for row in members)
    return rise * scale / (_X_HEIGHT if flat else _ASCENDER), baseline * scale


def _highest(rises: Sequence[float]) -> float:
    """The height that stems and capitals share: the greatest one that several letters of the line have.

    A `t` is 15 % lower; a bracket of a formula stands alone.
    """
    for index, rise in enumerate(rises):
        alike = [other for other in rises[index:] if other > 0.92 * rise]
        if len(alike) >= max(2, 0.07 * len(rises)):
            return statistics.median(alike)
    return rises[0]


def _words(members: Rows, size: float, baseline: float, scale: float) -> list[Word]:
    words = []
    for row in members:
        x0, top = int(row["left"]) * scale, int(row["top"]) * scale
        x1, bottom = x0 + int(row["width"]) * scale, top + int(row["height"]) * scale
        base = bottom if abs(bottom - baseline) < 0.12 * size else baseline
        words.append(Word(x0, top, x1, bottom, base, size, normalise(row["text"])))
    return words


def _spaced(word: Word, glyphs: Boxes, scale: float) -> list[Word]:
    """Words that were read as one (`Jiangetal.`): cut where the ink has a space, at the letter that falls there.

    Letters touch, so they cannot be counted; the widths of Times tell which letter comes where, to half a letter.
    """
    if len(word.text) < 4 or sum(letter.isalpha() or letter in "(.,;:)" for letter in word.text) < len(word.text):
        return [word]
    own = sorted(box[[0, 2]].tolist() for box in glyphs if word.x0 <= (box[0] + box[2]) / 2 * scale <= word.x1)
    gaps: list[tuple[float, float]] = []
    end = own[0][1] if own else 0
    for left, right in own[1:]:
        gaps.append(((left - end) * scale / word.size, (left + end) / 2 * scale))
        end = max(end, right)
    wide = [middle for gap, middle in gaps if gap >= _SPACE]
    narrow = [gap for gap, _ in gaps if gap < _SPACE]
    if not wide or len(wide) > len(narrow) or max(narrow) > 0.6 * _SPACE:
        return [word]  # letters set apart, or too few to tell
    font = _times()
    total = font.text_length(word.text, word.size)
    if word.x1 - word.x0 > _STRETCHED * total:
        return [word]
    ends = [font.text_length(word.text[:index], word.size) / total for index in range(1, len(word.text))]
    cuts = sorted({
        1 + min(range(len(ends)), key=lambda i: abs(ends[i] * (word.x1 - word.x0) - (middle - word.x0)))
        for middle in wide
    })  # fmt: skip
    edges = [word.x0, *wide, word.x1]
    if len(cuts) != len(wide):
        return [word]
    places = [0, *cuts, len(word.text)]
    return [
        Word(edges[i], word.y0, edges[i + 1], word.y1, word.baseline, word.size, word.text[places[i] : places[i + 1]])
        for i in range(len(places) - 1)
    ]


@lru_cache(maxsize=1)
def _times() -> pymupdf.Font:
    return pymupdf.Font("tiro")


def _number_label(words: Sequence[Word]) -> None:
    """`Figure |:` at the beginning of a line is figure 1; a numeral of one stroke has no letters beside it to tell."""
    if len(words) > 1 and re.fullmatch(r"(?:Table|Tab\.|Figure|Fig\.?)", words[0].text):
        words[1].text = re.sub(r"^[|l](?=[:.|]|$)", "1", words[1].text)


def _parted(word: Word, glyphs: Boxes, scale: float) -> list[Word]:
    """The first word of a line, where it opens with a raised mark (a footnote's number), as the mark and the rest.

    A raised digit ends a sixth of the size above the baseline and more, and is a third to two thirds of it high; quotes
    are lower. The mark counts as read where the word has no fewer other characters than other letters of ink.
    """
    own = sorted(tuple(map(int, box)) for box in glyphs if (box[0] + box[2]) / 2 * scale <= word.x1 + 0.5)
    floor, size = word.baseline / scale, word.size / scale
    raised = 0
    for _, top, _, bottom in own:
        if not (bottom < floor - size / 6 and size / 3 < bottom - top < 2 * size / 3):
            break
        raised += 1
    if not 0 < raised < 4 or raised == len(own):
        return [word]
    columns: list[tuple[int, int]] = []  # the dot of an i is one letter with its stem
    for left, _, right, _ in own[raised:]:
        if columns and left < columns[-1][1]:
            columns[-1] = (columns[-1][0], max(columns[-1][1], right))
        else:
            columns.append((left, right))
    read = len(word.text) - len(columns)
    if read < 1 or len(columns) < 2:
        return [word]
    read = min(read, raised)  # more is left over where letters touch
    mark, rest = "".join(_LIKE_DIGITS.get(letter, letter) for letter in word.text[:read]), word.text[read:]
    edge, foot = (own[raised - 1][2] + 0.5) * scale, max(box[3] for box in own[:raised]) * scale
    small = max(4.0, round(1.3 * word.size) / 2)
    return [
        Word(word.x0, min(box[1] for box in own[:raised]) * scale, edge, foot, foot, small, mark),
        Word(edge, word.y0, word.x1, word.y1, word.baseline, word.size, rest, glued=True),
    ]
