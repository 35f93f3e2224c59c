"""Reading tables, and holding one against its truth: by hand, and by properties over random tables."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evaluation.families.table.alignment import infer_keys, match_columns
from evaluation.families.table.compare import POINTS_SHARE, FileScore, compare_tables, within
from evaluation.families.table.csvfile import CsvTable, TableError, is_missing, number_of, parse_table
from evaluation.families.table.records import FileRule, Tolerance
from evaluation.families.table.tolerances import tolerance_about, tolerance_in_words
from tests.evaluation.families.table.support import truth_text

FIVE = Tolerance(relative=0.05, source="test")


def rule(**changes: object) -> FileRule:
    return FileRule.model_validate({"path": "data/t.csv", "truth": "data/t.csv", "tolerance": FIVE, **changes})


def score(truth: str, given: str, **changes: object) -> FileScore:
    return compare_tables(parse_table(truth), parse_table(given), rule(**changes))


def text_of(columns: list[str], rows: list[list[str]]) -> str:
    return "\n".join([",".join(columns), *(",".join(row) for row in rows)]) + "\n"


# --- reading ---------------------------------------------------------------------------------------------------------


def test_comments_quotes_blank_lines_and_missing_cells_are_read() -> None:
    table = parse_table('# from the paper\n\nx,"Open, S=1/2"\n1, nan \n# between\n2,\n3,1.5D-3\n')
    assert table.columns == ("x", "Open, S=1/2")
    assert table.rows == (("1", "nan"), ("2", ""), ("3", "1.5D-3"))
    assert [is_missing(cell) for cell in table.column("Open, S=1/2")] == [True, True, False]
    assert number_of("1.5D-3") == 0.0015


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("# only\n", "empty"),
        ("1,2\n3,4\n", "no header"),
        ("a,a\n1,2\n", "more than once"),
        ("a,,b\n1,2,3\n", "no name"),
        ("a,b\n1\n", "1 cells"),
        ("a,b\n1,2,3\n", "3 cells"),
        ('a,b\n1,"2\n', "line"),
        ("a,b\n\0,1\n", "NUL"),
    ],
)
def test_what_is_no_table_is_said(text: str, words: str) -> None:
    with pytest.raises(TableError, match=words):
        parse_table(text, strict=True)


def test_a_submission_s_uneven_lines_are_filled_and_named() -> None:
    table = parse_table("a,b\n1\n2,3,4\n5,6,\n")
    assert table.rows == (("1", ""), ("2", "3"), ("5", "6"))
    assert table.ragged == (2, 3)


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=300))
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        table = parse_table(text)
    except TableError:
        return
    assert all(len(row) == len(table.columns) for row in table.rows)


@settings(max_examples=50, deadline=None)
@given(st.floats(allow_nan=False, width=64))
def test_a_number_survives_its_text(value: float) -> None:
    assert number_of(repr(value)) == value


# --- keys and rows ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("n,E\n1,0.5\n2,0.4\n", ("n",)),
        ("element,kind,a\nFe,x,1.5\nFe,y,2.5\nW,x,0.1\n", ("element", "kind")),
        ("loop,size,mean\n1,4,0.5\n1,6,0.4\n2,4,0.3\n", ("loop", "size")),
        ("t,x\n0.1,5\n0.2,4\n0.3,9\n", ("t",)),
        ("v,w\n0.3,5\n0.1,4\n0.2,9\n", ()),
        ("a,b,c\n1,1,1\n", ()),
        ("E\n1\n2\n", ()),
        ("letter,position\na,1\nb,2\n", ("letter",)),
    ],
)
def test_keys_are_texts_and_leading_grids(text: str, keys: tuple[str, ...]) -> None:
    assert infer_keys(parse_table(text)) == keys


def test_columns_are_the_same_but_for_case_and_blanks() -> None:
    assert match_columns(("Open BCs", "m"), ("M", "open_bcs", "more")) == {"Open BCs": "open_bcs", "m": "M"}
    assert match_columns(("a",), ("A", " a")) == {}


def test_rows_come_in_any_order_and_more_of_them_do_no_harm() -> None:
    truth = "n,E\n1,0.5\n2,0.4\n3,0.1\n"
    found = score(truth, "E,n\n0.1,3\n7,2.5\n0.4,2\n0.5,1\n")
    assert (found.score, found.matched_rows, found.extra_rows) == (1.0, 3, 1)


def test_a_key_that_is_there_twice_counts_for_nothing() -> None:
    found = score("n,E\n1,0.5\n2,0.4\n3,0.1\n", "n,E\n1,0.5\n2,0.4\n2,9\n3,0.1\n")
    assert (found.right, found.matched_rows) == (2, 2)


def test_a_missing_key_column_leaves_nothing_to_compare() -> None:
    found = score("n,E\n1,0.5\n2,0.4\n", "E\n0.5\n0.4\n")
    assert found.score == 0
    assert "key column 'n'" in found.problem
    by_position = score("n,E\n1,0.5\n2,0.4\n", "E\n0.5\n0.4\n", alignment="position")
    assert by_position.right == 2


def test_another_sampling_is_interpolated_when_that_is_asked_for() -> None:
    truth = "t,x\n0.5,1.0\n1.5,3.0\n2.5,5.0\n"
    given_ = "t,x\n0,0\n1,2\n2,4\n3,6\n"
    assert score(truth, given_).right == 0
    assert score(truth, given_, alignment="interpolate").score == 1.0
    assert score(truth, "t,x\n1,2\n2,4\n", alignment="interpolate").right == 1


# --- scores ----------------------------------------------------------------------------------------------------------


def test_the_formula_by_hand() -> None:
    truth = "n,E\n1,1.0\n2,2.0\n3,3.0\n4,4.0\n"
    found = score(truth, "n,E\n1,1.0\n2,2.2\n3,3.0\n4,\n")
    assert (found.right, found.values, found.missing) == (2, 4, 1)
    assert found.pointwise == 0.5
    assert found.trend == pytest.approx(0.75)  # ranks agree on three of four values
    assert found.score == pytest.approx(0.8 * 0.5 + 0.2 * 0.75)
    assert [(item.row, item.found) for item in found.mismatches] == [(2, "2.2"), (4, "")]


def test_what_the_truth_lacks_is_not_asked_about() -> None:
    text = truth_text()
    assert score(text, text).score == 1.0
    assert score(text, text.replace(",\n", ",123\n")).score == 1.0
    assert score(text, text).values == 21


def test_a_shape_without_the_scale_earns_its_trend_only() -> None:
    truth = "n,E\n" + "".join(f"{n},{n * n}\n" for n in range(1, 9))
    found = score(truth, "n,E\n" + "".join(f"{n},{10 * n * n}\n" for n in range(1, 9)))
    assert (found.right, found.trend) == (0, 1.0)
    assert found.score == pytest.approx(1 - POINTS_SHARE)
    assert score(truth, "n,E\n" + "".join(f"{n},{-n}\n" for n in range(1, 9))).score == 0


def test_noise_within_the_tolerance_is_no_trend() -> None:
    truth = "n,E\n" + "".join(f"{n},{1.4 + 1e-12 * (n % 3)!r}\n" for n in range(1, 20))
    noisy = "n,E\n" + "".join(f"{n},{1.4 - 1e-9 * (n % 5)!r}\n" for n in range(1, 20))
    assert score(truth, noisy).score == 1.0


def test_columns_may_have_tolerances_of_their_own() -> None:
    truth, given_ = "n,a,b\n1,1,1\n2,2,2\n", "n,a,b\n1,1.2,1.2\n2,2,2\n"
    assert score(truth, given_).right == 2
    assert score(truth, given_, columns={"a": {"relative": 0.25}}).right == 3
    absolute = Tolerance(relative=0, absolute=0.3)
    assert score(truth, given_, tolerance=absolute).right == 4


def test_zeros_infinities_and_texts() -> None:
    assert within(0.0, 1e-9, FIVE, scale=1.0)
    assert not within(0.0, 1e-7, FIVE, scale=1.0)
    assert within(math.inf, math.inf, FIVE)
    assert not within(math.inf, 1e308, FIVE)
    found = score("n,phase\n1,solid\n2,gas\n", "n,phase\n1,Solid\n2,liquid\n", keys=("n",))
    assert (found.right, found.values, found.trend) == (1, 2, None)


finite = st.floats(-1e6, 1e6, allow_subnormal=False).filter(lambda value: abs(value) > 1e-3)
tables = st.lists(st.tuples(finite, finite), min_size=2, max_size=12)


def as_table(rows: list[tuple[float, float]]) -> CsvTable:
    cells = tuple((str(number), repr(a), repr(b)) for number, (a, b) in enumerate(rows))
    return CsvTable(columns=("n", "a", "b"), rows=cells)


@settings(max_examples=40, deadline=None)
# a tolerance near the distance of two floats is lost in rounding
@given(tables, st.just(0.0) | st.floats(1e-6, 0.5), st.randoms(use_true_random=False))
def test_a_table_within_its_tolerance_scores_one_in_any_order(
    rows: list[tuple[float, float]], relative: float, random: object
) -> None:
    truth = as_table(rows)
    shift = [(a * (1 + relative * 0.999), b * (1 - relative * 0.999)) for a, b in rows]
    given_ = as_table(shift)
    cells = list(given_.rows)
    random.shuffle(cells)  # type: ignore[attr-defined]
    found = compare_tables(truth, given_.evolve(rows=tuple(cells)), rule(tolerance=Tolerance(relative=relative)))
    assert found.score == 1.0


@settings(max_examples=40, deadline=None)
@given(tables, st.data())
def test_every_value_beyond_its_tolerance_costs_its_share(rows: list[tuple[float, float]], data: st.DataObject) -> None:
    truth = as_table(rows)
    wrong = data.draw(st.sets(st.tuples(st.integers(0, len(rows) - 1), st.integers(0, 1)), min_size=1))
    factor = data.draw(st.floats(1.06, 100) | st.floats(-100, 0.94))
    moved = [
        tuple(value * factor if (row, column) in wrong else value for column, value in enumerate(pair))
        for row, pair in enumerate(rows)
    ]
    assume(all(abs(value) > 1e-9 for pair in moved for value in pair))
    found = compare_tables(truth, as_table(moved), rule())  # type: ignore[arg-type]
    values = 2 * len(rows)
    assert (found.values, found.right) == (values, values - len(wrong))
    assert found.pointwise == pytest.approx(1 - len(wrong) / values)
    expected = found.pointwise if found.trend is None else 0.8 * found.pointwise + 0.2 * found.trend
    assert found.score == pytest.approx(expected)
    assert found.score < 1


@settings(max_examples=40, deadline=None)
@given(tables, st.sets(st.integers(0, 11)))
def test_rows_that_are_left_out_cost_what_they_hold(rows: list[tuple[float, float]], out: set[int]) -> None:
    truth = as_table(rows)
    kept = tuple(row for number, row in enumerate(truth.rows) if number not in out)
    found = compare_tables(truth, truth.evolve(rows=kept), rule())
    assert found.right == 2 * len(kept)
    assert found.missing == 2 * (len(rows) - len(kept))
    assert 0 <= found.score <= 1


# --- tolerances in words ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "relative"),
    [
        ("DMRG is deterministic so results should match closely (~5% tolerance).", 0.05),
        ("Allow ~30% relative tolerance for Monte Carlo", 0.3),
        ("values must be within 2.5 % of the reference", 0.025),
        ("tolerance of about 10%", 0.1),
        ("rtol = 1e-3", 1e-3),
        ("relative error < 0.02", 0.02),
        ("误差 ±1%", 0.01),
        ("OBC reaches $10^{-10}$ relative error with m~60", None),
        ("no number at all", None),
        ("500% tolerance", None),
    ],
)
def test_tolerances_are_read_from_what_rubrics_say(text: str, relative: float | None) -> None:
    found = tolerance_in_words(text, "rubric")
    assert (None if found is None else found.relative) == relative


def test_a_table_s_own_sentence_is_found_by_its_name() -> None:
    text = "- fig1.csv: within 1%\n- `data/fig2.csv`: tolerance 20%\n"
    found = tolerance_about("data/fig2.csv", text, "metadata.md")
    assert found is not None
    assert found.relative == 0.2
    assert "fig2.csv" in found.source
    assert tolerance_about("data/fig3.csv", text, "metadata.md") is None
    by_label = "## Results\n### Figure 3 (a)\nA curve, tolerance 7%.\n### Fig. 13\n30% tolerance\nTable 2: within 1%\n"
    for name, relative in (("fig3_x.csv", 0.07), ("fig13.csv", 0.3), ("table2_fit.csv", 0.01), ("fig1.csv", None)):
        found = tolerance_about(f"data/{name}", by_label, "metadata.md")
        assert (None if found is None else found.relative) == relative, name
