"""Quantities and grids."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors._quantity import looks_numeric, parse_quantity
from extractors.document import read_document
from pipeline.paper import Table
from tests.extractors.paper_builder import LOREM, PaperBuilder


@pytest.mark.parametrize(
    ("text", "value", "uncertainty", "unit", "decimals"),
    [
        ("90.2 ± 4.4", 90.2, 4.4, None, 1),
        ("90.2±4.4", 90.2, 4.4, None, 1),
        ("45.1 (0.2)", 45.1, 0.2, None, 1),
        ("1,234.5", 1234.5, None, None, 1),
        ("134,206", 134206.0, None, None, 0),
        ("−0.31", -0.31, None, None, 2),
        ("–7.05", -7.05, None, None, 2),
        ("+3.7%", 3.7, None, "%", 1),
        ("87.5 %", 87.5, None, "%", 1),
        ("3.2e-4", 3.2e-4, None, None, 5),
        ("1.5 × 10−3", 1.5e-3, None, None, 4),
        ("2.1x", 2.1, None, "x", 1),
        ("12 ms", 12.0, None, "ms", 0),
        (".5", 0.5, None, None, 1),
        ("81.2*", 81.2, None, None, 1),
        ("81.2†", 81.2, None, None, 1),
        ("< 0.1", 0.1, None, None, 1),
        ("8.1M", 8.1, None, "M", 1),
    ],
)
def test_quantity(text: str, value: float, uncertainty: float | None, unit: str | None, decimals: int) -> None:
    quantity = parse_quantity(text)
    assert quantity is not None
    assert quantity.value == pytest.approx(value)
    assert quantity.uncertainty == (None if uncertainty is None else pytest.approx(uncertainty))
    assert (quantity.unit, quantity.decimals) == (unit, decimals)


@pytest.mark.parametrize(
    "text", ["", "-", "—", "5–25", "1.2.3", "BERT", "GPT2", "v2", "12/34", "Table 3", "2020-01-02"]
)
def test_no_quantity(text: str) -> None:
    assert parse_quantity(text) is None


@given(st.decimals(min_value=-99999, max_value=99999, places=3, allow_nan=False), st.integers(0, 3))
def test_every_printed_decimal_is_read_back(number: object, places: int) -> None:
    printed = f"{float(str(number)):,.{places}f}"
    quantity = parse_quantity(printed)
    assert quantity is not None
    assert quantity.value == float(printed.replace(",", ""))
    assert quantity.decimals == places


@given(st.text(max_size=60))
def test_any_text_is_handled(text: str) -> None:
    quantity = parse_quantity(text)
    if quantity is not None:
        assert looks_numeric(text)
        assert quantity.value == quantity.value


def read(paper: PaperBuilder, path: Path) -> Table:
    paper.y += 40
    paper.paragraph(*LOREM)
    tables = read_document(paper.save(path)).tables
    assert len(tables) == 1
    return tables[0]


def start(caption: str = "Table 1: Accuracy of the methods.") -> PaperBuilder:
    paper = PaperBuilder()
    paper.paragraph(*LOREM)
    paper.text(caption, size=9, step=24)
    return paper


def test_spanning_headers_by_their_rules(tmp_path: Path) -> None:
    paper = start()
    paper.rule(72, 400, paper.y + 8)
    top = paper.y + 8
    for text, x in (("Symmetric", 195), ("Asymmetric", 315)):
        paper.text(text, x=x, size=9, y=top + 12)
    paper.rule(180, 260, top + 15, 0.3)
    paper.rule(300, 385, top + 15, 0.3)
    for text, x in (("Method", 76), ("Rings", 182), ("Moons", 232), ("Rings", 302), ("Moons", 352)):
        paper.text(text, x=x, size=9, y=top + 26)
    paper.rule(72, 400, top + 30)
    for row, name in enumerate(("Plain", "Ours")):
        for column, x in enumerate((182, 232, 302, 352)):
            paper.text(f"{row + 1}{column}.5", x=x, size=9, y=top + 42 + 12 * row)
        paper.text(name, x=76, size=9, y=top + 42 + 12 * row)
    paper.rule(72, 400, top + 60)
    paper.y = top + 70
    table = read(paper, tmp_path / "span.pdf")
    assert table.grid == (
        ("", "Symmetric", "", "Asymmetric", ""),
        ("Method", "Rings", "Moons", "Rings", "Moons"),
        ("Plain", "10.5", "11.5", "12.5", "13.5"),
        ("Ours", "20.5", "21.5", "22.5", "23.5"),
    )
    assert table.header_rows == 2
    assert table.column_headers(2) == ("Symmetric", "Moons")
    assert table.column_headers(3) == ("Asymmetric", "Rings")


def test_vertical_span_of_a_centred_label(tmp_path: Path) -> None:
    paper = start()
    top = paper.y + 8
    for y in (top, top + 16, top + 68):
        paper.rule(72, 400, y)
    for text, x in (("Data", 76), ("Method", 160), ("Score", 300)):
        paper.text(text, x=x, size=9, y=top + 12)
    for row in range(4):
        paper.text(["Plain", "Ours"][row % 2], x=160, size=9, y=top + 28 + 12 * row)
        paper.text(f"{row}.25", x=300, size=9, y=top + 28 + 12 * row)
    paper.text("Rings", x=76, size=9, y=top + 34)
    paper.text("Moons", x=76, size=9, y=top + 58)
    paper.y = top + 80
    table = read(paper, tmp_path / "vertical.pdf")
    assert table.grid[1:] == (
        ("Rings", "Plain", "0.25"),
        ("", "Ours", "1.25"),
        ("Moons", "Plain", "2.25"),
        ("", "Ours", "3.25"),
    )
    assert table.row_labels(2) == ("Rings", "Ours")
    assert table.row_labels(4) == ("Moons", "Ours")


def test_wrapped_cell_is_one_cell(tmp_path: Path) -> None:
    paper = start()
    rows = [
        ["Setting", "Description"],
        ["alpha", "the share of points in each tail of the"],
        ["", "distribution of scores"],
        ["beta", "the temperature"],
    ]
    paper.table(rows, [76, 160], 320)
    assert read(paper, tmp_path / "wrapped.pdf").grid == (
        ("Setting", "Description"),
        ("alpha", "the share of points in each tail of the distribution of scores"),
        ("beta", "the temperature"),
    )


def test_caption_below_the_table(tmp_path: Path) -> None:
    paper = PaperBuilder()
    paper.paragraph(*LOREM)
    paper.y += 10
    paper.table([["Method", "Score"], ["Plain", "1.5"], ["Ours", "2.5"]], [76, 200], 300)
    paper.text("Table 7. Scores of both methods.", size=9, step=16)
    table = read(paper, tmp_path / "below.pdf")
    assert (table.label, table.grid[2]) == ("Table 7", ("Ours", "2.5"))


def test_table_without_rules_around_it(tmp_path: Path) -> None:
    paper = start()
    paper.y += 4
    for row in [
        ["Source", "Yield", "Error"],
        ["Signal", "53.9", "6.2"],
        ["Top", "14.2", "2.4"],
        ["Other", "2.9", "0.9"],
    ]:
        paper.y += 12
        for text, x in zip(row, (80, 200, 300), strict=True):
            paper.text(text, x=x, size=9, y=paper.y)
    table = read(paper, tmp_path / "bare.pdf")
    assert table.grid == (
        ("Source", "Yield", "Error"), ("Signal", "53.9", "6.2"), ("Top", "14.2", "2.4"), ("Other", "2.9", "0.9"),
    )  # fmt: skip
    assert table.header_rows == 1
    assert table.confidence < 0.8


def test_underlined_second_best_is_no_rule_of_the_table(tmp_path: Path) -> None:
    paper = start()
    paper.table([["Method", "Score"], ["Plain", "1.5"], ["Ours", "2.5"], ["Best", "3.5"]], [76, 200], 300)
    baseline = paper.y - 5 - 1.3 * 9
    paper.rule(200, 211.3, baseline + 1.5, 0.4)
    table = read(paper, tmp_path / "underlined.pdf")
    assert [cell.text for cell in table.cells if cell.underlined] == ["2.5"]
    assert len(table.grid) == 4


def test_two_parts_under_one_caption_are_one_table(tmp_path: Path) -> None:
    """A yields table set in two halves side by side was listed twice under one label; a claim's cell was ambiguous."""
    paper = start(
        "Table 4: Yields in the two regions that were searched, set side by side under one caption of this width."
    )
    top = paper.y + 8
    for left, first in ((72, "1.5"), (300, "2.5")):
        for y in (top, top + 16, top + 44):
            paper.rule(left, left + 150, y)
        for text, x in (("Process", left + 4), ("Yield", left + 90)):
            paper.text(text, x=x, size=9, y=top + 12)
        for row, name in enumerate(("Diboson", "Total")):
            paper.text(name, x=left + 4, size=9, y=top + 28 + 12 * row)
            paper.text(first if row == 0 else "9.5", x=left + 90, size=9, y=top + 28 + 12 * row)
    paper.y = top + 60
    table = read(paper, tmp_path / "halves.pdf")
    assert table.grid == (
        ("Process", "Yield"),
        ("Diboson", "1.5"),
        ("Total", "9.5"),
        ("Process", "Yield"),
        ("Diboson", "2.5"),
        ("Total", "9.5"),
    )
    assert {(c.row, c.column): c.text for c in table.cells}[4, 1] == "2.5"
