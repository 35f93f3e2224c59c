"""Where comments and strings of a text file are: places that can be overwritten without changing what the code does."""

from __future__ import annotations

import io
import json
import re
import tokenize
from pathlib import PurePosixPath
from typing import Final, NamedTuple

__all__ = ["TextSpan", "text_spans"]

_HASH: Final = re.compile(rb"(?:^|(?<=\s))#[^\n]*", re.MULTILINE)
_SLASHES: Final = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
_JSON_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_HASH_SUFFIXES: Final = frozenset({"", ".sh", ".bash", ".yaml", ".yml", ".toml", ".cfg", ".ini", ".r", ".jl", ".mk"})
_SLASH_SUFFIXES: Final = frozenset({".c", ".cc", ".cpp", ".cu", ".h", ".hpp", ".js", ".ts", ".java", ".rs", ".go"})
_FORMATTED: Final = re.compile(r"[rR]?[fF]")
"""Formatted strings hold code: they are left alone."""


class TextSpan(NamedTuple):
    """Bytes that are text rather than code."""

    start: int
    end: int
    prose: bool
    """A comment or docstring, which nothing reads when the program runs."""


def text_spans(path: str, data: bytes) -> list[TextSpan]:
    """Comments (in Python also strings, in notebooks also text cells); empty for formats that have none.

    Args:
        path: its suffix decides on the language.
        data: the file.
    """
    suffix = PurePosixPath(path).suffix.lower()
    if suffix == ".py":
        return _python(data)
    if suffix == ".ipynb":
        return _notebook(data)
    if suffix in _HASH_SUFFIXES:
        return [TextSpan(*match.span(), True) for match in _HASH.finditer(data)]
    if suffix in _SLASH_SUFFIXES:
        return [TextSpan(*match.span(), True) for match in _SLASHES.finditer(data)]
    return []


def _notebook(data: bytes) -> list[TextSpan]:
    """The lines of text cells and the comment lines of code cells, inside their JSON strings."""
    try:
        cells = json.loads(data.decode("utf-8-sig", "surrogatepass")).get("cells", [])
    except (ValueError, AttributeError, RecursionError):
        return []
    prose: set[str] = set()
    for cell in cells if isinstance(cells, list) else []:
        source = cell.get("source", "") if isinstance(cell, dict) else ""
        lines = [str(line) for line in source] if isinstance(source, list) else [str(source)]
        text = cell.get("cell_type") != "code" if isinstance(cell, dict) else False
        prose.update(line for line in lines if text or line.lstrip().startswith("#"))
    return [
        TextSpan(match.start() + 1, match.end() - 1, True)
        for match in _JSON_STRING.finditer(data)
        if json.loads(match[0]) in prose
    ]


def _python(data: bytes) -> list[TextSpan]:
    lines = data.splitlines(keepends=True)
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line))

    def offset(row: int, column: int) -> int:
        return offsets[row - 1] + len(lines[row - 1].decode("utf-8", "replace")[:column].encode("utf-8"))

    try:
        tokens = [t for t in tokenize.tokenize(io.BytesIO(data).readline) if t.type != tokenize.ENCODING]
    except (tokenize.TokenError, SyntaxError, UnicodeDecodeError):
        return [TextSpan(*match.span(), True) for match in _HASH.finditer(data)]
    spans: list[TextSpan] = []
    statement = True  # does a statement begin here?
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        docstring = statement and following is not None and following.type == tokenize.NEWLINE
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and not _FORMATTED.match(token.string)):
            prose = token.type == tokenize.COMMENT or docstring
            spans.append(TextSpan(offset(*token.start), offset(*token.end), prose))
        if token.type not in {tokenize.COMMENT, tokenize.NL}:
            statement = token.type in {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    return spans
