"""`read-paper`: text, page ranges and figures of a paper, on our own extractor (Collider-Bench A.1).

The same reader serves the command line and, through `companion`, agents in their containers. Text comes page by page in
reading order, tables as rows, captions with their figures.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from extractors.isolated import read_isolated
from extractors.pdf import open_pdf, render_crop, render_page
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.paper import Document, Table
from pipeline.progress import Reporter, SilentReporter
from pipeline.schema import Record
from pipeline.text import slug

__all__ = ["FigureImage", "PaperReader", "parse_pages"]

_DPI: Final = 150
_PART: Final = re.compile(r"\s*(\d{1,5})\s*(?:-\s*(\d{1,5})\s*)?")
_MOST_FIGURES: Final = 40
"""Of one request: a page holds up to six, and an answer is one message."""


class FigureImage(Record):
    """A figure, or a whole page, as PNG."""

    name: str
    """File name."""
    page: int
    caption: str
    png: bytes


class PaperReader:
    """One paper, read when it is first asked for. Safe to use from several threads, one at a time reads."""

    def __init__(self, pdf: Path, reporter: Reporter | None = None, *, name: str = "") -> None:
        self.pdf = pdf
        self._name = name or pdf.name
        self._reporter = reporter or SilentReporter()
        self._document: Document | None = None
        self._lock = threading.Lock()

    @property
    def document(self) -> Document:
        """The structured reading.

        Raises:
            ExpbenchError: the file cannot be read (see `extractors.isolated.read_isolated`).
        """
        with self._lock:
            if self._document is None:
                self._document = read_isolated(self.pdf, reporter=self._reporter)
            return self._document

    def text(self, pages: str = "") -> str:
        """Text of some pages (`3-5`, `1,4-6`; empty: all).

        Raises:
            ExpbenchError: `USAGE`: there are no such pages; or the file cannot be read.
        """
        document = self.document
        total = len(document.pages)
        chosen = parse_pages(pages, total)
        by_page = _by_page(document)
        parts = [f"[{self._name}: {total} pages, showing {len(chosen)}]"]
        for number in chosen:
            parts += [f"===== page {number} =====", *by_page.get(number, ["(no text)"])]
        return "\n\n".join(parts) + "\n"

    def figures(self, pages: str = "") -> list[FigureImage]:
        """Figures of some pages; a page without one that was named is rendered whole.

        Raises:
            ExpbenchError: `USAGE`: there are no such pages, or they hold too many figures; or the file cannot be read.
        """
        document = self.document
        chosen = parse_pages(pages, len(document.pages))
        found: list[FigureImage] = []
        with self._lock:  # MuPDF is not safe to use from two threads
            for number in chosen:
                here = [figure for figure in document.figures if figure.page == number]
                for figure in here:
                    image = render_crop(self.pdf, number, figure.box, dpi=_DPI)
                    name = f"{slug(figure.label, 40) or 'figure'}-page-{number:02d}.png"
                    found.append(FigureImage(name=name, page=number, caption=figure.caption, png=image))
                if not here and pages:
                    with open_pdf(self.pdf) as handle:
                        image = render_page(handle, number, _DPI)
                    found.append(FigureImage(name=f"page-{number:02d}.png", page=number, caption="", png=image))
                if len(found) > _MOST_FIGURES:
                    raise _usage(pages, f"these pages hold more than {_MOST_FIGURES} figures", "Ask for fewer pages")
        return _distinct(found)


def parse_pages(text: str, total: int) -> tuple[int, ...]:
    """Page numbers from 1, sorted: `3-5`, `2`, `1,4-6`; all when empty. A range ends with the paper.

    Raises:
        ExpbenchError: `USAGE`: it is no such list, or names no page of the paper.
    """
    if not text.strip():
        return tuple(range(1, total + 1))
    found: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= first <= last:
            raise _usage(text, f"{part.strip()!r} is no page and no range of pages", "Say for example 3-5 or 1,4-6")
        found |= set(range(first, min(last, total) + 1))
    if not found:
        raise _usage(text, f"the paper has {total} pages", f"Name pages from 1 to {total}")
    return tuple(sorted(found))


def _usage(pages: str, cause: str, next_step: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.USAGE, f"pages `{pages[:60]}`", cause, consequence="Nothing was read", next_step=next_step
    )


def _by_page(document: Document) -> dict[int, list[str]]:
    """Texts of each page, in reading order; what floats (tables, figures) comes at the page's end."""
    found: dict[int, list[str]] = {}
    for page, text in _running(document):
        found.setdefault(page, []).append(text)
    for table in document.tables:
        found.setdefault(table.page, []).append(_table_text(table))
    for figure in document.figures:
        found.setdefault(figure.page, []).append(_captioned(figure.label, figure.caption))
    shown = {(table.label, table.page) for table in document.tables}
    shown |= {(figure.label, figure.page) for figure in document.figures}
    for caption in document.captions:
        if (caption.label, caption.page) not in shown:
            found.setdefault(caption.page, []).append(_captioned(caption.label, caption.text))
    return found


def _running(document: Document) -> Iterator[tuple[int, str]]:
    """(page, text) of the title, headings and passages; a passage that goes on stands on its first page."""
    if document.title:
        yield 1, f"# {document.title}"
    told = 0
    for passage in document.passages:
        upto = told if passage.section is None else passage.section + 1
        for section in document.sections[told:upto]:
            yield section.page, _heading(section.number, section.title, section.level)
        told = max(told, upto)
        yield passage.page, passage.text
    for section in document.sections[told:]:
        yield section.page, _heading(section.number, section.title, section.level)


def _heading(number: str | None, title: str, level: int) -> str:
    return f"{'#' * min(level + 1, 6)} {f'{number} ' if number else ''}{title}"


def _table_text(table: Table) -> str:
    rows = (" | ".join(cell.strip() for cell in row) for row in table.grid)
    return "\n".join([_captioned(table.label, table.caption), *rows])


def _captioned(label: str, caption: str) -> str:
    return caption if caption.startswith(label) else f"{label}: {caption}"


def _distinct(images: Sequence[FigureImage]) -> list[FigureImage]:
    """With names that differ."""
    seen: dict[str, int] = {}
    found = []
    for image in images:
        number = seen[image.name] = seen.get(image.name, 0) + 1
        name = image.name if number == 1 else f"{image.name.removesuffix('.png')}-{number}.png"
        found.append(image.evolve(name=name))
    return found
