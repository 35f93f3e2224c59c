"""Section numbers and headings."""

from __future__ import annotations

from pathlib import Path

import pymupdf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors._numbering import parse_number
from extractors._text import Vocabulary, append_letter, normalise
from extractors.document import read_document
from pipeline.paper import SectionKind
from tests.extractors.paper_builder import BOLD, LOREM, PaperBuilder


@pytest.mark.parametrize(
    ("text", "number", "title"),
    [
        ("1 Introduction", ["1"], "Introduction"),
        ("2.1. Data", ["2", "1"], "Data"),
        ("3.2.1 Setup", ["3", "2", "1"], "Setup"),
        ("A Hyper-parameters", ["A"], "Hyper-parameters"),
        ("A.2 Proofs", ["A", "2"], "Proofs"),
        ("Appendix B: Data", ["B"], "Data"),
        ("IV. RESULTS", ["IV"], "RESULTS"),
        ("I. INTRODUCTION", ["I"], "INTRODUCTION"),
        ("3.3. β-multiplier analysis", ["3", "3"], "β-multiplier analysis"),
    ],
)
def test_numbered_heading(text: str, number: list[str], title: str) -> None:
    assert parse_number(text) == (number, title)


@pytest.mark.parametrize(
    "text", ["Introduction", "A method for votes", "10", "3.5% of all", "Ablation", "1,024 points"]
)
def test_no_number(text: str) -> None:
    parsed = parse_number(text)
    assert parsed is None or parsed[1] == "method for votes"


def headings(paper: PaperBuilder, path: Path) -> list[tuple[str | None, str, int]]:
    return [(s.number, s.title, s.level) for s in read_document(paper.save(path)).sections]


def test_unnumbered_paper_is_read_by_style(tmp_path: Path) -> None:
    paper = PaperBuilder()
    paper.text("An Unnumbered Study of Votes", size=17, font=BOLD)
    for title, size in (
        ("Introduction", 12), ("Method", 12), ("Feature maps", 11), ("Voting", 11), ("Experiments", 12), ("Conclusion", 12),
    ):  # fmt: skip
        paper.text(title, size=size, font=BOLD, step=24)
        paper.y += 4
        paper.paragraph(*LOREM)
    assert headings(paper, tmp_path / "style.pdf") == [
        (None, "Introduction", 1), (None, "Method", 1), (None, "Feature maps", 2), (None, "Voting", 2),
        (None, "Experiments", 1), (None, "Conclusion", 1),
    ]  # fmt: skip


def test_wrapped_heading_and_bold_run_in(tmp_path: Path) -> None:
    paper = PaperBuilder()
    paper.text("A Wrapped Study of Votes", size=17, font=BOLD)
    for number, title in ((1, "Introduction"), (2, "A long heading that has to be continued"), (3, "Results")):
        paper.text(f"{number}   {title}", size=12, font=BOLD, step=26)
        if number == 2:
            paper.text("on a second line", x=90, size=12, font=BOLD, step=14)
        paper.y += 4
        paper.paragraph(*LOREM)
        paper.y += 14
        paper.text("Run-in words.", font=BOLD, y=paper.y)
        paper.text("The paragraph goes on in the plain face of the paper.", x=138, y=paper.y)
    assert headings(paper, tmp_path / "wrapped.pdf") == [
        ("1", "Introduction", 1),
        ("2", "A long heading that has to be continued on a second line", 1),
        ("3", "Results", 1),
    ]


def test_numbers_in_text_and_lists_make_no_headings(tmp_path: Path) -> None:
    paper = PaperBuilder()
    paper.text("A Study with Lists", size=17, font=BOLD)
    for number, title in ((1, "Introduction"), (2, "Method"), (3, "Results")):
        paper.text(f"{number}   {title}", size=12, font=BOLD, step=26)
        paper.y += 4
        paper.paragraph(*LOREM)
        paper.text("1. first item of a list", x=84)
        paper.text("2. second item of a list", x=84)
    paper.text("References", size=12, font=BOLD, step=26)
    paper.text("[1] A. Example. On votes. 2019.", step=18)
    document = read_document(paper.save(tmp_path / "lists.pdf"))
    assert [s.title for s in document.sections] == ["Introduction", "Method", "Results", "References"]
    assert document.sections[-1].kind is SectionKind.REFERENCES


