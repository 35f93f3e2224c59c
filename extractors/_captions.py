"""Captions of tables, figures and algorithms: where they begin, where they end, and their normalised label.

The difficulty is a line of prose that begins with `Table 2.`: a caption starts a block of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from extractors._babel import FIGURE, TABLE
from extractors._layer import PageText, TextLine
from extractors._rules import Rule
from extractors._text import Vocabulary, squeeze
from pipeline.paper import Box, FloatKind

__all__ = ["FoundCaption", "find_captions", "match_label"]

_LABEL: Final = re.compile(
    r"^(?P<part>(?:Extended Data |Supplementary |Supplemental )?)"
    rf"(?:(?P<table>{TABLE})|(?P<figure>{FIGURE}|Fig)|Algorithm|ALGORITHM)\s*"
    r"(?P<number>[A-Z]{1,2}[.\-]?\d+(?:\.\d+)?|\d+(?:[.\-]\d+)*|[IVXL]+(?![A-Za-z])|[A-Z](?=\s*[:.|]))"
    r"(?P<letter>[a-z](?=[\s:.|]))?\s*(?P<mark>[:.|]|[–—-](?=\s))?(?=\s|$)(?P<rest>.*)$"
)
_CONTINUED: Final = re.compile(r"\(cont(inued|\.|'d)?\)|\bcontinued\b|\bcont'd\b", re.IGNORECASE)
_NAMES: Final = {FloatKind.TABLE: "Table", FloatKind.FIGURE: "Figure", FloatKind.ALGORITHM: "Algorithm"}


@dataclass(slots=True)
class FoundCaption:
    """A caption with the lines it is made of."""

    label: str
    kind: FloatKind
    page: int
    lines: list[TextLine]
    box: Box = field(default_factory=lambda: Box(0, 0, 0, 0))
    marked: bool = True
    """A separator or a bold label stood after the number."""

    @property
    def says_continued(self) -> bool:
        """`Table 3 (continued)`."""
        return bool(_CONTINUED.search(self.lines[0].text))

    def text(self, vocabulary: Vocabulary) -> str:
        """The whole caption as running text."""
        text = ""
        for line in self.lines:
            text = vocabulary.join(text, squeeze(line.text))
        return text


def match_label(text: str) -> tuple[str, FloatKind, bool, str] | None:
    """(normalised label, kind, separator present, rest of the line) of a line that begins like a caption."""
    match = _LABEL.match(text)
    if match is None:
        return None
    kind = FloatKind.TABLE if match["table"] else FloatKind.FIGURE if match["figure"] else FloatKind.ALGORITHM
    number = match["number"].rstrip(".") + (match["letter"] or "")
    return f"{match['part']}{_NAMES[kind]} {number}", kind, match["mark"] is not None, match["rest"].strip()


def _starts_caption(line: TextLine, marked: bool, rest: str) -> bool:
    """Does the print after the label look like a caption rather than a sentence (`Table 2 shows ...`)?"""
    if marked or not rest:
        return True
    label_bold = len(line.words) > 1 and line.words[0].bold and line.words[1].bold
    rest_bold = line.words[-1].bold
    return label_bold and (not rest_bold or line.bold) and rest[:1].isupper()


def _follows_prose(line: TextLine, page: PageText) -> bool:
    """Is the line the continuation of a paragraph: a full line of the same size right above it, in the same column?"""
    for other in page.lines:
        distance = line.baseline - other.baseline
        if (
            0 < distance < 1.42 * max(line.size, other.size)
            and abs(other.size - line.size) < 0.6
            and abs(other.x0 - line.x0) < 1.5 * line.size
            and other.x1 > line.x1 - 2 * line.size
            and other.width > 14 * line.size
            and other.block == line.block
            and match_label(other.text) is None
        ):
            return True
    return False


def _rule_between(rules: Sequence[Rule], upper: TextLine, lower: TextLine) -> bool:
    return any(
        upper.baseline - 1 < rule.y < lower.baseline - 0.5 * lower.size
        and min(rule.x1, upper.x1) - max(rule.x0, upper.x0) > 25
        for rule in rules
    )


def _is_tabular(line: TextLine) -> bool:
    """Two or more gaps as wide as columns: a table's row, not a caption's line."""
    gaps = sum(
        right.x0 - left.x1 > 1.5 * line.size for left, right in zip(line.words, line.words[1:], strict=False)
    )  # fmt: skip
    return gaps >= 2


def _heads_columns(line: TextLine, page: PageText, own: Box, rules: Sequence[Rule]) -> bool:
    """Does the line stand in one row with others, wide gaps between them: the head of a table?

    Where the table was pulled up to its caption, no rule parts them; the text layer gives a row's cells as lines. Two
    gaps tell, or one above a rule.
    """
    middle, size = page.width / 2, line.size
    least = middle if page.columns == 2 and own.x0 > middle - 6 else 0.0
    most = middle if page.columns == 2 and own.x1 < middle + 6 else page.width
    row = sorted(
        (other for other in page.lines if abs(other.baseline - line.baseline) < 0.3 * size
         and other.x0 >= least - 6 and other.x1 <= most + 6), key=lambda other: other.x0
    )  # fmt: skip
    gaps = sum(after.x0 - before.x1 > 1.5 * size for before, after in pairwise(row))
    ruled = any(
        0 < rule.y - line.baseline < 0.8 * size and rule.x0 < line.x0 and rule.x1 > row[-1].x1 for rule in rules
    )
    return gaps >= (1 if ruled else 2)


def _extend(caption: FoundCaption, page: PageText, rules: Sequence[Rule]) -> None:
    """Add the following lines of the caption: set under it, at its leading and size."""
    below = sorted(
        (line for line in page.lines if line.baseline > caption.lines[0].baseline + 1),
        key=lambda line: (line.baseline, line.x0),
    )
    leading = 1.45
    bare = not (match_label(squeeze(caption.lines[0].text)) or ("", "", False, "x"))[3]
    for line in below:
        last = caption.lines[-1]
        left, right = min(part.x0 for part in caption.lines), max(part.x1 for part in caption.lines)
        distance = line.baseline - last.baseline
        if distance > 2.4 * last.size:
            break
        # Under a bare label (`TABLE I`, centred) the caption's text is wider and may be in small capitals.
        title = bare and len(caption.lines) == 1
        if line.x0 > right or line.x1 < left or (line.x0 < left - 60 and not bare):
            continue
        limit = (2.3 if line.block == last.block else leading) * last.size
        starts_other = match_label(line.text)
        if (
            distance > limit
            or min(abs(line.size - last.size), abs(line.caps_size - last.caps_size)) > (2.6 if title else 1.2)
            or (starts_other is not None and starts_other[2])
            or _rule_between(rules, last, line)
            or _is_tabular(line)
            or _heads_columns(line, page, Box(left, last.box.y0, right, last.box.y1), rules)
        ):
            if abs(distance) < 0.4 * last.size:
                continue
            break
        caption.lines.append(line)
    _add_fragments(caption, page.lines)
    box = caption.lines[0].box
    for line in caption.lines[1:]:
        box = box.union(line.box)
    caption.box = box


def _add_fragments(caption: FoundCaption, lines: Sequence[TextLine]) -> None:
    """The rest of a first line that was set so loosely that it fell apart (`Table 5:   Spearman's  rho`).

    The lines under it show how wide the caption is: what stands beside its label within that width belongs to it.
    """
    first = caption.lines[0]
    if len(caption.lines) < 2:
        return
    right = max(line.x1 for line in caption.lines) + 0.3 * first.size
    known = set(map(id, caption.lines))
    rest = [
        line for line in lines
        if id(line) not in known and abs(line.baseline - first.baseline) < 0.3 * first.size
        and abs(line.size - first.size) < 1.2 and first.x1 < line.x0 and line.x1 <= right
    ]  # fmt: skip
    caption.lines[1:1] = sorted(rest, key=lambda line: line.x0)


def find_captions(pages: Sequence[PageText], rules: Sequence[Sequence[Rule]]) -> list[FoundCaption]:
    """All captions in page and reading order; where a label occurs twice, the better marked one stays.

    Args:
        pages: the text of every page.
        rules: horizontal lines of every page, same order.
    """
    found: list[FoundCaption] = []
    for page, page_rules in zip(pages, rules, strict=True):
        for line in page.lines:
            label = match_label(squeeze(line.text))
            if label is None:
                continue
            name, kind, marked, rest = label
            if not _starts_caption(line, marked, rest) or _follows_prose(line, page):
                continue
            caption = FoundCaption(name, kind, page.number, [line], line.box, marked)
            _extend(caption, page, page_rules)
            found.append(caption)
    best: dict[str, FoundCaption] = {}
    kept: list[FoundCaption] = []
    for caption in found:
        other = best.get(caption.label)
        if other is not None and not _CONTINUED.search(caption.lines[0].text):
            if _strength(caption) > _strength(other):
                kept[kept.index(other)] = caption
                best[caption.label] = caption
            continue
        best.setdefault(caption.label, caption)
        kept.append(caption)
    return sorted(kept, key=lambda caption: (caption.page, caption.box.y0, caption.box.x0))


def _strength(caption: FoundCaption) -> tuple[bool, bool, int]:
    first = caption.lines[0].words[0]
    rest = caption.lines[0].text
    return first.bold, ":" in rest[:20], min(len(rest), 20)
