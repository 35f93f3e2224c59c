"""The text layer of one page as words and lines with styles, and the text on it that no reader sees.

Lines come in the order of the page's content stream: measured on two-column papers, the next line is right 98.8 % of
the time, against 28 % after sorting by position. Non-goal: what a line means (heading, caption, table).
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Final

import pymupdf

from extractors._page_text import PageText, TextLine, Word, rotate_box
from extractors._text import append_letter, invisible_share, normalise
from extractors._unseen import Hidden, Pale, drop_covered, drop_pale
from pipeline.paper import Box, HiddenText

__all__ = ["PageText", "TextLine", "Word", "read_layer", "rotate_box"]

_FLAGS: Final = pymupdf.TEXT_PRESERVE_WHITESPACE | pymupdf.TEXT_COLLECT_STYLES | pymupdf.TEXT_ACCURATE_BBOXES
_FILLED, _STROKED = 16, 32  # FZ_STEXT_FILLED, FZ_STEXT_STROKED: text with neither is painted in render mode 3 or 7
_TINY: Final = 1.5
"""Points; the smallest print seen in real papers is 3.0 (second-order subscripts)."""
_LONGEST_WORD: Final = 500
_BOLD_NAME: Final = re.compile(r"bold|medi(?!a)|black|semib|heavy|cmbx|sfbx|demi|-b$|_b\b|\bbd\b", re.IGNORECASE)
_ITALIC_NAME: Final = re.compile(r"ital|obli|cmti|sfti|-it\b", re.IGNORECASE)
_MATH_NAME: Final = re.compile(
    r"cmmi|cmsy|cmex|msam|msbm|math|symbol|mtmi|mtsy|rsfs|eufm|rtxmi|ntxmi|txsy|txex|pxmi|pxsy", re.IGNORECASE
)


class _LineReader:
    """Turns the spans of one raw line into words; keeps what a reader cannot see apart."""

    def __init__(self, bounds: pymupdf.Rect, scanned: bool) -> None:
        self._bounds = bounds
        self.scanned = scanned
        self.hidden: list[Hidden] = []
        self.pale: list[Pale] = []

    def words(self, spans: list[dict[str, Any]], turn: int, size: tuple[float, float]) -> list[Word]:
        found: list[Word] = []
        blank = True
        for span in spans:
            text = "".join(character["c"] for character in span["chars"])
            if not text.strip():
                blank = blank or bool(text)
                continue
            reason = self._reason(span)
            if reason:
                self.hidden.append((reason, normalise(text), Box(*span["bbox"])))
                continue
            self._note_invisible(text, span)
            before = len(found)
            blank = self._add(span, found, blank, turn, size)
            if _is_pale(span["color"]) and len(found) > before:
                self.pale.append((normalise(text), Box(*span["bbox"]), found[before:]))
        return found

    def _reason(self, span: dict[str, Any]) -> str | None:
        if span["size"] < _TINY:
            return f"smaller than {_TINY} points ({span['size']:.2f})"
        if not span["char_flags"] & (_FILLED | _STROKED):
            # Behind a scanned page this is how an OCR layer is stored: the reader sees the same words in the image.
            return None if self.scanned else "painted in an invisible rendering mode"
        if span.get("alpha", 255) < 8:
            return "fully transparent"
        box = pymupdf.Rect(span["bbox"])
        if not box.is_empty and not box.intersects(self._bounds):
            return "outside the page"
        return None

    def _note_invisible(self, text: str, span: dict[str, Any]) -> None:
        zero, tags = invisible_share(text)
        # Joiners occur one at a time in honest text; a run of them carries a message.
        if tags or zero >= 8:
            shown = "".join(chr(ord(c) - 0xE0000) for c in text if 0xE0020 <= ord(c) < 0xE0080)
            self.hidden.append(("written in zero-width characters", shown or ascii(text), Box(*span["bbox"])))

    @staticmethod
    def _add(span: dict[str, Any], found: list[Word], blank: bool, turn: int, page_size: tuple[float, float]) -> bool:
        name, size = span["font"], span["size"]
        bold = bool(span["flags"] & 16) or bool(_BOLD_NAME.search(name))
        italic = bool(span["flags"] & 2) or bool(_ITALIC_NAME.search(name))
        math = bool(_MATH_NAME.search(name))
        last = found[-1] if found and not blank else None
        for character in span["chars"]:
            letter = normalise(_glyph(character["c"], name))
            if not letter.strip():
                if letter or character["c"].isspace():
                    last, blank = None, True
                continue
            x0, y0, x1, y1 = character["bbox"]
            base = character["origin"][1]
            if turn:
                x0, y0, x1, y1 = rotate_box(Box(x0, y0, x1, y1), *page_size, turn)
                base = y1 - 0.22 * (y1 - y0)
            if (
                last is not None
                and last.math == math
                and abs(base - last.baseline) <= 0.15 * size
                and abs(size - last.size) <= 0.25 * last.size
                and len(last.text) < _LONGEST_WORD
                and x0 - last.x1 <= 0.25 * size
            ):
                last.text = append_letter(last.text, letter)
                last.x1, last.y0, last.y1 = max(last.x1, x1), min(last.y0, y0), max(last.y1, y1)
                continue
            glued = not blank and bool(found) and x0 - found[-1].x1 < 0.15 * size
            last = Word(x0, y0, x1, y1, base, size, letter, bold, italic, math, glued)
            found.append(last)
            blank = False
        return blank


def _glyph(character: str, font: str) -> str:
    """Characters that some producers map wrongly (seen in files saved by macOS Quartz): fonts of TeX's symbols."""
    if "CMSY" not in font:
        return character
    return {"\uf8ff": "≤", "!": "→"}.get(character, character)