# --- the text of lines


def test_ligatures_accents_and_invisible_characters() -> None:
    assert normalise("e\ufb03cient\u00a0x² ± 3 ≤ ½\u200b") == "efficient x² ± 3 ≤ ½"
    assert append_letter("R´", "e") == "Ré"
    assert append_letter("na¨", "ı") == "naï"
    assert append_letter("x", "y") == "xy"


@given(st.text(max_size=80))
def test_normalising_twice_changes_nothing(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@pytest.mark.parametrize(
    ("left", "right", "joined"),
    [
        ("an estima-", "tor of", "an estimator of"),
        ("the state-of-the-", "art method", "the state-of-the-art method"),
        ("in the range 3-", "5 points", "in the range 3-5 points"),
        ("the Gauss-", "Newton step", "the Gauss-Newton step"),
        ("with leave-", "one-out splits", "with leave-one-out splits"),
        ("an end-to-", "end model", "an end-to-end model"),
        ("cross-vali-", "dation-based", "cross-validation-based"),
        ("plain", "words", "plain words"),
        ("", "words", "words"),
        ("a dash --", "and more", "a dash -- and more"),
    ],
)
def test_joining_lines(left: str, right: str, joined: str) -> None:
    vocabulary = Vocabulary(["a state-of-the-art estimator is given, one by one"])
    assert vocabulary.join(left, right) == joined


@given(st.lists(st.text(alphabet="ab- é", max_size=12), max_size=6))
def test_joining_never_loses_a_letter(lines: list[str]) -> None:
    vocabulary = Vocabulary(lines)
    text = ""
    for line in lines:
        text = vocabulary.join(text, line)
    letters = "".join(lines)
    assert [c for c in text if c.isalpha()] == [c for c in letters if c.isalpha()]


def test_appendices_keep_their_word_and_a_missed_letter_does_not_end_them(tmp_path: Path) -> None:
    paper = PaperBuilder()
    paper.text("A Study of Many Things", x=150, size=18, font=BOLD, step=30)
    for title in ("1   Introduction", "2   Methods", "3   Results", "A   Proofs", "C   Data", "D   Details"):
        paper.text(title, size=12, font=BOLD, step=26)
        paper.y += 4
        paper.paragraph(*LOREM)
    sections = read_document(paper.save(tmp_path / "paper.pdf"), ocr="off").sections
    assert [section.number for section in sections] == ["1", "2", "3", "A", "C", "D"]
    paper = PaperBuilder()
    paper.text("A Study of Many Things", x=150, size=18, font=BOLD, step=30)
    for title in ("I. INTRODUCTION", "II. METHODS", "III. RESULTS", "Appendix A: Proofs", "Appendix B: Data"):
        paper.text(title, size=12, font=BOLD, step=26)
        paper.y += 4
        paper.paragraph(*LOREM)
    sections = read_document(paper.save(tmp_path / "roman.pdf"), ocr="off").sections
    assert [(s.number, s.title, s.level) for s in sections][3:] == [
        ("Appendix A", "Proofs", 1), ("Appendix B", "Data", 1),
    ]  # fmt: skip


def test_unnumbered_headings_in_the_print_of_the_numbered_ones(tmp_path: Path) -> None:
    paper = PaperBuilder()
    paper.text("A Study of Many Things", x=150, size=18, font=BOLD, step=30)
    for title in ("1. Introduction", "2. Methods", "3. Results", "Declarations", "Figure legends"):
        paper.text(title, size=13, font=BOLD, step=26)
        paper.y += 4
        paper.paragraph(*LOREM)
    sections = read_document(paper.save(tmp_path / "paper.pdf"), ocr="off").sections
    assert [section.title for section in sections][3:] == ["Declarations", "Figure legends"]


def small_caps(paper: PaperBuilder, number: str, title: str) -> None:
    """`IV. OVERVIEW OF ALGORITHMS` in the manner of the IEEE: initials of 10 points, the other letters of 8."""
    x = 160.0
    for position, word in enumerate([number, *title.split()]):
        initial, rest = (word, "") if position == 0 else (word[0], word[1:])
        for text, size in ((initial, 10.0), (rest, 8.0)):
            paper.page.insert_text((x, paper.y), text, fontsize=size, fontname="tiro")
            x += pymupdf.get_text_length(text, fontname="tiro", fontsize=size)
        x += 4
    paper.y += 20


def test_small_capitals_are_headings_and_one_may_be_missing(tmp_path: Path) -> None:
    """What happened: most letters of a long title are small, it was no candidate, and all behind it was lost."""
    paper = PaperBuilder()
    for number, title in (
        ("I.", "INTRODUCTION"), ("II.", "GOAL"), ("III.", "OVERVIEW OF ALL THE ALGORITHMS"), ("V.", "DATASETS OF VOTES"),
        ("VI.", "CONCLUSION"),
    ):  # fmt: skip
        small_caps(paper, number, title)
        paper.paragraph(*LOREM)
        paper.y += 12
    assert headings(paper, tmp_path / "caps.pdf") == [
        ("I", "INTRODUCTION", 1), ("II", "GOAL", 1), ("III", "OVERVIEW OF ALL THE ALGORITHMS", 1),
        ("V", "DATASETS OF VOTES", 1), ("VI", "CONCLUSION", 1),
    ]  # fmt: skip


@pytest.mark.parametrize("numbered", [False, True])
def test_bold_lines_are_subsections_only_where_subsections_have_no_numbers(tmp_path: Path, numbered: bool) -> None:
    paper = PaperBuilder()
    paper.text("A Study of Votes in Rings", size=17, font=BOLD, step=30)
    for title in ("1 Introduction", "2 Method", "3 Results"):
        paper.text(title, size=12, font=BOLD, step=20)
        paper.paragraph(*LOREM)
        paper.y += 14
    if numbered:
        paper.text("3.1 Votes by ring", size=11, font=BOLD, step=18)
        paper.paragraph(*LOREM)
        paper.y += 14
    for title in ("Rings of votes", "Moons of votes"):
        paper.text(title, size=10, font=BOLD, step=14)
        paper.paragraph(*LOREM)
        paper.y += 14
    found = headings(paper, tmp_path / "bold.pdf")
    assert ("3", "Results", 1) in found
    bold = [(None, "Rings of votes", 2), (None, "Moons of votes", 2)]
    assert [head for head in found if head[0] is None] == ([] if numbered else bold)


def test_a_wrapped_title_goes_on_where_it_hangs(tmp_path: Path) -> None:
    """`2.2 Polling-based Object Probing / Evaluation`: the second line is no section of its own."""
    paper = PaperBuilder()
    paper.text("A Study of Votes in Rings", size=17, font=BOLD, step=30)
    for number, title in (("1", "Introduction"), ("2", "Related Work"), ("2.1", "Polling-based Probing")):
        paper.text(f"{number}  {title}", size=12, font=BOLD, step=14)
        if number == "2.1":
            start = 72 + pymupdf.get_text_length("2.1  ", fontname="tibo", fontsize=12)
            paper.text("Evaluation", x=start, size=12, font=BOLD, step=14)
        paper.y += 6
        paper.paragraph(*LOREM)
        paper.y += 10
    assert headings(paper, tmp_path / "wrap.pdf")[-1] == ("2.1", "Polling-based Probing Evaluation", 2)


def test_a_paper_in_another_language_is_read_by_the_size_of_its_titles(tmp_path: Path) -> None:
    paper = PaperBuilder()
    paper.text("Abstimmungen im Vergleich", size=20, font=BOLD, step=30)
    for title, size in (
        ("Einleitung", 14),
        ("Verfahren", 14),
        ("Gewichte", 12),
        ("Stimmen", 12),
        ("Ringe", 12),
        ("Fazit", 14),
    ):
        paper.text(title, size=size, font=BOLD, step=24)
        paper.paragraph(*LOREM)
    assert [(title, level) for _, title, level in headings(paper, tmp_path / "german.pdf")] == [
        ("Einleitung", 1), ("Verfahren", 1), ("Gewichte", 2), ("Stimmen", 2), ("Ringe", 2), ("Fazit", 1),
    ]  # fmt: skip
