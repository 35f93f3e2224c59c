"""Figures: the region of images and drawings that belongs to a caption, with the texts inside (axes, legends).

Non-goal: reading values off a plot.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from extractors._captions import FoundCaption
from extractors._layer import PageText, TextLine
from extractors._text import Vocabulary, squeeze
from pipeline.paper import Box, Figure, FloatKind

__all__ = ["figure_region", "read_figures"]

_MARGIN: Final = 0.095
"""Share of the page's height above which running heads stand."""
_PLOT: Final = 24.0
"""Points; the shorter side of the smallest plot."""
_PANEL: Final = re.compile(r"(?:\([a-h]\)\s*)+")
_REACH: Final = 40.0
"""Points of white between a caption and its graphic, or between two parts of one figure."""


def _overlap(a0: float, a1: float, b0: float, b1: float) -> float:
    return min(a1, b1) - max(a0, b0)


def _within(box: Box, other: Box) -> bool:
    return other.x0 - 6 <= box.x0 and box.x1 <= other.x1 + 6 and other.y0 - 3 <= box.y0 and box.y1 <= other.y1 + 3


_LABEL: Final = 40
"""Characters of the longest name of an axis."""


def _is_prose(line: TextLine, body: float, width: float) -> bool:
    return abs(line.size - body) < 0.6 and line.width > 0.6 * width and line.text.count(" ") >= 4


def _graphics(page: PageText) -> list[Box]:
    """Images and drawings, without backgrounds that fill the page."""
    area = page.width * page.height
    return [
        box for box in [*page.images, *page.drawings]
        if (box.x1 - box.x0) * (box.y1 - box.y0) < 0.8 * area and max(box.x1 - box.x0, box.y1 - box.y0) > 4
        and box.x1 > 0 and box.y1 > 0 and box.x0 < page.width and box.y0 < page.height
    ]  # fmt: skip


def figure_region(
    page: PageText, caption: FoundCaption, graphics: Sequence[Box], barriers: Sequence[Box], body: float,
    span: tuple[float, float], *, above: bool,
) -> Box | None:  # fmt: skip
    """The union of the graphics that stack up next to the caption without prose or another float between.

    Args:
        page: text of the page.
        caption: the caption to start from.
        graphics: boxes of images and drawings.
        barriers: boxes of other captions and of tables.
        body: font size of the running text.
        span: left and right edge of the column (or columns) of the caption.
        above: look above the caption (below otherwise).
    """
    walls = [line.box for line in page.lines if _is_prose(line, body, span[1] - span[0])] + list(barriers)
    edge = caption.box.y0 if above else caption.box.y1
    graphics = [
        _cropped(box, edge, page, above=above) for box in graphics if not any(_within(box, wall) for wall in barriers)
    ]
    limit = _wall(walls, span, edge, graphics, above=above)
    inside = [
        box for box in graphics
        if _overlap(box.x0, box.x1, *span) > 0.5 * (box.x1 - box.x0)
        and (limit - 4 <= box.y0 and box.y1 <= edge + 6 if above else edge - 6 <= box.y0 and box.y1 <= limit + 4)
    ]  # fmt: skip
    labels = [
        line.box for line in page.lines
        if len(line.text) <= _LABEL and _overlap(line.box.x0, line.box.x1, *span) > 0
        and (limit <= line.box.y0 and line.box.y1 <= edge + 2 if above else edge - 2 <= line.box.y0 <= limit)
    ]  # fmt: skip
    region: Box | None = None
    drawn, last = set(map(id, inside)), edge
    for box in sorted([*inside, *labels], key=lambda box: -box.y1 if above else box.y0):
        near = edge - box.y1 if above else box.y0 - edge
        if near > _REACH:
            break
        if id(box) not in drawn:  # names of axes stand between caption and drawing, or between a plot and its legend
            edge = min(edge, box.y0) if above else max(edge, box.y1)
            continue
        away = last - box.y1 if above else box.y0 - last
        if region is not None and away > _REACH and not (page.scanned or _is_part(box, region)):
            continue  # the rule of a running head, bars of formulas: text between it and the figure is no label
        region = box if region is None else region.union(box)
        edge = last = region.y0 if above else region.y1
    if region is None or max(region.x1 - region.x0, region.y1 - region.y0) < 24:
        return None
    return region


