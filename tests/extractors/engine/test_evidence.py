"""Words, values and numbers looked up in a text, as the text prints them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.engine.evidence import compact, contains, number_in, printed_as, stands_in

TEXT = "We draw 600 points. Every experiment is repeated with 10 random seeds. All methods share the solver."


@pytest.mark.parametrize(
    ("printed", "quoted"),
    [
        (TEXT, "every experiment  is repeated with\n10 random seeds"),
        ("The eﬃciency of ﬁnite-sample “bounds” is −0.31 on average.", 'efficiency of finite-sample "bounds" is -0.31'),
        (
            "We report Rényi’s entropy rate – not its limit – in bits.",
            "report Rényi's entropy rate - not its limit - in",
        ),
        ("The ｗｉｄｔｈ is 1.35 ± 0.12 in this setting.", "the width is 1.35 ± 0.12 in this"),
    ],
)
def test_a_quote_is_given_as_the_text_prints_it(printed: str, quoted: str) -> None:
    """Ligatures, dashes, quotation marks, widths, case and blanks do not matter."""
    found = printed_as(printed, quoted)
    assert found is not None
    assert found in printed


@pytest.mark.parametrize(
    "quote",
    [
        "Every experiment is repeated with 11 random seeds.",  # another number
        "Every experiment is repeated with 0 random seeds.",  # the end of a number
        "xperiment is repeated with 10 random seeds.",  # the end of a word
        "Every experiment is repeated with 10 random see",
        "the solver.",  # too short to support anything
        "",
        "...",
        "Every experiment is not repeated with 10 random seeds.",
    ],
)
def test_what_is_not_there_word_for_word_is_not_found(quote: str) -> None:
    assert printed_as(TEXT, quote) is None


def test_a_number_is_not_cut_out_of_a_longer_one() -> None:
    text = "The accuracy on Rings is 90.25 percent here."
    assert printed_as(text, "accuracy on Rings is 90.2") is None
    assert printed_as(text, "accuracy on Rings is 90") is None
    assert printed_as(text, "The accuracy on Rings is 90.25")


@given(st.text(max_size=60))
def test_whatever_is_found_stands_in_the_text(quote: str) -> None:
    found = printed_as(TEXT, quote)
    assert found is None or found in TEXT


@pytest.mark.parametrize(
    ("text", "value", "stands"),
    [
        ("lr = 0.001", "1e-3", True),
        ("lr = 0.001", "0.001", True),
        ("noise: 0.4", "40%", True),
        ("noise: 0.4", "40", False),
        ("lr = 0.001", "0.01", False),
        ("steps=200)", "200", True),
        ("mode = 'ridge'", "ridge", True),
        ("mode = 'ridges'", "ridge", False),
        ("n = 20", "n = 20 or so", False),
    ],
)
def test_a_value_may_be_written_in_another_way(text: str, value: str, stands: bool) -> None:
    assert stands_in(text, value) is stands


@given(st.text(alphabet="0123456789.,% abc", max_size=30), st.text(alphabet="0123456789.,%", min_size=1, max_size=6))
def test_contained_values_stand_at_boundaries(text: str, value: str) -> None:
    if contains(text, value):
        assert compact(value)[0] in compact(text)[0]
    assert contains(f"it is {value}x", value) is False or not value[-1].isalnum()


@pytest.mark.parametrize(
    ("span", "value", "found"),
    [
        ("it attains 90.2% against 89.0%", "90.2%", 90.2),
        ("it attains 90.2% against 89.0%", "90.2", 90.2),
        ("it attains 90.2% against 89.0%", "90.20", None),  # more digits than are printed
        ("it attains 90.2% against 89.0%", "99.9", None),
        ("it attains 90.2% against 89.0%", "90", None),
        ("see Table 2 for two of them", "2", None),
        ("a width of 1.35 ± 0.12", "1.35 ± 0.12", 1.35),
        ("a width of 1.35 ± 0.12", "1.35", 1.35),
        ("a width of 1.35 ± 0.12", "1.35 ± 0.21", None),
        ("a change of −0.31 in all", "-0.31", -0.31),
        ("between 1.2 and 3.4", "1.2 to 3.4", None),  # not one number
    ],
)
def test_a_number_must_stand_in_the_span_as_it_is_given(span: str, value: str, found: float | None) -> None:
    number = number_in(span, value)
    assert (None if number is None else number.value) == found
