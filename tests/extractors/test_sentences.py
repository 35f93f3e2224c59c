from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors._sentences import split_sentences


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("We follow Smith et al. (2020) here. It works.", 2),
        ("See Fig. 3 and Tab. 2 for details. We use Adam vs. SGD, e.g. on MNIST, i.e. digits.", 2),
        ("The value is 0.5. The next is 1.25 at n = 10.", 2),
        ("Chains of order m (m = 0, . . . , 5) at n = 50 are drawn.", 1),
        ("MAE on the matrix H. This metric is an error.", 2),
        ("A. Tiwari and J. R. Smith agree. So do we.", 2),
        ("All settings are in Appendix A. All runs take a minute.", 2),
        ("Does it help? Yes! It does.", 3),
        ("", 0),
    ],
)
def test_splits_where_a_reader_would(text: str, count: int) -> None:
    assert len(split_sentences(text)) == count


@given(st.text(alphabet="ab AB.?!()0123456789 \n", max_size=200))
def test_sentences_are_slices_that_cover_everything_in_order(text: str) -> None:
    sentences = split_sentences(text)
    assert all(text[s.start : s.end] == s.text == s.text.strip() for s in sentences)
    assert all(a.end <= b.start for a, b in pairwise(sentences))
    assert "".join("".join(s.text for s in sentences).split()) == "".join(text.split())
