"""The text of one page as values: words, lines with their styles, and the page in its upright frame.

Non-goal: where they come from (the text layer in `extractors._layer`, OCR in `extractors.ocr`).
"""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass, field

from pipeline.paper import Box, HiddenText

__all__ = ["PageText", "TextLine", "Word", "join_words", "rotate_box"]


@dataclass(slots=True)
class Word:
    """A run of characters of one size on one baseline, without blanks."""

    x0: float
    y0: float
    x1: float
    y1: float
    baseline: float
    size: float
    text: str
    bold: bool = False
    italic: bool = False
    math: bool = False
    glued: bool = False
    """No blank stood before it (a superscript, a changed font)."""

    @property
    def box(self) -> Box:
        return Box(self.x0, self.y0, self.x1, self.y1)

    @property
    def middle(self) -> float:
        return (self.x0 + self.x1) / 2


@dataclass(slots=True)
class TextLine:
    """Words on one baseline that the content stream sets one after the other."""

    page: int
    block: int
    words: list[Word]
    size: float = 0.0
    baseline: float = 0.0
    bold: bool = False
    italic: bool = False
    math: float = 0.0
    """Share of its characters set in mathematical fonts."""
    text: str = ""
    box: Box = field(default_factory=lambda: Box(0, 0, 0, 0))

    def __post_init__(self) -> None:
        self.refresh()

    def refresh(self) -> None:
        """Compute the properties of the line from its words."""
        sizes: Counter[float] = Counter()
        total = plain = bold = italic = math = 0
        for word in self.words:
            count = len(word.text)
            sizes[round(word.size * 2) / 2] += count
            total += count
            math += count * word.math
            if not word.math:  # a formula in a heading has fonts of its own
                plain += count
                bold += count * word.bold
                italic += count * word.italic
        self.size = max(sizes, key=lambda size: (sizes[size], size))
        main = [word for word in self.words if abs(word.size - self.size) < 0.3] or self.words
        # Big operators and brackets hang from a baseline of their own.
        main = [word for word in main if any(map(str.isalnum, word.text))] or main
        self.baseline = statistics.median_low([word.baseline for word in main])
        self.bold, self.italic, self.math = bold > 0.7 * plain, italic > 0.7 * plain, math / total
        self.text = join_words(self.words)
        self.box = Box(
            min(word.x0 for word in self.words), min(word.y0 for word in self.words),
            max(word.x1 for word in self.words), max(word.y1 for word in self.words),
        )  # fmt: skip

    @property
    def caps_size(self) -> float:
        """Font size; of small capitals that of the initials (`IV. OVERVIEW` in 10 and 8 points: 10)."""
        letters = [letter for letter in self.text if letter.isalpha()]
        if len(letters) < 4 or not all(map(str.isupper, letters)):
            return self.size
        return max(round(word.size * 2) / 2 for word in self.words)

    @property
    def x0(self) -> float:
        return self.box.x0

    @property
    def x1(self) -> float:
        return self.box.x1

    @property
    def width(self) -> float:
        return self.box.x1 - self.box.x0


@dataclass(slots=True)
class PageText:
    """What was read of one page, upright: `turn` degrees clockwise bring the page's own frame to this one."""

    number: int
    width: float
    height: float
    lines: list[TextLine]
    turn: int = 0
    vertical: list[TextLine] = field(default_factory=list)
    """Text that runs upwards or downwards (axis labels, margin stamps); boxes only, no reading order."""
    images: list[Box] = field(default_factory=list)
    drawings: list[Box] = field(default_factory=list)
    hidden: list[HiddenText] = field(default_factory=list)
    columns: int = 1
    scanned: bool = False
    """Read by OCR: what is drawn is known by its ink, and words in pictures are lines like others."""

    def words(self) -> list[Word]:
        """All words in reading order."""
        return [word for line in self.lines for word in line.words]

    def to_page(self, box: Box) -> Box:
        """A box in the page's own unrotated frame."""
        return rotate_box(box, self.width, self.height, -self.turn % 360)


def rotate_box(box: Box, width: float, height: float, degrees: int) -> Box:
    """`box` after turning a sheet of `width` x `height` clockwise by a multiple of 90 degrees."""
    x0, y0, x1, y1 = box
    if degrees == 90:
        return Box(height - y1, x0, height - y0, x1)
    if degrees == 180:
        return Box(width - x1, height - y1, width - x0, height - y0)
    if degrees == 270:
        return Box(y0, width - x1, y1, width - x0)
    return box


def join_words(words: list[Word]) -> str:
    """The text of words in order; glued words without a blank."""
    return "".join(
        word.text if index == 0 or word.glued else f" {word.text}" for index, word in enumerate(words)
    )  # fmt: skip
