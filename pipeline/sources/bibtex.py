"""BibTeX as rows of an export; the parser is pybtex. An entry that it cannot read is a problem, the others are read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pipeline.schema import Problem

__all__ = ["read_bibtex"]

_ENTRY: Final = re.compile(r"^\s*@(?!comment|preamble|string)\w+\s*[{(]", re.IGNORECASE | re.MULTILINE)
_STRING: Final = re.compile(r"^\s*@string\s*[{(].*$", re.IGNORECASE | re.MULTILINE)
_ACCENT: Final = re.compile(r"\\[\"'`^~=.uvHtcdbr]\s*\{?\\?([A-Za-z])\}?")


def read_bibtex(path: Path, problems: list[Problem]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(where, row) of every entry, in the file's order.

    Entries are parsed one by one, each with the file's abbreviations: one broken entry must not take the others along.

    Raises:
        ValueError: it has no entry at all.
    """
    from pybtex.database import parse_string  # type: ignore[import-untyped]
    from pybtex.exceptions import PybtexError  # type: ignore[import-untyped]

    text = path.read_text(encoding="utf-8-sig", errors="replace")
    starts = [match.start() for match in _ENTRY.finditer(text)]
    if not starts:
        raise ValueError("it has no BibTeX entry")
    strings = "\n".join(_STRING.findall(text))
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        where = f"{path.name} line {text.count(chr(10), 0, start) + 1 + (text[start] == chr(10))}"
        piece = _STRING.sub("", text[start:end])
        try:
            entries = parse_string(f"{strings}\n{piece}", "bibtex").entries
        except (PybtexError, ValueError) as error:
            message = f"the entry cannot be read ({str(error).splitlines()[0]})"
            problems.append(Problem(component="sources.exports", where=where, message=message))
            continue
        for key, entry in entries.items():
            row: dict[str, Any] = {str(name).lower(): _plain(str(value)) for name, value in entry.fields.items()}
            row["authors"] = [_plain(_person(person)) for person in entry.persons.get("author", [])]
            row.setdefault("id", key)
            yield where, row


def _person(person: Any) -> str:
    parts = (person.first_names, person.middle_names, person.prelast_names, person.last_names, person.lineage_names)
    return " ".join(name for names in parts for name in names)


def _plain(text: str) -> str:
    """Without braces, and letters without the commands for their accents."""
    bare = _ACCENT.sub(r"\1", text)
    return " ".join(re.sub(r"[{}]", "", bare.replace("\\&", "&").replace("\\_", "_").replace("\\%", "%")).split())
