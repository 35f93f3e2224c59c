"""From a PDF to a `Document`: every page read (text layer or OCR), its parts told apart, and put together in order.

The order matters: captions before tables (they say where to look), tables and figures before headings and passages
(their text must not be mistaken for running text). Everything is deterministic; a page that cannot be read is reported
and the rest goes on. Non-goal: understanding what the paper claims (see `extractors.keyless`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import pymupdf

from extractors._babel import ABSTRACT
from extractors._captions import FoundCaption, find_captions
from extractors._layer import PageText, TextLine, read_layer, rotate_box
from extractors._layout import PageLayout, body_size, column_count, find_furniture, page_layout, reorder
from extractors._passages import Flow, build_passages, find_footnotes
from extractors._rules import Rule, Strokes, merge_rules, read_strokes
from extractors._text import Vocabulary, squeeze
from extractors.figures import read_figures
from extractors.ocr import ocr_page, ocr_reason, tesseract_version, text_quality
from extractors.pdf import open_pdf, quiet_mupdf, sane_title
from extractors.sections import Heading, find_headings
from extractors.tables import TablePage, read_tables
from pipeline.digests import file_digest
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.paper import Box, Caption, Document, Figure, Link, OcrRun, Page, Section, Table
from pipeline.progress import Reporter, SilentReporter
from pipeline.schema import Problem, Severity

__all__ = ["read_document"]

_STAGE: Final = "extract"
_INSTALL: Final = "Install Tesseract (Debian, Ubuntu: `apt-get install tesseract-ocr`; macOS: `brew install tesseract`)"


@dataclass(slots=True)
class _Sheet:
    """One page while it is being read."""

    text: PageText
    width: float
    height: float
    rules: list[Rule] = field(default_factory=list)
    quality: float = 0.0
    ocr: OcrRun | None = None
    links: list[Link] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unread: bool = False
    """The page holds something that could not be read."""


def read_document(
    pdf: Path, *, reporter: Reporter = SilentReporter(), ocr: Literal["auto", "off"] = "auto"  # noqa: B008
) -> Document:  # fmt: skip
    """Read a paper (EXP-Bench 3.2, stage 2.1: the index of text, tables and figures that later passes work on).

    Args:
        pdf: the file.
        reporter: told about every page.
        ocr: `auto` reads pages without a usable text layer by OCR; `off` reports them instead.

    Returns:
        The document; coordinates in points of the unrotated page. What went wrong on single pages is in `problems`
        and in the pages' `warnings`.

    Raises:
        ExpbenchError: the file cannot be opened (see `extractors.pdf.open_pdf`), holds nothing, or no page could be
            read.
    """
    pdf = Path(pdf)
    problems: list[Problem] = []
    with open_pdf(pdf) as handle, quiet_mupdf():
        reporter.start(_STAGE, handle.page_count)
        version = tesseract_version() if ocr == "auto" else None
        sheets = [
            _read_sheet(handle, index, ocr=ocr, version=version, problems=problems, reporter=reporter)
            for index in range(handle.page_count)
        ]
        metadata = sane_title((handle.metadata or {}).get("title"))
    pymupdf.TOOLS.store_shrink(100)
    _refuse_unreadable(pdf, sheets, ocr, version)
    document = _assemble(file_digest(pdf), sheets, metadata, problems)
    reporter.end(
        _STAGE, f"{len(document.sections)} sections, {len(document.tables)} tables, {len(document.figures)} figures"
    )
    return document


def _refuse_unreadable(pdf: Path, sheets: Sequence[_Sheet], ocr: str, version: str | None) -> None:
    if any(sheet.text.lines for sheet in sheets):
        return
    if not any(sheet.unread for sheet in sheets):
        raise ExpbenchError(
            FailureKind.PAPER_EMPTY, str(pdf), f"none of its {len(sheets)} pages holds text",
            consequence="The paper was not read", next_step="Check that this is the file you meant",
        )  # fmt: skip
    if ocr == "off":
        cause, step = "all its pages are images and OCR is switched off", "Allow OCR"
    elif version is None:
        cause, step = "all its pages are images and Tesseract is not installed", _INSTALL
    else:
        cause, step = "OCR found no text on any of its pages", "Give a PDF with a text layer or a sharper scan"
    raise ExpbenchError(
        FailureKind.PAPER_UNREADABLE, str(pdf), cause, consequence="The paper was not read", next_step=step
    )


# --- pages


def _read_sheet(
    handle: pymupdf.Document, index: int, *, ocr: str, version: str | None, problems: list[Problem], reporter: Reporter
) -> _Sheet:
    number = index + 1
    where = f"page {number}"
    try:
        page = handle.load_page(index)
        page.set_rotation(0)
        text = read_layer(page, number)
        strokes = read_strokes(page)
    except (RuntimeError, ValueError, pymupdf.mupdf.FzErrorBase) as error:
        problems.append(
            Problem(component="extract.pdf", where=where, severity=Severity.ERROR,
                    message=f"the page is damaged and was left out ({str(error).strip() or type(error).__name__})")
        )  # fmt: skip
        reporter.step(_STAGE, f"{where}: damaged")
        return _Sheet(PageText(number, 612, 792, []), 612, 792, warnings=["damaged: left out"], unread=True)
    sheet = _Sheet(text, page.rect.width, page.rect.height)
    sheet.rules = _upright_rules(strokes, sheet)
    # Thin lines count too: axes and circuit diagrams are made of little else.
    lines = [Box(rule.x0, rule.y - 0.5, rule.x1, rule.y + 0.5) for rule in strokes.rules]
    painted = [*strokes.drawings, *strokes.verticals, *lines]
    text.drawings = [rotate_box(box, sheet.width, sheet.height, text.turn) for box in painted]
    sheet.links = [
        Link(page=number, box=Box(*link["from"]), url=link["uri"]) for link in page.get_links() if link.get("uri")
    ]
    sheet.quality = text_quality(" ".join(line.text for line in text.lines))
    reason = ocr_reason(text, sheet.quality)
    if reason is not None:
        if ocr != "off" and version is not None:
            reporter.note(_STAGE, f"{where}: OCR")
        _recognise(page, sheet, reason, ocr=ocr, version=version, problems=problems)
    reporter.step(_STAGE, f"{where}: {'OCR' if sheet.ocr else 'text layer'}, {len(sheet.text.lines)} lines")
    return sheet


def _upright_rules(strokes: Strokes, sheet: _Sheet) -> list[Rule]:
    """The horizontal lines of the upright page; on a sideways one these are the vertical lines."""
    turn = sheet.text.turn
    if turn == 0:
        return strokes.rules
    lines = [Box(rule.x0, rule.y, rule.x1, rule.y) for rule in strokes.rules] if turn == 180 else strokes.verticals
    boxes = [rotate_box(box, sheet.width, sheet.height, turn) for box in lines]
    return merge_rules(Rule(box.x0, box.x1, (box.y0 + box.y1) / 2) for box in boxes if box.x1 - box.x0 > 8)


def _recognise(
    page: pymupdf.Page, sheet: _Sheet, reason: str, *, ocr: str, version: str | None, problems: list[Problem]
) -> None:
    """OCR one page; on failure the page is reported and keeps what its text layer has."""
    number = sheet.text.number
    sheet.unread = True
    if ocr == "off" or version is None:
        why = "OCR is switched off" if ocr == "off" else "Tesseract is not installed"
        message = f"{reason}; {why}: the text of this page is missing"
        if version is None and ocr != "off":
            message += f". {_INSTALL}"
    else:
        try:
            result = ocr_page(page, number, reason, version)
        except ExpbenchError as error:
            message = f"{reason}; {error.cause}: {error.consequence.lower()}"
        else:
            if result.text.lines:
                result.text.images, result.text.hidden = [], sheet.text.hidden  # the page's one image is the scan
                sheet.text, sheet.rules, sheet.ocr, sheet.unread = result.text, result.rules, result.run, False
                sheet.warnings.append(f"read by OCR: {reason}")
                return
            message = f"{reason}; OCR found no text on it"
            if sheet.text.images and version is not None:
                problems.append(Problem(component="extract.ocr", where=f"page {number}", message=message))
                sheet.warnings.append(message)
                return
    problems.append(Problem(component="extract.ocr", where=f"page {number}", message=message, severity=Severity.ERROR))
    sheet.warnings.append(message)


# --- assembly


@dataclass(slots=True)
class _Parts:
    """What was found in the upright frames, and the lines that are still running text."""

    captions: list[FoundCaption]
    tables: list[Table]
    figures: list[Figure]
    taken: set[int]


def _assemble(sha256: str, sheets: list[_Sheet], metadata: str | None, problems: list[Problem]) -> Document:
    pages = [sheet.text for sheet in sheets]
    furniture = find_furniture(pages, [sheet.rules for sheet in sheets])
    for sheet in sheets:
        sheet.text.lines = [line for line in sheet.text.lines if id(line) not in furniture]
    body = body_size(pages)
    for sheet in sheets:
        sheet.text.columns = column_count(sheet.text, body)
        if reorder(sheet.text):
            sheet.warnings.append("the text layer runs across the columns; it was sorted column by column")
    vocabulary = Vocabulary(line.text for page in pages for line in page.lines)
    parts = _find_parts(sheets, body, vocabulary, problems)
    title, title_lines = _title(pages[0], body, metadata)
    running = [line for page in pages for line in page.lines if id(line) not in parts.taken]
    headings = find_headings([line for line in running if id(line) not in title_lines], body)
    layouts = {page.number: page_layout(page, body) for page in pages}
    flows = _flows(running, headings, layouts, body, title_lines)
    by_number = {page.number: page for page in pages}

    def to_page(number: int, box: Box) -> Box:
        return by_number[number].to_page(box)

    return Document(
        sha256=sha256,
        title=title,
        pages=tuple(_page(sheet) for sheet in sheets),
        sections=tuple(_section(heading, by_number) for heading in headings),
        passages=tuple(build_passages(flows, layouts, vocabulary, body, to_page)),
        captions=tuple(_caption(caption, by_number, vocabulary) for caption in parts.captions),
        tables=tuple(_turned_table(table, by_number) for table in parts.tables),
        figures=tuple(figure.evolve(box=to_page(figure.page, figure.box)) for figure in parts.figures),
        links=tuple(link for sheet in sheets for link in sheet.links),
        hidden=tuple(hidden for page in pages for hidden in page.hidden),
        problems=tuple(problems),
        extractor=f"pymupdf {pymupdf.VersionBind}",
    )


def _find_parts(sheets: list[_Sheet], body: float, vocabulary: Vocabulary, problems: list[Problem]) -> _Parts:
    pages = [sheet.text for sheet in sheets]
    captions = find_captions(pages, [sheet.rules for sheet in sheets])
    by_page: dict[int, list[FoundCaption]] = {page.number: [] for page in pages}
    for caption in captions:
        by_page[caption.page].append(caption)
    tables = read_tables(
        [
            TablePage(sheet.text, sheet.rules, by_page[sheet.text.number], "ocr" if sheet.ocr else "layer")
            for sheet in sheets
        ],
        vocabulary,
    )
    taken = {id(line) for caption in captions for line in caption.lines}
    boxes: dict[int, list[Box]] = {page.number: [] for page in pages}
    for table in tables:
        for number, box in ((table.page, table.box), *table.continued):
            boxes[number].append(box)
    figures: list[Figure] = []
    for page in pages:
        taken.update(id(line) for line in page.lines if any(_inside(line, box) for box in boxes[page.number]))
        for figure, inside in read_figures(page, by_page[page.number], boxes[page.number], body, vocabulary):
            figures.append(figure)
            taken.update(map(id, inside))
    _report_missing(captions, tables, sheets, problems)
    return _Parts(captions, tables, figures, taken)


def _inside(line: TextLine, box: Box) -> bool:
    middle = (line.x0 + line.x1) / 2
    return box.x0 - 4 <= middle <= box.x1 + 4 and box.y0 - 1 <= line.baseline <= box.y1 + 1


def _report_missing(
    captions: Sequence[FoundCaption], tables: Sequence[Table], sheets: Sequence[_Sheet], problems: list[Problem]
) -> None:
    read = {(table.label, table.page) for table in tables}
    for caption in captions:
        if caption.kind.value == "table" and (caption.label, caption.page) not in read:
            message = f"{caption.label}: a caption was found, but no grid next to it"
            problems.append(Problem(component="extract.tables", where=f"page {caption.page}", message=message))
            sheets[caption.page - 1].warnings.append(message)


def _title(page: PageText, body: float, metadata: str | None) -> tuple[str, set[int]]:
    """The largest print on page 1 above the abstract; the PDF's own title only where nothing stands out."""
    end = next(
        (
            index
            for index, line in enumerate(page.lines)
            if re.match(rf"({ABSTRACT})\b", line.text.strip(), re.IGNORECASE)
        ),
        len(page.lines),
    )
    top = [line for line in page.lines[:end] if line.baseline < 0.6 * page.height and len(line.text) > 2]
    readable = [line for line in top if re.search(r"[^\W\d_]{3}", line.text)]
    if readable:
        largest = max(line.size for line in readable)
        if largest >= body + 1:
            lines = [line for line in readable if line.size > largest - 0.6]
            run = [lines[0]]
            for line in lines[1:]:
                if abs(line.baseline - run[-1].baseline) < 2.2 * largest:
                    run.append(line)
            text = squeeze(" ".join(line.text for line in run))
            if len(text) > 3:
                return text, {id(line) for line in run}
    if metadata:
        return metadata, set()
    bold = [line for line in readable if line.bold]
    first = (bold or readable or page.lines)[:1]
    return squeeze(first[0].text) if first else "untitled", set()


