"""What `open_pdf` lets through, and what it says about the rest."""

from __future__ import annotations

import io
from pathlib import Path

import pymupdf
import pytest
from PIL import Image

from extractors.pdf import open_pdf, render_crop, render_page, sane_title
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.paper import Box
from tests.extractors.paper_builder import PaperBuilder, small_paper


def failure(path: Path) -> ExpbenchError:
    with pytest.raises(ExpbenchError) as caught:
        open_pdf(path)
    error = caught.value
    assert str(path) in str(error)
    assert error.cause
    assert error.consequence
    assert error.next_step
    assert error.exit_code == 3
    return error


def test_good_pdf_opens(tmp_path: Path) -> None:
    with open_pdf(small_paper(tmp_path / "paper.pdf")) as pdf:
        assert pdf.page_count == 2


def test_missing_file(tmp_path: Path) -> None:
    assert failure(tmp_path / "none.pdf").kind is FailureKind.PAPER_INVALID


def test_directory(tmp_path: Path) -> None:
    assert "directory" in failure(tmp_path).cause


@pytest.mark.parametrize("content", [b"", b"\0" * 4096, b"  \n\n"])
def test_empty_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "empty.pdf"
    path.write_bytes(content)
    assert failure(path).kind is FailureKind.PAPER_EMPTY


def _png() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (_png(), "PNG"),
        (b"<!DOCTYPE html><html><body>Please sign in</body></html>", "HTML"),
        (b"PK\x03\x04" + b"\0" * 40, "ZIP"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "Git LFS pointer"),
        (b"\\documentclass{article}", "LaTeX"),
        (b"just some notes", "plain text"),
        (bytes(range(128, 256)) * 4, "another kind"),
    ],
)
def test_lying_extension_is_named(tmp_path: Path, content: bytes, named: str) -> None:
    path = tmp_path / "paper.pdf"
    path.write_bytes(content)
    error = failure(path)
    assert error.kind is FailureKind.PAPER_INVALID
    assert named in error.cause


def _encrypted(path: Path, user: str) -> Path:
    paper = PaperBuilder()
    paper.text("Secret votes")
    return paper.save(path, encryption=pymupdf.PDF_ENCRYPT_AES_256, owner_pw="owner", user_pw=user)


def test_encrypted_with_password(tmp_path: Path) -> None:
    error = failure(_encrypted(tmp_path / "locked.pdf", "user"))
    assert error.kind is FailureKind.PAPER_ENCRYPTED
    assert "qpdf" in error.next_step


def test_encrypted_with_empty_user_password_opens(tmp_path: Path) -> None:
    with open_pdf(_encrypted(tmp_path / "open.pdf", "")) as pdf:
        assert "Secret" in pdf[0].get_text()


def test_zero_pages(tmp_path: Path) -> None:
    path = tmp_path / "none.pdf"
    path.write_bytes(
        b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\n"
        b"trailer<</Root 1 0 R/Size 3>>\n%%EOF"
    )
    assert failure(path).kind in (FailureKind.PAPER_EMPTY, FailureKind.PAPER_UNREADABLE)


@pytest.mark.parametrize("keep", [10, 200])
def test_cut_off_before_any_page(tmp_path: Path, keep: int) -> None:
    whole = small_paper(tmp_path / "whole.pdf").read_bytes()
    path = tmp_path / "cut.pdf"
    path.write_bytes(whole[:keep])
    assert failure(path).kind in (FailureKind.PAPER_UNREADABLE, FailureKind.PAPER_EMPTY)


def test_render_page_is_png(tmp_path: Path) -> None:
    with open_pdf(small_paper(tmp_path / "paper.pdf")) as pdf:
        image = Image.open(io.BytesIO(render_page(pdf, 1, 72)))
    assert image.format == "PNG"
    assert image.size == (612, 792)


def test_crop_has_size_margin_and_highlight(tmp_path: Path) -> None:
    path = small_paper(tmp_path / "paper.pdf")
    box = Box(100, 100, 300, 150)
    plain = Image.open(io.BytesIO(render_crop(path, 1, box, dpi=72, margin=10)))
    assert plain.size == (220, 70)
    marked = Image.open(io.BytesIO(render_crop(path, 1, box, dpi=72, margin=10, highlight=[Box(120, 110, 160, 130)])))
    red, green, blue = marked.convert("RGB").getpixel((40, 20))
    assert blue < 230
    assert red > 200
    assert green > 200
    assert plain.convert("RGB").tobytes() != marked.convert("RGB").tobytes()


def test_crop_outside_the_page_shows_the_page(tmp_path: Path) -> None:
    path = small_paper(tmp_path / "paper.pdf")
    assert Image.open(io.BytesIO(render_crop(path, 1, Box(900, 900, 950, 950), dpi=36))).size == (306, 396)


def test_crop_of_unknown_page(tmp_path: Path) -> None:
    path = small_paper(tmp_path / "paper.pdf")
    with pytest.raises(ExpbenchError, match="page 9 was asked for"):
        render_crop(path, 9, Box(0, 0, 10, 10))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("A Real Title of a Paper", True),
        ("Microsoft Word - draft3.doc", False),
        ("main.dvi", False),
        ("arXiv:1901.00001v2", False),
        ("", False),
        (None, False),
    ],
)
def test_metadata_title(text: str | None, kept: bool) -> None:
    assert (sane_title(text) is not None) is kept
