"""Reading code: Python files and the source cells of notebooks as syntax trees whose lines map back to the file.

A notebook becomes one module, its code cells one after the other; `CodeUnit.line` leads from a line of that module to
the line of the `.ipynb` file on which it is stored (nbformat writes one JSON string a line). Nothing is executed and
nothing is fatal: what cannot be parsed is a unit with `tree=None` and an `error`.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from dataclasses import dataclass, field
from typing import Any

__all__ = ["CodeUnit", "NotebookCell", "notebook_cells", "parse_python", "read_unit"]

# Files above this are data or generated (the largest hand-written file in 16 published repositories has 290 kB).
_PARSE_LIMIT = 1_500_000
_MAGIC = re.compile(r"^(\s*)([%!?].*|.*\?\?)$")
_CELL_MAGIC = re.compile(r"^\s*%%(\w+)")
_PYTHON_CELL_MAGICS = {"time", "timeit", "capture", "prun"}


@dataclass(frozen=True, slots=True)
class NotebookCell:
    """One cell: its number from 0, its kind, its source lines and the line of the file each is stored on."""

    number: int
    kind: str
    lines: tuple[str, ...]
    stored: tuple[int, ...]

    @property
    def text(self) -> str:
        """The cell's source."""
        return "\n".join(self.lines)


@dataclass(frozen=True, slots=True)
class CodeUnit:
    """The code of a file, as far as it could be parsed."""

    path: str
    code: str
    tree: ast.Module | None
    error: str | None = None
    lines: tuple[int, ...] | None = None
    """For notebooks: line of the file for each line of `code`; None when they are the same."""
    prose: str = ""
    """Markdown cells of a notebook."""
    shell: tuple[tuple[int, str], ...] = field(default=())
    """(line of the file, command) of a notebook's `!command` lines."""

    def line(self, number: int) -> int:
        """The line of the file for line `number` (from 1) of `code`."""
        if self.lines is None or not self.lines:
            return number
        return self.lines[min(max(number, 1), len(self.lines)) - 1]


_HUGE = re.compile(r"\b0[xX][0-9a-fA-F_]{3500,}|\b0[oO][0-7_]{4700,}|\b0[bB][01_]{14000,}")
"""Integers of more than the 4,300 digits that Python writes out: read as 0, or nobody could print the tree."""


def parse_python(code: str) -> tuple[ast.Module | None, str | None]:
    """Parse without ever raising; the second value says why there is no tree."""
    if len(code) > _PARSE_LIMIT:
        return None, f"larger than {_PARSE_LIMIT} characters: not parsed"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(_HUGE.sub(lambda found: found[0][:2] + "0" * (len(found[0]) - 2), code)), None
    except SyntaxError as error:
        hint = " (Python 2 print statement)" if "print" in (error.msg or "") else ""
        return None, f"line {error.lineno}: {error.msg}{hint}"
    except (ValueError, RecursionError, MemoryError) as error:
        return None, f"{type(error).__name__}: {error}"


def notebook_cells(raw: str) -> tuple[NotebookCell, ...]:
    """The cells of a notebook in order, outputs left out.

    Raises:
        ValueError: `raw` is not a notebook.
    """
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from error
    if not isinstance(document, dict):
        raise ValueError("not a notebook: the top level is not an object")
    sheets = document.get("worksheets", [])  # nbformat 3
    holders = [document, *(sheet for sheet in sheets if isinstance(sheet, dict))] if isinstance(sheets, list) else []
    lists = [holder.get("cells", []) for holder in holders]
    if not lists or not all(isinstance(cells, list) for cells in lists):
        raise ValueError("not a notebook: its cells are no list")
    found: list[dict[str, Any]] = [cell for cells in lists for cell in cells if isinstance(cell, dict)]
    stored = raw.splitlines()
    heads = [number for number, line in enumerate(stored, 1) if line.lstrip().startswith(('"source":', '"input":'))]
    cells, position = [], 0
    for number, cell in enumerate(found):
        source = cell.get("source", cell.get("input", ""))
        parts = [str(part) for part in source] if isinstance(source, list) else [str(source)]
        lines = "".join(parts).splitlines()
        places, position = _places(parts, lines, stored, heads, position)
        cells.append(NotebookCell(number, str(cell.get("cell_type", "code")), tuple(lines), places))
    return tuple(cells)


def _places(
    parts: list[str], lines: list[str], stored: list[str], heads: list[int], position: int
) -> tuple[tuple[int, ...], int]:
    """Lines of the file on which a cell's source lines are stored, and where to look for the next cell.

    Outputs may hold a `"source"` key of their own (plots in JSON), so the first line must agree too.
    """
    for index in range(position, len(heads)):
        head = heads[index]
        opening = stored[head - 1].rstrip()
        if not opening.endswith("["):  # an empty list or one string: everything is on this line
            empty = opening.partition(":")[2].strip().rstrip(",") in {"[]", '""'}
            if bool(lines) != empty:
                return (head,) * len(lines), index + 1
            continue
        if head + len(parts) <= len(stored) and _holds(stored[head], parts[0] if parts else ""):
            if len(parts) == len(lines):
                return tuple(range(head + 1, head + 1 + len(lines))), index + 1
            return (head + 1,) * len(lines), index + 1
    return (1,) * len(lines), position


def _holds(line: str, part: str) -> bool:
    try:
        return bool(json.loads(line.strip().rstrip(",")) == part)
    except ValueError:
        return False


def read_unit(path: str, raw: str) -> CodeUnit:
    """Read a `.py` or `.ipynb` file; other text is a unit without a tree and without an error."""
    if path.endswith(".py"):
        tree, error = parse_python(raw)
        return CodeUnit(path, raw, tree, error)
    if not path.endswith(".ipynb"):
        return CodeUnit(path, raw, None)
    try:
        cells = notebook_cells(raw)
    except ValueError as broken:
        return CodeUnit(path, "", None, str(broken))
    code: list[str] = []
    lines: list[int] = []
    shell: list[tuple[int, str]] = []
    for cell in cells:
        if cell.kind != "code":
            continue
        magic = _CELL_MAGIC.match(cell.lines[0]) if cell.lines else None
        foreign = magic is not None and magic.group(1) not in _PYTHON_CELL_MAGICS
        for text, stored in zip(cell.lines, cell.stored, strict=True):
            code.append(_python_line(text, foreign))
            lines.append(stored)
            command = text.lstrip()
            if command.startswith("!"):
                shell.append((stored, command[1:].strip()))
            elif foreign and magic is not None and magic.group(1) in {"bash", "sh"} and not command.startswith("%%"):
                shell.append((stored, command))
    joined = "\n".join(code)
    tree, error = parse_python(joined)
    prose = "\n\n".join(cell.text for cell in cells if cell.kind != "code")
    return CodeUnit(path, joined, tree, error, tuple(lines), prose, tuple(shell))


def _python_line(text: str, foreign: bool) -> str:
    """A line that Python can parse: magics and foreign cells become `pass`, at their indentation."""
    if foreign:
        return "pass"
    match = _MAGIC.match(text)
    return f"{match.group(1)}pass" if match else text
