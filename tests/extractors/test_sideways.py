"""Labels turned by 90 degrees inside an upright table get their cells."""

from __future__ import annotations

from pathlib import Path

from extractors.document import read_document
from pipeline.paper import Table
from tests.extractors.paper_builder import LOREM, PaperBuilder

ROWS = [
    ["Model", "Rings", "Moons"], ["Plain", "85.0", "90.4"], ["Trimmed", "89.0", "97.3"], ["Ours", "90.2", "98.0"],
    ["Plain", "61.0", "62.4"], ["Trimmed", "64.0", "67.3"], ["Ours", "65.2", "68.0"],
]  # fmt: skip


def table_of(paper: PaperBuilder, path: Path) -> Table:
    (table,) = read_document(paper.save(path)).tables
    return table


def start() -> PaperBuilder:
    paper = PaperBuilder()
    paper.paragraph(*LOREM)
    paper.text("Table 1: Accuracy in percent.", x=160, size=9, step=22)
    return paper


def test_names_of_row_groups_become_a_column(tmp_path: Path) -> None:
    paper = start()
    top = paper.y + 8
    paper.table(ROWS, [180, 270, 360], 430, x0=156)
    pitch = 1.3 * 9
    for name, middle in (("clean", 3), ("noisy", 6)):  # each beside the middle one of its three rows
        y = top + middle * pitch + 1
        paper.page.insert_text((168, y + 10), name, fontsize=8, fontname="tiro", rotate=90)
    table = table_of(paper, tmp_path / "groups.pdf")
    assert [row[0] for row in table.grid] == ["", "clean", "", "", "noisy", "", ""]
    assert [row[1] for row in table.grid] == [row[0] for row in ROWS]
    spans = {cell.text: (cell.row, cell.row_span) for cell in table.cells if cell.column == 0}
    assert spans["clean"] == (1, 3)
    assert spans["noisy"] == (4, 3)
    assert table.stub_columns == 2


def test_turned_heads_of_columns(tmp_path: Path) -> None:
    paper = start()
    top = paper.y + 8
    paper.rule(156, 430, top)
    for name, x in (("Rings", 283), ("Moons", 373)):
        paper.page.insert_text((x, top + 32), name, fontsize=9, fontname="tiro", rotate=90)
    paper.text("Model", x=180, size=9, y=top + 32)
    paper.rule(156, 430, top + 38)
    for index, (name, *values) in enumerate(ROWS[1:4], 1):
        for text, x in zip((name, *values), (180, 270, 360), strict=True):
            paper.text(text, x=x, size=9, y=top + 38 + 12 * index)
    paper.rule(156, 430, top + 84)
    table = table_of(paper, tmp_path / "heads.pdf")
    assert table.grid[0] == ("Model", "Rings", "Moons")
    assert table.header_rows == 1
    assert table.grid[1] == ("Plain", "85.0", "90.4")


def test_text_in_the_margin_is_no_label(tmp_path: Path) -> None:
    paper = start()
    paper.table(ROWS, [180, 270, 360], 430, x0=156)
    paper.page.insert_text((30, 300), "a stamp in the margin", fontsize=9, fontname="tiro", rotate=90)
    table = table_of(paper, tmp_path / "stamp.pdf")
    assert table.grid == tuple(map(tuple, ROWS))
