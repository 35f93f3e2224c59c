"""Papers and artefacts for the tests: numbers of the kinds that results are, tables that print them, files that hold them."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from extractors._quantity import parse_quantity
from pipeline.match.records import Source
from pipeline.paper import Box, Cell, Document, Page, Passage, PassageKind, Table
from pipeline.validation.observation import Observation
from pipeline.validation.outputs import read_file

BOX = Box(0, 0, 100, 100)
Draw = Callable[[random.Random], tuple[float, int]]
"""A number as a program has it, and how many decimals a paper prints of it."""

KINDS: dict[str, Draw] = {
    "accuracy, 3 decimals": lambda r: (r.uniform(0.8, 0.9), 3),
    "accuracy, 4 decimals": lambda r: (r.betavariate(40, 6), 4),
    "percent, 1 decimal": lambda r: (r.uniform(70, 95), 1),
    "percent, 2 decimals": lambda r: (r.gauss(85, 3), 2),
    "share of 30": lambda r: (r.randint(22, 30) / 30, 4),
    "share of 40": lambda r: (r.randint(20, 36) / 40, 3),
    "share of 150": lambda r: (r.randint(120, 150) / 150, 4),
    "small counts": lambda r: (r.randint(0, 30), 0),
    "counts": lambda r: (r.randint(100, 3000), 0),
    "times": lambda r: (r.lognormvariate(0, 1.5), 2),
    "losses": lambda r: (r.lognormvariate(-2, 1), 4),
    "settings": lambda r: (r.choice([0.1, 0.01, 0.001, 0.5, 0.9, 0.99, 1, 2, 5, 10, 16, 32, 64, 100, 128, 256]), 3),
    "large": lambda r: (r.lognormvariate(10, 1), 1),
    "signed": lambda r: (r.gauss(0, 1), 3),
}


def draw_matrix(kind: str, rows: int, columns: int, chance: random.Random) -> tuple[list[list[float]], int]:
    """Numbers of one kind, and the decimals that a paper prints."""
    drawn = [[KINDS[kind](chance) for _ in range(columns)] for _ in range(rows)]
    return [[value for value, _ in row] for row in drawn], drawn[0][0][1]


def make_table(grid: Sequence[Sequence[str]], label: str = "Table 1", stub_columns: int = 1) -> Table:
    """A table with one header row."""
    cells = tuple(
        Cell(row=i, column=j, text=text, quantity=parse_quantity(text) if i and j >= stub_columns else None)
        for i, row in enumerate(grid)
        for j, text in enumerate(row)
    )
    return Table(
        label=label, caption=f"{label}: Results", page=1, box=BOX, grid=tuple(map(tuple, grid)), header_rows=1,
        stub_columns=stub_columns, cells=cells, confidence=1.0,
    )  # fmt: skip


def make_document(*tables: Table, sentences: Sequence[str] = ()) -> Document:
    """A paper of these tables and paragraphs."""
    passages = tuple(
        Passage(id=f"p{i}", section=None, kind=PassageKind.PARAGRAPH, text=text, boxes=((1, BOX),))
        for i, text in enumerate(sentences)
    )
    page = Page(number=1, width=600, height=800, columns=1, text_quality=1.0)
    return Document(sha256="0" * 64, title="T", pages=(page,), tables=tables, passages=passages, extractor="test")


def print_grid(
    rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float]], decimals: int, factor: float = 1.0
) -> list[list[str]]:
    """A table as a paper prints it."""
    return [
        ["", *columns],
        *(
            [name, *(f"{value * factor:.{decimals}f}" for value in line)]
            for name, line in zip(rows, values, strict=True)
        ),
    ]


def read_text(name: str, text: str, command: str = "") -> tuple[Source, list[Observation]]:
    """A file of this text, read as the numbers of a run or repository are."""
    with TemporaryDirectory() as directory:
        path = Path(directory) / Path(name).name
        path.write_text(text, encoding="utf-8")
        observations, problems = read_file(path, name)
    assert not problems, problems
    return Source(name=name, origin="run" if command else "committed", command=command), observations


def write_csv(header: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    """Rows as CSV."""
    stream = io.StringIO()
    csv.writer(stream).writerows([header, *rows])
    return stream.getvalue()


def write_wide(rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float]]) -> str:
    """A CSV with a column for each column."""
    return write_csv(["name", *columns], [[name, *line] for name, line in zip(rows, values, strict=True)])


def write_long(rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float]]) -> str:
    """A CSV with a row for each number."""
    lines = [
        [r, c, value] for r, line in zip(rows, values, strict=True) for c, value in zip(columns, line, strict=True)
    ]
    return write_csv(["dataset", "method", "value"], lines)


def write_nested(rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float]]) -> str:
    """JSON with an object for each row."""
    return json.dumps(
        {
            r: {c: {"score": v, "n": 10} for c, v in zip(columns, line, strict=True)}
            for r, line in zip(rows, values, strict=True)
        }
    )


def write_records(rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float]]) -> str:
    """JSON with a list of records."""
    return json.dumps(
        [{"name": r, **dict(zip(columns, line, strict=True))} for r, line in zip(rows, values, strict=True)]
    )


def write_printed(rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float]]) -> str:
    """A table as a program prints it."""
    width = max(12, *(len(text) + 2 for text in [*rows, *columns, *(f"{v:.6f}" for line in values for v in line)]))
    lines = ["Loading data", "".join(name.rjust(width) for name in ["model", *columns])]
    lines += ["".join([r.rjust(width), *(f"{v:.6f}".rjust(width) for v in line)]) for r, line in zip(rows, values, strict=True)]  # fmt: skip
    return "\n".join([*lines, "Done in 12.3 s", ""])


def write_lines(rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float]]) -> str:
    """A line for each number, under a heading for each row."""
    lines = []
    for name, line in zip(rows, values, strict=True):
        lines.append(f"== {name} ==")
        lines += [f"{column}: {value:.6f}" for column, value in zip(columns, line, strict=True)]
    return "\n".join(lines) + "\n"


WRITERS: dict[str, tuple[str, Callable[[Sequence[str], Sequence[str], Sequence[Sequence[float]]], str]]] = {
    "wide CSV": ("results/out.csv", write_wide),
    "long CSV": ("results/long.csv", write_long),
    "nested JSON": ("results/out.json", write_nested),
    "records": ("results/records.json", write_records),
    "printed table": ("results/log.txt", write_printed),
    "printed lines": ("results/lines.txt", write_lines),
}
