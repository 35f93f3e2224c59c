"""Everything that a set of files defines, in words with lines: what the steps of a run leave out.

Published requirements cite a script from its imports to its last class, whether or not the call graph leads there: of
the lines that 103 published tasks cite in their own files, the definitions that are followed from the entry points hold
.88, all code of these files .96, at the same precision (means over papers, given the true files).

Non-goals: other files (see `pipeline.tracing.relevance`), and the order in which anything runs.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.repository import Snapshot
from pipeline.task import CodeEvidence, Requirement
from pipeline.tracing.arguments import read_options
from pipeline.tracing.source import CodeUnit, read_unit
from pipeline.tracing.wording import describe_block, describe_function

__all__ = ["NOTEBOOK_LIMIT", "Part", "definitions_of", "lines_of", "parts_of"]

_LIMIT: Final = 2_000_000
NOTEBOOK_LIMIT: Final = 40_000_000
"""Bytes of a notebook that are read: outputs make them large."""
_PLAIN_LINES: Final = 1_000
"""Shell scripts and configurations that people write are shorter; longer files are data or generated."""
_QUOTED: Final = 120
_BODY: Final = 5
"""Lines from which a loop or a condition at module level is a piece of its own; of 1,337 published spans, half have at
most 8."""
_KINDS: Final = {
    ".sh": "Shell script",
    ".yaml": "Configuration",
    ".yml": "Configuration",
    ".json": "Configuration",
    ".toml": "Configuration",
    ".cfg": "Configuration",
    ".ini": "Configuration",
}
_RUNS: Final = re.compile(r"-m\s+[\w.]+|[\w./-]+\.(?:py|sh)\b")
_TOP_LEVEL: Final = re.compile(r"[\s{]{0,3}[\"']?([A-Za-z_][\w.-]*)[\"']?\s*[:=]")

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Part:
    """A top-level definition, a stretch of module-level code, or a plain file as a whole."""

    requirement: Requirement
    name: str
    """Of the definition; empty for a stretch and a plain file."""
    lines: int
    place: float
    """Where the middle of it lies in the code of its file, 0 to 1."""
    declaring: float
    """Share of its lines that declare options of a command line."""


def definitions_of(
    snapshot: Snapshot, paths: Iterable[str], known: Collection[tuple[str, int]] = ()
) -> tuple[Requirement, ...]:
    """One requirement for each top-level definition, each stretch of module-level code and each plain file.

    Args:
        snapshot: the repository.
        paths: its files, in the order of the answer. What cannot be read or parsed gives nothing: the trace says why.
        known: (path, line) pairs that the steps hold already; what lies in them completely is left out.

    Returns:
        Requirements in the order of `paths`, then of the lines; spans of notebooks end with their cell.
    """
    held = set(known)
    found = [part.requirement for path in dict.fromkeys(paths) for part in parts_of(snapshot, path)]
    return tuple(item for item in found if not lines_of([item]) <= held)


def parts_of(snapshot: Snapshot, path: str) -> tuple[Part, ...]:
    """What one file consists of, in the order of its lines; nothing where it cannot be read or parsed."""
    if not any(file.path == path and not file.binary for file in snapshot.files):
        return ()
    unit = read_unit(path, snapshot.text(path, NOTEBOOK_LIMIT if path.endswith(".ipynb") else _LIMIT))
    return tuple(_plain(unit) if unit.tree is None else _parts(unit, unit.tree))


def lines_of(requirements: Iterable[Requirement]) -> set[tuple[str, int]]:
    """The (path, line) pairs that requirements cite."""
    return {
        (span.path, line) for item in requirements for span in item.spans for line in range(span.start, span.end + 1)
    }


def _plain(unit: CodeUnit) -> Iterator[Part]:
    """A shell script or a configuration as a whole; nothing for Python that does not parse, and for long files."""
    kind = _KINDS.get(posixpath.splitext(unit.path)[1].lower())
    lines = unit.code.splitlines()
    if kind is None or not lines or len(lines) > _PLAIN_LINES:
        return
    quote = next((line.strip() for line in lines if line.strip() and not line.startswith("#!")), "")
    evidence = CodeEvidence(path=unit.path, start=1, end=len(lines), quote=quote[:_QUOTED])
    requirement = Requirement(text=f"{kind} {unit.path}{_about(unit.path, lines)}", spans=(evidence,))
    yield Part(requirement, "", len(lines), 0.5, 0.0)


def _about(path: str, lines: Sequence[str]) -> str:
    """What a shell script runs, or which values a configuration sets at its top level, in a few words."""
    if path.endswith(".sh"):
        code = [line for line in lines if not line.lstrip().startswith("#")]
        found = [match.group(0) for line in code if (match := _RUNS.search(line))]
        return f" runs {_listed(found)}" if found else ""
    found = [match.group(1) for line in lines if (match := _TOP_LEVEL.match(line))]
    return f" sets {_listed(found)}" if found else ""


def _listed(found: Sequence[str]) -> str:
    names = list(dict.fromkeys(found))
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return ", ".join(names[:6]) + more


def _parts(unit: CodeUnit, tree: ast.Module) -> Iterator[Part]:
    declaring = {line for option in read_options(tree) for line in range(option.start, option.end + 1)}
    total = max(len(unit.code.splitlines()), 1)
    for text, name, first, last in _pieces(unit, tree):
        requirement = Requirement(text=text, spans=_spans(unit, first, last))
        lines = last - first + 1
        declared = sum(line in declaring for line in range(first, last + 1))
        yield Part(requirement, name, lines, (first + last) / 2 / total, declared / lines)


def _pieces(unit: CodeUnit, tree: ast.Module) -> Iterator[tuple[str, str, int, int]]:
    """(text, name, first line, last line) of what stands at the top level, in lines of the code."""
    stretch: list[ast.stmt] = []
    said = ast.get_docstring(tree)
    if said is not None:
        first = tree.body[0]
        yield f"Describes the file: {_short(said)}", "", first.lineno, first.end_lineno or first.lineno
    for node in tree.body[said is not None :]:
        if isinstance(node, _Definition):
            if stretch:
                yield _stretch(unit, stretch)
                stretch = []
            start = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            yield _defines(node), node.name, start, node.end_lineno or node.lineno
            continue
        if stretch and _parted(unit, stretch[-1], node):
            yield _stretch(unit, stretch)
            stretch = []
        stretch.append(node)
    if stretch:
        yield _stretch(unit, stretch)


def _parted(unit: CodeUnit, last: ast.stmt, node: ast.stmt) -> bool:
    """Does something new begin: another cell, code after imports or imports after code, a long loop or condition?"""
    imports = isinstance(last, ast.Import | ast.ImportFrom) != isinstance(node, ast.Import | ast.ImportFrom)
    return unit.cell(last.lineno) != unit.cell(node.lineno) or imports or _is_body(last) or _is_body(node)


def _is_body(node: ast.stmt) -> bool:
    """Does a statement hold enough others to be a piece of its own?"""
    return hasattr(node, "body") and (node.end_lineno or node.lineno) - node.lineno >= _BODY


def _stretch(unit: CodeUnit, nodes: Sequence[ast.stmt]) -> tuple[str, str, int, int]:
    return _said(unit, nodes), "", nodes[0].lineno, nodes[-1].end_lineno or nodes[-1].lineno


def _said(unit: CodeUnit, nodes: Sequence[ast.stmt]) -> str:
    """What module-level statements do."""
    if all(isinstance(node, ast.Pass) for node in nodes):  # what a notebook gives to the shell, or a magic
        commands = dict(unit.shell)
        said = [commands[line] for line in dict.fromkeys(unit.line(node.lineno) for node in nodes) if line in commands]
        return f"Runs in the shell: {'; '.join(said)[:_QUOTED]}" if said else "Sets up the notebook"
    if isinstance(nodes[0], ast.Import | ast.ImportFrom):
        names = [
            node.module or "." if isinstance(node, ast.ImportFrom) else alias.name
            for node in nodes
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names[:1]
        ]
        more = f" and {len(names) - 8} more" if len(names) > 8 else ""
        return f"Imports {', '.join(names[:8])}{more}"
    return f"Module-level code: {describe_block(list(nodes), '')}"


def _defines(node: _Definition) -> str:
    if not isinstance(node, ast.ClassDef):
        return f"Defines {node.name}: {describe_function(node, node.name)}"
    said = _short(ast.get_docstring(node) or "")
    methods = [item.name for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)]
    return f"Defines class {node.name}: " + (said or f"methods {', '.join(methods[:8]) or 'none'}")


def _short(docstring: str) -> str:
    """The first paragraph, on one line."""
    return " ".join(docstring.strip().split("\n\n")[0].split())[:_QUOTED]


def _spans(unit: CodeUnit, first: int, last: int) -> tuple[CodeEvidence, ...]:
    """Stored lines of `first` to `last`, one span for each cell of a notebook: outputs lie between cells."""
    lines = unit.code.splitlines()
    found: list[CodeEvidence] = []
    start = first
    for number in range(first, last + 1):
        if number == last or unit.cell(number) != unit.cell(number + 1):
            begin, end = unit.line(start), unit.line(number)
            quote = lines[start - 1].strip()[:_QUOTED] if start <= len(lines) else ""
            found.append(CodeEvidence(path=unit.path, start=begin, end=max(begin, end), quote=quote))
            start = number + 1
    return tuple(found)
