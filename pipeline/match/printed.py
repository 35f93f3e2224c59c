"""The paper's numbers with their places: cells of tables, and numbers of sentences.

A number of a sentence counts when it has a decimal point, a percent sign or three significant digits: `two` and `5` are
found everywhere. Non-goals: what a number means, references, headings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pipeline.paper import Box, Cell, Document, Passage, PassageKind, SectionKind, Table
from pipeline.schema import Record
from pipeline.validation.numbers import Number, find_numbers

__all__ = ["PrintedNumber", "list_printed", "list_table_cells", "significant_digits"]

_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_SPREAD: Final = re.compile(r"±|\+/-|\+-|\(")
_LEAST_DIGITS: Final = 3


class PrintedNumber(Record):
    """One number as the paper prints it, and what stands around it."""

    id: str
    value: float
    decimals: int
    text: str
    unit: str | None = None
    uncertainty: float | None = None
    page: int
    box: Box
    label: str
    """`Table 2`, or the section's title."""
    row: int | None = None
    column: int | None = None
    part: int = 0
    """Which number of its cell: the second of `0.91 ± 0.02` is 0.02, of `[0.65, 0.90]` 0.90."""
    row_labels: tuple[str, ...] = ()
    column_labels: tuple[str, ...] = ()
    sentence: str = ""


def list_printed(document: Document) -> tuple[PrintedNumber, ...]:
    """All numbers of a paper: those of its tables, then those of its sentences, in reading order."""
    cells = [number for index in range(len(document.tables)) for number in list_table_cells(document, index)]
    return (*cells, *_of_sentences(document))


def list_table_cells(document: Document, index: int) -> tuple[PrintedNumber, ...]:
    """The numbers in the body of one table: those of cells that are no labels, all of a cell that holds several."""
    table = document.tables[index]
    return tuple(_of_table(table, index))


def significant_digits(text: str) -> int:
    """Digits of a printed number from the first that is no zero to the last; zeros at the end of a whole number too."""
    found = next(find_numbers(text.strip().lstrip("~≈<>≤≥$€£ ")), None)
    body = (found.text if found else text).partition("±")[0].lower().partition("e")[0]
    return len(re.sub(r"\D", "", body).lstrip("0"))


def _of_table(table: Table, index: int) -> Iterator[PrintedNumber]:
    body = [cell for cell in table.cells if cell.row >= table.header_rows and cell.column >= table.stub_columns]
    above = {column: table.column_headers(column) for column in {cell.column for cell in body}}
    beside = {row: table.row_labels(row) for row in {cell.row for cell in body}}
    for cell in body:
        for part, (value, decimals, unit, uncertainty) in enumerate(_of_cell(cell)):
            yield PrintedNumber(
                id=f"table {index + 1} row {cell.row} column {cell.column}" + (f" part {part + 1}" if part else ""),
                value=value, decimals=decimals, text=cell.text, unit=unit, uncertainty=uncertainty,
                page=(cell.page or table.page) if cell.box else table.page, box=cell.box or table.box,
                label=table.label, row=cell.row, column=cell.column, part=part, row_labels=beside[cell.row],
                column_labels=above[cell.column],
            )  # fmt: skip


def _of_cell(cell: Cell) -> Iterator[tuple[float, int, str | None, float | None]]:
    """Value, decimals, unit and uncertainty of each number of a cell."""
    quantity = cell.quantity
    if quantity is None:
        for number in find_numbers(cell.text):
            yield number.value, max(0, number.decimals), "%" if number.percent else None, number.uncertainty
        return
    yield quantity.value, quantity.decimals, quantity.unit, quantity.uncertainty
    if quantity.uncertainty is not None:
        spread = list(find_numbers(_SPREAD.split(cell.text)[-1]))
        yield quantity.uncertainty, max(0, spread[0].decimals) if spread else quantity.decimals, quantity.unit, None


def _of_sentences(document: Document) -> Iterator[PrintedNumber]:
    for passage in document.passages:
        section = document.section_of(passage)
        if passage.kind in {PassageKind.REFERENCE, PassageKind.EQUATION}:
            continue
        if section is not None and section.kind is SectionKind.REFERENCES:
            continue
        yield from _of_passage(passage, section.title if section else "")


def _of_passage(passage: Passage, title: str) -> Iterator[PrintedNumber]:
    page, box = passage.boxes[0]
    start = 0
    for end in [*(match.end() for match in _SENTENCE_END.finditer(passage.text)), len(passage.text)]:
        sentence = passage.text[start:end].strip()
        for number in find_numbers(sentence):
            if _tells(number):
                yield PrintedNumber(
                    id=f"{passage.id}:{start + number.start}",
                    value=number.value, decimals=max(0, number.decimals), text=number.text,
                    unit="%" if number.percent else None, uncertainty=number.uncertainty, page=page, box=box,
                    label=title, sentence=sentence,
                )  # fmt: skip
        start = end


def _tells(number: Number) -> bool:
    return number.percent or number.decimals > 0 or significant_digits(number.text) >= _LEAST_DIGITS
