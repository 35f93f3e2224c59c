from __future__ import annotations

import json
from pathlib import Path

import pytest

from extractors._surroundings import Surroundings
from extractors._table_layout import layout_of, split_header
from extractors.result_tables import Refusal, ResultTable, axis_kind, known_labels, read_result_table
from pipeline.paper import Table
from tests.extractors.drafting_documents import table

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "pdf" / "truth"


def read(source: Table, described: str = "", **more: object) -> ResultTable:
    found = read_result_table(source, Surroundings(described=described, **more))  # type: ignore[arg-type]
    assert isinstance(found, ResultTable), found
    return found


def conditions(found: ResultTable, text: str) -> dict[str, str]:
    return dict(next(cell.conditions for cell in found.cells if cell.text == text))


def test_settings_beside_the_metric_are_conditions() -> None:
    found = read(
        table(
            "Table 2",
            "Ablation on 124 captures.",
            [
                ["#", "Method", "α", "Dim", "Type", "ARI"],
                ["1", "byte", "256", "1", "entropy", "0.246"],
                ["2", "slope", "16", "3", "rate", "0.720"],
            ],
        )
    )
    assert [metric.name for metric in found.metrics] == ["ARI"]
    assert [cell.quantity.value for cell in found.cells] == [0.246, 0.72]
    assert conditions(found, "0.720") == {"Method": "slope", "α": "16", "Dim": "3", "Type": "rate"}


def test_spanning_metric_with_parts_unit_and_direction() -> None:
    found = read(
        table(
            "Table 2",
            "Overall performance.",
            [
                ["Data", "Model", "H [10−6Eh] ↓", "", "", "ψ [10−2] ↑"],
                ["", "", "diagonal", "off", "all", ""],
                ["a", "Net", "1.25", "2.25", "3.25", "95.1"],
                ["b", "Net", "1.75", "2.75", "3.75", "93.1"],
            ],
            header_rows=2, stub=2, spans={(0, 2): 3},
        )
    )  # fmt: skip
    assert [(m.name, m.unit, m.direction) for m in found.metrics] == [
        ("H diagonal", "10-6Eh", -1), ("H off", "10-6Eh", -1), ("H all", "10-6Eh", -1), ("ψ", "10-2", 1),
    ]  # fmt: skip
    assert conditions(found, "93.1") == {"Data": "b", "Model": "Net"}


def test_metric_from_the_caption_and_axis_names_from_other_tables() -> None:
    known = known_labels([table("Table 1", "Problems.", [["Problem", "d"], ["Moons", "2"], ["Rings", "2"]])])
    found = read(
        table(
            "Table 2",
            "Test accuracy (%) with label noise, mean ± standard deviation.",
            [
                ["", "Symmetric noise", "", "Asymmetric noise", ""],
                ["Method", "Moons", "Rings", "Moons", "Rings"],
                ["Plain", "90.4 ± 3.6", "85.0 ± 3.6", "85.2 ± 3.8", "78.7 ± 3.2"],
                ["Ours", "98.0 ± 1.2", "90.2 ± 4.4", "98.2 ± 0.7", "91.6 ± 2.2"],
            ],
            header_rows=2,
            spans={(0, 1): 2, (0, 3): 2},
        ),
        known=known,
    )
    assert {(m.name, m.unit) for m in found.metrics} == {("Test accuracy", "%")}
    assert conditions(found, "91.6 ± 2.2") == {"Method": "Ours", "noise": "Asymmetric noise", "Problem": "Rings"}


def test_a_spanner_names_the_values_below_it() -> None:
    found = read(
        table(
            "Table 4",
            "Mean test accuracy (%) by number of training points.",
            [["", "Training points n", "", ""], ["Method", "200", "400", "800"], ["Plain", "76.9", "77.1", "80.4"]],
            header_rows=2,
            spans={(0, 1): 3},
        )
    )
    assert conditions(found, "77.1") == {"Method": "Plain", "Training points n": "400"}


def test_abbreviated_metrics_are_written_out() -> None:
    rows = [
        ["", "Wave", "", "", "Step", "", ""],
        ["Method", "Cov.", "Width", "WFC", "Cov.", "Width", "WFC"],
        ["Split", "90.4", "1.35 ± 0.12", "68.6", "89.3", "1.90 ± 0.14", "77.1"],
        ["Ours", "90.2", "1.13 ± 0.07", "83.0", "90.1", "1.54 ± 0.10", "83.6"],
    ]
    caption = "Cov. is the marginal coverage and WFC the worst-fifth coverage."
    found = read(table("Table 1", caption, rows, header_rows=2, spans={(0, 1): 3, (0, 4): 3}))
    assert [metric.name for metric in found.metrics] == ["coverage", "Width", "worst-fifth coverage"]


