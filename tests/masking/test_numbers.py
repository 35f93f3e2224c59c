"""Claimed numbers: what matches, what blocks, and that data files stay quiet."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