def _flows(
    running: Sequence[TextLine], headings: Sequence[Heading], layouts: dict[int, PageLayout], body: float,
    skip: set[int],
) -> list[Flow]:  # fmt: skip
    section_at = {id(heading.lines[0]): index for index, heading in enumerate(headings)}
    heading_lines = {id(line) for heading in headings if heading.standalone for line in heading.lines}
    by_page: dict[int, list[TextLine]] = {}
    for line in running:
        by_page.setdefault(line.page, []).append(line)
    notes: set[int] = set()
    for number, lines in by_page.items():
        notes |= find_footnotes(lines, layouts[number], body)
    flows: list[Flow] = []
    section: int | None = None
    for line in running:
        section = section_at.get(id(line), section)
        if id(line) in heading_lines or id(line) in skip:
            continue
        kind = headings[section].kind if section is not None else None
        flows.append(Flow(line, section, kind, layouts[line.page].column_of(line), id(line) in notes))
    return flows


# --- records


def _page(sheet: _Sheet) -> Page:
    return Page(
        number=sheet.text.number, width=sheet.width, height=sheet.height, columns=sheet.text.columns,
        text_quality=sheet.quality, ocr=sheet.ocr, warnings=tuple(sheet.warnings),
    )  # fmt: skip


def _section(heading: Heading, pages: dict[int, PageText]) -> Section:
    return heading.section(pages[heading.lines[0].page].to_page)


def _caption(caption: FoundCaption, pages: dict[int, PageText], vocabulary: Vocabulary) -> Caption:
    return Caption(
        label=caption.label, kind=caption.kind, text=caption.text(vocabulary), page=caption.page,
        box=pages[caption.page].to_page(caption.box),
    )  # fmt: skip


def _turned_table(table: Table, pages: dict[int, PageText]) -> Table:
    if not any(pages[number].turn for number in (table.page, *(number for number, _ in table.continued))):
        return table
    cells = tuple(
        cell.evolve(box=pages[cell.page or table.page].to_page(cell.box)) if cell.box else cell for cell in table.cells
    )
    continued = tuple((number, pages[number].to_page(box)) for number, box in table.continued)
    return table.evolve(box=pages[table.page].to_page(table.box), cells=cells, continued=continued)