def _is_part(box: Box, region: Box) -> bool:
    """Is a drawing beyond a row of labels more of the figure: within its width, or a plot above a narrower legend?"""
    if region.x0 - 14 <= box.x0 and box.x1 <= region.x1 + 14:
        return True
    holds = box.x0 <= region.x0 and region.x1 <= box.x1
    return holds and min(box.x1 - box.x0, box.y1 - box.y0) > _PLOT and region.y1 - region.y0 < box.y1 - box.y0


def _cropped(box: Box, edge: float, page: PageText, *, above: bool) -> Box:
    """A picture that reaches beyond the caption was cropped when it was set; the file says its whole size.

    Not one that reaches into the margin of the page as well: that is a background or has white edges of its own.
    """
    beyond = box.y1 - edge if above else edge - box.y0
    margin = _MARGIN * page.height
    if not 6 < beyond < 0.4 * (box.y1 - box.y0) or box.y0 < margin or box.y1 > page.height - margin:
        return box
    return Box(box.x0, box.y0, box.x1, edge) if above else Box(box.x0, edge, box.x1, box.y1)


def _on_page(box: Box, page: PageText) -> Box:
    """Drawings may run beyond the sheet; a reader sees what is on it."""
    return Box(max(box.x0, 0.0), max(box.y0, 0.0), min(box.x1, page.width), min(box.y1, page.height))


def _wall(
    walls: Sequence[Box], span: tuple[float, float], edge: float, graphics: Sequence[Box], *, above: bool
) -> float:
    """Where prose or another float ends the search; text that lies inside a graphic is no wall."""
    facing = [
        wall for wall in walls
        if _overlap(wall.x0, wall.x1, *span) > 0 and (wall.y1 <= edge + 2 if above else wall.y0 >= edge - 2)
        and not any(g.x0 - 2 <= wall.x0 and wall.x1 <= g.x1 + 2 and g.y0 - 2 <= wall.y0 and wall.y1 <= g.y1 + 2
                    for g in graphics)
    ]  # fmt: skip
    if above:
        return max((wall.y1 for wall in facing), default=0.0)
    return min((wall.y0 for wall in facing), default=1e9)


def _span(page: PageText, caption: FoundCaption) -> tuple[float, float]:
    middle = page.width / 2
    if page.columns < 2 or (caption.box.x0 < middle - 20 and caption.box.x1 > middle + 20):
        return 0.0, page.width
    left = (caption.box.x0 + caption.box.x1) / 2 < middle
    return (0.0, middle + 4) if left else (middle - 4, page.width)


def _beside(captions: Sequence[FoundCaption], caption: FoundCaption, span: tuple[float, float]) -> tuple[float, float]:
    """Two captions at one height (side-by-side figures): the boundary is half-way between them."""
    left, right = span
    for other in captions:
        if other is caption or abs(other.box.y0 - caption.box.y0) > 30:
            continue
        if other.box.x1 < caption.box.x0 and other.box.x1 > left:
            left = (other.box.x1 + caption.box.x0) / 2
        elif other.box.x0 > caption.box.x1 and other.box.x0 < right:
            right = (other.box.x0 + caption.box.x1) / 2
    return left, right


def read_figures(
    page: PageText, captions: Sequence[FoundCaption], tables: Sequence[Box], body: float, vocabulary: Vocabulary
) -> list[tuple[Figure, list[TextLine]]]:
    """The figures of a page with the text lines that they contain; boxes are in the upright frame.

    A caption without any graphic near it (a figure made of text) gives a figure whose box is the caption's.
    """
    graphics = _graphics(page)
    found: list[tuple[Figure, list[TextLine]]] = []
    used: list[Box] = []
    for caption in captions:
        if caption.kind is not FloatKind.FIGURE:
            continue
        span = _beside(captions, caption, _span(page, caption))
        barriers = [other.box for other in captions if other is not caption] + list(tables) + used
        region = None
        for above in (True, False):
            region = figure_region(page, caption, graphics, barriers, body, span, above=above)
            if region is not None:
                break
        if region is not None:
            used.append(region)
        found.append(_figure(page, caption, region, span, vocabulary, body, [*barriers, *tables]))
    return found


