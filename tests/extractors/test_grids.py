"""Grids from words and rules: spreads, groups of rows, headers, and that nothing is lost."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from extractors._grid import Grid, build_grid
from extractors._page_text import Word
from extractors._rules import Rule

_LETTER = 5.0
_SIZE = 10.0


def words_at(y: float, *parts: tuple[float, str], size: float = _SIZE) -> list[Word]:
    """Words of one row, each of its letters five points wide."""
    return [Word(x, y - 8, x + _LETTER * len(text), y + 2, y, size, text) for x, text in parts]


def grid_of(words: list[Word], rules: list[float], partial: list[tuple[float, float, float]] = []) -> Grid:  # noqa: B006
    """The grid in a frame from 90 to 500."""
    grid = build_grid(words, [Rule(90, 500, y) for y in rules], [Rule(*rule) for rule in partial])
    assert grid is not None
    return grid


def test_numbers_aligned_at_plus_minus_stay_one_cell() -> None:
    rows = [("gW", "51.3", "9.7"), ("gtt", "7.1", "10.4"), ("Total", "104.6", "16.5")]
    words = words_at(100, (100, "Region"), (180, "low"), (300, "high"))
    for index, (name, value, spread) in enumerate(rows):
        y = 120 + 12 * index
        for x in (205.0, 325.0):
            words += words_at(y, (x - _LETTER * len(value), value), (x + 3, "±"), (x + 32 - 5 * len(spread), spread))
        words += words_at(y, (100, name))
    texts = grid_of(words, [90, 110, 150]).texts()
    assert texts[1:] == [[name, f"{value} ± {spread}", f"{value} ± {spread}"] for name, value, spread in rows]


def test_stacked_uncertainties_keep_their_signs() -> None:
    words = words_at(100, (100, "Region"), (200, "Yield")) + words_at(125, (100, "Signal"), (200, "9.6"))
    words += words_at(121, (218, "+"), (228, "11.1"), size=7) + words_at(128, (218, "−"), (233, "9.6"), size=7)
    words += words_at(140, (100, "Other"), (200, "4.2"))
    assert grid_of(words, [90, 110, 150]).texts()[1] == ["Signal", "9.6 +11.1−9.6"]


def test_labels_between_rules_hold_for_their_group() -> None:
    words = words_at(100, (100, "Data"), (170, "Setting"), (250, "Method"), (330, "Score"))
    heights = [120.0, 130.0, 140.0, 156.0, 166.0, 176.0]
    for index, y in enumerate(heights):
        words += words_at(y, (250, f"m{index % 3}"), (330, f"8{index}.1"))
    words += words_at(125, (170, "Random")) + words_at(171, (170, "Popular")) + words_at(147, (100, "COCO"))
    texts = grid_of(words, [90, 110, 185], [(165, 500, 148)]).texts()
    assert texts[1] == ["COCO", "Random", "m0", "80.1"]
    assert texts[4] == ["", "Popular", "m0", "83.1"]
    assert [row[0] for row in texts[2:]] == [""] * 5


def test_a_dash_is_a_value_and_stays_in_its_row() -> None:
    words = words_at(100, (100, "System"), (250, "EM"), (330, "F1"))
    words += words_at(120, (272.5, "Published"))
    words += words_at(130, (100, "unet"), (250, "-"), (330, "74.9"))
    words += words_at(140, (100, "SLQA"), (250, "71.4"), (330, "74.4"))
    texts = grid_of(words, [90, 110, 150]).texts()
    assert texts[1:] == [["Published", "", ""], ["unet", "-", "74.9"], ["SLQA", "71.4", "74.4"]]


def test_rules_of_column_groups_together_end_the_header() -> None:
    words = words_at(100, (132, "Rates"), (340, "Results"))
    words += words_at(115, (100, "mask"), (170, "same"), (300, "MNLI"), (400, "NER"))
    for index in range(3):
        words += words_at(135 + 12 * index, (100, "80%"), (170, "10%"), (300, "84.2"), (400, f"95.{index}"))
    partial = [(92, 230, 104.0), (280, 498, 104.0), (92, 230, 120.0), (280, 498, 120.0)]
    grid = grid_of(words, [90, 175], partial)
    assert grid.header_rows == 2
    assert grid.texts()[:3] == [
        ["Rates", "", "Results", ""],
        ["mask", "same", "MNLI", "NER"],
        ["80%", "10%", "84.2", "95.0"],
    ]


def test_a_long_label_does_not_swallow_the_next_column() -> None:
    words = words_at(100, (100, "Setting"), (170, "Linear"), (300, "Deep"))
    rows = [("Rate", "0.1", "0.2"), ("Width", "512", "256"), ("Steps", "100", "200"), ("clip gradient", "none", "none")]
    for index, (name, one, other) in enumerate(rows):
        words += words_at(120 + 12 * index, (100, name.split()[0]), (170, one), (300, other))
        if " " in name:
            words += words_at(120 + 12 * index, (127, name.split()[1]))
    assert grid_of(words, [90, 110, 170]).texts()[4] == ["clip gradient", "none", "none"]


def test_spanners_without_rules_stand_over_their_columns() -> None:
    words = words_at(100, (205, "QNLI"), (355, "SQuAD"))
    words += words_at(112, (100, "Models"), (180, "Original"), (240, "Attack"), (330, "Original"), (390, "Attack"))
    for index in range(3):
        words += words_at(
            130 + 12 * index, (100, f"model{index}"), (190, "90.7"), (245, "63.4"), (340, "76.3"), (395, "50.1")
        )
    assert grid_of(words, [90, 117, 165]).texts()[:2] == [
        ["", "QNLI", "", "SQuAD", ""], ["Models", "Original", "Attack", "Original", "Attack"],
    ]  # fmt: skip


_CELLS = st.lists(
    st.lists(st.sampled_from(["", "-", "81.2", "0.5 ± 0.1", "BERT", "w/o x", "±", "a b", "(3)"]), min_size=3, max_size=3),
    min_size=2, max_size=7,
)  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(_CELLS, st.lists(st.booleans(), min_size=7, max_size=7))
def test_no_word_is_lost_or_doubled(rows: list[list[str]], hanging: list[bool]) -> None:
    words = words_at(100, (100, "Name"), (220, "One"), (340, "Two"))
    for index, row in enumerate(rows):
        y = 120 + 12 * index + (5 if hanging[index] else 0)
        for column, text in enumerate(row):
            x = 100.0 + 120 * column
            for part in text.split():
                words += words_at(y, (x, part))
                x += _LETTER * len(part) + 3
    texts = grid_of(words, [90, 110, 220]).texts()
    read = Counter("".join(cell for row in texts for cell in row).replace(" ", ""))
    assert read == Counter("".join(word.text for word in words))
