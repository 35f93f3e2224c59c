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
from typing import Final

from pipeline.repository import Snapshot
from pipeline.task import CodeEvidence, Requirement
from pipeline.tracing.source import CodeUnit, read_unit
from pipeline.tracing.wording import describe_block, describe_function

__all__ = ["NOTEBOOK_LIMIT", "definitions_of", "lines_of"]

_LIMIT: Final = 2_000_000
NOTEBOOK_LIMIT: Final = 40_000_000
"""Bytes of a notebook that are read: outputs make them large."""
_PLAIN_LINES: Final = 1_000
"""Shell scripts and configurations that people write are shorter; longer files are data or generated."""
_QUOTED: Final = 120
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
    files = {file.path: file for file in snapshot.files}
    held = set(known)
    found: list[Requirement] = []
    for path in dict.fromkeys(paths):
        if path not in files or files[path].binary:
            continue
        unit = read_unit(path, snapshot.text(path, NOTEBOOK_LIMIT if path.endswith(".ipynb") else _LIMIT))
        parts = [_plain(unit)] if unit.tree is None else _parts(unit, unit.tree)
        found += [item for item in parts if item is not None and not lines_of([item]) <= held]
    return tuple(found)


def lines_of(requirements: Iterable[Requirement]) -> set[tuple[str, int]]:
    """The (path, line) pairs that requirements cite."""
    return {
        (span.path, line) for item in requirements for span in item.spans for line in range(span.start, span.end + 1)
    }


def _plain(unit: CodeUnit) -> Requirement | None:
    """A shell script or a configuration as a whole; None for Python that does not parse, and for long files."""
    kind = _KINDS.get(posixpath.splitext(unit.path)[1].lower())
    lines = unit.code.splitlines()
    if kind is None or not lines or len(lines) > _PLAIN_LINES:
        return None
    quote = next((line.strip() for line in lines if line.strip() and not line.startswith("#!")), "")
    evidence = CodeEvidence(path=unit.path, start=1, end=len(lines), quote=quote[:_QUOTED])
    return Requirement(text=f"{kind} {unit.path}{_about(unit.path, lines)}", spans=(evidence,))


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


def _parts(unit: CodeUnit, tree: ast.Module) -> Iterator[Requirement]:
    stretch: list[ast.stmt] = []
    said = ast.get_docstring(tree)
    if said is not None:
        spans = _spans(unit, tree.body[0].lineno, tree.body[0].end_lineno or tree.body[0].lineno)
        yield Requirement(text=f"Describes the file: {_short(said)}", spans=spans)
    for node in tree.body[said is not None :]:
        if isinstance(node, _Definition):
            if stretch:
                yield _stretch(unit, stretch)
                stretch = []
            first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            yield Requirement(text=_defines(node), spans=_spans(unit, first, node.end_lineno or node.lineno))
            continue
        if stretch and (unit.cell(stretch[-1].lineno) != unit.cell(node.lineno) or _is_import(stretch[-1], node)):
            yield _stretch(unit, stretch)
            stretch = []
        stretch.append(node)
    if stretch:
        yield _stretch(unit, stretch)


def _is_import(last: ast.stmt, node: ast.stmt) -> bool:
    """Does code change into imports, or imports into code, between two statements?"""
    return isinstance(last, ast.Import | ast.ImportFrom) != isinstance(node, ast.Import | ast.ImportFrom)


def _stretch(unit: CodeUnit, nodes: Sequence[ast.stmt]) -> Requirement:
    spans = _spans(unit, nodes[0].lineno, nodes[-1].end_lineno or nodes[-1].lineno)
    if all(isinstance(node, ast.Pass) for node in nodes):  # what a notebook gives to the shell, or a magic
        commands = dict(unit.shell)
        said = [commands[line] for line in dict.fromkeys(unit.line(node.lineno) for node in nodes) if line in commands]
        text = f"Runs in the shell: {'; '.join(said)[:_QUOTED]}" if said else "Sets up the notebook"
        return Requirement(text=text, spans=spans)
    if isinstance(nodes[0], ast.Import | ast.ImportFrom):
        names = [
            node.module or "." if isinstance(node, ast.ImportFrom) else alias.name
            for node in nodes
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names[:1]
        ]
        more = f" and {len(names) - 8} more" if len(names) > 8 else ""
        return Requirement(text=f"Imports {', '.join(names[:8])}{more}", spans=spans)
    return Requirement(text=f"Module-level code: {describe_block(list(nodes), '')}", spans=spans)


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
