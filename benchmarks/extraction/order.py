"""Reading order of two-column pages: how often is the line that comes next the one that should?

    python benchmarks/extraction/order.py DIRECTORY [--json] [--wrong]

Truth needs no labels: in a column, a line of running text is followed by the one right below it; the last one of the
left column by the first one of the right column, unless something wide stands between. It is taken from the words and
their places alone (PyMuPDF's `get_text("words")`), not from the extractor. A pair is right when the last letters of
the one are directly followed by the first letters of the other in the text. Beside the extractor's passages the same is
asked of PyMuPDF's natural and of its sorted text. Captions and footnotes are texts of their own: their lines must be in
order within. Non-goal: the place of floats, headings, formulas and footnotes in the text, which is a matter of taste.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pymupdf

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from extractors.document import read_document
from pipeline.paper import Document, PassageKind

_KEY = 14
"""Letters on either side of a line break that must stand together: enough to occur only once in most papers."""
_TWO_COLUMNS = 10
"""Lines of running text in either half from which on a page counts as one of two columns."""


class Line(NamedTuple):
    """A printed line within one column."""

    x0: float
    y0: float
    x1: float
    y1: float
    text: str
    caption: bool
    """Stands in a block that begins like a caption."""


class Pair(NamedTuple):
    """Two lines that follow each other."""

    page: int
    first: str
    second: str
    jump: bool
    """From the left to the right column."""


def letters(text: str) -> str:
    """What of a text survives ligatures, accents set as signs of their own (`F¨arber`), hyphens and spaces."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKD", text)).lower().replace("ı", "i")


def lines_of(page: pymupdf.Page) -> list[Line]:
    """Words joined to lines: same block line as the PDF has them, cut where a gutter or a table column is."""
    grouped: dict[tuple[int, int], list[tuple[float, float, float, float, str]]] = {}
    captions = {block[5] for block in page.get_text("blocks") if re.match(r"\s*(Table|Fig(ure|\.))\s*\d", block[4])}
    for x0, y0, x1, y1, word, block, line, _ in page.get_text("words"):
        grouped.setdefault((block, line), []).append((x0, y0, x1, y1, word))
    return [
        Line(min(w[0] for w in words), min(w[1] for w in words), max(w[2] for w in words), max(w[3] for w in words),
             " ".join(w[4] for w in words), block in captions)
        for (block, _), words in grouped.items()
    ]  # fmt: skip


def pairs_of(page: pymupdf.Page, number: int) -> Iterator[Pair]:
    """The pairs of a page of two columns; none for other pages."""
    middle = page.rect.width / 2
    lines = lines_of(page)
    long = [line for line in lines if len(letters(line.text)) > 2 * _KEY]
    halves = [[ln for ln in long if ln.x1 < middle + 6], [ln for ln in long if ln.x0 > middle - 6]]
    if min(map(len, halves)) < _TWO_COLUMNS:
        return
    width = statistics.median(line.x1 - line.x0 for half in halves for line in half)
    height = statistics.median(line.y1 - line.y0 for half in halves for line in half)
    columns = [
        sorted(
            (ln for ln in half if ln.x1 - ln.x0 > 0.9 * width and abs(ln.y1 - ln.y0 - height) < 0.15 * height),
            key=lambda ln: ln.y0,
        )
        for half in halves
    ]  # fmt: skip
    if not all(columns):
        return
    pitch = statistics.median(b.y0 - a.y0 for column in columns for a, b in pairwise(column))
    for column in columns:
        for a, b in pairwise(column):
            if 0.6 * pitch < b.y0 - a.y0 < 1.3 * pitch:
                yield Pair(number, a.text, b.text, jump=False)
    bodies = [[line for line in column if not line.caption] for column in columns]
    if not all(bodies):
        return
    last, first = bodies[0][-1], bodies[1][0]
    wide = any(ln.x0 < middle - 20 and ln.x1 > middle + 20 and first.y0 < ln.y0 < last.y0 for ln in lines)
    if not wide and not _loose_ends(lines, last, first, pitch, middle):
        yield Pair(number, last.text, first.text, jump=True)


def _loose_ends(lines: list[Line], last: Line, first: Line, pitch: float, middle: float) -> bool:
    """Is there more text below the last full line (the end of its paragraph) or above the first one?"""
    below = any(ln.x1 < middle + 6 and last.y0 + 0.5 * pitch < ln.y0 < last.y0 + 1.6 * pitch for ln in lines)
    above = any(ln.x0 > middle - 6 and first.y0 - 1.6 * pitch < ln.y0 < first.y0 - 0.5 * pitch for ln in lines)
    return below or above


def texts_of(document: Document) -> str:
    """The passages in order; behind them the footnotes and the captions."""
    notes = [p.text for p in document.passages if p.kind is PassageKind.FOOTNOTE]
    running = " ".join(p.text for p in document.passages if p.kind is not PassageKind.FOOTNOTE)
    return "|".join(map(letters, [running, *notes, *(caption.text for caption in document.captions)]))


def is_right(pair: Pair, text: str) -> bool:
    """Do the two lines follow each other in the text?"""
    return letters(pair.first)[-_KEY:] + letters(pair.second)[:_KEY] in text


def main() -> None:
    """Ask every two-column paper of a directory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--wrong", action="store_true", help="list the pairs that the extractor has wrong")
    arguments = parser.parse_args()
    totals = {"pairs": 0, "jumps": 0, "extractor": 0, "jumps_right": 0, "natural": 0, "sorted": 0}
    for pdf in sorted(arguments.directory.glob("*.pdf")):
        with pymupdf.open(pdf) as handle:
            pairs = [pair for page in handle for pair in pairs_of(page, page.number + 1)]
            texts = {name: letters(" ".join(page.get_text(sort=name == "sorted") for page in handle))
                     for name in ("natural", "sorted")}  # fmt: skip
        if not pairs:
            continue
        texts["extractor"] = texts_of(read_document(pdf, ocr="off"))
        right = {name: sum(is_right(pair, text) for pair in pairs) for name, text in texts.items()}
        for name, count in right.items():
            totals[name] += count
        jumps = [pair for pair in pairs if pair.jump]
        totals["pairs"] += len(pairs)
        totals["jumps"] += len(jumps)
        totals["jumps_right"] += sum(is_right(pair, texts["extractor"]) for pair in jumps)
        if not arguments.json:
            shares = " ".join(f"{name} {count / len(pairs):.4f}" for name, count in sorted(right.items()))
            print(f"{pdf.stem}: {len(pairs)} pairs, {len(jumps)} jumps: {shares}")
        if arguments.wrong:
            for pair in pairs:
                if not is_right(pair, texts["extractor"]):
                    print(f"  page {pair.page}{' jump' if pair.jump else ''}: {pair.first!r} | {pair.second!r}")
    shares = {name: totals[name] / max(1, totals["pairs"]) for name in ("extractor", "natural", "sorted")}
    print(json.dumps({**{key: totals[key] for key in ("pairs", "jumps", "jumps_right")}, "next_line_right": shares}))


if __name__ == "__main__":
    main()