def _is_pale(color: int) -> bool:
    return min(color >> 16 & 255, color >> 8 & 255, color & 255) >= 0xE8


def _direction(raw: dict[str, Any]) -> int:
    """Degrees clockwise that bring the line upright: 0, 90 (text runs up), 180, 270 (text runs down)."""
    x, y = raw["dir"]
    if abs(x) >= abs(y):
        return 0 if x > 0 else 180
    return 90 if y < 0 else 270


def _is_slanted(raw: dict[str, Any]) -> bool:
    x, y = raw["dir"]
    return bool(min(abs(x), abs(y)) > 0.05)


def read_layer(sheet: pymupdf.Page, number: int) -> PageText:
    """Read the text layer of a page.

    Args:
        sheet: the page; its rotation must have been set to 0, coordinates are those of the unrotated page.
        number: page number from 1.

    Returns:
        Lines in content-stream order. A page whose text mostly runs upwards or downwards (a sideways table, a scan fed
        sideways) is turned upright and says so in `turn`.
    """
    raw = sheet.get_text("rawdict", flags=_FLAGS, clip=pymupdf.INFINITE_RECT())
    blocks = [block for block in raw["blocks"] if block["type"] == 0]
    bounds = sheet.rect
    images = [Box(*(pymupdf.Rect(info["bbox"]) & bounds)) for info in sheet.get_image_info()]
    images = [box for box in images if box.x1 - box.x0 > 2.5 and box.y1 - box.y0 > 2.5]
    area = sum((box.x1 - box.x0) * (box.y1 - box.y0) for box in images)
    turns: Counter[int] = Counter()
    for block in blocks:
        for line in block["lines"]:
            turns[_direction(line)] += sum(len(span["chars"]) for span in line["spans"])
    total = sum(turns.values())
    turn = next((t for t in (90, 180, 270) if total > 40 and turns[t] > 0.6 * total), 0)
    size = (bounds.width, bounds.height)
    page = PageText(number, *(size if turn % 180 == 0 else size[::-1]), [], turn)
    page.images = [rotate_box(box, *size, turn) for box in images]
    reader = _LineReader(bounds, scanned=area > 0.5 * bounds.width * bounds.height)
    for index, block in enumerate(blocks):
        for line in block["lines"]:
            away = _direction(line)
            slanted = _is_slanted(line)
            words = reader.words(line["spans"], away if slanted is False else 0, size)
            if not words:
                continue
            text_line = TextLine(number, index, words)
            if away == turn and not slanted:
                page.lines.append(text_line)
                continue
            if not slanted and away:  # its words were put upright one after the other; its box goes back to the page
                upright = size if away == 180 else size[::-1]
                text_line.box = rotate_box(text_line.box, *upright, 360 - away)
            text_line.box = rotate_box(text_line.box, *size, turn)
            page.vertical.append(text_line)
    drop_pale(sheet, page, reader.pale, reader.hidden)
    if not reader.scanned:
        drop_covered(sheet, page, reader.hidden)
    page.hidden = [
        HiddenText(page=number, box=box, reason=reason, text=text) for reason, text, box in reader.hidden
    ]  # fmt: skip
    _merge_fragments(page)
    return page


def _is_section_number(line: TextLine, edges: Counter[int]) -> bool:
    """`2.1`, `A.`, `Appendix B`; not one of many numbers at one right edge, which count the lines of a review copy."""
    if line.text.isdigit() and sum(edges[round(line.x1 / 3) + shift] for shift in (-1, 0, 1)) >= 8:
        return False
    return bool(re.fullmatch(r"(Appendix )?([A-Z]|[IVX]{2,4}|\d{1,2})(\.\d{1,2})*[.:]?", line.text))


def _merge_fragments(page: PageText) -> None:
    """Join fragments that MuPDF splits at wide word spaces or after a heading's number.

    A gap under 1.3 sizes is a stretched word space (column gaps of prose are 1.6 sizes and more); after a short number
    at a line's start up to 3.2 sizes are allowed (`2.1   Title`).
    """
    edges = Counter(round(line.x1 / 3) for line in page.lines if line.text.isdigit())
    merged: list[TextLine] = []
    for line in page.lines:
        last = merged[-1] if merged else None
        if last is not None and abs(last.baseline - line.baseline) < 0.55 * max(last.size, line.size):
            gap = line.x0 - last.x1
            ends = (line.size, last.size, line.words[0].size, last.words[-1].size)
            script = min(ends) < 0.85 * max(ends)
            lowest = -1.3 if script else -0.3  # a subscript stands under its superscript
            is_number = len(last.text) < 8 and _is_section_number(last, edges)
            widest = 0.6 if line.block != last.block else 3.2 if is_number else 1.3
            if lowest * max(line.size, last.size) < gap < widest * max(line.size, last.size):
                line.words[0].glued = -0.3 * line.size < gap < 0.12 * line.size
                last.words.extend(line.words)
                last.refresh()
                continue
        merged.append(line)
    page.lines = merged
