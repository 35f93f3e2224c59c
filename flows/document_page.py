"""The reading of a PDF as one HTML page: what was understood, drawn over the image of each page.

A person sees at a glance what is right: sections, passages in reading order, captions, tables with their grids,
figures, hidden text, and each page's warnings.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from extractors.pdf import open_pdf, render_page
from pipeline.paper import Box, Document, Page
from pipeline.text import shorten

__all__ = ["document_page"]

_DPI = 80
"""Enough to read headings and table cells on a screen; a 12-page paper stays below 3 MB."""


def document_page(pdf: Path, document: Document) -> str:
    """The page as HTML, self-contained.

    Raises:
        ExpbenchError: the PDF cannot be rendered.
    """
    environment = Environment(
        loader=PackageLoader("flows"), autoescape=select_autoescape(default=True), undefined=StrictUndefined
    )
    with open_pdf(pdf) as opened:
        pages = [_page(opened, document, page) for page in document.pages]
    return environment.get_template("document.html.j2").render(document=document, pages=pages)


def _page(pdf: Any, document: Document, page: Page) -> dict[str, Any]:
    number = page.number
    marks: list[dict[str, Any]] = []

    def mark(kind: str, box: Box, title: str) -> None:
        marks.append({"kind": kind, "title": shorten(title, 300), **_place(box, page)})

    for order, passage in enumerate(document.passages, 1):
        for at, box in passage.boxes:
            if at == number:
                mark("passage", box, f"{order}. {passage.kind}: {passage.text}")
    for section in document.sections:
        if section.page == number:
            mark("section", section.box, f"level {section.level}: {section.number or ''} {section.title}")
    for caption in document.captions:
        if caption.page == number:
            mark("caption", caption.box, f"{caption.label}: {caption.text}")
    for figure in document.figures:
        if figure.page == number:
            mark("figure", figure.box, f"{figure.label}: {' · '.join(figure.texts)}")
    tables = [table for table in document.tables if table.page == number]
    for table in tables:
        mark("table", table.box, f"{table.label}, confidence {table.confidence:.2f}")
    for label, box in [(t.label, box) for t in document.tables for at, box in t.continued if at == number]:
        mark("table", box, f"{label}, continued")
    for hidden in filter(lambda hidden: hidden.page == number, document.hidden):
        mark("hidden", hidden.box, f"{hidden.reason}: {hidden.text}")
    image = base64.b64encode(render_page(pdf, number, _DPI)).decode("ascii")
    return {"page": page, "marks": marks, "tables": tables, "uri": f"data:image/png;base64,{image}"}


def _place(box: Box, page: Page) -> dict[str, str]:
    """Left, top, width and height of a box in per cent of the page."""
    return {
        "left": f"{100 * box.x0 / page.width:.2f}",
        "top": f"{100 * box.y0 / page.height:.2f}",
        "width": f"{100 * (box.x1 - box.x0) / page.width:.2f}",
        "height": f"{100 * (box.y1 - box.y0) / page.height:.2f}",
    }
