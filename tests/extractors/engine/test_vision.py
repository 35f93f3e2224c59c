"""Grids against transcriptions of their pictures."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from extractors.engine.vision import compare

CELLS = st.text(alphabet="abc 0123456789.±−-%", max_size=8)
GRIDS = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1, max_size=5)
)


@given(GRIDS)
def test_a_grid_agrees_with_itself(grid: list[list[str]]) -> None:
    assert compare(grid, grid) == (len(grid) * len(grid[0]), (), "")


@given(GRIDS)
def test_blanks_and_kinds_of_dashes_do_not_count(grid: list[list[str]]) -> None:
    other = [[f" {cell.replace('−', '-').replace(' ', '')} " for cell in row] for row in grid]
    assert compare(grid, other)[1] == ()


@given(GRIDS, st.data())
def test_one_changed_cell_is_one_difference_at_its_place(grid: list[list[str]], data: st.DataObject) -> None:
    row = data.draw(st.integers(0, len(grid) - 1))
    column = data.draw(st.integers(0, len(grid[0]) - 1))
    seen = [list(cells) for cells in grid]
    seen[row][column] += "7"
    _, differences, _ = compare(grid, seen)
    assert [(d.row, d.column, d.grid) for d in differences] == [(row, column, grid[row][column])]


def test_other_shapes_are_not_aligned_by_guessing() -> None:
    cells, differences, note = compare([["a", "1.5"], ["b", "2.5"]], [["a", "1.5"]])
    assert (cells, differences) == (0, ())
    assert "2 x 2 cells in the text layer, 1 x 2 seen" in note
    assert "1 only in the text layer (2.5)" in note
    same = compare([["a", "1.5"], ["b", "2.5"]], [["a", "b"], ["1.5", "2.5"], ["", ""]])[2]
    assert same.endswith("all numbers occur in both")
