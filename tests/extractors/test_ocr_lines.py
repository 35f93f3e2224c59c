"""What is measured in the ink of a scan: sizes, baselines, raised marks, spaces, and what is no text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pymupdf
import pytest
from PIL import Image

from extractors._ocr_ink import PageInk
from extractors._ocr_lines import text_lines
from extractors._page_text import TextLine
from pipeline.paper import Box
from tests.extractors.paper_builder import PaperBuilder

SCALE = 72 / 200


def ink_of(paper: PaperBuilder) -> PageInk:
    """The page under construction as Tesseract's page image."""
    pixels = paper.page.get_pixmap(dpi=200, colorspace=pymupdf.csGRAY, alpha=False)
    return PageInk(np.asarray(Image.frombytes("L", (pixels.width, pixels.height), pixels.samples)))


def rows_of(paper: PaperBuilder, *, line_high: bool = False) -> list[dict[str, str]]:
    """The words of the page as Tesseract's rows; with `line_high` all boxes of a line are as high as the line."""
    rows = []
    for x0, y0, x1, y1, text, block, line, _ in paper.page.get_text("words"):
        height = (y1 - y0) if line_high else 0.7 * (y1 - y0)
        rows.append({
            "block_num": str(block), "par_num": "1", "line_num": str(line), "text": text, "conf": "95",
            "left": str(int(x0 / SCALE)), "width": str(int((x1 - x0) / SCALE)),
            "top": str(int((y0 if line_high else y0 + 0.15 * height) / SCALE)), "height": str(int(height / SCALE)),
        })  # fmt: skip
    return rows


def lines_of(paper: PaperBuilder, rows: list[dict[str, str]]) -> list[TextLine]:
    return text_lines(rows, 1, SCALE, ink_of(paper))


@pytest.mark.parametrize("size", [8.0, 9.0, 10.0, 11.0, 14.0])
@pytest.mark.parametrize("line_high", [False, True])
def test_size_and_baseline_come_from_the_ink_not_from_the_boxes(size: float, line_high: bool) -> None:
    paper = PaperBuilder()
    paper.text("In this work we distinguish between the bibliography and its entries", size=size, y=100)
    (line,) = lines_of(paper, rows_of(paper, line_high=line_high))
    assert line.size == pytest.approx(size, abs=0.5)
    assert line.baseline == pytest.approx(100, abs=1)


def test_a_line_with_one_stem_has_the_size_of_its_paragraph() -> None:
    paper = PaperBuilder()
    for index, text in enumerate(
        ("These formats of bibliography entries differ, and so does their iden-", "tification.")
    ):
        paper.text(text, size=11, y=100 + 13 * index)
    rows = rows_of(paper)
    for number, row in enumerate(rows):
        row["block_num"], row["line_num"] = "1", "2" if number == len(rows) - 1 else "1"
    first, second = lines_of(paper, rows)
    assert first.size == second.size


def test_a_raised_number_is_parted_from_the_word_it_opens() -> None:
    paper = PaperBuilder()
    paper.text("5", x=72, size=6, y=96)
    paper.text("The dump was taken in April of the same year", x=75.6, size=9, y=100)
    rows = rows_of(paper, line_high=True)
    for row in rows:
        row["block_num"] = row["line_num"] = "1"
    assert rows[0]["text"] == "5The"
    rows[0]["text"] = "sThe"
    (line,) = lines_of(paper, rows)
    assert [word.text for word in line.words[:2]] == ["5", "The"]
    assert line.words[0].baseline < line.words[1].baseline - 1
    assert line.text.startswith("5The dump")


def test_words_read_as_one_are_cut_where_the_ink_has_a_space() -> None:
    paper = PaperBuilder()
    paper.text("Jiang et al. and Park proposed it", size=10, y=100)
    rows = rows_of(paper)
    first, last = rows[0], rows[2]
    first["width"] = str(int(last["left"]) + int(last["width"]) - int(first["left"]))
    first["text"] = "Jiangetal."
    (line,) = lines_of(paper, [first, *rows[3:]])
    assert line.text == "Jiang et al. and Park proposed it"


def test_a_box_that_holds_more_than_was_read_is_not_cut() -> None:
    paper = PaperBuilder()
    paper.text("Park et al. proposed it", size=10, y=100)
    rows = rows_of(paper)
    rows[0]["width"] = str(int(rows[2]["left"]) + int(rows[2]["width"]) - int(rows[0]["left"]))
    (line,) = lines_of(paper, [rows[0], rows[3]])
    assert line.text == "Park proposed"


def test_a_stroke_after_figure_is_a_one() -> None:
    paper = PaperBuilder()
    paper.text("Figure 1: Illustration of the orientations", size=9, y=100)
    rows = rows_of(paper)
    rows[1]["text"] = "|:"
    (line,) = lines_of(paper, rows)
    assert line.text.startswith("Figure 1: Illustration")


def test_bars_and_clouds_are_drawings_and_words_are_not() -> None:
    paper = PaperBuilder()
    paper.text("A line of running text that was read", size=10, y=100)
    paper.page.draw_rect((100, 200, 220, 204), color=(0.68, 0.85, 0.9), fill=(0.68, 0.85, 0.9))  # a pale bar
    for index in range(30):
        paper.page.draw_circle((300 + 6 * (index % 6), 300 + 6 * (index // 6)), 1.2, fill=(0, 0, 0))
    words = [Box(*word[:4]) for word in paper.page.get_text("words")]
    found = ink_of(paper).drawings(SCALE, words)
    assert len(found) == 2
    bar, cloud = sorted(found, key=lambda box: box.y0)
    assert (bar.x0, bar.x1) == (pytest.approx(100, abs=1.5), pytest.approx(220, abs=1.5))
    assert (cloud.x0, cloud.y1) == (pytest.approx(299, abs=1.5), pytest.approx(325, abs=1.5))


def test_an_empty_page_has_no_ink(tmp_path: Path) -> None:
    ink = ink_of(PaperBuilder())
    assert ink.drawings(SCALE, []) == []
    assert text_lines([], 1, SCALE, ink) == []
