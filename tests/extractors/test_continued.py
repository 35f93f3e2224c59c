"""Tables across pages, and sideways ones."""

from __future__ import annotations

from pathlib import Path

import pymupdf
import pytest

from extractors.document import read_document
from extractors.index import units_of
from pipeline.paper import Document
from tests.extractors.paper_builder import LOREM, PaperBuilder

HEAD = ["Method", "Rings", "Moons"]
COLUMNS = [160, 270, 360]


def rows_of(first: int, count: int) -> list[list[str]]:
    """Rows `Method 3 | 83.1 | 93.2`."""
    return [[f"Method {n}", f"{80 + n}.1", f"{90 - n}.2"] for n in range(first, first + count)]


def two_pages(path: Path, *, caption: str | None, head: bool, columns: int = 3, below: bool = False) -> Document:
    """A table at the foot of page 1 and its rest at the head of page 2."""
    paper = PaperBuilder()
    for _ in range(4):
        paper.paragraph(*LOREM)
    paper.text("Table 1: Accuracy in percent.", x=160, size=9, step=22)
    paper.table([HEAD, *rows_of(0, 4)], COLUMNS, 430, x0=156)
    if below:
        paper.y += 20
        paper.paragraph(*LOREM)
    paper.new_page()
    if caption:
        paper.text(caption, x=160, size=9, step=22)
    body = [row[:columns] for row in ([HEAD] if head else []) + rows_of(4, 3)]
    paper.table(body, COLUMNS[:columns], 430, x0=156)
    paper.y += 20
    for _ in range(3):
        paper.paragraph(*LOREM)
    return read_document(paper.save(path), ocr="off")


@pytest.mark.parametrize("caption", ["Table 1: Accuracy in percent (continued).", None])
def test_the_rest_of_a_table_on_the_next_page_is_joined(tmp_path: Path, caption: str | None) -> None:
    document = two_pages(tmp_path / "paper.pdf", caption=caption, head=True)
    (table,) = document.tables
    assert [row[0] for row in table.grid] == ["Method", *(f"Method {n}" for n in range(7))]
    assert table.page == 1
    assert [page for page, _ in table.continued] == [2]
    last = next(cell for cell in table.cells if cell.text == "Method 6")
    assert (last.row, last.page) == (7, 2)
    unit = next(unit for unit in units_of(document) if unit.id == "Table 1 row 7")
    assert (unit.page, unit.boxes[0][0]) == (2, 2)
    assert not any("Method 6" in passage.text for passage in document.passages)


def test_what_does_not_fit_stays_apart(tmp_path: Path) -> None:
    fewer = two_pages(tmp_path / "fewer.pdf", caption=None, head=True, columns=2)
    assert [len(table.grid) for table in fewer.tables] == [5]
    text_between = two_pages(tmp_path / "below.pdf", caption=None, head=True, below=True)
    assert [len(table.grid) for table in text_between.tables] == [5]


@pytest.mark.parametrize("turn", [90, 270])
def test_a_sideways_table_is_read_upright_and_boxes_lie_on_the_page(tmp_path: Path, turn: int) -> None:
    paper = PaperBuilder()
    paper.text("Table 1: Accuracy in percent.", x=160, size=9, step=22)
    paper.table([HEAD, *rows_of(0, 5)], COLUMNS, 430, x0=156)
    upright = paper.save(tmp_path / "upright.pdf")
    sideways = tmp_path / "sideways.pdf"
    with pymupdf.open(upright) as source, pymupdf.open() as target:
        text = PaperBuilder()
        for _ in range(3):
            text.paragraph(*LOREM)
        with pymupdf.open(text.save(tmp_path / "text.pdf")) as first:
            target.insert_pdf(first)
        page = target.new_page(width=612, height=792)
        page.show_pdf_page(pymupdf.Rect(20, 20, 592, 772), source, 0, rotate=turn)
        target.save(sideways)
    (table,) = read_document(sideways, ocr="off").tables
    assert table.grid[0] == ("Method", "Rings", "Moons")
    assert table.grid[5] == ("Method 4", "84.1", "86.2")
    assert table.page == 2
    assert table.box.y1 - table.box.y0 > table.box.x1 - table.box.x0
    assert 0 <= table.box.x0 < table.box.x1 <= 612
    assert 0 <= table.box.y0 < table.box.y1 <= 792
