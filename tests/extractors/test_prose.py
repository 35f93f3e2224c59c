from __future__ import annotations

from extractors.prose import join_names, plain_number, shown_names


def test_lists_read_like_english() -> None:
    assert join_names(["A"]) == "A"
    assert join_names(["A", "B", "C"]) == "A, B and C"
    assert join_names(["104, 664", "B"]) == "104, 664 and B"
    assert shown_names(list("ABCDEFG")) == "A, B, C, D, E, F and G"
    assert shown_names([*"ABCDEFGH", "A"]) == "A, B, C, D, E, F and 2 more"


def test_typeset_thousands() -> None:
    assert plain_number("104, 664") == "104,664"
    assert plain_number("1, 2") == "1, 2"
