"""Habits of other programs and styles than those the rules began with: Word, tables pulled up to their captions."""

from __future__ import annotations

from pathlib import Path

from extractors.document import read_document
from tests.extractors.paper_builder import BOLD, LOREM, PaperBuilder


def test_a_bold_abstract_is_no_heading(tmp_path: Path) -> None:
    paper = PaperBuilder()
    paper.text("A Study of Bold Abstracts", size=17, font=BOLD)
    paper.text("Abstract", size=10, font=BOLD, step=24)
    paper.y += 8
    for line in (*LOREM, *LOREM[:2]):
        paper.text(line, size=10, font=BOLD)
    for title in ("Introduction", "Methods", "Results", "Conclusion"):
        paper.text(title, size=10, font=BOLD, step=24)
        paper.y += 4
        paper.paragraph(*LOREM)
    sections = read_document(paper.save(tmp_path / "bold.pdf")).sections
    assert [section.title for section in sections] == ["Abstract", "Introduction", "Methods", "Results", "Conclusion"]


def test_bold_cells_of_a_table_without_caption_are_no_headings(tmp_path: Path) -> None:
    paper = PaperBuilder()
    paper.text("A Study of Shaded Tables", size=17, font=BOLD)
    for title in ("Introduction", "Methods", "Results"):
        paper.text(title, size=10, font=BOLD, step=24)
        paper.y += 4
        paper.paragraph(*LOREM)
    paper.text("The table below summarizes the performance of each model:", size=10, font=BOLD, step=24)
    for row in (("Model", "Precision", "Recall", "Size"), ("Plain", "96.4", "93.8", "330")):
        paper.y += 20
        for text, x in zip(row, (80, 190, 300, 410), strict=True):
            paper.text(text, x=x, size=10, font=BOLD, y=paper.y)
    paper.text("Conclusion", size=10, font=BOLD, step=24)
    paper.y += 4
    paper.paragraph(*LOREM)
    sections = read_document(paper.save(tmp_path / "cells.pdf")).sections
    assert [section.title for section in sections] == ["Introduction", "Methods", "Results", "Conclusion"]


def test_header_between_caption_and_the_first_of_two_rules(tmp_path: Path) -> None:
    paper = PaperBuilder()
    paper.paragraph(*LOREM)
    paper.text("Table 3. Overview of parameters of the light", x=72, size=10, step=22)
    top = paper.y
    for index, (name, value) in enumerate(
        [("Parameter", "Value"), ("Sun size", "0.545"), ("Air", "clear day"), ("Ozone", "clear day")]
    ):
        paper.text(name, x=76, size=10, y=top + 14 + 14 * index)
        paper.text(value, x=300, size=10, y=top + 14 + 14 * index)
    paper.rule(72, 540, top + 18)
    paper.rule(72, 540, top + 60)
    (table,) = read_document(paper.save(tmp_path / "word.pdf")).tables
    assert table.grid[0] == ("Parameter", "Value")
    assert table.header_rows == 1


def test_head_of_a_table_pulled_up_to_its_caption(tmp_path: Path) -> None:
    paper = PaperBuilder()
    paper.paragraph(*LOREM)
    paper.text("Table 3: Accuracy in percent on the data sets that", x=150, size=10, step=22)
    paper.text("were cleaned.", x=150, size=10)
    top = paper.y
    paper.rule(150, 420, top - 4)
    rows = [("Method", "Rings", "Moons"), ("Plain", "85.0", "90.4"), ("Ours", "90.2", "98.0")]
    for index, row in enumerate(rows):
        for text, x in zip(row, (156, 260, 350), strict=True):
            paper.text(text, x=x, size=10, y=top + 11 + 12 * index + 4 * (index > 0))
    paper.rule(150, 420, top + 15)
    paper.rule(150, 420, top + 44)
    document = read_document(paper.save(tmp_path / "tight.pdf"))
    (caption,) = document.captions
    assert caption.text.endswith("were cleaned.")
    (table,) = document.tables
    assert table.grid == tuple(rows)


def test_a_plot_above_its_legend_belongs_to_the_figure(tmp_path: Path) -> None:
    paper = PaperBuilder()
    paper.paragraph(*LOREM)
    paper.page.draw_rect((120, 150, 500, 380), width=0.8)
    for x in (150, 250, 350, 450):
        paper.text("0.5", x=x, size=8, y=395)
    paper.text("noise rate", x=290, size=8, y=415)
    for x in (180, 300, 400):
        paper.page.draw_line((x, 440), (x + 30, 440))
    paper.text("plain", x=215, size=8, y=443)
    paper.text("Figure 1: Accuracy against the noise rate.", x=210, size=10, y=465)
    (figure,) = read_document(paper.save(tmp_path / "legend.pdf")).figures
    assert figure.box.y0 <= 151
    assert figure.box.y1 >= 440


def test_drawings_beyond_the_sheet_end_at_its_edge(tmp_path: Path) -> None:
    paper = PaperBuilder()
    paper.paragraph(*LOREM)
    paper.page.draw_rect((-60, 150, 500, 380), width=0.8)
    paper.text("Figure 1: Accuracy against the noise rate.", x=210, size=10, y=400)
    (figure,) = read_document(paper.save(tmp_path / "edge.pdf")).figures
    assert figure.box.x0 == 0


def test_the_only_row_of_a_table_holds_values_alone(tmp_path: Path) -> None:
    paper = PaperBuilder()
    paper.paragraph(*LOREM)
    paper.text("Table 2. Accuracy (%) on digits", x=72, size=10, step=22)
    top = paper.y
    columns = [("SRC", "89.35"), ("CRC", "84.37"), ("LRC", "88.90"), ("Ours", "93.79")]
    for index, (name, value) in enumerate(columns):
        paper.text(name, x=90 + 110 * index, size=10, y=top + 20)
        paper.text(value, x=90 + 110 * index, size=10, y=top + 40)
    for y in (6, 26, 48):
        paper.rule(72, 540, top + y)
    (table,) = read_document(paper.save(tmp_path / "row.pdf")).tables
    assert table.grid == (("SRC", "CRC", "LRC", "Ours"), ("89.35", "84.37", "88.90", "93.79"))
    assert table.stub_columns == 0
