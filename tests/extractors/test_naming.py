"""What a table's numbers are called, told by its form and by the artefact's fields alone."""

from __future__ import annotations

import pytest

from extractors.drafting import stated
from extractors.naming import ClaimedCell, Naming, as_key, is_numeric, split_unit
from pipeline.paper import Table
from tests.extractors.drafting_documents import document, table


def named(grid: Table, fields: dict[int, str] | None = None, keys: dict[str, str] | None = None) -> Naming:
    """The naming of all its numbers; `fields` by column."""
    cells = stated(document([], (grid,)), 0).cells
    return Naming(grid, [cell._replace(field=(fields or {}).get(cell.column, "")) for cell in cells], keys or {})


def metrics_of(grid: Table, fields: dict[int, str] | None = None) -> list[str]:
    cells = stated(document([], (grid,)), 0).cells
    naming = named(grid, fields)
    return list(dict.fromkeys(naming.of(cell)[0] for cell in cells))


DATA = [["Method", "Moons", "Rings"], ["Ridge", "0.913", "0.851"], ["Lasso", "0.887", "0.803"]]


def test_columns_of_other_digits_or_size_are_measures() -> None:
    digits = table("Table 1", "Results.", [["Method", "Error", "Time"], ["A", "0.913", "12.5"], ["B", "0.887", "14.1"]])
    assert metrics_of(digits) == ["Error", "Time"]
    sizes = table("Table 1", "Results.", [["Method", "Error", "Time"], ["A", "0.9", "125.1"], ["B", "0.8", "147.9"]])
    assert metrics_of(sizes) == ["Error", "Time"]
    assert named(sizes).doubt == ""


def test_columns_with_units_are_measures_and_lose_them() -> None:
    units = table(
        "Table 1", "Results.", [["Method", "Hit (%)", "Miss (%)"], ["A", "91.3", "85.1"], ["B", "88.7", "80.3"]]
    )
    assert metrics_of(units) == ["Hit", "Miss"]
    assert named(units).of(ClaimedCell(1, 1))[1] == "%"


def test_columns_of_one_kind_are_conditions_of_what_the_caption_gives_a_unit() -> None:
    grid = table("Table 1", "Test accuracy (%) of all methods.", DATA)
    assert metrics_of(grid) == ["Test accuracy"]
    metric, unit, conditions = named(grid).of(ClaimedCell(1, 1))
    assert (metric, unit) == ("Test accuracy", "%")
    assert [(c.name, c.value) for c in conditions] == [("Method", "Ridge"), ("setting", "Moons")]


def test_what_form_leaves_open_is_asked() -> None:
    naming = named(table("Table 1", "The methods.", DATA))
    assert naming.metric == "value"
    assert "'Moons' and 'Rings' measures of their own, or conditions of one measure?" in naming.doubt


def test_the_only_column_names_what_is_measured() -> None:
    assert metrics_of(table("Table 1", "Both.", [["Method", "Gap"], ["A", "0.1"], ["B", "0.2"], ["C", "0.4"]])) == [
        "Gap"
    ]


def test_one_field_of_the_artefact_is_the_measure_in_the_papers_spelling() -> None:
    grid = table("Table 1", "The methods.", DATA)
    assert metrics_of(grid, {1: "silhouette_width", 2: "silhouette_width"}) == ["silhouette width"]
    one = table(
        "Table 1", "All.", [["Method", "F-1", "Note"], ["A", "0.91", "x"], ["B", "0.88", "y"], ["C", "0.1", "z"]]
    )
    assert metrics_of(one, {1: "f1"}) == ["F-1"]


def test_a_column_among_columns_of_other_fields_is_its_measure() -> None:
    grid = table(
        "Table 1", "All.", [["Method", "Hits", "CI"], ["A", "0.91", "[0.8, 0.9]"], ["B", "0.88", "[0.7, 0.9]"]]
    )
    cells = [ClaimedCell(row, 1, field="point") for row in (1, 2)]
    assert Naming(grid, cells, {}, ("point", "ci_low")).of(cells[0])[0] == "Hits"
    assert Naming(grid, cells, {}, ("point",)).of(cells[0])[0] == "point"


