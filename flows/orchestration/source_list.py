"""Source lists: which papers and repositories `curate` takes, as JSON Lines or CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from pipeline.digests import digest_of
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import Record

__all__ = ["Source", "read_sources"]


class Source(Record):
    """One paper and its repository. Further columns of a list are left alone."""

    pdf: Path
    repository: str = Field(min_length=1)
    commit: str | None = None

    @property
    def digest(self) -> str:
        """sha256 of what the source says (not of the files behind it)."""
        return digest_of(self.model_dump(mode="json"))


def read_sources(path: Path) -> list[Source]:
    """The sources of a `.jsonl` or `.csv` file; relative paths are relative to the file, each source counts once.

    Raises:
        ExpbenchError: `USAGE`: the file cannot be read, a line is no source, or there is none; names the line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise _refused(path, f"cannot be read: {error}") from error
    if path.suffix.lower() == ".csv":
        rows = _csv_rows(path, text)
    elif path.suffix.lower() in {".jsonl", ".ndjson"}:
        rows = _json_rows(path, text)
    else:
        raise _refused(path, f"is neither .jsonl nor .csv but {path.suffix or 'without an ending'}")
    sources: dict[str, Source] = {}
    for line, row in rows:
        source = _source(path, line, row)
        sources.setdefault(source.digest, source)
    if not sources:
        raise _refused(path, "holds no source")
    return list(sources.values())


def _csv_rows(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.DictReader(text.splitlines())
    if not {"pdf", "repository"} <= set(reader.fieldnames or ()):
        raise _refused(path, f"has no columns `pdf` and `repository` in its first line ({reader.fieldnames})")
    for row in reader:
        yield reader.line_num, {name: value for name, value in row.items() if value}


def _json_rows(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise _refused(path, f"line {number} is not JSON: {error.msg}") from error
        if not isinstance(row, dict):
            raise _refused(path, f"line {number} is not an object")
        yield number, row


def _source(path: Path, line: int, row: dict[str, Any]) -> Source:
    known = {name: row[name] for name in Source.model_fields if row.get(name) not in {None, ""}}
    try:
        source = Source.model_validate(known)
    except ValidationError as error:
        first = error.errors()[0]
        raise _refused(path, f"line {line}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    base = path.resolve().parent
    local = source.repository if (base / source.repository).exists() else None
    return source.evolve(
        pdf=base / source.pdf, repository=str((base / local).resolve()) if local else source.repository
    )


def _refused(path: Path, cause: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.USAGE,
        str(path),
        cause,
        consequence="No paper was started",
        next_step='Write one JSON object a line ({"pdf": ..., "repository": ..., "commit": ...}) or a CSV with these '
        "columns",
    )
