"""The rows of a conference, `<conference>/conference_data.jsonl`: one a paper, and lines that no tasks go with.

Every line is kept: the row of a paper with the paper, the others - of papers without tasks, given twice, or no row at
all - as `ConferenceLine`s, which are written back where they stood.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import JsonValue

from pipeline.formats._expbench_record import COMPONENT, Quirk
from pipeline.schema import Problem, Record, Severity

__all__ = ["ROWS", "ConferenceLine", "ConferenceRows", "read_rows", "unused_lines", "write_rows"]

ROWS: Final = "conference_data.jsonl"


class ConferenceLine(Record):
    """A line that belongs to no paper with tasks."""

    file: str
    """Relative to the data's directory."""
    number: int
    """From 1, blank lines not counted."""
    text: str
    """Verbatim."""


class ConferenceRows(NamedTuple):
    """A conference's lines."""

    file: str
    lines: Sequence[str]
    by_id: Mapping[str, tuple[int, dict[str, JsonValue]]]
    """(number of the line, row) by paper id; of two with one id the last."""
    given_twice: frozenset[int]
    """Numbers of rows that a later one of the same id replaces."""


def read_rows(place: Path, name: str, parse: Callable[[str, str], object], problems: list[Problem]) -> ConferenceRows:
    """Read a conference's file; what is no row is a problem, and kept.

    Args:
        place: the file; nothing when it is not there.
        name: of it in messages and in `ConferenceLine.file`.
        parse: JSON of a line; (text, where).
        problems: receives what is wrong.
    """
    data = place.read_bytes() if place.is_file() else b""
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    if "\ufffd" in text and b"\xef\xbf\xbd" not in data:
        problems.append(_problem(Quirk.BAD_FILE, name, "it is not UTF-8: bytes that are no text were replaced"))
    # lines end with a line feed only: JSON's own texts may hold the other separators of Unicode
    lines = [line.rstrip("\r") for line in text.split("\n") if line.strip()]
    by_id: dict[str, tuple[int, dict[str, JsonValue]]] = {}
    twice = set()
    for number, line in enumerate(lines, start=1):
        where = f"{name} line {number}"
        try:
            row = parse(line, where)
        except (ValueError, RecursionError) as error:
            problems.append(_problem(Quirk.BAD_FILE, where, f"not JSON ({error}): it is kept as it is"))
            continue
        if not isinstance(row, dict) or "id" not in row:
            problems.append(_problem(Quirk.BAD_FILE, where, "no row of a paper: it is kept as it is"))
            continue
        paper = str(row["id"])
        if paper in by_id:
            twice.add(by_id[paper][0])
            message = f"a second row of paper {paper}: the last one counts, both are kept"
            problems.append(_problem(Quirk.DUPLICATE_ROW, where, message))
        by_id[paper] = (number, row)
    return ConferenceRows(name, lines, by_id, frozenset(twice))


def unused_lines(rows: ConferenceRows, used: Iterable[int], problems: list[Problem]) -> list[ConferenceLine]:
    """The lines that are no row of a paper with tasks; rows of papers without any are said.

    Args:
        rows: of one conference.
        used: numbers of the lines that papers hold.
        problems: receives the rows of papers without tasks.
    """
    taken = set(used)
    known = {number: paper for paper, (number, _) in rows.by_id.items()}
    lines = []
    for number, text in enumerate(rows.lines, start=1):
        if number in taken:
            continue
        if number in known:
            message = f"no file of tasks is about paper {known[number]}: its row is kept"
            where = f"{rows.file} line {number}"
            problems.append(_problem(Quirk.ROW_WITHOUT_TASKS, where, message, Severity.INFO))
        lines.append(ConferenceLine(file=rows.file, number=number, text=text))
    return lines


def write_rows(papers: Iterable[tuple[int | None, JsonValue]], others: Iterable[ConferenceLine]) -> str:
    """The text of a conference's file: every line where it stood, new rows at the end.

    Args:
        papers: (number of the line, row) of the papers with tasks.
        others: the other lines.
    """
    lines = [(number is None, number or 0, json.dumps(row, ensure_ascii=False)) for number, row in papers]
    lines += [(False, line.number, line.text) for line in others]
    return "".join(f"{text}\n" for _, _, text in sorted(lines, key=lambda line: line[:2]))


def _problem(quirk: Quirk, where: str, message: str, severity: Severity = Severity.WARNING) -> Problem:
    return Problem(component=f"{COMPONENT}.{quirk}", where=where, message=message, severity=severity)
