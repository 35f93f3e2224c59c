"""Which distributions a set of Python files needs, read from their imports without importing anything.

Import names differ from distribution names; `distributions.yaml` holds those that do. A name that is neither of the
standard library, nor of the repository, nor in that file is taken to be its own distribution's name.
"""

from __future__ import annotations

import ast
import posixpath
import sys
import warnings
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

import yaml
from packaging.utils import InvalidName, canonicalize_name

from pipeline.repository import Snapshot
from pipeline.schema import Record
from pipeline.tracing.source import read_unit

__all__ = ["Import", "conda_distribution", "distribution_of", "imports_of", "provided_by", "replacement", "third_party"]

_VENDORED = frozenset(
    {"third_party", "third-party", "thirdparty", "vendor", "external", "extern", "deps", "submodules"}
)
_GUARDS = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})

_MAX_NOTEBOOK = 40_000_000
"""Bytes; stored outputs make notebooks large while their code is small."""


class Import(Record):
    """A third-party module that files import."""

    module: str
    """Top-level name, or dotted where the distribution depends on it (`google.protobuf`)."""
    files: tuple[str, ...]
    optional: bool
    """Every import of it is guarded by `except ImportError`: the program says that it can do without."""


@cache
def _data() -> dict[str, Any]:
    text = resources.files(__package__).joinpath("distributions.yaml").read_text(encoding="utf-8")
    data: dict[str, Any] = yaml.safe_load(text)
    return data


def distribution_of(module: str) -> str | None:
    """The distribution that provides a module; None when there is nothing to install for it."""
    names: dict[str, str | None] = _data()["imports"]
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        name = ".".join(parts[:length])
        if name in names:
            return names[name]
    name = parts[0].replace("_", "-")
    try:
        canonicalize_name(name, validate=True)
    except InvalidName:  # `_helper`, `données`: no package of the index can be called so
        return None
    return name


def provided_by(module: str) -> frozenset[str]:
    """Canonical names of all distributions that provide a module."""
    known: dict[str, list[str]] = _data()["alternatives"]
    own = distribution_of(module)
    names = [*known.get(module.split(".", maxsplit=1)[0], ()), *([own] if own else ())]
    return frozenset(canonicalize_name(name) for name in names)


def conda_distribution(name: str) -> str | None:
    """The distribution of a conda package; None for libraries and tools of the platform."""
    names: dict[str, str | None] = _data()["conda"]
    if name.startswith(("lib", "_")) and name not in names:
        return None
    return names.get(name, name)


def replacement(name: str) -> tuple[str, str] | None:
    """(distribution that serves instead of a declared one, reason)."""
    found = _data()["replaced"].get(canonicalize_name(name))
    return (str(found[0]), str(found[1])) if found else None


def third_party(snapshot: Snapshot, files: Sequence[str]) -> tuple[Import, ...]:
    """The third-party modules that files of the snapshot import, sorted by name.

    Args:
        snapshot: the repository.
        files: Python files and notebooks; others, and files that do not parse, are passed over.
    """
    local = _Local(snapshot)
    found: dict[str, dict[str, bool]] = {}
    for path in sorted(set(files)):
        if not path.endswith((".py", ".ipynb")):
            continue
        for module, optional in imports_of(_code(snapshot, path)):
            top = module.split(".")[0]
            if top in sys.stdlib_module_names or local.has(top, path):
                continue
            name = _known_prefix(module) or top
            known = found.setdefault(name, {})
            known[path] = known.get(path, True) and optional
    return tuple(
        Import(module=name, files=tuple(sorted(where)), optional=all(where.values()))
        for name, where in sorted(found.items())
    )


def _code(snapshot: Snapshot, path: str) -> str:
    """Python source; of a notebook, its code cells without magics."""
    if path.endswith(".py"):
        return snapshot.text(path)
    return read_unit(path, snapshot.text(path, _MAX_NOTEBOOK)).code


def _known_prefix(module: str) -> str:
    """The dotted name of the map that a module belongs to (`google.protobuf`); empty when there is none."""
    parts = module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 1, -1))
    return next((name for name in names if name in _data()["imports"]), "")


def imports_of(source: str) -> list[tuple[str, bool]]:
    """(dotted module, guarded by `except ImportError`) of each absolute import; empty for what does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    found: list[tuple[str, bool]] = []
    stack: list[tuple[ast.AST, bool]] = [(tree, False)]
    while stack:
        node, optional = stack.pop()
        if isinstance(node, ast.Import):
            found += [(alias.name, optional) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found += [(f"{node.module}.{alias.name}", optional) for alias in node.names]
        elif isinstance(node, ast.If) and _type_checking(node.test):
            stack += [(child, optional) for child in node.orelse]
        elif isinstance(node, ast.Try) and any(_guards(handler) for handler in node.handlers):
            stack += [(child, True) for child in node.body]
            rest = [*node.handlers, *node.orelse, *node.finalbody]
            # what a handler imports instead is the other half of the choice
            stack += [(child, optional or child in node.handlers) for child in rest]
        else:
            stack += [(child, optional) for child in ast.iter_child_nodes(node)]
    return sorted(found)


def _type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _guards(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(item, ast.Name) and item.id in _GUARDS for item in types)


class _Local:
    """Top-level names that resolve inside the repository, as seen from a file.

    Seen are the repository's root and `src/` (the run's PYTHONPATH), every directory from the file up to the root
    (scripts append their own or their parent's directory to the path), submodules and vendored projects.
    Asking the index for those names would install a stranger's package of the same name.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._modules: set[tuple[str, str]] = set()
        self._roots: set[str] = {"", "src"}
        # a submodule that could not be fetched still tells its name
        self._names = {posixpath.basename(path) for path, _ in snapshot.submodules}
        for file in snapshot.files:
            if file.submodule:
                self._roots |= {file.submodule, f"{file.submodule}/src"}
            parts = file.path.split("/")
            if parts[0] in _VENDORED and len(parts) > 2:
                self._roots |= {parts[0], "/".join(parts[:2]), "/".join([*parts[:2], "src"])}
            if not file.path.endswith((".py", ".so", ".pyx")):
                continue
            directory, name = posixpath.split(file.path)
            self._modules.add((directory, name.split(".")[0]))
            while directory:
                directory, package = posixpath.split(directory)
                self._modules.add((directory, package))

    def has(self, name: str, importer: str) -> bool:
        places = set(self._roots)
        directory = posixpath.dirname(importer)
        while directory:
            places.add(directory)
            directory = posixpath.dirname(directory)
        return name in self._names or any((place, name) in self._modules for place in places)
