"""Statistics of a release as bar charts in PNG: the form that every viewer of a data set card shows.

Drawn with Pillow, whose font comes with it: no plotting library, no network, the same bytes for the same numbers, and
no text chunks in the file. Non-goal: the interactive charts of a report (`evaluation.report`).
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Final

from pipeline.text import shorten

__all__ = ["bar_chart"]

_SCALE: Final = 2
"""Pixels per unit, for displays with two pixels a point."""
_WIDTH, _ROW, _TOP, _LEFT, _RIGHT = 720, 26, 44, 250, 60
_INK, _BAR, _GRID = (31, 41, 55), (37, 99, 235), (229, 231, 235)
_MOST: Final = 24
"""Bars of a chart; what is left is one bar."""
_LABEL: Final = 34


def bar_chart(title: str, bars: Sequence[tuple[str, float]]) -> bytes:
    """A horizontal bar chart as PNG.

    Args:
        title: above the chart; says what is counted.
        bars: (label, value), values not negative; from the top down.
    """
    from PIL import Image, ImageDraw, ImageFont

    shown = list(bars[:_MOST])
    if len(bars) > _MOST:
        shown.append((f"{len(bars) - _MOST} more", sum(value for _, value in bars[_MOST:])))
    height = _TOP + _ROW * max(1, len(shown)) + 14
    picture = Image.new("RGB", (_WIDTH * _SCALE, height * _SCALE), "white")
    draw = ImageDraw.Draw(picture)
    heading, text = ImageFont.load_default(15 * _SCALE), ImageFont.load_default(12 * _SCALE)
    draw.text((14 * _SCALE, 12 * _SCALE), title, fill=_INK, font=heading)
    most = max((value for _, value in shown), default=0) or 1
    draw.line([(_LEFT * _SCALE, _TOP * _SCALE), (_LEFT * _SCALE, (height - 10) * _SCALE)], fill=_GRID, width=_SCALE)
    for number, (label, value) in enumerate(shown):
        top = _TOP + _ROW * number
        length = (_WIDTH - _LEFT - _RIGHT) * value / most
        name = _drawable(shorten(label, _LABEL).replace("…", "..."))
        draw.text(((_LEFT - 10) * _SCALE, (top + 12) * _SCALE), name, fill=_INK, font=text, anchor="rm")
        draw.rectangle(
            [(_LEFT * _SCALE, (top + 4) * _SCALE), (round((_LEFT + length) * _SCALE), (top + 20) * _SCALE)], fill=_BAR
        )
        at = (round((_LEFT + length + 8) * _SCALE), (top + 12) * _SCALE)
        draw.text(at, f"{value:g}", fill=_INK, font=text, anchor="lm")
    packed = io.BytesIO()
    picture.save(packed, "PNG", optimize=True)
    return packed.getvalue()


def _drawable(text: str) -> str:
    """The built-in font has no glyphs beyond Latin; what it lacks becomes a question mark, not an empty box."""
    return text.encode("latin-1", "replace").decode("latin-1")
