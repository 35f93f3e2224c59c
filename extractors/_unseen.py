"""Printed text that no reader sees: of the colour of its background, or under a picture or a filled area.

Both are judged by rendering the spot. What is invisible by its own properties (size, place, rendering mode) is sorted
out while words are read, in `extractors._layer`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pymupdf

from extractors._page_text import PageText, Word
from pipeline.paper import Box

__all__ = ["Hidden", "Pale", "drop_covered", "drop_pale"]

Pale = tuple[str, Box, list[Word]]
"""Text in a very light colour, its box, and its words."""
Hidden = tuple[str, str, Box]
"""Reason, text and box in the page's own frame."""

_FLAT: Final = 24
"""Grey levels: less contrast than this is none to an eye."""
_LONG_LOG: Final = 20_000
"""Painting steps beyond which covers are not looked for: such pages are drawings."""


def drop_pale(sheet: pymupdf.Page, page: PageText, pale: Sequence[Pale], hidden: list[Hidden]) -> None:
    """White text is hidden only where it does not stand out: the spot is rendered and its contrast measured.

    White on a dark table head gives a range of 150 and more of 255 grey levels, white on white gives under 24.
    """
    gone: set[int] = set()
    for text, box, words in pale:
        if _contrast(sheet, box) < _FLAT:
            hidden.append(("the colour of its background", text, box))
            gone.update(map(id, words))
    if not gone:
        return
    for lines in (page.lines, page.vertical):
        for line in lines:
            line.words = [word for word in line.words if id(word) not in gone]
            if line.words:
                line.refresh()
        lines[:] = [line for line in lines if line.words]


def drop_covered(sheet: pymupdf.Page, page: PageText, hidden: list[Hidden]) -> None:
    """Text that an opaque picture or filled area was painted over: the reader of the page does not see it.

    Behind a scan the text is what the picture shows, so whole-page pictures do not count. Whether a filled area hides
    what is under it is measured: the spot is rendered, and hidden text leaves no contrast.
    """
    log = sheet.get_bboxlog()
    covers = [
        (order, kind, Box(*box)) for order, (kind, box) in enumerate(log)
        if kind in ("fill-image", "fill-path", "fill-shade") and box[2] - box[0] > 12 and box[3] - box[1] > 5
    ]  # fmt: skip
    if not covers or len(log) > _LONG_LOG:
        return
    masked = {
        tuple(round(x) for x in info["bbox"]) for info in sheet.get_image_info() if info.get("has-mask")
    }  # fmt: skip
    painted = [(order, Box(*box)) for order, (kind, box) in enumerate(log) if "text" in kind]
    gone: set[int] = set()
    for line in [*page.lines, *page.vertical]:
        box = page.to_page(line.box)
        over = [(order, kind, cover) for order, kind, cover in covers if _encloses(cover, box)]
        if not over:
            continue
        own = max((order for order, text in painted if _meet(text, box)), default=-1)
        later = [(kind, cover) for order, kind, cover in over if own >= 0 and order > own]
        picture = any(kind == "fill-image" and tuple(round(x) for x in cover) not in masked for kind, cover in later)
        if later and (picture or _contrast(sheet, box) < _FLAT):
            hidden.append(("under a picture or a filled area", line.text, box))
            gone.add(id(line))
    page.lines = [line for line in page.lines if id(line) not in gone]
    page.vertical = [line for line in page.vertical if id(line) not in gone]


def _encloses(cover: Box, box: Box) -> bool:
    return cover.x0 <= box.x0 + 1 and cover.x1 >= box.x1 - 1 and cover.y0 <= box.y0 + 2 and cover.y1 >= box.y1 - 2


def _meet(one: Box, other: Box) -> bool:
    wide = min(one.x1, other.x1) - max(one.x0, other.x0)
    high = min(one.y1, other.y1) - max(one.y0, other.y0)
    return wide > 1 and high > 0.4 * (other.y1 - other.y0)


def _contrast(sheet: pymupdf.Page, box: Box) -> int:
    """Range of grey levels at a spot of the page as a viewer shows it."""
    clip = pymupdf.Rect(*box) & sheet.rect
    if clip.is_empty:
        return 255
    pixels = sheet.get_pixmap(dpi=100, clip=clip, colorspace=pymupdf.csGRAY, alpha=False)
    grey = np.frombuffer(pixels.samples, dtype=np.uint8)
    return int(grey.max()) - int(np.percentile(grey, 2)) if grey.size else 255