def test_metrics_that_stand_in_rows_and_columns_repeated_side_by_side() -> None:
    head = ["Data", "Start", "Metric", "Ratio"]
    rows = [
        head * 2,
        ["a", "1e", "Optimal ratio", "0.057±0.004", "b", "1e", "Optimal ratio", "0.058±0.004"],
        ["", "", "Achieved ratio ↓", "0.395±0.030", "", "", "Achieved ratio ↓", "0.400±0.030"],
    ]
    found = read(table("Table 4", "Acceleration.", rows, stub=3))
    assert len(found.cells) == 4
    assert conditions(found, "0.400±0.030") == {"Data": "b", "Start": "1e"}
    assert {metric.name for metric in found.metrics} == {"Optimal ratio", "Achieved ratio"}


@pytest.mark.parametrize(
    ("caption", "rows", "kind"),
    [
        (
            "Hyper-parameters of all experiments.",
            [["Name", "Value"], ["Bandwidth", "0.5"], ["Rounds", "4"]],
            "settings",
        ),
        ("Statistics of the data sets.", [["Data", "Train"], ["a", "600"], ["b", "500"]], "statistics"),
        ("Filters.", [["Filter", "Number of papers"], ["none", "20"], ["few", "30"]], "statistics"),
        ("Examples.", [["Input", "Text"], ["a", "why"], ["b", "how"]], "empty"),
        ("Coefficients.", [["", "π11", "π12"], ["n-Si", "-1022", "534"], ["p-Si", "66", "-11"]], "no_metric"),
        (
            "Learning rates.",
            [["Method", "Learning Rate", "Batch size", "Epochs"], ["a", "0.1", "32", "5"], ["b", "0.2", "64", "5"]],
            "settings",
        ),
    ],
)
def test_what_is_no_result_is_refused_with_a_reason(caption: str, rows: list[list[str]], kind: str) -> None:
    found = read_result_table(table("Table 9", caption, rows))
    assert isinstance(found, Refusal)
    assert found.kind == kind
    assert found.reason


def test_copied_numbers_are_left_out() -> None:
    rows = [["Method", "BLEU"], ["Old∗", "18.47"], ["Older∗", "12.64"], ["Ours", "34.09"], ["Ours (high)", "29.88"]]
    found = read(table("Table 6", "∗ marks results taken from Hosking and Lapata.", rows))
    assert [cell.text for cell in found.cells] == ["34.09", "29.88"]
    assert found.copied == 2


def test_group_rows_and_headers_that_change_half_way() -> None:
    rows = [
        ["", "BLEU", "SARI"],
        ["Method", "Dataset: A", ""],
        ["Baselines", "", ""],
        ["Copy", "32.1", "14.2"],
        ["Method", "Dataset: B", ""],
        ["Copy", "35.6", "15.0"],
    ]
    found = read(table("Table 4", "Comparison.", rows, header_rows=2, spans={(1, 1): 2, (4, 1): 2}))
    assert conditions(found, "14.2") == {"group": "Baselines", "Method": "Copy", "dataset": "A"}
    assert conditions(found, "15.0") == {"Method": "Copy", "dataset": "B"}


def test_headers_and_axis_kinds() -> None:
    assert split_header("Accuracy (%) ↑") == ("Accuracy", "%")
    assert split_header("R2 (mean ± std)") == ("R2", None)
    assert axis_kind("anything", ["104, 664", "50,000"]) == "number"
    assert axis_kind("Training schema", ["ID", "OOD"]) == "method"
    assert axis_kind("Problem", ["Moons"]) == "dataset"


@pytest.mark.skipif(not SHARED.exists(), reason="hand-labelled tables are not here")
def test_hand_labelled_tables_of_real_papers() -> None:
    """Which tables of two real papers report results; the sizes are those of the printed tables."""
    expected = {
        "QH9.json": {"Table 2": 30, "Table 3": 10, "Table 4": 36, "Table 6": 60, "Table 7": 15},
        "2202.00535.json": {"Table 4": 264, "Table 5": 108, "Table 6": 18, "Table 7": 24, "Table 8": 20},
    }
    for name, sizes in expected.items():
        found = {}
        for entry in json.loads((SHARED / name).read_text())["tables"]:
            spans = {(row, first): last - first + 1 for row, first, last in entry.get("header_spans", [])}
            width = max(map(len, entry["grid"]))
            source = table(
                entry["label"], "", [row + [""] * (width - len(row)) for row in entry["grid"]],
                header_rows=entry["header_rows"], stub=entry["stub_cols"], spans=spans,
            )  # fmt: skip
            result = read_result_table(source)
            if isinstance(result, ResultTable):
                found[entry["label"]] = len(result.cells)
                assert len(layout_of(source).values) >= len(result.cells)
        assert found == sizes


def test_a_metrics_name_says_more_than_a_unit_above_it() -> None:
    rows = [
        ["", "CS 10%", "CS 10%", "CS 25%", "CS 25%"],
        ["Method", "PSNR", "SSIM", "PSNR", "SSIM"],
        ["FISTA", "14.38", "0.692", "19.76", "0.824"],
        ["Hybrid", "13.10", "0.707", "20.23", "0.834"],
    ]
    found = read(table("Table 2", "Image results on 8 test images.", rows, header_rows=2))
    assert [metric.name for metric in found.metrics] == ["PSNR", "SSIM"]
    assert "CS 25" in conditions(found, "20.23").values()
