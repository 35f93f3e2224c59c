from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.prose import adapt_sentence, clean_name, join_names, lower_first, name_list, slugify


@pytest.mark.parametrize(
    ("text", "adapted"),
    [
        ("We train all models with Adam [12].", "Train all models with Adam."),
        ("To isolate the effect, we compare 9 methods (Table II).", "To isolate the effect, compare 9 methods."),
        ("We used QHNet (Yu et al., 2023) as the baseline.", "Use QHNet as the baseline."),
        ("As introduced in Section 3.4, we compute the ratio.", "Compute the ratio."),
        ("Table 3 removes one part at a time.", "Remove one part at a time."),
        ("Figure 1 varies the noise rate from 0 to 0.4.", "Vary the noise rate from 0 to 0.4."),
        ("Our model has five layers.", "The model has five layers."),
        ("Table 3 shows the accuracy.", None),
        ("Those not mentioned here are listed in Appendix A.", None),
    ],
)
def test_sentences_become_instructions(text: str, adapted: str | None) -> None:
    assert adapt_sentence(text) == adapted


def test_lists_read_like_english() -> None:
    assert join_names(["A"]) == "A"
    assert join_names(["A", "B", "C"]) == "A, B and C"
    assert join_names(["104, 664", "B"]) == "104, 664 and B"
    assert name_list(list("ABCDE"), "methods") == "A, B, C, D and E"
    assert name_list(list("ABCDEFGH"), "methods") == "A, B, C and five other methods"


def test_names() -> None:
    assert clean_name("# of Atoms") == "number of atoms"
    assert clean_name("Order m") == "order m"
    assert lower_first("Cosine similarity") == "cosine similarity"
    assert lower_first("MAE on H") == "MAE on H"
    assert slugify("R² of β (%)") == "r2-of-beta"


@given(st.text(max_size=60))
def test_slugs_are_safe(text: str) -> None:
    assert set(slugify(text)) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


@given(st.text(alphabet="We use the model (2020) [1]. ,Table3", max_size=80))
def test_adapting_never_fails(text: str) -> None:
    adapted = adapt_sentence(text)
    assert adapted is None or adapted.endswith((".", "!", "?"))
