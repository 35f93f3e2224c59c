"""Tables and figures as their pictures show them (EXP-Bench 3.2: a multimodal model interprets the visual regions).

Each region is cut out of the page and read by a model that takes images; a table that goes on on the next page is one
picture. A table's reading is compared cell by cell with the grid that was read from the text layer:
where they differ both are kept, a problem says so, and nobody is believed over the other. What a model sees is an
interpretation: it is never evidence, and no number of a task comes from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

from extractors._reading import label_key
from extractors.crops import figure_picture, table_pictures
from extractors.engine.asking import Answer, Asker
from extractors.engine.evidence import compact
from extractors.engine.said import FigureAnswer, TableAnswer
from pipeline.errors import FailureKind
from pipeline.llm import ImagePart
from pipeline.paper import Document, Figure, Table
from pipeline.progress import Reporter
from pipeline.schema import Problem, Record, Severity

__all__ = ["Difference", "VisualReading", "compare", "read_visuals", "show_reading"]

_COMPONENT: Final = "extract.model.vision"
_SHOWN: Final = 5
"""Differences that one problem quotes; all of them are in the reading."""
_NO_IMAGES: Final = frozenset({FailureKind.REQUEST_REJECTED})


class Difference(Record):
    """A cell that text layer and picture give differently; row and column as in the grid."""

    row: int
    column: int
    grid: str
    picture: str


class VisualReading(Record):
    """What a model saw in one table or figure."""

    label: str
    page: int
    kind: Literal["table", "figure"]
    images: tuple[str, ...]
    """sha256 of each picture that was shown."""
    table: TableAnswer | None = None
    figure: FigureAnswer | None = None
    cells: int = 0
    """Cells that were compared."""
    differences: tuple[Difference, ...] = ()
    note: str = ""
    """Why nothing was compared, or what the comparison could not tell."""


class _Region(NamedTuple):
    label: str
    kind: Literal["table", "figure"]
    parts: tuple[Table | Figure, ...]

    @property
    def page(self) -> int:
        return self.parts[0].page

    @property
    def caption(self) -> str:
        return self.parts[0].caption


def read_visuals(
    asker: Asker, document: Document, pdf: Path, problems: list[Problem], reporter: Reporter
) -> tuple[VisualReading, ...]:
    """Read all tables and figures of a paper from their pictures, in the order of the paper.

    The first region is asked about alone: an endpoint that takes no images rejects it, which is reported once.

    Args:
        asker: the model.
        document: the structured reading.
        pdf: the file, to cut the pictures from.
        problems: receives what could not be read and where picture and text layer differ.
        reporter: is told about each region.
    """
    regions = _regions(document)
    if not regions:
        return ()
    reporter.start("vision", len(regions))

    def ask(region: _Region) -> tuple[VisualReading | None, tuple[Problem, ...]]:
        return _read(asker, region, _pictures(pdf, document, region))

    with asker.stage("vision"):
        first, said = ask(regions[0])
        if first is None and any(FailureKind.REQUEST_REJECTED.value in problem.message for problem in said):
            message = f"no picture was read: the endpoint rejected the first one ({said[0].message})"
            problems.append(Problem(component=_COMPONENT, where=regions[0].label, message=message))
            reporter.end("vision", "the model takes no images")
            return ()
        answers = [(first, said), *asker.each(regions[1:], ask)]
    readings = []
    for reading, said in answers:
        problems += said
        if reading is not None:
            readings.append(reading)
            problems += _report(reading)
            reporter.step("vision", f"{reading.label}: {len(reading.differences)} difference(s)")
    reporter.end("vision", f"{len(readings)} of {len(regions)} regions read")
    return tuple(readings)


def show_reading(reading: VisualReading) -> str:
    """A reading as text for a prompt; of a table only what it adds to the grid."""
    if reading.figure is not None:
        seen = reading.figure
        axes = f" x: {seen.x_axis}. y: {seen.y_axis}." if seen.x_axis or seen.y_axis else ""
        series = f" Series: {'; '.join(seen.series)}." if seen.series else ""
        return f"{reading.label} (page {reading.page}): {seen.kind}.{axes}{series} {seen.description}"
    told = [f"row {d.row}, column {d.column}: printed `{d.grid}`, seen `{d.picture}`" for d in reading.differences]
    lines = [f"{reading.label} (page {reading.page}): " + ("; ".join(told) if told else "as printed")]
    return " ".join([*lines, reading.note]).strip()


def compare(grid: Sequence[Sequence[str]], seen: Sequence[Sequence[str]]) -> tuple[int, tuple[Difference, ...], str]:
    """Compare a grid with a transcription; blanks, case and kinds of dashes do not count.

    Returns:
        Cells compared, the differences, and a note when the shapes differ. Grids of different shapes are not aligned by
        guessing: the note lists the numbers that only one of them has.
    """
    width = max((len(row) for row in grid), default=0)
    if len(grid) != len(seen) or any(len(row) != width for row in seen):
        shapes = f"{len(grid)} x {width} cells in the text layer, {len(seen)} x {max(map(len, seen), default=0)} seen"
        return 0, (), f"{shapes}; {_numbers_apart(grid, seen)}"
    differences = tuple(
        Difference(row=row, column=column, grid=text, picture=seen[row][column])
        for row, cells in enumerate(grid)
        for column, text in enumerate(cells)
        if compact(text)[0] != compact(seen[row][column])[0]
    )
    return len(grid) * width, differences, ""


def _numbers_apart(grid: Sequence[Sequence[str]], seen: Sequence[Sequence[str]]) -> str:
    def numbers(rows: Sequence[Sequence[str]]) -> dict[str, None]:
        return {compact(c)[0]: None for row in rows for c in row if any(character.isdigit() for character in c)}

    ours, theirs = numbers(grid), numbers(seen)
    only = [n for n in ours if n not in theirs], [n for n in theirs if n not in ours]
    if not any(only):
        return "all numbers occur in both"
    told = [
        f"{len(part)} only {where} ({', '.join(part[:_SHOWN])})"
        for part, where in zip(only, ("in the text layer", "seen"), strict=True)
        if part
    ]
    return "numbers that are not in both: " + ", ".join(told)


def _regions(document: Document) -> list[_Region]:
    """Tables (parts on consecutive pages under one label together), then figures."""
    grouped: list[list[Table]] = []
    for table in document.tables:
        last = grouped[-1] if grouped else []
        if last and label_key(last[-1].label) == label_key(table.label) and table.page - last[-1].page in {0, 1}:
            last.append(table)
        else:
            grouped.append([table])
    regions = [_Region(parts[0].label, "table", tuple(parts)) for parts in grouped]
    return regions + [_Region(figure.label, "figure", (figure,)) for figure in document.figures]


def _pictures(pdf: Path, document: Document, region: _Region) -> tuple[ImagePart, ...]:
    """A figure, or a table upright and whole: parts on several pages in one picture (see `extractors.crops`)."""
    tables = [part for part in region.parts if isinstance(part, Table)]
    figures = [part for part in region.parts if isinstance(part, Figure)]
    pictures = [figure_picture(pdf, document, figure) for figure in figures]
    if tables:
        pictures += table_pictures(pdf, document, tables)
    return tuple(ImagePart(data=picture) for picture in pictures)


def _read(
    asker: Asker, region: _Region, pictures: tuple[ImagePart, ...]
) -> tuple[VisualReading | None, tuple[Problem, ...]]:
    where = f"{region.label} (page {region.page})"
    images = tuple(picture.digest for picture in pictures)
    reading = VisualReading(label=region.label, page=region.page, kind=region.kind, images=images)
    if region.kind == "table":
        seen: Answer[TableAnswer] = asker.ask(
            "read_table", TableAnswer, where, also_located=_NO_IMAGES, caption=region.caption, picture=pictures
        )
        if seen.value is None:
            return None, seen.problems
        grid = [row for part in region.parts if isinstance(part, Table) for row in part.grid]
        cells, differences, note = compare(grid, seen.value.rows)
        found = reading.evolve(table=seen.value, cells=cells, differences=differences, note=note)
        return found, seen.problems
    texts = [text for part in region.parts if isinstance(part, Figure) for text in part.texts]
    told: Answer[FigureAnswer] = asker.ask(
        "read_figure", FigureAnswer, where, also_located=_NO_IMAGES, caption=region.caption,
        texts=["; ".join(texts)] if texts else [], picture=pictures,
    )  # fmt: skip
    return (None if told.value is None else reading.evolve(figure=told.value)), told.problems


def _report(reading: VisualReading) -> list[Problem]:
    where = f"{reading.label} (page {reading.page})"
    if reading.differences:
        shown = "; ".join(
            f"row {d.row}, column {d.column}: `{d.grid}` in the text layer, `{d.picture}` in the picture"
            for d in reading.differences[:_SHOWN]
        )
        more = f"; and {len(reading.differences) - _SHOWN} more" if len(reading.differences) > _SHOWN else ""
        message = f"text layer and picture differ in {len(reading.differences)} of {reading.cells} cells: {shown}{more}"
        return [Problem(component=_COMPONENT, where=where, message=message)]
    if reading.kind == "table" and reading.note:
        severity = Severity.INFO if "all numbers occur in both" in reading.note else Severity.WARNING
        message = f"text layer and picture could not be compared cell by cell: {reading.note}"
        return [Problem(component=_COMPONENT, where=where, message=message, severity=severity)]
    return []
