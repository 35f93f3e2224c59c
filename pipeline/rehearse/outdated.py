"""Does a failed run end in what packages of its environment lack? Read from its traceback's structure, not its words.

Code that was written for earlier packages fails inside of them, or where it takes something of theirs that is gone: a
function, an argument, a name to import. Which versions have it is not known here; earlier ones are tried (see
`pipeline.rehearse.runs`), and what then ends well tells.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from pipeline.rehearse.traces import Place, read_trace
from pipeline.repository import Snapshot
from pipeline.tracing.source import read_unit
from pipeline.validation.diagnosis import is_own_module, missing_in_log
from pipeline.validation.imports_map import third_party
from pipeline.validation.tracebacks import own_file, refused_path

__all__ = ["fails_in_packages"]

_GONE: Final = frozenset({"AttributeError", "ImportError", "TypeError"})
"""How Python says that an attribute, a name to import or an argument is not there."""
_MAX_SOURCE: Final = 2_000_000


def fails_in_packages(log: str, entry: str, snapshot: Snapshot) -> bool:
    """Is the innermost place of the last traceback a package's, or a line of the repository that takes from one?

    Args:
        log: what the run printed.
        entry: the file that it ran; a notebook's traceback does not name it.
        snapshot: the repository.
    """
    trace = read_trace(log)
    if trace is None or refused_path(log, snapshot) is not None:
        return False
    own = {file.path for file in snapshot.files}
    if trace.error == "ModuleNotFoundError":
        # Python names the first part that is missing: of `a.b` there is an `a`
        missed = missing_in_log(trace.text)
        return bool(missed) and "." in missed[-1] and not is_own_module(missed[-1], own)
    place = trace.places[-1]
    if place.in_package:
        return True
    path = own_file(place.path, own) if place.path else entry
    return trace.error in _GONE and path is not None and _takes_from_package(place, path, snapshot)


def _takes_from_package(place: Place, path: str, snapshot: Snapshot) -> bool:
    """Does the statement name something that an import from a package, or what was made with it, is bound to?"""
    if not path.endswith((".py", ".ipynb")):
        return False
    code = read_unit(path, snapshot.text(path, _MAX_SOURCE)).code
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return False
    # a cell of a notebook counts its own lines
    numbers = [place.line] if place.path else [
        number for number, line in enumerate(code.splitlines(), 1) if place.code and line.strip() == place.code
    ]  # fmt: skip
    packages = {item.module.split(".")[0] for item in third_party(snapshot, [path])}
    taken = _taken(tree, packages)
    return any(
        any(isinstance(part, ast.Name) and part.id in taken for part in ast.walk(statement))
        or taken.intersection(_bound(statement, packages))
        for number in numbers
        for statement in [_statement(tree, number)]
        if statement is not None
    )


def _taken(tree: ast.AST, packages: set[str]) -> set[str]:
    """Names bound to something of these packages, or to what an expression with such a name gave."""
    nodes = list(ast.walk(tree))
    taken = {name for node in nodes for name in _bound(node, packages)}
    while True:
        more = set(taken)
        for node in nodes:
            if isinstance(node, ast.Assign | ast.For | ast.withitem):
                value, targets = _binding(node)
                if any(isinstance(part, ast.Name) and part.id in taken for part in ast.walk(value)):
                    more |= {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
        if more == taken:
            return taken
        taken = more


def _binding(node: ast.Assign | ast.For | ast.withitem) -> tuple[ast.expr, list[ast.expr]]:
    if isinstance(node, ast.Assign):
        return node.value, node.targets
    if isinstance(node, ast.For):
        return node.iter, [node.target]
    return node.context_expr, [node.optional_vars] if node.optional_vars is not None else []


def _bound(node: ast.AST, packages: set[str]) -> Iterator[str]:
    """The names that an import statement binds to parts of these packages."""
    if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] in packages:
        yield from (alias.asname or alias.name for alias in node.names)
    elif isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.split(".")[0] in packages:
                yield alias.asname or alias.name.split(".")[0]


def _statement(tree: ast.AST, number: int) -> ast.stmt | None:
    """The innermost statement with this line."""
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and node.lineno <= number <= (node.end_lineno or node.lineno)
    ]
    return max(found, key=lambda node: node.lineno, default=None)
