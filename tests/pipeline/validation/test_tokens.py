from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.validation.tokens import metric_name, words


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Test Acc. (%)", "test_accuracy"),
        ("testAcc", "Test accuracy"),
        ("R²", "R^2"),
        ("RMSE × √n", "rmse_sqrt_n"),
        ("h₂", "h_2"),
        ("top-1", "Top 1"),
        ("mean squared error", "MSE"),
        ("F1-score", "f1"),
        ("adjusted Rand index", "ARI"),
        ("α", "alpha"),
        ("50,000", "50000"),
        ("n=50K", "n = 50,000"),
        ("2.5k steps", "2500 steps"),
        ("1M samples", "1000000 samples"),
        ("0.10", "0.1"),
        ("standard deviation", "std"),
        ("learning rates", "lr"),
    ],
)
def test_names_that_mean_the_same(left: str, right: str) -> None:
    assert words(left) == words(right)


@pytest.mark.parametrize(("left", "right"), [("accuracy", "recall"), ("top-1", "top-5"), ("h2", "h3"), ("0.1", "0.01")])
def test_names_that_do_not(left: str, right: str) -> None:
    assert set(words(left)) != set(words(right))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("50kb", ("50kb",)), ("100ms", ("100ms",)), ("0.5x", ("0.5x",)), ("7B", ("7b",)), ("5 m", ("5", "m"))],
)
def test_a_number_with_a_unit_is_one_word(text: str, expected: tuple[str, ...]) -> None:
    """`50K` was read as the words `5` and `0k`, and n=50K then contradicted the paper's n = 50,000."""
    assert words(text) == expected


def test_a_mean_with_its_deviation_names_the_mean() -> None:
    assert metric_name("R2 (mean ± std)").statistic == ""
    assert metric_name("std of accuracy").statistic == "std"
    assert metric_name("validation loss").split == "val"


@given(st.text(max_size=80))
def test_words_are_stable(text: str) -> None:
    found = words(text)
    assert all(found)
    assert words(text) == found
