"""Pictures of tables: upright, and in one piece where the table goes on on the next page."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pymupdf
import pytest
from PIL import Image

from extractors.crops import table_pictures
from extractors.document import read_document
from pipeline.paper import Document
from tests.extractors.paper_builder import LOREM, PaperBuilder

DPI = 72  # a pixel is a point
COLUMNS = [160.0, 270.0, 360.0]


def rows_of(first: int, count: int) -> list[list[str]]:
    return [[f"Method {n}", f"{80 + n}.1", f"{90 - n}.2"] for n in range(first, first + count)]


def read(path: Path, *, shift: int = 0) -> Document:
    """A table over two pages; the second part `shift` points further right, under a repeated header."""
    paper = PaperBuilder()
    paper.paragraph(*LOREM)
    paper.text("Table 1: Accuracy in percent on both of the problems.", x=130, size=9, step=22)
    paper.table([["Method", "Rings", "Moons"], *rows_of(0, 4)], COLUMNS, 430, x0=156)
    paper.new_page()
    paper.text("Table 1: Accuracy in percent (continued).", x=160, size=9, step=22)
    moved = [x + shift for x in COLUMNS]
    paper.table([["Method", "Rings", "Moons"], *rows_of(4, 3)], moved, 430 + shift, x0=156 + shift)
    return read_document(paper.save(path), ocr="off")


def dark(picture: bytes) -> npt.NDArray[np.bool_]:
    return np.asarray(Image.open(io.BytesIO(picture)).convert("L")) < 190


def rule_starts(ink: npt.NDArray[np.bool_]) -> list[int]:
    """Left ends of the horizontal rules, from top to bottom."""
    return [int(np.flatnonzero(row)[0]) for row in ink if row.sum() > 200 and row.mean() < 0.98]


@pytest.mark.parametrize("shift", [0, 8])
def test_a_table_across_pages_is_one_picture_with_its_columns_in_line(tmp_path: Path, shift: int) -> None:
    document = read(tmp_path / "paper.pdf", shift=shift)
    (table,) = document.tables
    assert [page for page, _ in table.continued] == [2]
    (picture,) = table_pictures(tmp_path / "paper.pdf", document, [table], dpi=DPI)
    starts = rule_starts(dark(picture))
    assert len(starts) >= 4, "rules of both parts"
    assert max(starts) - min(starts) <= 1
    (alone,) = table_pictures(tmp_path / "paper.pdf", document, [table.evolve(continued=())], dpi=DPI)
    added = dark(picture).shape[0] - dark(alone).shape[0]
    ((_, box),) = table.continued
    assert 0.5 * (box.y1 - box.y0) < added < box.y1 - box.y0 + 8, "the repeated header is left out"


def test_marks_go_to_the_page_of_their_cell(tmp_path: Path) -> None:
    document = read(tmp_path / "paper.pdf")
    (table,) = document.tables
    row = next(n for n, cells in enumerate(table.grid) if cells[0] == "Method 6")
    page, box = table.place_of(row, 1)
    assert page == 2
    plain, marked = (
        np.asarray(Image.open(io.BytesIO(table_pictures(tmp_path / "paper.pdf", document, [table], highlight=h)[0])))
        for h in ({}, {page: [box]})
    )
    changed = np.flatnonzero((plain != marked).any(axis=(1, 2)))
    assert changed[0] > 0.7 * len(plain), "the last row, at the foot of the picture"


def test_a_table_too_long_to_be_legible_has_its_header_on_each_picture(tmp_path: Path) -> None:
    paper = PaperBuilder()
    for page in range(3):
        if page:
            paper.new_page()
        said = " (continued)" if page else ""
        paper.text(f"Table 1: Accuracy in percent{said}.", x=160, size=9, step=22)
        paper.table([["Method", "Rings", "Moons"], *rows_of(40 * page, 40)], COLUMNS, 430, x0=156)
    document = read_document(paper.save(tmp_path / "long.pdf"), ocr="off")
    (table,) = document.tables
    assert len(table.continued) == 2
    pictures = table_pictures(tmp_path / "long.pdf", document, [table], dpi=DPI)
    assert len(pictures) > 1
    assert all(len(dark(picture)) <= 1100 + 40 for picture in pictures)
    first, second = (np.flatnonzero(dark(picture).sum(axis=1) > 200) for picture in pictures[:2])
    assert second[0] < 12, "the header's own rule stands first"
    assert len(first)


@pytest.mark.parametrize("turn", [90, 270])
def test_a_sideways_table_is_shown_upright(tmp_path: Path, turn: int) -> None:
    paper = PaperBuilder()
    paper.text("Table 1: Accuracy in percent.", x=160, size=9, step=22)
    paper.table([["Method", "Rings", "Moons"], *rows_of(0, 5)], COLUMNS, 430, x0=156)
    upright = paper.save(tmp_path / "upright.pdf")
    sideways = tmp_path / "sideways.pdf"
    with pymupdf.open(upright) as source, pymupdf.open() as target:
        page = target.new_page(width=792, height=612)
        page.show_pdf_page(page.rect, source, 0, rotate=turn)
        target.save(sideways)
    pictures = []
    for path in (upright, sideways):
        document = read_document(path, ocr="off")
        (table,) = document.tables
        pictures += [dark(picture) for picture in table_pictures(path, document, [table], dpi=DPI)]
    straight, turned = pictures
    assert turned.shape[1] > turned.shape[0]
    assert turned.shape == pytest.approx(straight.shape, abs=4)
    rules = [np.flatnonzero(ink.sum(axis=1) > 200) / len(ink) for ink in (straight, turned)]
    assert rules[1][0] == pytest.approx(rules[0][0], abs=0.05)
    assert rules[1][-1] == pytest.approx(rules[0][-1], abs=0.05)
