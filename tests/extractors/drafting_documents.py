"""Small documents for the tests of drafting: sections, sentences and tables are given, nothing is read from a PDF."""

from __future__ import annotations

from extractors._quantity import parse_quantity
from pipeline.paper import Box, Cell, Document, Page, Passage, PassageKind, Section, SectionKind, Table

BOX = Box(72, 72, 540, 90)


def table(
    label: str, caption: str, rows: list[list[str]], *, header_rows: int = 1, stub: int = 1,
    spans: dict[tuple[int, int], int] | None = None, page: int = 2,
) -> Table:  # fmt: skip
    cells = tuple(
        Cell(row=i, column=j, text=text, column_span=(spans or {}).get((i, j), 1), quantity=parse_quantity(text))
        for i, row in enumerate(rows)
        for j, text in enumerate(row)
        if text
    )
    return Table(
        label=label, caption=f"{label}: {caption}", page=page, box=BOX, grid=tuple(map(tuple, rows)),
        header_rows=header_rows, stub_columns=stub, cells=cells, confidence=0.9,
    )  # fmt: skip


def document(parts: list[tuple[str, str, list[str]]], tables: tuple[Table, ...] = ()) -> Document:
    """A document of (section title, kind, paragraphs); everything stands on page 1 but the tables."""
    sections, passages = [], []
    for title, kind, paragraphs in parts:
        sections.append(Section(number=None, title=title, level=1, page=1, box=BOX, kind=SectionKind(kind)))
        for text in paragraphs:
            passages.append(
                Passage(
                    id=f"p{len(passages)}", section=len(sections) - 1, kind=PassageKind.PARAGRAPH, text=text,
                    boxes=((1, BOX),),
                )
            )  # fmt: skip
    return Document(
        sha256="0" * 64, title="A paper", extractor="test", sections=tuple(sections), passages=tuple(passages),
        tables=tables, pages=tuple(Page(number=n, width=612, height=792, columns=1, text_quality=1) for n in (1, 2)),
    )  # fmt: skip


RESULTS = table(
    "Table 1",
    "Test accuracy (%) on the spirals data, mean over 5 seeds.",
    [["Method", "Test accuracy (%)"], ["Plain", "81.2"], ["Huber", "86.5"], ["Ours", "90.4 ± 0.6"]],
)


def small_paper() -> Document:
    """One result table, one settings table, one statistics table, one sentence on other work, one text-only result."""
    settings = table(
        "Table 2", "Hyper-parameters.", [["Hyper-parameter", "Value"], ["Bandwidth", "0.55"], ["Rounds", "4"]]
    )
    statistics = table(
        "Table 3",
        "Data set statistics.",
        [["Data", "# Train", "# Test"], ["spirals", "600", "1500"], ["moons", "500", "900"]],
    )
    return document(
        [
            ("Abstract", "abstract", ["We weight noisy labels. Ours reaches 90.4% test accuracy on spirals."]),
            ("Related work", "body", ["Smith et al. (2019) reach an accuracy of 97.1% with clean labels."]),
            (
                "Experimental setup",
                "body",
                [
                    "We train every model on 600 points of the spirals data [3]. "
                    "Every run is repeated with 5 random seeds. We set the learning rate to 0.01."
                ],
            ),
            (
                "Results",
                "body",
                ["Table 1 compares the methods. Ours outperforms Huber by 3.9 points and reaches 90.4%."],
            ),
            (
                "Runtime",
                "body",
                [
                    "We measure the wall-clock time on a single core. On spirals, Ours needs a runtime of 12.5 s at n = 600."
                ],
            ),
        ],
        (RESULTS, settings, statistics),
    )
