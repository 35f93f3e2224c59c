"""Short names and what a paper says that they stand for."""

from __future__ import annotations

import pytest

from extractors._legend import legend_of


@pytest.mark.parametrize(
    ("text", "short", "long"),
    [
        ("B@4, R, M, C denote BLEU-4, ROUGE L, METEOR, CIDEr, respectively.", "R", "ROUGE L"),
        ("U = Top-1 accuracy of unseen classes, S = Top-1 accuracy of seen classes.", "S", "Top-1 accuracy of seen classes"),
        ("We report the word error rate (WER) on both sets.", "WER", "word error rate"),
        ("evaluated by instance accuracy (denoted as Ins (%)) and more", "Ins", "instance accuracy"),
        ("and the mean class accuracy (mCls) of each", "mCls", "mean class accuracy"),
    ],
)  # fmt: skip
def test_an_abbreviation_is_explained_where_it_is_written(text: str, short: str, long: str) -> None:
    assert legend_of([text])[short] == long


def test_the_first_explanation_stands_and_lists_of_unequal_length_say_nothing() -> None:
    assert legend_of(["M = METEOR.", "M = memory."])["M"] == "METEOR"
    assert "A" not in legend_of(["A, B, C denote the first, the second, respectively."])
