"""Claimed numbers: what matches, what blocks, and that data files stay quiet."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masking import numbers
from masking.numbers import BLOCKING, NumberProbe, TextKind, significant_digits
from pipeline.task import Band, Condition, NumericClaim


def claim(text: str, metric: str = "Test accuracy", unit: str | None = None, **conditions: str) -> NumericClaim:
    decimals = len(text.partition(".")[2])
    value = float(text)
    return NumericClaim(
        id="c1", metric=metric, value=value, text=text, decimals=decimals, unit=unit,
        conditions=tuple(Condition(name=name, value=word) for name, word in conditions.items()),
        band=Band(low=value, high=value, source="printed precision"),
    )  # fmt: skip


def best(probed: NumericClaim, text: str, kind: TextKind = "code") -> float:
    hits = NumberProbe([probed]).find(text.encode(), kind)
    return hits[0].score if hits else 0.0


OURS = claim("87.3", unit="%", method="OURS", data="spirals")


@pytest.mark.parametrize(
    ("text", "kind", "score"),
    [
        ("OURS accuracy 87.3", "code", 1.0),
        ("acc_ours = 0.873", "code", 1.0),
        ("accuracy: 87.3", "code", 0.9),
        ('{"accuracy": 0.87321}', "code", 0.9),
        ('"accuracy":\n  0.873', "code", 0.9),
        ("method,accuracy\nx,1\nours,87.34", "table", 1.0),
        ("| method | accuracy |\n|--|--|\n| x | 1 |\n| OURS | 87.3 |", "prose", 1.0),
        ("spirals 87.3", "code", 0.8),
        ("\\textbf{87.3} % accuracy", "prose", 0.9),
        ("some value 87.3", "code", 0.3),
        ("accuracy 87.4", "code", 0.0),
        ("accuracy 187.3", "code", 0.0),
        ("accuracy v1.87.3", "code", 0.0),
        ("accuracy 87.35001", "code", 0.0),
        ("accuracy 8.73e1", "code", 0.9),
        ("accuracy 87", "code", 0.0),
    ],
)
def test_what_stands_beside_decides(text: str, kind: TextKind, score: float) -> None:
    assert best(OURS, text, kind) == score


def test_a_column_of_another_name_is_not_the_metric() -> None:
    assert best(claim("87.3"), "weight,accuracy\n87.3,1\n", "table") < BLOCKING
    assert best(claim("87.3"), "weight,accuracy\n1,87.3\n", "table") >= BLOCKING


@pytest.mark.parametrize(("text", "score"), [("accuracy 0.9", 0.4), ("ours accuracy 0.9", 0.75), ("factor 0.9", 0.0)])
def test_short_numbers_need_more_beside_them(text: str, score: float) -> None:
    assert best(claim("0.9", method="ours"), text) == score


def test_a_data_file_with_the_metrics_name_does_not_block() -> None:
    generator = random.Random(1)
    rows = "\n".join(f"{number},{generator.random():.3f}" for number in range(5000))
    hits = NumberProbe([claim("0.873")]).find(f"id,accuracy\n{rows}\n".encode(), "table")
    assert hits
    assert all(hit.score < BLOCKING for hit in hits)
    assert "by chance" in hits[0].detail


def test_bare_numbers_of_a_data_file_are_not_even_reported() -> None:
    generator = random.Random(2)
    data = "\n".join(" ".join(f"{generator.random():.3f}" for _ in range(10)) for _ in range(500))
    assert "0.873" in data
    assert NumberProbe([claim("0.873")]).find(data.encode(), "code") == []


def test_false_alarms_in_random_data_files_are_rare() -> None:
    """200 data files of 40 to 4000 three-digit numbers under ten claims: the blocking rate is that of no context."""
    generator = random.Random(3)
    claims = [claim(f"{generator.random():.3f}", method="ours") for _ in range(10)]
    blocked = 0
    for _ in range(200):
        count = generator.choice([40, 400, 4000])
        text = "x,y\n" + "\n".join(f"{generator.random():.3f},{generator.random():.3f}" for _ in range(count))
        blocked += any(hit.score >= BLOCKING for hit in NumberProbe(claims).find(text.encode(), "table"))
    assert blocked == 0


@given(
    st.integers(0, 10**6 - 1), st.integers(0, 4), st.sampled_from(["accuracy {} ok", "({})accuracy", "accuracy={},"])
)
def test_a_printed_number_beside_its_metric_is_always_found(digits: int, decimals: int, frame: str) -> None:
    text = f"{digits / 10**decimals:.{decimals}f}"
    assert best(claim(text), frame.format(text)) > (BLOCKING if significant_digits(text) >= 3 else -1)


@given(st.integers(100, 9999), st.integers(1, 4), st.integers(0, 10**6))
def test_more_digits_that_round_to_it_are_found(digits: int, decimals: int, extra: int) -> None:
    unit = 10.0**-decimals
    value = digits * unit + (extra / 10**6 - 0.5) * 0.98 * unit
    probed = claim(f"{digits * unit:.{decimals}f}")
    assert best(probed, f"accuracy {value:.{decimals + 6}f}") >= BLOCKING


@given(st.binary(max_size=400))
def test_any_bytes_are_searched_without_an_error(data: bytes) -> None:
    for kind in ("code", "prose", "table"):
        for hit in NumberProbe([OURS]).find(data, kind):
            assert 0 <= hit.start < hit.end <= len(data)


@pytest.mark.parametrize(
    ("text", "digits"), [("0.720", 3), ("0.05", 1), ("100", 1), ("1.0", 2), ("12.50", 4), ("0", 0)]
)
def test_significant_digits(text: str, digits: int) -> None:
    assert significant_digits(text) == digits


# --- what counts as beside -------------------------------------------------------------------------------------------


def test_a_far_name_on_a_long_line_is_not_beside() -> None:
    """Minified JSON is one line."""
    assert best(OURS, "accuracy" + " " * 152 + "87.3") == 0.9  # 160 characters
    assert best(OURS, "accuracy" + " " * 153 + "87.3") == 0.3
    assert best(OURS, "87.3" + " " * 157 + "accuracy") == 0.9  # "acc" is a beginning of it
    assert best(OURS, "87.3" + " " * 158 + "accuracy") == 0.3
    assert best(OURS, "spirals" + " " * 153 + "87.3") == 0.8
    assert best(OURS, "spirals" + " " * 154 + "87.3") == 0.3


def test_code_looks_one_line_up_and_none_down() -> None:
    assert best(OURS, "accuracy\n87.3") == 0.9
    assert best(OURS, "accuracy\n\n87.3") == 0.3
    assert best(OURS, "87.3\naccuracy") == 0.3


def test_prose_looks_through_its_block_and_no_further() -> None:
    words = "other words\n" * 3
    assert best(OURS, f"accuracy\n{words}87.3", "prose") == 0.9
    assert best(OURS, f"87.3\n{words}accuracy", "prose") == 0.9
    assert best(OURS, f"accuracy\n\n{words}87.3", "prose") == 0.3
    assert best(OURS, f"87.3\n{words}\naccuracy", "prose") == 0.3
    assert best(OURS, "accuracy" + "\nx" * 1495 + "\n 87.3", "prose") == 0.9  # 3000 characters
    assert best(OURS, "accuracy" + "\nx" * 1495 + "\n  87.3", "prose") == 0.3
    assert best(OURS, "87.3" + "\nx" * 1498 + "\naccuracy", "prose") == 0.9  # "acc" is a beginning of it
    assert best(OURS, "87.3" + "\nx" * 1498 + "\n accuracy", "prose") == 0.3


def test_a_condition_counts_in_the_numbers_own_line_only() -> None:
    assert best(OURS, "spirals\n87.3") == 0.3
    assert best(OURS, "spirals 87.3") == 0.8
    assert best(OURS, "accuracy\nspirals 87.3", "prose") == 1.0


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_column_is_named_by_its_header_whatever_separates_it(separator: str) -> None:
    rows = [["id", "accuracy", "loss"], ["1", "87.3", "9.4"], ["2", "9.1", "87.3"]]
    hits = NumberProbe([OURS]).find("\n".join(separator.join(row) for row in rows).encode(), "table")
    assert [(hit.line, hit.score) for hit in hits] == [(2, 0.9), (3, 0.3)]


def test_a_row_longer_than_its_header_has_no_name_there() -> None:
    assert best(OURS, "accuracy,loss\n1,2,87.3\n", "table") == 0.3


# --- what counts as the number ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stated", "unit", "text", "found"),
    [
        ("87.3", "%", "87.2501", True), ("87.3", "%", "87.2499", False), ("87.3", "%", "0.87349", True),
        ("0.873", None, "87.3", True), ("0.873", "s", "87.3", False), ("873.0", None, "8.730", False),
        ("100.0", None, "1.000", True), ("100.1", None, "1.001", False), ("1.000", None, "100.0", True),
        ("1.500", None, "0.01500", True), ("0.500", "%", "0.00500", True), ("-87.3", "%", "87.3", True),
        ("87.3", "%", "87.3.1", False), ("87.3", "%", "a87.3", False), ("87.3", "%", "8.73e+1", True),
        ("0.873", None, ".873", True), ("87.3", "%", "0.87351", False), ("87.3", "%", "0.87249", False),
        ("0.873", None, "87.349", True), ("0.873", None, "87.351", False), ("0.873", None, "87.249", False),
        ("12.34", "s", "12.3449", True), ("12.34", "s", "0.1234", True), ("123.4", "s", "1.234", False),
        ("123.4", "%", "1.234", True),
    ],
)  # fmt: skip
def test_a_number_is_known_as_printed_as_percentage_and_with_more_digits(
    stated: str, unit: str | None, text: str, found: bool
) -> None:
    assert (best(claim(stated, unit=unit), f"accuracy {text}") > 0) is found


@pytest.mark.parametrize(
    ("metric", "text", "named"),
    [
        ("accuracy", "acc 87.3", True), ("acc", "accuracy 87.3", False), ("accuracy", "ac 87.3", False),
        ("error", "errors 87.3", True), ("MSE", "mean squared error 87.3", True), ("MSE", "squared error 87.3", False),
        ("mean squared error", "mse 87.3", True), ("test score", "score 87.3", False), ("Top 5 recall", "top 5 recall 87.3", True),
        ("Top 5 recall", "top 50 recall 87.3", False), ("F score", "f1 87.3", False),
        ("squared error", "mse 87.3", False), ("error", "mse 87.3", False), ("loss", "losses 87.3", True),
        ("Gap 0.55", "gap 0.5 87.3", False), ("Gap 0.55", "gap 0.55 87.3", True), ("Hits 1000", "hits 10000 87.3", False),
        ("mean squared prediction error", "mse 87.3", True), ("los", "loss 87.3", False),
        ("precision", "pre 87.3", True), ("precision", "pr 87.3", False), ("Hits 1 rate", "hits 10 rate 87.3", False),
    ],
)  # fmt: skip
def test_how_a_metric_may_be_written(metric: str, text: str, named: bool) -> None:
    assert (best(claim("87.3", metric=metric), text) == 0.9) is named


def test_a_condition_that_is_a_number_says_nothing() -> None:
    assert best(claim("87.3", layers="12"), "12 layers 87.3") == 0.3
    assert best(claim("87.3", layers="12 deep"), "12 deep 87.3") == 0.8


def test_a_number_counts_with_the_digits_that_are_printed_on_either_side() -> None:
    assert best(claim("0.900"), "accuracy 0.900") == 0.9
    assert best(claim("0.900"), "accuracy 0.9") == 0.4
    assert best(claim("0.9"), "accuracy 0.900") == 0.4
    assert best(claim("873"), "accuracy 873") == 0.9
    assert best(claim("873"), "some 873.0") == 0.0  # bare, and printed without a point
    assert best(claim("87.3").evolve(text="some 1,234.5 of them", value=1234.5), "1234.5 here") == 0.3


@pytest.mark.parametrize(
    ("text", "digits"), [("+0.50e-3", 2), ("-12", 2), ("1,200.5", 5), ("1200E3", 2), (" .070 ", 2)]
)
def test_signs_exponents_and_commas_are_no_digits(text: str, digits: int) -> None:
    assert significant_digits(text) == digits


# --- chance ----------------------------------------------------------------------------------------------------------


def test_from_a_hundred_numbers_of_its_kind_on_one_is_chance() -> None:
    def score(others: int) -> float:
        rows = "\n".join(f"accuracy {number}" for number in range(1000, 1000 + others))
        return best(claim("0.873"), f"accuracy 0.873\n{rows}")

    assert score(99) == 0.9
    assert score(100) == 0.5

    def short(others: int) -> float:
        rows = "\n".join(f"ours accuracy {number}" for number in range(1000, 1000 + others))
        return best(claim("0.87", method="ours"), f"ours accuracy 0.87\n{rows}")

    assert short(9) == 0.75
    assert short(10) == 0.5


def test_each_kind_of_context_is_counted_apart() -> None:
    """A hundred numbers stand beside the metric and one method, but only one of them beside the other method."""
    rows = "\n".join(f"ours accuracy {number}" for number in range(1000, 1100))
    text = f"ours accuracy 0.873\nx\ntheirs accuracy 0.874\nx\naccuracy 0.875\n{rows}"
    claims = [claim("0.873", method="ours"), claim("0.874", method="theirs"), claim("0.875", method="others")]
    hits = NumberProbe(claims).find(text.encode(), "code")
    assert {text[hit.start : hit.end]: hit.score for hit in hits} == {"0.873": 0.5, "0.874": 1.0, "0.875": 0.5}
    alone = f"x\naccuracy 0.873\n\ntheirs 0.874\n{rows}"
    hits = NumberProbe([claim("0.873"), claim("0.874", method="theirs")]).find(alone.encode(), "code")
    assert {alone[hit.start : hit.end]: hit.score for hit in hits} == {"0.873": 0.5, "0.874": 0.8}


def test_a_short_number_beside_its_metric_is_mentioned_in_any_file() -> None:
    assert best(claim("0.9"), "accuracy 0.9\n" + "\n1" * 1000) == 0.4


def test_of_two_thousand_near_numbers_the_first_are_judged() -> None:
    assert best(claim("0.873"), "0.873\n\n" * 1999 + "accuracy 0.873") == 0.9
    assert best(claim("0.873"), "0.873\n\n" * 2000 + "accuracy 0.873") == 0.0


def test_a_file_full_of_matches_is_judged_in_a_few_looks_a_match(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many numbers stand alike is counted once a kind of context, and no further than it matters."""
    looks = 0
    context = numbers._Text.context

    def counted(text: numbers._Text, start: int, end: int) -> numbers._Context:
        nonlocal looks
        looks += 1
        return context(text, start, end)

    monkeypatch.setattr(numbers._Text, "context", counted)
    found = NumberProbe([claim("0.873")]).find(b"accuracy 0.873\n" * 1000, "code")
    assert len(found) == 1000
    assert looks == 1000 + 101  # each match, and one number more than a hundred


