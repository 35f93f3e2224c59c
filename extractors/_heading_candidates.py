"""Lines that may be headings: what stands out from the running text, wrapped lines joined, numbers read.

Non-goal: which of them are headings, and their levels (see `extractors.sections`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from extractors._layer import TextLine
from extractors._numbering import parse_number
from extractors._text import squeeze
from pipeline.paper import Box, Section, SectionKind

__all__ = ["KNOWN", "Heading", "collect"]

KNOWN: Final = re.compile(
    r"^(abstract|introduction|related works?|background|preliminar\w*|methods?|methodology|approach|experiments?|"
    r"experimental\b.*|results?|discussions?|conclusions?|conclud\w*|acknowledge?ments?|references|bibliography|"
    r"limitations?|appendix|appendices|supplement\w*|summary|ethic\w*|broader impacts?|impact statement|evaluations?|"
    r"datasets?|reproducibility|data availability|author contributions?|checklist)\b",
    re.IGNORECASE,
)
_CONTENTS: Final = re.compile(r"(\. ?){4,}\s*\d{0,3}$|^(table of )?contents$", re.IGNORECASE)
_BULLET: Final = re.compile(r"^[•·◦▪■●‣∙⋄⋆▶►–—*✓]\s")
_LONGEST: Final = 150
_CELL: Final = 9.0
"""Sizes; lines of running text are longer, even in three columns (14 and more)."""
_MOST_LINES: Final = 4
"""Lines of the longest title; more lines of one print are a paragraph (a bold abstract)."""


@dataclass(slots=True)
class Heading:
    """A heading candidate: one line or a wrapped one."""

    lines: list[TextLine]
    order: int
    """Index of its first line in the reading order."""
    standalone: bool
    number: list[str] | None = None
    title: str = ""
    level: int = 1
    kind: SectionKind = SectionKind.BODY
    style: tuple[float, bool, bool, bool] = field(default=(0.0, False, False, False))

    @property
    def text(self) -> str:
        """Number and title as printed."""
        return squeeze(" ".join(line.text for line in self.lines))

    @property
    def printed_number(self) -> str | None:
        """The number as it stands on the page, `Appendix A` with its word."""
        if not self.number:
            return None
        word = re.match(r"(appendix)\s", self.text, re.IGNORECASE)
        return f"{'Appendix ' if word else ''}{'.'.join(self.number)}"

    @property
    def size(self) -> float:
        """Font size in points."""
        return self.lines[0].caps_size

    def section(self, to_page: Callable[[Box], Box]) -> Section:
        """The record; `to_page` maps the upright frame to the page's own."""
        box = self.lines[0].box
        for line in self.lines[1:]:
            box = box.union(line.box)
        return Section(
            number=self.printed_number,
            title=self.title or self.text,
            level=self.level,
            page=self.lines[0].page,
            box=to_page(box),
            kind=self.kind,
        )


def _is_caps(text: str) -> bool:
    letters = re.sub(r"[^A-Za-z]", "", text)
    return len(letters) > 3 and letters.isupper()


def _stands_out(line: TextLine, body: float) -> bool:
    text = squeeze(line.text)
    if (
        len(text) > _LONGEST
        or _BULLET.match(text)
        or not re.search(r"[^\W\d_]{3}", text)
        or line.caps_size < body - 1
        or _CONTENTS.search(text)
    ):
        return False
    if line.caps_size >= body + 0.5 or line.bold or _is_caps(text):
        return True
    return line.italic and parse_number(text) is not None


def collect(lines: Sequence[TextLine], body: float) -> list[Heading]:
    """Candidates in reading order, wrapped lines joined.

    Args:
        lines: running lines of the whole paper in reading order.
        body: font size of the running text.
    """
    rows = Counter((line.page, round(line.baseline / 2)) for line in lines if line.width < _CELL * line.size)
    found: list[Heading] = []
    last = -2
    for order, line in enumerate(lines):
        head = found[-1] if found and last == order - 1 else None
        if head is not None and _wraps(head, line) and (_stands_out(line, body) or line.italic):
            head.lines.append(line)
            last = order
            continue
        if not _stands_out(line, body):
            continue
        follower = lines[order + 1] if order + 1 < len(lines) else None
        run_in = (
            follower is not None
            and follower.page == line.page
            and abs(follower.baseline - line.baseline) < 2
            and 0 <= follower.x0 - line.x1 < 12
        )
        found.append(Heading([line], order, not run_in))
        last = order
    found = [head for head in found if len(head.lines) <= _MOST_LINES and not _is_cell(head.lines[0], rows)]
    for head in found:
        text = head.text
        parsed = parse_number(text, set_off=_is_set_off(head.lines[0]))
        head.number, head.title = parsed if parsed else (None, text)
        head.style = (head.size, head.lines[0].bold, head.lines[0].italic, _is_caps(text))
    return found


def _is_cell(line: TextLine, rows: Counter[tuple[int, int]]) -> bool:
    """Stands in a row of four and more short lines: a table without a caption."""
    place = round(line.baseline / 2)
    return sum(rows[line.page, place + shift] for shift in (-1, 0, 1)) >= 4


def _is_set_off(line: TextLine) -> bool:
    """Is the first word set off from the next by a quad? Word spaces measure 0.2 to 0.45 of the size."""
    return len(line.words) > 1 and line.words[1].x0 - line.words[0].x1 > 0.7 * line.size


def _wraps(head: Heading, line: TextLine) -> bool:
    above = head.lines[-1]
    step = line.baseline - above.baseline
    alike = above.size == line.size or above.caps_size == line.caps_size
    if above.page != line.page or not alike or (above.bold, above.italic) != (line.bold, line.italic):
        return False
    if not 0 < step < 1.45 * line.caps_size:
        return False
    if parse_number(squeeze(line.text)) is not None:
        return False
    return _hangs(head.lines[0], line) or not KNOWN.fullmatch(squeeze(line.text))


def _hangs(first: TextLine, line: TextLine) -> bool:
    """Does the line begin where the title begins behind its number? Then it goes on with it, whatever it says."""
    numbered = parse_number(squeeze(first.text)) is not None and len(first.words) > 1
    return numbered and abs(line.x0 - first.words[1].x0) < 1.5 and line.x0 - first.x0 > 0.5 * line.size
