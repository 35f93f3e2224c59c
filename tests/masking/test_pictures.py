"""PDFs and pictures: their words where they have some, and what was not read is said."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from masking import pictures
from masking.pictures import pdf_text, read_pdf, read_picture
from masking.units import Budget, Pictures, Unit
from pipeline.schema import Severity
from tests.masking.planting import picture

pymupdf = pytest.importorskip("pymupdf")


def pdf(*pages: str, password: str = "") -> bytes:
    with pymupdf.open() as document:
        for text in pages:
            document.new_page().insert_text((72, 72), text)
        locked = {"encryption": pymupdf.PDF_ENCRYPT_AES_256, "user_pw": password} if password else {}
        return document.tobytes(**locked)


def read(data: bytes, budget: Budget | None = None) -> list[Unit]:
    return list(read_pdf("a.pdf", "x/a.pdf", data, budget or Budget(), 0))


def test_the_text_layer_of_all_pages() -> None:
    data = pdf("first page", "second page")
    assert [line for line in pdf_text(data).split("\n") if line] == ["first page", "second page"]
    (unit,) = read(data)
    assert (unit.where, unit.name, unit.role) == ("x/a.pdf", "pdf.md", "text")
    assert b"second page" in unit.data


def test_no_more_pages_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MAX_PDF_PAGES", 2)
    assert "third" not in pdf_text(pdf("first", "second", "third"))
    assert "second" in pdf_text(pdf("first", "second", "third"))


def test_eighty_pages_are_read() -> None:
    found = pdf_text(pdf(*(f"page {number}." for number in range(1, 82))))
    assert "page 80." in found
    assert "page 81." not in found


def test_what_is_no_pdf_is_an_error() -> None:
    with pytest.raises(ValueError, match="not a readable PDF"):
        pdf_text(b"%PDF-1.7 broken")


def test_an_encrypted_pdf_has_no_text_and_is_said() -> None:
    data = pdf("secret words", password="pw")
    assert pdf_text(data) == ""
    budget = Budget()
    assert [unit.data for unit in read(data, budget)] == [b""]
    assert [(item.where, item.severity) for item in budget.problems] == [("x/a.pdf", Severity.WARNING)]
    assert "encrypted PDF" in budget.problems[0].message


def test_scanned_pages_are_read_as_pictures_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MAX_SCANNED_PAGES", 2)
    seen: list[bytes] = []

    def words(data: bytes) -> str:
        seen.append(data)
        return f"words {len(seen)}"

    monkeypatch.setattr(pictures, "picture_text", words)
    budget = Budget()
    units = read(pdf("", "", ""), budget)
    assert [(unit.where, unit.data.strip()) for unit in units] == [
        ("x/a.pdf#page 1#text", b"words 1"), ("x/a.pdf#page 2#text", b"words 2"), ("x/a.pdf", b""),
    ]  # fmt: skip
    assert [(item.severity, "pages after 2" in item.message) for item in budget.problems] == [(Severity.INFO, True)]
    budget = Budget()
    read(pdf("", ""), budget)
    assert budget.problems == []


def test_twenty_scanned_pages_are_drawn_at_150_dots_an_inch(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[tuple[int, int]] = []

    def words(data: bytes) -> str:
        with Image.open(io.BytesIO(data)) as drawn:
            sizes.append(drawn.size)
        return ""

    monkeypatch.setattr(pictures, "picture_text", words)
    with pymupdf.open() as document:
        for _ in range(21):
            document.new_page(width=72, height=144)
        data = document.tobytes()
    budget = Budget()
    read(data, budget)
    assert sizes == [(150, 300)] * 20
    assert len(budget.problems) == 1


def test_after_so_many_pictures_the_rest_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "picture_text", lambda _: "words")
    budget, data = Budget(pictures=Pictures(left=2)), picture(["some words"])
    found = [list(read_picture("", f"p{number}", data, budget, 0)) for number in range(5)]
    assert [len(units) for units in found] == [1, 1, 0, 0, 0]
    assert found[0][0] == Unit("p0#text", "picture.md", b"words", "text")
    assert [(item.where, item.severity) for item in budget.problems] == [("p2", Severity.INFO)]


def test_small_pictures_and_pictures_without_words_give_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.BytesIO()
    Image.new("RGB", (32, 32)).save(stream, "PNG")
    budget = Budget(pictures=Pictures(left=1))
    monkeypatch.setattr(pictures, "picture_text", lambda _: "")
    assert list(read_picture("", "small", stream.getvalue(), budget, 0)) == []
    assert budget.pictures.left == 1  # a data set of icons uses nothing up
    assert list(read_picture("", "empty", picture(["x"]), budget, 0)) == []
    assert (budget.pictures.left, budget.problems) == (0, [])
