"""Where a submission uses a library that its task bans.

The re-execution decides: modules that are banned are refused there, however a program asks for them, and that it asked
is written down (`reexecution`). Here stands what needs no run, and all that can be said of a task in which nothing is
run: the import statements of the programs that were handed in. Non-goals: a copy of a library under another name,
native code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from evaluation.families.table.banned_list import BannedLibrary
from evaluation.verdicts import Finding, ViolationKind
from pipeline.task import Verdict
from pipeline.text import shorten
from pipeline.tracing.source import read_unit

__all__ = ["asked_findings", "banned_findings"]


def banned_findings(programs: Mapping[str, str], banned: Sequence[BannedLibrary]) -> list[Finding]:
    """Import statements of banned libraries, each library once a program.

    Args:
        programs: path -> text, notebooks included.
        banned: what the task bans.
    """
    known = {module: library for library in banned for module in library.modules}
    found: dict[tuple[str, str], Finding] = {}
    for path, text in sorted(programs.items()):
        for module, line in _imported(path, text):
            library = known.get(module)
            if library is not None:
                lines = text.splitlines()
                quote = lines[line - 1].strip() if 0 < line <= len(lines) else ""
                found.setdefault((path, library.name), _finding(library, f"{path}:{line}", quote, "imports"))
    return list(found.values())


def asked_findings(asked: Sequence[str], banned: Sequence[BannedLibrary]) -> list[Finding]:
    """Banned modules that programs asked for while they were run again."""
    return [
        _finding(library, "re-execution", "", "asks, as it runs, for")
        for library in banned
        if any(module in asked for module in library.modules)
    ]


def _imported(path: str, text: str) -> Iterator[tuple[str, int]]:
    """(top-level module in lower case, line) of each import statement; nothing for what cannot be parsed."""
    unit = read_unit(path, text)
    for node in ast.walk(unit.tree) if unit.tree is not None else ():
        if isinstance(node, ast.Import):
            yield from ((item.name.split(".")[0].lower(), unit.line(node.lineno)) for item in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0].lower(), unit.line(node.lineno)


def _finding(library: BannedLibrary, where: str, quote: str, how: str) -> Finding:
    condition = ", which is banned for some uses" if library.conditional else ", which the task bans"
    return Finding(
        kind=ViolationKind.BANNED_LIBRARY, verdict=Verdict.UNKNOWN if library.conditional else Verdict.FAIL,
        where=where, quote=shorten(quote, 200), reason=f"{how} {library.name}{condition}",
    )  # fmt: skip
