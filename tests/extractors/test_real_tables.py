"""Shapes of result tables that conference papers print, each as small as it gets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from extractors._kinds import LabelKinds
from extractors._paired import split_pairs
from extractors._reading import Reading
from extractors._roles import roles_of
from extractors._surroundings import Surroundings
from extractors._table_layout import layout_of
from extractors.result_tables import Refusal, ResultTable, read_result_table
from pipeline.paper import Table
from pipeline.task import Band, Condition, NumericClaim
from tests.extractors.drafting_documents import document, table


def read(source: Table, **more: object) -> ResultTable:
    found = read_result_table(source, Surroundings(**more))  # type: ignore[arg-type]
    assert isinstance(found, ResultTable), found
    return found


def conditions(found: ResultTable, text: str) -> dict[str, str]:
    return dict(next(cell.conditions for cell in found.cells if cell.text == text))


def test_stacked_parts_repeat_the_header_under_a_name() -> None:
    rows = [
        ["", "MSVD", ""], ["Models", "BLEU", "CIDEr"], ["A", "52.5", "92.8"], ["B", "54.6", "94.4"],
        ["MSR-VTT", "", ""], ["Models", "BLEU", "CIDEr"], ["A", "42.1", "49.1"], ["B", "42.5", "49.6"],
    ]  # fmt: skip
    found = read(table("Table 2", "Comparison.", rows, header_rows=2, spans={(0, 1): 2}))
    assert [metric.name for metric in found.metrics] == ["BLEU", "CIDEr"]
    assert {"B", "MSVD"} <= set(conditions(found, "94.4").values())
    assert {"B", "MSR-VTT"} <= set(conditions(found, "49.6").values())


def test_letters_mean_what_the_legend_says() -> None:
    rows = [["Method", "U", "S", "H"], ["Plain", "4.8", "78.3", "9.0"], ["Ours", "48.4", "75.1", "58.9"]]
    legend = {
        "U": "accuracy of unseen classes",
        "S": "accuracy of seen classes",
        "H": "harmonic mean of the accuracies",
    }
    found = read(table("Table 4", "Generalized setting.", rows), legend=legend)
    assert [metric.name for metric in found.metrics] == list(legend.values())


def test_ticks_say_yes_and_an_empty_cell_beside_them_says_no() -> None:
    rows = [
        ["Model", "Locate", "Relate", "Accuracy"], ["full", "✓", "✓", "54.6"], ["left", "✓", "", "52.5"],
        ["right", "", "✓", "52.8"],
    ]  # fmt: skip
    found = read(table("Table 1", "Ablation.", rows, stub=3))
    assert conditions(found, "52.8") == {"Model": "right", "Locate": "no", "Relate": "yes"}
    unnamed = read(table("Table 1", "Ablation.", [row[1:] for row in rows], stub=2))
    assert [dict(cell.conditions) for cell in unnamed.cells] == [
        {"components": "Locate + Relate"}, {"components": "Locate"}, {"components": "Relate"},
    ]  # fmt: skip


def test_metrics_in_rows_and_methods_in_columns() -> None:
    rows = [["", "Default", "Exp"], ["N", "7187", "7167"], ["PPL", "7.30", "7.05"], ["H@1", "51.12", "51.66"]]
    found = read(table("Table 4", "Word prediction.", rows))
    assert [metric.name for metric in found.metrics] == ["PPL", "H@1"]
    assert {cell.text for cell in found.cells} == {"7.30", "7.05", "51.12", "51.66"}


def test_headers_that_reach_over_the_columns_of_a_spanner() -> None:
    rows = [
        ["Type", "Name", "WER [%]", "", "", ""], ["", "", "dev", "", "test", ""],
        ["", "", "clean other clean other", "", "", ""], ["a", "b", "2.9", "6.8", "3.3", "7.5"],
        ["a", "c", "3.0", "7.1", "3.4", "7.7"],
    ]  # fmt: skip
    found = read(table("Table 3", "Features.", rows, header_rows=3, stub=2, spans={(0, 2): 4, (2, 2): 4}))
    assert {(m.name, m.unit) for m in found.metrics} == {("WER", "%")}
    assert {"dev", "other"} <= set(conditions(found, "6.8").values())
    assert {"test", "clean"} <= set(conditions(found, "3.3").values())


def test_two_measures_in_a_cell_are_two_columns() -> None:
    rows = [["Method", "mIoU/Acc"], ["A", "79.1/90.6"], ["B", "80.1/-"]]
    found = read(table("Table 4", "Segmentation.", rows))
    assert [(cell.metric.name, cell.quantity.value, cell.column) for cell in found.cells] == [
        ("mIoU", 79.1, 1), ("Acc", 90.6, 1), ("mIoU", 80.1, 1),
    ]  # fmt: skip
    assert found.cells[0].text == "79.1/90.6"
    fraction = table("Table 4", "Counts.", [["Method", "Correct"], ["A", "8/10"], ["B", "9/10"]])
    assert split_pairs(fraction)[0] is fraction


@given(
    st.lists(
        st.lists(st.sampled_from(["1.5/2.5", "3.0", "-/4.1", "", "a/b", "1/2/3"]), min_size=3, max_size=3),
        min_size=1,
        max_size=5,
    )
)
def test_splitting_keeps_every_row_rectangular(body: list[list[str]]) -> None:
    source = table("Table 1", "Any.", [["Method", "A/B", "C/D"], *body])
    wide, origin = split_pairs(source)
    assert {len(row) for row in wide.grid} == {len(origin)}
    assert sorted(set(origin)) == [0, 1, 2]
    assert all(cell.column + cell.column_span <= len(origin) for cell in wide.cells)


def test_numbers_that_nothing_tells_apart_are_no_claims() -> None:
    twins = table("Table 1", "Accuracy.", [["Method", "Moons", "Moons"], ["A", "80.1", "79.0"], ["B", "81.1", "78.0"]])
    found = read_result_table(twins)
    assert isinstance(found, Refusal)
    assert found.kind == "unclear"
    merged = [["Method", "Moons 70.6 74.2 76.7", "Rings 69.0 85.5 86.1"], ["A", "76.3", "87.0"], ["B", "77.0", "87.2"]]
    garbled = read_result_table(table("Table 3", "Accuracy.", merged))
    assert isinstance(garbled, Refusal)
    assert garbled.kind == "unclear"


def test_a_computed_column_and_an_average_row_are_left_out() -> None:
    rows = [
        ["Dataset", "Default", "Large", "(Large-Default)/Default %"], ["a", "0.60", "0.72", "20.0"],
        ["b", "0.70", "0.77", "10.0"], ["Average", "0.65", "0.75", "15.0"],
    ]  # fmt: skip
    found = read(table("Table 6", "AUC for each search space.", rows))
    assert {cell.text for cell in found.cells} == {"0.60", "0.72", "0.70", "0.77"}
    assert {metric.name for metric in found.metrics} == {"AUC"}


def test_the_captions_metric_is_that_of_columns_that_name_methods() -> None:
    rows = [
        ["method", "Moons", "Rings", "ave. rank"],
        ["A", "69.58 ± 0.03 (4)", "64.79", "5.2"],
        ["B", "74.79", "64.17", "3.2"],
    ]
    found = read(table("Table 1", "Summary of the average accuracy.", rows))
    assert {cell.metric.name for cell in found.cells if cell.column < 3} == {"average accuracy"}
    assert {cell.metric.name for cell in found.cells if cell.column == 3} == {"ave. rank"}
    assert found.cells[0].quantity.uncertainty == 0.03


def test_rows_with_and_without_a_part() -> None:
    rows = [["Method", "SCS", "SCE"], ["w/o", "44.3", "16.3"], ["w", "48.7", "18.2"]]
    source = table("Table 6", "Accuracy with/without feature selection.", rows)
    found = read(source, text="We use the SCS-split and the SCE-split.")
    assert conditions(found, "18.2") == {"feature selection": "with", "split": "SCE"}


def test_the_metric_of_the_set_up_is_used_where_the_table_names_none() -> None:
    rows = [["Algorithm", "MUTAG", "NCI1"], ["WL", "82.05", "82.19"], ["CapsGNN", "86.67", "78.35"]]
    source = document(
        [
            (
                "Experiments",
                "body",
                ["We use the MUTAG dataset and the NCI1 dataset. We report the average accuracy on the test fold. "
                 "Then we compare with the WL algorithm in Table 1."],
            )
        ],
        (table("Table 1", "Results on biological data.", rows),),
    )  # fmt: skip
    reading = Reading(source)
    mentions = [line for line in reading.lines if "Table 1" in line.text]
    near = Surroundings.of(reading, {}).at(reading, source.tables[0].caption, mentions)
    found = read_result_table(source.tables[0], near)
    assert isinstance(found, ResultTable)
    assert {metric.name for metric in found.metrics} == {"average accuracy"}
    assert conditions(found, "78.35") == {"Algorithm": "CapsGNN", "dataset": "NCI1"}


def test_prose_tells_data_sets_from_methods() -> None:
    kinds = LabelKinds(
        Reading(
            document(
                [
                    ("Data sets", "body", ["Experiments run on Moons and Rings. The Moons data set is small."]),
                    ("Baselines", "body", ["We compare with the Huber method. Huber uses one pass."]),
                ]
            )
        )
    )
    assert kinds.of(["Moons", "Rings"]) == "dataset"
    assert kinds.of(["Huber"]) == "method"
    assert kinds.of(["Unheard"]) is None


def test_layers_are_counted_and_parameters_are_no_variable() -> None:
    rows = [["", "2-layer", "3-layer"], ["ACME", "52.9s", "82.5s"], ["OLD", "103.6s", "229.0s"]]
    found = read(table("Table 9", "Running time.", rows))
    assert conditions(found, "82.5s")["number of layers"] == "3-layer"
    claims = [
        NumericClaim(
            id=f"c{i}", metric="WER", value=value, text=str(value), decimals=1,
            conditions=tuple(Condition(name=n, value=v) for n, v in (("#Params", p), ("Layers", depth), ("Dim", d))),
            band=Band(low=0, high=1, source="test"), evidence=(),
        )
        for i, (p, depth, d, value) in enumerate([("4.1M", "6", "512", 2.9), ("4.3M", "5", "512", 2.8), ("1.1M", "6", "256", 3.0)])
    ]  # fmt: skip
    roles = roles_of(claims)
    assert [axis.name for axis in roles.axes] == ["Layers", "Dim"]
    assert "#Params" in roles.attributes


def test_a_paired_column_keeps_its_place_in_the_layout() -> None:
    source = table("Table 1", "Two.", [["Method", "P/R", "F1"], ["A", "0.9/0.8", "0.85"], ["B", "0.7/0.6", "0.65"]])
    assert len(layout_of(split_pairs(source)[0]).values) == 6


def test_a_header_row_without_numeric_columns_below_it_names_nothing() -> None:
    rows = [
        ["", "Kind", "Scores", ""], ["Method", "", "F1 (a)", "F1 (b)"], ["A", "fast", "80.1", "70.2"],
        ["B", "slow", "81.1", "71.2"],
    ]  # fmt: skip
    found = read(table("Table 5", "Scores of both.", rows, header_rows=2, spans={(0, 2): 2}))
    assert len(found.cells) == 4


def test_seconds_are_no_accuracy_whatever_the_part_reports() -> None:
    rows = [
        ["", "PyTorch", "TensorFlow"],
        ["per epoch (128)", "8.81s", "2.53s"],
        ["per epoch (512)", "45.08s", "7.13s"],
    ]
    found = read_result_table(table("Table 6", "Benchmarking.", rows), Surroundings(measure="accuracy"))
    assert isinstance(found, Refusal)


_CELLS = st.sampled_from(
    ["", "A", "w/o", "✓", "Method", "Accuracy", "F1", "dev", "2-layer", "3.1", "0.5 ± 0.1", "12", "B/C", "1.0/2.0"]
)


@given(
    st.integers(1, 3),
    st.integers(0, 3),
    st.lists(st.lists(_CELLS, min_size=4, max_size=4), min_size=4, max_size=7),
    st.data(),
)
def test_any_grid_is_read_or_refused(header_rows: int, stub: int, rows: list[list[str]], data: st.DataObject) -> None:
    spans = {(0, data.draw(st.integers(0, 3))): data.draw(st.integers(1, 2))}
    caption = data.draw(st.sampled_from(["Accuracy of all.", "Results.", "Time with/without a part."]))
    source = table("Table 1", caption, rows, header_rows=header_rows, stub=stub, spans=spans)
    found = read_result_table(source, Surroundings(legend={"A": "recall of a"}, measure="accuracy"))
    if isinstance(found, Refusal):
        assert found.reason
        return
    told = [(cell.metric.name, cell.conditions) for cell in found.cells]
    assert len(told) == len(set(told))
    assert all(cell.text == source.grid[cell.row][cell.column] for cell in found.cells)
