"""Quotes and numbers of a model looked up in the paper."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.engine.evidence import Paper, compact, contains, number_in
from pipeline.paper import Box, PassageKind, SectionKind
from tests.extractors.drafting_documents import document
from tests.extractors.engine.papers import MAIN, paper

SENTENCE = "Every experiment is repeated with 10 random seeds."
PAPER = Paper(paper())
BODY = " ".join(passage.text for passage in paper().passages)


def test_a_quote_is_found_as_the_paper_prints_it_with_its_place() -> None:
    (span,) = PAPER.find("every experiment  is repeated with\n10 random seeds")
    assert span.text == SENTENCE[:-1]
    assert (span.page, span.section, span.passage) == (1, "Experimental setup", "p2")
    assert PAPER.supports(span.evidence())


@pytest.mark.parametrize(
    ("printed", "quoted"),
    [
        ("The eﬃciency of ﬁnite-sample “bounds” is −0.31 on average.", 'efficiency of finite-sample "bounds" is -0.31'),
        (
            "We report Rényi’s entropy rate – not its limit – in bits.",
            "report Rényi's entropy rate - not its limit - in",
        ),
        ("The ｗｉｄｔｈ is 1.35 ± 0.12 in this setting.", "the width is 1.35 ± 0.12 in this"),
    ],
)
def test_ligatures_dashes_quotation_marks_and_widths_do_not_matter(printed: str, quoted: str) -> None:
    found = Paper(document([("Results", "body", [printed])])).find(quoted)
    assert len(found) == 1
    assert found[0].text in printed


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
    assert PAPER.find(quote) == ()


def test_a_number_is_not_cut_out_of_a_longer_one() -> None:
    found = Paper(document([("Results", "body", ["The accuracy on Rings is 90.25 percent here."])]))
    assert found.find("accuracy on Rings is 90.2") == ()
    assert found.find("accuracy on Rings is 90") == ()
    assert found.find("5 percent here. and more") == ()
    assert found.find("The accuracy on Rings is 90.25")


def test_every_part_of_an_elided_quote_must_be_there() -> None:
    spans = PAPER.find("We draw 600 training points ... Every experiment is repeated")
    assert [span.text for span in spans] == ["We draw 600 training points", "Every experiment is repeated"]
    assert PAPER.find("We draw 600 training points [...] and never look back again") == ()


def test_where_words_stand_twice_the_nearer_place_is_taken() -> None:
    twice = document(
        [("A", "body", ["Trained on ten random seeds each."]), ("B", "body", ["Trained on ten random seeds each."])]
    )
    found = Paper(twice)
    assert found.find("Trained on ten random seeds")[0].section == "A"
    assert found.find("Trained on ten random seeds", near=frozenset({"p1"}))[0].section == "B"


def test_references_and_hidden_text_are_no_evidence() -> None:
    source = document([("References", "references", ["Smith et al. Accuracy of 97.1% with clean labels. 2019."])])
    assert source.sections[0].kind is SectionKind.REFERENCES
    assert Paper(source).find("Accuracy of 97.1% with clean labels") == ()
    listed = document([("Method", "body", ["Smith et al. Accuracy of 97.1% with clean labels. 2019."])])
    reference = listed.passages[0].evolve(kind=PassageKind.REFERENCE)
    assert Paper(listed.evolve(passages=(reference,))).find("Accuracy of 97.1% with clean labels") == ()


def test_a_passage_over_two_pages_is_placed_by_the_share_of_its_text() -> None:
    source = document(
        [("Results", "body", ["One sentence stands on the first page. " * 10 + "The last one is on page two."])]
    )
    passage = source.passages[0].evolve(boxes=((1, Box(0, 0, 100, 100)), (2, Box(0, 0, 100, 100))))
    found = Paper(source.evolve(passages=(passage,)))
    assert found.find("The last one is on page two.")[0].page == 2
    assert found.find("One sentence stands on the first page.")[0].page == 1


@given(st.integers(0, len(BODY) - 40), st.integers(15, 200), st.randoms(use_true_random=False))
def test_any_quote_survives_other_blanks_and_case(start: int, length: int, random: object) -> None:
    passage = next(p for p in paper().passages if p.id == "p2").text
    start, end = start % (len(passage) - 15), min(len(passage), start % (len(passage) - 15) + length)
    while start > 0 and passage[start - 1] != " ":
        start -= 1
    while end < len(passage) and passage[end] != " ":
        end += 1
    quote = passage[start:end].strip()
    changed = "".join(random.choice([c, c.upper(), c.lower()]) for c in quote).replace(" ", "  \n")  # type: ignore[attr-defined]
    if len(compact(quote)[0]) >= 12:
        (span,) = PAPER.find(changed)
        assert compact(span.text)[0] == compact(quote)[0].rstrip(".;,:") or compact(span.text)[0] == compact(quote)[0]
        assert PAPER.supports(span.evidence())


@given(st.text(max_size=60))
def test_whatever_is_found_stands_in_the_paper(quote: str) -> None:
    for span in PAPER.find(quote):
        assert PAPER.supports(span.evidence())


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


def test_cells_are_found_by_position_and_by_text() -> None:
    table = PAPER.table("TABLE I")
    assert table is not None
    assert table.label == MAIN.label
    cell = PAPER.cell(table, 3, 2)
    assert cell is not None
    assert (cell.quote, cell.row_labels, cell.column_headers) == ("88.1", ("Ours",), ("Rings",))
    assert PAPER.cell(table, 9, 0) is None
    assert PAPER.cell(table, -1, 0) is None
    assert PAPER.table("Table 9") is None


def test_words_of_the_paper_are_known_and_others_are_not() -> None:
    assert PAPER.knows("Mean test accuracy (%)")
    assert PAPER.knows("random seed")
    assert not PAPER.knows("flavour")
    assert not PAPER.knows("")


def test_names_that_the_paper_does_not_use_are_found_and_ordinary_words_are_not() -> None:
    assert PAPER.foreign_names("Train ResNet18 on ImageNet and CIFAR-10 with the usual care.") == [
        "ResNet18", "ImageNet", "CIFAR-10",
    ]  # fmt: skip
    assert PAPER.foreign_names("Train Ours on Moons, Rings and other problems; 10 seeds.") == []


def test_a_hyphen_makes_no_name_of_a_word() -> None:
    """Right steps were dropped: "the paper does not speak of hyper-parameter"."""
    assert PAPER.foreign_names("Tune the hyper-parameter with Cross-Validation, end-to-end.") == []
    assert PAPER.foreign_names("Use a Bi-LSTM, top-5 accuracy and vgg-16.") == ["Bi-LSTM", "top-5", "vgg-16"]
