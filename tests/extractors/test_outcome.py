"""The expected outcome in words: what a reader would say of the claims, and nothing that no claim holds."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.claims import find_numbers, printed_band
from extractors.outcome import compose_expected, restate_expected
from pipeline.task import Condition, NumericClaim


def claim(number: int, text: str, metric: str = "accuracy", unit: str | None = "%", **conditions: str) -> NumericClaim:
    decimals = len(text.partition(".")[2])
    return NumericClaim(
        id=f"c{number}", metric=metric, value=float(text), text=text, decimals=decimals, unit=unit,
        conditions=tuple(Condition(name=n.replace("_", " "), value=v) for n, v in conditions.items()),
        band=printed_band(float(text), 10.0**-decimals),
    )  # fmt: skip


GRID = [
    claim(i, value, method=method, problem=problem)
    for i, (method, problem, value) in enumerate(
        [
            ("Plain", "Moons", "90.4"),
            ("Plain", "Rings", "85.0"),
            ("Plain", "XOR", "82.9"),
            ("ENN", "Moons", "96.4"),
            ("ENN", "Rings", "89.4"),
            ("ENN", "XOR", "87.5"),
            ("Ours", "Moons", "98.0"),
            ("Ours", "Rings", "90.2"),
            ("Ours", "XOR", "87.0"),
        ],
        1,
    )
]
SWEEP = [
    claim(i, value, method=method, training_points_n=n)
    for i, (method, n, value) in enumerate(
        [
            (method, n, value)
            for method, values in (("Plain", "76.9 77.1 80.4"), ("Ours", "84.8 88.1 94.4"))
            for n, value in zip(("200", "400", "1600"), values.split(), strict=True)
        ],
        1,
    )
]


def test_a_grid_is_told_by_its_winners_and_its_widest_gap() -> None:
    text = compose_expected(GRID, []).text
    assert text.splitlines() == [
        "Accuracy is highest for Ours in 2 and for ENN in 1 of 3 (problem).",
        "The values lie furthest apart for Moons: Ours (98.0%), then ENN (96.4%) and Plain (90.4%).",
    ]


def test_a_sweep_is_told_by_its_ends() -> None:
    assert compose_expected(SWEEP, []).text == (
        "As training points n goes from 200 to 1600, accuracy goes from 84.8% to 94.4% for Ours and from "
        "76.9% to 80.4% for Plain."
    )


def test_series_over_other_stretches_are_told_apart() -> None:
    values = {
        ("ORL", "Plain"): {"5": "90.0", "7": "93.0"}, ("YTC", "Plain"): {"7": "67.2", "40": "82.8"},
        ("ORL", "Ours"): {"5": "91.0", "7": "93.5"}, ("YTC", "Ours"): {"7": "70.2", "40": "84.0"},
    }  # fmt: skip
    cells = [(*who, n, value) for who, series in values.items() for n, value in series.items()]
    claims = [claim(i, value, problem=p, method=m, n=n) for i, (p, m, n, value) in enumerate(cells, 1)]
    assert compose_expected(claims, []).text.splitlines() == [
        "As n goes from 7 to 40, accuracy goes from 67.2% to 82.8% for YTC, Plain and from 70.2% to 84.0% for YTC, Ours.",
        "As n goes from 5 to 7, accuracy goes from 90.0% to 93.0% for ORL, Plain and from 91.0% to 93.5% for ORL, Ours.",
    ]


def test_a_turning_point_is_told() -> None:
    series = [claim(i, v, n=n) for i, (n, v) in enumerate([("1", "3.0"), ("2", "1.0"), ("3", "2.0")], 1)]
    assert "(lowest, 1.0%, at 2)" in compose_expected(series, []).text


def test_what_is_larger_is_told_and_not_what_is_better() -> None:
    claims = [claim(1, "0.4", "test error", None, method="A"), claim(2, "0.2", "test error", None, method="B")]
    assert compose_expected(claims, []).text == "Test error is highest for A (0.4), then B (0.2)."
    assert compose_expected(claims, []).comparisons == (("c1", ">", "c2"),)


def test_many_metrics_and_quotes_stay_within_six_sentences() -> None:
    claims = [
        claim(10 * i + j, f"{i}.{j}", f"loss {i}", None, method=m) for i in range(1, 9) for j, m in enumerate("AB", 1)
    ]
    lines = compose_expected(claims, ["One is 1.1.", "Two is 2.1.", "Three is 3.1."]).text.splitlines()
    assert len(lines) <= 6
    assert lines[-2] == "The claims also give loss 5, loss 6, loss 7 and loss 8."


def test_symbols_and_odd_names_keep_their_case() -> None:
    assert compose_expected([claim(1, "1.5", "iBLEU", None)], []).text == "iBLEU is 1.5."
    assert compose_expected([claim(1, "1.5", "ϵ", None)], []).text == "ϵ is 1.5."


STATEMENTS = [
    "On Rings it attains 90.2% against 85.0% for Plain.",
    "Ours outperforms ENN by 1.6 points (98.0% versus 96.4%).",
    "Ours beats every baseline.",
]


def test_restating_everything_changes_nothing() -> None:
    expected = compose_expected(GRID, STATEMENTS)
    assert restate_expected(expected, GRID) == expected


def test_restated_quotes_only_hold_reproduced_numbers() -> None:
    """A first version kept the drafted text: after XOR and Plain had been dropped it still stated their numbers."""
    expected = compose_expected(GRID, STATEMENTS)
    kept = [c for c in GRID if c.id not in ("c2", "c3")]
    restated = restate_expected(expected, kept)
    assert "85.0" not in restated.text
    assert "82.9" not in restated.text
    assert "every baseline" not in restated.text
    assert "“Ours outperforms ENN by 1.6 points (98.0% versus 96.4%).”" in restated.text
    assert restated.claims == tuple(kept)
    assert all({left, right} <= {c.id for c in kept} for left, _, right in restated.comparisons)


def test_conditions_counts_and_assignments_are_no_results() -> None:
    expected = compose_expected(SWEEP, ["With 400 labels and K = 7 folds it reaches 88.1% on 3 problems."])
    assert "88.1% on 3 problems" in restate_expected(expected, SWEEP[3:]).text


def test_a_claim_of_another_task_is_refused() -> None:
    with pytest.raises(ValueError, match="c99 is not among its claims"):
        restate_expected(compose_expected(GRID, []), [claim(99, "1.0")])


@given(st.sets(st.sampled_from(range(9)), min_size=1), st.sampled_from([GRID, SWEEP]))
def test_no_dropped_number_is_ever_stated(indices: set[int], claims: list[NumericClaim]) -> None:
    kept = [claims[i] for i in sorted(indices) if i < len(claims)] or claims[:1]
    statements = [f"{c.conditions[0].value} reaches {c.text}%." for c in claims[:3]]
    text = restate_expected(compose_expected(claims, statements), kept).text
    held = {c.text for c in kept}
    assert {n.text.rstrip("%") for n in find_numbers(text) if n.decimals} <= held
    assert re.search(r"\d", text)


def test_what_stands_in_several_groups_is_compared_within_each() -> None:
    """`SFT` in a 7B and in a 32B group was ranked as one: its higher value hid that it lost in the other group."""
    rows = [("7B", "SFT", "80.1"), ("7B", "QF", "81.2"), ("32B", "SFT", "90.4"), ("32B", "QF", "89.3")]
    claims = [claim(i, value, method=method, group=group) for i, (group, method, value) in enumerate(rows, 1)]
    assert "for QF in 1 and for SFT in 1 of 2 (group)" in compose_expected(claims, []).text


def test_a_ranking_says_within_what_and_equal_values_have_no_first() -> None:
    """A grader found `highest for average (0.882), then fast (0.546)` false: it held in one row only, with 1.0 in another."""
    rows = [
        claim(1, "0.882", "degree", None, style="average", talk="boring"),
        claim(2, "0.546", "degree", None, style="fast", talk="boring"),
        claim(3, "1.000", "degree", None, style="average", talk="ok"),
    ]
    assert compose_expected(rows, []).text == "Degree is highest for average (0.882), then fast (0.546), for boring."
    tied = [claim(1, "0.56", "rate", None, agent="A"), claim(2, "0.56", "rate", None, agent="B")]
    assert compose_expected(tied, []).text == "Rate is the same for A and B (0.56 each)."


def test_only_what_all_values_share_stands_beside_them() -> None:
    """A grader found sixteen outputs told under the true output of the first."""
    numbers = [claim(1, "0.783", "output", None, data="test"), claim(2, "0.217", "output", None, data="test")]
    assert compose_expected(numbers, []).text == "Output is 0.783 and 0.217 (test)."
    mixed = [numbers[0].evolve(conditions=(*numbers[0].conditions, Condition(name="true output", value="0.932"))),
             numbers[1].evolve(conditions=(*numbers[1].conditions, Condition(name="true output", value="0.42")))]  # fmt: skip
    assert "0.932" not in compose_expected(mixed, []).text.partition("is 0.783 and")[2]
