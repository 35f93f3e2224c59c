"""The ink of a page image as connected components, and what of it is no text: rules, drawings and pictures.

Non-goal: what any of it says or shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from extractors._rules import Rule, merge_rules
from pipeline.paper import Box

__all__ = ["PageInk", "image_rules"]

_LARGER_THAN_LETTERS: Final = 30.0
"""Points; initials of chapters stay below, words whose letters touch measured up to 26."""
_UNREAD: Final = 12.0
"""Points; bars and clouds of points that OCR did not take for words. Letters that it overlooked are smaller."""
_POINT: Final = 1.0
"""Points; smaller ink is dust."""
_CLOUD: Final = 10.0
"""Points: how near to each other the pieces of one cloud are."""
_MANY: Final = 10
"""Pieces of ink that make a cloud; a word that was overlooked has fewer."""
_PALER: Final = 25
"""Levels of grey by which a light fill (205 on white) differs from the paper; noise of scanners stays below 15."""


class PageInk:
    """Connected components of a page image.

    Attributes:
        boxes: their boxes in pixels, one row (x0, y0, x1, y1) each.
    """

    def __init__(self, grey: npt.NDArray[np.uint8]) -> None:
        from scipy import ndimage  # 0.4 s to load, and most papers need no OCR

        level = float(np.median(grey)) - _PALER
        self._shape = grey.shape
        self._labels, count = ndimage.label(grey < level, structure=np.ones((3, 3), dtype=np.int8))
        self.boxes: npt.NDArray[np.int32] = np.array(
            [(x.start, y.start, x.stop, y.stop) for y, x in ndimage.find_objects(self._labels)], dtype=np.int32
        ).reshape(count, 4)
        self._middle = (self.boxes[:, :2] + self.boxes[:, 2:]) / 2

    def within(self, x0: float, y0: float, x1: float, y1: float) -> npt.NDArray[np.int32]:
        """Boxes of the components whose middle lies in a box; pixels."""
        x, y = self._middle[:, 0], self._middle[:, 1]
        found: npt.NDArray[np.int32] = self.boxes[(x0 <= x) & (x <= x1) & (y0 <= y) & (y <= y1)]
        return found

    def drawings(self, scale: float, words: Sequence[Box]) -> list[Box]:
        """Boxes of ink that is no text, in points: axes, frames, bars, pictures; so figures are known on scans too.

        Args:
            scale: points per pixel.
            words: boxes of the words that were read, in points.
        """
        from scipy import ndimage

        if not len(self.boxes):
            return []
        read = np.zeros(self._shape, dtype=bool)
        for word in words:
            x0, y0, x1, y1 = (max(0, int(side / scale)) for side in word)
            read[y0 : y1 + 1, x0 : x1 + 1] = True
        covered = ndimage.mean(read, self._labels, np.arange(1, len(self.boxes) + 1))
        height, width = self._shape
        within = (self.boxes[:, :2] > 0).all(axis=1) & (self.boxes[:, 2] < width) & (self.boxes[:, 3] < height)
        long = (self.boxes[:, 2:] - self.boxes[:, :2]).max(axis=1) * scale
        unread = within & (covered < 0.5)  # what touches the edge is the shadow of the sheet
        large = (within & (long > _LARGER_THAN_LETTERS)) | (unread & (long > _UNREAD))
        boxes = [*self.boxes[large].tolist(), *self._clouds(unread & (long > _POINT) & ~large, _CLOUD / scale)]
        return [Box(x0 * scale, y0 * scale, x1 * scale, y1 * scale) for x0, y0, x1, y1 in boxes]

    def _clouds(self, chosen: npt.NDArray[np.bool_], pitch: float) -> list[tuple[int, int, int, int]]:
        """Boxes of many small pieces of ink close together (the points of a scatter plot), in pixels."""
        from scipy import ndimage

        places = (self._middle[chosen] / pitch).astype(int)
        grid = np.zeros((int(self._shape[1] / pitch) + 1, int(self._shape[0] / pitch) + 1), dtype=bool)
        grid[places[:, 0], places[:, 1]] = True
        groups, count = ndimage.label(grid, structure=np.ones((3, 3), dtype=np.int8))
        own, boxes = groups[places[:, 0], places[:, 1]], self.boxes[chosen]
        members = [boxes[own == group] for group in range(1, count + 1)]
        return [
            (int(m[:, 0].min()), int(m[:, 1].min()), int(m[:, 2].max()), int(m[:, 3].max()))
            for m in members if len(m) >= _MANY
        ]  # fmt: skip


def image_rules(grey: npt.NDArray[np.uint8], scale: float) -> list[Rule]:
    """Horizontal lines of a rendered page: dark runs of at least 24 points, at most 2.5 points thick."""
    dark = grey < 128
    shortest, thickest = int(24 / scale), 2.5 / scale
    rules: list[Rule] = []
    for y in map(int, np.flatnonzero(dark.sum(axis=1) >= shortest)):
        edges = np.diff(np.concatenate(([0], dark[y].view(np.int8), [0])))
        for start, end in zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), strict=True):
            if end - start < shortest:
                continue
            reach = int(thickest) + 1
            above = float(dark[y - reach, start:end].mean()) if y >= reach else 0.0
            below = float(dark[y + reach, start:end].mean()) if y + reach < len(dark) else 0.0
            if above < 0.5 and below < 0.5:
                rules.append(Rule(float(start) * scale, float(end) * scale, float(y) * scale))
    return merge_rules(rules, distance=1.6, gap=3.0)
