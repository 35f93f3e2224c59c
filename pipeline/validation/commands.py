"""The program that a command starts, and the options that its code declares."""

from __future__ import annotations

import ast
import posixpath
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from pipeline.repository import Snapshot
from pipeline.task import Usage
from pipeline.tracing.arguments import Option, read_options
from pipeline.tracing.modules import ModuleMap
from pipeline.tracing.source import CodeUnit, read_unit

__all__ = ["StartedProgram", "started_path", "started_program"]

_MAX_NAME: Final = 200


class StartedProgram(NamedTuple):
    """A Python file of the repository that a command runs."""

    path: str
    unit: CodeUnit
    options: tuple[tuple[str, Option], ...]
    """(file that declares it, option)."""
    own_options: bool
    """Are they declared in the started file itself, in one parser? Then a flag that is added is surely understood."""
    arguments: tuple[str, ...]
    """What comes after the script."""
    config_names: tuple[str, ...]
    """Names of YAML and JSON files that stand in its code and in what that imports."""


def started_program(snapshot: Snapshot, step: Usage) -> StartedProgram | None:
    """The program of a command; None for one that is no Python file of the repository (a shell script, a tool)."""
    path = started_path(snapshot, step)
    if path is None or path.endswith(".ipynb"):
        return None
    unit = read_unit(path, snapshot.text(path))
    if unit.tree is None:
        return None
    own = read_options(unit.tree)
    options = {(path, option.name): option for option in own}
    names: set[str] = set()
    for name, tree in _imported(snapshot, path):
        names |= {node.value for node in ast.walk(tree) if _is_config(node)}  # type: ignore[attr-defined]
        if not own:
            options |= {(name, option.name): option for option in read_options(tree)}
    return StartedProgram(
        path, unit, tuple((place, option) for (place, _), option in options.items()),
        bool(own) and _one_parser(unit.tree), _arguments_of(step), tuple(sorted(names)),
    )  # fmt: skip


def _imported(snapshot: Snapshot, path: str) -> Iterator[tuple[str, ast.Module]]:
    """The program's file and those of the repository that it imports, each with its tree, the nearest first."""
    modules = ModuleMap(file.path for file in snapshot.files)
    waiting, seen = deque([path]), {path}
    while waiting:
        name = waiting.popleft()
        tree = read_unit(name, snapshot.text(name)).tree
        if tree is None:
            continue
        yield name, tree
        found = {file for node in ast.walk(tree) for file in _imports(modules, name, node)}
        waiting.extend(sorted(found - seen))
        seen |= found


def _imports(modules: ModuleMap, importer: str, node: ast.AST) -> Iterator[str]:
    """The files of the repository that an import statement leads to."""
    if isinstance(node, ast.Import):
        found = [modules.resolve(importer, alias.name, 0) for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        found = [modules.resolve(importer, node.module or "", node.level, alias.name) for alias in node.names]
    else:
        return
    yield from (path for path in found if path is not None)


def _arguments_of(step: Usage) -> tuple[str, ...]:
    """What comes after the script."""
    for number, word in enumerate(step.argv[1:], 1):
        if word.endswith((".py", ".ipynb", ".sh")) or (
            step.argv[number - 1] == "-m" and "." in word and "distributed" not in word
        ):
            return step.argv[number + 1 :]
    return step.argv[3:] if step.argv[1:2] == ("-m",) else ()


def _is_config(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and len(node.value) <= _MAX_NAME
        and node.value.endswith((".yaml", ".yml", ".json"))
    )


def started_path(snapshot: Snapshot, step: Usage) -> str | None:
    """The Python file or notebook of the repository that a command starts; None for any other command."""
    files = {file.path for file in snapshot.files}
    words: Sequence[str] = step.argv
    for number, word in enumerate(words[1:], 1):
        if words[number - 1] == "-m" and not word.startswith("-"):
            name = word.replace(".", "/")
            for base in (step.directory, ".", "src"):
                for tail in (f"{name}.py", f"{name}/__main__.py"):
                    candidate = posixpath.normpath(posixpath.join(base, tail))
                    if candidate in files:
                        return candidate
        elif word.endswith((".py", ".ipynb")):
            candidate = posixpath.normpath(posixpath.join(step.directory, word))
            if candidate in files:
                return candidate
    return None


def _one_parser(tree: ast.Module) -> bool:
    """Sub-commands have options of their own: which one a command means is not known from the flags alone."""
    called = {
        node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name)
    }
    groups = any(
        isinstance(node, ast.FunctionDef) and any(".group" in ast.unparse(item) for item in node.decorator_list)
        for node in ast.walk(tree)
    )
    return not called & {"add_subparsers", "add_parser"} and not groups
