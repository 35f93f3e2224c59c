"""Opening a PDF, rendering its pages, guessing its title.

`open_pdf` is the only door: what it lets through is a PDF with at least one page that can be loaded. Non-goal: reading
text (see `extractors._layer`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pymupdf

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.paper import Box, Document

__all__ = ["open_pdf", "paper_title", "quiet_mupdf", "render_crop", "render_page", "sane_title"]

# The signatures that people most often meet under a wrong name; the rest is called "not a PDF".
_SIGNATURES: Final = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"PK\x03\x04", "a ZIP archive (or an Office file)"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"%!PS", "a PostScript file"),
    (b"{\\rtf", "an RTF file"),
    (b"\xd0\xcf\x11\xe0", "an old Office file"),
    (b"II*\x00", "a TIFF image"),
    (b"MM\x00*", "a TIFF image"),
    (b"\x7fELF", "an executable"),
    (b"\\documentclass", "a LaTeX source file"),
    (b"version https://git-lfs", "a Git LFS pointer, not the file itself"),
)
_HEAD: Final = 1024
"""Viewers accept the `%PDF-` mark within the first 1024 bytes (PDF 1.7, annex H.3)."""
_JUNK_TITLE: Final = re.compile(
    r"^(untitled|microsoft word|title|paper|main|draft|manuscript|no title|template)\b|\.(dvi|docx?|tex|pdf|indd|ps)$|"
    r"^arxiv:|^[\W\d_]*$|^\S+$",
    re.IGNORECASE,
)
_HIGHLIGHT: Final = (1.0, 0.86, 0.2)
_MAX_PIXELS: Final = 40_000_000
"""A page of 10 x 14 inches at 500 dpi; a poster page is rendered at the resolution that still fits."""


@contextmanager
def quiet_mupdf() -> Iterator[None]:
    """Keeps MuPDF from writing to the terminal; its messages are read by `mupdf_warnings` where they matter."""
    errors, warnings = pymupdf.TOOLS.mupdf_display_errors(), pymupdf.TOOLS.mupdf_display_warnings()
    pymupdf.TOOLS.mupdf_display_errors(False)
    pymupdf.TOOLS.mupdf_display_warnings(False)
    try:
        yield
    finally:
        pymupdf.TOOLS.mupdf_display_errors(errors)
        pymupdf.TOOLS.mupdf_display_warnings(warnings)


def _refuse(kind: FailureKind, path: Path, cause: str, next_step: str) -> ExpbenchError:
    return ExpbenchError(kind, str(path), cause, consequence="The paper was not read", next_step=next_step)


def _check_file(path: Path) -> None:
    again = "Give the path of the paper's PDF"
    if not path.exists():
        raise _refuse(FailureKind.PAPER_INVALID, path, "there is no such file", again)
    if path.is_dir():
        raise _refuse(FailureKind.PAPER_INVALID, path, "this is a directory", again + ", not of its directory")
    if not path.is_file():
        raise _refuse(FailureKind.PAPER_INVALID, path, "this is not a regular file", again)
    try:
        with path.open("rb") as stream:
            head = stream.read(_HEAD)
    except OSError as error:
        raise _refuse(
            FailureKind.PAPER_INVALID, path, f"it cannot be opened ({error.strerror})", "Check its permissions"
        ) from error
    if not head.strip(b"\0 \t\r\n"):
        cause = "the file is empty (0 bytes)" if not head else "the file holds only blank bytes"
        raise _refuse(FailureKind.PAPER_EMPTY, path, cause, "Download the paper again")
    if b"%PDF-" not in head:
        raise _refuse(FailureKind.PAPER_INVALID, path, f"this is not a PDF but {_what_it_is(head)}", again)


def _what_it_is(head: bytes) -> str:
    for signature, name in _SIGNATURES:
        if head.lstrip().startswith(signature):
            return name
    lower = head.lstrip().lower()
    if lower.startswith((b"<!doctype html", b"<html", b"<head")) or b"<html" in lower:
        return "an HTML page (often a login or error page saved under the paper's name)"
    if lower.startswith(b"<?xml"):
        return "an XML file"
    printable = sum(byte in b"\t\r\n" or 32 <= byte < 127 for byte in head)
    return "plain text" if printable > 0.95 * len(head) else "data of another kind"


def open_pdf(path: Path) -> pymupdf.Document:
    """Open a PDF for reading; the caller closes it (it is a context manager).

    An empty user password is tried on encrypted files, as viewers do.

    Raises:
        ExpbenchError: the file is missing, a directory, empty, not a PDF, encrypted with a password, broken beyond
            repair or without pages.
    """
    path = Path(path)
    _check_file(path)
    with quiet_mupdf():
        try:
            pdf = pymupdf.open(str(path), filetype="pdf")
        except (pymupdf.FileDataError, RuntimeError, ValueError) as error:
            raise _refuse(
                FailureKind.PAPER_UNREADABLE, path, f"the PDF is damaged ({error})", "Download the paper again"
            ) from error
        try:
            if pdf.needs_pass and not pdf.authenticate(""):
                raise _refuse(
                    FailureKind.PAPER_ENCRYPTED, path, "the PDF is encrypted and needs a password",
                    "Save a copy without a password, for example with `qpdf --decrypt --password=... IN OUT`",
                )  # fmt: skip
            _check_pages(path, pdf)
        except BaseException:
            pdf.close()
            raise
    return pdf


def _check_pages(path: Path, pdf: pymupdf.Document) -> None:
    try:
        count = pdf.page_count
    except (RuntimeError, ValueError) as error:
        raise _refuse(
            FailureKind.PAPER_UNREADABLE, path, f"its page tree is damaged ({error})", "Download the paper again"
        ) from error
    if count < 1:
        damaged = pdf.is_repaired
        raise _refuse(
            FailureKind.PAPER_UNREADABLE if damaged else FailureKind.PAPER_EMPTY,
            path,
            "the PDF is damaged or cut off: no page could be recovered" if damaged else "the PDF has no pages",
            "Download the paper again",
        )


def render_page(pdf: pymupdf.Document, page: int, dpi: int) -> bytes:
    """One page (numbered from 1) as PNG, as a viewer shows it."""
    return _render(pdf[page - 1], None, dpi)


def render_crop(
    pdf: Path, page: int, box: Box, *, dpi: int = 150, margin: float = 4, highlight: Sequence[Box] = ()
) -> bytes:
    """A region of a page as PNG, with translucent boxes over `highlight`.

    Args:
        pdf: the file.
        page: numbered from 1.
        box: the region in points of the unrotated page; it is cut at the page's edges.
        dpi: resolution.
        margin: points to add on each side.
        highlight: boxes in the same coordinates.

    Raises:
        ExpbenchError: the file cannot be read (see `open_pdf`) or has no such page.
    """
    with open_pdf(pdf) as document:
        if not 1 <= page <= document.page_count:
            raise ExpbenchError(
                FailureKind.USAGE, str(pdf), f"it has {document.page_count} pages, page {page} was asked for",
                consequence="No crop was made", next_step="Give a page number within the document",
            )  # fmt: skip
        sheet = document[page - 1]
        rotation = sheet.rotation
        sheet.set_rotation(0)
        if highlight:
            shape = sheet.new_shape()
            for mark in highlight:
                shape.draw_rect(pymupdf.Rect(mark[0] - 1, mark[1] - 1, mark[2] + 1, mark[3] + 1))
            shape.finish(fill=_HIGHLIGHT, color=None, fill_opacity=0.35)
            shape.commit()
        clip = pymupdf.Rect(box.x0 - margin, box.y0 - margin, box.x1 + margin, box.y1 + margin)
        sheet.set_rotation(rotation)
        return _render(sheet, clip * sheet.rotation_matrix, dpi)


def _render(sheet: pymupdf.Page, clip: pymupdf.Rect | None, dpi: int) -> bytes:
    area = sheet.rect if clip is None else (clip & sheet.rect)
    if area.is_empty or area.width < 1 or area.height < 1:
        area = sheet.rect
    pixels = area.width * area.height * (dpi / 72) ** 2
    if pixels > _MAX_PIXELS:
        dpi = max(18, int(dpi * (_MAX_PIXELS / pixels) ** 0.5))
    with quiet_mupdf():
        image: bytes = sheet.get_pixmap(dpi=dpi, clip=area, alpha=False).tobytes("png")
    return image


def sane_title(text: str | None) -> str | None:
    """A metadata title, or None where it is a file name, a template's or a single word."""
    title = re.sub(r"\s+", " ", text or "").strip()
    if not 8 <= len(title) <= 300 or _JUNK_TITLE.search(title):
        return None
    return title


def paper_title(document: Document) -> str:
    """The paper's title as read (largest text on page 1 above the abstract; see `extractors.document`)."""
    return document.title