def test_numbers_that_stand_otherwise_do_not_count_as_chance() -> None:
    rows = "\n".join(f"weight {number}\n" for number in range(1000, 1400))
    assert best(claim("0.873"), f"accuracy 0.873\n\n{rows}") == 0.9
    assert best(claim("0.873", method="ours"), "ours 0.873\n" + rows) == 0.8


def test_a_bare_number_is_mentioned_in_a_short_file_only() -> None:
    assert best(claim("0.873"), "0.873 " + "1 " * 49) == 0.3
    assert best(claim("0.873"), "0.873 " + "1 " * 50) == 0.0
    assert best(claim("0.8734"), "0.8734 " + "1 " * 400) == 0.3


def test_hits_say_where_and_come_best_first() -> None:
    text = "x\n0.873\naccuracy\n\naccuracy 0.8731\n"
    first, second = NumberProbe([claim("0.873")]).find(text.encode(), "code")
    assert (first.score, first.line, text[first.start : first.end], first.distinctive) == (0.9, 5, "0.8731", True)
    assert (second.score, second.line, text[second.start : second.end]) == (0.3, 2, "0.873")
    assert "`0.8731` states claim c1 (Test accuracy = 0.873) beside the metric's name" in first.detail
    (short,) = NumberProbe([claim("0.9")]).find(b"accuracy 0.9", "code")
    assert not short.distinctive


def test_bare_values_state_a_claim_of_three_digits() -> None:
    probe = NumberProbe([claim("87.3", unit="%"), claim("0.9")])
    assert [item.text for item in probe.among([0.8731, 0.9])] == ["87.3"]
    assert probe.among([0.9, 88.0]) == []


def test_a_claim_whose_text_has_no_digit_is_read_from_its_value() -> None:
    item = claim("0.873").evolve(text="about seven eighths")
    assert best(item, "accuracy 0.873") == 0.9
