"""Reports as text: terminal tables (Rich), Markdown, CSV and Parquet."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from evaluation.metrics import Metric, mark
from evaluation.report.results import Results
from evaluation.report.tables import Table
from evaluation.scores import EpisodeScores

if TYPE_CHECKING:
    from rich.table import Table as RichTable

__all__ = ["episode_rows", "fitting", "to_csv", "to_markdown", "to_rich", "write_parquet"]

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""A cell of text that starts so is run as a formula by spreadsheets; names come from agents and tasks."""
_NEVER_FOLDED: Final = 20
_MARKDOWN: Final = re.compile(r"([\\`*_\[\]<>|#~])")


def fitting(table: Table, width: int) -> Table:
    """The table, or with rows and columns exchanged where only that fits into `width` characters."""
    turned = Table(
        name=table.name,
        title=table.title,
        note=table.note,
        columns=(" ".join(table.columns[: table.stub]), *(" ".join(row[: table.stub]) for row in table.rows)),
        rows=tuple(
            (str(name), *(row[index] for row in table.rows))
            for index, name in enumerate(table.columns)
            if index >= table.stub
        ),
    )
    return turned if _width(table) > width >= _width(turned) else table


def _width(table: Table) -> int:
    """Characters of a line: each column as wide as its widest line, with borders."""
    rows = [table.columns, *table.rows]
    return sum(
        3 + max(len(part) for row in rows for part in str(row[index]).split(" ["))
        for index in range(len(table.columns))
    )


def to_rich(table: Table) -> RichTable:
    """A table for the terminal; a cell with an interval has it on a second line."""
    from rich.markup import escape
    from rich.table import Table as Rich

    drawn = Rich(title=escape(table.title), caption=escape(table.note) or None, title_justify="left")
    drawn.title_style, drawn.caption_style, drawn.caption_justify = "bold", "dim", "left"
    for index, name in enumerate(table.columns):
        stub = index < table.stub
        longest = max((len(row[index]) for row in table.rows), default=0)
        drawn.add_column(
            escape(str(name)),
            justify="left" if stub else "right",
            overflow="fold",
            no_wrap=not stub or longest <= _NEVER_FOLDED,
        )
    for row in table.rows:
        drawn.add_row(*(_terminal_cell(cell) for cell in row))
    return drawn


def _terminal_cell(cell: str) -> str:
    from rich.markup import escape

    value, bracket, rest = cell.partition(" [")
    shown = "".join(character if character.isprintable() else "�" for character in value)
    return f"{escape(shown)}\n[dim]{rest.removesuffix(']')}[/dim]" if bracket else escape(shown)


def to_markdown(tables: Sequence[Table], title: str) -> str:
    """All tables as GitHub-flavoured Markdown; text is escaped, so that a name cannot become markup."""
    lines = [f"# {_escaped(title)}", ""]
    for table in tables:
        lines += [f"## {_escaped(table.title)}", ""]
        lines += [_escaped(table.note), ""] if table.note else []
        lines.append("| " + " | ".join(_escaped(str(name)) for name in table.columns) + " |")
        lines.append(
            "|" + "|".join("---" if index < table.stub else "---:" for index in range(len(table.columns))) + "|"
        )
        lines += ["| " + " | ".join(_escaped(cell) for cell in row) + " |" for row in table.rows]
        lines.append("")
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def episode_rows(results: Results, *, public: bool = False) -> Iterator[dict[str, Any]]:
    """One flat row an episode: who, what, every metric with its bounds, cost and time. None is unknown.

    Args:
        public: leave out reasons, which may name paths of the machine that ran the episode.
    """
    for scores, _ in results.episodes:
        row: dict[str, Any] = {
            "run": scores.run,
            "agent": scores.agent,
            "model": scores.model,
            "task": scores.task,
            "repeat": scores.repeat,
            "paper": scores.paper,
            "category": scores.category,
            "family": scores.family.value,
            "status": scores.status.value,
            "reason": "" if public else scores.reason,
            "execution_checked": scores.execution_checked,
            "execution_grade": scores.execution_grade,
            "design_restated": scores.design_restated,
        }
        for metric in Metric:
            row[metric.value] = mark(scores, metric).value
        row |= _bounds(scores)
        row |= {name: getattr(scores, name) for name in ("cost_usd", "input_tokens", "output_tokens", "model_calls")}
        row |= {"wall_s": scores.wall_s, "limits": " ".join(scores.limits), "graders": _graders(scores)}
        yield row | {"lock": scores.lock}


def _bounds(scores: EpisodeScores) -> dict[str, float]:
    found: dict[str, float] = {}
    for metric in (Metric.D, Metric.I):
        _, low, high = mark(scores, metric)
        found |= {f"{metric.value}_low": low, f"{metric.value}_high": high}
    return found


def _graders(scores: EpisodeScores) -> str:
    return "; ".join(f"{role}: {grader.engine} {grader.model or ''}".rstrip() for role, grader in scores.graders)


def to_csv(rows: Iterator[dict[str, Any]] | Table) -> str:
    """Rows or a table as CSV (RFC 4180, UTF-8); unknown is an empty cell."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    if isinstance(rows, Table):
        writer.writerow(rows.columns)
        writer.writerows([_inert(cell) for cell in row] for row in rows.rows)
        return stream.getvalue()
    for number, row in enumerate(rows):
        if number == 0:
            writer.writerow(row)
        writer.writerow([_inert(cell) for cell in row.values()])
    return stream.getvalue()


def _inert(cell: Any) -> Any:
    """Text that a spreadsheet takes for text."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def write_parquet(path: Path, rows: Iterator[dict[str, Any]]) -> None:
    """One row an episode as Parquet, atomically; columns without a single value keep their type."""
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    from pipeline.files import write_bytes

    listed = list(rows)
    texts = {"run", "agent", "model", "task", "paper", "category", "family", "status", "reason", "limits", "graders"}
    texts |= {"execution_grade", "lock"}
    whole = {"repeat", "input_tokens", "output_tokens", "model_calls"}
    types = {name: pa.string() for name in texts} | {name: pa.int64() for name in whole}
    types |= {name: pa.bool_() for name in ("execution_checked", "design_restated")}
    names = list(listed[0]) if listed else []
    schema = pa.schema([(name, types.get(name, pa.float64())) for name in names])
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(listed, schema=schema), sink)
    write_bytes(path, sink.getvalue().to_pybytes())