def _title_above(page: PageText, region: Box, body: float) -> TextLine | None:
    """The title inside a scanned picture: a line by itself right above what is drawn, with white above it too."""
    near = [
        line for line in page.lines
        if region.y0 - 2 * body < line.baseline < region.y0 + body and line.box.y0 < region.y0
        and region.x0 - body <= line.x0 and line.x1 <= region.x1 + body
    ]  # fmt: skip
    if len(near) != 1:
        return None
    title = near[0]
    alone = not any(
        0 < title.baseline - line.baseline < 1.6 * max(body, title.size) and line.x0 < title.x1 and line.x1 > title.x0
        for line in page.lines
    )
    return title if alone else None


def _figure(
    page: PageText, caption: FoundCaption, region: Box | None, span: tuple[float, float], vocabulary: Vocabulary,
    body: float, barriers: Sequence[Box],
) -> tuple[Figure, list[TextLine]]:  # fmt: skip
    inside: list[TextLine] = []
    texts: list[str] = []
    if region is not None:
        own = {id(line) for line in caption.lines}
        margin = 14.0  # tick and axis labels stand outside the drawn frame, titles of panels further above it
        below = max(region.y1 + margin, min(caption.box.y0, region.y1 + 2 * margin))
        near = Box(region.x0 - margin, region.y0 - 2 * margin, region.x1 + margin, below)
        sideways = {id(line) for line in page.vertical}
        for line in [*page.lines, *page.vertical]:
            x, y = (line.box.x0 + line.box.x1) / 2, (line.box.y0 + line.box.y1) / 2
            reach = 22.0 if id(line) in sideways else 0.0  # the title of the y axis stands beyond its tick labels
            if any(box.x0 <= x <= box.x1 and box.y0 <= y <= box.y1 for box in barriers):
                continue
            if id(line) in own or not (near.x0 - reach <= x <= near.x1 + reach and near.y0 <= y <= near.y1):
                continue
            outside = not (region.x0 <= x <= region.x1 and region.y0 <= y <= region.y1)
            between = region.y1 <= y <= caption.box.y0 and region.x0 <= x <= region.x1
            running = not between and (abs(line.size - body) < 0.4 or (line.bold and line.size > body))
            if outside and (_is_prose(line, body, span[1] - span[0]) or running or len(line.text) > 40):
                continue
            inside.append(line)
            texts.append(squeeze(line.text))
        for line in inside:
            region = region.union(line.box)
        if page.scanned:
            title = _title_above(page, region, body)
            if title is not None and id(title) not in set(map(id, inside)):
                inside.append(title)
                texts.insert(0, squeeze(title.text))
                region = region.union(title.box)
            found = {id(line) for line in inside} | own
            for line in page.lines:  # legends under the drawing, labels beside its bars
                x, y = (line.box.x0 + line.box.x1) / 2, (line.box.y0 + line.box.y1) / 2
                if id(line) not in found and region.x0 <= x <= region.x1 and region.y0 <= y <= region.y1:
                    inside.append(line)
                    texts.append(squeeze(line.text))
        for line in page.lines:  # names of panels stand beyond the labels of their axes
            x, y = (line.box.x0 + line.box.x1) / 2, (line.box.y0 + line.box.y1) / 2
            within = region.x0 <= x <= region.x1 and region.y0 - 2 * margin <= y <= region.y1 + 2 * margin
            if within and id(line) not in own and _PANEL.fullmatch(line.text.strip()):
                inside.append(line)
                region = region.union(line.box)
    figure = Figure(
        label=caption.label,
        caption=caption.text(vocabulary),
        page=page.number,
        box=_on_page(region or caption.box, page),
        texts=tuple(text for text in texts if text),
    )
    return figure, inside
