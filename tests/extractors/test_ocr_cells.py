"""Tables of scanned pages: signs found by their shape, cells read one by one."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pymupdf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors._ocr_cells import _with_points
from extractors._ocr_glyphs import Glyph, is_plus_minus
from extractors._ocr_regions import PrintedLine, find_regions
from extractors._rules import Rule
from extractors.document import read_document
from tests.extractors.paper_builder import LOREM, PaperBuilder, scan

needs_tesseract = pytest.mark.skipif(shutil.which("tesseract") is None, reason="Tesseract is not installed")


def ink_of(text: str, size: float = 30.0) -> np.ndarray:
    """The tight bitmap of a sign."""
    with pymupdf.open() as document:
        page = document.new_page(width=80, height=80)
        page.insert_text((20, 50), text, fontsize=size, fontname="helv")
        pixels = page.get_pixmap(dpi=100, colorspace=pymupdf.csGRAY)
        grey = np.frombuffer(pixels.samples, np.uint8).reshape(pixels.height, pixels.stride)[:, : pixels.width]
    dark = grey < 170
    rows, columns = np.flatnonzero(dark.any(axis=1)), np.flatnonzero(dark.any(axis=0))
    return dark[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def test_plus_minus_is_told_from_what_looks_like_it() -> None:
    for size in (14.0, 20.0, 30.0):
        assert is_plus_minus(ink_of("±", size))
    for other in "+=-2Zz3E5t#8B":
        assert not is_plus_minus(ink_of(other)), other


def digits(count: int, point_after: int | None) -> list[Glyph]:
    """Digits of 20 pixels side by side, with a dot on the line behind one of them."""
    glyphs = [Glyph(20 * n, 0, 20 * n + 14, 20) for n in range(count)]
    if point_after is not None:
        glyphs.append(Glyph(20 * point_after - 5, 17, 20 * point_after - 2, 20))
    return glyphs


@given(st.integers(2, 8), st.data())
def test_a_lost_decimal_point_comes_back_where_the_dot_is(count: int, data: st.DataObject) -> None:
    read = data.draw(st.text("0123456789", min_size=count, max_size=count))
    place = data.draw(st.integers(1, count - 1))
    assert _with_points(read, digits(count, place), 20) == f"{read[:place]}.{read[place:]}"
    assert _with_points(read, digits(count, None), 20) == read
    assert _with_points(read, digits(count + 1, place), 20) == read  # a digit was not read: the place is not certain


def test_words_stay_as_they_are() -> None:
    for text in ("accuracy", "BERT-base", "fig.", "±", "top-1"):
        assert _with_points(text, digits(3, 1), 20) == text


def test_regions_are_frames_of_rules_without_prose() -> None:
    rules = [Rule(100, 400, y) for y in (100.0, 120.0, 200.0)]
    row = PrintedLine(110, 390, 130, "BERT 80.5 88.5")
    (region,) = find_regions(rules, [row], 0.36)
    assert region.holds(250 / 0.36, 150 / 0.36)
    assert not region.holds(250 / 0.36, 300 / 0.36)
    prose = [
        PrintedLine(100, 400, 125 + 12 * n, "as we have seen in the first of the experiments above") for n in range(4)
    ]
    assert [round(r.y1 * 0.36) for r in find_regions(rules, prose, 0.36)] == [119]
    assert find_regions([Rule(100, 400, 100.0), Rule(100, 300, 200.0)], [], 0.36) == []


@pytest.mark.parametrize(
    "between",
    [
        PrintedLine(150, 350, 150, "Table 2: Seconds."),
        PrintedLine(72, 500, 150, "A line of the page, wider than both."),
    ],
)
def test_two_tables_of_one_width_are_two_regions(between: PrintedLine) -> None:
    """What happened: the caption between them was cut to the tables' width and read as `Table 2: onds.`."""
    rules = [Rule(100, 400, y) for y in (80.0, 120.0)] + [Rule(102, 398, y) for y in (180.0, 220.0)]
    assert len(find_regions(rules, [between], 0.36)) == 2
    assert len(find_regions(rules, [PrintedLine(110, 390, 150, "BERT 80.5 88.5")], 0.36)) == 1


@needs_tesseract
def test_numbers_of_a_scanned_table_are_read_with_points_and_uncertainties(tmp_path: Path) -> None:
    paper = PaperBuilder()
    paper.paragraph(*LOREM)
    paper.text("Table 1: Accuracy in percent, mean over ten seeds.", x=160, size=9, step=22)
    rows = [
        ["Method", "Rings", "Moons", "Seconds"],
        ["Plain", "85.0 ± 3.6", "90.41", "0.07"],
        ["Trimming", "89.0 ± 4.0", "97.30", "1.1"],
        ["Ours", "90.2 ± 4.4", "98.06", "14.2"],
    ]
    paper.table(rows, [160, 250, 340, 420], 480, x0=156)
    paper.y += 20
    paper.paragraph(*LOREM)
    document = read_document(scan(paper.save(tmp_path / "paper.pdf"), tmp_path / "scan.pdf"))
    (table,) = document.tables
    assert [list(row) for row in table.grid] == rows
    assert table.confidence < 0.7
    run = document.pages[0].ocr
    assert run is not None
    assert (run.engine, run.dpi) == ("tesseract", 200)