def test_what_all_columns_say_is_the_measure_and_asked_about() -> None:
    grid = table("Table 1", "All.", [["Method", "R²(xD)", "R²(xB)", "Avg R²"], ["A", "0.913", "0.851", "0.882"]])
    naming = named(grid)
    assert naming.metric == "R²"
    assert "is 'R²' what its numbers measure?" in naming.doubt


def test_what_the_caption_measures_counts_where_the_field_says_the_same() -> None:
    grid = table("Table 1", "Test accuracy (%) of all methods.", DATA)
    assert metrics_of(grid, {1: "accuracy_mean", 2: "accuracy_mean"}) == ["Test accuracy"]
    assert metrics_of(grid, {1: "score", 2: "score"}) == ["score"]
    assert metrics_of(grid, {1: "moons", 2: "rings"}) == ["Test accuracy"]
    assert named(grid, {1: "moons", 2: "rings"}).doubt == ""


def test_labels_tied_to_fields_of_their_own_are_measures_and_asked_about_where_alike() -> None:
    grid = table("Table 1", "The methods.", DATA)
    naming = named(grid, {1: "recall", 2: "precision"})
    assert naming.of(ClaimedCell(1, 2))[0] == "Rings"
    assert "measures of their own" in naming.doubt
    kinds = table("Table 1", "Results.", [["Method", "Error", "Time"], ["A", "0.913", "12.5"], ["B", "0.887", "14.1"]])
    assert named(kinds, {1: "err", 2: "seconds"}).doubt == ""


def test_a_sweep_is_no_measure_and_takes_the_name_of_what_spans_it() -> None:
    grid = table(
        "Table 1", "Test accuracy (%) by size.",
        [["", "Training points", "", ""], ["Method", "20", "80", "320"], ["A", "71.2", "82.3", "93.0"]],
        header_rows=2, spans={(0, 1): 3},
    )  # fmt: skip
    assert [(c.name, c.value) for c in named(grid).of(ClaimedCell(2, 2))[2]] == [
        ("Method", "A"),
        ("Training points", "80"),
    ]


def test_measures_repeat_under_spanners() -> None:
    grid = table(
        "Table 1", "Results.",
        [["", "Wave", "", "Step", ""], ["Method", "Cov.", "Width", "Cov.", "Width"], ["A", "90.4", "1.35", "89.3", "1.90"],
         ["B", "90.1", "1.40", "90.1", "1.76"]],
        header_rows=2, spans={(0, 1): 2, (0, 3): 2},
    )  # fmt: skip
    assert metrics_of(grid) == ["Cov.", "Width"]


def test_headings_between_rows_tell_their_rows_apart() -> None:
    rows = [["Method", "Gap"], ["First", ""], ["A", "0.1"], ["B", "0.2"], ["Second", ""], ["A", "0.3"], ["B", "0.4"]]
    conditions = named(table("Table 1", "All.", rows)).of(ClaimedCell(5, 1))[2]
    assert [(c.name, c.value) for c in conditions] == [("group", "Second"), ("Method", "A")]


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("Accuracy (%) ↑", ("Accuracy", "%")),
        ("Time [s]", ("Time", "s")),
        ("F1", ("F1", None)),
        ("Err. %", ("Err.", "%")),
    ],
)
def test_units_of_headers(text: str, split: tuple[str, str | None]) -> None:
    assert split_unit(text) == split


def test_numeric_labels() -> None:
    assert all(map(is_numeric, ["20", "n = 80", "1,600", "0.4", "50%", "10K"]))
    assert not any(map(is_numeric, ["k-NN", "ResNet 50", "A", ""]))


def test_numbers_of_a_sweep_have_the_name_of_the_key_that_holds_all_of_them() -> None:
    sweep = table("Table 1", "Coverage (%) on Step.", [["Method", "0", "0.5", "1"], ["A", "89.3", "84.6", "81.5"]])
    cell = ClaimedCell(1, 2)
    tilted = named(sweep, keys={"0": "tilt", "0.5": "tilt", "1": "tilt"})
    assert [(c.name, c.value) for c in tilted.of(cell)[2]] == [("Method", "A"), ("tilt", "0.5")]
    some = named(sweep, keys={"0": "tilt", "1": "tilt"})  # 0 and 1 are held by many fields
    assert [c.name for c in some.of(cell)[2]] == ["Method", "setting"]
    assert as_key("0.50") == as_key("0.5") == "0.5"
