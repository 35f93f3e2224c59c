"""A number that a run printed or wrote, with everything around it that names it; and grids of cells as observations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipeline.schema import Record
from pipeline.text import shorten
from pipeline.validation.numbers import Number, parse_number

__all__ = ["Observation", "observe", "observe_grid"]

# A label longer than this is prose; its end is what stands next to the number.
_LABEL_WORDS = 10
_MAX_COORDINATES = 24


class Observation(Record):
    """One number of a run.

    `labels` name the number itself (key path, column header, row label; outermost first), `coordinates` are the other
    (name, value) pairs of its row, record or line, `context` is what stands further away (headings, file name, the
    command that printed it). Only labels and coordinates can tie a number to a claim's conditions on their own.
    """

    value: float
    text: str
    decimals: int
    """Position of the last printed digit after the decimal point."""
    labels: tuple[str, ...] = ()
    coordinates: tuple[tuple[str, str], ...] = ()
    context: tuple[str, ...] = ()
    where: str
    """`stdout:12`, `results/x.csv row 3, column accuracy`, `metrics.json: ours.accuracy`."""
    source: str = ""
    """The file or stream alone, as `where` begins."""
    record: str = ""
    """What it shares with the other numbers of its row, object or line, as `where` says it."""
    percent: bool = False
    """Printed in percent (a sign behind it or in its label)."""
    uncertainty: float | None = None


def observe(
    number: Number,
    *,
    labels: Sequence[str],
    coordinates: Sequence[tuple[str, str]] = (),
    context: Sequence[str] = (),
    where: str,
    source: str,
    record: str = "",
) -> Observation:
    """An observation from a parsed number; empty labels are dropped, long ones keep their end."""
    kept = tuple(_end(label) for label in labels if label.strip())
    return Observation(
        value=number.value,
        text=number.text,
        decimals=number.decimals,
        labels=kept,
        coordinates=tuple(
            (_end(name), shorten(value, 80)) for name, value in coordinates[:_MAX_COORDINATES] if value.strip()
        ),
        context=tuple(shorten(text, 200) for text in context if text.strip()),
        where=where,
        source=source,
        record=record or where,
        percent=number.percent or any("%" in label or "percent" in label.lower() for label in kept[-1:]),
        uncertainty=number.uncertainty,
    )


def _end(label: str) -> str:
    parts = label.split()
    return " ".join(parts[-_LABEL_WORDS:])[-160:]


def observe_grid(
    rows: Sequence[Sequence[str]],
    *,
    places: Sequence[str],
    source: str,
    context: Sequence[str] = (),
    header_rows: int | None = None,
) -> Iterator[Observation]:
    """The numbers of a table.

    Args:
        rows: cells; rows may differ in length.
        places: for each row where it stands (`stdout:12`); the column's header is added.
        source: the file or stream that it stands in.
        context: headings above the table, its file's name.
        header_rows: number of leading header rows; counted here when None.
    """
    count = leading_header_rows(rows) if header_rows is None else header_rows
    width = max((len(row) for row in rows), default=0)
    headers = [_column_header(rows[:count], column) for column in range(width)]
    for row, place in zip(rows[count:], places[count:], strict=True):
        numbers = [parse_number(cell) for cell in row]
        stub = [cell for cell, number in zip(row, numbers, strict=True) if number is None and cell.strip()]
        pairs = [(headers[column], cell) for column, cell in enumerate(row) if cell.strip()]
        for column, number in enumerate(numbers):
            if number is None:
                continue
            header = headers[column]
            yield observe(
                number,
                labels=(*stub, header),
                coordinates=[
                    pair for other, pair in enumerate(pairs) if pair != (header, row[column]) or other > width
                ],
                context=context,
                where=f"{place}, column {header or column + 1}",
                source=source,
                record=place,
            )


def leading_header_rows(rows: Sequence[Sequence[str]]) -> int:
    """How many leading rows name the columns: those without a number, or with whole numbers above decimals."""
    count = 0
    for index, row in enumerate(rows[:3]):
        numbers = [number for cell in row if (number := parse_number(cell))]
        if not numbers and any(cell.strip() for cell in row):
            count = index + 1
            continue
        below = [n for later in rows[index + 1 : index + 4] for cell in later[1:] if (n := parse_number(cell))]
        whole = all(number.decimals <= 0 for number in numbers)
        if (
            index == count == 0
            and parse_number(row[0]) is None
            and whole
            and below
            and all(n.decimals > 0 for n in below)
        ):
            count = 1
        break
    return count if count < len(rows) else 0


def _column_header(rows: Sequence[Sequence[str]], column: int) -> str:
    """Header texts above a column; an empty cell of an upper row belongs to the text on its left (spanning header)."""
    parts: list[str] = []
    for index, row in enumerate(rows):
        text = row[column].strip() if column < len(row) else ""
        if not text and index + 1 < len(rows):
            text = next((cell.strip() for cell in reversed(row[:column]) if cell.strip()), "")
        if text and text not in parts:
            parts.append(text)
    return " ".join(parts)
