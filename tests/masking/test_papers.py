"""Recognising the paper: how much of its words makes a copy, and its title however it is written."""

from __future__ import annotations

import pytest

from masking.papers import PaperProbe, document_text, title_patterns
from pipeline.paper import Box, Caption, Document, Table
from tests.masking import builders

WORDS = [a + b for a in "abcdefgh" for b in "ijklmnop"]  # 64 words, 60 runs of five


def test_how_much_is_shared_with_the_paper() -> None:
    probe = PaperProbe([" ".join(WORDS)])
    share = probe.share((" ".join(WORDS[:48]) + " " + "z " * 100).encode())
    assert share is not None
    assert (share.shared, share.of_paper, share.of_file) == (44, 44 / 60, 1.0)
    half = probe.share(" ".join([*WORDS, *(word + "q" for word in WORDS)]).encode())
    assert half is not None
    assert (half.shared, half.of_paper, half.of_file) == (60, 1.0, 60 / 124)
    assert probe.share((" ".join(WORDS[:44]) + " " + "z " * 100).encode()) is not None
    assert probe.share((" ".join(WORDS[:43]) + " " + "z " * 100).encode()) is None  # a quotation


@pytest.mark.parametrize(("size", "compared"), [(199, False), (200, True)])
def test_from_how_many_bytes_on_a_file_is_compared(size: int, compared: bool) -> None:
    text = " ".join(WORDS[:48])
    assert (PaperProbe([" ".join(WORDS)]).share(text.ljust(size).encode()) is not None) is compared


def test_case_line_breaks_and_hyphens_break_nothing() -> None:
    text = " ".join(WORDS).replace(" kl", "-\n  kl").replace("aj ak", "AJ\n\nak, ").upper().encode() + b" " * 200
    probe = PaperProbe([" ".join(WORDS).replace(" kl", "kl")])
    share = probe.share(text)
    assert share is not None
    assert share.of_paper == 1.0


def test_what_a_paper_is_recognised_by() -> None:
    assert not PaperProbe([" ".join(WORDS[:43])]).usable
    assert PaperProbe([" ".join(WORDS[:44])]).usable
    assert PaperProbe([" ".join(WORDS[:30]), " ".join(WORDS[25:])]).usable
    assert PaperProbe([" ".join(WORDS[:43])]).share((" ".join(WORDS) + " " * 200).encode()) is None


def test_all_text_of_a_document_counts() -> None:
    box = Box(0, 0, 1, 1)
    table = Table(
        label="1", caption="of the table", page=1, box=box, grid=(("a", "b"), ("c", "d")), header_rows=1, confidence=1
    )
    document: Document = builders.document("passage").evolve(
        tables=(table,), captions=(Caption(kind="table", label="1", text="of the table", page=1, box=box),)
    )
    assert document_text(document) == "passage\n\nof the table\n\na b\n\nc d"


def test_titles_of_four_words_are_looked_for_once_each() -> None:
    titles = ["One Two Three", "One two Three-Four", "One two Three Four", "Five, six: seven eight"]
    found = title_patterns(titles)
    assert [bool(pattern.search(b"x ONE TWO\n# three four.")) for pattern in found] == [True, False]
    assert not any(
        pattern.search(b"one two three fourth") or pattern.search(b"xone two three four") for pattern in found
    )
