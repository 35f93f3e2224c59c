"""The words of PDFs and pictures: the text layer where there is one, otherwise by OCR, with bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from masking.units import MAX_PICTURES, Budget, Unit
from pipeline.errors import ExpbenchError
from pipeline.ocr import picture_text, too_small_for_text
from pipeline.schema import Severity

__all__ = ["pdf_text", "read_pdf", "read_picture"]

MAX_PDF_PAGES: Final = 80
MAX_SCANNED_PAGES: Final = 20


def pdf_text(data: bytes) -> str:
    """The text layer of a PDF, at most MAX_PDF_PAGES pages; empty for an encrypted one.

    Raises:
        ValueError: not a readable PDF.
    """
    import pymupdf

    pymupdf.TOOLS.mupdf_display_errors(False)
    try:
        with pymupdf.open(stream=data, filetype="pdf") as document:
            if document.needs_pass:
                return ""
            pages = range(min(document.page_count, MAX_PDF_PAGES))
            return "\n\n".join(str(document[number].get_text()) for number in pages)
    except (pymupdf.FileDataError, RuntimeError) as error:
        raise ValueError(f"not a readable PDF ({error})") from error


def read_pdf(_name: str, where: str, data: bytes, budget: Budget, _depth: int) -> Iterator[Unit]:
    """The text layer of a PDF; of one without, the words in its pages."""
    text = pdf_text(data)
    if not text.strip():
        yield from _scanned(where, data, budget)
    yield Unit(where, "pdf.md", text.encode("utf-8", "replace"), "text")


def _scanned(where: str, data: bytes, budget: Budget) -> Iterator[Unit]:
    """The pages of a PDF without a text layer, as pictures."""
    import pymupdf

    with pymupdf.open(stream=data, filetype="pdf") as document:
        if document.needs_pass:
            budget.unread(where, "encrypted PDF")
            return
        for number in range(document.page_count):
            if number >= MAX_SCANNED_PAGES:
                budget.unread(where, f"pages after {MAX_SCANNED_PAGES} of a PDF without a text layer", Severity.INFO)
                return
            page = document[number].get_pixmap(dpi=150).tobytes("png")
            yield from read_picture("", f"{where}#page {number + 1}", page, budget, 0)


def read_picture(_name: str, where: str, data: bytes, budget: Budget, _depth: int) -> Iterator[Unit]:
    """The words in a picture, as one block: a chart has its names and numbers in different corners."""
    if too_small_for_text(data):
        return
    budget.pictures.left -= 1
    if budget.pictures.left < 0:
        if budget.pictures.left == -1:  # said once: a data set has thousands
            budget.unread(where, f"this and all further pictures: {MAX_PICTURES} were read before", Severity.INFO)
        return
    try:
        text = picture_text(data)
    except ExpbenchError as error:
        budget.unread(where, f"a picture, and {error.object}: {error.cause}")
        return
    if text:
        yield Unit(f"{where}#text", "picture.md", text.encode("utf-8"), "text")
